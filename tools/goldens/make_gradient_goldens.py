#!/usr/bin/env python3
"""Makes tests/goldens/gradients/gradients.json: gradients by PyTorch's autograd, in float64, of operations that are
written here from PyTorch's own (softmax, silu, gelu, cross_entropy, embedding, linear, conv1d, softplus).

    python tools/goldens/make_gradient_goldens.py [--out FILE]

Needs the torch and transformers of requirements.txt. Inputs are float32 numbers; outputs are rounded to 9 digits.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional

DEFAULT_OUT = Path(__file__).resolve().parents[2] / "tests/goldens/gradients/gradients.json"


def random(*shape: int, size: float = 1.0) -> Tensor:
    """Float32 numbers, as float64 leaves."""
    return (torch.randn(*shape) * size).double().requires_grad_()


def numbers(tensor: Tensor) -> dict:
    flat = tensor.detach().flatten().tolist()
    return {"shape": list(tensor.shape), "values": [float(f"{value:.9g}") for value in flat]}


def case(op: str, params: dict, inputs: dict, outputs: dict) -> dict:
    return {
        "op": op,
        "params": params,
        "inputs": {name: numbers(tensor) for name, tensor in inputs.items()},
        "outputs": {name: numbers(tensor) for name, tensor in outputs.items()},
    }


def attend(q: Tensor, k: Tensor, v: Tensor, window: int, cap: float) -> tuple[Tensor, Tensor]:
    """Causal attention of one sequence; also the log-sum-exp of its scores. [rows, heads, head_dim]"""
    rows, heads, head_dim = q.shape
    group = heads // k.shape[1]
    keys = k.repeat_interleave(group, dim=1)
    values = v.repeat_interleave(group, dim=1)
    scores = torch.einsum("ihd,jhd->hij", q, keys) / head_dim**0.5
    if cap > 0:
        scores = cap * torch.tanh(scores / cap)
    i, j = torch.arange(rows)[:, None], torch.arange(rows)[None, :]
    hidden = j > i
    if window > 0:
        hidden = hidden | (j <= i - window)
    scores = scores.masked_fill(hidden, float("-inf"))
    out = torch.einsum("hij,jhd->ihd", torch.softmax(scores, dim=-1), values)
    return out, torch.logsumexp(scores, dim=-1).T


def attention_case(lengths: list[int], heads: int, kv_heads: int, head_dim: int, window: int, cap: float) -> dict:
    rows = sum(lengths)
    q, k, v = (random(rows, n, head_dim, size=2.0) for n in (heads, kv_heads, kv_heads))
    pieces = [
        attend(*(tensor[end - length : end] for tensor in (q, k, v)), window, cap)
        for length, end in zip(lengths, torch.tensor(lengths).cumsum(0).tolist())
    ]
    out, log_sum_exp = (torch.cat(parts) for parts in zip(*pieces))
    dout = random(rows, heads, head_dim)
    dq, dk, dv = torch.autograd.grad(out, (q, k, v), dout)
    return case(
        "attention",
        {"lengths": lengths, "window": window, "cap": cap},
        {"q": q, "k": k, "v": v, "dout": dout},
        {"out": out, "log_sum_exp": log_sum_exp, "dq": dq, "dk": dk, "dv": dv},
    )


def norm_case() -> dict:
    x, weight, dy = random(6, 40), random(40), random(6, 40)
    y = functional.rms_norm(x, (40,), weight, eps=0.01)
    dx, dweight = torch.autograd.grad(y, (x, weight), dy)
    return case("rms_norm", {"eps": 0.01}, {"x": x, "weight": weight, "dy": dy}, {"dx": dx, "dweight": dweight})


def layer_norm_case() -> dict:
    x, weight, bias, dy = random(6, 40), random(40), random(40), random(6, 40)
    y = functional.layer_norm(x, (40,), weight, bias, eps=0.01)
    dx, dweight, dbias = torch.autograd.grad(y, (x, weight, bias), dy)
    return case("layer_norm", {"eps": 0.01}, {"x": x, "weight": weight, "dy": dy},
                {"dx": dx, "dweight": dweight, "dbias": dbias})


def activation_case() -> dict:
    x, dout = random(3, 50, size=3.0), random(3, 50)
    (dx,) = torch.autograd.grad(functional.gelu(x, approximate="tanh"), x, dout)
    return case("activation", {}, {"x": x, "dout": dout}, {"dx": dx})


def gate_case(kind: str) -> dict:
    activation = {
        "silu": functional.silu,
        "gelu_tanh": lambda x: functional.gelu(x, approximate="tanh"),
        "gelu_erf": functional.gelu,
    }[kind]
    gate, up, dout = random(3, 50, size=3.0), random(3, 50), random(3, 50)
    dgate, dup = torch.autograd.grad(activation(gate) * up, (gate, up), dout)
    return case(
        "gate", {"activation": kind}, {"gate": gate, "up": up, "dout": dout}, {"dgate": dgate, "dup": dup}
    )


def clamped_gate_case() -> dict:
    """gpt-oss's, written as GptOssExperts._apply_gate is."""
    gate, up, dout = random(3, 50, size=5.0), random(3, 50, size=5.0), random(3, 50)
    x, y = gate.clamp(max=7.0), up.clamp(-7.0, 7.0)
    dgate, dup = torch.autograd.grad((y + 1) * x * torch.sigmoid(1.702 * x), (gate, up), dout)
    return case(
        "gate", {"activation": "clamped_swiglu"}, {"gate": gate, "up": up, "dout": dout}, {"dgate": dgate, "dup": dup}
    )


