#!/usr/bin/env python3
"""make gpu-check: checks and measures Paceline on this machine's GPU, in at most ten minutes.

    tools/gpu_check.py [--binaries FILE | --no-build] [--parts PART,...] [--json FILE] [--python PYTHON] [--device cuda:N]
    tools/gpu_check.py --parts speed    only speeds, next to PyTorch's, in at most four and a half minutes
    tools/gpu_check.py --pack FILE.tar.xz   builds here what --binaries takes on another machine
    tools/gpu_check.py --emulated       dry run on a machine without a GPU

Parts, each under a limit of its own (docs/gpu.md says what each does): machine, build, device; the checks arithmetic, ops, rows,
states, draws, models, batches, train, serve, sanitizer; kernels; `speed`, which is decode, prompts, hybrids, quantised, sentences, http,
products and attention, and PyTorch's torch_products, torch_attention, torch_prompts and torch_decode; others and torch_kernels. A part that
fails stops no other. Prints one table last and writes all figures to FILE. Exit code 0 when every check passed, 1 when one
failed, 2 for a wrong command line.
"""
import argparse
import json
import os
import sys
import tempfile
import time
import traceback
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from gpu import batches, device_checks, http_load, machine, models, peers, programs, sanitizer, serving, speed, training  # noqa: E402
from gpu.outcome import FAILED, Outcome  # noqa: E402
from gpu.table import figures_of, table  # noqa: E402

TOTAL_S = 600
# Seconds; what a part leaves is left for those after it.
LIMITS = {"build": 160, "machine": 30, "device": 15, "arithmetic": 15, "ops": 70, "rows": 30, "states": 15, "draws": 20,
          "models": 50, "batches": 25, "train": 45, "serve": 15, "sanitizer": 40, "kernels": 45, "decode": 40, "prompts": 20, "hybrids": 30,
          "quantised": 45,
          "sentences": 25, "http": 50, "products": 15, "attention": 15, "torch_products": 25, "torch_attention": 30,
          "torch_prompts": 50, "torch_decode": 110, "others": 70, "torch_kernels": 45}
SETS = {"speed": ("machine", "device", "decode", "prompts", "hybrids", "quantised", "sentences", "http", "products", "attention",
                  "torch_products", "torch_attention", "torch_prompts", "torch_decode")}
SPEED_S = 270
SERVE_EMULATED_S = 60
# Of the emulation, which computes a share of the cases: (seconds, every Nth case).
EMULATED_LIMITS = {"ops": (20, 50), "rows": (20, 24), "states": (20, 1), "draws": (20, 1)}


@dataclass(frozen=True)
class Setting:
    emulated: bool
    device: str  # of --device of paceline: cuda or cuda:N
    python: str  # that may have torch
    is_hopper: bool  # whose matrix arithmetic the emulation has

    @property
    def check_device(self):
        return "emulated" if self.emulated else self.device


def main():
    options = parse()
    if options.pack:
        return pack(options)
    named = options.parts.split(",") if options.parts else list(LIMITS)
    wanted = [part for name in named for part in SETS.get(name, (name,))]
    unknown = [part for part in wanted if part not in LIMITS]
    if unknown:
        print(f"gpu_check: no part {unknown[0]}; there are {', '.join([*LIMITS, *SETS])}", file=sys.stderr)
        return 2
    schedule = Schedule(wanted, options.seconds or (SPEED_S if named == ["speed"] else TOTAL_S))
    with tempfile.TemporaryDirectory() as directory:
        run_parts(schedule, options, find_programs(options, Path(directory)))
    print(table(schedule.outcomes))
    options.json.parent.mkdir(parents=True, exist_ok=True)
    found = {"parts": [one.as_json() for one in schedule.outcomes], "figures": figures_of(schedule.outcomes)}
    options.json.write_text(json.dumps(found, indent=1) + "\n")
    print(f"\nall figures: {options.json}")
    return 1 if any(one.status == FAILED for one in schedule.outcomes) else 0


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binaries", metavar="FILE", type=Path,
                        help="programs that --pack made, or a directory with what is in its archive")
    parser.add_argument("--no-build", action="store_true", help="take the programs of --build-directory")
    parser.add_argument("--build-directory", metavar="DIR", type=Path, default=programs.BUILD_DIRECTORY,
                        help="where programs are built, or were, with --no-build and --emulated [build/release]")
    parser.add_argument("--architectures", metavar="LIST", default="",
                        help="of the kernels, e.g. 90a for an H100 or H200 [those of --build-directory; at first all]")
    parser.add_argument("--pack", metavar="FILE.tar.xz", type=Path,
                        help="build (but with --no-build), and pack the programs with their libraries")
    parser.add_argument("--parts", metavar="PART,...", help="only these")
    parser.add_argument("--seconds", metavar="N", type=int, help="for all parts [600; of speed alone 270]")
    parser.add_argument("--json", metavar="FILE", type=Path, default=programs.ROOT / "build/gpu_check.json",
                        help="all figures [build/gpu_check.json]")
    parser.add_argument("--python", default=sys.executable, help="a Python that has torch [this one]")
    parser.add_argument("--device", default="cuda", help="cuda (the first GPU) or cuda:N [cuda]")
    parser.add_argument("--emulated", action="store_true", help="dry run: the emulation in the GPU's place")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="of the build [a job per core]")
    return parser.parse_args()


