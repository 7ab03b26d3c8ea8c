"""Makes training rows: plain text in a seeded order, and conversations made from it."""

from __future__ import annotations

import lzma
import math
import re
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import Tensor

from .presets import CONTEXT
from .vocabulary import EOT, IM_END, IM_START, encode_text, train_tokenizer

CHAT_SHARE = 0.1
SENTENCE_END = re.compile(r"[.!?][\"'”’)]*(?=\s)")


def read_corpus(corpus: Path, split: str) -> str:
    """Return the decompressed text of a split of the corpus."""
    with lzma.open(corpus / f"{split}.txt.xz", "rt", encoding="utf-8", newline="") as file:
        return file.read()


class Corpus:
    """Deterministic training rows, addressed by a position counted in blocks of CONTEXT tokens."""

    def __init__(self, text: str, tokens: np.ndarray, tokenizer: Tokenizer, seed: int) -> None:
        self.text, self.tokens, self.tokenizer, self.seed = text, tokens, tokenizer, seed
        self.eot = tokenizer.token_to_id(EOT)
        self.blocks = len(tokens) // CONTEXT - 1
        self.epoch, self.order, self.shift = -1, np.empty(0, dtype=np.int64), 0

    def block(self, position: int) -> np.ndarray:
        """Return the plain-text block at a position; every epoch has its own order and offset."""
        epoch, index = divmod(position, self.blocks)
        if epoch != self.epoch:
            rng = np.random.default_rng([self.seed, 1, epoch])
            self.order, self.shift = rng.permutation(self.blocks), int(rng.integers(CONTEXT))
            self.epoch = epoch
        start = int(self.order[index]) * CONTEXT + self.shift
        return self.tokens[start : start + CONTEXT].astype(np.int64)

    def passage(self, rng: np.random.Generator) -> tuple[int, int]:
        """Return the bounds of a passage from a sentence start to a sentence end."""
        while True:
            near = int(rng.integers(len(self.text) - 20000))
            start = self.next_sentence(near, 1)
            length = int(math.exp(rng.uniform(math.log(40), math.log(1800))))
            end = self.next_sentence(start + length, 1)
            if EOT not in self.text[near : end + 4000]:
                return start, end

    def next_sentence(self, start: int, count: int) -> int:
        """Return the position after `count` sentence ends."""
        for _ in range(count):
            match = SENTENCE_END.search(self.text, start)
            start = match.end() if match else len(self.text)
        return start

    def chat_row(self, rng: np.random.Generator, length: int) -> np.ndarray:
        """Return `length` tokens of conversations in which the assistant goes on with a text."""
        ids: list[int] = [self.eot] if rng.random() < 0.5 else []
        start = end = -1
        while len(ids) < length:
            if start < 0 or rng.random() < 0.6:
                if start >= 0:
                    ids.append(self.eot)
                start, end = self.passage(rng)
            else:
                start, end = end, self.next_sentence(end, int(rng.integers(1, 5)))
            reply_end = self.next_sentence(end, int(rng.integers(1, 13)))
            said, reply = self.text[start:end].strip(), self.text[end:reply_end].strip()
            if EOT in said or EOT in reply:
                start = -1
                continue
            chat = f"{IM_START}user\n{said}{IM_END}\n{IM_START}assistant\n{reply}{IM_END}\n"
            ids.extend(self.tokenizer.encode(chat).ids)
            end = reply_end
        return np.array(ids[:length], dtype=np.int64)

    def rows(self, position: int, length: int) -> tuple[np.ndarray, np.ndarray]:
        """Return inputs and targets, CONTEXT tokens together, in rows of `length` tokens."""
        rng = np.random.default_rng([self.seed, 2, position])
        count = CONTEXT // length
        if rng.random() < CHAT_SHARE:
            row = np.stack([self.chat_row(rng, length + 1) for _ in range(count)])
            return row[:, :-1], row[:, 1:]
        targets = self.block(position).reshape(count, length)
        inputs = np.concatenate([np.full((count, 1), self.eot), targets[:, :-1]], axis=1)
        return inputs, targets

    def batch(self, position: int, blocks: int, length: int) -> tuple[Tensor, Tensor]:
        """Return the rows of `blocks` consecutive positions as tensors."""
        parts = [self.rows(position + offset, length) for offset in range(blocks)]
        inputs, targets = (np.concatenate(column) for column in zip(*parts))
        return torch.from_numpy(inputs), torch.from_numpy(targets)


def prepare_corpus(
    corpus: Path, work: Path, saved_model: Path | None, seed: int
) -> tuple[Tokenizer, Corpus, np.ndarray]:
    """Return the tokenizer, the training corpus and the validation tokens; cached in `work`."""
    text = read_corpus(corpus, "train")
    cached, tokens_path = work / "tokenizer.json", work / "train.npy"
    if saved_model:
        tokenizer = Tokenizer.from_file(str(saved_model / "tokenizer.json"))
    elif cached.exists():
        tokenizer = Tokenizer.from_file(str(cached))
    else:
        tokenizer = train_tokenizer(text)
    same = cached.exists() and Tokenizer.from_file(str(cached)).to_str() == tokenizer.to_str()
    if not (same and tokens_path.exists()):
        tokenizer.save(str(cached))
        np.save(tokens_path, encode_text(tokenizer, text))
    valid = encode_text(tokenizer, read_corpus(corpus, "valid"))
    return tokenizer, Corpus(text, np.load(tokens_path), tokenizer, seed), valid
