"""PyTorch and transformers on the same machine, by torch_side.py."""
import time
from pathlib import Path

from gpu import children, device_checks, machine
from gpu.outcome import Outcome

# Shares of the time. Compiling takes most of decode's.
SHARES = {"operations": 2, "prefill": 3, "decode": 7}
PARTS = list(SHARES)
SIDE = Path(__file__).resolve().parent / "torch_side.py"


def run(setting, limit_s):
    outcome = Outcome("torch")
    if setting.emulated:
        return outcome.skip("the emulation is no GPU")
    version = machine.torch_version(setting.python)
    if not version:
        return outcome.skip(f"{setting.python} has no torch that sees a GPU (--python)")
    outcome.summary = f"torch and CUDA {version}"
    end = time.monotonic() + limit_s
    for index, part in enumerate(PARTS):
        # A process each: a fault of the GPU in one leaves the others' figures. What one leaves is left for those after it.
        share = (end - time.monotonic()) * SHARES[part] / sum(SHARES[left] for left in PARTS[index:])
        done = children.run([setting.python, SIDE, part], share, variables={"TOKENIZERS_PARALLELISM": "false"})
        outcome.rows += device_checks.read_lines(done.output)
        if done.code is None:
            outcome.summary += f", {part} ended by the time limit"
        elif done.code != 0:
            outcome.measured(f"torch {part}", left_out=done.fault())
    if not any(is_figure(row) for row in outcome.rows):
        return outcome.skip(f"torch gave no result: {outcome.rows[0]['left_out'] if outcome.rows else 'no time was left'}")
    return outcome.judge()


def is_figure(row):
    return "microseconds" in row or "tokens_per_second" in row
