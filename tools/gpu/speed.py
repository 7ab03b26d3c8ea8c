"""Speed of whole models with random weights: decoding, prompts and sentences, by the steps of `paceline generate`."""
import random
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path

from gpu import device_checks, generation, shapes, step_times
from gpu.outcome import Outcome

PROMPT, CONTEXT = 64, 1024  # tokens before decoding
STEP_TOKENS = 8192  # a GPU's default
WARM_UP_BATCHES = 2  # of sentences
LLAMA, GEMMA, HYBRID = "llama-3.2-1b", "gemma-3-1b", "qwen3.5-0.8b"
OTHERS = ("qwen3-0.6b", GEMMA)


@dataclass(frozen=True)
class Sizes:
    decoding: tuple  # sequences at once, the most first
    quantised: tuple  # the same, with weights of 4 and 8 bits
    steps: int  # with each number of them
    positions: tuple  # behind which they decode
    prompts: tuple
    sentences: int  # at once
    sentence_tokens: tuple
    cache_bytes: str


FULL = Sizes((256, 64, 8, 1), (256, 64, 1), 16, (PROMPT, CONTEXT), (512, 2048, 8192), 256, (30, 60), "12G")
SMALL = Sizes((3, 1), (2,), 3, (20,), (20,), 3, (5,), "16M")


class Measurement:
    """A part that measures models, one run after another, while there is time."""

    def __init__(self, part, programs, setting, limit_s, tiny="tiny"):
        self.outcome = Outcome(part)
        self.setting = setting
        self.sizes = SMALL if setting.emulated else FULL
        self._tiny = tiny  # the emulation's model
        self._programs = programs
        self._end = time.monotonic() + limit_s

    def run(self, runs):
        """`runs`: a model's name, a function of a Runner, and what else it takes."""
        if not generation.has_devices(self._programs):
            return generation.lacks_devices(self.outcome, self.setting)
        with tempfile.TemporaryDirectory() as directory:
            for index, (name, measure, *arguments) in enumerate(runs):
                left = self._end - time.monotonic()
                if left < 2:
                    self.outcome.measured(f"{len(runs) - index} runs were left out", left_out="no time was left")
                    break
                name = self._tiny if self.setting.emulated else name
                runner = Runner(self._programs, self.setting, shapes.write_model(directory, name),
                                min(left, 2 * left / (len(runs) - index)), self.sizes)
                try:
                    measure(self.outcome, runner, name, self.sizes, *arguments)
                except generation.NoAnswer as error:
                    self.outcome.measured(f"{name} {measure.__name__} {arguments or ''}".strip(), fault=str(error))
        return self.outcome.judge()


def decode(programs, setting, limit_s):
    measurement = Measurement("decode", programs, setting, limit_s)
    return measurement.run([(LLAMA, measure_decode, position) for position in measurement.sizes.positions])


def prompts(programs, setting, limit_s):
    return Measurement("prompts", programs, setting, limit_s).run([(LLAMA, measure_prompts)])


def hybrids(programs, setting, limit_s):
    """A model with states: their memory is beside that of keys and values."""
    measurement = Measurement("hybrids", programs, setting, limit_s, "tiny-hybrid")
    if not setting.emulated:
        measurement.sizes = replace(measurement.sizes, cache_bytes="24G")
    position = measurement.sizes.positions[0]
    return measurement.run([(HYBRID, measure_decode, position), (HYBRID, measure_prompts)])


def quantised(programs, setting, limit_s):
    measurement = Measurement("quantised", programs, setting, limit_s)
    return measurement.run([(LLAMA, measure_decode, measurement.sizes.positions[0], bits) for bits in (4, 8)])


def sentences(programs, setting, limit_s):
    tokens = SMALL.sentence_tokens[0] if setting.emulated else FULL.sentence_tokens[0]
    return Measurement("sentences", programs, setting, limit_s).run([(GEMMA, measure_sentences, tokens)])


