"""Where transformers' classes compute something else than the models' own code; importing it mends them."""

from __future__ import annotations

from typing import Any

import torch
from transformers.models.mpt import modeling_mpt
from transformers.models.phimoe import modeling_phimoe


def attention_of(alibi: bool) -> str:
    """Eager attention of Falcon adds ALiBi twice: to the scores, and with the mask."""
    return "sdpa" if alibi else "eager"


def _build_alibi(self: modeling_mpt.MptModel, num_heads: int, length: int, device: Any = None) -> torch.Tensor:
    return modeling_mpt.build_mpt_alibi_tensor(num_heads, length, self.config.attn_config.alibi_bias_max, device)


def _rotary_forward(self: Any, x: torch.Tensor, position_ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    rope = self.config.rope_parameters
    length = int(position_ids.max()) + 1
    if rope["rope_type"] == "default":
        inv_freq, scale = self.rope_init_fn(self.config)
    else:
        inv_freq, _ = self.rope_init_fn(self.config, x.device, length)
        scale = rope["long_mscale" if length > rope["original_max_position_embeddings"] else "short_mscale"]
    angles = position_ids[..., None].float() * inv_freq
    both = torch.cat((angles, angles), dim=-1)
    return (both.cos() * scale).to(x.dtype), (both.sin() * scale).to(x.dtype)


# Phi-MoE's own never asks for the long factors.
modeling_phimoe.PhimoeRotaryEmbedding.forward = _rotary_forward
# Its own call leaves alibi_bias_max out, so that slopes are those of 8.
modeling_mpt.MptModel.build_mpt_alibi_tensor = _build_alibi
