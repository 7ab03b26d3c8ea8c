"""Jina's embeddings v2 in torch (Günther et al., "Jina Embeddings 2", 2023), from the published names of its weights.

BERT's block with scores less by a slope of each head for each position between a query and its key (Press et al., "Train
Short, Test Long", 2022, in both directions) instead of position embeddings, and a gated MLP.
"""

from __future__ import annotations

import torch
from torch.nn.functional import gelu, layer_norm, linear


def slopes(num_heads: int) -> torch.Tensor:
    """A geometric sequence; where the number isn't a power of two, every second one of twice as many fills it up."""
    power = 2 ** (num_heads.bit_length() - 1)
    first = [2 ** (-8 * (i + 1) / power) for i in range(power)]
    more = [2 ** (-4 * (i + 1) / power) for i in range(2 * power)][0::2]
    return torch.tensor((first + more)[:num_heads], dtype=torch.float32)


def random_weights(vocab: int, hidden: int, inner: int, num_layers: int, seed: int) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape: int) -> torch.Tensor:
        noise = torch.randn(shape, generator=generator)
        return noise * 0.25 if len(shape) > 1 else 1 + 0.2 * noise

    weights = {"embeddings.word_embeddings.weight": draw(vocab, hidden),
               "embeddings.token_type_embeddings.weight": draw(2, hidden)}
    norms = ["embeddings.LayerNorm"]
    products = {}
    for i in range(num_layers):
        layer = f"encoder.layer.{i}."
        norms += [layer + "attention.output.LayerNorm", layer + "mlp.layernorm"]
        names = ["attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"]
        products |= {layer + name: (hidden, hidden) for name in names} | {layer + "mlp.wo": (hidden, inner)}
        weights[layer + "mlp.gated_layers.weight"] = draw(2 * inner, hidden)
    for norm in norms:
        weights |= {f"{norm}.weight": draw(hidden), f"{norm}.bias": draw(hidden) - 1}
    for name, shape in products.items():
        weights |= {f"{name}.weight": draw(*shape), f"{name}.bias": draw(shape[0]) - 1}
    return weights


def states(weights: dict[str, torch.Tensor], ids: torch.Tensor, num_heads: int, eps: float = 1e-12) -> torch.Tensor:
    """[tokens, hidden] of one text."""
    def norm(x: torch.Tensor, name: str) -> torch.Tensor:
        return layer_norm(x, x.shape[-1:], weights[name + ".weight"], weights[name + ".bias"], eps)

    def product(x: torch.Tensor, name: str) -> torch.Tensor:
        return linear(x, weights[name + ".weight"], weights.get(name + ".bias"))

    def heads(x: torch.Tensor, name: str) -> torch.Tensor:
        return product(x, name).view(len(ids), num_heads, -1).transpose(0, 1)

    positions = torch.arange(len(ids))
    distances = (positions[:, None] - positions[None, :]).abs().float()
    bias = -slopes(num_heads)[:, None, None] * distances
    x = weights["embeddings.word_embeddings.weight"][ids] + weights["embeddings.token_type_embeddings.weight"][0]
    x = norm(x, "embeddings.LayerNorm")
    num_layers = sum(name.endswith("mlp.wo.weight") for name in weights)
    for layer in (f"encoder.layer.{i}." for i in range(num_layers)):
        q, k, v = (heads(x, f"{layer}attention.self.{part}") for part in ("query", "key", "value"))
        scores = q @ k.transpose(1, 2) / q.shape[-1] ** 0.5 + bias
        read = (scores.softmax(-1) @ v).transpose(0, 1).reshape(len(ids), -1)
        x = norm(x + product(read, layer + "attention.output.dense"), layer + "attention.output.LayerNorm")
        gate, up = product(x, layer + "mlp.gated_layers").chunk(2, -1)
        x = norm(x + product(gelu(gate) * up, layer + "mlp.wo"), layer + "mlp.layernorm")
    return x
