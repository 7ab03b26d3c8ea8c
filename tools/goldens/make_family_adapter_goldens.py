#!/usr/bin/env python3
"""Makes tests/goldens/family_adapters/: a small PEFT adapter for a model golden of every family.

    python tools/goldens/make_family_adapter_goldens.py [--only NAME ...] [--out DIR]

Needs peft, torch, transformers and safetensors of requirements.txt. Each folder is an adapter on all
linear modules of the layers (of mixtures of experts on attention or what stands for it, and on dense
layers), as PEFT saves it, in float16. logits/model.safetensors has, by golden, the logits that PEFT's model computes in
float32 for the last rows of the golden's prompt.
"""

from __future__ import annotations

import argparse
import json
import shutil
import warnings
from pathlib import Path

import peft
import torch
from safetensors.torch import load_file, save_file

from peft_models import (GOLDENS, adapt_weights_that_are_read, folder_of, load_model, randomise,
                         sort_lists)

MODELS = [
    "cohere2_bias", "exaone4_window", "gemma2_odd", "gemma3_language_model_prefix", "gemma3_text_pattern2", "glm4_bias",
    "glm4_moe_plain_stacked", "gpt_oss_plain", "granite_multipliers", "granitemoe_bias",
    "granitemoehybrid_dense", "granitemoeshared_tied_stacked", "llama_scaled_tied", "ministral3_growth",
    "mistral3_mistral", "mistral_window", "mixtral_plain", "olmo2_bias", "olmo3_window", "olmoe_plain", "phi3_window",
    "qwen2_moe_sparse_step", "qwen2_tied", "qwen3_moe_tied", "qwen3_tied", "smollm3_tied", "smolvlm_text_model_prefix",
    "stablelm_parallel", "starcoder2_window_tied", "seed_oss_output_bias", "arcee_bias", "helium_plain",
    "ernie4_5_bias_tied", "cwm_window", "ministral_window", "glm_bias", "gemma_tied", "qwen2_5_vl_text",
    "qwen3_vl_text_tied", "mellum_window", "cohere_tied", "solar_open_shared", "dots1_window", "minimax_m2_partial",
    "deepseek_v2_lite", "deepseek_v3_yarn", "glm4_moe_lite_plain", "minicpm3_longrope", "mistral4_growth", "youtu_plain",
    "gemma3n_streams", "gemma4_layer_inputs", "gemma4_prefix", "apertus_bias",
    "olmo_clip", "olmoe_clip", "bloom_odd_heads", "falcon_alibi", "mpt_clip", "codegen_shards", "biogpt_scaled", "xglm_sinusoids",
    "phimoe_long", "llama4_chunks", "nanochat_backwards", "granite_swa_thetas", "granitemoe_swa_shared", "sarvam_moe_stacked",
    "exaone_moe_window",
    "gpt2_tied", "gpt_bigcode_tied", "gpt_neo_window", "gptj_parallel", "opt_plain", "gpt_neox_parallel", "persimmon_norms",
    "falcon_groups", "phi_parallel", "nemotron_bias", "jais2_bias", "olmo_plain", "flex_olmo_experts", "vaultgemma_window",
    "hunyuan_v1_dense_alpha", "hunyuan_v1_moe_shared", "ernie4_5_moe_tied",
    "hyperclovax_norms"]
HYBRIDS = ["bamba_groups", "falcon_h1_multipliers", "falcon_mamba_norms", "jamba_dense", "kimi_linear_groups", "lfm2_bias", "lfm2_moe_tied", "lfm3_tied", "mamba2_alone", "mamba_plain",
           "nemotron_h_latent", "nemotron_h_moe",
           "olmo_hybrid_no_rope", "qwen3_5_moe_text_stacked", "qwen3_5_tied_pattern",
           "qwen3_next_sparse_step"]
