"""Rows of logits for goldens of the sampler, and the tokens that Paceline's filters keep, in numpy's float64.

A filter takes the logits at the filters' temperature, the tokens kept so far and its option, and returns the kept ones.
A row is rejected, and the next seed tried, unless its kept tokens stay the same when any option of a filter changes by
1e-4 of itself, at least three are kept, and other tokens are kept without the golden's option.
"""
import json
from pathlib import Path

import numpy as np

SHAKE = 1e-4
MIN_KEPT = 3
GOLDENS = Path(__file__).resolve().parents[2] / "tests/goldens/sampling"


def softmax(logits, kept):
    shifted = np.where(kept, logits - logits[kept].max(), -np.inf)
    weights = np.exp(shifted)
    return weights / weights.sum()


def min_p(logits, kept, share):
    p = softmax(logits, kept)
    return kept & (p >= share * p.max())


def top_k(logits, kept, count):
    order = np.argsort(np.where(kept, -logits, np.inf), kind="stable")[:count]
    return kept & np.isin(np.arange(len(logits)), order)


def top_p(logits, kept, share):
    p = softmax(logits, kept)
    order = np.argsort(-p, kind="stable")
    count = int((np.cumsum(p[order]) < share).sum()) + 1
    return kept & np.isin(np.arange(len(logits)), order[:count])


FILTERS = {"min_p": min_p, "top_k": top_k, "top_p": top_p}


def kept_tokens(logits, options, first, last):
    """The kept tokens and their probabilities. `first`, `last`: {option: filter}, around min-p, top-k and top-p."""
    temperature = options.get("temperature", 1.0)
    is_mlx = options.get("order") == "mlx"
    middle = ["top_p", "min_p", "top_k"] if is_mlx else ["min_p", "top_k", "top_p"]
    filters = {**first, **{name: FILTERS[name] for name in middle}, **last}
    seen = logits if is_mlx else logits / temperature
    kept = np.isfinite(logits)
    for name, filter_ in filters.items():
        if name in options:
            kept = filter_(seen, kept, options[name])
    return kept, softmax(logits / temperature, kept)


def is_certain(logits, options, first, last, kept):
    for name in options.keys() & {*first, *last, "min_p", "top_p"}:
        for shake in (1 + SHAKE, 1 - SHAKE):
            shaken = {**options, name: min(options[name] * shake, 1.0) if name.endswith("_p") else options[name] * shake}
            if not np.array_equal(kept_tokens(logits, shaken, first, last)[0], kept):
                return False
    return len(np.unique(logits)) == len(logits) and kept.sum() >= MIN_KEPT


def make_case(about, name, size, spread, options, first, last):
    for seed in range(1000):
        rng = np.random.default_rng(seed)
        logits = np.round(rng.normal(0, spread, size), 4).astype(np.float32).astype(np.float64)
        kept, p = kept_tokens(logits, options, first, last)
        without = {key: value for key, value in options.items() if key != about}
        if np.array_equal(kept_tokens(logits, without, first, last)[0], kept):
            continue
        if is_certain(logits, options, first, last, kept):
            return {"name": name, "seed": seed, "options": options, "seen_ids": [],
                    "logits": [float(f"{x:.4f}") for x in logits], "kept_ids": np.flatnonzero(kept).tolist(),
                    "probabilities": [float(f"{x:.8g}") for x in p[kept]]}
    raise SystemExit(f"{name}: no seed gives a row whose kept tokens are beyond doubt")


def write_goldens(about, script, cases, first, last):
    """`cases`: name, tokens, standard deviation of the logits, options."""
    lines = [json.dumps(make_case(about, *case, first, last)) for case in cases]
    head = json.dumps({"made_by": f"tools/goldens/{Path(script).name}", "numpy": np.__version__})[:-1]
    (GOLDENS / f"{about}.json").write_text(head + ', "cases": [\n' + ",\n".join(lines) + "\n]}\n")


# Without further filters: a second check of make_sampling_goldens.py's cases.
CASES = [
    ("alone", 96, 2.0, {"top_p": 0.8}),
    ("most", 200, 1.0, {"top_p": 0.95}),
    ("peaked", 300, 5.0, {"top_p": 0.97}),
    ("wide", 1000, 2.5, {"top_p": 0.7}),
    ("cold", 96, 2.0, {"temperature": 0.6, "top_p": 0.9}),
    ("hot", 160, 3.0, {"temperature": 1.8, "top_p": 0.6}),
    ("behind_top_k", 160, 2.0, {"top_k": 40, "top_p": 0.6}),
    ("behind_min_p", 160, 2.0, {"temperature": 1.4, "min_p": 0.02, "top_p": 0.7}),
    ("behind_both", 300, 2.0, {"temperature": 0.9, "min_p": 0.01, "top_k": 60, "top_p": 0.8}),
    ("mlx", 160, 2.0, {"order": "mlx", "temperature": 0.5, "top_p": 0.7}),
    ("mlx_before_top_k", 160, 2.0, {"order": "mlx", "temperature": 0.5, "top_p": 0.5, "top_k": 30}),
    ("mlx_before_both", 300, 2.0, {"order": "mlx", "temperature": 1.5, "top_p": 0.6, "min_p": 0.01, "top_k": 90}),
]

if __name__ == "__main__":
    write_goldens("top_p", __file__, CASES, first={}, last={})
