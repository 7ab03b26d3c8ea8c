"""Qwen3 with fused projections: the same parameters and function as in transformers."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import Qwen3Config, Qwen3ForCausalLM

from .layers import causal_attention, head_loss, rms_norm, rotate
from .presets import CONTEXT


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
        self.head_loss = head_loss

    def compile_parts(self) -> None:
        """Have torch compile the blocks and the loss, once for each row length."""
        torch._dynamo.config.recompile_limit = 64
        torch._inductor.config.cpp.dynamic_threads = True
        for block in self.blocks:
            block.compile(dynamic=False)
        self.head_loss = torch.compile(head_loss, dynamic=False)

    def forward(self, inputs: Tensor, targets: Tensor) -> Tensor:
        """Return the cross-entropy in nats, summed over all targets."""
        x = F.embedding(inputs, self.embed)
        cos, sin = self.cos[: inputs.shape[1]], self.sin[: inputs.shape[1]]
        for block in self.blocks:
            x = block(x, cos, sin)
        return self.head_loss(x, self.norm, self.embed, targets, self.config.rms_norm_eps)

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
