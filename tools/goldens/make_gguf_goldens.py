#!/usr/bin/env python3
"""Makes tests/goldens/gguf/: files written by gguf-py, and their contents as gguf-py reads them.

    python tools/goldens/make_gguf_goldens.py [--out DIR]

Needs the versions of requirements.txt. values.safetensors holds the elements of each tensor of
formats.gguf as gguf.quants.dequantize returns them, metadata.json the keys and values of both files.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import gguf
import numpy as np
from gguf import GGMLQuantizationType as Type
from safetensors.numpy import save_file

SEED = 61
# The byte offsets of a block's half floats; all other bits may have any value.
HALVES = {
    Type.Q4_0: [0], Type.Q4_1: [0, 2], Type.Q5_0: [0], Type.Q5_1: [0, 2], Type.Q8_0: [0],
    Type.Q2_K: [80, 82], Type.Q3_K: [108], Type.Q4_K: [0, 2], Type.Q5_K: [0, 2], Type.Q6_K: [208],
    Type.IQ4_NL: [0], Type.IQ4_XS: [0], Type.IQ3_XXS: [0], Type.IQ3_S: [0],
}
# They came later, and leave the others' random numbers alone.
LATER = [Type.IQ3_XXS, Type.IQ3_S]
# Zeros, the smallest and the largest subnormals, the smallest normal, ordinary scales, the largest.
SPECIAL_HALVES = np.array(
    [0.0, -0.0, 2**-24, -(2**-24), 1023 * 2**-24, 2**-14, -0.00123, 0.0371, 1.0, -3.3, 65504.0],
    dtype=np.float16)
QUANTISABLE = [Type.F32, Type.F16, Type.BF16, Type.Q4_0, Type.Q4_1, Type.Q5_0, Type.Q5_1, Type.Q8_0]


def random_blocks(kind: Type, rows: int, row_length: int, rng: np.random.Generator) -> np.ndarray:
    """Rows of random bytes, whose half floats are finite: the special ones in turn, then random."""
    block_elements, block_bytes = gguf.GGML_QUANT_SIZES[kind]
    count = rows * row_length // block_elements
    blocks = rng.integers(0, 256, (count, block_bytes), dtype=np.uint8)
    for place, at in enumerate(HALVES[kind]):
        halves = (rng.standard_normal(count) * 0.02).astype(np.float16)
        special = np.roll(SPECIAL_HALVES, 5 * place)[:count]
        halves[:len(special)] = special
        blocks[:, at:at + 2] = halves.view(np.uint8).reshape(count, 2)
    return blocks.reshape(rows, row_length // block_elements * block_bytes)


def random_mxfp4(rows: int, blocks: int) -> np.ndarray:
    """An exponent and 16 bytes each. The exponents of subnormal numbers come first; the largest
    would make infinities."""
    rng = np.random.default_rng(SEED + 1)
    stored = rng.integers(0, 256, (rows * blocks, 17), dtype=np.uint8)
    stored[:, 0] = rng.integers(3, 250, rows * blocks)
    stored[:3, 0] = range(3)
    return stored.reshape(rows, blocks * 17)


def random_nvfp4(rows: int, blocks: int) -> np.ndarray:
    """Four scales and 32 bytes each. All 256 scales occur: subnormal ones, 127, and those with a sign."""
    rng = np.random.default_rng(SEED + 3)
    stored = rng.integers(0, 256, (rows * blocks, 36), dtype=np.uint8)
    stored[:64, :4] = np.arange(256).reshape(64, 4)
    return stored.reshape(rows, blocks * 36)


def interleaved(rows: np.ndarray, heads: int) -> np.ndarray:
    """LlamaModel.permute of llama.cpp's convert_hf_to_gguf.py."""
    halves = rows.reshape(heads, 2, rows.shape[0] // heads // 2, *rows.shape[1:])
    return halves.swapaxes(1, 2).reshape(rows.shape)


def write_formats(path: Path) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(SEED)
    writer = gguf.GGUFWriter(path, "llama")
    values: dict[str, np.ndarray] = {}

    def add(name: str, stored: np.ndarray, kind: Type) -> None:
        values[name] = gguf.quants.dequantize(stored, kind).astype(np.float32)
        writer.add_tensor(name, stored, raw_dtype=None if kind in (Type.F32, Type.F16) else kind)

    for kind in [kind for kind in HALVES if kind not in LATER]:
        rows, row_length = (4, 768) if gguf.GGML_QUANT_SIZES[kind][0] == 256 else (3, 224)
        add(f"random.{kind.name}", random_blocks(kind, rows, row_length, rng), kind)
    numbers = rng.standard_normal((2, 96)).astype(np.float32)
    for kind in QUANTISABLE:
        add(f"quantised.{kind.name}", gguf.quants.quantize(numbers, kind), kind)

    # Two heads of six rows; under the same name in values.safetensors as they were before.
    for name, shape in {"matrix": (12, 32), "vector": (12,)}.items():
        rows = rng.standard_normal(shape).astype(np.float32)
        writer.add_tensor(f"interleaved.{name}.F32", interleaved(rows, 2))
        values[f"interleaved.{name}.F32"] = rows
    rows = gguf.quants.quantize(rng.standard_normal((12, 32)).astype(np.float32), Type.Q4_0)
    writer.add_tensor("interleaved.matrix.Q4_0", interleaved(rows, 2), raw_dtype=Type.Q4_0)
    values["interleaved.matrix.Q4_0"] = gguf.quants.dequantize(rows, Type.Q4_0)

    add("rank.1", rng.standard_normal(5).astype(np.float32), Type.F32)
    add("rank.3", rng.standard_normal((2, 3, 4)).astype(np.float32), Type.F32)
    add("rank.4", rng.standard_normal((2, 1, 3, 2)).astype(np.float16), Type.F16)
    add("random.MXFP4", random_mxfp4(3, 7), Type.MXFP4)
    for kind in LATER:
        add(f"random.{kind.name}", random_blocks(kind, 4, 768, np.random.default_rng(SEED + 2)), kind)
    add("random.NVFP4", random_nvfp4(6, 12), Type.NVFP4)
    add("quantised.MXFP4", gguf.quants.quantize(numbers, Type.MXFP4), Type.MXFP4)
    finish(writer)
    return values


def write_metadata(path: Path) -> None:
    writer = gguf.GGUFWriter(path, "qwen3")
    writer.add_custom_alignment(64)
    writer.add_uint8("of.uint8", 255)
    writer.add_int8("of.int8", -128)
    writer.add_uint16("of.uint16", 65535)
    writer.add_int16("of.int16", -32768)
    writer.add_uint32("of.uint32", 4294967295)
    writer.add_int32("of.int32", -2147483648)
    writer.add_uint64("of.uint64", 2**63 - 1)
    writer.add_int64("of.int64", -(2**63))
    writer.add_float32("of.float32", 1e-6)
    writer.add_float64("of.float64", 1e-6)
    writer.add_bool("of.true", True)
    writer.add_bool("of.false", False)
    writer.add_string("of.string", "gewöhnlich \"quoted\" 名前")
    writer.add_string("of.empty", "")
    writer.add_array("array.strings", ["<s>", "▁the", "", "<0x0A>"])
    writer.add_array("array.int32", [1, -2, 3])
    writer.add_array("array.float32", [0.5, -1000.0, 1e-3])
    writer.add_array("array.bool", [True, False, True])
    writer.add_tensor("fine", np.arange(3, dtype=np.float32))
    finish(writer)


def finish(writer: gguf.GGUFWriter) -> None:
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def described_metadata(path: Path) -> dict[str, object]:
    """{key: {type, value}}: the type of a value, or of an array's elements."""
    fields = gguf.GGUFReader(path).fields
    return {
        key: {"type": field.types[-1].name.lower(), "value": field.contents()}
        for key, field in sorted(fields.items())
        if not key.startswith("GGUF.")
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    repository = Path(__file__).resolve().parents[2]
    parser.add_argument("--out", type=Path, default=repository / "tests" / "goldens" / "gguf")
    out: Path = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)

    save_file(write_formats(out / "formats.gguf"), out / "values.safetensors")
    write_metadata(out / "metadata.gguf")
    (out / "metadata.json").write_text(
        json.dumps(described_metadata(out / "metadata.gguf"), ensure_ascii=False, indent=1) + "\n",
        encoding="utf-8")
    split = gguf.GGUFWriter(out / "split.gguf", "llama", split_max_tensors=2)
    for i in range(5):
        split.add_tensor(f"tensor.{i}", np.full((2, 3), i, dtype=np.float32))
    finish(split)


if __name__ == "__main__":
    main()
