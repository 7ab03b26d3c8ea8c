"""train: `paceline train`, with a call for each step."""
from __future__ import annotations

import json
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

from . import _program
from .errors import error_of


def train(model: str, data: str, output: str, *, on_step: Callable[[dict], bool | None] | None = None, **options) -> Path:
    """Trains a LoRA adapter, or all weights, and returns the folder of the result. Options are those of `paceline train`, with
    underscores: train("model", "chats.jsonl", "my-adapter", iters=200, learning_rate=1e-4). `on_step` gets each line of the run's
    metrics; the run stops where it returns False, and can be resumed."""
    command = [_program.path(), "train", "-m", str(model), "--data", str(data), "-o", str(output), *_program.arguments(options)]
    metrics = Path(output) / "metrics.jsonl"
    seen = metrics.stat().st_size if metrics.exists() else 0  # of a run that is resumed
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                               errors="replace", env=_program.environment())
    errors: list[str] = []

    def read_errors():
        with process.stderr as lines:
            errors.extend(lines)

    reader = threading.Thread(target=read_errors, daemon=True)
    reader.start()
    was_stopped = False
    try:
        while True:
            has_ended = process.poll() is not None
            seen, goes_on = _report(metrics, seen, on_step)
            if not goes_on and not was_stopped:
                was_stopped = True
                process.terminate()
            if has_ended:
                break
            time.sleep(0.05)
    except BaseException:
        process.terminate()
        process.wait()
        raise
    reader.join()
    if process.returncode != 0 and not was_stopped:
        raise error_of("internal", (errors or ["paceline train failed"])[-1].strip().removeprefix("paceline: "))
    return Path(output)


def _report(metrics: Path, seen: int, on_step) -> tuple[int, bool]:
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
