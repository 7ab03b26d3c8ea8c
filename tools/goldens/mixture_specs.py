"""The goldens of models with mixtures of experts."""

from __future__ import annotations

from typing import Any

from model_specs import GoldenSpec, linear_rope, plain_rope

QWEN_MOE = (
    GoldenSpec(
        name="qwen3_moe_tied",
        family="qwen3_moe",
        config={"num_hidden_layers": 3, "intermediate_size": 48, "num_key_value_heads": 2,
                "head_dim": 16, "num_experts": 7, "num_experts_per_tok": 3,
                "moe_intermediate_size": 12, "norm_topk_prob": True, "mlp_only_layers": [1],
                "rope_parameters": plain_rope(1_000_000.0), "tie_word_embeddings": True},
        features=("qk_norm", "expert_choice", "expert_norm", "tied_head"),
    ),
    GoldenSpec(
        name="qwen3_moe_window_stacked",
        family="qwen3_moe",
        config={"num_hidden_layers": 4, "intermediate_size": 32, "num_key_value_heads": 1,
                "head_dim": 12, "num_experts": 5, "num_experts_per_tok": 2,
                "moe_intermediate_size": 12, "norm_topk_prob": False, "decoder_sparse_step": 2,
                "use_sliding_window": True, "sliding_window": 16,
                "rope_parameters": linear_rope(10_000.0, 2.0), "tie_word_embeddings": False},
        features=("qk_norm", "rope_scaling", "window", "expert_choice", "expert_norm"),
        stacked_experts=True,
    ),
    GoldenSpec(
        name="qwen2_moe_sparse_step",
        family="qwen2_moe",
        config={"num_hidden_layers": 4, "intermediate_size": 24, "num_key_value_heads": 1,
                "num_experts": 5, "num_experts_per_tok": 2, "moe_intermediate_size": 12,
                "shared_expert_intermediate_size": 28, "norm_topk_prob": False,
                "decoder_sparse_step": 2, "rope_parameters": plain_rope(10_000.0),
                "tie_word_embeddings": False},
        features=("attention_bias", "expert_choice", "expert_norm", "shared_expert",
                  "shared_gate"),
    ),
    GoldenSpec(
        name="qwen2_moe_tied_stacked",
        family="qwen2_moe",
        config={"num_hidden_layers": 3, "intermediate_size": 48, "num_key_value_heads": 4,
                "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16,
                "shared_expert_intermediate_size": 24, "norm_topk_prob": True,
                "mlp_only_layers": [0], "rope_parameters": plain_rope(1_000_000.0),
                "tie_word_embeddings": True},
        features=("attention_bias", "expert_choice", "expert_norm", "shared_expert",
                  "shared_gate", "tied_head"),
        stacked_experts=True,
    ),
)

OLMOE = (
    GoldenSpec(
        name="olmoe_plain",
        family="olmoe",
        config={"num_hidden_layers": 2, "intermediate_size": 20, "num_key_value_heads": 4,
                "num_experts": 8, "num_experts_per_tok": 3, "norm_topk_prob": False,
                "rope_parameters": plain_rope(10_000.0), "tie_word_embeddings": False},
        features=("qk_norm", "expert_choice", "expert_norm"),
    ),
    GoldenSpec(
        name="olmoe_grouped_stacked",
        family="olmoe",
        config={"num_hidden_layers": 3, "intermediate_size": 16, "num_key_value_heads": 2,
                "num_experts": 5, "num_experts_per_tok": 2, "norm_topk_prob": True,
                "rope_parameters": linear_rope(500_000.0, 4.0), "tie_word_embeddings": True},
        features=("qk_norm", "rope_scaling", "expert_choice", "expert_norm", "tied_head"),
        stacked_experts=True,
    ),
)

