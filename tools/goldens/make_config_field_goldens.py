#!/usr/bin/env python3
"""Makes tests/goldens/configs/fields.json: every field of transformers' configuration class of each family.

    python tools/goldens/make_config_field_goldens.py [--out FILE]

Needs the transformers of requirements.txt.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
from pathlib import Path

import transformers
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

DEFAULT_OUT = Path(__file__).resolve().parents[2] / "tests" / "goldens" / "configs" / "fields.json"
FAMILIES = ("llama", "iquestcoder", "internlm3", "apertus", "seed_oss", "arcee", "helium", "ernie4_5", "cwm", "ministral", "glm",
            "gemma", "qwen2_vl_text", "qwen2_5_vl_text", "qwen3_vl_text", "mellum", "cohere",
            "solar_open", "dots1", "minimax_m2", "mistral", "qwen2", "qwen3", "gemma2", "gemma3", "gemma3_text", "gemma3n", "gemma3n_text",
            "gemma4", "gemma4_text", "gemma4_unified", "gemma4_unified_text", "mistral3", "smolvlm", "phi3",
            "smollm3", "olmo2", "olmo3", "granite", "glm4", "exaone4", "cohere2", "stablelm", "starcoder2",
            "ministral3", "qwen2_moe", "qwen3_moe", "olmoe", "mixtral", "glm4_moe", "gpt_oss", "granitemoe", "granitemoeshared",
            "granitemoehybrid", "bamba", "mamba2", "mamba", "falcon_mamba", "jamba", "falcon_h1", "nemotron_h", "qwen3_5_text",
            "qwen3_5_moe_text", "qwen3_next", "olmo_hybrid", "lfm2", "lfm2_moe", "lfm3",
            "bert", "roberta", "xlm-roberta", "camembert", "distilbert",
            "modernbert", "nomic_bert", "gte", "eurobert", "mpnet", "deberta-v2",
            "deepseek_v2", "deepseek_v3", "sarvam_mla", "glm4_moe_lite", "youtu", "mistral4", "minicpm3", "kimi_linear",
            "nemotron", "hunyuan_v1_dense", "hunyuan_v1_moe", "ernie4_5_moe", "olmo", "phi", "gpt_neox", "gptj", "gpt2",
            "gpt_bigcode", "opt", "falcon", "gpt_neo", "persimmon", "exaone", "jais2", "flex_olmo", "vaultgemma", "hyperclovax",
            "bloom", "mpt", "codegen", "biogpt", "xglm", "phimoe", "llama4_text",
            "nanochat", "granite_swa", "granitemoe_swa", "sarvam_moe", "exaone_moe")


def fields_of(family: str) -> list[str]:
    return sorted(field.name for field in dataclasses.fields(CONFIG_MAPPING[family]))


def all_fields() -> dict[str, list[str]]:
    return {family: fields_of(family) for family in FAMILIES}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=DEFAULT_OUT)
    args = parser.parse_args()
    lines = [f"  {json.dumps(family)}: {json.dumps(fields)}" for family, fields in all_fields().items()]
    args.out.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    print(f"{args.out}: {len(lines)} classes of transformers {transformers.__version__}")


if __name__ == "__main__":
    main()
