#!/usr/bin/env python3
"""Train the small Qwen3-shaped language models that are bundled with Paceline.

  tools/train_bundled_model.py --preset 10m --minutes 95          # train, then save to models/
  tools/train_bundled_model.py --preset draft-1m --minutes 12     # the draft sibling
  tools/train_bundled_model.py --resume-from models/paceline-10m --first-position 6064 --minutes 60
  tools/train_bundled_model.py --eval models/paceline-10m         # bits per byte, as JSON

The learning rate follows the clock (warm-up, stable, linear decay to zero at the end of --minutes),
so a run on a busy machine sees fewer tokens but always ends fully decayed. The order of the data
depends on the seed and the position alone. A run that was interrupted goes on from its checkpoint.
"""

from __future__ import annotations

import argparse
import json
import lzma
import math
import os
import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Iterator

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # do not spin while others use the cores
os.environ.setdefault("KMP_BLOCKTIME", "0")

import numpy as np
import torch
import torch.nn.functional as F
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from tokenizers import trainers
from torch import Tensor, nn
from transformers import GenerationConfig, PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

REPO = Path(__file__).resolve().parent.parent
EOT, IM_START, IM_END = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
ORDINARY_TOKENS = 4096
CONTEXT = 1024
CHAT_SHARE = 0.1
ROW_LENGTHS = ((0.85, 1024), (0.45, 512), (0.0, 256))  # (from this progress on, tokens per row)
QWEN_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
SENTENCE_END = re.compile(r"[.!?][\"'”’)]*(?=\s)")
CHAT_TEMPLATE = """\
{%- for message in messages -%}
{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}
{{- '<|im_start|>assistant\\n' -}}
{%- endif -%}
"""


@dataclass(frozen=True)
class Preset:
    """Shape and optimiser settings of one of the bundled models."""

    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    matrix_lr: float
    vector_lr: float
    tokens_per_step: int

    def config(self) -> Qwen3Config:
        """Return the transformers configuration of this shape."""
        return Qwen3Config(
            vocab_size=ORDINARY_TOKENS + 3,
            hidden_size=self.hidden,
            num_hidden_layers=self.layers,
            num_attention_heads=self.heads,
            num_key_value_heads=self.kv_heads,
            head_dim=self.head_dim,
            intermediate_size=self.intermediate,
            max_position_embeddings=CONTEXT,
            rms_norm_eps=1e-6,
            rope_parameters={"rope_type": "default", "rope_theta": 10000.0},
            tie_word_embeddings=True,
            bos_token_id=None,
            eos_token_id=ORDINARY_TOKENS + 2,
            pad_token_id=ORDINARY_TOKENS,
        )


PRESETS = {
    "10m": Preset(384, 6, 6, 2, 64, 896, 0.012, 3e-3, 8192),
    "draft-1m": Preset(128, 3, 4, 2, 32, 320, 0.015, 4e-3, 8192),
}


# Tokenizer and data


def read_corpus(corpus: Path, split: str) -> str:
    """Return the decompressed text of a split of the corpus."""
    with lzma.open(corpus / f"{split}.txt.xz", "rt", encoding="utf-8", newline="") as file:
        return file.read()


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


# Model: Qwen3 with fused projections; same parameters and function as transformers' own