MIXTRAL = (
    GoldenSpec(
        name="mixtral_plain",
        family="mixtral",
        config={"num_hidden_layers": 3, "intermediate_size": 24, "num_key_value_heads": 2,
                "num_local_experts": 4, "num_experts_per_tok": 2, "sliding_window": None,
                "rope_parameters": plain_rope(1_000_000.0), "tie_word_embeddings": False},
        features=("expert_choice",),
        variants=("v4", "no_head_dim"),
    ),
    GoldenSpec(
        name="mixtral_window_stacked",
        family="mixtral",
        config={"num_hidden_layers": 2, "intermediate_size": 20, "num_key_value_heads": 1,
                "head_dim": 16, "num_local_experts": 6, "num_experts_per_tok": 3,
                "sliding_window": 16, "rope_parameters": plain_rope(10_000.0),
                "tie_word_embeddings": True},
        features=("window", "expert_choice", "tied_head"),
        variants=("v4", "no_head_dim"),
        stacked_experts=True,
    ),
)

GLM_MOE = (
    GoldenSpec(
        name="glm4_moe_groups",
        family="glm4_moe",
        config={"num_hidden_layers": 3, "intermediate_size": 40, "num_key_value_heads": 2,
                "head_dim": 16, "n_routed_experts": 8, "num_experts_per_tok": 3,
                "moe_intermediate_size": 12, "n_shared_experts": 1, "n_group": 4,
                "topk_group": 2, "norm_topk_prob": True, "routed_scaling_factor": 1.7,
                "first_k_dense_replace": 1, "use_qk_norm": True, "attention_bias": True,
                "num_nextn_predict_layers": 0,
                "rope_parameters": {**plain_rope(10_000.0), "partial_rotary_factor": 0.5},
                "tie_word_embeddings": True},
        features=("qk_norm", "attention_bias", "expert_choice", "expert_norm", "expert_scale",
                  "expert_groups", "choice_bias", "shared_expert", "tied_head"),
        variants=("v4", "no_head_dim"),
    ),
    GoldenSpec(
        name="glm4_moe_plain_stacked",
        family="glm4_moe",
        config={"num_hidden_layers": 2, "intermediate_size": 32, "num_key_value_heads": 1,
                "head_dim": 8, "n_routed_experts": 5, "num_experts_per_tok": 2,
                "moe_intermediate_size": 16, "n_shared_experts": 2, "norm_topk_prob": False,
                "first_k_dense_replace": 0, "use_qk_norm": False,
                "num_nextn_predict_layers": 0,
                "rope_parameters": {**plain_rope(500_000.0), "partial_rotary_factor": 0.5},
                "tie_word_embeddings": False},
        features=("expert_choice", "expert_norm", "choice_bias", "shared_expert"),
        stacked_experts=True,
    ),
)

def gpt_oss_rope(theta: float, factor: float, original: int) -> dict[str, Any]:
    return {"rope_type": "yarn", "rope_theta": theta, "factor": factor, "beta_fast": 32.0,
            "beta_slow": 1.0, "truncate": False, "original_max_position_embeddings": original}


GPT_OSS_FEATURES = ("window", "attention_bias", "attention_sinks", "rope_scaling", "expert_choice",
                    "expert_bias", "router_bias", "clamped_activation")

GPT_OSS = (
    GoldenSpec(
        name="gpt_oss_plain",
        family="gpt_oss",
        config={"num_hidden_layers": 3, "intermediate_size": 12, "num_key_value_heads": 2,
                "head_dim": 12, "num_local_experts": 5, "num_experts_per_tok": 2,
                "sliding_window": 16, "rope_parameters": gpt_oss_rope(150_000.0, 4.0, 64),
                "tie_word_embeddings": False},
        features=GPT_OSS_FEATURES,
        variants=("v4", "no_head_dim"),
    ),
    GoldenSpec(
        name="gpt_oss_mxfp4",
        family="gpt_oss",
        config={"num_hidden_layers": 2, "intermediate_size": 32, "num_key_value_heads": 1,
                "head_dim": 8, "num_local_experts": 8, "num_experts_per_tok": 3,
                "sliding_window": 16, "rope_parameters": gpt_oss_rope(10_000.0, 8.0, 32),
                "tie_word_embeddings": True},
        features=(*GPT_OSS_FEATURES, "tied_head"),
        variants=(),
        mxfp4=True,
    ),
)