def cross_entropy_case() -> dict:
    logits = random(5, 33, size=3.0)
    targets = torch.tensor([0, 32, 5, 7, 9])
    weights = torch.tensor([1.0, 0.5, 0.0, 0.125, 2.0], dtype=torch.float64)
    losses = functional.cross_entropy(logits, targets, reduction="none")
    (gradient,) = torch.autograd.grad((losses * weights).sum(), logits)
    losses = torch.where(weights == 0, 0.0, losses)
    return case(
        "cross_entropy",
        {"targets": targets.tolist(), "weights": weights.tolist()},
        {"logits": logits},
        {"losses": losses, "gradient": gradient},
    )


def embedding_case() -> dict:
    table, dout = random(9, 12), random(6, 12)
    ids = torch.tensor([3, 0, 3, 8, 3, 0])
    (dtable,) = torch.autograd.grad(functional.embedding(ids, table) * 1.5, table, dout)
    return case("embedding", {"ids": ids.tolist(), "scale": 1.5}, {"dout": dout}, {"dtable": dtable})


def linear_case() -> dict:
    x, w, dy = random(7, 20), random(11, 20), random(7, 11)
    dx, dw = torch.autograd.grad(functional.linear(x, w), (x, w), dy)
    return case("linear", {}, {"x": x, "w": w, "dy": dy}, {"dx": dx, "dw": dw})


def delta_rule(q: Tensor, k: Tensor, v: Tensor, log_decay: Tensor, beta: Tensor, corrects: bool) -> Tensor:
    """One sequence, token by token; as transformers' torch_recurrent_gated_delta_rule, which computes in float32, but for
    its norms of q and k. [rows, heads, dim]"""
    group = v.shape[1] // k.shape[1]
    q, k = q.repeat_interleave(group, dim=1), k.repeat_interleave(group, dim=1)
    state = torch.zeros(v.shape[1], k.shape[2], v.shape[2], dtype=torch.float64)
    rows = []
    for t in range(v.shape[0]):
        state = state * log_decay[t].exp()[:, None, None]
        known = torch.einsum("hkv,hk->hv", state, k[t]) if corrects else 0.0
        state = state + torch.einsum("hk,hv->hkv", k[t], (v[t] - known) * beta[t][:, None])
        rows.append(torch.einsum("hkv,hk->hv", state, q[t]))
    return torch.stack(rows)


