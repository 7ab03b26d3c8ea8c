#!/usr/bin/env python3
"""Makes tests/goldens/sampling/top_n_sigma.json: top-n-sigma (Tang et al., 2024, arXiv 2411.07641).

    python tools/goldens/make_top_n_sigma_goldens.py

Needs numpy. The filter is the first one of the chain: logits that are at most n standard deviations of all logits below
the largest. The standard deviation is that of the population, as in llama.cpp.
"""
import numpy as np
from make_typical_p_goldens import typical_p
from sampling_rows import write_goldens


def top_n_sigma(logits, kept, n):
    return kept & (logits >= logits[kept].max() - n * np.std(logits[kept]))


CASES = [
    ("one", 400, 2.0, {"top_n_sigma": 1.0}),
    ("near", 1000, 2.0, {"top_n_sigma": 0.8}),
    ("two", 96, 2.0, {"top_n_sigma": 2.0}),
    ("three", 200, 1.0, {"top_n_sigma": 3.0}),
    ("flat", 128, 0.1, {"top_n_sigma": 1.5}),
    ("peaked", 300, 6.0, {"top_n_sigma": 1.2}),
    ("cold", 160, 2.0, {"temperature": 0.5, "top_n_sigma": 1.5}),
    ("hot", 160, 2.0, {"temperature": 2.0, "top_n_sigma": 1.5}),
    ("before_top_k", 160, 2.0, {"top_k": 60, "top_n_sigma": 1.6}),
    ("before_min_p", 160, 2.0, {"min_p": 0.01, "top_n_sigma": 1.6}),
    ("before_top_p", 160, 2.0, {"top_p": 0.8, "top_n_sigma": 1.6}),
    ("before_typical_p", 160, 2.0, {"typical_p": 0.7, "top_n_sigma": 1.6}),
    ("before_all", 300, 2.0,
     {"temperature": 1.3, "top_n_sigma": 1.8, "min_p": 0.01, "top_k": 60, "top_p": 0.9, "typical_p": 0.8}),
    ("mlx_before_top_p", 160, 2.0, {"order": "mlx", "temperature": 0.7, "top_p": 0.8, "top_n_sigma": 1.6}),
    ("mlx_before_all", 300, 2.0, {"order": "mlx", "temperature": 1.5, "top_n_sigma": 1.8, "top_p": 0.9, "min_p": 0.01,
                                  "top_k": 60, "typical_p": 0.8}),
]

if __name__ == "__main__":
    write_goldens("top_n_sigma", __file__, CASES, first={"top_n_sigma": top_n_sigma}, last={"typical_p": typical_p})
