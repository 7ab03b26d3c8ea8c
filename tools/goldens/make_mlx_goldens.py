#!/usr/bin/env python3
"""Makes tests/goldens/mlx/: results of mlx.core.quantize and mlx.core.dequantize on the CPU.

    python tools/goldens/make_mlx_goldens.py [--out DIR]

Needs mlx of requirements.txt and numpy. `formats.safetensors` has the matrix INPUT.<dtype> and, for
every bits, group and dtype, B<bits>.G<group>.<dtype>.{weight,scales,biases,values}; values are the
dequantised ones. `model/` is tests/goldens/models/llama_plain in bfloat16, quantised with overrides
of some modules; golden.json beside it has the FNV-1a hash of each of its matrices as mlx
dequantises it.
"""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path

import mlx.core as mx
import numpy as np

SEED = 6
ROWS, COLUMNS = 2, 128
BITS = (2, 3, 4, 5, 6, 8)
GROUPS = (32, 64, 128)
DTYPES = {"F32": mx.float32, "F16": mx.float16, "BF16": mx.bfloat16}

DEFAULT = {"group_size": 32, "bits": 4, "mode": "affine"}
OVERRIDES: dict[str, object] = {
    "lm_head": {"group_size": 32, "bits": 8},
    "model.embed_tokens": {"group_size": 32, "bits": 6, "mode": "affine"},
    "model.layers.0.mlp.down_proj": {"group_size": 64, "bits": 3},
    "model.layers.0.self_attn.v_proj": {"bits": 5},
    "model.layers.1.mlp.up_proj": {"bits": 2},
    "model.layers.1.self_attn.q_proj": False,
    "model.layers.2.self_attn.o_proj": True,
}


def matrix() -> np.ndarray:
    """Usual weights in a row; in the other zeros, one sign only, very small and very large ones."""
    drawn = np.random.default_rng(SEED).normal(0, 0.05, (ROWS, COLUMNS)).astype(np.float32)
    drawn[1, :32] = 0
    drawn[1, 32:64] = -np.abs(drawn[1, 32:64])
    drawn[1, 64:96] *= 1e-5
    drawn[1, 96:] *= 1e5
    return drawn


def formats() -> dict[str, mx.array]:
    tensors: dict[str, mx.array] = {}
    for dtype_name, dtype in DTYPES.items():
        given = tensors[f"INPUT.{dtype_name}"] = mx.array(matrix()).astype(dtype)
        for bits in BITS:
            for group in GROUPS:
                name = f"B{bits}.G{group}.{dtype_name}"
                packed, scales, biases = mx.quantize(given, group_size=group, bits=bits)
                tensors |= {f"{name}.weight": packed, f"{name}.scales": scales, f"{name}.biases": biases,
                            f"{name}.values": mx.dequantize(packed, scales, biases, group, bits)}
    return tensors


def fnv1a(data: bytes) -> int:
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return value


def hash_of(values: mx.array) -> str:
    return f"{fnv1a(np.array(values.view(mx.uint16)).tobytes()):016x}"


def format_of(module: str) -> dict | None:
    override = OVERRIDES.get(module, {})
    return None if override is False else DEFAULT | (override if isinstance(override, dict) else {})


def write_model(source: Path, out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    tensors: dict[str, mx.array] = {}
    hashes: dict[str, str] = {}
    for name, weight in sorted(mx.load(str(source / "model.safetensors")).items()):
        weight = weight.astype(mx.bfloat16)
        module = name.removesuffix(".weight")
        how = format_of(module)
        if weight.ndim != 2 or how is None:
            tensors[name] = weight
            continue
        packed, scales, biases = mx.quantize(weight, group_size=how["group_size"], bits=how["bits"])
        tensors |= {name: packed, f"{module}.scales": scales, f"{module}.biases": biases}
        hashes[name] = hash_of(mx.dequantize(packed, scales, biases, how["group_size"], how["bits"]))
    mx.save_safetensors(str(out / "model.safetensors"), tensors, metadata={"format": "mlx"})
    config = json.loads((source / "config.json").read_text())
    config["dtype"] = "bfloat16"
    config["quantization"] = config["quantization_config"] = DEFAULT | OVERRIDES
    (out / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    (out / "golden.json").write_text(json.dumps(hashes, indent=1) + "\n")
    shutil.copy(source / "generation_config.json", out)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    goldens = Path(__file__).resolve().parents[2] / "tests" / "goldens"
    parser.add_argument("--out", type=Path, default=goldens / "mlx")
    out: Path = parser.parse_args().out
    mx.set_default_device(mx.cpu)
    out.mkdir(parents=True, exist_ok=True)
    mx.save_safetensors(str(out / "formats.safetensors"), formats(), metadata={"format": "mlx"})
    write_model(goldens / "models" / "llama_plain", out / "model")


if __name__ == "__main__":
    main()