TARGETS = r".*layers\.\d+\.(self_attn|mlp)\.(\w+_proj|c_fc|c_proj)"
MIXERS = r".*layers\.\d+\.(self_attn|linear_attn|conv|mamba|mixer)\.(\w+_proj|in_proj_\w+|in_proj)"
# Of Qwen 3's mixtures PEFT makes parameters of the experts of a pattern that may match the mlp; it adapts no out_proj of
# Falcon-H1, Mamba, Falcon Mamba, Mamba 2 and Nemotron-H.
OTHER_TARGETS = {"falcon_h1_multipliers": r".*layers\.\d+\.(self_attn\.\w+_proj|mamba\.in_proj|feed_forward\.\w+_proj)",
                 "gemma3n_streams": r".*layers\.\d+\.((self_attn|mlp)\.\w+_proj|laurel\.linear_\w+|per_layer_\w+)",
                 "gemma4_layer_inputs": r".*layers\.\d+\.((self_attn|mlp)\.\w+_proj|per_layer_\w+)",
                 "falcon_mamba_norms": r".*layers\.\d+\.mixer\.(in|x|dt)_proj",
                 "jamba_dense": r".*layers\.\d+\.(self_attn\.\w+_proj|mamba\.(in|x|dt|out)_proj|feed_forward\.\w+_proj)",
                 "kimi_linear_groups": r".*layers\.\d+\.self_attn\.(([qkvob]|[qg]_[ab]|forget_gate\.f_[ab])_proj|kv_a_proj_with_mqa)",
                 "mamba_plain": r".*layers\.\d+\.mixer\.(in|x|dt)_proj",
                 "mamba2_alone": r".*layers\.\d+\.mixer\.in_proj",
                 "nemotron_h_latent": r".*layers\.\d+\.mixer\.(in_proj|[qkvo]_proj|(shared_experts\.)?(up|down)_proj|fc\d_latent_proj)",
                 "nemotron_h_moe": r".*layers\.\d+\.mixer\.(in_proj|[qkvo]_proj|(shared_experts\.)?(up|down)_proj)",
                 **dict.fromkeys(("solar_open_shared", "dots1_window", "minimax_m2_partial"),
                                 r".*layers\.\d+\.self_attn\.\w+_proj"),
                 **dict.fromkeys(("deepseek_v2_lite", "deepseek_v3_yarn", "glm4_moe_lite_plain", "mistral4_growth", "youtu_plain",
                                  "minicpm3_longrope"),
                                 r".*layers\.\d+\.self_attn\.(q|q_a|q_b|o)_proj|.*layers\.\d+\.self_attn\.kv_a_proj_with_mqa"),
                 **dict.fromkeys(("gpt2_tied", "gpt_bigcode_tied"), r".*h\.\d+\.(attn|mlp)\.c_\w+"),
                 "gpt_neo_window": r".*h\.\d+\.(attn\.attention\.\w+_proj|mlp\.c_\w+)",
                 **dict.fromkeys(("gptj_parallel", "codegen_shards"), r".*h\.\d+\.(attn\.\w+_proj|mlp\.fc_\w+)"),
                 "mpt_clip": r".*blocks\.\d+\.(attn\.(Wqkv|out_proj)|ffn\.\w+_proj)",
                 **dict.fromkeys(("olmoe_clip", "phimoe_long", "sarvam_moe_stacked", "exaone_moe_window", "granitemoe_swa_shared"),
                                 r".*layers\.\d+\.self_attn\.\w+_proj"),
                 "nanochat_backwards": r".*layers\.\d+\.(self_attn\.\w+_proj|mlp\.fc\d)",
                 "llama4_chunks": r".*layers\.\d+\.(self_attn\.\w+_proj|feed_forward\.(shared_expert\.)?\w+_proj)",
                 **dict.fromkeys(("opt_plain", "biogpt_scaled", "xglm_sinusoids"), r".*layers\.\d+\.(self_attn\.\w+_proj|fc\d)"),
                 "phi_parallel": r".*layers\.\d+\.(self_attn\.(\w+_proj|dense)|mlp\.fc\d)",
                 **dict.fromkeys(("gpt_neox_parallel", "persimmon_norms", "falcon_groups", "falcon_alibi", "bloom_odd_heads"),
                                 r".*(layers|h)\.\d+\.(attention|self_attn|self_attention|mlp)\.(query_key_value|dense\w*)"),
                 **dict.fromkeys(("flex_olmo_experts", "hunyuan_v1_moe_shared", "ernie4_5_moe_tied"),
                                 r".*layers\.\d+\.self_attn\.\w+_proj"),
                 "mellum_window": r".*layers\.\d+\.self_attn\.\w+_proj",
                 "qwen3_moe_tied": r".*layers\.\d+\.self_attn\.\w+_proj",
                 "granitemoehybrid_dense": r".*layers\.\d+\.(self_attn\.\w+_proj|shared_mlp\.(input|output)_linear)"}
LAST_ROWS = 2


def make(name: str, out: Path) -> torch.Tensor:
    folder = folder_of(name)
    targets = OTHER_TARGETS.get(name, MIXERS if name in HYBRIDS else TARGETS)
    config = peft.LoraConfig(task_type="CAUSAL_LM", r=1, lora_alpha=3, target_modules=targets,
                             exclude_modules=r".*(vision|visual).*", rank_pattern={"o_proj": 2},
                             alpha_pattern={r"layers\.0\.self_attn\..*": 4})
    model = peft.get_peft_model(load_model(folder), config)
    model.eval()
    randomise(model, torch.float16)
    model.peft_config["default"].base_model_name_or_path = f"paceline/{name}"
    model.save_pretrained(out / name, save_embedding_layers=False)
    (out / name / "README.md").unlink(missing_ok=True)
    sort_lists(out / name / "adapter_config.json")
    for parameter in model.parameters():
        parameter.data = parameter.data.float()
    ids = json.loads((folder / "golden.json").read_text())["prompt_ids"]
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([ids])).logits[0, -LAST_ROWS:].float().contiguous()
    print(f"{name}: logits up to {logits.abs().max():.3f}")
    return logits


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=GOLDENS / "family_adapters")
    parser.add_argument("--only", nargs="*", metavar="NAME", help="leaves the others as they are")
    args = parser.parse_args()
    out: Path = args.out
    adapt_weights_that_are_read()
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", category=FutureWarning)
    if not args.only:
        shutil.rmtree(out, ignore_errors=True)
    (out / "logits").mkdir(parents=True, exist_ok=True)
    path = out / "logits" / "model.safetensors"
    logits = load_file(path) if args.only else {}
    for name in args.only or MODELS + HYBRIDS:
        logits[name] = make(name, out)
    save_file(logits, path)


if __name__ == "__main__":
    main()
