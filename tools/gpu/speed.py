"""Speed of whole models with random weights, by `paceline bench`."""
import json
import time

from gpu import children, generation
from gpu.models import GOLDENS
from gpu.outcome import Outcome

SMALL_MODEL = GOLDENS / "qwen3_tied"
SHAPES = ("llama-3.2-1b", "qwen3-0.6b", "gemma-3-1b")
RUNS = (("batch", ["--sequences", "1,8,64,256", "--prompt-tokens", "64", "--output-tokens", "32"]),
        ("prefill", ["--prompt-tokens", "512,2048,8192"]),
        ("classify", ["--sequences", "256", "--prompt-tokens", "30,60"]))
SMALL_RUNS = (("prefill", ["--prompt-tokens", "2"]), ("classify", ["--sequences", "2", "--prompt-tokens", "3"]))


def run(programs, setting, limit_s):
    outcome = Outcome("engine")
    if not generation.has_devices(programs):
        return outcome.skip("this paceline has no --device")
    models = [("tiny", ["-m", SMALL_MODEL])] if setting.emulated else [(name, ["--shape", name]) for name in SHAPES]
    tests = SMALL_RUNS if setting.emulated else RUNS
    runs = [(model, test) for test in tests for model in models]
    end = time.monotonic() + limit_s
    for index, (model, test) in enumerate(runs):
        left = end - time.monotonic()
        if left < 2:
            outcome.measured(f"{len(runs) - index} runs left out", reason="no time was left")
            break
        measure(outcome, programs, setting, model, test, min(left, 2 * left / (len(runs) - index)))
    return outcome.judge()


def measure(outcome, programs, setting, model, test, limit_s):
    command = programs.command("paceline", "bench", *model[1], "--device", setting.device, "--tests", test[0],
                               "--repetitions", "1", "--json", *test[1])
    done = children.run(command, limit_s, variables={"PACELINE_CUDA_EMULATION": "1"} if setting.emulated else {})
    if done.code != 0:
        outcome.measured(f"{model[0]} {test[0]} {' '.join(test[1])}", fault=done.fault())
        return
    for row in json.loads(done.output)["results"]:
        name = f"{model[0]} {test[0]} {row['sequences']} x {row['prompt_tokens']}"
        kept = ("tokens_per_second", "total_tokens_per_second", "prompts_per_second", "seconds")
        outcome.measured(name, **{key: row[key] for key in kept if key in row})
