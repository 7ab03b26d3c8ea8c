"""Tiny checkpoints whose layers have states beside attention: folders under tests/goldens/hybrids/."""

from __future__ import annotations

from typing import Any

from model_specs import GoldenSpec, plain_rope

DELTA: dict[str, Any] = {
    "num_key_value_heads": 2,
    "head_dim": 16,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 12,
    "tie_word_embeddings": False,
}

LFM2_MOE: dict[str, Any] = {
    "num_hidden_layers": 3,
    "num_key_value_heads": 2,
    "intermediate_size": 24,
    "num_experts": 6,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 12,
    "rope_parameters": plain_rope(10_000.0),
}


GRANITE_H: dict[str, Any] = {
    "num_hidden_layers": 3,
    "intermediate_size": 16,
    "embedding_multiplier": 1.5,
    "attention_multiplier": 0.5,
    "residual_multiplier": 1.5,
    "logits_scaling": 2.0,
    "rope_parameters": plain_rope(10_000.0),
}

NEMOTRON: dict[str, Any] = {
    "num_key_value_heads": 2,
    "head_dim": 16,
    "mamba_num_heads": 6,
    "mamba_head_dim": 12,
    "n_groups": 2,
    "ssm_state_size": 20,
}

FALCON: dict[str, Any] = {
    "num_key_value_heads": 2,
    "intermediate_size": 40,
    "mamba_n_heads": 6,
    "mamba_d_state": 12,
    "rope_parameters": plain_rope(10_000.0),
}

MAMBA2_FEATURES = ("convolution", "own_value", "step_bias")


def partial_rope(theta: float, share: float) -> dict[str, Any]:
    return {"rope_type": "default", "rope_theta": theta, "partial_rotary_factor": share}


