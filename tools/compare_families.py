#!/usr/bin/env python3
"""Compares families with transformers on random tiny models: sizes, flags, ropes and dtypes at random.

    python tools/compare_families.py --out DIR [--families NAME ...] [--count 100] [--seed 0] [--respell]
    PACELINE_MODEL_GOLDENS=DIR build/release/tests/test_models --gtest_filter='*TokensAreTransformers*'

Writes folders as tests/goldens/models has them, with greedy tokens of models with states alone; the test compares logits
to 1e-4. Models whose logits depend on the rounding of weights by more than a fifth of that are drawn again. Needs the versions of
tools/goldens/requirements.txt.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
from pathlib import Path
from typing import Any

import torch
import transformers
from safetensors.torch import save_file

sys.path.insert(0, str(Path(__file__).resolve().parent / "goldens"))

from early_families import EARLY_EPS_KEYS, EARLY_FAMILIES, EARLY_FIXED_FIELDS, PLAIN_HEADS, early_fields  # noqa: E402
from feature_switches import CHOICE_BIASES, is_mixture  # noqa: E402
from class_fixes import attention_of  # noqa: E402
from make_model_goldens import (MIN_MARGIN, MODEL_CLASSES, Rejected, check_rounding, logits_of, randomise,  # noqa: E402
                                write_json)
from mixture_specs import gpt_oss_rope  # noqa: E402
from model_specs import GoldenSpec, linear_rope, llama3_rope, plain_rope, yarn_rope  # noqa: E402

Config = dict[str, Any]
PROMPT_LENGTH = 40
LONGEST_PROMPT, NUM_GREEDY = 100, 6  # of models with states
FAMILIES = ("llama", "apertus", "mistral", "qwen2", "qwen3", "gemma2", "gemma3_text", "phi3", "smollm3", "olmo2", "olmo3",
            "granite", "glm4", "exaone4", "cohere2", "stablelm", "starcoder2", "ministral3", "qwen2_moe", "qwen3_moe",
            "olmoe", "mixtral", "glm4_moe", "gpt_oss", "granitemoe", "granitemoeshared", "qwen3_5_text", "qwen3_5_moe_text",
            "qwen3_next", "olmo_hybrid", "lfm2", "lfm2_moe", "lfm3", "granitemoehybrid", "bamba", "falcon_h1", "nemotron_h",
            "mamba2", "mamba", "falcon_mamba", "jamba", "iquestcoder", "internlm3", "seed_oss", "arcee", "helium", "ernie4_5", "cwm", "ministral", "glm",
            "gemma", "mellum", "cohere", "solar_open", "dots1", "minimax_m2", "deepseek_v2", "deepseek_v3",
            "glm4_moe_lite", "youtu", "mistral4", "minicpm3", "gemma4_text", "gemma3n_text", "phimoe", "llama4_text", "nanochat", "granite_swa",
            "granitemoe_swa", "exaone_moe",
            "kimi_linear", *EARLY_FAMILIES)
LATENTS = ("deepseek_v2", "deepseek_v3", "glm4_moe_lite", "youtu", "mistral4", "minicpm3")
DELTA_NETS = ("qwen3_5_text", "qwen3_5_moe_text", "qwen3_next", "olmo_hybrid")
MAMBAS = ("granitemoehybrid", "bamba", "falcon_h1", "nemotron_h", "mamba2")
FIRST_MAMBAS = ("mamba", "falcon_mamba", "jamba")
HYBRIDS = (*DELTA_NETS, *MAMBAS, *FIRST_MAMBAS, "kimi_linear", "lfm2", "lfm2_moe", "lfm3")
# Their classes have no head_dim of attention's own.
HEAD_DIM_FROM_HIDDEN = ("phimoe", "nanochat", "exaone_moe", "cohere", "dots1", "cohere2", "stablelm", "qwen2_moe", "olmoe", "olmo_hybrid", "lfm2", "lfm2_moe", "granitemoehybrid",
                        "bamba", "falcon_h1", "mamba2", *FIRST_MAMBAS, *PLAIN_HEADS)
DEPENDS_ON_LAYERS = ("gemma3_text", "olmo3", "lfm3", "mellum")
EPS_KEYS = {"cohere": "layer_norm_eps", "cohere2": "layer_norm_eps", "stablelm": "layer_norm_eps", "starcoder2": "norm_epsilon", "lfm2": "norm_eps",
            "lfm2_moe": "norm_eps", "lfm3": "norm_eps", "nemotron_h": "layer_norm_epsilon", "mamba2": "layer_norm_epsilon",
            "mamba": "layer_norm_epsilon", "falcon_mamba": "layer_norm_epsilon", **EARLY_EPS_KEYS}
DTYPES = ("float32", "float32", "bfloat16", "float16")


def any_of(draw: random.Random, *values: Any) -> Any:
    return draw.choice(values)


def random_shape(draw: random.Random, family: str) -> Config:
    kv_heads = draw.randint(1, 3)
    heads = kv_heads * draw.randint(1, 3)
    head_dim = 2 * draw.randint(2, 10)
    inside = family in HEAD_DIM_FROM_HIDDEN or draw.random() < 0.3
    shape: Config = {
        "vocab_size": draw.randint(8, 90),
        "hidden_size": heads * (head_dim if inside else draw.randint(1, 12)),
        "intermediate_size": draw.randint(3, 70),
        "num_hidden_layers": draw.randint(1, 5),
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "max_position_embeddings": 256,
        "tie_word_embeddings": draw.random() < 0.5,
        "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0,
    }
    if family not in HEAD_DIM_FROM_HIDDEN:
        shape["head_dim"] = head_dim
    shape[EPS_KEYS.get(family, "rms_norm_eps")] = any_of(draw, 1e-6, 1e-5, 1e-3)
    return shape


def random_rope(draw: random.Random, family: str) -> Config:
    theta = any_of(draw, 100.0, 10_000.0, 1e6)
    kinds = [plain_rope(theta), linear_rope(theta, 3.0), llama3_rope(theta), yarn_rope(theta)]
    if family == "mistral4":  # the others rotate another part of a head than its files have
        kinds = kinds[-1:]
    if family in ("bamba", "mamba2", *FIRST_MAMBAS):  # half a head rotates, which may be odd, or nothing
        return plain_rope(theta)
    if family not in (*DEPENDS_ON_LAYERS, "ministral3", "mistral4"):
        kinds.append({"rope_type": "dynamic", "factor": draw.uniform(1, 5), "rope_theta": theta})
    rope = plain_rope(theta) if family == "phi3" else draw.choice(kinds)
    return dict(rope)


def random_longrope(draw: random.Random, theta: float, rotated: int) -> Config:
    def factors() -> list[float]:
        return [draw.uniform(1, 8) for _ in range(rotated // 2)]

    rope: Config = {"rope_type": "longrope", "rope_theta": theta, "short_factor": factors(), "long_factor": factors()}
    return rope | any_of(draw, {}, {"factor": 3.0}, {"attention_factor": 1.3})


def random_share(draw: random.Random, head_dim: int) -> float:
    return 2 * draw.randint(1, head_dim // 2) / head_dim


def layer_types(draw: random.Random, count: int) -> list[str]:
    return [any_of(draw, "full_attention", "sliding_attention") for _ in range(count)]


def random_mambas(draw: random.Random, family: str, shape: Config) -> Config:
    """The layers of Mamba 2, and their sizes."""
    flip = lambda: draw.random() < 0.5  # noqa: E731
    expand, groups = draw.randint(1, 3), draw.randint(1, 4)
    heads, head_dim = groups * draw.randint(1, 5), draw.randint(1, 20)
    if family not in ("falcon_h1", "nemotron_h"):  # heads * head_dim is expand * hidden_size
        inner = expand * shape["hidden_size"]
        heads = draw.choice([n for n in range(1, 25) if inner % n == 0 and inner > n])
        groups = draw.choice([n for n in range(1, heads + 1) if heads % n == 0])
        head_dim = inner // heads
    state, taps, conv_bias, bias = draw.randint(1, 40), draw.randint(2, 5), flip(), flip()
    limit = any_of(draw, {}, {"time_step_limit": [draw.uniform(0, 0.5), draw.uniform(0.5, 3)]})
    if family == "mamba2":
        return limit | {"num_heads": heads, "head_dim": head_dim, "n_groups": groups, "state_size": state, "expand": expand,
                        "conv_kernel": taps, "use_conv_bias": conv_bias, "use_bias": bias}
    if family == "nemotron_h":
        kinds = [any_of(draw, "linear_attention", "full_attention", "mlp", "moe") for _ in range(draw.randint(1, 6))]
        return {"layers_block_type": [*kinds, "full_attention"], "mamba_num_heads": heads, "mamba_head_dim": head_dim,
                "n_groups": groups, "ssm_state_size": state, "conv_kernel": taps, "use_conv_bias": conv_bias,
                "use_bias": bias, "time_step_min": any_of(draw, 0.001, 0.5)}
    fields: Config = limit | {"mamba_n_heads": heads, "mamba_d_head": any_of(draw, "auto", head_dim), "mamba_n_groups": groups,
                              "mamba_d_state": state, "mamba_d_conv": taps, "mamba_conv_bias": conv_bias,
                              "mamba_proj_bias": bias, "mamba_expand": expand, "attention_bias": flip()}
    layers = shape["num_hidden_layers"]
    if family == "granitemoehybrid":
        kinds = [any_of(draw, "linear_attention", "full_attention") for _ in range(layers)]
        return fields | {"layer_types": kinds, "position_embedding_type": any_of(draw, None, "rope")}
    fields["mlp_bias"] = flip()
    if family == "bamba":
        return fields | {"attn_layer_indices": sorted(draw.sample(range(layers), draw.randint(1, layers)))}
    ones = {"attention_in_multiplier": 1.0} if fields["attention_bias"] else {}
    ones |= {"ssm_in_multiplier": 1.0} if bias else {}
    names = ("lm_head_multiplier", "embedding_multiplier", "key_multiplier", "attention_in_multiplier",
             "attention_out_multiplier", "ssm_in_multiplier", "ssm_out_multiplier")
    return fields | {"mamba_d_ssm": heads * head_dim, "mamba_rms_norm": flip(), "mamba_norm_before_gate": flip(),
                     "projectors_bias": flip(), **{name: draw.uniform(0.3, 2) for name in names}, **ones,
                     "ssm_multipliers": [draw.uniform(0.3, 2) for _ in range(5)],
                     "mlp_multipliers": [draw.uniform(0.3, 2) for _ in range(2)]}


def random_first_mambas(draw: random.Random, family: str, shape: Config) -> Config:
    """The layers of Mamba 1, and their sizes."""
    flip = lambda: draw.random() < 0.5  # noqa: E731
    sizes = [draw.randint(1, 3), draw.randint(1, 40), draw.randint(2, 5), any_of(draw, "auto", draw.randint(1, 20))]
    if family != "jamba":
        shape.pop("intermediate_size")  # expand says it
        fields: Config = dict(zip(("expand", "state_size", "conv_kernel", "time_step_rank"), sizes))
        if family == "falcon_mamba":
            fields["mixer_rms_eps"] = any_of(draw, 1e-6, 1e-3)
        return fields | {"use_conv_bias": flip(), "use_bias": flip()}
    attention, experts = draw.randint(1, 4), draw.randint(1, 3)
    return dict(zip(("mamba_expand", "mamba_d_state", "mamba_d_conv", "mamba_dt_rank"), sizes)) | {
        "mamba_conv_bias": flip(), "mamba_proj_bias": flip(), "hidden_act": any_of(draw, "silu", "silu", "gelu"),
        "attn_layer_period": attention, "attn_layer_offset": draw.randrange(attention),
        "expert_layer_period": experts, "expert_layer_offset": draw.randrange(experts)}


def random_states(draw: random.Random, family: str, shape: Config) -> Config:
    """The layers that aren't attention, and their sizes."""
    if family in MAMBAS:
        return random_mambas(draw, family, shape)
    if family in FIRST_MAMBAS:
        return random_first_mambas(draw, family, shape)
    state = "linear_attention" if family in (*DELTA_NETS, "kimi_linear") else "conv"
    shape["num_hidden_layers"] = max(2, shape["num_hidden_layers"])
    kinds = [any_of(draw, state, state, "full_attention") for _ in range(shape["num_hidden_layers"])]
    kinds[0], kinds[-1] = draw.sample([state, "full_attention"], 2)
    if family == "lfm3":
        kinds = [any_of(draw, kind, "sliding_attention") for kind in kinds]
    if family == "kimi_linear":
        return {"layer_types": kinds, "linear_conv_kernel_dim": draw.randint(2, 5), "linear_num_heads": draw.randint(1, 6),
                "linear_head_dim": draw.randint(2, 40), **random_latents(draw, family, shape)}
    if family not in DELTA_NETS:
        return {"layer_types": kinds, "conv_L_cache": draw.randint(2, 6), "conv_bias": draw.random() < 0.5}
    key_heads = draw.randint(1, 4)
    fields: Config = {"layer_types": kinds, "linear_conv_kernel_dim": draw.randint(2, 5),
                      "linear_num_key_heads": key_heads, "linear_num_value_heads": key_heads * draw.randint(1, 4),
                      "linear_key_head_dim": draw.randint(1, 40), "linear_value_head_dim": draw.randint(1, 40)}
    if family == "olmo_hybrid":
        fields["linear_allow_neg_eigval"] = draw.random() < 0.6
        if draw.random() < 0.3:
            del fields["linear_value_head_dim"]
        if draw.random() < 0.3 and 3 * shape["hidden_size"] >= 4 * key_heads:
            del fields["linear_key_head_dim"]
    return fields


