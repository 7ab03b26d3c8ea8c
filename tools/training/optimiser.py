"""The optimiser: Muon for the matrices inside the blocks, Adam for embeddings and norms."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from .presets import Preset


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
        """Return the state for a checkpoint."""
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
