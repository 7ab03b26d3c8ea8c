#!/usr/bin/env python3
"""Makes tests/goldens/fused/: matrices and logits of adapters merged by PEFT.

    python tools/goldens/make_fuse_goldens.py [--out DIR]

Needs peft, torch, transformers, numpy and safetensors of requirements.txt. Each file is what
merge_and_unload() makes of an adapter of make_adapter_goldens.py and its base, in float32: the
matrices that it changed, by their names in the base's files, and `logits` of the base's golden prompt.
"""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path

import peft
import torch
import transformers
from safetensors.torch import load_file, save_file

GOLDENS = Path(__file__).resolve().parents[2] / "tests" / "goldens"

# Adapter -> base.
ADAPTERS = {"peft_llama": "llama_plain", "peft_llama_head": "llama_plain",
            "peft_gemma3": "gemma3_language_model_prefix"}


def load_model(path: Path) -> torch.nn.Module:
    kind = json.loads((path / "config.json").read_text())["architectures"][0]
    return getattr(transformers, kind).from_pretrained(path, dtype=torch.float32, attn_implementation="eager")


def text_part(name: str) -> str:
    """The name without what stands in front of "layers." or "lm_head"."""
    return name[name.index("lm_head" if "lm_head" in name else "layers."):]


def merged(adapter: str, base: Path) -> dict[str, torch.Tensor]:
    model = peft.PeftModel.from_pretrained(load_model(base), GOLDENS / "adapters" / adapter)
    model = model.merge_and_unload().eval()
    plain = dict(load_model(base).named_parameters())
    in_file = {text_part(name): name for name in load_file(base / "model.safetensors")
               if "vision" not in name and ("layers." in name or "lm_head" in name)}
    tensors = {in_file[text_part(name)]: value.detach().contiguous() for name, value in model.named_parameters()
               if "vision" not in name and not torch.equal(value, plain[name])}
    ids = json.loads((base / "golden.json").read_text())["prompt_ids"]
    with torch.no_grad():
        tensors["logits"] = model(input_ids=torch.tensor([ids])).logits[0].float().contiguous()
    return tensors


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=GOLDENS / "fused")
    out: Path = parser.parse_args().out
    torch.set_num_threads(1)
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    for adapter, base in ADAPTERS.items():
        (out / adapter).mkdir()
        save_file(merged(adapter, GOLDENS / "models" / base), out / adapter / "model.safetensors")
        (out / adapter / "model.safetensors").chmod(0o644)


if __name__ == "__main__":
    main()