class Block(nn.Module):
    """One Qwen3 decoder layer with fused q/k/v and gate/up projections."""

    def __init__(self, config: Qwen3Config) -> None:
        super().__init__()
        self.heads, self.kv_heads = config.num_attention_heads, config.num_key_value_heads
        self.head_dim, self.eps = config.head_dim, config.rms_norm_eps
        hidden, intermediate = config.hidden_size, config.intermediate_size
        attention = self.heads * self.head_dim
        width = attention + 2 * self.kv_heads * self.head_dim
        self.qkv = nn.Parameter(torch.randn(width, hidden) * 0.5 / math.sqrt(hidden))
        self.out = nn.Parameter(torch.zeros(hidden, attention))
        self.gate_up = nn.Parameter(torch.randn(2 * intermediate, hidden) * 0.5 / math.sqrt(hidden))
        self.down = nn.Parameter(torch.zeros(hidden, intermediate))
        self.norm1, self.norm2 = (nn.Parameter(torch.ones(hidden)) for _ in range(2))
        self.q_norm, self.k_norm = (nn.Parameter(torch.ones(self.head_dim)) for _ in range(2))

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        """Apply attention and the gated MLP."""
        batch, length, _ = x.shape
        qkv = F.linear(rms_norm(x, self.norm1, self.eps), self.qkv)
        qkv = qkv.view(batch, length, -1, self.head_dim)
        q, k, v = qkv.split([self.heads, self.kv_heads, self.kv_heads], dim=2)
        q = rotate(rms_norm(q, self.q_norm, self.eps), cos, sin).transpose(1, 2)
        k = rotate(rms_norm(k, self.k_norm, self.eps), cos, sin).transpose(1, 2)
        y = causal_attention(q, k, v.transpose(1, 2))
        x = x + F.linear(y.transpose(1, 2).reshape(batch, length, -1), self.out)
        gate, up = F.linear(rms_norm(x, self.norm2, self.eps), self.gate_up).chunk(2, dim=-1)
        return x + F.linear(F.silu(gate) * up, self.down)

    def splits(self) -> dict[str, list[tuple[str, int]]]:
        """Map each fused matrix to the names and heights of its parts in transformers."""
        q, kv = self.heads * self.head_dim, self.kv_heads * self.head_dim
        half = self.gate_up.shape[0] // 2
        return {
            "qkv": [("self_attn.q_proj", q), ("self_attn.k_proj", kv), ("self_attn.v_proj", kv)],
            "out": [("self_attn.o_proj", self.out.shape[0])],
            "gate_up": [("mlp.gate_proj", half), ("mlp.up_proj", half)],
            "down": [("mlp.down_proj", self.down.shape[0])],
            "norm1": [("input_layernorm", self.norm1.shape[0])],
            "norm2": [("post_attention_layernorm", self.norm2.shape[0])],
            "q_norm": [("self_attn.q_norm", self.head_dim)],
            "k_norm": [("self_attn.k_norm", self.head_dim)],
        }


class FastQwen3(nn.Module):
    """Qwen3 that returns the summed cross-entropy."""

    def __init__(self, config: Qwen3Config) -> None:
        super().__init__()
        self.config = config
        self.embed = nn.Parameter(torch.randn(config.vocab_size, config.hidden_size) * 0.02)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.num_hidden_layers))
        self.norm = nn.Parameter(torch.ones(config.hidden_size))
        theta = config.rope_parameters["rope_theta"]
        steps = torch.arange(0, config.head_dim, 2).float() / config.head_dim
        angles = torch.outer(torch.arange(CONTEXT).float(), theta**-steps)[:, None, :]
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)

    def forward(self, inputs: Tensor, targets: Tensor) -> Tensor:
        """Return the cross-entropy in nats, summed over all targets."""
        x = F.embedding(inputs, self.embed)
        cos, sin = self.cos[: inputs.shape[1]], self.sin[: inputs.shape[1]]
        for block in self.blocks:
            x = block(x, cos, sin)
        return head_loss(x, self.norm, self.embed, targets, self.config.rms_norm_eps)

    def parts(self) -> Iterator[tuple[str, Tensor]]:
        """Yield the parameters under their names in transformers; fused ones as views."""
        yield "model.embed_tokens.weight", self.embed
        yield "model.norm.weight", self.norm
        for index, block in enumerate(self.blocks):
            for fused, pieces in block.splits().items():
                views = getattr(block, fused).split([height for _, height in pieces])
                for (name, _), view in zip(pieces, views):
                    yield f"model.layers.{index}.{name}.weight", view

    def to_transformers(self) -> Qwen3ForCausalLM:
        """Return transformers' model with a copy of these parameters."""
        model = Qwen3ForCausalLM(self.config)
        state = {name: part.detach().float().cpu() for name, part in self.parts()}
        model.load_state_dict(state | {"lm_head.weight": state["model.embed_tokens.weight"]})
        return model

    @torch.no_grad()
    def load_transformers(self, path: Path) -> None:
        """Take over the parameters of a saved model."""
        state = Qwen3ForCausalLM.from_pretrained(path, dtype=torch.float32).state_dict()
        for name, part in self.parts():
            part.copy_(state[name])


