#!/usr/bin/env python3
"""Compares our bf16 logits with transformers' float32 ones; fails if they differ too much.

    python tools/compare_bf16.py REFERENCE.safetensors OURS.f32

REFERENCE is the output of tools/goldens/make_bf16_reference.py --full. OURS is raw little-endian
float32 [rows, vocabulary], the same rows in the same order. Needs numpy and safetensors.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file

MAX_MEAN_KL = 1e-3
MIN_TOP1 = 0.985
MARGIN = 0.05  # of the reference's logits, above which the most likely token must be the same
CHUNK_ROWS = 512


@dataclass(frozen=True)
class Comparison:
    """Per row of the reference."""

    kl: np.ndarray  # sum of p log(p / q), p being the reference
    same_top1: np.ndarray  # bool
    margin: np.ndarray  # of the reference's first over its second logit
    reference_nats: np.ndarray  # -log p of the next token
    our_nats: np.ndarray


def log_softmax(logits: np.ndarray) -> np.ndarray:
    shifted = logits.astype(np.float64) - logits.max(axis=1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))


def compare_rows(reference: np.ndarray, ours: np.ndarray, ids: np.ndarray) -> Comparison:
    p, q = log_softmax(reference), log_softmax(ours)
    first_two = np.partition(reference, -2, axis=1)[:, -2:]
    rows = np.arange(len(ids))
    return Comparison(
        kl=(np.exp(p) * (p - q)).sum(axis=1),
        same_top1=reference.argmax(axis=1) == ours.argmax(axis=1),
        margin=first_two[:, 1] - first_two[:, 0],
        reference_nats=-p[rows, ids],
        our_nats=-q[rows, ids],
    )


def compare(reference: np.ndarray, ours: np.ndarray, ids: np.ndarray) -> Comparison:
    chunks = []
    for start in range(0, len(ids), CHUNK_ROWS):
        rows = slice(start, start + CHUNK_ROWS)
        chunks.append(compare_rows(reference[rows], ours[rows], ids[rows]))
    fields = Comparison.__dataclass_fields__
    return Comparison(**{
        name: np.concatenate([getattr(chunk, name) for chunk in chunks]) for name in fields})


def read_ours(path: Path, shape: tuple[int, int]) -> np.ndarray:  # [rows, vocabulary]
    found, expected = path.stat().st_size, 4 * shape[0] * shape[1]
    if found != expected:
        raise SystemExit(
            f"{path}: {found} bytes, expected {expected} for {shape[0]} rows of {shape[1]} float32")
    ours = np.memmap(path, dtype="<f4", mode="r", shape=shape)
    if not np.isfinite(ours).all():
        raise SystemExit(f"{path}: holds values that are not finite")
    return ours


def report(result: Comparison) -> bool:
    """Prints the figures; returns whether all are good enough."""
    clear = result.margin > MARGIN
    missed = int((clear & ~result.same_top1).sum())
    mean_kl, top1 = float(result.kl.mean()), float(result.same_top1.mean())
    clear_top1 = float(result.same_top1[clear].mean()) if clear.any() else 1.0
    reference_nats, our_nats = float(result.reference_nats.mean()), float(result.our_nats.mean())
    print(f"rows                    {len(result.kl)}")
    print(f"mean KL                 {mean_kl:.3e} nats (allowed: below {MAX_MEAN_KL:g}), "
          f"largest {result.kl.max():.3e}")
    print(f"top-1 equal             {top1:.4%} (allowed: above {MIN_TOP1:.1%})")
    print(f"top-1 equal where clear {clear_top1:.4%} of {int(clear.sum())} rows with a margin "
          f"above {MARGIN:g}, {missed} missed (allowed: 0)")
    print(f"nats a token            {reference_nats:.5f} reference, {our_nats:.5f} ours "
          f"({our_nats / reference_nats - 1:+.4%})")
    return mean_kl < MAX_MEAN_KL and top1 > MIN_TOP1 and missed == 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("reference", type=Path)
    parser.add_argument("ours", type=Path)
    args = parser.parse_args()
    tensors = load_file(args.reference)
    reference, ids = tensors["logits"], tensors["ids"]
    good = report(compare(reference, read_ours(args.ours, reference.shape), ids))
    print("good" if good else "NOT GOOD ENOUGH")
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