def others(programs, setting, limit_s):
    """The models that no other part measures."""
    measurement = Measurement("others", programs, setting, limit_s)
    sizes, names = measurement.sizes, ("tiny",) if setting.emulated else OTHERS
    return measurement.run([*((name, measure_decode, sizes.positions[0]) for name in names),
                            *((name, measure_prompts) for name in names),
                            *((name, measure_sentences, sizes.sentence_tokens[-1]) for name in names)])


class Runner:
    """Runs prompts on a model of random weights."""

    def __init__(self, programs, setting, model, limit_s, sizes):
        self._programs, self._setting, self._model, self._limit_s = programs, setting, model, limit_s
        self._cache_bytes = sizes.cache_bytes
        self._draw = random.Random(1)

    def item(self, tokens, most):
        return {"prompt_ids": [self._draw.randrange(3, 300) for _ in range(tokens)], "max_tokens": most, "temperature": 0,
                "seed": 1}

    def steps(self, items, sequences, *options):
        """The steps of items, of which so many run at once."""
        with tempfile.TemporaryDirectory() as directory:
            trace = Path(directory) / "trace"
            generation.generate(self._programs, self._model, items, self._setting.device, self._limit_s, "--load-format",
                                "dummy", "--dtype", "bfloat16", "--max-num-seqs", str(sequences), "--trace", trace,
                                "--kv-cache-memory-bytes", self._cache_bytes, *options,
                                emulated=self._setting.emulated)
            return step_times.steps_of(trace.read_text())


def measure_decode(outcome, runner, name, sizes, position, bits=16):
    # Of the largest batch some go on, of these some go on, ...: each number of sequences has steps of its own.
    counts = sizes.decoding if bits == 16 else sizes.quantised
    # While the last prompts are computed the first sequences decode already.
    prefill_steps = counts[0] * position // STEP_TOKENS + 3
    items = []
    for index, count in enumerate(counts):
        next_count = (*counts, 0)[index + 1]
        items += [runner.item(position, prefill_steps + (index + 1) * sizes.steps + 1) for _ in range(count - next_count)]
    steps = runner.steps(items, counts[0], *(() if bits == 16 else ("--quantize", f"q{bits}")))
    model = name if bits == 16 else f"{name} {bits} bits"
    for count in reversed(counts):
        rate, what = step_times.decode_rate(steps, count), f"{model} decode {count} behind {position}"
        report(outcome, what, "tokens_per_second", rate)
        if rate and shapes.is_hybrid(name):
            report(outcome, f"{what}, moved", "bytes_per_second", rate / count * shapes.decode_bytes(name, count))


def measure_prompts(outcome, runner, name, sizes):
    warm_up = runner.item(sizes.prompts[0], 1)
    steps = runner.steps([warm_up, *(runner.item(tokens, 1) for tokens in sizes.prompts)], 1)
    for tokens in sizes.prompts:
        rate = step_times.prompt_rate(steps, tokens)
        report(outcome, f"{name} prefill {tokens}", "tokens_per_second", rate and tokens * rate)
        if rate and shapes.is_hybrid(name):
            report(outcome, f"{name} prefill {tokens}, moved", "bytes_per_second", rate * shapes.prompt_bytes(name))


def measure_sentences(outcome, runner, name, sizes, tokens):
    """One token is drawn for each, which costs a classification's time or more."""
    items = [runner.item(tokens, 1) for _ in range(WARM_UP_BATCHES * sizes.sentences + sizes.sentences)]
    steps = runner.steps(items, sizes.sentences)
    # The first step takes what has been read by then.
    report(outcome, f"{name} sentences of {tokens}", "prompts_per_second",
           step_times.prompt_rate(steps, tokens, sizes.sentences // 2))


def report(outcome, name, unit, value):
    if value is None:
        outcome.measured(name, fault="no step had this size alone")
    else:
        outcome.measured(name, **{unit: value})


def products(programs, setting, limit_s):
    return device_checks.run_part("products", programs, setting, limit_s)


def attention(programs, setting, limit_s):
    return device_checks.run_part("attention", programs, setting, limit_s)
