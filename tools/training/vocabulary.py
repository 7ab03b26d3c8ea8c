"""The tokenizer: byte-level BPE trained on the corpus, with the words of ChatML."""

from __future__ import annotations

import re

import numpy as np
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from tokenizers import trainers

EOT, IM_START, IM_END = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
ORDINARY_TOKENS = 4096
QWEN_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def train_tokenizer(text: str) -> Tokenizer:
    """Train a byte-level BPE tokenizer that splits text the way Qwen3's does."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    split = pre_tokenizers.Split(Regex(QWEN_PATTERN), behavior="isolated")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([split, byte_level])
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    trainer = trainers.BpeTrainer(
        vocab_size=ORDINARY_TOKENS,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    paragraphs = re.split(r"(?<=\n\n)(?!\n)", text.replace(EOT + "\n", ""))
    tokenizer.train_from_iterator(paragraphs, trainer)
    tokenizer.add_special_tokens([EOT, IM_START, IM_END])
    assert tokenizer.get_vocab_size() == ORDINARY_TOKENS + 3
    assert tokenizer.token_to_id(EOT) == ORDINARY_TOKENS
    return tokenizer


def encode_text(tokenizer: Tokenizer, text: str) -> np.ndarray:
    """Encode a text whose titles are separated by the end-of-text token."""
    ids: list[int] = []
    for piece in text.split(EOT):
        ids += tokenizer.encode(piece).ids + [tokenizer.token_to_id(EOT)]
    return np.array(ids[:-1], dtype=np.uint16)


def token_byte_lengths(tokenizer: Tokenizer) -> np.ndarray:
    """Return how many bytes of text each token stands for."""
    specials = {EOT, IM_START, IM_END}
    names = (tokenizer.id_to_token(i) for i in range(tokenizer.get_vocab_size()))
    return np.array([len(name.encode()) if name in specials else len(name) for name in names])
