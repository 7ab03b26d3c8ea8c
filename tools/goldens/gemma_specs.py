"""The goldens of Gemma 3n and 4, whose layers share keys and values and may have inputs of their own."""

from __future__ import annotations

from typing import Any

from model_specs import GoldenSpec, linear_rope, plain_rope

GEMMA4: dict[str, Any] = {"intermediate_size": 40, "head_dim": 8, "global_head_dim": 12, "num_key_value_heads": 2,
                          "hidden_size_per_layer_input": 0, "sliding_window": 16}
SLIDING, FULL = "sliding_attention", "full_attention"
PROPORTIONAL: dict[str, Any] = {"rope_type": "proportional", "rope_theta": 1000.0, "partial_rotary_factor": 0.5}
# Transformers has no other sizes of a tower for tests than its classes' defaults with these.
GEMMA4_VISION: dict[str, Any] = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1,
                                 "num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 4, "patch_size": 2,
                                 "position_embedding_size": 4}

GEMMA4_SPECS = (
    GoldenSpec(
        name="gemma4_values_are_keys",
        family="gemma4_text",
        config={**GEMMA4, "num_hidden_layers": 4, "layer_types": [SLIDING, FULL, SLIDING, FULL],
                "attention_k_eq_v": True, "num_global_key_value_heads": 1, "attention_bias": True,
                "rope_parameters": {FULL: PROPORTIONAL, SLIDING: plain_rope(100.0)}, "tie_word_embeddings": False},
        features=("qk_norm", "window", "attention_bias", "rope_scaling", "layer_scalars"),
        variants=("global_sizes",),
    ),
    GoldenSpec(
        name="gemma4_prefix",
        family="gemma4",
        config={**GEMMA4, "num_hidden_layers": 3, "layer_types": [SLIDING, FULL, SLIDING],  # the last becomes full
                "rope_parameters": {FULL: linear_rope(1000.0, 2.0), SLIDING: PROPORTIONAL},
                "final_logit_softcapping": 8.0, "tie_word_embeddings": True},
        features=("qk_norm", "window", "final_soft_cap", "value_norm", "post_norms", "embedding_scale"),
        variants=(),
    ),
    GoldenSpec(
        name="gemma4_layer_inputs",
        family="gemma4_text",
        config={**GEMMA4, "num_hidden_layers": 5, "layer_types": [SLIDING, SLIDING, FULL, SLIDING, FULL],
                "num_kv_shared_layers": 2, "use_double_wide_mlp": True, "intermediate_size": 24,
                "hidden_size_per_layer_input": 5, "vocab_size_per_layer_input": 256,
                "rope_parameters": {FULL: PROPORTIONAL, SLIDING: plain_rope(10_000.0)}, "tie_word_embeddings": True},
        features=("qk_norm", "window", "value_norm", "layer_inputs", "layer_scalars", "tied_head"),
        variants=(),
        weight_std=0.2,
    ),
    GoldenSpec(
        name="gemma4_experts",
        family="gemma4_text",
        config={**GEMMA4, "num_hidden_layers": 2, "layer_types": [SLIDING, FULL], "enable_moe_block": True,
                "num_experts": 5, "top_k_experts": 2, "moe_intermediate_size": 12,
                "rope_parameters": {FULL: PROPORTIONAL, SLIDING: plain_rope(10_000.0)}, "tie_word_embeddings": True},
        features=("qk_norm", "window", "expert_choice", "expert_scales", "tied_head"),
        variants=(),
        weight_std=0.2,
        stacked_experts=True,
    ),
)

GEMMA3N_SPECS = (
    GoldenSpec(
        name="gemma3n_streams",
        family="gemma3n_text",
        config={"num_hidden_layers": 3, "intermediate_size": [24, 20, 28], "head_dim": 8, "num_key_value_heads": 2,
                "hidden_size_per_layer_input": 5, "vocab_size_per_layer_input": 200, "sliding_window": 16,
                "layer_types": [FULL, SLIDING, SLIDING], "num_kv_shared_layers": 1, "laurel_rank": 6,
                "activation_sparsity_pattern": [0.8, 0.3, 0.0], "altup_num_inputs": 3, "altup_active_idx": 1,
                "rope_parameters": {FULL: plain_rope(1000.0), SLIDING: plain_rope(100.0)},
                "tie_word_embeddings": True},
        features=("qk_norm", "window", "value_norm", "gate_cutoffs", "corrected_scale", "tied_head"),
        variants=(),
        weight_std=0.15,
    ),
)
