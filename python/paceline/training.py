"""train: `paceline train`, with a call for each step."""
from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from . import _program

OnStep = Callable[[dict[str, Any]], object]


def train(model: str, data: str | Path, output: str | Path, *, on_step: OnStep | None = None, **options: Any) -> Path:
    """Trains a LoRA adapter, or all weights, and returns the folder of the result. Options are those of `paceline train`, with
    underscores: train("model", "chats.jsonl", "my-adapter", iters=200, learning_rate=1e-4). `on_step` gets each line of the run's
    metrics; the run stops where it returns False, and can be resumed. Raises what the program says, with the code of its error. The run
    ends with this process, however that ends."""
    metrics = Path(output) / "metrics.jsonl"
    seen = metrics.stat().st_size if metrics.exists() else 0  # of a run that is resumed
    child = _program.Child("train", ["-m", str(model), "--data", str(data), "-o", str(output), *_program.arguments(options)])
    was_stopped = False
    try:
        while True:
            has_ended = child.process.poll() is not None
            seen, goes_on = _report(metrics, seen, on_step)
            if not goes_on and not was_stopped:
                was_stopped = True
                child.process.terminate()
            if has_ended:
                break
            time.sleep(0.05)
    except BaseException:
        child.process.terminate()
        child.wait(None)
        raise
    if child.wait(None) != 0 and not was_stopped:
        raise child.error()
    return Path(output)


def _report(metrics: Path, seen: int, on_step: OnStep | None) -> tuple[int, bool]:
    """Calls on_step for the whole lines after the first `seen` bytes; how far it came, and whether the run goes on."""
    if on_step is None or not metrics.exists():
        return seen, True
    with open(metrics, "rb") as file:
        file.seek(seen)
        lines = file.read()
    whole = lines[:lines.rfind(b"\n") + 1]
    goes_on = True
    for line in whole.splitlines():
        goes_on = on_step(json.loads(line)) is not False and goes_on
    return seen + len(whole), goes_on
