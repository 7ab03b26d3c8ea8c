"""The device of torch, and its number of threads, chosen by timing."""

from __future__ import annotations

import torch


def pick_device(name: str) -> str:
    """Return the device of this name; "auto" is the GPU if there is one."""
    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    return name


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
