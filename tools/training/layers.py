"""The functions of a decoder layer and its loss."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


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