def pack(options):
    directory = options.build_directory.resolve()
    if not options.no_build:
        built = programs.build(3600, options.jobs, directory, options.architectures)
        if built.code != 0:
            print(f"gpu_check: the build failed, {built.fault()}\n{built.output[-2000:]}", file=sys.stderr)
            return 1
    size = programs.pack(options.pack, directory)
    print(f"{options.pack}: {size / 2 ** 20:.1f} MiB")
    if size > programs.MOST_BYTES:
        print(f"gpu_check: more than {programs.MOST_BYTES >> 20} MiB", file=sys.stderr)
        return 1
    return 0


def find_programs(options, directory):
    """Those of --binaries, of an archive unpacked into `directory`, or those of the build."""
    if not options.binaries:
        return programs.in_build(options.build_directory.resolve())
    if options.binaries.is_dir():
        return programs.carried(options.binaries.resolve())
    programs.unpack(options.binaries, directory)
    return programs.carried(directory)


class Schedule:
    """Runs parts one after another within their limits and the whole time."""

    def __init__(self, wanted, seconds):
        self._wanted = wanted
        self._end = time.monotonic() + seconds
        self.outcomes = []

    def run(self, part, body, limit_s=None):
        """The outcome of body(seconds); None when the part is not wanted."""
        if part not in self._wanted:
            return None
        begin = time.monotonic()
        limit_s = min(limit_s or LIMITS[part], self._end - begin)
        try:
            outcome = body(limit_s) if limit_s > 2 else Outcome(part).skip("no time was left")
        except Exception:  # a fault of the script itself: the other parts go on
            outcome = Outcome(part).fail(traceback.format_exc().strip().splitlines()[-1])
            traceback.print_exc()
        outcome.seconds = time.monotonic() - begin
        self.outcomes.append(outcome)
        print(f"{outcome.part}: {outcome.status}, {outcome.seconds:.1f} s: {outcome.summary}", flush=True)
        return outcome


def build_part(options):
    def body(limit_s):
        outcome = Outcome("build")
        done = programs.build(limit_s, options.jobs, options.build_directory.resolve(), options.architectures)
        return outcome.fail(done.fault()) if done.code != 0 else outcome
    return body


def run_parts(schedule, options, found):
    schedule.run("machine", lambda limit_s: machine.look(options.python))
    if not (options.binaries or options.no_build or options.emulated):
        schedule.run("build", build_part(options))
    fault = found.fault()
    if fault:
        schedule.outcomes.append(Outcome("programs").fail(fault))
        return
    setting = Setting(options.emulated, options.device, options.python, True)
    device = schedule.run("device", lambda limit_s: device_checks.device_line(found, setting, limit_s))
    capability = next((row["capability"] for row in device.rows if "capability" in row), "") if device else "9.0"
    setting = Setting(options.emulated, options.device, options.python, options.emulated or capability.startswith("9."))
    run_checks(schedule, found, setting)
    run_measurements(schedule, found, setting)


def run_checks(schedule, found, setting):
    for part in ("arithmetic", "ops", "rows", "states", "draws"):
        run_device_part(schedule, part, found, setting)
    schedule.run("models", lambda limit_s: models.run(found, setting, limit_s))
    schedule.run("batches", lambda limit_s: batches.run(found, setting, limit_s))
    schedule.run("train", lambda limit_s: training.run(found, setting, limit_s))
    schedule.run("serve", lambda limit_s: serving.run(found, setting, limit_s), SERVE_EMULATED_S if setting.emulated else None)
    schedule.run("sanitizer", lambda limit_s: sanitizer.run(found, setting, limit_s))


def run_measurements(schedule, found, setting):
    run_device_part(schedule, "kernels", found, setting)
    for part, measure in (("decode", speed.decode), ("prompts", speed.prompts), ("hybrids", speed.hybrids),
                          ("quantised", speed.quantised), ("sentences", speed.sentences), ("http", http_load.run),
                          ("products", speed.products), ("attention", speed.attention)):
        schedule.run(part, lambda limit_s, measure=measure: measure(found, setting, limit_s))
    for part in ("torch_products", "torch_attention", "torch_prompts", "torch_decode"):
        schedule.run(part, lambda limit_s, part=part: peers.run(part, setting, limit_s))
    schedule.run("others", lambda limit_s: speed.others(found, setting, limit_s))
    schedule.run("torch_kernels", lambda limit_s: peers.run("torch_kernels", setting, limit_s))


def run_device_part(schedule, part, found, setting):
    limit_s, every = EMULATED_LIMITS.get(part, (None, 1)) if setting.emulated else (None, 1)
    schedule.run(part, lambda limit_s: device_checks.run_part(part, found, setting, limit_s, every), limit_s)


if __name__ == "__main__":
    sys.exit(main())
