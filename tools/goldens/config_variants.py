"""Other spellings of a saved config.json which must describe the same model."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from model_specs import GoldenSpec

Config = dict[str, Any]
TRANSFORMERS_4 = "4.50.0"
# Defaults of Gemma3TextConfig in the spelling of transformers 4.
GEMMA3_TEXT_DEFAULTS: Config = {
    "attention_bias": False,
    "attention_dropout": 0.0,
    "attn_logit_softcapping": None,
    "final_logit_softcapping": None,
    "hidden_activation": "gelu_pytorch_tanh",
    "rms_norm_eps": 1e-6,
    "rope_local_base_freq": 10_000.0,
    "rope_scaling": None,
    "rope_theta": 1_000_000.0,
    "tie_word_embeddings": True,
    "use_cache": True,
}


def _flat_rope(config: Config, *, old_type_key: bool) -> None:
    """rope_parameters -> rope_theta and rope_scaling."""
    scaling = config.pop("rope_parameters")
    config["rope_theta"] = scaling.pop("rope_theta")
    if old_type_key:
        scaling["type"] = scaling.pop("rope_type")
    plain = scaling.get("rope_type", scaling.get("type")) == "default"
    config["rope_scaling"] = None if plain else scaling


def _gemma3_rope(config: Config) -> None:
    """Nested rope_parameters -> rope_theta, rope_local_base_freq and rope_scaling."""
    nested = config.pop("rope_parameters")
    config["rope_parameters"] = nested["full_attention"]
    _flat_rope(config, old_type_key=False)
    config["rope_local_base_freq"] = nested["sliding_attention"]["rope_theta"]


def _without_defaults(text: Config) -> Config:
    """transformers 4 left defaults out of nested configs, as google/gemma-3-4b-it shows."""
    absent = object()
    return {key: value for key, value in text.items()
            if GEMMA3_TEXT_DEFAULTS.get(key, absent) != value}


def _v4_text(spec: GoldenSpec, text: Config) -> None:
    for key in ("layer_types", "_sliding_window_pattern", "use_bidirectional_attention"):
        text.pop(key, None)
    if spec.family.startswith("gemma3"):
        _gemma3_rope(text)
    elif spec.family == "exaone4":
        _flat_rope(text, old_type_key=False)
    elif spec.family != "kimi_linear":  # it has no rope
        _flat_rope(text, old_type_key=spec.family == "qwen2")
    if spec.family == "qwen3_moe":
        text["num_experts"] = text.pop("num_local_experts")
    if spec.family == "gemma2":
        text.update(hidden_act="gelu_pytorch_tanh", cache_implementation="hybrid")
    text.update(spec.v4)


def v4(spec: GoldenSpec, config: Config) -> Config:
    """The spelling of transformers 4."""
    config = copy.deepcopy(config)
    config["torch_dtype"] = config.pop("dtype")
    config["transformers_version"] = TRANSFORMERS_4
    if "text_config" in config:
        _v4_text(spec, config["text_config"])
        config["text_config"] = _without_defaults(config["text_config"])
    else:
        _v4_text(spec, config)
    return dict(sorted(config.items()))


def tied_flag(_: GoldenSpec, config: Config) -> Config:
    """Claims a tied head although the file holds another one; the file's is used."""
    return {**config, "tie_word_embeddings": True}


def no_head_dim(_: GoldenSpec, config: Config) -> Config:
    """No head_dim: the shape of the q projection implies it."""
    return {key: value for key, value in config.items() if key != "head_dim"}


def no_model_type(_: GoldenSpec, config: Config) -> Config:
    """No model_type: the tensors' names imply the family."""
    return {key: value for key, value in config.items()
            if key not in ("model_type", "architectures")}


def own_bias_names(_: GoldenSpec, config: Config) -> Config:
    """InternLM 3's names, as its published files have them."""
    names = {"attention_bias": "qkv_bias", "mlp_bias": "bias"}
    return {names.get(key, key): value for key, value in config.items()}


def no_layer_types(_: GoldenSpec, config: Config) -> Config:
    """The family's pattern of layers."""
    return {key: value for key, value in config.items() if key != "layer_types"}


def rotary_dim(_: GoldenSpec, config: Config) -> Config:
    """MiniMax M2's files: the number of rotated elements instead of their share."""
    rope = dict(config["rope_parameters"])
    share = rope.pop("partial_rotary_factor")
    return {**config, "rope_parameters": rope, "rotary_dim": int(share * config["head_dim"])}


def mrope_type(_: GoldenSpec, config: Config) -> Config:
    """The rope of published Qwen 2.5-VL, and the text model's fields without an object of their own."""
    text = config["text_config"]
    rope = text["rope_parameters"]
    fields = {key: value for key, value in text.items() if key not in ("rope_parameters", "model_type")}
    rest = {key: value for key, value in config.items() if key != "text_config"}
    return {**fields, "rope_theta": rope["rope_theta"],
            "rope_scaling": {"type": "mrope", "mrope_section": rope["mrope_section"]}, **rest}


def global_sizes(_: GoldenSpec, config: Config) -> Config:
    """The sizes of layers with full attention once for all, as Gemma 4 is published."""
    config = copy.deepcopy(config)
    sizes = list(config.pop("per_layer_config").values())
    assert all(size == sizes[0] for size in sizes)
    return config | {"global_head_dim": sizes[0]["head_dim"],
                     "num_global_key_value_heads": sizes[0].get("num_key_value_heads")}


VARIANTS: dict[str, Callable[[GoldenSpec, Config], Config]] = {
    "v4": v4,
    "tied_flag": tied_flag,
    "no_head_dim": no_head_dim,
    "no_model_type": no_model_type,
    "own_bias_names": own_bias_names,
    "no_layer_types": no_layer_types,
    "mrope_type": mrope_type,
    "rotary_dim": rotary_dim,
    "global_sizes": global_sizes,
}
# Spellings that transformers itself accepts, so that the script can prove them equal. It reads an
# absent head_dim as hidden / heads or as a constant, and refuses an absent model_type.
PROVABLE = ("v4", "tied_flag", "own_bias_names", "no_layer_types", "mrope_type", "rotary_dim", "global_sizes")
