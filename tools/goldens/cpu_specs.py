"""Tiny checkpoints of models that are trained nowhere; most are computed by the CPU alone."""

from __future__ import annotations

from typing import Any

from model_specs import GoldenSpec, linear_rope, llama3_rope, plain_rope



def mscale_rope(original: int) -> dict[str, Any]:
    """Phi-MoE's, of heads of 8 elements."""
    return {"rope_type": "longrope", "rope_theta": 10_000.0, "short_factor": [1.0, 1.5, 2.0, 2.5],
            "long_factor": [2.0, 3.0, 5.0, 8.0], "short_mscale": 1.1, "long_mscale": 1.4,
            "original_max_position_embeddings": original}


SMALL: dict[str, Any] = {"num_hidden_layers": 2, "intermediate_size": 48, "num_key_value_heads": 2}

CPU_SPECS = (
    GoldenSpec(
        name="apertus_bias",
        family="apertus",
        config={**SMALL, "head_dim": 8, "attention_bias": True, "rope_parameters": llama3_rope(10_000.0)},
        features=("attention_bias", "qk_norm", "rope_scaling"),
        variants=(),
    ),
    GoldenSpec(
        name="olmo_clip",
        family="olmo",
        config={**SMALL, "clip_qkv": 1.5, "rope_parameters": linear_rope(10_000.0, 2.0)},
        features=("clip", "rope_scaling"),
        variants=(),
    ),
    GoldenSpec(
        name="olmoe_clip",
        family="olmoe",
        config={**SMALL, "intermediate_size": 16, "num_experts": 4, "num_experts_per_tok": 2, "clip_qkv": 0.75,
                "rope_parameters": plain_rope(10_000.0)},
        features=("clip", "qk_norm"),
        variants=(),
    ),
    GoldenSpec(
        name="bloom_odd_heads",
        family="bloom",
        config={"num_hidden_layers": 2, "num_attention_heads": 6, "hidden_size": 24, "tie_word_embeddings": False},
        features=("alibi", "embedding_norm"),
        variants=(),
    ),
    GoldenSpec(
        name="falcon_alibi",
        family="falcon",
        weight_std=0.2,
        config={"num_hidden_layers": 2, "ffn_hidden_size": 40, "bias": True, "alibi": True, "multi_query": False,
                "parallel_attn": False, "tie_word_embeddings": False},
        features=("alibi",),
        variants=(),
    ),
    GoldenSpec(
        name="mpt_clip",
        family="mpt",
        weight_std=0.2,
        config={"num_hidden_layers": 2, "num_attention_heads": 6, "hidden_size": 24, "max_seq_len": 256,
                "attn_config": {"clip_qkv": 0.75, "alibi_bias_max": 16, "softmax_scale": 0.7}, "tie_word_embeddings": False},
        features=("clip", "alibi", "attention_scale"),
        variants=(),
    ),
    GoldenSpec(
        name="nanochat_backwards",
        family="nanochat",
        config={**SMALL, "rope_parameters": plain_rope(10_000.0)},
        features=("qk_norm", "final_soft_cap"),
        variants=(),
    ),
    GoldenSpec(
        name="phimoe_long",
        family="phimoe",
        config={**SMALL, "intermediate_size": 16, "num_local_experts": 4, "attention_bias": True, "lm_head_bias": True,
                "router_jitter_noise": 0.3, "rope_parameters": mscale_rope(16), "original_max_position_embeddings": 16},
        features=("expert_jitter", "long_factors", "long_scale"),
        variants=(),
    ),
    GoldenSpec(
        name="phimoe_short",
        family="phimoe",
        config={**SMALL, "intermediate_size": 16, "num_local_experts": 4, "sliding_window": 16,
                "rope_parameters": mscale_rope(128), "original_max_position_embeddings": 128},
        features=("expert_jitter", "window"),
        variants=(),
        stacked_experts=True,
    ),
    GoldenSpec(
        name="llama4_chunks",
        family="llama4_text",
        config={"num_hidden_layers": 4, "num_key_value_heads": 2, "head_dim": 8, "intermediate_size": 16,
                "intermediate_size_mlp": 24, "num_local_experts": 4, "interleave_moe_layer_step": 2,
                "attention_chunk_size": 24, "no_rope_layer_interval": 3, "floor_scale": 8, "attn_scale": 0.5,
                "rope_parameters": llama3_rope(10_000.0)},
        features=("chunks", "qk_norm", "query_growth", "shared_expert", "rope_scaling"),
        variants=(),
    ),
    GoldenSpec(
        name="llama4_two_experts",
        family="llama4_text",
        weight_std=0.22,
        config={"num_hidden_layers": 2, "num_key_value_heads": 2, "head_dim": 8, "intermediate_size": 16,
                "num_local_experts": 3, "num_experts_per_tok": 2, "attention_chunk_size": 70, "use_qk_norm": False,
                "attention_bias": True, "no_rope_layers": [1, 0], "rope_parameters": plain_rope(10_000.0)},
        features=("expert_choice", "attention_bias", "no_rope"),
        variants=(),
    ),
)
