"""Random tiny configurations of the families of goldens/early_specs.py, for compare_families.py."""

from __future__ import annotations

import random
from typing import Any

Config = dict[str, Any]
EARLY_FAMILIES = ("gpt2", "gpt_bigcode", "gptj", "opt", "gpt_neox", "falcon", "phi", "nemotron", "olmo", "hunyuan_v1_dense",
                  "hunyuan_v1_moe", "ernie4_5_moe", "gpt_neo", "persimmon", "exaone", "jais2", "flex_olmo", "vaultgemma",
                  "hyperclovax", "bloom", "mpt", "codegen", "biogpt", "xglm")
# Whose classes have heads of hidden size / heads elements.
PLAIN_HEADS = ("gpt2", "gpt_bigcode", "gptj", "opt", "gpt_neox", "falcon", "phi", "olmo", "ernie4_5_moe", "gpt_neo", "persimmon", "flex_olmo",
               "bloom", "mpt", "codegen", "biogpt", "xglm")
EARLY_EPS_KEYS = {"gpt2": "layer_norm_epsilon", "gpt_bigcode": "layer_norm_epsilon", "gptj": "layer_norm_epsilon",
                  "gpt_neox": "layer_norm_eps", "falcon": "layer_norm_epsilon", "phi": "layer_norm_eps", "nemotron": "norm_eps", "gpt_neo": "layer_norm_epsilon",
                  "persimmon": "layer_norm_eps", "jais2": "layer_norm_eps",
                  **dict.fromkeys(("bloom", "mpt", "codegen"), "layer_norm_epsilon"), "biogpt": "layer_norm_eps"}
# What the weights fix.
EARLY_FIXED_FIELDS = ("bias", "enable_bias", "moe_k", "moe_topk", "moe_num_experts", "moe_num_shared_experts", "moe_layer_start_index",
                      "moe_layer_end_index", "moe_layer_interval", "new_decoder_architecture", "multi_query", "parallel_attn",
                      "num_ln_in_parallel_attn", "num_kv_heads", "n_embd", "n_head", "n_layer", "n_inner", "n_positions", "num_layers",
                      "num_heads", "ffn_dim", "ffn_hidden_size", "attention_types", "use_post_norm", "rotary_dim", "d_model", "n_layers", "n_heads",
                      "attention_heads", "expansion_ratio", "alibi", "no_bias", "attn_config")
ACTIVATIONS = ("gelu", "gelu_new", "relu", "silu")