def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """Normalise by the root mean square, computed in float32."""
    x32 = x.float()
    return (x32 * torch.rsqrt(x32.square().mean(-1, keepdim=True) + eps)).to(x.dtype) * weight


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Apply rotary position embeddings to [batch, length, heads, head_dim]."""
    first, second = x.float().chunk(2, dim=-1)
    turned = (first * cos - second * sin, second * cos + first * sin)
    return torch.cat(turned, dim=-1).to(x.dtype)


def causal_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Grouped-query attention; short rows as plain products, which is faster on CPUs."""
    batch, heads, length, head_dim = q.shape
    kv_heads = k.shape[1]
    if length > 256:
        k, v = (t.repeat_interleave(heads // kv_heads, dim=1) for t in (k, v))
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)
    q, k, v = (t.reshape(batch * kv_heads, -1, head_dim) for t in (q * head_dim**-0.5, k, v))
    scores = torch.bmm(q, k.mT).view(batch * kv_heads, -1, length, length).float()
    index = torch.arange(length, device=q.device)
    scores = torch.where(index[None, :] <= index[:, None], scores, -1e30)
    weights = scores.softmax(-1).to(v.dtype).view(batch * kv_heads, -1, length)
    return torch.bmm(weights, v).view(batch, heads, length, head_dim)


def head_loss(x: Tensor, norm: Tensor, embed: Tensor, targets: Tensor, eps: float) -> Tensor:
    """Return the cross-entropy of the tied output head, summed over all targets."""
    logits = F.linear(rms_norm(x, norm, eps), embed).flatten(0, 1)
    return F.cross_entropy(logits.float(), targets.flatten(), reduction="sum")


# Optimiser: Muon for the matrices inside the blocks, Adam for embeddings and norms


def orthogonalise(batch: Tensor, steps: int = 5) -> Tensor:
    """Return near-orthogonal matrices with the same singular vectors (Newton-Schulz)."""
    a, b, c = 3.4445, -4.7750, 2.0315
    x = batch.bfloat16()
    tall = x.shape[-2] > x.shape[-1]
    x = (x.mT if tall else x).contiguous()
    x = x / (x.float().norm(dim=(-2, -1), keepdim=True).bfloat16() + 1e-7)
    for _ in range(steps):
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.mT if tall else x


class Optimiser:
    """Keeps float32 master weights of a model and updates both."""

    def __init__(self, model: nn.Module, preset: Preset, dtype: torch.dtype) -> None:
        self.preset, self.work = preset, list(model.parameters())
        self.master = [p.detach().float().clone() for p in self.work]
        for parameter in self.work:
            parameter.data = parameter.data.to(dtype)
        self.grads = [torch.zeros_like(m) for m in self.master]
        self.first = [torch.zeros_like(m) for m in self.master]
        self.second = [torch.zeros_like(m) for m in self.master]
        self.step_count = 0
        self.matrices: dict[tuple[int, int], list[tuple[int, slice]]] = {}
        names = [name for name, _ in model.named_parameters()]
        self.vectors = [i for i, name in enumerate(names) if "norm" in name or name == "embed"]
        for block_index, block in enumerate(model.blocks):
            for fused, pieces in block.splits().items():
                index = names.index(f"blocks.{block_index}.{fused}")
                if index in self.vectors:
                    continue
                start = 0
                for _, height in pieces:
                    shape = (height, self.master[index].shape[1])
                    piece = (index, slice(start, start + height))
                    self.matrices.setdefault(shape, []).append(piece)
                    start += height

    def accumulate(self) -> None:
        """Add the gradients of a micro-batch to the float32 sums."""
        for total, parameter in zip(self.grads, self.work):
            total.add_(parameter.grad)
            parameter.grad = None

    @torch.no_grad()
    def step(self, scale: float, tokens: int) -> None:
        """Update the weights; `scale` in 0..1 is the schedule's share of the peak rates."""
        self.step_count += 1
        for grad in self.grads:
            grad.div_(tokens)
        self.muon(self.preset.matrix_lr * scale)
        for index in self.vectors:
            self.adam(index, self.preset.vector_lr * scale)
        for parameter, master, grad in zip(self.work, self.master, self.grads):
            parameter.data.copy_(master)
            grad.zero_()

    def muon(self, rate: float, momentum: float = 0.95, weight_decay: float = 0.05) -> None:
        """Update the matrices, all of one shape at a time."""
        for (height, width), pieces in self.matrices.items():
            updates = []
            for index, rows in pieces:
                grad, velocity = self.grads[index][rows], self.first[index][rows]
                velocity.lerp_(grad, 1 - momentum)
                updates.append(grad.lerp(velocity, momentum))
            updates = orthogonalise(torch.stack(updates)).float()
            for (index, rows), update in zip(pieces, updates):
                master = self.master[index][rows]
                master.mul_(1 - rate * weight_decay)
                master.add_(update, alpha=-rate * math.sqrt(max(1.0, height / width)))

    def adam(self, index: int, rate: float, beta1: float = 0.9, beta2: float = 0.99) -> None:
        """Update one embedding or norm."""
        grad, first, second = self.grads[index], self.first[index], self.second[index]
        first.lerp_(grad, 1 - beta1)
        second.lerp_(grad.square(), 1 - beta2)
        scale = rate / (1 - beta1**self.step_count)
        root = (second / (1 - beta2**self.step_count)).sqrt_().add_(1e-10)
        self.master[index].addcdiv_(first, root, value=-scale)

    def state(self) -> dict[str, Any]:
        """Return what a checkpoint needs."""
        keys = ("master", "first", "second", "step_count")
        return {key: getattr(self, key) for key in keys}

    def load(self, state: dict[str, Any]) -> None:
        """Restore a checkpoint."""
        self.step_count = state["step_count"]
        for key in ("master", "first", "second"):
            for mine, saved in zip(getattr(self, key), state[key]):
                mine.copy_(saved)
        for parameter, master in zip(self.work, self.master):
            parameter.data.copy_(master)


class ThreadChooser:
    """Chooses the number of torch threads by timing steps, since other loads come and go."""

    PERIOD = 48

    def __init__(self, most: int) -> None:
        self.choices = list(range(1, most + 1))
        self.times: dict[int, float] = {}

    def before(self, step: int) -> None:
        """Set the number of threads for this step: trials first, then the fastest."""
        phase = step % self.PERIOD
        trial = phase // 2
        best = min(self.times, key=self.times.__getitem__) if self.times else self.choices[-1]
        self.current = self.choices[trial] if trial < len(self.choices) else best
        torch.set_num_threads(self.current)

    def after(self, step: int, seconds: float) -> None:
        """Record how long a trial took; of two steps the faster counts."""
        if step % self.PERIOD < 2 * len(self.choices):
            repeated = step % 2 == 1
            self.times[self.current] = min(
                seconds, self.times.get(self.current, seconds) if repeated else seconds
            )


# Training


def learning_rate(progress: float, step: int, warmup: int, decay: float) -> float:
    """Return the share of the peak rate: warm-up in steps, then the decay by the clock."""
    return min(1.0, (step + 1) / warmup, max(0.0, 1.0 - progress) / decay)


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


def token_byte_lengths(tokenizer: Tokenizer) -> np.ndarray:
    """Return how many bytes of text each token stands for."""
    specials = {EOT, IM_START, IM_END}
    names = (tokenizer.id_to_token(i) for i in range(tokenizer.get_vocab_size()))
    return np.array([len(name.encode()) if name in specials else len(name) for name in names])


def save_model(model: FastQwen3, tokenizer: Tokenizer, path: Path) -> None:
    """Save weights, configuration and tokenizer the way transformers lays them out."""
    path.mkdir(parents=True, exist_ok=True)
    saved = model.to_transformers().to(torch.bfloat16)
    saved.config.dtype = torch.bfloat16
    stop = [ORDINARY_TOKENS + 2, ORDINARY_TOKENS]
    saved.generation_config = GenerationConfig(
        do_sample=True, temperature=0.8, top_p=0.95, eos_token_id=stop, pad_token_id=stop[1]
    )
    saved.save_pretrained(path)
    (path / "model.safetensors").chmod(0o644)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token=IM_END,
        pad_token=EOT,
        additional_special_tokens=[IM_START, IM_END],
        model_max_length=CONTEXT,
        clean_up_tokenization_spaces=False,
        chat_template=CHAT_TEMPLATE,
    )
    fast.save_pretrained(path)