def random_experts(draw: random.Random, family: str, layers: int) -> Config:
    """The fields of a mixture; none of a dense family."""
    flip = lambda: draw.random() < 0.5  # noqa: E731
    count = draw.randint(2, 9)
    fields: Config = {"num_experts_per_tok": draw.randint(1, min(4, count))}
    if family == "qwen3_5_moe_text":
        return fields | {"num_experts": count, "moe_intermediate_size": draw.randint(3, 40),
                         "shared_expert_intermediate_size": draw.randint(3, 40)}
    if family == "lfm2_moe":
        return fields | {"num_experts": count, "moe_intermediate_size": draw.randint(3, 40), "norm_topk_prob": flip(),
                         "use_expert_bias": flip(), "routed_scaling_factor": draw.uniform(0.5, 3),
                         "num_dense_layers": draw.randint(0, layers)}
    if family in ("qwen2_moe", "qwen3_moe", "qwen3_next"):
        fields |= {"num_experts": count, "moe_intermediate_size": draw.randint(3, 40), "norm_topk_prob": flip(),
                   "decoder_sparse_step": draw.randint(1, 2),
                   "mlp_only_layers": sorted(draw.sample(range(layers), draw.randint(0, layers - 1)))}
        if family in ("qwen2_moe", "qwen3_next"):
            fields["shared_expert_intermediate_size"] = draw.randint(3, 40)
        if family == "qwen2_moe":
            fields["qkv_bias"] = flip()
        return fields
    if family == "jamba":
        return {"num_experts": 1, "num_experts_per_tok": 1} if flip() else fields | {"num_experts": count}
    if family in ("olmoe", "mellum"):
        fields["moe_intermediate_size"] = draw.randint(3, 40)
        clip = {"clip_qkv": any_of(draw, None, draw.uniform(0.1, 2))} if family == "olmoe" else {}
        return fields | clip | {"num_experts": count, "norm_topk_prob": flip()}
    if family == "granitemoehybrid":
        return fields | {"num_local_experts": any_of(draw, 0, count), "shared_intermediate_size": draw.randint(3, 40)}
    if family == "phimoe":
        return {"num_local_experts": max(3, count), "num_experts_per_tok": 2, "router_jitter_noise": draw.uniform(0.01, 0.4)}
    if family == "llama4_text":
        return fields | {"num_local_experts": count, "intermediate_size_mlp": draw.randint(3, 60),
                         "moe_layers": sorted(draw.sample(range(layers), draw.randint(0, layers)))}
    if family in ("mixtral", "gpt_oss", "granitemoe"):
        return fields | {"num_local_experts": count}
    if family in ("granitemoeshared", "granitemoe_swa"):
        return fields | {"num_local_experts": count, "shared_intermediate_size": any_of(draw, 0, draw.randint(3, 40))}
    if family == "minimax_m2":
        return fields | {"num_local_experts": count}
    if family in ("glm4_moe", "nemotron_h", "solar_open", "dots1", "deepseek_v2", "deepseek_v3", "glm4_moe_lite", "mistral4", "kimi_linear", "exaone_moe"):
        groups, in_group = draw.randint(1, 4), draw.randint(2, 4)
        chosen = draw.randint(1, groups)
        fields = {"n_routed_experts": groups * in_group, "n_group": groups, "topk_group": chosen,
                  "num_experts_per_tok": draw.randint(1, chosen * in_group), "moe_intermediate_size": draw.randint(3, 40),
                  "norm_topk_prob": flip(), "routed_scaling_factor": draw.uniform(0.5, 3)}
        if family == "deepseek_v2":
            grouped = flip()
            chosen = chosen if grouped else groups
            return fields | {"n_shared_experts": draw.randint(1, 2), "first_k_dense_replace": draw.randint(0, layers),
                             "topk_method": "group_limited_greedy" if grouped else "greedy", "norm_topk_prob": False}
        if family in ("deepseek_v3", "mistral4"):
            fields |= {"n_shared_experts": draw.randint(1, 2), "first_k_dense_replace": draw.randint(0, layers)}
            return fields | ({"num_mtp_layers": 0} if family == "deepseek_v3" else {})
        if family == "exaone_moe":
            fields["num_experts"] = fields.pop("n_routed_experts")
            return fields | {"num_shared_experts": draw.randint(1, 2),
                             "mlp_layer_types": [any_of(draw, "dense", "sparse") for _ in range(layers)]}
        if family == "kimi_linear":
            fields["num_local_experts"] = fields.pop("n_routed_experts")
        if family in ("glm4_moe_lite", "kimi_linear"):
            return fields | {"n_shared_experts": draw.randint(1, 2),
                             "mlp_layer_types": [any_of(draw, "dense", "sparse") for _ in range(layers)]}
        if family == "solar_open":
            return fields | {"n_shared_experts": draw.randint(1, 2)}
        if family == "dots1":
            return fields | {"n_shared_experts": draw.randint(1, 2), "first_k_dense_replace": draw.randint(0, layers)}
        if family == "nemotron_h":
            return fields | {"moe_shared_expert_intermediate_size": draw.randint(3, 40),
                             "moe_latent_size": any_of(draw, None, draw.randint(3, 40))}
        return fields | {"n_shared_experts": draw.randint(1, 2), "use_qk_norm": flip(),
                         "first_k_dense_replace": draw.randint(0, layers), "num_nextn_predict_layers": 0}
    return {}