GRANITE_MULTIPLIERS = ("embedding_scale", "attention_scale", "residual_scale", "logits_scale")

GRANITE_MOE = (
    GoldenSpec(
        name="granitemoe_bias",
        family="granitemoe",
        weight_std=0.2,
        config={"num_hidden_layers": 2, "intermediate_size": 20, "num_key_value_heads": 2,
                "head_dim": 12, "num_local_experts": 6, "num_experts_per_tok": 2,
                "embedding_multiplier": 3.0, "attention_multiplier": 0.5,
                "residual_multiplier": 1.5, "logits_scaling": 0.5, "attention_bias": True,
                "rope_parameters": plain_rope(10_000.0), "tie_word_embeddings": False},
        features=(*GRANITE_MULTIPLIERS, "attention_bias", "expert_choice"),
        variants=("v4", "no_head_dim"),
    ),
    GoldenSpec(
        name="granitemoeshared_tied_stacked",
        family="granitemoeshared",
        weight_std=0.2,
        config={"num_hidden_layers": 3, "intermediate_size": 16, "num_key_value_heads": 1,
                "num_local_experts": 5, "num_experts_per_tok": 3, "shared_intermediate_size": 28,
                "embedding_multiplier": 1.5, "attention_multiplier": 0.125,
                "residual_multiplier": 2.5, "logits_scaling": 3.0,
                "rope_parameters": linear_rope(50_000.0, 2.0), "tie_word_embeddings": True},
        features=(*GRANITE_MULTIPLIERS, "rope_scaling", "expert_choice", "shared_expert", "tied_head"),
        stacked_experts=True,
    ),
    GoldenSpec(
        name="granitemoehybrid_no_rope",
        family="granitemoehybrid",
        weight_std=0.2,
        config={"num_hidden_layers": 2, "intermediate_size": 16, "num_key_value_heads": 2,
                "num_local_experts": 5, "num_experts_per_tok": 2, "shared_intermediate_size": 28,
                "embedding_multiplier": 1.5, "attention_multiplier": 0.5,
                "residual_multiplier": 1.5, "logits_scaling": 2.0, "position_embedding_type": None,
                "rope_parameters": plain_rope(10_000.0), "layer_types": ["full_attention"] * 2, "mamba_n_heads": 8,
                "tie_word_embeddings": True},
        features=(*GRANITE_MULTIPLIERS, "no_rope", "expert_choice", "shared_expert", "tied_head"),
        v4={"layer_types": ["attention"] * 2},
    ),
    GoldenSpec(
        name="granitemoehybrid_dense",
        family="granitemoehybrid",
        weight_std=0.2,
        config={"num_hidden_layers": 3, "intermediate_size": 16, "num_key_value_heads": 1,
                "num_local_experts": 0, "num_experts_per_tok": 0, "shared_intermediate_size": 44,
                "embedding_multiplier": 1.5, "attention_multiplier": 0.25,
                "residual_multiplier": 1.5, "logits_scaling": 2.0, "position_embedding_type": "rope",
                "attention_bias": True, "rope_parameters": linear_rope(50_000.0, 2.0),
                "layer_types": ["full_attention"] * 3, "mamba_n_heads": 8, "tie_word_embeddings": False},
        features=(*GRANITE_MULTIPLIERS, "rope_scaling", "attention_bias"),
        v4={"layer_types": ["attention"] * 3},
    ),
)

MIXTURE_SPECS: tuple[GoldenSpec, ...] = (*QWEN_MOE, *OLMOE, *MIXTRAL, *GLM_MOE, *GPT_OSS, *GRANITE_MOE)
