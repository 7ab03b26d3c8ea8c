"""Parts that paceline_gpu_check runs: its JSON lines become rows."""
import json

from gpu import children
from gpu.outcome import Outcome


def read_lines(text):
    """The JSON objects of whole lines; a line that was cut off is left out."""
    rows = []
    for line in text.splitlines():
        try:
            rows.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return rows


def run_part(part, programs, setting, limit_s, every=1):
    """`every`: runs each Nth case alone."""
    arguments = [part, "--device", setting.check_device, "--every", str(every), "--seconds", str(max(1, int(limit_s * 0.85)))]
    if setting.emulated:
        arguments.append("--small")
    done = children.run(programs.command("paceline_gpu_check", *arguments), limit_s)
    outcome = Outcome(part, rows=read_lines(done.output))
    for row in outcome.rows:
        row.pop("part", None)
        if row["name"] == "cases":
            outcome.summary = f"{row['run']} of {row['all']} cases ran"
    outcome.judge()
    if done.code not in (0, 1):
        outcome.fail(done.fault())
    return outcome


def device_line(programs, setting, limit_s):
    """What the driver says of the device, and what the programs have kernels for."""
    outcome = run_part("device", programs, setting, limit_s)
    for row in outcome.rows:
        if "capability" in row:
            outcome.summary = (f"{row['name']}, compute capability {row['capability']}, {row['multiprocessors']} "
                               f"multiprocessors, {row['total_bytes'] / 2 ** 30:.1f} GiB, driver for CUDA {row['driver']}; "
                               f"kernels for {row['kernels_for'] or 'none'}")
    return outcome