def random_latents(draw: random.Random, family: str, shape: Config) -> Config:
    """The sizes of latent attention; heads of keys are those of queries."""
    del shape["head_dim"]
    if family == "youtu":  # transformers clears the padding token's embedding when it loads a model
        shape["pad_token_id"] = None
    shape["num_key_value_heads"] = shape["num_attention_heads"]
    rope, nope = 2 * draw.randint(1, 8), draw.randint(1, 20)
    rank = draw.randint(1, 50)
    if family == "deepseek_v2":  # transformers views elements as complex numbers, which begin at even ones
        nope, rank = 2 * nope, 2 * rank
    if family == "mistral4":
        nope = rope * any_of(draw, 1, 3)
    fields: Config = {"q_lora_rank": any_of(draw, None, draw.randint(1, 40)), "kv_lora_rank": rank,
                      "qk_nope_head_dim": nope, "qk_rope_head_dim": rope, "v_head_dim": draw.randint(1, 30),
                      "attention_bias": draw.random() < 0.5}
    if family == "minicpm3":
        fields |= {"scale_emb": draw.uniform(0.5, 3), "scale_depth": any_of(draw, None, draw.uniform(0.5, 2)),
                   "dim_model_base": any_of(draw, None, draw.randint(3, 40)), "mlp_bias": draw.random() < 0.5}
    elif family not in ("deepseek_v2", "kimi_linear"):
        fields["rope_interleave"] = draw.random() < 0.7
    return fields


