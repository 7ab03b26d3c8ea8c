"""compute-sanitizer's memcheck and racecheck over small cases of the operations."""
import re

from gpu import children, machine
from gpu.outcome import Outcome

# racecheck doesn't follow a lane that arrives at a barrier for its warp behind __syncwarp (docs/gpu.md).
UNFOLLOWED = "kernel_substring=_columns_,kernel_substring=gated_tile_"
TOOLS = {"memcheck": [], "racecheck": ["--kernel-name-exclude", UNFOLLOWED]}


def run(programs, setting, limit_s):
    outcome = Outcome("sanitizer")
    sanitizer = machine.find_sanitizer()
    if setting.emulated or not sanitizer:
        return outcome.skip("the emulation is no GPU" if setting.emulated else "compute-sanitizer is not here")
    for tool, options in TOOLS.items():
        share = limit_s / len(TOOLS)
        command = [sanitizer, "--tool", tool, *options, "--error-exitcode", "99", "--target-processes", "all",
                   *programs.command("paceline_gpu_check", "ops", "rows", "--device", setting.check_device, "--small",
                                     "--every", "12", "--seconds", str(max(1, int(share * 0.4))))]
        done = children.run(command, share)
        hit = re.search(r"(?:ERROR|RACECHECK) SUMMARY: (.*)", done.output + done.errors)
        if hit is None:
            outcome.measured(tool, without_result=done.fault() or "no summary")
            continue
        outcome.check(tool, done.code == 0 and bool(re.match(r"0 (errors|hazards)", hit[1])), found=hit[1])
    if not any("passed" in row for row in outcome.rows):
        return outcome.skip(f"compute-sanitizer gave no result: {outcome.rows[0]['without_result']}")
    return outcome.judge()
