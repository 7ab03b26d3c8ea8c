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
)
