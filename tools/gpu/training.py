"""`paceline train` on the device beside the CPU: the losses of the same steps, and seconds a step."""
import json
import tempfile
import time
from pathlib import Path

from gpu import children, generation
from gpu.outcome import Outcome
from gpu.programs import ROOT

DATA = ROOT / "docs/architecture.md"
STEPS, EMULATED_STEPS = 20, 1
# Of a step's loss beside the CPU's: sums are in another order, and AdamW divides by the roots of small gradients.
TOLERANCES = {"float32": 1e-3, "bfloat16": 2e-2}


def run(programs, setting, limit_s):
    outcome = Outcome("train")
    if not generation.has_devices(programs):
        return generation.lacks_devices(outcome, setting)
    end = time.monotonic() + limit_s
    with tempfile.TemporaryDirectory() as directory:
        for dtype, tolerance in TOLERANCES.items():
            try:
                check_type(outcome, programs, setting, Path(directory), end, dtype, tolerance)
            except generation.NoAnswer as error:
                outcome.check(f"training in {dtype}", False, fault=str(error))
    return outcome.judge()


def check_type(outcome, programs, setting, directory, end, dtype, tolerance):
    found = points(programs, setting, directory / f"{dtype}-device", end, dtype, setting.device)
    expected = points(programs, setting, directory / f"{dtype}-cpu", end, dtype, "cpu")
    losses = [[point["loss"] for point in one] for one in (found, expected)]
    worst = max(abs(loss - other) for loss, other in zip(*losses, strict=True))
    outcome.check(f"losses of {len(found)} steps in {dtype} beside the CPU's", worst <= tolerance, found=worst, most=tolerance)
    outcome.measured(f"a step of LoRA in {dtype}", seconds=median([point["seconds"] for point in found]),
                     cpu_seconds=median([point["seconds"] for point in expected]))


def points(programs, setting, output, end, dtype, device):
    """The loss and the seconds of each step. Raises NoAnswer."""
    is_small = setting.emulated
    model = ROOT / "models" / ("paceline-draft-1m" if is_small else "paceline-10m")
    sizes = ("1", "64") if is_small else ("4", "512")
    command = programs.command("paceline", "train", "-m", model, "--data", DATA, "-o", output, "--device", device, "--dtype",
                               dtype, "--iters", EMULATED_STEPS if is_small else STEPS, "--batch-size", sizes[0],
                               "--max-seq-length", sizes[1], "--steps-per-report", "1", "--learning-rate", "1e-3",
                               "--valid-fraction", "0")
    done = children.run(command, end - time.monotonic(), variables={"PACELINE_CUDA_EMULATION": "1"} if setting.emulated else {})
    if done.code != 0:
        raise generation.NoAnswer(done.fault())
    lines = [json.loads(line) for line in (output / "metrics.jsonl").read_text().splitlines()]
    return [{"loss": line["loss"], "seconds": tokens / line["tokens_per_second"]} for line, tokens in with_tokens(lines)]


def with_tokens(lines):
    """Each report of a step, with the tokens that were learnt since the one before."""
    before = 0
    for line in lines:
        if line.get("loss") is not None:
            yield line, line["tokens"] - before
        before = line["tokens"]


def median(values):
    return sorted(values)[len(values) // 2]