def save_atomically(state: dict[str, Any], path: Path) -> None:
    """Write a checkpoint that is never seen half-written."""
    partial = path.with_suffix(".partial")
    torch.save(state, partial)
    os.replace(partial, path)


def prepare_corpus(args: argparse.Namespace) -> tuple[Tokenizer, Corpus, np.ndarray]:
    """Return the tokenizer, the training corpus and the validation tokens; cached in --work."""
    text = read_corpus(args.corpus, "train")
    cached, tokens_path = args.work / "tokenizer.json", args.work / "train.npy"
    if args.resume_from:
        tokenizer = Tokenizer.from_file(str(args.resume_from / "tokenizer.json"))
    elif cached.exists():
        tokenizer = Tokenizer.from_file(str(cached))
    else:
        tokenizer = train_tokenizer(text)
    same = cached.exists() and Tokenizer.from_file(str(cached)).to_str() == tokenizer.to_str()
    if not (same and tokens_path.exists()):
        tokenizer.save(str(cached))
        np.save(tokens_path, encode_text(tokenizer, text))
    valid = encode_text(tokenizer, read_corpus(args.corpus, "valid"))
    return tokenizer, Corpus(text, np.load(tokens_path), tokenizer, args.seed), valid


def train(args: argparse.Namespace) -> None:
    """Train one preset for the given minutes and save it."""
    torch.manual_seed(args.seed)
    preset, device = PRESETS[args.preset], args.device
    args.work.mkdir(parents=True, exist_ok=True)
    tokenizer, corpus, valid = prepare_corpus(args)
    lengths = token_byte_lengths(tokenizer)
    model = FastQwen3(preset.config())
    if args.resume_from:
        model.load_transformers(args.resume_from)
    model.to(device)
    optimiser = Optimiser(model, preset, torch.bfloat16)
    if args.compile:
        torch._dynamo.config.recompile_limit = 64
        torch._inductor.config.cpp.dynamic_threads = True
        for block in model.blocks:
            block.compile(dynamic=False)
        globals()["head_loss"] = torch.compile(head_loss, dynamic=False)

    checkpoint, snapshot = args.work / f"{args.preset}.pt", args.work / f"snapshot-{args.preset}"
    position, elapsed, curve = args.first_position, 0.0, []
    if checkpoint.exists() and not args.resume_from:
        state = torch.load(checkpoint, map_location=device)
        optimiser.load(state["optimiser"])
        position, elapsed, curve = state["position"], state["elapsed"], state["curve"]
    blocks = preset.tokens_per_step // CONTEXT
    started, saved_at = time.monotonic() - elapsed, time.monotonic() - args.checkpoint_seconds / 2
    chooser = ThreadChooser(args.threads)
    window_start, window_tokens = time.monotonic(), 0

    while (progress := (time.monotonic() - started) / (60 * args.minutes)) < 1:
        step, step_start = optimiser.step_count, time.monotonic()
        if device == "cpu":
            chooser.before(step)
        length = next(length for start, length in ROW_LENGTHS if progress >= start)
        inputs, targets = corpus.batch(position, blocks, length)
        micro, loss = args.micro_tokens // length, 0.0
        for x, y in zip(inputs.to(device).split(micro), targets.to(device).split(micro)):
            nats = model(x, y)
            nats.backward()
            optimiser.accumulate()
            loss += nats.item()
        scale = args.rate_scale * learning_rate(progress, step, args.warmup, args.decay)
        optimiser.step(scale, targets.numel())
        position += blocks
        window_tokens += targets.numel()
        chooser.after(step, time.monotonic() - step_start)
        if step % 10 == 0:
            now = time.monotonic()
            speed, threads = window_tokens / (now - window_start), torch.get_num_threads()
            print(
                f"step {step} progress {progress:.4f} tokens {position * CONTEXT:,}"
                f" loss {loss / targets.numel():.4f} {speed:.0f} tok/s threads {threads}",
                flush=True,
            )
            window_start, window_tokens = now, 0
        if time.monotonic() - saved_at > args.checkpoint_seconds:
            saved_at = time.monotonic()
            curve.append((position * CONTEXT, round(quick_eval(model, valid, lengths, length), 4)))
            print(f"valid (48 windows): {curve[-1]}", flush=True)
            state = {"optimiser": optimiser.state(), "position": position, "curve": curve}
            save_atomically(state | {"elapsed": time.monotonic() - started}, checkpoint)
            save_model(model, tokenizer, snapshot)

    curve.append((position * CONTEXT, round(quick_eval(model, valid, lengths, length), 4)))
    save_model(model, tokenizer, args.out or REPO / "models" / f"paceline-{args.preset}")
    checkpoint.unlink(missing_ok=True)
    (args.work / f"curve-{args.preset}.json").write_text(json.dumps(curve))
    print(f"done: {position * CONTEXT:,} tokens, curve {curve}", flush=True)


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


