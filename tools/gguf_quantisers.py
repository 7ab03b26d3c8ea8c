"""Quantises numbers to blocks of every element type of GGUF that Paceline reads.

gguf-py quantises the older types. The K-quants and IQ4, which it only dequantises, are quantised here: for each group
of elements the scale with the least squared error among some candidates, then the scales rounded to the block's format,
then the codes. llama.cpp weights errors and tries more scales, so its files lose somewhat less. The layouts are those
of ggml-common.h; `check` verifies them with gguf.dequantize.
"""

from __future__ import annotations

import gguf
import numpy as np
from gguf import GGMLQuantizationType as Type

PLAIN = ("F32", "F16", "BF16")
BY_GGUF_PY = ("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0")
FACTORS = np.linspace(0.7, 1.15, 19, dtype=np.float32)
IQ4_VALUES = np.array([-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113], np.float32)


def half(values: np.ndarray) -> np.ndarray:
    """As float32, rounded to what a float16 can hold."""
    return values.astype(np.float16).astype(np.float32)


def quotient(values: np.ndarray, scales: np.ndarray) -> np.ndarray:
    """The quotient; zero where the scale is zero, as such a group is all zeros."""
    return np.divide(values, scales, out=np.zeros_like(values), where=scales != 0)


def round_codes(values: np.ndarray, low: int, high: int) -> np.ndarray:
    return np.clip(np.rint(values), low, high)


def nearest_iq4(values: np.ndarray) -> np.ndarray:
    return np.searchsorted((IQ4_VALUES[1:] + IQ4_VALUES[:-1]) / 2, values)


def bytes_of(values: np.ndarray) -> np.ndarray:
    """[blocks, anything] as [blocks, bytes]."""
    values = np.ascontiguousarray(values.reshape(len(values), -1))
    return values.view(np.uint8)


def halves(values: np.ndarray) -> np.ndarray:
    return bytes_of(values.astype("<f2"))


def best_scales(x: np.ndarray, extreme: float, decoded) -> np.ndarray:
    """The scales of groups [..., size] around zero: the element of largest magnitude becomes about `extreme`.
    decoded(x / scale) are the decoded values of the codes."""
    largest = np.take_along_axis(x, np.abs(x).argmax(-1)[..., None], -1) / np.float32(extreme)
    best, least = largest, np.full(largest.shape, np.inf, np.float32)
    for factor in FACTORS:
        scale = largest * factor
        error = ((decoded(quotient(x, scale)) * scale - x) ** 2).sum(-1, keepdims=True)
        best, least = np.where(error < least, scale, best), np.minimum(error, least)
    return best


