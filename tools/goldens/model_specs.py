"""The table of tiny checkpoints: one GoldenSpec per folder under tests/goldens/models/."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

BOS_ID, EOS_ID, PAD_ID, SECOND_EOS_ID = 1, 2, 0, 3
VOCAB_SIZE = 256

SHAPE: dict[str, Any] = {
    "vocab_size": VOCAB_SIZE,
    "hidden_size": 32,
    "num_attention_heads": 4,
    "max_position_embeddings": 256,
    "initializer_range": 0.3,
    "bos_token_id": BOS_ID,
    "eos_token_id": EOS_ID,
    "pad_token_id": PAD_ID,
}

VISION_SHAPE: dict[str, Any] = {
    "hidden_size": 8,
    "intermediate_size": 8,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "image_size": 4,
    "patch_size": 2,
}

PIXTRAL_SHAPE: dict[str, Any] = {
    "model_type": "pixtral",
    "hidden_size": 8,
    "intermediate_size": 8,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "head_dim": 4,
    "image_size": 4,
    "patch_size": 2,
}


@dataclass(frozen=True)
class GoldenSpec:
    """The model of one golden, and the features that its logits must depend on."""

    name: str
    family: str  # model_type of config.json
    config: dict[str, Any]  # on top of SHAPE; the text_config of gemma3, mistral3 and smolvlm
    features: tuple[str, ...]  # names of feature_switches.SWITCHES
    v4: dict[str, Any] = field(default_factory=dict)  # fields only transformers 4 writes
    variants: tuple[str, ...] = ("v4",)  # of config_variants.VARIANTS
    generation: dict[str, Any] = field(default_factory=dict)
    shard_size: str = "1GB"
    stacked_experts: bool = False  # saved as transformers 5 holds them, not one by one
    mxfp4: bool = False  # the experts' matrices in blocks of 32, as gpt-oss is published
    weight_renames: tuple[tuple[str, str], ...] = ()  # prefix as saved -> prefix in the file
    weight_std: float = 0.3  # of matrices
    num_greedy: int = 32  # 0: a rope that changes with every token of transformers' output


def plain_rope(theta: float) -> dict[str, Any]:
    return {"rope_type": "default", "rope_theta": theta}


def linear_rope(theta: float, factor: float) -> dict[str, Any]:
    return {"rope_type": "linear", "factor": factor, "rope_theta": theta}


def llama3_rope(theta: float) -> dict[str, Any]:
    """At head_dim 16, one frequency is kept, one interpolated and the others divided by 8."""
    return {
        "rope_type": "llama3",
        "rope_theta": theta,
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 32,
    }


def yarn_rope(theta: float) -> dict[str, Any]:
    return {"rope_type": "yarn", "rope_theta": theta, "factor": 4.0, "original_max_position_embeddings": 16}


def longrope(theta: float) -> dict[str, Any]:
    """For 8 rotated elements of a head."""
    return {"rope_type": "longrope", "rope_theta": theta, "short_factor": [1.0, 1.5, 2.0, 1.2],
            "long_factor": [1.0, 3.0, 6.0, 9.0]}


def gemma3_layers(pattern: int, num_layers: int, global_rope: dict[str, Any]) -> dict[str, Any]:
    kinds = ["full_attention" if (i + 1) % pattern == 0 else "sliding_attention"
             for i in range(num_layers)]
    return {
        "num_hidden_layers": num_layers,
        "layer_types": kinds,
        "rope_parameters": {
            "full_attention": global_rope,
            "sliding_attention": plain_rope(10_000.0),
        },
    }


LLAMA = (
    GoldenSpec(
        name="llama_plain",
        family="llama",
        config={"num_hidden_layers": 3, "intermediate_size": 64, "num_key_value_heads": 2,
                "rms_norm_eps": 1e-5, "rope_parameters": plain_rope(10_000.0),
                "tie_word_embeddings": False},
        features=(),
        variants=("v4", "tied_flag", "no_head_dim"),
        generation={"eos_token_id": [EOS_ID, SECOND_EOS_ID], "do_sample": True,
                    "temperature": 0.7, "top_p": 0.9, "top_k": 20},
    ),
    GoldenSpec(
        name="llama_scaled_tied",
        family="llama",
        config={"num_hidden_layers": 3, "intermediate_size": 48, "num_key_value_heads": 2,
                "head_dim": 16, "rope_parameters": llama3_rope(10_000.0),
                "tie_word_embeddings": True},
        features=("rope_scaling", "tied_head"),
        variants=("v4", "no_head_dim"),
    ),
    GoldenSpec(
        name="llama_bias",
        family="llama",
        config={"num_hidden_layers": 2, "intermediate_size": 48, "num_key_value_heads": 1,
                "rope_parameters": plain_rope(500_000.0), "attention_bias": True,
                "mlp_bias": True, "tie_word_embeddings": False},
        features=("attention_bias",),
    ),
)

QWEN = (
    GoldenSpec(
        name="qwen2_tied",
        family="qwen2",
        config={"num_hidden_layers": 3, "intermediate_size": 64, "num_key_value_heads": 2,
                "rope_parameters": plain_rope(1_000_000.0), "tie_word_embeddings": True},
        features=("attention_bias", "tied_head"),
        v4={"sliding_window": 16, "use_sliding_window": False, "max_window_layers": 1},
        variants=("v4", "no_model_type"),
    ),
    GoldenSpec(
        name="qwen2_untied_linear",
        family="qwen2",
        config={"num_hidden_layers": 3, "intermediate_size": 48, "num_key_value_heads": 1,
                "rope_parameters": linear_rope(10_000.0, 4.0), "tie_word_embeddings": False,
                "use_sliding_window": True, "sliding_window": 16, "max_window_layers": 2},
        features=("attention_bias", "rope_scaling", "window"),
        v4={"sliding_window": 16, "use_sliding_window": True, "max_window_layers": 2},
    ),
    GoldenSpec(
        name="qwen3_tied",
        family="qwen3",
        config={"num_hidden_layers": 3, "intermediate_size": 48, "num_key_value_heads": 2,
                "head_dim": 16, "rope_parameters": plain_rope(1_000_000.0),
                "tie_word_embeddings": True},
        features=("qk_norm", "tied_head"),
        v4={"sliding_window": 16, "use_sliding_window": False, "max_window_layers": 1},
        variants=("v4", "no_model_type", "no_head_dim"),
    ),
    GoldenSpec(
        name="qwen3_untied_linear_sharded",
        family="qwen3",
        config={"num_hidden_layers": 2, "intermediate_size": 56, "num_key_value_heads": 1,
                "head_dim": 12, "rope_parameters": linear_rope(10_000.0, 2.0),
                "tie_word_embeddings": False},
        features=("qk_norm", "rope_scaling"),
        v4={"sliding_window": None, "use_sliding_window": False, "max_window_layers": 2},
        shard_size="40KB",
    ),
)

GEMMA2 = (
    GoldenSpec(
        name="gemma2_even",
        family="gemma2",
        config={"num_hidden_layers": 4, "intermediate_size": 48, "num_key_value_heads": 2,
                "head_dim": 16, "query_pre_attn_scalar": 8, "sliding_window": 16,
                "attn_logit_softcapping": 4.0, "final_logit_softcapping": 6.0,
                "rope_parameters": plain_rope(10_000.0), "tie_word_embeddings": True},
        features=("attention_soft_cap", "final_soft_cap", "window", "embedding_scale",
                  "attention_scale", "post_norms", "tied_head"),
    ),
    GoldenSpec(
        name="gemma2_odd",
        family="gemma2",
        config={"num_hidden_layers": 3, "intermediate_size": 64, "num_attention_heads": 8,
                "num_key_value_heads": 2, "head_dim": 8, "query_pre_attn_scalar": 24,
                "sliding_window": 24, "attn_logit_softcapping": 2.0,
                "final_logit_softcapping": 10.0, "rope_parameters": plain_rope(50_000.0),
                "tie_word_embeddings": True},
        features=("attention_soft_cap", "final_soft_cap", "window", "embedding_scale",
                  "attention_scale", "post_norms", "tied_head"),
    ),
)

GEMMA3_FEATURES = ("window", "qk_norm", "embedding_scale", "local_rope_theta", "attention_scale",
                   "post_norms", "tied_head")

GEMMA3 = (
    GoldenSpec(
        name="gemma3_text_pattern2",
        family="gemma3_text",
        config={"intermediate_size": 48, "num_key_value_heads": 2, "head_dim": 16,
                "query_pre_attn_scalar": 8, "sliding_window": 16, "final_logit_softcapping": 5.0,
                **gemma3_layers(2, 4, plain_rope(1_000_000.0))},
        features=(*GEMMA3_FEATURES, "final_soft_cap"),
        v4={"sliding_window_pattern": 2},
    ),
    GoldenSpec(
        name="gemma3_text_pattern3_scaled",
        family="gemma3_text",
        config={"intermediate_size": 64, "num_key_value_heads": 1, "head_dim": 12,
                "query_pre_attn_scalar": 20, "sliding_window": 16,
                **gemma3_layers(3, 3, linear_rope(1_000_000.0, 8.0))},
        features=(*GEMMA3_FEATURES, "rope_scaling"),
        v4={"sliding_window_pattern": 3},
    ),
    GoldenSpec(
        name="gemma3_language_model_prefix",
        family="gemma3",
        config={"intermediate_size": 48, "num_key_value_heads": 2, "head_dim": 16,
                "query_pre_attn_scalar": 8, "sliding_window": 16,
                **gemma3_layers(3, 3, linear_rope(1_000_000.0, 8.0))},
        features=(*GEMMA3_FEATURES, "rope_scaling"),
        v4={"sliding_window_pattern": 3},
        generation={"eos_token_id": [EOS_ID, SECOND_EOS_ID]},
    ),
    GoldenSpec(
        name="gemma3_model_prefix",
        family="gemma3",
        config={"intermediate_size": 48, "num_key_value_heads": 4, "head_dim": 8,
                "query_pre_attn_scalar": 16, "sliding_window": 24,
                **gemma3_layers(2, 3, plain_rope(1_000_000.0))},
        features=GEMMA3_FEATURES,
        v4={"sliding_window_pattern": 2},
        weight_renames=(("language_model.model.", "model.language_model."),
                        ("vision_tower.", "model.vision_tower."),
                        ("multi_modal_projector.", "model.multi_modal_projector.")),
    ),
)

MISTRAL = (
    GoldenSpec(
        name="mistral_window",
        family="mistral",
        config={"num_hidden_layers": 3, "intermediate_size": 64, "num_key_value_heads": 2,
                "head_dim": 8, "sliding_window": 16, "rope_parameters": plain_rope(10_000.0)},
        features=("window",),
        variants=("v4", "no_head_dim"),
    ),
    GoldenSpec(
        name="mistral_full_tied",
        family="mistral",
        config={"num_hidden_layers": 3, "intermediate_size": 48, "num_key_value_heads": 1,
                "head_dim": 16, "sliding_window": None, "tie_word_embeddings": True,
                "rope_parameters": plain_rope(1_000_000.0)},
        features=("tied_head",),
        variants=("v4", "no_head_dim"),
    ),
)

SMOLVLM = (
    GoldenSpec(
        name="smolvlm_text_model_prefix",
        family="smolvlm",
        config={"model_type": "llama", "num_hidden_layers": 2, "intermediate_size": 48,
                "num_key_value_heads": 2, "head_dim": 16, "rope_parameters": plain_rope(10_000.0)},
        features=(),
        variants=(),
    ),
)

SMOLLM3 = (
    GoldenSpec(
        name="smollm3_tied",
        family="smollm3",
        weight_std=0.2,
        config={"num_hidden_layers": 4, "intermediate_size": 48, "num_key_value_heads": 2,
                "head_dim": 12, "no_rope_layer_interval": 2, "rope_parameters": plain_rope(5_000.0),
                "tie_word_embeddings": True},
        features=("no_rope", "tied_head"),
        variants=("v4", "no_head_dim"),
    ),
    GoldenSpec(
        name="smollm3_window",
        family="smollm3",
        weight_std=0.2,
        config={"num_hidden_layers": 3, "intermediate_size": 40, "num_key_value_heads": 4,
                "no_rope_layers": [1, 0, 1], "use_sliding_window": True, "sliding_window": 16,
                "attention_bias": True, "mlp_bias": True, "rope_parameters": llama3_rope(10_000.0),
                "tie_word_embeddings": False},
        features=("no_rope", "window", "attention_bias", "rope_scaling"),
    ),
)

OLMO = (
    GoldenSpec(
        name="olmo2_full",
        family="olmo2",
        weight_std=0.2,
        config={"num_hidden_layers": 3, "intermediate_size": 48, "num_key_value_heads": 2,
                "rope_parameters": plain_rope(10_000.0), "tie_word_embeddings": False},
        features=("qk_norm", "post_norms"),
    ),
    GoldenSpec(
        name="olmo2_bias",
        family="olmo2",
        weight_std=0.2,
        config={"num_hidden_layers": 2, "intermediate_size": 40, "num_key_value_heads": 1,
                "head_dim": 12, "attention_bias": True, "rope_parameters": linear_rope(10_000.0, 4.0),
                "tie_word_embeddings": False},
        features=("qk_norm", "post_norms", "attention_bias", "rope_scaling"),
        variants=("v4", "no_head_dim"),
    ),
    GoldenSpec(
        name="olmo3_window",
        family="olmo3",
        weight_std=0.2,
        config={"num_hidden_layers": 4, "intermediate_size": 48, "num_key_value_heads": 2,
                "sliding_window": 16, "tie_word_embeddings": False,
                "rope_parameters": {"full_attention": yarn_rope(500_000.0),
                                    "sliding_attention": plain_rope(10_000.0)}},
        features=("qk_norm", "post_norms", "window", "local_rope_theta", "rope_scaling"),
        variants=(),
    ),
    GoldenSpec(
        name="olmo3_layer_types",
        family="olmo3",
        weight_std=0.2,
        config={"num_hidden_layers": 3, "intermediate_size": 40, "num_key_value_heads": 4,
                "sliding_window": 24, "layer_types": ["full_attention", "sliding_attention", "full_attention"],
                "rope_parameters": {"full_attention": plain_rope(500_000.0),
                                    "sliding_attention": plain_rope(500_000.0)}},
        features=("qk_norm", "post_norms", "window"),
        variants=(),
    ),
)

GRANITE = (
    GoldenSpec(
        name="granite_multipliers",
        family="granite",
        weight_std=0.2,
        config={"num_hidden_layers": 3, "intermediate_size": 48, "num_key_value_heads": 2,
                "embedding_multiplier": 1.5, "attention_multiplier": 0.125, "residual_multiplier": 2.5,
                "logits_scaling": 3.0, "rope_parameters": plain_rope(10_000.0), "tie_word_embeddings": True},
        features=("embedding_scale", "attention_scale", "residual_scale", "logits_scale", "tied_head"),
    ),
    GoldenSpec(
        name="granite_bias",
        family="granite",
        weight_std=0.2,
        config={"num_hidden_layers": 2, "intermediate_size": 40, "num_key_value_heads": 1, "head_dim": 12,
                "embedding_multiplier": 3.0, "attention_multiplier": 0.5, "residual_multiplier": 1.5,
                "logits_scaling": 0.5, "attention_bias": True, "mlp_bias": True,
                "rope_parameters": plain_rope(50_000.0), "tie_word_embeddings": False},
        features=("embedding_scale", "attention_scale", "residual_scale", "logits_scale", "attention_bias"),
        variants=("v4", "no_head_dim"),
    ),
)

PHI3 = (
    GoldenSpec(
        name="phi3_window",
        family="phi3",
        weight_std=0.2,
        config={"num_hidden_layers": 3, "intermediate_size": 48, "num_key_value_heads": 4,
                "sliding_window": 16, "rope_parameters": plain_rope(10_000.0)},
        features=("window",),
    ),
    GoldenSpec(
        name="phi3_partial_tied",
        family="phi3",
        weight_std=0.2,
        config={"num_hidden_layers": 3, "intermediate_size": 40, "num_key_value_heads": 2,
                "rope_parameters": {**plain_rope(10_000.0), "partial_rotary_factor": 0.75},
                "tie_word_embeddings": True},
        features=("partial_rotary", "tied_head"),
        variants=(),
    ),
)

LONG_AND_DYNAMIC = (
    GoldenSpec(
        name="phi3_longrope_long",
        family="phi3",
        weight_std=0.2,
        config={"num_hidden_layers": 3, "intermediate_size": 40, "num_key_value_heads": 2,
                "original_max_position_embeddings": 32, "rope_parameters": longrope(10_000.0)},
        features=("rope_scaling", "long_factors"),
        variants=("v4",),
    ),
    GoldenSpec(
        name="phi3_longrope_short",
        family="phi3",
        weight_std=0.2,
        config={"num_hidden_layers": 2, "intermediate_size": 40, "num_key_value_heads": 4,
                "original_max_position_embeddings": 128, "rope_parameters": longrope(10_000.0)},
        features=("rope_scaling",),
        variants=("v4",),
    ),
    GoldenSpec(
        name="llama_dynamic",
        family="llama",
        weight_std=0.2,
        config={"num_hidden_layers": 3, "intermediate_size": 40, "num_key_value_heads": 2, "head_dim": 12,
                "max_position_embeddings": 24,
                "rope_parameters": {"rope_type": "dynamic", "factor": 8.0, "rope_theta": 100.0}},
        features=("rope_scaling",),
        num_greedy=0,
    ),
)

GLM4 = (
    GoldenSpec(
        name="glm4_bias",
        family="glm4",
        weight_std=0.2,
        config={"num_hidden_layers": 3, "intermediate_size": 48, "num_key_value_heads": 2, "head_dim": 16,
                "attention_bias": True, "rope_parameters": {**plain_rope(10_000.0), "partial_rotary_factor": 0.5}},
        features=("attention_bias", "partial_rotary", "rope_pairs", "norms_behind"),
        variants=(),
    ),
    GoldenSpec(
        name="glm4_whole_tied",
        family="glm4",
        weight_std=0.2,
        config={"num_hidden_layers": 2, "intermediate_size": 40, "num_key_value_heads": 1, "head_dim": 12,
                "attention_bias": False, "tie_word_embeddings": True,
                "rope_parameters": {**plain_rope(10_000.0), "partial_rotary_factor": 1.0}},
        features=("rope_pairs", "norms_behind", "tied_head"),
        variants=(),
    ),
)

EXAONE4 = (
    GoldenSpec(
        name="exaone4_window",
        family="exaone4",
        weight_std=0.2,
        config={"num_hidden_layers": 4, "intermediate_size": 48, "num_key_value_heads": 2,
                "sliding_window": 16, "sliding_window_pattern": 2, "rope_parameters": llama3_rope(10_000.0)},
        features=("window", "no_rope", "qk_norm", "post_norms", "rope_scaling"),
    ),
    GoldenSpec(
        name="exaone4_full_tied",
        family="exaone4",
        weight_std=0.2,
        config={"num_hidden_layers": 3, "intermediate_size": 40, "num_key_value_heads": 1, "head_dim": 12,
                "sliding_window": None, "layer_types": ["full_attention"] * 3, "tie_word_embeddings": True,
                "rope_parameters": plain_rope(10_000.0)},
        features=("qk_norm", "post_norms", "tied_head"),
        variants=("no_head_dim",),
    ),
)

COHERE2 = (
    GoldenSpec(
        name="cohere2_tied",
        family="cohere2",
        weight_std=0.2,
        config={"num_hidden_layers": 4, "intermediate_size": 48, "num_key_value_heads": 2,
                "sliding_window": 16, "logit_scale": 0.3, "rope_parameters": plain_rope(10_000.0),
                "layer_types": ["sliding_attention", "full_attention"] * 2},
        features=("window", "no_rope", "rope_pairs", "parallel_block", "logits_scale", "layer_norm", "tied_head"),
        variants=(),
    ),
    GoldenSpec(
        name="cohere2_bias",
        family="cohere2",
        weight_std=0.2,
        config={"num_hidden_layers": 3, "intermediate_size": 40, "num_attention_heads": 2,
                "num_key_value_heads": 1, "sliding_window": 24, "logit_scale": 2.0, "attention_bias": True,
                "rope_parameters": plain_rope(500.0), "tie_word_embeddings": False},
        features=("window", "rope_pairs", "parallel_block", "logits_scale", "layer_norm", "attention_bias"),
        variants=("v4",),
        v4={"sliding_window_pattern": 4},
    ),
)

STABLELM = (
    GoldenSpec(
        name="stablelm_bias",
        family="stablelm",
        weight_std=0.2,
        config={"num_hidden_layers": 3, "intermediate_size": 48, "num_key_value_heads": 4,
                "use_qkv_bias": True, "tie_word_embeddings": False,
                "rope_parameters": {**plain_rope(10_000.0), "partial_rotary_factor": 0.25}},
        features=("attention_bias", "partial_rotary", "layer_norm", "norm_bias"),
        variants=(),
    ),
    GoldenSpec(
        name="stablelm_parallel",
        family="stablelm",
        weight_std=0.2,
        config={"num_hidden_layers": 3, "intermediate_size": 40, "num_key_value_heads": 2,
                "qk_layernorm": True, "use_parallel_residual": True, "tie_word_embeddings": True,
                "rope_parameters": {**plain_rope(10_000.0), "partial_rotary_factor": 0.5}},
        features=("qk_norm", "parallel_block", "partial_rotary", "layer_norm", "norm_bias", "tied_head"),
        variants=(),
    ),
)

STARCODER2 = (
    GoldenSpec(
        name="starcoder2_window_tied",
        family="starcoder2",
        weight_std=0.2,
        config={"num_hidden_layers": 3, "intermediate_size": 64, "num_key_value_heads": 2,
                "sliding_window": 16, "rope_parameters": plain_rope(10_000.0)},
        features=("window", "attention_bias", "mlp_bias", "layer_norm", "norm_bias", "tied_head"),
    ),
    GoldenSpec(
        name="starcoder2_no_bias",
        family="starcoder2",
        weight_std=0.2,
        config={"num_hidden_layers": 2, "intermediate_size": 56, "num_key_value_heads": 1, "head_dim": 12,
                "use_bias": False, "hidden_act": "gelu", "rope_parameters": linear_rope(10_000.0, 2.0),
                "tie_word_embeddings": False},
        features=("layer_norm", "norm_bias", "rope_scaling"),
        variants=("v4", "no_head_dim"),
    ),
)

MINISTRAL3 = (
    GoldenSpec(
        name="ministral3_growth",
        family="ministral3",
        weight_std=0.2,
        config={"num_hidden_layers": 3, "intermediate_size": 48, "num_key_value_heads": 2, "head_dim": 12,
                "rope_parameters": {**yarn_rope(1_000_000.0), "mscale": 1.0, "mscale_all_dim": 1.0,
                                    "llama_4_scaling_beta": 0.3}},
        features=("query_growth", "rope_scaling"),
        variants=("v4",),
    ),
    GoldenSpec(
        name="ministral3_window_tied",
        family="ministral3",
        weight_std=0.2,
        config={"num_hidden_layers": 2, "intermediate_size": 40, "num_key_value_heads": 1, "head_dim": 16,
                "sliding_window": 16, "tie_word_embeddings": True,
                "rope_parameters": {**yarn_rope(10_000.0), "llama_4_scaling_beta": 0.5}},
        features=("query_growth", "rope_scaling", "window", "tied_head"),
        variants=("no_head_dim",),
    ),
    GoldenSpec(
        name="mistral3_ministral3",
        family="mistral3",
        weight_std=0.2,
        config={"model_type": "ministral3", "num_hidden_layers": 2, "intermediate_size": 40,
                "num_key_value_heads": 2, "head_dim": 12, "tie_word_embeddings": False,
                "rope_parameters": {**yarn_rope(10_000.0), "llama_4_scaling_beta": 0.5}},
        features=("query_growth", "rope_scaling"),
        variants=(),
    ),
    GoldenSpec(
        name="mistral3_mistral",
        family="mistral3",
        weight_std=0.2,
        config={"model_type": "mistral", "num_hidden_layers": 2, "intermediate_size": 40,
                "num_key_value_heads": 2, "head_dim": 12, "sliding_window": None, "tie_word_embeddings": False,
                "rope_parameters": plain_rope(10_000.0)},
        features=(),
        variants=(),
    ),
)

DENSE_SPECS: tuple[GoldenSpec, ...] = (*LLAMA, *QWEN, *GEMMA2, *GEMMA3, *MISTRAL, *SMOLVLM, *SMOLLM3, *OLMO, *GRANITE,
                                       *PHI3, *LONG_AND_DYNAMIC, *GLM4, *EXAONE4, *COHERE2, *STABLELM, *STARCODER2,
                                       *MINISTRAL3)
