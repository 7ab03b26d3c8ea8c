#!/usr/bin/env python3
"""Compares generating through the Python package, by threads and by asyncio's tasks, with the program.

    python3 tools/bench_python.py [--threads 64] [--tasks 1000] [--tokens 16] [--runs 3] [--binary FILE] [--library FILE]

Random weights in the shape of Llama 3.2 1B (with the bundled model's tokenizer), quantised to 8 bits. The three sides take turns and
answer the same requests: the program reads them with --jsonl, which is the C++ facade's batch; its time is that of the whole process less
that of one without requests. Threads and tasks each have one request at a time; the package's time is from the first request to the last
answer. Processor time is printed beside it: other work on the machine changes that less. So is the load before each run.
"""
from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SHAPE = {"hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16, "num_attention_heads": 32, "num_key_value_heads": 8,
         "head_dim": 64}
GOAL = 0.95


def make_model(folder: Path) -> None:
    shutil.copytree(ROOT / "models" / "paceline-10m", folder, ignore=shutil.ignore_patterns("*.safetensors"))
    config = json.loads((folder / "config.json").read_text())
    config.pop("layer_types", None)
    (folder / "config.json").write_text(json.dumps(config | SHAPE))


def requests(count: int, tokens: int) -> list[dict]:
    return [{"prompt": f"Chapter {i}. It was a dark night in the year {1800 + i}", "max_tokens": tokens, "ignore_eos": True, "seed": i}
            for i in range(count)]


class Clock:
    """Seconds since it was made: of the wall, and of the processors for this process and the children that have ended."""

    def __init__(self):
        self._begin = self._now()

    @staticmethod
    def _now() -> tuple[float, float]:
        used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return time.perf_counter(), sum(one.ru_utime + one.ru_stime for one in used)

    def seconds(self) -> tuple[float, float]:
        wall, processors = self._now()
        return wall - self._begin[0], processors - self._begin[1]


def run_program(binary: Path, model: Path, asked: list[dict]) -> tuple[float, float]:
    def seconds(lines: list[dict]) -> tuple[float, float]:
        clock = Clock()
        subprocess.run([binary, "generate", "-m", model, "--load-format", "dummy", "--quantize", "q8", "--jsonl", "-q"], check=True,
                       capture_output=True, text=True, input="".join(json.dumps(line) + "\n" for line in lines))
        return clock.seconds()
    whole, without = seconds(asked), seconds([])
    return whole[0] - without[0], whole[1] - without[1]


def params(asked: dict):
    import paceline
    return paceline.SamplingParams(max_tokens=asked["max_tokens"], ignore_eos=True, seed=asked["seed"])


def run_threads(llm, asked: list[dict]) -> tuple[float, float]:
    clock = Clock()
    threads = [threading.Thread(target=lambda one=one: llm.generate(one["prompt"], params(one))) for one in asked]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return clock.seconds()


def run_tasks(llm, asked: list[dict]) -> tuple[float, float]:
    import paceline

    async def one(model, request: dict) -> None:
        async for _ in model.generate(request["prompt"], params(request)):
            pass

    async def run() -> tuple[float, float]:
        model = paceline.AsyncLLM(llm)
        clock = Clock()
        await asyncio.gather(*[one(model, request) for request in asked])
        return clock.seconds()

    return asyncio.run(run())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=64)
    parser.add_argument("--tasks", type=int, default=1000)
    parser.add_argument("--tokens", type=int, default=16, help="of each request [16]")
    parser.add_argument("--runs", type=int, default=3, help="of each side, taking turns [3]")
    parser.add_argument("--binary", type=Path, default=ROOT / "build" / "release" / "paceline")
    parser.add_argument("--library", type=Path, default=ROOT / "build" / "release" / "libpaceline.so")
    options = parser.parse_args()
    os.environ["PACELINE_LIBRARY"] = str(options.library)
    sys.path.insert(0, str(ROOT / "python"))
    import paceline
    found: dict[str, list[tuple[float, float]]] = {}
    with tempfile.TemporaryDirectory() as work:
        model = Path(work) / "model"
        make_model(model)
        for count, name, run in [(options.threads, "threads", run_threads), (options.tasks, "tasks", run_tasks)]:
            asked = requests(count, options.tokens)
            for _ in range(options.runs):
                print(f"load {' '.join(f'{load:.2f}' for load in os.getloadavg())}", flush=True)
                found.setdefault(f"program, {count} requests", []).append(run_program(options.binary, model, asked))
                llm = paceline.LLM(str(model), load_format="dummy", quantize="q8")
                found.setdefault(f"Python, {count} {name}", []).append(run(llm, asked))
                llm.close()
            (program, of_program), (python, of_python) = ([statistics.median(times) for times in zip(*found[key])] for key in list(found)[-2:])
            rate = count * options.tokens
            print(f"{count} {name}: Python {rate / python:.0f} tok/s, the program {rate / program:.0f} tok/s: {program / python:.3f} times "
                  f"(goal {GOAL}); processor time {of_python:.1f} s and {of_program:.1f} s: {of_program / of_python:.3f} times", flush=True)


if __name__ == "__main__":
    main()