def best_ranges(x: np.ndarray, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Scales and minima (of zero or less, without their sign) of groups [..., size]."""
    low, high = np.minimum(x.min(-1, keepdims=True), 0), np.maximum(x.max(-1, keepdims=True), 0)
    best, least = [(high - low) / steps, -low], np.full(low.shape, np.inf, np.float32)
    for below in FACTORS[::3]:
        for above in FACTORS[::3]:
            scale, minimum = (high * above - low * below) / steps, -low * below
            codes = round_codes(quotient(x + minimum, scale), 0, steps)
            error = ((codes * scale - minimum - x) ** 2).sum(-1, keepdims=True)
            best = [np.where(error < least, new, old) for new, old in zip((scale, minimum), best, strict=True)]
            least = np.minimum(error, least)
    return best[0], best[1]


def shared_scale(scales: np.ndarray, steps: int) -> np.ndarray:
    """The float16 whose multiples a block's groups [blocks, groups, 1] become."""
    return half(np.abs(scales).max(1, keepdims=True) / steps)


def ranges_of(x: np.ndarray, code_steps: int, scale_steps: int) -> tuple[np.ndarray, ...]:
    """The parts of Q2_K, Q4_K and Q5_K: d, dmin [blocks, 1, 1], their multiples and the codes."""
    scales, minima = best_ranges(x, code_steps)
    d, dmin = shared_scale(scales, scale_steps), shared_scale(minima, scale_steps)
    scales = round_codes(quotient(scales, np.broadcast_to(d, scales.shape)), 0, scale_steps)
    minima = round_codes(quotient(minima, np.broadcast_to(dmin, minima.shape)), 0, scale_steps)
    step = np.broadcast_to(d * scales, x.shape)
    codes = round_codes(quotient(x + dmin * minima, step), 0, code_steps)
    return d, dmin, scales.astype(np.uint8)[..., 0], minima.astype(np.uint8)[..., 0], codes.astype(np.uint8)


def six_bit_pairs(scales: np.ndarray, minima: np.ndarray) -> np.ndarray:
    """Eight scales and eight minima of 6 bits in 12 bytes."""
    head = [a[:, :4] | (a[:, 4:] >> 4) << 6 for a in (scales, minima)]
    return np.concatenate([*head, (scales[:, 4:] & 15) | (minima[:, 4:] & 15) << 4], 1)


def two_bits(codes: np.ndarray) -> np.ndarray:
    """256 codes below 4 in 64 bytes: in each half, a byte has the elements 32 apart."""
    quarters = codes.reshape(-1, 2, 4, 32)
    return bytes_of(quarters[:, :, 0] | quarters[:, :, 1] << 2 | quarters[:, :, 2] << 4 | quarters[:, :, 3] << 6)


def nibbles(codes: np.ndarray, apart: int) -> np.ndarray:
    """Packs codes below 16, two per byte, `apart` elements apart."""
    pairs = codes.reshape(len(codes), -1, 2, apart)
    return bytes_of(pairs[:, :, 0] | pairs[:, :, 1] << 4)


def one_bit(codes: np.ndarray) -> np.ndarray:
    """256 codes below 2 in 32 bytes: a byte has the elements 32 apart."""
    return np.bitwise_or.reduce(codes.reshape(-1, 8, 32) << np.arange(8, dtype=np.uint8)[:, None], 1)


def q2_k(x: np.ndarray) -> np.ndarray:
    d, dmin, scales, minima, codes = ranges_of(x.reshape(-1, 16, 16), 3, 15)
    return np.concatenate([scales | minima << 4, two_bits(codes), halves(d), halves(dmin)], 1)


def q3_k(x: np.ndarray) -> np.ndarray:
    x = x.reshape(-1, 16, 16)
    scales = best_scales(x, -4, lambda codes: round_codes(codes, -4, 3))
    d = shared_scale(scales, 31)
    multiples = round_codes(quotient(scales, np.broadcast_to(d, scales.shape)), -32, 31)
    step = np.broadcast_to(d * multiples, x.shape)
    codes = (round_codes(quotient(x, step), -4, 3) + 4).astype(np.uint8)
    multiples = (multiples[..., 0] + 32).astype(np.uint8)
    low = (multiples[:, :8] & 15) | (multiples[:, 8:] & 15) << 4
    high = np.bitwise_or.reduce((multiples >> 4).reshape(-1, 4, 4) << np.array([[0], [2], [4], [6]], np.uint8), 1)
    return np.concatenate([one_bit(codes >> 2), two_bits(codes & 3), low, high, halves(d)], 1)


def q4_k(x: np.ndarray) -> np.ndarray:
    d, dmin, scales, minima, codes = ranges_of(x.reshape(-1, 8, 32), 15, 63)
    return np.concatenate([halves(d), halves(dmin), six_bit_pairs(scales, minima), nibbles(codes, 32)], 1)


def q5_k(x: np.ndarray) -> np.ndarray:
    d, dmin, scales, minima, codes = ranges_of(x.reshape(-1, 8, 32), 31, 63)
    return np.concatenate([halves(d), halves(dmin), six_bit_pairs(scales, minima), one_bit(codes >> 4),
                           nibbles(codes & 15, 32)], 1)


def q6_k(x: np.ndarray) -> np.ndarray:
    x = x.reshape(-1, 16, 16)
    scales = best_scales(x, -32, lambda codes: round_codes(codes, -32, 31))
    d = shared_scale(scales, 127)
    multiples = round_codes(quotient(scales, np.broadcast_to(d, scales.shape)), -127, 127)
    step = np.broadcast_to(d * multiples, x.shape)
    codes = (round_codes(quotient(x, step), -32, 31) + 32).astype(np.uint8)
    return np.concatenate([nibbles(codes & 15, 64), two_bits(codes >> 4),
                           bytes_of(multiples[..., 0].astype(np.int8)), halves(d)], 1)


def iq4_nl(x: np.ndarray) -> np.ndarray:
    x = x.reshape(-1, 1, 32)
    d = half(best_scales(x, -127, lambda values: IQ4_VALUES[nearest_iq4(values)]))
    codes = nearest_iq4(quotient(x, np.broadcast_to(d, x.shape))).astype(np.uint8)
    return np.concatenate([halves(d), nibbles(codes, 16)], 1)


def iq4_xs(x: np.ndarray) -> np.ndarray:
    x = x.reshape(-1, 8, 32)
    scales = best_scales(x, -127, lambda values: IQ4_VALUES[nearest_iq4(values)])
    d = shared_scale(scales, 31)
    multiples = round_codes(quotient(scales, np.broadcast_to(d, scales.shape)), -32, 31)
    codes = nearest_iq4(quotient(x, np.broadcast_to(d * multiples, x.shape))).astype(np.uint8)
    multiples = (multiples[..., 0] + 32).astype(np.uint16)
    high = np.bitwise_or.reduce((multiples >> 4) << (2 * np.arange(8, dtype=np.uint16)), 1, keepdims=True)
    low = (multiples & 15).astype(np.uint8)
    return np.concatenate([halves(d), bytes_of(high.astype("<u2")), low[:, ::2] | low[:, 1::2] << 4,
                           nibbles(codes, 16)], 1)


OURS = {"Q2_K": q2_k, "Q3_K": q3_k, "Q4_K": q4_k, "Q5_K": q5_k, "Q6_K": q6_k, "IQ4_NL": iq4_nl, "IQ4_XS": iq4_xs}
TYPES = (*PLAIN, *BY_GGUF_PY, *OURS)


def block_elements(name: str) -> int:
    return gguf.GGML_QUANT_SIZES[Type[name]][0]


def bits_per_weight(name: str) -> float:
    elements, size = gguf.GGML_QUANT_SIZES[Type[name]]
    return size * 8 / elements


def quantise(values: np.ndarray, name: str) -> np.ndarray:
    """The bytes of a float32 matrix whose rows are whole blocks: [rows, bytes]."""
    values = np.ascontiguousarray(values, np.float32)
    if values.shape[-1] % block_elements(name):
        raise ValueError(f"rows of {values.shape[-1]} elements aren't blocks of {block_elements(name)} ({name})")
    if name not in OURS:
        return bytes_of(gguf.quants.quantize(values, Type[name]))
    return OURS[name](values).reshape(len(values), -1)


def check() -> None:
    """Checks that each type's error on random values fits its bits, and that zeros stay zeros."""
    random = np.random.default_rng(1)
    values = random.standard_normal((64, 1024)).astype(np.float32) * np.float32(0.05)
    values[:, 384:512] = 0
    for name in TYPES:
        found = gguf.dequantize(quantise(values, name), Type[name])
        error = float(np.sqrt(((found - values) ** 2).mean() / (values ** 2).mean()))
        print(f"{name:7} {bits_per_weight(name):6.3f} bits, relative error {error:.5f}")
        if error > max(0.004, 3 * 2.0 ** -bits_per_weight(name)) or found[:, 384:512].any():
            raise SystemExit(f"{name}: blocks aren't what gguf.dequantize takes them for")


if __name__ == "__main__":
    check()
