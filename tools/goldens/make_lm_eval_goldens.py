#!/usr/bin/env python3
"""What lm-evaluation-harness's hf model says of the bundled model, in float32: tests/contract/lm_eval_hf.json.

    pip install lm_eval==0.4.13 torch==2.15.0 transformers==5.24.0
    python3 tools/goldens/make_lm_eval_goldens.py

Windows of 1,023 predicted tokens after one of context: all 1,024 tokens of the model's context.
"""
from __future__ import annotations

import json
from pathlib import Path

from lm_eval.api.instance import Instance
from lm_eval.models.huggingface import HFLM

ROOT = Path(__file__).resolve().parents[2]
CONTEXTS = ["It was a dark and stormy", "The old house stood by the ", ""]
ENDINGS = [" night", "sea", " screamed, and nobody heard"]
GREEDY = [("Once upon a time", ", and the last of"), ("The captain", " had been")]  # what the model itself says
TEXTS = ["The old house stood by the sea, and nobody had lived in it since the captain sailed away.", "Chapter 1",
         "".join(f"Chapter {i}. It was the year {1800 + i}, and the ship lay in the harbour. " for i in range(75))]
GENERATIONS = [("It was a dark and stormy", {"until": ["."], "max_gen_toks": 20}), ("Once upon a time", {"until": [], "max_gen_toks": 12}),
               ("The captain", {"until": [" the", "\n"], "max_gen_toks": 30, "do_sample": False, "temperature": 0.0})]


def main() -> None:
    model = HFLM(pretrained=str(ROOT / "models/paceline-10m"), dtype="float32", device="cpu", batch_size=1, max_length=1023)

    def asked(kind: str, arguments: list[tuple]) -> list:
        return list(zip(arguments, getattr(model, kind)([Instance(kind, {}, given, i) for i, given in enumerate(arguments)]), strict=True))

    golden = {
        "loglikelihood": [{"arguments": given, "score": score, "is_greedy": bool(is_greedy)} for given, (score, is_greedy) in
                          asked("loglikelihood", [(context, ending) for context in CONTEXTS for ending in ENDINGS] + GREEDY)],
        "loglikelihood_rolling": [{"arguments": given, "score": score} for given, score in
                                  asked("loglikelihood_rolling", [(text,) for text in TEXTS])],
        "generate_until": [{"arguments": given, "text": text} for given, text in asked("generate_until", GENERATIONS)]}
    (ROOT / "tests/contract/lm_eval_hf.json").write_text(json.dumps(golden, indent=1) + "\n")


if __name__ == "__main__":
    main()
