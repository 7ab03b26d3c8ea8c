"""Tiny checkpoints with multi-head latent attention."""

from __future__ import annotations

from typing import Any

from model_specs import GoldenSpec, plain_rope, yarn_rope

HEADS: dict[str, Any] = {"num_attention_heads": 4, "num_key_value_heads": 4, "kv_lora_rank": 20, "qk_nope_head_dim": 12,
                         "qk_rope_head_dim": 8, "v_head_dim": 10, "intermediate_size": 24}
EXPERTS: dict[str, Any] = {"n_routed_experts": 8, "num_experts_per_tok": 3, "moe_intermediate_size": 8}
DEEPSEEK_YARN: dict[str, Any] = {**yarn_rope(10_000.0), "mscale": 1.0, "mscale_all_dim": 0.7}

LATENT_SPECS = (
    GoldenSpec(
        name="deepseek_v2_lite",
        family="deepseek_v2",
        weight_std=0.2,
        config={**HEADS, **EXPERTS, "num_hidden_layers": 3, "q_lora_rank": None, "n_shared_experts": 2,
                "first_k_dense_replace": 1, "rope_parameters": DEEPSEEK_YARN, "tie_word_embeddings": False},
        features=("rope_scaling", "score_scale", "expert_choice", "shared_expert", "latent_norms"),
        variants=("v4",),
    ),
    GoldenSpec(
        name="deepseek_v2_groups",
        family="deepseek_v2",
        weight_std=0.2,
        config={**HEADS, **EXPERTS, "num_hidden_layers": 2, "q_lora_rank": 18, "n_shared_experts": 1,
                "topk_method": "group_limited_greedy", "n_group": 4, "topk_group": 2, "routed_scaling_factor": 2.5,
                "attention_bias": True, "rope_parameters": plain_rope(10_000.0), "tie_word_embeddings": True},
        features=("expert_choice", "expert_scale", "expert_groups", "attention_bias", "shared_expert", "latent_norms"),
        variants=("v4",),
    ),
    GoldenSpec(
        name="deepseek_v3_yarn",
        family="deepseek_v3",
        weight_std=0.2,
        config={**HEADS, **EXPERTS, "num_hidden_layers": 3, "q_lora_rank": 18, "n_shared_experts": 1, "n_group": 4,
                "topk_group": 2, "routed_scaling_factor": 2.5, "first_k_dense_replace": 1, "num_mtp_layers": 0,
                "attention_bias": True, "rope_parameters": DEEPSEEK_YARN, "tie_word_embeddings": False},
        features=("rope_scaling", "score_scale", "rope_pairs", "attention_bias", "expert_choice", "expert_norm",
                  "expert_scale", "expert_groups", "choice_bias", "shared_expert", "latent_norms"),
        variants=(),
    ),
    GoldenSpec(
        name="deepseek_v3_halves_stacked",
        family="deepseek_v3",
        weight_std=0.2,
        config={**HEADS, **EXPERTS, "num_hidden_layers": 2, "q_lora_rank": None, "n_shared_experts": 2, "n_group": 1,
                "topk_group": 1, "norm_topk_prob": False, "first_k_dense_replace": 0, "num_mtp_layers": 0,
                "rope_interleave": False, "rope_parameters": plain_rope(10_000.0), "tie_word_embeddings": False},
        features=("rope_pairs", "expert_choice", "expert_norm", "choice_bias", "shared_expert", "latent_norms"),
        variants=("v4",),
        stacked_experts=True,
    ),
    GoldenSpec(
        name="glm4_moe_lite_plain",
        family="glm4_moe_lite",
        weight_std=0.2,
        config={**HEADS, **EXPERTS, "num_hidden_layers": 3, "q_lora_rank": 18, "mlp_layer_types": ["sparse", "dense", "sparse"],
                "rope_parameters": plain_rope(1e6), "tie_word_embeddings": False},
        features=("rope_pairs", "expert_choice", "expert_norm", "expert_scale", "choice_bias", "shared_expert", "latent_norms"),
        variants=(),
    ),
    GoldenSpec(
        name="youtu_plain",
        family="youtu",
        weight_std=0.2,
        # Not tied: transformers clears the embedding of the padding token when it loads a model.
        config={**HEADS, "num_hidden_layers": 2, "q_lora_rank": 18, "rope_parameters": plain_rope(10_000.0),
                "tie_word_embeddings": False},
        features=("rope_pairs", "latent_norms"),
        variants=(),
    ),
    GoldenSpec(
        name="mistral4_growth",
        family="mistral4",
        weight_std=0.2,
        config={**HEADS, **EXPERTS, "num_hidden_layers": 3, "q_lora_rank": 18, "n_group": 2, "topk_group": 1,
                "first_k_dense_replace": 1, "routed_scaling_factor": 1.7,
                "rope_parameters": {**DEEPSEEK_YARN, "llama_4_scaling_beta": 0.4}, "tie_word_embeddings": False},
        features=("query_growth", "score_scale", "rope_pairs", "expert_choice", "expert_norm", "expert_scale",
                  "expert_groups", "shared_expert", "latent_norms"),
        variants=(),
    ),
    GoldenSpec(
        name="minicpm3_longrope",
        family="minicpm3",
        weight_std=0.2,
        config={**HEADS, "num_hidden_layers": 3, "q_lora_rank": 18, "scale_emb": 3, "scale_depth": 1.2,
                "dim_model_base": 20, "attention_bias": True, "mlp_bias": True,
                "original_max_position_embeddings": 32,
                "rope_parameters": {"rope_type": "longrope", "rope_theta": 10_000.0,
                                    "short_factor": [1.0, 1.5, 2.0, 3.0], "long_factor": [1.2, 2.0, 4.0, 7.0]},
                "tie_word_embeddings": True},
        features=("long_factors", "attention_bias", "mlp_bias", "latent_norms", "tied_head", "residual_scale", "logits_scale",
                  "embedding_scale"),
        variants=(),
        num_greedy=0,
    ),
)
