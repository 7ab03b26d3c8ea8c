"""Tiny checkpoints of families that differ little from the ones of model_specs.py."""

from __future__ import annotations

from typing import Any

from model_specs import GoldenSpec, linear_rope, llama3_rope, plain_rope, yarn_rope

MROPE: dict[str, Any] = {"rope_type": "default", "rope_theta": 10_000.0, "mrope_section": [2, 1, 1]}
WINDOWED: dict[str, Any] = {"sliding_window": 16,
                            "layer_types": ["sliding_attention", "full_attention", "sliding_attention"]}
VL_VISION_SHAPE: dict[str, Any] = {
    "depth": 1, "hidden_size": 8, "num_heads": 2, "intermediate_size": 8, "out_hidden_size": 32, "patch_size": 2,
    "window_size": 8, "fullatt_block_indexes": [0], "deepstack_visual_indexes": [], "num_position_embeddings": 16}
SMALL: dict[str, Any] = {"num_hidden_layers": 2, "intermediate_size": 48, "num_key_value_heads": 2, "head_dim": 8}

SARVAM: dict[str, Any] = {"num_hidden_layers": 2, "intermediate_size": 24, "num_key_value_heads": 2, "head_dim": 8,
                          "n_routed_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16,
                          "rope_parameters": plain_rope(10_000.0)}

