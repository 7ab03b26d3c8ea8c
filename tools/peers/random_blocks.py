"""Random weights as the bytes of a GGUF type: uniform codes, and scales that give rows a norm of about 1, like trained
weights. gguf-py can't quantise to all of these types, and speed doesn't depend on values."""
import numpy as np

CHUNK = 1 << 24  # numbers drawn at a time


def halves(values):
    return values.astype("<f2").view(np.uint8).reshape(-1, 2)


def spread(rng, count):
    """Factors around 1, so that no two blocks have the same scale."""
    return rng.uniform(0.75, 1.25, count).astype(np.float32)


def signs(rng, count):
    return rng.integers(0, 2, count).astype(np.float32) * 2 - 1


def plain(kind):
    def blocks(rng, count, deviation):
        values = rng.standard_normal(count, dtype=np.float32) * deviation
        if kind == "BF16":
            return (values.view(np.uint32) >> 16).astype("<u2").view(np.uint8)
        return values.astype("<f2" if kind == "F16" else "<f4").view(np.uint8)
    return blocks


def q8_0(rng, count, deviation):
    num = count // 32
    codes = rng.integers(-127, 128, (num, 32), dtype=np.int8).view(np.uint8)
    return np.hstack([halves(spread(rng, num) * deviation / 73.3), codes])


def q4_0(rng, count, deviation):
    num = count // 32
    codes = rng.integers(0, 256, (num, 16), dtype=np.uint8)
    return np.hstack([halves(spread(rng, num) * signs(rng, num) * deviation / 4.64), codes])


def q4_k(rng, count, deviation):
    """d * scale * code - dmin * min; with min = scale and dmin = 7.5 d the mean is 0."""
    num = count // 256
    d = spread(rng, num) * deviation / (48.4 * 4.61)
    scale = rng.integers(32, 64, (num, 8), dtype=np.uint8)
    low, high = scale[:, :4], scale[:, 4:]
    first = low | (high >> 4) << 6  # of scales, and the same of mins
    packed = np.hstack([first, first, (high & 15) | (high & 15) << 4])
    codes = rng.integers(0, 256, (num, 128), dtype=np.uint8)
    return np.hstack([halves(d), halves(7.5 * d), packed, codes])


def q6_k(rng, count, deviation):
    num = count // 256
    codes = rng.integers(0, 256, (num, 192), dtype=np.uint8)
    scales = rng.integers(32, 128, (num, 16)).astype(np.int8) * signs(rng, (num, 16)).astype(np.int8)
    d = spread(rng, num) * deviation / (84.2 * 18.5)
    return np.hstack([codes, scales.view(np.uint8), halves(d)])


# Elements of a block, and the function that makes its bytes.
TYPES = {"F32": (1, plain("F32")), "F16": (1, plain("F16")), "BF16": (1, plain("BF16")), "Q8_0": (32, q8_0),
         "Q4_0": (32, q4_0), "Q4_K": (256, q4_k), "Q6_K": (256, q6_k)}


def random_rows(rng, kind, rows, columns):
    """uint8 [rows, bytes of a row]."""
    block, draw = TYPES[kind]
    if columns % block != 0:
        raise ValueError(f"{kind} has blocks of {block}: rows of {columns} can't be cut into them")
    at_once = max(1, CHUNK // columns)
    parts = [draw(rng, min(at_once, rows - row) * columns, columns ** -0.5) for row in range(0, rows, at_once)]
    return np.concatenate([part.reshape(-1) for part in parts]).reshape(rows, -1)
