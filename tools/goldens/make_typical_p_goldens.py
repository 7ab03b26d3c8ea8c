#!/usr/bin/env python3
"""Makes tests/goldens/sampling/typical_p.json: locally typical sampling (Meister et al., 2022, arXiv 2202.00666).

    python tools/goldens/make_typical_p_goldens.py

Needs numpy. The filter is that of TypicalLogitsWarper of transformers with min_tokens_to_keep 1, the last of the chain:
it keeps tokens by the distance of their -log p from the entropy until their sum reaches typical_p, with ties.
"""
import numpy as np
from sampling_rows import softmax, write_goldens


def typical_p(logits, kept, mass):
    p = softmax(logits, kept)
    surprise = -np.log(p, where=kept, out=np.zeros_like(p))
    distance = np.where(kept, np.abs(surprise - (p * surprise).sum()), np.inf)
    order = np.argsort(distance, kind="stable")
    last = min(int((np.cumsum(p[order]) < mass).sum()), int(kept.sum()) - 1)
    return kept & (distance <= distance[order[last]])


CASES = [
    ("half", 96, 2.0, {"typical_p": 0.5}),
    ("most", 96, 2.0, {"typical_p": 0.95}),
    ("little", 200, 1.0, {"typical_p": 0.2}),
    ("flat", 128, 0.3, {"typical_p": 0.6}),
    ("peaked", 300, 5.0, {"typical_p": 0.9}),
    ("wide", 1000, 2.5, {"typical_p": 0.7}),
    ("drops_the_likeliest", 400, 1.5, {"typical_p": 0.3}),
    ("cold", 96, 2.0, {"temperature": 0.6, "typical_p": 0.8}),
    ("hot", 160, 3.0, {"temperature": 1.8, "typical_p": 0.5}),
    ("behind_top_k", 160, 2.0, {"top_k": 40, "typical_p": 0.6}),
    ("behind_min_p", 160, 2.0, {"temperature": 1.4, "min_p": 0.02, "typical_p": 0.7}),
    ("behind_top_p", 160, 2.0, {"top_p": 0.9, "typical_p": 0.5}),
    ("behind_all", 300, 2.0, {"temperature": 0.9, "min_p": 0.01, "top_k": 60, "top_p": 0.95, "typical_p": 0.6}),
    ("mlx", 160, 2.0, {"order": "mlx", "temperature": 0.5, "typical_p": 0.7}),
    ("mlx_behind_all", 300, 2.0,
     {"order": "mlx", "temperature": 1.5, "top_p": 0.95, "min_p": 0.01, "top_k": 60, "typical_p": 0.5}),
]

if __name__ == "__main__":
    write_goldens("typical_p", __file__, CASES, first={}, last={"typical_p": typical_p})
