#!/usr/bin/env python3
"""Makes tests/goldens/generation_config/: the fields of transformers' GenerationConfig, and what some of them do.

    python tools/goldens/make_generation_config_goldens.py [--out DIR]

Needs torch and transformers (5.24.0 made these). `fields.json` lists the class's fields. `cases.json` has, for each
generation_config.json, the tokens that generate() adds to a prompt, without the end token, with the model in
tests/goldens/embeddings/reranker; with `stop_strings` the text before the stop string instead.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import torch
import transformers

GOLDENS = Path(__file__).resolve().parents[2] / "tests" / "goldens"
MODEL = GOLDENS / "embeddings" / "reranker"
PROMPT = "the old house"
NUM_TOKENS = 12


def fields() -> list[str]:
    return list(vars(transformers.GenerationConfig()))


def make_cases() -> list[dict]:
    tokenizer = transformers.AutoTokenizer.from_pretrained(MODEL)
    model = transformers.AutoModelForCausalLM.from_pretrained(MODEL, dtype=torch.float32, attn_implementation="eager")
    prompt = tokenizer.encode(PROMPT, add_special_tokens=False)

    def generate(config: dict) -> list[int]:
        added = model.generate(torch.tensor([prompt]), attention_mask=torch.ones(1, len(prompt), dtype=torch.long),
                               generation_config=transformers.GenerationConfig(**config), tokenizer=tokenizer)
        return added[0, len(prompt):].tolist()

    plain = {"do_sample": False, "max_new_tokens": NUM_TOKENS, "eos_token_id": 4, "pad_token_id": 0}
    usual = generate(plain)
    assert len(usual) == NUM_TOKENS and len(set(usual)) > 5, usual
    ends = {**plain, "eos_token_id": [usual[4]]}
    stop = next(text for text in map(tokenizer.decode, usual[2:]) if text.isascii() and text.isprintable())
    without_length = {key: value for key, value in plain.items() if key != "max_new_tokens"}
    configs = {
        "plain": plain,
        "suppress_tokens": {**plain, "suppress_tokens": [usual[0], usual[3]]},
        "begin_suppress_tokens": {**plain, "begin_suppress_tokens": [usual[0]]},
        "bad_words_ids": {**plain, "bad_words_ids": [usual[1:3], [usual[5]], [4]]},
        "eos_token_id": ends,
        "min_new_tokens": {**ends, "min_new_tokens": 9},
        "min_length": {**ends, "min_length": len(prompt) + 7},
        "max_length": {**without_length, "max_length": len(prompt) + 5},
        "repetition_penalty": {**plain, "repetition_penalty": 1.5},
        "stop_strings": {**plain, "stop_strings": stop},
    }
    cases = []
    for name, config in configs.items():
        ids = generate(config)
        case = {"name": name, "config": config}
        ends_at = config["eos_token_id"] if isinstance(config["eos_token_id"], list) else [config["eos_token_id"]]
        if name == "stop_strings":
            case["text"] = tokenizer.decode(ids).split(stop)[0]
        else:
            case["ids"] = ids[:-1] if ids[-1] in ends_at else ids
        if name not in ("plain", "stop_strings"):
            assert case["ids"] != usual, name
        cases.append(case)
    return cases


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=GOLDENS / "generation_config")
    out: Path = parser.parse_args().out
    torch.set_num_threads(1)
    out.mkdir(parents=True, exist_ok=True)
    (out / "fields.json").write_text(json.dumps(fields(), indent=1) + "\n")
    (out / "cases.json").write_text(json.dumps(make_cases(), indent=1) + "\n")


if __name__ == "__main__":
    main()
