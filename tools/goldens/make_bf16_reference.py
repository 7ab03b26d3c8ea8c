#!/usr/bin/env python3
"""Stores the float32 results of transformers for a bundled model, as the reference for bf16.

    python tools/goldens/make_bf16_reference.py MODEL_DIR VALID_TXT --full REFERENCE.safetensors
    python tools/goldens/make_bf16_reference.py MODEL_DIR VALID_TXT --small GOLDEN.json

Rows are the text's first tokens, in windows of 1,023 each preceded by <|endoftext|>, as
`paceline perplexity` cuts them: row i holds the prediction of token i from the tokens before it in
its window. --full writes `logits` [rows, vocabulary] F32 and `ids` [rows] I32, the tokens predicted
(165 MB for 10,000 rows; not for the repository). --small writes JSON: `input_ids` of one window,
and for each of its positions `top_ids` and `top_logprobs` of the 8 likeliest tokens.
"""

from __future__ import annotations

import argparse
import json
import lzma
from pathlib import Path
from typing import Any

import torch
import transformers
from safetensors.torch import save_file
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM, PreTrainedModel

SEPARATOR = "<|endoftext|>"
WINDOW_TOKENS = 1023  # and the separator before them
TOP = 8
LOGPROB_DIGITS = 6
MAX_SMALL_BYTES = 100_000


def read_text(path: Path) -> str:
    content = path.read_bytes()
    return (lzma.decompress(content) if path.suffix == ".xz" else content).decode("utf-8")


def encode(tokenizer: Tokenizer, text: str) -> list[int]:
    """Recognises special tokens within the text, and adds none."""
    return tokenizer.encode(text, add_special_tokens=False).ids


def windows_of(ids: list[int], separator_id: int) -> list[list[int]]:
    """Inputs whose logits predict `ids`, one row a token: the last token of each is left out."""
    return [[separator_id, *ids[start:start + WINDOW_TOKENS][:-1]]
            for start in range(0, len(ids), WINDOW_TOKENS)]


@torch.no_grad()
def logits_of(model: PreTrainedModel, ids: list[int]) -> torch.Tensor:  # [len(ids), vocab]
    return model(torch.tensor([ids]), use_cache=False).logits[0]


def write_full(model: PreTrainedModel, ids: list[int], separator_id: int, path: Path) -> None:
    rows = torch.cat([logits_of(model, window) for window in windows_of(ids, separator_id)])
    nats = torch.nn.functional.cross_entropy(rows.double(), torch.tensor(ids))
    save_file({"logits": rows, "ids": torch.tensor(ids, dtype=torch.int32)}, path,
              metadata={"window_tokens": str(WINDOW_TOKENS), "separator": SEPARATOR,
                        "transformers": transformers.__version__})
    print(f"{path}: {len(ids)} rows, {nats:.4f} nats a token")


def small_golden(model: PreTrainedModel, ids: list[int], separator_id: int) -> dict[str, Any]:
    if len(ids) > WINDOW_TOKENS:
        raise SystemExit(f"--small holds one window, at most {WINDOW_TOKENS} positions")
    [input_ids] = windows_of(ids, separator_id)
    logprobs = torch.log_softmax(logits_of(model, input_ids).double(), dim=-1)
    top = logprobs.topk(TOP, dim=-1)
    return {
        "input_ids": input_ids,
        "top_ids": top.indices.tolist(),
        "top_logprobs": [[round(value, LOGPROB_DIGITS) for value in row]
                         for row in top.values.tolist()],
    }


def write_small(golden: dict[str, Any], path: Path) -> None:
    text = json.dumps(golden, separators=(",", ":")).replace("],[", "],\n[") + "\n"
    if len(text) > MAX_SMALL_BYTES:
        raise SystemExit(f"{path}: {len(text)} bytes, allowed are {MAX_SMALL_BYTES}")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    print(f"{path}: {len(golden['input_ids'])} positions, {len(text)} bytes")


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("text", type=Path, help="UTF-8, plain or .xz")
    parser.add_argument("--full", type=Path, metavar="OUT", help="safetensors with all logits")
    parser.add_argument("--positions", type=int, default=10_000, help="of --full")
    parser.add_argument("--small", type=Path, metavar="OUT", help="JSON with the likeliest tokens")
    parser.add_argument("--small-positions", type=int, default=256, help="of --small")
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    if not (args.full or args.small):
        parser.error("nothing to write: give --full or --small")
    if min(args.positions, args.small_positions) < 1:
        parser.error("positions must be at least 1")
    return args


def main() -> None:
    args = parse_args()
    torch.set_num_threads(args.threads)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    tokenizer = Tokenizer.from_file(str(args.model / "tokenizer.json"))
    separator_id = tokenizer.token_to_id(SEPARATOR)
    ids = encode(tokenizer, read_text(args.text))
    if len(ids) < max(args.positions, args.small_positions):
        raise SystemExit(f"{args.text}: has {len(ids)} tokens, fewer than asked for")
    model = AutoModelForCausalLM.from_pretrained(
        args.model, dtype=torch.float32, attn_implementation="eager").eval()
    if args.full:
        write_full(model, ids[:args.positions], separator_id, args.full)
    if args.small:
        write_small(small_golden(model, ids[:args.small_positions], separator_id), args.small)


if __name__ == "__main__":
    main()
