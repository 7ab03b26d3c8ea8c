#!/usr/bin/env python3
"""Compares adapters that `paceline adapter` writes with the originals, as PEFT and mlx-lm read both.

    python tools/compare_adapters.py [--binary build/release/paceline]

Each golden of tests/goldens/adapters is converted to PEFT's format and, where one rank and one scale
are enough, to mlx-lm's. PEFT and mlx-lm load the result onto the golden's model: no tensor may be
missing or left over, every A, B and scale must be that of the original, and so must the logits of
PEFT's model where the original is PEFT's. Those of tests/goldens/expert_adapters are converted as well: their logits
in PEFT and, of single experts, their matrices in mlx-lm. Needs the packages of tools/goldens/requirements.txt.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import mlx.core as mx
import mlx_lm.tuner.utils as mlx_tuner
import mlx_lm.utils as mlx_utils
import numpy as np
import peft
import torch
from safetensors.torch import load_file

ROOT = Path(__file__).resolve().parents[1]
GOLDENS = ROOT / "tests" / "goldens"
sys.path.insert(0, str(ROOT / "tools" / "goldens"))

from make_adapter_goldens import canonical, is_text, load_model  # noqa: E402


def in_peft(adapter: Path, model_path: Path) -> tuple[dict, torch.Tensor]:
    """A, B and scale by module, and the logits of some ids. Fails where PEFT misses a tensor."""
    model = load_model(model_path)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*missing adapter keys.*")
        loaded = peft.PeftModel.from_pretrained(model, adapter)
    loaded.eval()
    pairs = {}
    for name, module in loaded.named_modules():
        if isinstance(module, peft.tuners.lora.LoraLayer) and is_text(name):
            pairs[canonical(name)] = (module.lora_A["default"].weight.detach().float().numpy(),
                                      module.lora_B["default"].weight.detach().float().numpy(),
                                      np.float32(module.scaling["default"]))
    ids = torch.tensor([json.loads((model_path / "golden.json").read_text())["prompt_ids"]])
    with torch.no_grad():
        return pairs, loaded(input_ids=ids).logits


def in_mlx(adapter: Path, model_path: Path) -> dict:
    """The same of mlx-lm, whose load_adapters() fails for a tensor that has no place."""
    # mlx-lm's class of multimodal Gemma 3 looks for the size of the vocabulary outside text_config.
    text_config = json.loads((model_path / "config.json").read_text()).get("text_config", {})
    model, _ = mlx_utils.load_model(
        model_path, model_config={key: text_config[key] for key in ("vocab_size",) if key in text_config})
    pairs = {}
    for name, module in mlx_tuner.load_adapters(model, str(adapter)).named_modules():
        if "lora_a" in module:
            pairs[canonical(name)] = (np.array(module["lora_a"].astype(mx.float32)).T,
                                      np.array(module["lora_b"].astype(mx.float32)).T, np.float32(module.scale))
    return pairs


def difference(found: dict, expected: dict) -> str:
    """The first difference, or nothing."""
    if found.keys() != expected.keys():
        return f"modules {sorted(found.keys() ^ expected.keys())}"
    for module, (a, b, scale) in expected.items():
        if found[module][2] != scale:
            return f"{module}: scale {found[module][2]}, expected {scale}"
        if not (np.array_equal(found[module][0], a) and np.array_equal(found[module][1], b)):
            return f"{module}: other numbers"
    return ""


def stored_tensors(path: Path) -> set[str]:
    with open(path, "rb") as file:
        return set(json.loads(file.read(int.from_bytes(file.read(8), "little")))) - {"__metadata__"}


def convert(binary: Path, adapter: Path, model: Path, kind: str, out: Path) -> bool:
    """Whether the format can hold the adapter."""
    done = subprocess.run([binary, "adapter", adapter, "-m", model, "--to", kind, "-o", out],
                          capture_output=True, text=True)
    if done.returncode != 0 and "one rank and one scale" not in done.stderr:
        raise RuntimeError(done.stderr)
    return done.returncode == 0


def expert_logits(adapter: Path, model_path: Path) -> torch.Tensor:
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*missing adapter keys.*")
        loaded = peft.PeftModel.from_pretrained(load_model(model_path), adapter)
    loaded.eval()
    ids = torch.tensor([json.loads((model_path / "golden.json").read_text())["prompt_ids"]])
    with torch.no_grad():
        return loaded(input_ids=ids).logits


def experts_in_mlx(adapter: Path, model_path: Path, original: Path) -> str:
    """The first difference of mlx-lm's stacks of experts from PEFT's modules of single experts, or nothing."""
    projections = {"w1": "gate_proj", "w2": "down_proj", "w3": "up_proj"}
    config = json.loads((model_path / "config.json").read_text())
    model, _ = mlx_utils.load_model(model_path, model_config={  # fields as transformers 4 called them
        "rope_theta": config["rope_parameters"]["rope_theta"],
        "num_experts": config.get("num_experts", config.get("num_local_experts"))})
    modules = {re.search(r"layers\.\d+\..*", name)[0]: module
               for name, module in mlx_tuner.load_adapters(model, str(adapter)).named_modules() if "lora_a" in module}
    for name, tensor in load_file(original / "adapter_model.safetensors").items():
        layer, block, expert, projection, side = re.search(
            r"layers\.(\d+)\.(\w+)\.experts\.(\d+)\.(\w+)\.lora_([AB])\.weight", name).groups()
        module = modules[f"layers.{layer}.{block}.switch_mlp.{projections.get(projection, projection)}"]
        found = np.array(module[f"lora_{side.lower()}"].astype(mx.float32))[int(expert)]
        if not np.array_equal(found, tensor.float().numpy()):
            return f"{name}: other numbers in mlx-lm"
    return ""


def compare_experts(binary: Path) -> int:
    """The number of adapters of tests/goldens/expert_adapters that differ when they are converted."""
    failures = 0
    for original in sorted((GOLDENS / "expert_adapters").glob("*_*")):
        name, kind = original.name.rsplit("_", 1)
        model = GOLDENS / "models" / name
        with tempfile.TemporaryDirectory() as directory:
            as_peft, as_mlx = Path(directory, "peft"), Path(directory, "mlx")
            convert(binary, original, model, "peft", as_peft)
            same = torch.equal(expert_logits(as_peft, model), expert_logits(original, model))
            said = "" if same else "other logits in PEFT"
            if kind == "single" and not said:
                convert(binary, original, model, "mlx", as_mlx)
                said = experts_in_mlx(as_mlx, model, original)
        print(f"{original.name}: {said or 'the same'}")
        failures += bool(said)
    return failures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", type=Path, default=ROOT / "build" / "release" / "paceline")
    binary: Path = parser.parse_args().binary.resolve()
    mx.set_default_device(mx.cpu)
    warnings.filterwarnings("ignore", category=FutureWarning)
    failures = 0
    for name, golden in json.loads((GOLDENS / "adapters" / "golden.json").read_text()).items():
        original, model = GOLDENS / "adapters" / name, GOLDENS / "models" / golden["model"]
        with tempfile.TemporaryDirectory() as directory:
            as_peft, as_mlx = Path(directory, "peft"), Path(directory, "mlx")
            convert(binary, original, model, "peft", as_peft)
            pairs, logits = in_peft(as_peft, model)
            expected, expected_logits = pairs, logits
            if name.startswith("peft"):
                expected, expected_logits = in_peft(original, model)
            elif name.startswith("mlx"):
                expected = in_mlx(original, model)
            said = difference(pairs, expected)
            if not said and len(stored_tensors(as_peft / "adapter_model.safetensors")) != 2 * len(pairs):
                said = "tensors that PEFT leaves out"
            if not said and not torch.equal(logits, expected_logits):
                said = f"logits differ by {(logits - expected_logits).abs().max()}"
            if not said and convert(binary, original, model, "mlx", as_mlx):
                said = difference(in_mlx(as_mlx, model), expected)
                kinds = "PEFT and mlx-lm"
            else:
                kinds = "PEFT"
            print(f"{name}: {len(expected)} pairs, {said or 'the same in ' + kinds}")
            failures += bool(said)
    failures += compare_experts(binary)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