RELATIVE_SPECS = (
    GoldenSpec(
        name="iquestcoder_plain",
        family="iquestcoder",
        config={**SMALL, "rope_parameters": plain_rope(10_000.0), "tie_word_embeddings": False},
        features=(),
        variants=(),
    ),
    GoldenSpec(
        name="internlm3_bias",
        family="internlm3",
        config={**SMALL, "attention_bias": True, "mlp_bias": True, "rope_parameters": linear_rope(10_000.0, 4.0)},
        features=("attention_bias", "mlp_bias", "rope_scaling"),
        variants=("own_bias_names",),
    ),
    GoldenSpec(
        name="seed_oss_output_bias",
        family="seed_oss",
        config={**SMALL, "attention_out_bias": True, "rope_parameters": plain_rope(10_000.0)},
        features=("attention_bias",),
        variants=(),
    ),
    GoldenSpec(
        name="arcee_bias",
        family="arcee",
        config={**SMALL, "mlp_bias": True, "rope_parameters": yarn_rope(10_000.0)},
        features=("mlp_bias", "rope_scaling"),
        variants=(),
    ),
    GoldenSpec(
        name="helium_plain",
        family="helium",
        config={**SMALL, "rope_parameters": plain_rope(10_000.0)},
        features=("rope_pairs",),
        variants=(),
    ),
    GoldenSpec(
        name="ernie4_5_bias_tied",
        family="ernie4_5",
        weight_std=0.2,
        config={**SMALL, "use_bias": True, "rope_parameters": plain_rope(10_000.0), "tie_word_embeddings": True},
        features=("rope_pairs", "attention_bias", "mlp_bias", "tied_head"),
        variants=(),
    ),
    GoldenSpec(
        name="cwm_window",
        family="cwm",
        config={**SMALL, "num_hidden_layers": 3, "sliding_window": 16, "rope_parameters": llama3_rope(10_000.0)},
        features=("window", "rope_scaling"),
        variants=("no_layer_types",),
    ),
    GoldenSpec(
        name="ministral_window",
        family="ministral",
        config={**SMALL, "num_hidden_layers": 3, **WINDOWED, "rope_parameters": plain_rope(10_000.0)},
        features=("window",),
        variants=(),
    ),
    GoldenSpec(
        name="glm_bias",
        family="glm",
        config={**SMALL, "head_dim": 16, "rope_parameters": {**plain_rope(10_000.0), "partial_rotary_factor": 0.5}},
        features=("attention_bias", "rope_pairs", "partial_rotary"),
        variants=(),
    ),
    GoldenSpec(
        name="gemma_tied",
        family="gemma",
        config={**SMALL, "head_dim": 16, "rope_parameters": plain_rope(10_000.0), "tie_word_embeddings": True},
        features=("embedding_scale", "tied_head"),
        variants=(),
    ),
    GoldenSpec(
        name="qwen2_5_vl_text",
        family="qwen2_5_vl",
        config={"num_hidden_layers": 2, "intermediate_size": 48, "num_key_value_heads": 2, "rope_parameters": MROPE,
                "tie_word_embeddings": False},
        features=("attention_bias",),
        variants=("mrope_type",),
    ),
    GoldenSpec(
        name="qwen3_vl_text_tied",
        family="qwen3_vl",
        config={**SMALL, "rope_parameters": {**MROPE, "mrope_interleaved": True}, "tie_word_embeddings": True},
        features=("qk_norm", "tied_head"),
        variants=(),
    ),
    GoldenSpec(
        name="cohere_tied",
        family="cohere",
        weight_std=0.2,
        config={"num_hidden_layers": 2, "intermediate_size": 48, "num_key_value_heads": 2, "logit_scale": 0.5,
                "rope_parameters": plain_rope(10_000.0), "tie_word_embeddings": True},
        features=("layer_norm", "logits_scale", "rope_pairs", "parallel_block", "tied_head"),
        variants=(),
    ),
    GoldenSpec(
        name="solar_open_shared",
        family="solar_open",
        config={"num_hidden_layers": 2, "num_key_value_heads": 2, "head_dim": 8, "n_routed_experts": 4,
                "num_experts_per_tok": 2, "moe_intermediate_size": 16, "routed_scaling_factor": 1.5,
                "rope_parameters": plain_rope(10_000.0)},
        features=("expert_choice", "expert_scale", "shared_expert", "choice_bias"),
        variants=(),
    ),
    GoldenSpec(
        name="dots1_window",
        family="dots1",
        config={"num_hidden_layers": 3, "intermediate_size": 40, "num_key_value_heads": 2, "n_routed_experts": 6,
                "num_experts_per_tok": 2, "n_shared_experts": 1, "moe_intermediate_size": 16, "first_k_dense_replace": 1,
                "n_group": 3, "topk_group": 2, "sliding_window": 16, "max_window_layers": 1,
                "rope_parameters": plain_rope(10_000.0)},
        features=("window", "qk_norm", "expert_choice", "expert_groups", "shared_expert", "choice_bias"),
        variants=("no_layer_types",),
    ),
    GoldenSpec(
        name="minimax_m2_partial",
        family="minimax_m2",
        config={"num_hidden_layers": 2, "intermediate_size": 16, "num_key_value_heads": 2, "head_dim": 8,
                "num_local_experts": 4, "num_experts_per_tok": 2,
                "rope_parameters": {**plain_rope(10_000.0), "partial_rotary_factor": 0.5}},
        features=("qk_norm", "expert_choice", "choice_bias", "partial_rotary"),
        variants=("rotary_dim",),
    ),
    GoldenSpec(
        name="mellum_window",
        family="mellum",
        config={**SMALL, "num_hidden_layers": 3, "num_experts": 4, "num_experts_per_tok": 2,
                "moe_intermediate_size": 16, "mlp_layer_types": ["dense", "sparse", "sparse"], **WINDOWED,
                "rope_parameters": {"full_attention": yarn_rope(500_000.0),
                                    "sliding_attention": plain_rope(10_000.0)}},
        features=("window", "qk_norm", "expert_choice", "local_rope_theta", "rope_scaling"),
        variants=(),
    ),
    GoldenSpec(
        name="granite_swa_thetas",
        family="granite_swa",
        weight_std=0.2,
        config={"num_hidden_layers": 3, "intermediate_size": 24, "num_key_value_heads": 2, "sliding_window": 16,
                "layer_rope_theta": [1000.0, 10_000.0, 0], "attention_multiplier": 0.5,
                "rope_parameters": linear_rope(10_000.0, 2.0), "tie_word_embeddings": False},
        features=("window", "attention_sinks", "layer_thetas", "rope_scaling"),
        variants=(),
    ),
    GoldenSpec(
        name="granitemoe_swa_shared",
        family="granitemoe_swa",
        weight_std=0.25,
        config={"num_hidden_layers": 2, "intermediate_size": 16, "num_key_value_heads": 2, "sliding_window": 16,
                "num_local_experts": 4, "num_experts_per_tok": 2, "shared_intermediate_size": 24,
                "rope_parameters": plain_rope(10_000.0), "tie_word_embeddings": False},
        features=("window", "attention_sinks", "expert_choice", "shared_expert"),
        variants=(),
    ),
    GoldenSpec(
        name="sarvam_moe_published",
        family="sarvam_moe",
        config={**SARVAM, "num_key_value_heads": 1},
        features=("qk_norm", "expert_choice", "expert_scale", "shared_expert", "choice_bias"),
        variants=(),
    ),
    GoldenSpec(
        name="sarvam_moe_stacked",
        family="sarvam_moe",
        config=SARVAM,
        features=("expert_choice",),
        variants=(),
        stacked_experts=True,
    ),
    GoldenSpec(
        name="exaone_moe_window",
        family="exaone_moe",
        config={"num_hidden_layers": 3, "intermediate_size": 24, "num_key_value_heads": 2, "num_experts": 6,
                "num_experts_per_tok": 2, "moe_intermediate_size": 16, "n_group": 3, "topk_group": 2, "sliding_window": 16,
                "sliding_window_pattern": 2, "rope_parameters": plain_rope(10_000.0)},
        features=("window", "qk_norm", "expert_choice", "expert_groups", "shared_expert", "choice_bias"),
        variants=(),
    ),
)
