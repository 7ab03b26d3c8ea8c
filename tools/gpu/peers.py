"""PyTorch and transformers on the same machine, by torch_side.py."""
from pathlib import Path

from gpu import children, device_checks, machine
from gpu.outcome import Outcome

SIDE = Path(__file__).resolve().parent / "torch_side.py"


def run(setting, limit_s):
    outcome = Outcome("torch")
    if setting.emulated:
        return outcome.skip("the emulation is no GPU")
    version = machine.torch_version(setting.python)
    if not version:
        return outcome.skip(f"{setting.python} has no torch that sees a GPU (--python)")
    done = children.run([setting.python, SIDE], limit_s, variables={"TOKENIZERS_PARALLELISM": "false"})
    outcome.rows = device_checks.read_lines(done.output)
    outcome.summary = f"torch and CUDA {version}"
    if not outcome.rows:
        return outcome.skip(f"torch gave no result: {done.fault()}")
    if done.code is None:
        outcome.summary += ", ended by the time limit"
    return outcome.judge()