def random_later_gemma(draw: random.Random, family: str, shape: Config) -> Config:
    """Gemma 3n's and 4's layers that share keys and values, and what they have of their own."""
    flip = lambda: draw.random() < 0.5  # noqa: E731
    kinds = [*draw.sample(["full_attention", "sliding_attention"], 2), *layer_types(draw, draw.randint(0, 2))]
    if family == "gemma4_text":
        kinds.append("full_attention")
    shared = draw.randint(0, len(kinds) - 2)
    shape |= {"num_hidden_layers": len(kinds), "tie_word_embeddings": flip()}
    fields: Config = {
        "layer_types": kinds, "num_kv_shared_layers": shared, "sliding_window": draw.randint(3, 30),
        "attention_bias": flip(), "final_logit_softcapping": draw.uniform(3, 30),
        "vocab_size_per_layer_input": shape["vocab_size"] + draw.randint(0, 9),
        "hidden_size_per_layer_input": draw.randint(1, 9),
        "rope_parameters": {"full_attention": plain_rope(any_of(draw, 100.0, 10_000.0)),
                            "sliding_attention": plain_rope(any_of(draw, 50.0, 10_000.0))}}
    if family == "gemma3n_text":
        streams = draw.randint(1, 5)
        heads = shape["num_attention_heads"]  # hidden_size must be a multiple of it
        shape["hidden_size"] = heads * max(1, shape["hidden_size"] // heads)
        shape["intermediate_size"] = [draw.randint(3, 70) for _ in kinds]
        if flip():
            fields["vocab_size_per_layer_input"] = draw.randint(1, shape["vocab_size"])
        return fields | {"altup_num_inputs": streams, "altup_active_idx": draw.randrange(streams),
                         "altup_correct_scale": flip(), "laurel_rank": draw.randint(1, 20),
                         "activation_sparsity_pattern": [any_of(draw, 0.0, draw.uniform(0.01, 0.99)) for _ in kinds]}
    heads = shape["num_attention_heads"]
    fields |= {"global_head_dim": 2 * draw.randint(2, 14), "attention_k_eq_v": flip(), "use_double_wide_mlp": flip(),
               "num_global_key_value_heads": draw.choice([n for n in range(1, heads + 1) if heads % n == 0])}
    if flip():
        fields["final_logit_softcapping"] = None
    if shared == 0 and flip():  # transformers can't run shared layers without inputs
        fields["hidden_size_per_layer_input"] = 0
    if flip():
        fields["rope_parameters"]["full_attention"] |= {
            "rope_type": "proportional", "partial_rotary_factor": draw.random(), "factor": any_of(draw, 1.0, 2.5)}
    if flip():
        count = draw.randint(2, 9)
        fields |= {"enable_moe_block": True, "num_experts": count, "top_k_experts": draw.randint(1, min(4, count)),
                   "moe_intermediate_size": draw.randint(3, 40)}
    return fields


def random_fields(draw: random.Random, family: str, shape: Config) -> Config:
    states = random_states(draw, family, shape) if family in HYBRIDS else {}
    if family in LATENTS:
        states = random_latents(draw, family, shape)
    layers = shape["num_hidden_layers"]
    head_dim = shape.get("head_dim", shape["hidden_size"] // shape["num_attention_heads"])
    head_dim = states.get("qk_rope_head_dim", head_dim)
    rope = random_rope(draw, family)
    if family in EARLY_FAMILIES:
        return early_fields(draw, family, shape, plain_rope(any_of(draw, 100.0, 10_000.0)))
    if family == "gpt_oss":
        rope = gpt_oss_rope(any_of(draw, 1000.0, 150_000.0), draw.uniform(2, 10), any_of(draw, 16, 32, 64))
    fields: Config = {"rope_parameters": rope, **states, **random_experts(draw, family, layers)}
    flip = lambda: draw.random() < 0.5  # noqa: E731
    window = draw.randint(3, 30)
    if family in ("llama", "granite", "smollm3", "iquestcoder", "seed_oss", "arcee", "helium"):
        fields |= {"attention_bias": flip(), "mlp_bias": flip()}
    if family == "internlm3" and flip():
        fields |= {"attention_bias": True, "mlp_bias": True}
    if family == "seed_oss":
        fields["attention_out_bias"] = flip()
    if family == "ernie4_5":
        fields["use_bias"] = flip()
    if family == "arcee":
        fields["hidden_act"] = any_of(draw, "relu2", "relu2", "silu")
    if family in ("cwm", "ministral"):
        fields |= {"sliding_window": window, "layer_types": layer_types(draw, layers)}
    if family == "mellum":
        fields["mlp_layer_types"] = [any_of(draw, "dense", "sparse") for _ in range(layers)]
    if family in ("qwen3", "glm", "gemma", "mellum", "gemma2", "gemma3_text", "olmo2", "olmo3", "glm4", "cohere2", "qwen3_moe", "olmoe",
                  "glm4_moe", "granitemoe", "granitemoeshared", "lfm3", "cohere", "solar_open", "dots1",
                  *DELTA_NETS):
        fields["attention_bias"] = flip()
    if family in ("mistral", "starcoder2", "ministral3", "phi3", "mixtral"):
        fields["sliding_window"] = any_of(draw, None, window)
    if family == "gpt_oss":
        fields |= {"sliding_window": window, "layer_types": layer_types(draw, layers)}
    if family == "qwen3_moe":
        fields |= {"use_sliding_window": flip(), "sliding_window": window}
    if family in ("qwen2", "qwen3", "qwen2_moe"):
        fields |= {"use_sliding_window": flip(), "sliding_window": window, "max_window_layers": draw.randint(0, 4)}
    if family in ("gemma2", "gemma3_text"):
        fields |= {"sliding_window": window, "query_pre_attn_scalar": draw.randint(1, 40),
                   "attn_logit_softcapping": any_of(draw, None, 3.0), "final_logit_softcapping": any_of(draw, None, 5.0)}
    if family in DEPENDS_ON_LAYERS:
        fields |= {"sliding_window": window, "rope_parameters": {
            "full_attention": rope, "sliding_attention": plain_rope(any_of(draw, 50.0, 10_000.0))}}
        fields.setdefault("layer_types", layer_types(draw, layers))
    if family == "lfm3":
        fields |= {"use_sandwich_norm": flip(), "use_attention_gate": flip()}
        if flip():
            fields["rope_parameters"][any_of(draw, "full_attention", "sliding_attention")] = {
                "rope_type": "proportional", "rope_theta": any_of(draw, 100.0, 10_000.0),
                "factor": any_of(draw, 1.0, 2.5), "partial_rotary_factor": draw.random()}
    if family == "smollm3":
        fields |= {"no_rope_layers": [draw.randint(0, 1) for _ in range(layers)], "use_sliding_window": flip(),
                   "sliding_window": any_of(draw, None, window)}
    if family.startswith("granite"):  # granitemoehybrid, too
        fields |= {"embedding_multiplier": draw.uniform(0.5, 3), "attention_multiplier": draw.uniform(0.05, 0.7),
                   "residual_multiplier": draw.uniform(0.3, 1.5), "logits_scaling": draw.uniform(0.5, 4)}
    if family in DELTA_NETS:
        fields["hidden_act"] = any_of(draw, "silu", "silu", "gelu")
    if family == "olmo_hybrid" and flip():
        rope = fields["rope_parameters"] = {"rope_type": "default", "rope_theta": None}
    if family == "lfm2":
        fields |= {"block_auto_adjust_ff_dim": flip(), "block_multiple_of": draw.randint(1, 20),
                   "block_ffn_dim_multiplier": any_of(draw, 1.0, draw.uniform(0.3, 2))}
    if family in ("phi3", "glm", "glm4", "glm4_moe", "stablelm", "qwen3_5_text", "qwen3_5_moe_text", "qwen3_next"):
        rope["partial_rotary_factor"] = random_share(draw, head_dim)
    if family in ("phimoe", "llama4_text", "nanochat"):
        fields["attention_bias"] = flip()
    if family == "phimoe":
        fields |= {"sliding_window": any_of(draw, None, window), "lm_head_bias": flip(), "rope_parameters": plain_rope(rope["rope_theta"])}
        if flip():
            original = any_of(draw, 16, 39, 40, 100)
            longrope = random_longrope(draw, rope["rope_theta"], head_dim) | {"original_max_position_embeddings": original}
            fields["rope_parameters"] = longrope | {"short_mscale": draw.uniform(0.8, 1.5), "long_mscale": draw.uniform(0.8, 1.5)}
        rope = fields["rope_parameters"]
        shape["tie_word_embeddings"] = False
    if family == "llama4_text":
        shape["head_dim"] = 2 * (head_dim // 2)
        fields |= {"attention_chunk_size": any_of(draw, None, draw.randint(1, 50)), "use_qk_norm": flip(), "floor_scale": draw.randint(1, 20),
                   "attn_temperature_tuning": flip(), "attn_scale": draw.uniform(0.05, 0.5),
                   "no_rope_layers": [1, *(draw.randint(0, 1) for _ in range(layers - 1))]}
    if family == "nanochat":
        fields |= {"hidden_act": any_of(draw, "relu2", "relu2", "gelu"), "final_logit_softcapping": any_of(draw, None, 5.0)}
    if family in ("granite_swa", "granitemoe_swa"):
        fields |= {"sliding_window": window, "layer_types": layer_types(draw, layers), "attention_bias": flip()}
        if rope["rope_type"] != "dynamic":
            fields["layer_rope_theta"] = any_of(draw, None, [any_of(draw, 0, 100.0, 10_000.0) for _ in range(layers)])
    if family in ("exaone4", "exaone_moe"):
        fields["sliding_window"] = any_of(draw, None, window)
        fields["layer_types"] = (layer_types(draw, layers) if fields["sliding_window"] else
                                 ["full_attention"] * layers)
    if family == "cohere":
        fields |= {"logit_scale": draw.uniform(0.1, 2), "use_qk_norm": flip()}
    if family == "dots1":
        fields |= {"sliding_window": any_of(draw, None, window), "max_window_layers": draw.randint(0, 4)}
    if family == "minimax_m2":
        rope["partial_rotary_factor"] = random_share(draw, head_dim)
    if family == "cohere2":
        fields |= {"sliding_window": window, "layer_types": layer_types(draw, layers),
                   "logit_scale": draw.uniform(0.1, 2)}
    if family == "stablelm":
        fields |= {"use_qkv_bias": flip(), "qk_layernorm": flip(), "use_parallel_residual": flip()}
    if family == "starcoder2":
        fields |= {"use_bias": flip(), "hidden_act": any_of(draw, "gelu_pytorch_tanh", "gelu", "silu")}
    if family in LATENTS and rope["rope_type"] == "yarn" and flip():
        rope |= {"mscale": draw.uniform(0.5, 1.5), "mscale_all_dim": draw.uniform(0.5, 1.5)}
    if family in ("ministral3", "mistral4"):
        rope |= {"llama_4_scaling_beta": draw.uniform(0, 0.5)}
        rope.setdefault("original_max_position_embeddings", 16)
    if rope["rope_type"] == "dynamic":
        shape["max_position_embeddings"] = any_of(draw, 12, 30, 256)
        rope["rope_theta"] = any_of(draw, 100.0, 10_000.0)
        if int(head_dim * rope.get("partial_rotary_factor", 0.25 if family == "stablelm" else 1.0)) <= 2:
            rope["rope_type"] = "linear"
    if family == "phi3" and flip():
        share = rope["partial_rotary_factor"]
        fields["rope_parameters"] = random_longrope(draw, rope["rope_theta"], int(head_dim * share))
        fields["rope_parameters"]["partial_rotary_factor"] = share
        fields["original_max_position_embeddings"] = any_of(draw, 16, 39, 40, 100)
    if family in ("gemma4_text", "gemma3n_text"):
        return random_later_gemma(draw, family, shape)
    if family in ("nemotron_h", "mamba2", "kimi_linear", *FIRST_MAMBAS):
        del fields["rope_parameters"]
    return fields


def random_spec(draw: random.Random, family: str, index: int) -> GoldenSpec:
    shape = random_shape(draw, family)
    if family in ("phi3", "helium"):  # rotated elements by hidden size / heads; an output of hidden size
        shape["hidden_size"] = shape["num_attention_heads"] * shape["head_dim"]
    return GoldenSpec(name=f"{family}_{index}", family=family, config=shape | random_fields(draw, family, shape),
                      features=(), weight_std=0.1 if family in HYBRIDS else 0.2)


def build(spec: GoldenSpec, generator: torch.Generator) -> transformers.PreTrainedModel:
    model_class = MODEL_CLASSES[spec.family]
    config = model_class.config_class(attn_implementation=attention_of(bool(spec.config.get("alibi"))), **spec.config)
    if is_mixture(config):
        config._experts_implementation = "eager"
    model = model_class(config).eval()
    randomise(model, spec, generator)
    return model


def rounded(model: transformers.PreTrainedModel, dtype: str) -> None:
    """Weights as files of this type hold them; they are computed with in float32."""
    for parameter in model.parameters():
        parameter.data = parameter.data.to(getattr(torch, dtype)).float()
    for name, buffer in model.named_buffers():
        if name.endswith((*CHOICE_BIASES, "layer_scalar")):
            buffer.copy_(buffer.to(getattr(torch, dtype)).float())


# Names, and what the weights fix: transformers drops tensors that a config doesn't ask for, which is an error here.
FIXED_FIELDS = ("linear_num_key_heads", "linear_num_value_heads", "linear_key_head_dim", "linear_value_head_dim",
                "linear_conv_kernel_dim", "linear_num_heads", "linear_head_dim", "num_shared_experts", "layer_types", "conv_L_cache", "conv_bias", "use_expert_bias", "num_dense_layers",
                "block_auto_adjust_ff_dim", "block_ffn_dim_multiplier", "block_multiple_of",
                "moe_intermediate_size", "num_experts", "num_local_experts", "n_routed_experts", "n_shared_experts",
                "shared_expert_intermediate_size", "shared_intermediate_size", "decoder_sparse_step", "mlp_only_layers",
                "first_k_dense_replace", "q_lora_rank", "kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim",
                "mlp_layer_types", "num_mtp_layers", "num_nextn_predict_layers", "qkv_bias", "use_qk_norm", "attention_bias", "mlp_bias", "use_bias", "use_qkv_bias", "qk_layernorm", "use_parallel_residual",
                "model_type", "architectures", "vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers",
                "num_attention_heads", "num_key_value_heads", "head_dim", "dtype", "tie_word_embeddings", *EARLY_FIXED_FIELDS)


def spelled_otherwise(config: Config, draw: random.Random) -> Config:
    """Fields absent or null, transformers 4's names of the type and the rope."""
    config = dict(config)
    for key in draw.sample(sorted(config.keys() - set(FIXED_FIELDS)), 3):
        if draw.random() < 0.5:
            del config[key]
        else:
            config[key] = None
    if draw.random() < 0.5:
        config["torch_dtype"] = config.pop("dtype")
    rope = config.get("rope_parameters")
    if rope and "full_attention" not in rope and draw.random() < 0.5:
        del config["rope_parameters"]
        rope = dict(rope)
        config["rope_theta"] = rope.pop("rope_theta")
        if "partial_rotary_factor" in rope:
            config["partial_rotary_factor"] = rope.pop("partial_rotary_factor")
        if rope["rope_type"] != "default":
            config["rope_scaling"] = {**rope, "type": rope.pop("rope_type")} if draw.random() < 0.5 else rope
    return config


def respell(folder: Path, family: str, ids: list[int], draw: random.Random) -> torch.Tensor:
    """Writes another spelling of the config; the logits that transformers computes from it."""
    path = folder / "config.json"
    path.write_text(json.dumps(spelled_otherwise(json.loads(path.read_text()), draw)))
    try:
        experts = {"experts_implementation": "eager"} if "moe" in family or family in ("mixtral", "mellum", "solar_open", "dots1", "minimax_m2", "gpt_oss") else {}
        attention = attention_of(bool(json.loads(path.read_text()).get("alibi")))
        model = MODEL_CLASSES[family].from_pretrained(folder, attn_implementation=attention, dtype=torch.float32, **experts)
        return logits_of(model.eval(), ids)
    except Exception as error:  # whatever transformers raises: it can't read this spelling
        raise Rejected(str(error)) from error


def decided_tokens(model: transformers.PreTrainedModel, ids: list[int]) -> list[int]:
    """The first greedy tokens, as long as rounding can't overturn them."""
    tokens: list[int] = []
    while len(tokens) < NUM_GREEDY:
        best = logits_of(model, ids + tokens)[-1].topk(2)
        if best.values[0] - best.values[1] <= MIN_MARGIN:
            break
        tokens.append(int(best.indices[0]))
    return tokens


def write(spec: GoldenSpec, draw: random.Random, seed: int, out: Path, respells: bool) -> None:
    generator = torch.Generator().manual_seed(seed)
    model = build(spec, generator)
    dtype = draw.choice(DTYPES)
    rounded(model, dtype)
    is_hybrid = spec.family in HYBRIDS
    length = draw.randint(1, LONGEST_PROMPT) if is_hybrid else PROMPT_LENGTH
    ids = torch.randint(0, spec.config["vocab_size"], (length,), generator=generator).tolist()
    logits = logits_of(model, ids)
    if not torch.isfinite(logits).all():
        raise Rejected("logits that aren't finite")
    check_rounding(model, logits, ids)
    rounded(model, dtype)
    keeps_rope = (spec.config.get("rope_parameters") or {}).get("rope_type") != "dynamic"  # while a text grows
    greedy_ids = decided_tokens(model, ids) if is_hybrid and keeps_rope and not respells else []
    folder = out / spec.name
    shutil.rmtree(folder, ignore_errors=True)
    stacked = is_mixture(model.config) and draw.random() < 0.5 and spec.family != "kimi_linear"  # whose files have one form
    model.to(getattr(torch, dtype)).save_pretrained(folder, save_original_format=not stacked)
    if respells:
        try:
            logits = respell(folder, spec.family, ids, draw)
            if not torch.isfinite(logits).all():
                raise Rejected("logits that aren't finite")
        except Rejected:
            shutil.rmtree(folder)
            raise
    save_file({"logits": logits.contiguous()}, folder / "golden.safetensors")
    write_json(folder / "golden.json", {"prompt_ids": ids, "greedy_ids": greedy_ids})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--families", nargs="*", default=FAMILIES)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--respell", action="store_true", help="fields absent, null, or as transformers 4 names them")
    args = parser.parse_args()
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    for family in args.families:
        draw = random.Random(f"{family} {args.seed}")
        written = attempts = 0
        while written < args.count and attempts < 10 * args.count:
            attempts += 1
            try:
                write(random_spec(draw, family, written), draw, 1000 * args.seed + attempts, args.out, args.respell)
                written += 1
            except Rejected:
                continue
        print(f"{family}: {written} models of {attempts} drawn", flush=True)


if __name__ == "__main__":
    main()
