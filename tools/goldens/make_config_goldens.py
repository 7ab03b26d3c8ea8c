#!/usr/bin/env python3
"""Makes tests/goldens/configs/configs.jsonl: transformers' results for each config.json.

    python tools/goldens/make_config_goldens.py [--out FILE]

Needs the versions of requirements.txt. Every case is one spelling of one field. The values come from
the modules of the model that transformers builds, not from its configuration object, and the model
has to run over a few tokens; a configuration that fails in either is recorded with "fails": true.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForImageTextToText

Config = dict[str, Any]

SHAPE: Config = {
    "vocab_size": 64, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 4,
    "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
}
YARN: Config = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64,
                "rope_theta": 10000.0}
LLAMA3: Config = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
                  "high_freq_factor": 4.0, "original_max_position_embeddings": 32,
                  "rope_theta": 500.0}
GEMMA3_ROPES: Config = {
    "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 2000.0},
    "sliding_attention": {"rope_type": "default", "rope_theta": 300.0},
}
PIXTRAL: Config = {"model_type": "pixtral", "hidden_size": 16, "intermediate_size": 16,
                   "num_hidden_layers": 1, "num_attention_heads": 2, "head_dim": 8,
                   "image_size": 28, "patch_size": 14}
EIGHT_LAYERS = {"num_hidden_layers": 8}


def without(fields: Config, *names: str) -> Config:
    return {key: value for key, value in fields.items() if key not in names}


def text(family: str, **fields: Any) -> Config:
    return {"model_type": family, **SHAPE, **fields}


def yarn(**fields: Any) -> Config:
    return text("llama", max_position_embeddings=1024, rope_parameters={**YARN, **fields})


def mistral3(outer: Config, inner: Config) -> Config:
    return {"model_type": "mistral3", "image_token_index": 3, "vision_config": PIXTRAL,
            "text_config": text("mistral", sliding_window=None, **inner), **outer}


CASES: dict[str, Config] = {
    "llama": text("llama"),
    "llama_kv_heads_absent": without(text("llama"), "num_key_value_heads"),
    "llama_kv_heads_null": text("llama", num_key_value_heads=None),
    "llama_head_dim_absent": without(text("llama"), "head_dim"),
    "llama_eps": text("llama", rms_norm_eps=1e-3),
    "llama_tied": text("llama", tie_word_embeddings=True),
    "llama_bias": text("llama", attention_bias=True, mlp_bias=True),
    "theta": text("llama", rope_theta=500.0),
    "theta_in_rope_parameters": text("llama", rope_parameters={"rope_theta": 500.0}),
    "theta_in_both": text("llama", rope_theta=300.0, rope_parameters={"rope_theta": 500.0}),
    "theta_in_rope_scaling": text("llama", rope_scaling={
        "type": "linear", "factor": 2.0, "rope_theta": 500.0}),
    "theta_in_and_beside_rope_scaling": text("llama", rope_theta=300.0, rope_scaling={
        "type": "linear", "factor": 2.0, "rope_theta": 500.0}),
    "rope_scaling_beside_rope_parameters": text(
        "llama", rope_scaling={"rope_type": "linear", "factor": 2.0},
        rope_parameters={"rope_type": "linear", "factor": 4.0, "rope_theta": 500.0}),
    "rope_scaling_empty": text("llama", rope_scaling={}, rope_parameters={"rope_theta": 500.0}),
    "yarn": yarn(),
    "yarn_truncate_true": yarn(truncate=True),
    "yarn_truncate_false": yarn(truncate=False),
    "yarn_mscale": yarn(mscale=0.7, mscale_all_dim=1.2),
    "yarn_mscale_zero": yarn(mscale=0, mscale_all_dim=1.0),
    "yarn_mscale_all_dim_zero": yarn(mscale=1.0, mscale_all_dim=0.0),
    "yarn_mscale_alone": yarn(mscale=0.7),
    "yarn_attention_factor": yarn(attention_factor=1.5, mscale=0.7, mscale_all_dim=1.2),
    "yarn_betas": yarn(beta_fast=8, beta_slow=2),
    "yarn_betas_zero": yarn(beta_fast=0, beta_slow=0),
    "yarn_betas_null": yarn(beta_fast=None, beta_slow=None),
    "yarn_factor_null": yarn(factor=None),
    "yarn_factor_absent": text("llama", max_position_embeddings=1024, rope_parameters=without(
        YARN, "factor")),
    "yarn_original_absent": text("llama", max_position_embeddings=1024, rope_parameters=without(
        YARN, "original_max_position_embeddings")),
    "yarn_original_at_the_top": text(
        "llama", max_position_embeddings=1024, original_max_position_embeddings=512,
        rope_parameters=without(YARN, "original_max_position_embeddings")),
    "yarn_original_in_both": text("llama", max_position_embeddings=1024,
                                  original_max_position_embeddings=512, rope_parameters=YARN),
    "yarn_v4": text("qwen2", rope_theta=1000.0, max_position_embeddings=1024, rope_scaling={
        "type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64}),
    "yarn_v4_original_at_the_top": text(
        "qwen2", rope_theta=1000.0, max_position_embeddings=1024,
        original_max_position_embeddings=512, rope_scaling={"type": "yarn", "factor": 4.0}),
    "yarn_qwen3_position_absent": text("qwen3", rope_theta=1000.0, rope_scaling={
        "type": "yarn", "factor": 4.0}),
    "llama3": text("llama", max_position_embeddings=1024, rope_parameters=LLAMA3),
    "llama3_original_at_the_top": text(
        "llama", max_position_embeddings=1024, original_max_position_embeddings=64,
        rope_parameters=without(LLAMA3, "original_max_position_embeddings")),
    "llama3_original_in_both": text("llama", max_position_embeddings=1024,
                                    original_max_position_embeddings=64, rope_parameters=LLAMA3),
    "llama3_low_freq_factor_absent": text("llama", rope_parameters=without(
        LLAMA3, "low_freq_factor")),
    "linear_factor_absent": text("llama", rope_parameters={"rope_type": "linear"}),
    "rope_type_unknown": text("llama", rope_parameters={"rope_type": "stretched", "factor": 2.0}),
    "mistral": text("mistral"),
    "mistral_window": text("mistral", sliding_window=8),
    "mistral_window_null": text("mistral", sliding_window=None),
    "mistral_kv_heads_absent": without(text("mistral", num_attention_heads=16),
                                       "num_key_value_heads"),
    "qwen2": text("qwen2"),
    "qwen2_window_unused": text("qwen2", sliding_window=8, max_window_layers=2),
    "qwen2_window": text("qwen2", use_sliding_window=True, sliding_window=8, max_window_layers=2),
    "qwen2_window_absent": text("qwen2", use_sliding_window=True, max_window_layers=2),
    "qwen2_window_null": text("qwen2", use_sliding_window=True, sliding_window=None,
                              max_window_layers=2),
    "qwen2_layer_types": text("qwen2", use_sliding_window=True, sliding_window=8, layer_types=[
        "full_attention", "sliding_attention", "full_attention", "sliding_attention"]),
    "qwen2_layer_types_unused_window": text("qwen2", sliding_window=8, layer_types=[
        "full_attention", "sliding_attention", "full_attention", "sliding_attention"]),
    "qwen2_layer_types_window_null": text(
        "qwen2", use_sliding_window=True, sliding_window=None, layer_types=[
            "full_attention", "sliding_attention", "full_attention", "sliding_attention"]),
    "qwen2_max_window_layers_absent": text("qwen2", use_sliding_window=True, sliding_window=8,
                                           num_hidden_layers=30),
    "qwen2_kv_heads_null": text("qwen2", num_key_value_heads=None),
    "qwen3": text("qwen3"),
    "qwen3_head_dim_absent": without(text("qwen3"), "head_dim"),
    "qwen3_window": text("qwen3", use_sliding_window=True, sliding_window=8, max_window_layers=1),
    "gemma2": text("gemma2"),
    "gemma2_caps_null": text("gemma2", attn_logit_softcapping=None, final_logit_softcapping=None),
    "gemma2_caps": text("gemma2", attn_logit_softcapping=20.0, final_logit_softcapping=10.0),
    "gemma2_window": text("gemma2", sliding_window=8),
    "gemma2_window_null": text("gemma2", sliding_window=None),
    "gemma2_scalar": text("gemma2", query_pre_attn_scalar=9),
    "gemma2_untied": text("gemma2", tie_word_embeddings=False),
    "gemma2_head_dim_absent": without(text("gemma2"), "head_dim"),
    "gemma3": text("gemma3_text", **EIGHT_LAYERS),
    "gemma3_four_layers": text("gemma3_text"),
    "gemma3_caps": text("gemma3_text", attn_logit_softcapping=20.0, final_logit_softcapping=10.0),
    "gemma3_pattern": text("gemma3_text", sliding_window=8, sliding_window_pattern=3),
    "gemma3_ropes": text("gemma3_text", rope_parameters=GEMMA3_ROPES, **EIGHT_LAYERS),
    "gemma3_full_rope_alone": text("gemma3_text", rope_parameters=without(
        GEMMA3_ROPES, "sliding_attention"), **EIGHT_LAYERS),
    "gemma3_ropes_v4": text(
        "gemma3_text", rope_theta=2000.0, rope_local_base_freq=300.0,
        rope_scaling={"rope_type": "linear", "factor": 8.0}, **EIGHT_LAYERS),
    "gemma3_theta_in_rope_scaling": text(
        "gemma3_text", rope_theta=2000.0,
        rope_scaling={"rope_type": "linear", "factor": 8.0, "rope_theta": 700.0}, **EIGHT_LAYERS),
    "gemma3_original_at_the_top": text(
        "gemma3_text", max_position_embeddings=1024, original_max_position_embeddings=512,
        rope_scaling=YARN, **EIGHT_LAYERS),
    "mistral3_untied": mistral3({"tie_word_embeddings": False}, {"tie_word_embeddings": False}),
    "mistral3_outer_tied": mistral3({"tie_word_embeddings": True}, {"tie_word_embeddings": False}),
    "mistral3_inner_tied": mistral3({"tie_word_embeddings": False}, {"tie_word_embeddings": True}),
}


def build(config: Config) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "config.json").write_text(json.dumps(config))
        read = AutoConfig.from_pretrained(folder)
    read._attn_implementation = "eager"
    auto = AutoModelForImageTextToText if "text_config" in config else AutoModelForCausalLM
    return auto.from_config(read, attn_implementation="eager").eval()


def ropes_of(decoder: Any) -> dict[str, Config]:
    """The rotary frequencies of each kind of layer."""
    rotary = decoder.rotary_emb
    if hasattr(rotary, "inv_freq"):
        return {"full_attention": {"frequencies": rotary.inv_freq.tolist(),
                                   "attention_factor": float(rotary.attention_scaling)}}
    return {kind: {"frequencies": getattr(rotary, f"{kind}_inv_freq").tolist(),
                   "attention_factor": float(getattr(rotary, f"{kind}_attention_scaling"))}
            for kind in rotary.layer_types}


def window_of(layer: Any, config: Any) -> int:
    window = getattr(layer.self_attn, "sliding_window", None)
    if config.model_type == "mistral":  # all of its layers have the mask of the configuration
        window = config.sliding_window
    return window or 0


def computed(model: Any) -> Config:
    decoder, config = model.get_decoder(), model.config.get_text_config()
    attention = decoder.layers[0].self_attn
    head_dim = attention.head_dim
    softcap = attention.attn_logit_softcapping if config.model_type == "gemma2" else None
    return {
        "head_dim": head_dim,
        "num_kv_heads": attention.k_proj.weight.shape[0] // head_dim,
        "norm_eps": decoder.norm.variance_epsilon if hasattr(decoder.norm, "variance_epsilon")
        else decoder.norm.eps,
        "attention_scale": float(attention.scaling),
        "attention_soft_cap": softcap or 0.0,
        "final_soft_cap": getattr(config, "final_logit_softcapping", None) or 0.0,
        "max_position": config.max_position_embeddings,
        "qkv_bias": attention.q_proj.bias is not None,
        "output_bias": attention.o_proj.bias is not None,
        "tied_head": model.lm_head.weight is model.get_input_embeddings().weight,
        "windows": [window_of(layer, config) for layer in decoder.layers],
        "ropes": ropes_of(decoder),
    }


@torch.no_grad()
def record(name: str, config: Config) -> Config:
    line: Config = {"name": name, "config": config}
    try:
        model = build(json.loads(json.dumps(config)))
        model(torch.tensor([[5, 6, 7]]), use_cache=False)
        return {**line, "computed": computed(model)}
    except (KeyError, ValueError, TypeError, RuntimeError, ZeroDivisionError) as error:
        print(f"  {name}: {type(error).__name__}: {str(error).splitlines()[0][:100]}")
        return {**line, "fails": True}


def main() -> None:
    default_out = (Path(__file__).resolve().parents[2] / "tests" / "goldens" / "configs"
                   / "configs.jsonl")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=default_out)
    out: Path = parser.parse_args().out
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    lines = [json.dumps(record(name, config)) for name, config in CASES.items()]
    out.parent.mkdir(exist_ok=True)
    out.write_text("\n".join(lines) + "\n")
    print(f"{out}: {len(lines)} configurations, {out.stat().st_size} bytes")


if __name__ == "__main__":
    main()
