#!/usr/bin/env python3
"""Compares the output of `paceline quantize` with mlx.

    python tools/compare_mlx.py SOURCE QUANTISED [--binary build/release/paceline]

Needs mlx and mlx_lm of tools/goldens/requirements.txt. Every packed matrix must equal the result of
mlx.core.quantize for the source, word for word; then mlx_lm loads and dequantises the directory,
and its log-probabilities of some tokens, in float32, are compared with the binary's. Experts may
stand one by one in the source or stacked; mlx_lm gives the matrices of both the same names.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

import mlx.core as mx
import numpy as np
from mlx_lm.utils import _get_classes, dequantize_model, load_model

PROMPT = list(range(20, 84))


def tensors_of(directory: Path) -> dict[str, mx.array]:
    tensors: dict[str, mx.array] = {}
    for file in sorted(directory.glob("*.safetensors")):
        tensors |= mx.load(str(file))
    return tensors


def count_differences(a: mx.array, b: mx.array) -> int:
    if a.shape != b.shape or a.dtype != b.dtype:
        return a.size
    bits = {2: mx.uint16, 4: mx.uint32}[a.itemsize]
    return int(mx.sum(a.view(bits) != b.view(bits)))


def in_mlx_names(source: Path, tensors: dict[str, mx.array]) -> dict[str, mx.array]:
    """As mlx_lm names and stacks them: its own model code does that while loading."""
    config = json.loads((source / "config.json").read_text())
    model_class, args_class = _get_classes(config)
    model = model_class(args_class.from_dict(config))
    return dict(model.sanitize(dict(tensors))) if hasattr(model, "sanitize") else tensors


def compare_tensors(source: Path, quantised: Path) -> int:
    """The number of different elements."""
    found, given = tensors_of(quantised), in_mlx_names(source, tensors_of(source))
    quantization = json.loads((quantised / "config.json").read_text())["quantization"]
    different = packed = 0
    for name, weight in given.items():
        module = name.removesuffix(".weight")
        if found[name].dtype != mx.uint32:
            different += count_differences(found[name], weight)
            continue
        packed += 1
        how = quantization.get(module, quantization)
        expected = mx.quantize(weight, group_size=how["group_size"], bits=how["bits"])
        for part, tensor in zip((name, f"{module}.scales", f"{module}.biases"), expected):
            different += count_differences(found[part], tensor)
    print(f"{packed} of {len(given)} tensors packed; elements other than mlx's: {different}")
    return different


def compare_logprobs(quantised: Path, binary: Path) -> float:
    """The largest difference of a token's log-probability."""
    model, _ = load_model(quantised)
    model = dequantize_model(model)  # as both then compute with the same numbers, in float32
    model.set_dtype(mx.float32)
    logits = model(mx.array([PROMPT])).astype(mx.float32)[0]
    logprobs = np.array(logits - mx.logsumexp(logits, axis=-1, keepdims=True))
    theirs = np.array([logprobs[i, token] for i, token in enumerate(PROMPT[1:])])
    line = json.dumps({"ids": PROMPT})
    done = subprocess.run([binary, "score", "-m", quantised, "--jsonl", "--dtype", "float32", "--activations", "plain"], input=line.encode(),
                          capture_output=True, check=True)
    ours = np.array(json.loads(done.stdout)["logprobs"][1:])
    largest = float(np.max(np.abs(ours - theirs)))
    print(f"log-probabilities of {len(theirs)} tokens: at most {largest:.6f} from mlx_lm's")
    return largest


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", type=Path)
    parser.add_argument("quantised", type=Path)
    parser.add_argument("--binary", type=Path, default=Path("build/release/paceline"))
    arguments = parser.parse_args()
    mx.set_default_device(mx.cpu)
    different = compare_tensors(arguments.source, arguments.quantised)
    largest = compare_logprobs(arguments.quantised, arguments.binary)
    sys.exit(different > 0 or largest > 0.001)


if __name__ == "__main__":
    main()