def compare_with_transformers(inputs: dict[str, Tensor]) -> None:
    from transformers.models.qwen3_5.modeling_qwen3_5 import torch_chunk_gated_delta_rule

    group = inputs["v"].shape[1] // inputs["k"].shape[1]
    q, k = (inputs[name].repeat_interleave(group, dim=1) for name in ("q", "k"))
    parts = (part[None].float() for part in (q * k.shape[2] ** 0.5, k, inputs["v"], inputs["log_decay"], inputs["beta"]))
    q, k, v, g, beta = parts
    out, _ = torch_chunk_gated_delta_rule(q, k, v, g=g, beta=beta, use_qk_l2norm_in_kernel=False)
    torch.testing.assert_close(out[0].double(), delta_rule(**inputs, corrects=True), rtol=1e-5, atol=1e-5)


def delta_rule_case(lengths: list[int], key_heads: int, value_heads: int, corrects: bool) -> dict:
    rows, key_dim, value_dim = sum(lengths), 6, 5
    inputs = {
        "q": random(rows, key_heads, key_dim, size=0.4),
        "k": random(rows, key_heads, key_dim, size=0.4),
        "v": random(rows, value_heads, value_dim),
        "log_decay": -torch.rand(rows, value_heads).double(),
        "beta": torch.rand(rows, value_heads).double(),
    }
    inputs = {name: tensor.detach().requires_grad_() for name, tensor in inputs.items()}
    if corrects:
        compare_with_transformers({name: tensor[: lengths[0]] for name, tensor in inputs.items()})
    pieces = [
        delta_rule(**{name: tensor[end - length : end] for name, tensor in inputs.items()}, corrects=corrects)
        for length, end in zip(lengths, torch.tensor(lengths).cumsum(0).tolist())
    ]
    dout = random(rows, value_heads, value_dim)
    gradients = torch.autograd.grad(torch.cat(pieces), list(inputs.values()), dout)
    outputs = {"d" + name: gradient for name, gradient in zip(inputs, gradients)}
    return case("delta_rule", {"lengths": lengths, "corrects": int(corrects)}, {**inputs, "dout": dout}, outputs)


def convolution_case(lengths: list[int], channels: int, taps: int) -> dict:
    x, weight, dout = random(sum(lengths), channels), random(taps, channels), random(sum(lengths), channels)
    pieces = [
        functional.conv1d(functional.pad(part.T, (taps - 1, 0)), weight.T[:, None, :], groups=channels).T
        for part in x.split(lengths)
    ]
    (dx,) = torch.autograd.grad(torch.cat(pieces), x, dout)
    return case("short_convolution", {"lengths": lengths}, {"taps": weight, "dout": dout}, {"dx": dx})


def decay_gates_case() -> dict:
    x, bias, rates, dout = random(5, 12, size=4.0), random(12), random(12, size=3.0), random(5, 12)
    (dx,) = torch.autograd.grad(-rates * functional.softplus(x + bias), x, dout)
    return case("decay_gates", {}, {"x": x, "bias": bias, "rates": rates, "dout": dout}, {"dx": dx})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=DEFAULT_OUT)
    args = parser.parse_args()
    torch.manual_seed(7)
    cases = [
        attention_case([70, 3, 9], heads=2, kv_heads=1, head_dim=5, window=0, cap=0.0),
        attention_case([20], heads=4, kv_heads=2, head_dim=6, window=7, cap=1.5),
        norm_case(),
        *(gate_case(kind) for kind in ("silu", "gelu_tanh", "gelu_erf")),
        cross_entropy_case(),
        embedding_case(),
        linear_case(),
        layer_norm_case(),
        activation_case(),
        clamped_gate_case(),
        delta_rule_case([37, 3], key_heads=1, value_heads=2, corrects=True),
        delta_rule_case([20], key_heads=2, value_heads=2, corrects=False),
        convolution_case([9, 2], channels=6, taps=4),
        decay_gates_case(),
    ]
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text("[\n" + ",\n".join(json.dumps(one) for one in cases) + "\n]\n")


if __name__ == "__main__":
    main()
