"""Bits per byte on the validation text: on a part during training, and on the whole."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from tokenizers import Tokenizer
from transformers import Qwen3ForCausalLM

from .corpus import read_corpus
from .model import FastQwen3
from .presets import CONTEXT
from .vocabulary import EOT, ORDINARY_TOKENS, encode_text


@torch.no_grad()
def quick_eval(
    model: FastQwen3, tokens: np.ndarray, byte_lengths: np.ndarray, length: int
) -> float:
    """Return bits per byte over 48 windows of CONTEXT validation tokens, in rows of `length`."""
    blocks = tokens[: len(tokens) // CONTEXT * CONTEXT].reshape(-1, CONTEXT).astype(np.int64)
    blocks = blocks[np.linspace(0, len(blocks) - 1, 48).astype(int)]
    nats = 0.0
    for rows in torch.from_numpy(blocks.reshape(-1, length)).split(2 * CONTEXT // length):
        targets = rows.to(model.embed.device)
        nats += model(F.pad(targets[:, :-1], (1, 0), value=ORDINARY_TOKENS), targets).item()
    return nats / math.log(2) / int(byte_lengths[blocks].sum())


@torch.no_grad()
def evaluate(path: Path, corpus: Path, device: str) -> dict[str, float]:
    """Measure a saved model with transformers in float32 on the validation text."""
    text = read_corpus(corpus, "valid")
    tokenizer = Tokenizer.from_file(str(path / "tokenizer.json"))
    model = Qwen3ForCausalLM.from_pretrained(path, dtype=torch.float32).to(device).eval()
    tokens = torch.from_numpy(encode_text(tokenizer, text).astype(np.int64))
    nats = 0.0
    for window in tokens.to(device).split(CONTEXT - 1):
        inputs = F.pad(window[:-1], (1, 0), value=tokenizer.token_to_id(EOT))
        nats += F.cross_entropy(model(inputs[None]).logits[0], window, reduction="sum").item()
    return {
        "tokens": len(tokens),
        "perplexity": math.exp(nats / len(tokens)),
        "bits_per_byte": nats / math.log(2) / len(text.encode()),
    }