def early_fields(draw: random.Random, family: str, shape: Config, rope: Config) -> Config:
    """Its own fields; takes those from `shape` that its class doesn't have."""
    flip = lambda: draw.random() < 0.5  # noqa: E731
    heads, kv_heads, layers = (shape[f"num_{name}"] for name in ("attention_heads", "key_value_heads", "hidden_layers"))
    head_dim = shape.get("head_dim", shape["hidden_size"] // heads)
    inner = shape["intermediate_size"]
    share = 2 * draw.randint(1, head_dim // 2) / head_dim
    if family in ("gpt2", "gpt_bigcode", "gptj", "opt", "falcon"):
        del shape["intermediate_size"]
    if family in ("gpt2", "gpt_bigcode", "gptj", "opt", "gpt_neox", "falcon"):
        del shape["num_key_value_heads"]
    if family in ("bloom", "mpt", "codegen", "xglm"):
        del shape["intermediate_size"]
    if family in ("bloom", "mpt", "codegen", "biogpt", "xglm"):
        del shape["num_key_value_heads"]
    if family == "bloom":
        return {}
    if family == "mpt":
        shape["max_seq_len"] = shape.pop("max_position_embeddings")
        return {"attn_config": {"clip_qkv": draw.choice([None, draw.uniform(0.1, 2)]), "alibi_bias_max": draw.randint(4, 16),
                                "softmax_scale": draw.choice([None, draw.uniform(0.1, 1)])}}
    if family == "codegen":
        shape |= {"tie_word_embeddings": False, "hidden_size": 4 * shape["hidden_size"]}
        return {"n_inner": draw.choice([None, inner]), "activation_function": draw.choice(ACTIVATIONS),
                "rotary_dim": 2 * draw.randint(1, head_dim // 2)}
    if family in ("biogpt", "xglm"):
        shape.pop("rms_norm_eps", None)
        own = {"hidden_act": draw.choice(ACTIVATIONS)} if family == "biogpt" else {
            "ffn_dim": inner, "activation_function": draw.choice(ACTIVATIONS)}
        return own | {"scale_embedding": flip()}
    if family in ("opt", "olmo"):
        del shape["rms_norm_eps"]
    if family in ("gpt2", "gpt_bigcode", "gptj"):
        fields: Config = {"n_inner": draw.choice([None, inner]), "activation_function": draw.choice(ACTIVATIONS)}
        if family == "gptj":
            shape["tie_word_embeddings"] = False  # transformers ties the weight, and the bias stays
            return fields | {"rotary_dim": 2 * draw.randint(1, head_dim // 2)}
        fields["scale_attn_weights"] = draw.random() < 0.8
        return fields | ({"multi_query": flip()} if family == "gpt_bigcode" else {})
    if family == "gpt_neo":
        del shape["num_key_value_heads"], shape["num_hidden_layers"], shape["num_attention_heads"]
        kinds = [draw.choice(("global", "local")) for _ in range(layers)]
        return {"num_layers": layers, "num_heads": heads, "window_size": draw.randint(3, 30),
                "attention_types": [[kinds, 1]], "activation_function": draw.choice(ACTIVATIONS)}
    if family == "opt":
        return {"ffn_dim": inner, "enable_bias": flip(), "activation_function": draw.choice(ACTIVATIONS)}
    fields = {"rope_parameters": rope}
    if family == "gpt_neox":
        rope["partial_rotary_factor"] = share
        return fields | {"use_parallel_residual": flip(), "attention_bias": flip(), "hidden_act": draw.choice(ACTIVATIONS)}
    if family == "falcon":
        is_new = flip()
        fields |= {"ffn_hidden_size": draw.choice([None, inner]), "new_decoder_architecture": is_new, "bias": flip(),
                   "multi_query": flip(), "parallel_attn": is_new or flip()}
        return fields | ({"num_kv_heads": kv_heads, "num_ln_in_parallel_attn": draw.choice([None, 1, 2])} if is_new else {"alibi": flip()})
    if family == "olmo":
        fields["clip_qkv"] = draw.choice([None, draw.uniform(0.1, 2)])
    if family == "persimmon":
        del shape["num_key_value_heads"]
        rope["partial_rotary_factor"] = share
        return fields | {"qk_layernorm": flip(), "hidden_act": draw.choice(("relu2", "relu2", "gelu"))}
    if family in ("exaone", "jais2"):
        return fields | {"attention_bias": flip(), "mlp_bias": flip()}
    if family == "flex_olmo":
        experts = draw.randint(2, 9)
        return fields | {"num_experts": experts, "num_experts_per_tok": draw.randint(1, min(4, experts)),
                         "norm_topk_prob": flip(), "attention_bias": flip()}
    if family == "hyperclovax":
        return fields | {"attention_bias": flip(), "mlp_bias": flip(), "use_post_norm": flip(),
                         "embedding_multiplier": draw.uniform(0.5, 3), "residual_multiplier": draw.uniform(0.3, 1.5),
                         "attention_multiplier": draw.choice([None, draw.uniform(0.05, 0.7)]), "logits_scaling": draw.uniform(0.3, 3)}
    if family == "vaultgemma":
        return fields | {"sliding_window": draw.randint(3, 30), "query_pre_attn_scalar": draw.randint(1, 40),
                         "layer_types": [draw.choice(("full_attention", "sliding_attention")) for _ in range(layers)],
                         "attn_logit_softcapping": draw.choice([None, 3.0]), "final_logit_softcapping": draw.choice([None, 5.0])}
    if family in ("phi", "nemotron"):
        rope["partial_rotary_factor"] = share
    if family == "phi":
        return fields | {"qk_layernorm": flip(), "hidden_act": draw.choice(ACTIVATIONS)}
    if family == "nemotron":
        return fields | {"attention_bias": flip(), "mlp_bias": flip(), "hidden_act": draw.choice(("relu2", "relu2", "silu"))}
    if family == "ernie4_5_moe":
        experts = draw.randint(2, 9)
        first = draw.randint(0, layers - 1)
        return fields | {"moe_num_experts": experts, "moe_k": draw.randint(1, min(4, experts)),
                         "moe_intermediate_size": draw.randint(3, 40), "moe_num_shared_experts": draw.randint(0, 2),
                         "moe_layer_start_index": first, "moe_layer_end_index": draw.choice([-1, draw.randint(first, layers - 1)]),
                         "moe_layer_interval": draw.randint(1, 2)}
    if family.startswith("hunyuan") and flip():
        fields["rope_parameters"] = {"rope_type": "dynamic", "rope_theta": 10_000.0, "alpha": draw.uniform(1, 100),
                                     "factor": 1.0}
    fields["attention_bias"] = flip()
    if family == "hunyuan_v1_moe":
        experts = draw.randint(2, 9)
        chosen = draw.randint(1, min(4, experts))
        fields |= {"num_experts": experts, "moe_topk": draw.choice([chosen, [chosen] * layers])}
    return fields
