#!/usr/bin/env python3
"""Makes tests/goldens/weights/: small files written by the safetensors library, and their contents.

    python tools/goldens/make_safetensors_goldens.py [--out DIR]

Needs the versions of requirements.txt. golden.json lists each readable tensor with its dtype, shape
and elements, as the bits of their float32 values.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import torch
from safetensors.torch import save_file

SEED = 20
READABLE = {torch.float32: "float32", torch.float16: "float16", torch.bfloat16: "bfloat16"}
OTHERS = {
    "bool": torch.bool,
    "i8": torch.int8,
    "i16": torch.int16,
    "i32": torch.int32,
    "i64": torch.int64,
    "f64": torch.float64,
    "f8_e4m3": torch.float8_e4m3fn,
    "f8_e5m2": torch.float8_e5m2,
}

Tensors = dict[str, torch.Tensor]


def mixed(generator: torch.Generator) -> Tensors:
    """Every readable dtype, every rank up to four, odd byte counts, empty tensors, special values."""

    def normal(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        return torch.randn(shape, generator=generator).to(dtype)

    special = torch.tensor([0.0, -0.0, float("inf"), -float("inf"), float("nan"), 6e-8, 65504.0])
    return {
        "matrix.f32": normal(3, 5),
        "matrix.f16": normal(2, 7, dtype=torch.float16),
        "matrix.bf16": normal(7, 3, dtype=torch.bfloat16),
        "rank.0": normal(),
        "rank.1": normal(9, dtype=torch.bfloat16),
        "rank.3": normal(2, 3, 2, dtype=torch.float16),
        "rank.4": normal(1, 2, 1, 3),
        "empty.f32": normal(4, 0, 2),
        "empty.bf16": normal(0, dtype=torch.bfloat16),
        "special.f32": special,
        "special.f16": special.to(torch.float16),
        "special.bf16": special.to(torch.bfloat16),
        "gewöhnlich \"quoted\" \\ 名前": normal(2, 2),
    }


def described(tensors: Tensors) -> dict[str, object]:
    return {
        name: {
            "dtype": READABLE[tensor.dtype],
            "shape": list(tensor.shape),
            "float_bits": [bits & 0xFFFFFFFF
                           for bits in tensor.float().reshape(-1).view(torch.int32).tolist()],
        }
        for name, tensor in sorted(tensors.items())
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    repository = Path(__file__).resolve().parents[2]
    parser.add_argument("--out", type=Path, default=repository / "tests" / "goldens" / "weights")
    out: Path = parser.parse_args().out

    tensors = mixed(torch.Generator().manual_seed(SEED))
    for directory in ("single", "several", "dtypes"):
        (out / directory).mkdir(parents=True, exist_ok=True)
    save_file(tensors, out / "single" / "model.safetensors",
              metadata={"note": "a \"quoted\" note"})
    names = sorted(tensors)
    save_file({name: tensors[name] for name in names[::2]}, out / "several" / "even.safetensors")
    save_file({name: tensors[name] for name in names[1::2]}, out / "several" / "odd.safetensors")
    for name, dtype in OTHERS.items():
        save_file({"fine": torch.ones(2), f"of.{name}": torch.ones(2, 2).to(dtype)},
                  out / "dtypes" / f"{name}.safetensors")
    (out / "golden.json").write_text(
        json.dumps(described(tensors), ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
