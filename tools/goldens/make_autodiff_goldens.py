#!/usr/bin/env python3
"""Makes tests/goldens/autodiff/operations.json: operations and their gradients as PyTorch computes them.

    python tools/goldens/make_autodiff_goldens.py

Needs torch. Inputs are float32; values and gradients are computed from them in float64. Where a definition could be
misread, PyTorch's own operation stands for it: layer_norm, rms_norm, gelu, logsumexp, cross_entropy, maximum, amax,
scaled_dot_product_attention (windows, grouped heads) and flex_attention (soft caps, values alone). rope is rotate_half
of Hugging Face transformers, written out.
"""
import json
from pathlib import Path

import torch
import torch.nn.functional as F
from torch.nn.attention.flex_attention import flex_attention

GOLDENS = Path(__file__).resolve().parents[2] / "tests/goldens/autodiff"
DIGITS = 9  # a float32 exactly


def normal(generator, *shape):
    return torch.randn(shape, generator=generator, dtype=torch.float32).to(torch.float64)


def rotate_half(x):
    half = x.shape[-1] // 2
    return torch.cat((-x[..., half:], x[..., :half]), dim=-1)


def rope(x, positions, inv_freq):
    """x [rows, heads, head_dim]; the first 2 * len(inv_freq) elements of a head turn."""
    angles = positions.to(torch.float32)[:, None] * inv_freq.to(torch.float32)[None, :]
    angles = torch.cat((angles, angles), dim=-1).to(torch.float64)[:, None, :]
    width = angles.shape[-1]
    turned = x[..., :width] * angles.cos() + rotate_half(x[..., :width]) * angles.sin()
    return torch.cat((turned, x[..., width:]), dim=-1)


def visible(queries, keys, window):
    query = torch.arange(queries)[:, None] + keys - queries
    key = torch.arange(keys)[None, :]
    return (key <= query) & ((window == 0) | (key > query - window))


def attention(q, k, v, scale, soft_cap=0.0, window=0):
    """q [queries, heads, head_dim], k and v [keys, kv heads, head_dim]."""
    q, k, v = (x.transpose(0, 1)[None] for x in (q, k, v))
    seen = visible(q.shape[2], k.shape[2], window)
    if soft_cap == 0.0:
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=seen, scale=scale, enable_gqa=True)
        return out[0].transpose(0, 1)

    def capped(score, batch, head, query, key):
        score = soft_cap * torch.tanh(score / soft_cap)
        return torch.where(seen[query, key], score, -float("inf"))

    # The eager attention of Gemma 2 in transformers, which has gradients on CPUs; flex_attention has none.
    group = q.shape[1] // k.shape[1]
    scores = q @ k.repeat_interleave(group, 1).transpose(2, 3) * scale
    scores = (torch.tanh(scores / soft_cap) * soft_cap).masked_fill(~seen, -float("inf"))
    out = torch.softmax(scores, -1) @ v.repeat_interleave(group, 1)
    torch._dynamo.reset()  # else it takes another soft cap for a variable, which flex_attention rejects
    own = flex_attention(q.detach(), k.detach(), v.detach(), score_mod=capped, scale=scale, enable_gqa=True)
    torch.testing.assert_close(out.detach(), own)
    return out[0].transpose(0, 1)


def cases(g):
    """Yields (operation, options, inputs, function)."""
    yield "layer_norm", {"eps": 0.125}, [normal(g, 3, 5), normal(g, 5), normal(g, 5)], \
        lambda x, w, b: F.layer_norm(x, (5,), w, b, 0.125)
    yield "rms_norm", {"eps": 0.125}, [normal(g, 3, 5), normal(g, 5)], lambda x, w: F.rms_norm(x, (5,), w, 0.125)
    yield "gelu_tanh", {}, [3.0 * normal(g, 12)], lambda x: F.gelu(x, approximate="tanh")
    yield "gelu_erf", {}, [3.0 * normal(g, 12)], F.gelu
    yield "silu", {}, [3.0 * normal(g, 12)], F.silu
    yield "log_sum_exp", {}, [3.0 * normal(g, 3, 5)], lambda x: torch.logsumexp(x, -1)
    yield "softmax", {"axis": 0}, [3.0 * normal(g, 3, 5)], lambda x: torch.softmax(x, 0)
    ties = torch.tensor([[1.0, 2.0, 2.0], [3.0, 3.0, 3.0]], dtype=torch.float64)
    yield "max", {"axis": 1}, [ties], lambda x: torch.amax(x, 1)
    yield "maximum", {}, [ties, torch.full_like(ties, 2.0)], torch.maximum
    positions = torch.tensor([0, 1, 5, 300])
    inv_freq = torch.tensor([1.0, 0.125, 0.015625])
    for width in (6, 8):  # all of a head, or a part of it
        yield "rope", {"positions": positions.tolist(), "inv_freq": inv_freq.tolist()}, [normal(g, 4, 2, width)], \
            lambda x: rope(x, positions, inv_freq)
    for heads, kv_heads, queries, keys, options in (
            (2, 2, 5, 5, {"scale": 0.5}),
            (4, 2, 3, 6, {"scale": 0.5}),
            (4, 1, 6, 6, {"scale": 0.75, "window": 3}),
            (2, 1, 4, 7, {"scale": 0.75, "window": 2}),
            (4, 2, 4, 6, {"scale": 1.0, "soft_cap": 1.5}),
            (2, 2, 6, 6, {"scale": 1.0, "soft_cap": 2.0, "window": 3})):
        inputs = [normal(g, queries, heads, 4), normal(g, keys, kv_heads, 4), normal(g, keys, kv_heads, 4)]
        yield "attention", options, inputs, lambda q, k, v, options=options: attention(q, k, v, **options)
    targets = torch.tensor([2, 0, 6, 3])
    counted = torch.tensor([1, 0, 1, 1])
    yield "cross_entropy", {"targets": targets.tolist()}, [2.0 * normal(g, 4, 7)], \
        lambda x: F.cross_entropy(x, targets)
    yield "masked_cross_entropy", {"targets": targets.tolist(), "mask": counted.tolist()}, [2.0 * normal(g, 4, 7)], \
        lambda x: F.cross_entropy(x, targets.where(counted == 1, -100), ignore_index=-100)
    yield "mse", {}, [normal(g, 3, 4), normal(g, 3, 4)], F.mse_loss


def numbers(x):
    return {"shape": list(x.shape), "values": [float(f"{v:.{DIGITS}g}") for v in x.flatten().tolist()]}


def golden(generator, operation, options, inputs, function):
    inputs = [x.to(torch.float32).to(torch.float64).requires_grad_() for x in inputs]
    output = function(*inputs)
    cotangent = normal(generator, *output.shape)
    gradients = torch.autograd.grad(output, inputs, cotangent)
    return {"operation": operation, "options": options, "inputs": [numbers(x) for x in inputs],
            "cotangent": numbers(cotangent), "output": numbers(output), "gradients": [numbers(x) for x in gradients]}


if __name__ == "__main__":
    source = torch.Generator().manual_seed(20261125)
    made = [golden(source, *case) for case in cases(source)]
    GOLDENS.mkdir(parents=True, exist_ok=True)
    header = f'{{"made_by": "tools/goldens/{Path(__file__).name}, torch {torch.__version__.split("+")[0]}", "cases": [\n'
    lines = ",\n".join(json.dumps(case) for case in made)
    (GOLDENS / "operations.json").write_text(header + lines + "\n]}\n")
