"""Speed of whole models with random weights: decoding, prompts and sentences, by the steps of `paceline generate`."""
import random
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from gpu import generation, shapes, step_times
from gpu.outcome import Outcome

PROMPT = 64  # tokens before decoding
WARM_UP_BATCHES = 2  # of sentences


@dataclass(frozen=True)
class Sizes:
    decoding: tuple  # sequences at once, the most first
    steps: int  # with each number of them
    prompts: tuple
    sentences: int  # at once
    sentence_tokens: tuple
    cache_bytes: str


FULL = Sizes((256, 64, 8, 1), 16, (512, 2048, 8192), 256, (30, 60), "12G")
SMALL = Sizes((4, 1), 3, (20,), 3, (5,), "16M")


def run(programs, setting, limit_s):
    outcome = Outcome("engine")
    if not generation.has_devices(programs):
        return generation.lacks_devices(outcome, setting)
    sizes = SMALL if setting.emulated else FULL
    names = ["tiny"] if setting.emulated else shapes.MEASURED
    runs = [(name, measure) for measure in (measure_decode, measure_prompts, measure_sentences) for name in names]
    end = time.monotonic() + limit_s
    with tempfile.TemporaryDirectory() as directory:
        models = {name: shapes.write_model(directory, name) for name in names}
        for index, (name, measure) in enumerate(runs):
            left = end - time.monotonic()
            if left < 2:
                outcome.measured(f"{len(runs) - index} runs were left out", left_out="no time was left")
                break
            share = min(left, 2 * left / (len(runs) - index))
            try:
                measure(outcome, Runner(programs, setting, models[name], share), name, sizes)
            except generation.NoAnswer as error:
                outcome.measured(f"{name} {measure.__name__}", fault=str(error))
    return outcome.judge()


class Runner:
    """Runs prompts on a model of random weights."""

    def __init__(self, programs, setting, model, limit_s):
        self._programs, self._setting, self._model, self._limit_s = programs, setting, model, limit_s
        self._draw = random.Random(1)

    def item(self, tokens, most):
        return {"prompt_ids": [self._draw.randrange(3, 300) for _ in range(tokens)], "max_tokens": most, "temperature": 0,
                "seed": 1}

    def steps(self, items, sequences, sizes):
        """The steps of items, of which so many run at once; a step takes any number of tokens."""
        with tempfile.TemporaryDirectory() as directory:
            trace = Path(directory) / "trace"
            generation.generate(self._programs, self._model, items, self._setting.device, self._limit_s, "--load-format",
                                "dummy", "--dtype", "bfloat16", "--max-num-seqs", str(sequences), "--trace", trace,
                                "--max-num-batched-tokens", "16384", "--kv-cache-memory-bytes", sizes.cache_bytes,
                                emulated=self._setting.emulated)
            return step_times.steps_of(trace.read_text())


def measure_decode(outcome, runner, name, sizes):
    # Of the largest batch some go on, of these some go on, ...: each number of sequences has steps of its own.
    items = []
    for index, count in enumerate(sizes.decoding):
        next_count = (*sizes.decoding, 0)[index + 1]
        items += [runner.item(PROMPT, (index + 1) * sizes.steps + 1) for _ in range(count - next_count)]
    steps = runner.steps(items, sizes.decoding[0], sizes)
    for count in reversed(sizes.decoding):
        report(outcome, f"{name} decode {count} behind {PROMPT}", "tokens_per_second", step_times.decode_rate(steps, count))


def measure_prompts(outcome, runner, name, sizes):
    warm_up = runner.item(sizes.prompts[0], 1)
    steps = runner.steps([warm_up, *(runner.item(tokens, 1) for tokens in sizes.prompts)], 1, sizes)
    for tokens in sizes.prompts:
        rate = step_times.prompt_rate(steps, tokens)
        report(outcome, f"{name} prefill {tokens}", "tokens_per_second", rate and tokens * rate)


def measure_sentences(outcome, runner, name, sizes):
    """One token is drawn for each, which costs a classification's time or more."""
    for tokens in sizes.sentence_tokens:  # a run for each length: the first step takes what has been read by then
        items = [runner.item(tokens, 1) for _ in range(WARM_UP_BATCHES * sizes.sentences + sizes.sentences)]
        steps = runner.steps(items, sizes.sentences, sizes)
        report(outcome, f"{name} sentences of {tokens}", "prompts_per_second",
               step_times.prompt_rate(steps, tokens, sizes.sentences // 2))


def report(outcome, name, unit, value):
    if value is None:
        outcome.measured(name, fault="no step had this size alone")
    else:
        outcome.measured(name, **{unit: value})
