"""Quantises a few rows with ggml, the library of llama.cpp, for tests/weights/gguf_quantizer_test.cc.

Q4_0, Q5_0, Q5_1 and Q8_0 are stored as blocks, which are gguf-py's too. Of the K types the squared error of each row is
stored: ggml searches scales in its own way.
"""

from __future__ import annotations

import argparse
import ctypes
from pathlib import Path

import numpy as np
from gguf import GGML_QUANT_SIZES
from gguf import GGMLQuantizationType as Type
from gguf import quants
from safetensors.numpy import save_file

LENGTH = 256
EQUAL = (Type.Q4_0, Type.Q5_0, Type.Q5_1, Type.Q8_0)
SEARCHED = (Type.Q4_K, Type.Q5_K, Type.Q6_K)


def rows() -> np.ndarray:
    """Normal numbers, some with outliers, numbers of one sign, even ones, and zeros."""
    random = np.random.default_rng(7)
    normal = random.standard_normal((4, LENGTH))
    return np.stack([normal[0], normal[1] * 0.02, normal[2] ** 3, np.abs(normal[3]), random.uniform(-1, 1, LENGTH),
                     np.zeros(LENGTH)]).astype(np.float32)


def quantise(library: ctypes.CDLL, values: np.ndarray, kind: Type) -> np.ndarray:
    block, size = GGML_QUANT_SIZES[kind]
    out = np.zeros((len(values), LENGTH // block * size), np.uint8)
    library.ggml_quantize_chunk(int(kind), values.ctypes.data, out.ctypes.data, 0, len(values), LENGTH, None)
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    repository = Path(__file__).resolve().parents[2]
    parser.add_argument("--ggml", type=Path, required=True, help="libggml-base.so, e.g. of llama-cpp-python")
    parser.add_argument("--out", type=Path, default=repository / "tests" / "goldens" / "gguf" / "blocks.safetensors")
    arguments = parser.parse_args()
    library = ctypes.CDLL(str(arguments.ggml))
    library.ggml_quantize_chunk.restype = ctypes.c_size_t
    library.ggml_quantize_chunk.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, *[ctypes.c_int64] * 3,
                                            ctypes.c_void_p]
    values = rows()
    tensors = {"values": values}
    for kind in EQUAL:
        tensors[kind.name] = quantise(library, values, kind)
        assert (tensors[kind.name] == quants.quantize(values, kind)).all(), kind
    for kind in SEARCHED:
        decoded = quants.dequantize(quantise(library, values, kind), kind)
        tensors[kind.name] = ((decoded - values) ** 2).sum(1)
    save_file(tensors, arguments.out)


if __name__ == "__main__":
    main()
