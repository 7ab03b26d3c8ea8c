#!/usr/bin/env python3
"""Makes tests/goldens/sampling/chains.json: the tokens that transformers' logits processors keep of a row.

    python tools/goldens/make_sampling_goldens.py [--out FILE]

Needs the versions of requirements.txt. The processors run one after the other in Paceline's orders
(transformers' own differs). A row is rejected, and the next seed tried, unless
 - its kept tokens stay the same when top_p and min_p change by 1e-4 of themselves,
 - no two logits are equal (transformers breaks ties by an unstable sort),
 - at least three tokens are kept, and leaving an option out changes a probability by 1e-3.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import torch
import transformers
from transformers.generation.logits_process import (
    LogitsProcessor,
    MinPLogitsWarper,
    RepetitionPenaltyLogitsProcessor,
    SequenceBiasLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

SHAKE = 1e-4
MIN_KEPT = 3
MIN_CHANGE = 1e-3
DEFAULT_OUT = Path(__file__).resolve().parents[2] / "tests/goldens/sampling/chains.json"

# Name, vocabulary, standard deviation of the logits, options.
CASES = [
    ("temperature", 64, 2.0, {"temperature": 0.6}),
    ("hot", 64, 4.0, {"temperature": 1.9}),
    ("top_k", 96, 2.0, {"top_k": 7}),
    ("top_p", 96, 2.0, {"top_p": 0.85}),
    ("top_p_flat", 128, 0.5, {"top_p": 0.5}),
    ("min_p", 96, 2.0, {"min_p": 0.08}),
    ("repetition", 64, 2.0, {"repetition_penalty": 1.4, "num_seen": 20}),
    ("repetition_reward", 64, 2.0, {"repetition_penalty": 0.7, "num_seen": 20, "top_k": 5}),
    ("bias", 64, 2.0, {"logit_bias": {"3": 4.5, "17": -100.0, "40": -1.25}, "top_p": 0.9}),
    ("top_k_then_top_p", 96, 2.0, {"temperature": 0.8, "top_k": 12, "top_p": 0.7}),
    ("min_p_then_top_p", 96, 2.0, {"temperature": 1.5, "min_p": 0.05, "top_p": 0.6}),
    (
        "all",
        160,
        3.0,
        {
            "temperature": 0.9,
            "min_p": 0.02,
            "top_k": 30,
            "top_p": 0.9,
            "repetition_penalty": 1.2,
            "num_seen": 60,
            "logit_bias": {"5": 3.0, "90": 2.0},
        },
    ),
    ("mlx_top_p", 96, 2.0, {"order": "mlx", "temperature": 0.5, "top_p": 0.8}),
    ("mlx_min_p", 96, 2.0, {"order": "mlx", "temperature": 1.6, "min_p": 0.06}),
    (
        "mlx_all",
        160,
        2.0,
        {
            "order": "mlx",
            "temperature": 1.3,
            "top_p": 0.9,
            "min_p": 0.03,
            "top_k": 20,
            "repetition_penalty": 1.1,
            "num_seen": 40,
            "logit_bias": {"11": 2.5},
        },
    ),
]


def chain(options: dict, top_p: float, min_p: float) -> list[LogitsProcessor]:
    processors: list[LogitsProcessor] = []
    if "repetition_penalty" in options:
        processors.append(RepetitionPenaltyLogitsProcessor(options["repetition_penalty"]))
    if "logit_bias" in options:
        bias = [[[int(token)], value] for token, value in options["logit_bias"].items()]
        processors.append(SequenceBiasLogitsProcessor(bias))
    temperature = [TemperatureLogitsWarper(options["temperature"])] if "temperature" in options else []
    cut_top_p = [TopPLogitsWarper(top_p)] if "top_p" in options else []
    cut_min_p = [MinPLogitsWarper(min_p)] if "min_p" in options else []
    cut_top_k = [TopKLogitsWarper(options["top_k"])] if "top_k" in options else []
    if options.get("order") == "mlx":
        return processors + cut_top_p + cut_min_p + cut_top_k + temperature
    return processors + temperature + cut_min_p + cut_top_k + cut_top_p


def probabilities(logits: torch.Tensor, seen: torch.Tensor, options: dict, shake: float) -> torch.Tensor:
    top_p = min(options.get("top_p", 1.0) * (1 + shake), 1.0)
    min_p = min(options.get("min_p", 0.0) * (1 + shake), 1.0)
    scores = logits[None]
    for processor in chain(options, top_p, min_p):
        scores = processor(seen[None], scores)
    return torch.softmax(scores[0].double(), dim=0)


def is_telling(logits: torch.Tensor, seen: torch.Tensor, options: dict, found: torch.Tensor) -> bool:
    # Of adjacent cuts, or cuts at the same temperature, only the strictest has an effect.
    cuts = {"min_p", "top_k", "top_p"} if options.get("order") == "mlx" else {"min_p", "top_k"}
    for group in [cuts & options.keys()] + [{key} for key in options.keys() - cuts - {"num_seen"}]:
        if not group:
            continue
        others = {key: value for key, value in options.items() if key not in group}
        change = (probabilities(logits, seen, others, 0.0) - found).abs().max().item()
        if change < MIN_CHANGE:
            return False
    return int((found > 0).sum()) >= MIN_KEPT


def make_case(name: str, vocab_size: int, spread: float, options: dict) -> dict:
    for seed in range(1000):
        generator = torch.Generator().manual_seed(seed)
        logits = (torch.randn(vocab_size, generator=generator) * spread * 10000).round() / 10000
        seen = torch.randint(vocab_size, (options.get("num_seen", 1),), generator=generator)
        found = probabilities(logits, seen, options, 0.0)
        kept = torch.nonzero(found).flatten().tolist()
        others = [torch.nonzero(probabilities(logits, seen, options, s)).flatten().tolist() for s in (SHAKE, -SHAKE)]
        is_certain = len(set(logits.tolist())) == vocab_size and all(other == kept for other in others)
        if is_certain and is_telling(logits, seen, options, found):
            return {
                "name": name,
                "seed": seed,
                "options": {key: value for key, value in options.items() if key != "num_seen"},
                "seen_ids": seen.tolist() if "num_seen" in options else [],
                "logits": [float(f"{x:.4f}") for x in logits.tolist()],
                "kept_ids": kept,
                "probabilities": [float(f"{found[i]:.8g}") for i in kept],
            }
    raise SystemExit(f"{name}: no seed gives a row whose kept tokens are beyond doubt")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=DEFAULT_OUT)
    args = parser.parse_args()
    document = {
        "made_by": "tools/goldens/make_sampling_goldens.py",
        "transformers": transformers.__version__,
        "torch": torch.__version__.split("+")[0],
        "cases": [make_case(*case) for case in CASES],
    }
    args.out.parent.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(case) for case in document.pop("cases")]
    head = json.dumps(document)[:-1]
    args.out.write_text(head + ', "cases": [\n' + ",\n".join(lines) + "\n]}\n")


if __name__ == "__main__":
    main()
