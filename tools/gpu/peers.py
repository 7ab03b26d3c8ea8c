"""PyTorch on the same machine, by torch_side.py: a part for each of ours that it stands beside."""
from pathlib import Path

from gpu import children, device_checks, machine
from gpu.outcome import Outcome

SIDE = Path(__file__).resolve().parent / "torch_side.py"
BESIDE = {"torch_decode": "decode", "torch_prompts": "prompts", "torch_products": "products", "torch_attention": "attention",
          "torch_kernels": "kernels"}
MARGIN_S = 5  # in which the last figure is measured


def run(part, setting, limit_s):
    outcome = Outcome(part)
    if setting.emulated:
        return outcome.skip("the emulation is no GPU")
    command = [setting.python, SIDE, BESIDE[part], "--seconds", str(max(1, int(limit_s) - MARGIN_S))]
    done = children.run(command, limit_s)
    outcome.rows = device_checks.read_lines(done.output)
    if not any(is_figure(row) for row in outcome.rows):
        why = outcome.rows[0]["left_out"] if outcome.rows else done.fault()
        return outcome.skip(f"{setting.python} gave no result (--python): {why}")
    if done.code is None:
        outcome.summary = "ended by the time limit"
    elif done.code != 0:
        outcome.measured(f"torch {BESIDE[part]}", left_out=done.fault())
    return outcome.judge()


def is_figure(row):
    return "microseconds" in row or "tokens_per_second" in row
