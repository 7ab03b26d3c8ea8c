"""Whole models: transformers' greedy tokens in float32, and the emulation's bits in bfloat16."""
import json
import math
import os
import time
from concurrent.futures import ThreadPoolExecutor

from gpu import generation
from gpu.outcome import Outcome
from gpu.programs import ROOT

GOLDENS = ROOT / "tests/goldens"
KINDS = ("models", "hybrids")  # hybrids have layers with states


def folders(setting):
    found = []
    for kind in KINDS:
        paths = sorted((GOLDENS / kind).glob("*/golden.json"))
        own = [path.parent for path in paths if holds_prompt(path)]
        found += own[:1] if setting.emulated else own
    return found


def holds_prompt(path):
    """Whether the model's context holds its golden prompt: one's doesn't, for a test of scaled positions."""
    golden = json.loads(path.read_text())
    context = json.loads((path.parent / "config.json").read_text()).get("max_position_embeddings", math.inf)
    return len(golden["prompt_ids"]) + len(golden["greedy_ids"]) <= context


def run(programs, setting, limit_s):
    outcome = Outcome("models")
    if not generation.has_devices(programs):
        return generation.lacks_devices(outcome, setting)
    end = time.monotonic() + limit_s
    left_out = []

    def check(folder):
        left = end - time.monotonic()
        if left < 3:
            left_out.append(folder)
            return
        try:
            check_model(outcome, programs, setting, folder, left)
        except generation.NoAnswer as error:
            outcome.check(folder.name, False, fault=str(error))

    # A model's processes start for longer than they compute, and the emulation computes on the CPU.
    with ThreadPoolExecutor(max(1, min(6, os.cpu_count() // 2))) as pool:
        list(pool.map(check, folders(setting)))
    if left_out:
        outcome.summary = f"{len(left_out)} models left out for want of time"
    return outcome.judge()


def check_model(outcome, programs, setting, folder, limit_s):
    golden = json.loads((folder / "golden.json").read_text())
    item = {"prompt_ids": golden["prompt_ids"], "max_tokens": len(golden["greedy_ids"]), "temperature": 0, "seed": 1}

    def answer(item, device, dtype, emulated):
        options = ["--dtype", dtype, "--kv-cache-dtype", dtype]
        return generation.generate(programs, folder, [item], device, limit_s, *options, emulated=emulated)

    tokens = answer(item, setting.device, "float32", setting.emulated)[0][0]
    outcome.check(f"{folder.name} float32", tokens == golden["greedy_ids"], found=tokens)
    if setting.is_hopper:
        short = {**item, "max_tokens": 4, "logprobs": 2}
        found = answer(short, setting.device, "bfloat16", setting.emulated)
        outcome.check(f"{folder.name} bfloat16, bits of the emulation",
                      found == answer(short, "cuda", "bfloat16", True), found=found[0][0])