HYBRID_SPECS = (
    GoldenSpec(
        name="qwen3_5_text",
        family="qwen3_5_text",
        config={**DELTA, "num_hidden_layers": 4, "intermediate_size": 24, "rope_parameters": partial_rope(10_000.0, 0.5)},
        features=("qk_norm", "partial_rotary"),
        variants=(),
        weight_std=0.1,
    ),
    GoldenSpec(
        name="qwen3_5_tied_pattern",
        family="qwen3_5_text",
        config={**DELTA, "num_hidden_layers": 3, "intermediate_size": 40, "linear_num_value_heads": 2,
                "linear_conv_kernel_dim": 3, "attention_bias": True, "tie_word_embeddings": True,
                "layer_types": ["full_attention", "linear_attention", "full_attention"],
                "rope_parameters": partial_rope(100_000.0, 0.25)},
        features=("qk_norm", "tied_head"),
        variants=(),
        weight_std=0.2,
    ),
    GoldenSpec(
        name="qwen3_5_moe_text_stacked",
        family="qwen3_5_moe_text",
        config={**DELTA, "num_hidden_layers": 2, "num_experts": 6, "num_experts_per_tok": 2,
                "moe_intermediate_size": 12, "shared_expert_intermediate_size": 16,
                "layer_types": ["linear_attention", "full_attention"],
                "rope_parameters": partial_rope(10_000.0, 0.5)},
        features=("qk_norm",),
        variants=(),
        weight_std=0.1,
        stacked_experts=True,
    ),
    GoldenSpec(
        name="qwen3_next_sparse_step",
        family="qwen3_next",
        config={**DELTA, "num_hidden_layers": 4, "intermediate_size": 20, "linear_num_key_heads": 3,
                "linear_num_value_heads": 6, "linear_key_head_dim": 10, "linear_value_head_dim": 6,
                "num_experts": 5, "num_experts_per_tok": 2, "moe_intermediate_size": 12,
                "shared_expert_intermediate_size": 8, "norm_topk_prob": False, "decoder_sparse_step": 2,
                "mlp_only_layers": [3], "full_attention_interval": 3, "rope_parameters": partial_rope(10_000.0, 0.5)},
        features=("qk_norm", "partial_rotary", "convolution", "expert_choice", "expert_norm", "shared_expert", "shared_gate"),
        variants=(),
        weight_std=0.1,
    ),
    GoldenSpec(
        name="qwen3_next_stacked",
        family="qwen3_next",
        config={**DELTA, "num_hidden_layers": 2, "linear_num_value_heads": 6, "linear_value_head_dim": 5,
                "linear_conv_kernel_dim": 3, "num_experts": 6, "num_experts_per_tok": 2, "moe_intermediate_size": 12,
                "shared_expert_intermediate_size": 16, "tie_word_embeddings": True,
                "layer_types": ["linear_attention", "full_attention"],
                "rope_parameters": partial_rope(100_000.0, 0.25)},
        features=("qk_norm", "convolution", "expert_choice", "expert_norm", "shared_expert", "tied_head"),
        variants=(),
        weight_std=0.2,
        stacked_experts=True,
    ),
    GoldenSpec(
        name="olmo_hybrid_no_rope",
        family="olmo_hybrid",
        config={"num_hidden_layers": 4, "intermediate_size": 24, "linear_num_key_heads": 2, "linear_num_value_heads": 4,
                "linear_key_head_dim": 10, "linear_value_head_dim": 6, "tie_word_embeddings": False,
                "rope_parameters": {"rope_type": "default", "rope_theta": None}},
        features=("qk_norm", "convolution", "negative_eigenvalues", "no_rope"),
        variants=(),
        weight_std=0.1,
    ),
    GoldenSpec(
        name="olmo_hybrid_joined",
        family="olmo_hybrid",
        config={"num_hidden_layers": 3, "num_key_value_heads": 2, "intermediate_size": 40, "attention_bias": True,
                "linear_conv_kernel_dim": 3, "linear_allow_neg_eigval": False, "tie_word_embeddings": True,
                "layer_types": ["full_attention", "linear_attention", "full_attention"],
                "rope_parameters": plain_rope(50_000.0)},
        features=("qk_norm", "convolution", "attention_bias", "tied_head"),
        variants=(),
        weight_std=0.2,
        stacked_experts=True,  # the names of transformers 5: one convolution
    ),
    GoldenSpec(
        name="lfm2_tied",
        family="lfm2",
        config={"num_hidden_layers": 4, "num_key_value_heads": 2, "intermediate_size": 48, "block_multiple_of": 8,
                "tie_word_embeddings": True, "layer_types": ["conv", "conv", "full_attention", "conv"],
                "rope_parameters": plain_rope(10_000.0)},
        features=("qk_norm", "convolution", "tied_head"),
        variants=(),
        weight_std=0.2,
    ),
    GoldenSpec(
        name="lfm2_bias",
        family="lfm2",
        config={"num_hidden_layers": 3, "num_key_value_heads": 4, "intermediate_size": 40, "conv_bias": True,
                "conv_L_cache": 4, "block_auto_adjust_ff_dim": False, "tie_word_embeddings": False,
                "full_attn_idxs": [0, 2], "rope_parameters": plain_rope(1_000_000.0)},
        features=("qk_norm", "convolution", "convolution_bias"),
        variants=(),
        weight_std=0.2,
    ),
    GoldenSpec(
        name="lfm2_moe_tied",
        family="lfm2_moe",
        config={**LFM2_MOE, "num_dense_layers": 1, "routed_scaling_factor": 1.5, "tie_word_embeddings": True,
                "layer_types": ["conv", "full_attention", "conv"]},
        features=("qk_norm", "convolution", "expert_choice", "expert_norm", "expert_scale", "choice_bias", "tied_head"),
        variants=(),
        weight_std=0.2,
    ),
    GoldenSpec(
        name="lfm2_moe_stacked",
        family="lfm2_moe",
        config={**LFM2_MOE, "num_hidden_layers": 2, "num_dense_layers": 0, "norm_topk_prob": False,
                "use_expert_bias": False, "tie_word_embeddings": False, "layer_types": ["full_attention", "conv"]},
        features=("qk_norm", "convolution", "expert_choice", "expert_norm"),
        variants=(),
        weight_std=0.2,
        stacked_experts=True,
    ),
    GoldenSpec(
        name="granitemoehybrid_mamba",
        family="granitemoehybrid",
        config={**GRANITE_H, "num_hidden_layers": 2, "num_key_value_heads": 2, "num_local_experts": 5,
                "num_experts_per_tok": 2,
                "shared_intermediate_size": 28, "position_embedding_type": None, "mamba_n_heads": 8,
                "mamba_n_groups": 2, "mamba_d_state": 12, "tie_word_embeddings": True,
                "layer_types": ["linear_attention", "full_attention"]},
        features=(*MAMBA2_FEATURES, "convolution_bias", "no_rope", "expert_choice", "shared_expert", "tied_head"),
        v4={"layer_types": ["mamba", "attention"], "time_step_limit": [0.0, 1e30]},
        weight_std=0.2,
    ),
    GoldenSpec(
        name="granitemoehybrid_mamba_dense",
        family="granitemoehybrid",
        config={**GRANITE_H, "num_key_value_heads": 1, "num_local_experts": 0, "num_experts_per_tok": 0,
                "shared_intermediate_size": 44, "position_embedding_type": "rope", "mamba_n_heads": 4,
                "mamba_d_state": 20, "mamba_d_conv": 3, "mamba_expand": 3, "mamba_conv_bias": False,
                "mamba_proj_bias": True, "time_step_limit": [0.3, 0.9], "tie_word_embeddings": False,
                "layer_types": ["linear_attention", "linear_attention", "full_attention"]},
        features=(*MAMBA2_FEATURES, "state_bias", "step_limit"),
        v4={"layer_types": ["mamba", "mamba", "attention"]},
        weight_std=0.2,
    ),
    GoldenSpec(
        name="bamba_groups",
        family="bamba",
        config={"num_hidden_layers": 3, "num_key_value_heads": 2, "intermediate_size": 40, "attn_layer_indices": [1],
                "attention_bias": True, "mlp_bias": True, "mamba_n_heads": 8, "mamba_n_groups": 4,
                "mamba_d_state": 8, "rope_parameters": plain_rope(10_000.0), "tie_word_embeddings": False},
        features=(*MAMBA2_FEATURES, "convolution_bias"),
        variants=(),
        weight_std=0.2,
    ),
    GoldenSpec(
        name="falcon_h1_multipliers",
        family="falcon_h1",
        config={**FALCON, "num_hidden_layers": 2, "mamba_d_ssm": 48, "mamba_rms_norm": True,
                "mamba_norm_before_gate": False, "mamba_n_groups": 2, "lm_head_multiplier": 0.5,
                "embedding_multiplier": 1.5, "key_multiplier": 0.6, "attention_in_multiplier": 1.3,
                "attention_out_multiplier": 0.8, "ssm_in_multiplier": 1.25, "ssm_out_multiplier": 0.7,
                "ssm_multipliers": [0.7, 1.2, 0.9, 1.4, 0.8], "mlp_multipliers": [1.3, 0.6],
                "tie_word_embeddings": False},
        features=(*MAMBA2_FEATURES, "convolution_bias", "multipliers"),
        variants=(),
        weight_std=0.2,
    ),
    GoldenSpec(
        name="falcon_h1_plain",
        family="falcon_h1",
        config={**FALCON, "num_hidden_layers": 2, "mamba_d_ssm": None, "mamba_n_heads": 8, "attention_bias": True, "mlp_bias": True,
                "mamba_proj_bias": True, "projectors_bias": True, "mamba_conv_bias": False,
                "tie_word_embeddings": True},
        features=(*MAMBA2_FEATURES, "state_bias", "tied_head"),
        variants=(),
        weight_std=0.2,
    ),
    GoldenSpec(
        name="falcon_h1_norm_first",
        family="falcon_h1",
        config={**FALCON, "num_hidden_layers": 1, "mamba_d_ssm": 48, "mamba_rms_norm": True,
                "mamba_n_groups": 3, "tie_word_embeddings": False},
        features=(*MAMBA2_FEATURES, "convolution_bias"),
        variants=(),
        weight_std=0.2,
    ),
    GoldenSpec(
        name="nemotron_h_pattern",
        family="nemotron_h",
        config={**NEMOTRON, "layers_block_type": ["mlp", "linear_attention", "full_attention", "linear_attention", "mlp"],
                "intermediate_size": 40, "tie_word_embeddings": False},
        features=(*MAMBA2_FEATURES, "convolution_bias"),
        variants=(),
        weight_std=0.2,
    ),
    GoldenSpec(
        name="nemotron_h_moe",
        family="nemotron_h",
        config={**NEMOTRON, "layers_block_type": ["linear_attention", "moe", "full_attention", "mlp"],
                "intermediate_size": 24, "n_routed_experts": 6, "num_experts_per_tok": 3, "n_group": 3,
                "topk_group": 2, "moe_intermediate_size": 12, "moe_shared_expert_intermediate_size": 20,
                "routed_scaling_factor": 1.5, "use_bias": True, "mlp_bias": False,
                "tie_word_embeddings": False},
        features=(*MAMBA2_FEATURES, "expert_choice", "expert_scale", "choice_bias", "shared_expert"),
        variants=(),
        weight_std=0.2,
    ),
)