def main() -> None:
    """Parse the command line and train or evaluate."""
    parser = argparse.ArgumentParser(description="Train or evaluate Paceline's bundled models.")
    parser.add_argument("--corpus", type=Path, default=REPO.parent / "shared" / "corpus")
    parser.add_argument("--work", type=Path, default=REPO / "build" / "train", help="scratch")
    parser.add_argument("--preset", choices=PRESETS, default="10m")
    parser.add_argument("--out", type=Path, help="default: models/paceline-PRESET")
    parser.add_argument("--eval", type=Path, metavar="DIR", help="measure a saved model and stop")
    parser.add_argument("--resume-from", type=Path, metavar="DIR", help="start from saved weights")
    parser.add_argument("--first-position", type=int, default=0, help="first block of the data")
    parser.add_argument("--minutes", type=float, default=95.0)
    parser.add_argument("--decay", type=float, default=0.35, help="last share of the time")
    parser.add_argument("--rate-scale", type=float, default=1.0, help="factor on the peak rates")
    parser.add_argument("--warmup", type=int, default=100, help="steps")
    parser.add_argument("--micro-tokens", type=int, default=2048, help="tokens per forward pass")
    parser.add_argument("--checkpoint-seconds", type=float, default=300.0)
    parser.add_argument("--threads", type=int, default=min(os.cpu_count() or 1, 8))
    parser.add_argument("--no-compile", dest="compile", action="store_false")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda")
    parser.add_argument("--seed", type=int, default=20)
    args = parser.parse_args()
    if args.device == "auto":
        args.device = "cuda" if torch.cuda.is_available() else "cpu"
    if args.eval:
        print(json.dumps(evaluate(args.eval, args.corpus, args.device)))
    else:
        train(args)


if __name__ == "__main__":
    main()
