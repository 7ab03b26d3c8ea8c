"""A server's tokens a second with many streams at once: `paceline serve` with its defaults, and paceline_load_client."""
import json
import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from gpu import children, generation, serving, shapes
from gpu.outcome import Outcome

CLIENT = "paceline_load_client"


@dataclass(frozen=True)
class Load:
    streams: int
    prompt_tokens: int
    tokens: int
    times: int  # measured, behind one that warms up

    @property
    def name(self):
        return f"http, {self.streams} streams of {self.prompt_tokens} in, {self.tokens} out"


FULL = (Load(256, 64, 200, 3), Load(256, 1024, 100, 2))
SMALL = (Load(2, 6, 3, 1),)


def run(programs, setting, limit_s):
    outcome = Outcome("http")
    if not generation.has_devices(programs):
        return generation.lacks_devices(outcome, setting)
    if not programs.has(CLIENT):
        return outcome.skip(f"{CLIENT} is not among the programs")
    end = time.monotonic() + limit_s
    options = ["--load-format", "dummy", "--dtype", "bfloat16", "--served-model-name", "paced",
               *(["--kv-cache-memory-bytes", "16M"] if setting.emulated else [])]
    with tempfile.TemporaryDirectory() as directory:
        # The client's prompts have tokens above 2,300.
        model = (shapes.write_model(directory, "tiny", vocab_size=4096) if setting.emulated
                 else shapes.write_model(directory, "llama-3.2-1b"))
        try:
            with serving.serve(programs, setting, model, options, end) as (server, _):
                outcome.measured("http, start to ready", seconds=limit_s - (end - time.monotonic()))
                measure(outcome, programs, server.port, SMALL if setting.emulated else FULL, Path(directory), end)
        except generation.NoAnswer as error:
            outcome.measured("http", fault=str(error))
    return outcome.judge()


def measure(outcome, programs, port, loads, directory, end):
    first_prompt = 0
    for load in loads:
        found = []
        for _ in range(1 + load.times):
            left = end - time.monotonic()
            if len(found) > 1 and left < 2 * found[-1]["seconds"] + 2:
                break
            found.append(run_load(programs, port, load, first_prompt, directory / "load.json", left))
            first_prompt += load.streams  # a prompt that was seen would be in the prefix cache
        # The first one warmed up, unless there was no time for another.
        figures = sorted(found[1:] or found, key=lambda one: one["seconds"])[len(found[1:]) // 2]
        streams = figures["streams"]
        outcome.measured(load.name, tokens_per_second=streams["tokens"] / figures["seconds"],
                         how=f"first token {streams['first_token']['p50_ms']:.0f}, {streams['first_token']['p99_ms']:.0f} ms; "
                             f"between {streams['gap']['p50_ms']:.1f}, {streams['gap']['p99_ms']:.1f} ms (p50, p99)",
                         warm_up_seconds=found[0]["seconds"],
                         median_of=len(found[1:]), spread=spread([one["seconds"] for one in found[1:]]))


def spread(seconds):
    return (max(seconds) - min(seconds)) / statistics.median(seconds) if seconds else 0


def run_load(programs, port, load, first_prompt, file, limit_s):
    """The client's figures. Raises NoAnswer."""
    arguments = ["--port", port, "--any-tokens", "--streams", load.streams, "--stream-tokens", load.tokens, "--prompt-tokens",
                 load.prompt_tokens, "--first-prompt", first_prompt, "--stream-spread", 0, "--grace", max(1, int(limit_s)),
                 "--json", file]
    done = children.run(programs.command(CLIENT, *map(str, arguments)), limit_s)
    if done.code != 0:
        raise generation.NoAnswer(f"{load.name}: {done.fault()} {done.output[:300]}")
    return json.loads(file.read_text())
