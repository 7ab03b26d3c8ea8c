"""Random batches: each sequence's tokens and log-probabilities are those that it has alone, and in steps that the CPU
begins one by one."""
import random
import time

from gpu import generation
from gpu.outcome import Outcome
from gpu.models import GOLDENS

MODELS = ("models/qwen3_tied", "models/gemma3_text_pattern2", "hybrids/qwen3_5_text", "models/qwen3_moe_tied",
          "hybrids/granitemoehybrid_mamba")


def run(programs, setting, limit_s):
    outcome = Outcome("batches")
    if not generation.has_devices(programs):
        return generation.lacks_devices(outcome, setting)
    end = time.monotonic() + limit_s
    most_rounds = 1 if setting.emulated else 1000
    slowest = 0.0
    for index in range(most_rounds):
        begin = time.monotonic()
        if begin + 1.5 * slowest > end:
            break
        try:
            check_round(outcome, programs, setting, index, end - begin)
        except generation.NoAnswer as error:
            outcome.check(f"round {index}", False, fault=str(error))
        slowest = max(slowest, time.monotonic() - begin)
    return outcome.judge()


def check_round(outcome, programs, setting, index, limit_s):
    draw = random.Random(index)
    model = GOLDENS / MODELS[index % len(MODELS)]
    items = random_items(draw, 4 if setting.emulated else 48, 6 if setting.emulated else 24)
    options = ["--kv-cache-dtype", draw.choice(["bfloat16", "float32", "int8"]), "--dtype", "bfloat16"]

    def answers(some, sequences, *others):
        return generation.generate(programs, model, some, setting.device, limit_s, *options, *others, "--max-num-seqs",
                                   str(sequences), emulated=setting.emulated)

    alone = answers(items, 1)
    order = draw.sample(range(len(items)), len(items))
    shuffled, sequences = [items[i] for i in order], draw.choice([3, 8, 33, 64])
    together = answers(shuffled, sequences)
    differing = [i for place, i in enumerate(order) if together[place] != alone[i]]
    outcome.check(f"round {index}: {len(items)} sequences of {model.name}", not differing, differing=differing)
    stepped = answers(shuffled, sequences, "--max-run-steps", "1")
    differing = [i for place, i in enumerate(order) if together[place] != stepped[place]]
    outcome.check(f"round {index}: runs of the decode loop and single steps", not differing, differing=differing)


def random_items(draw, count, most_tokens):
    """Prompts of up to 90 tokens, a third with a common beginning."""
    beginning = [draw.randrange(3, 250) for _ in range(40)]
    items = []
    for index in range(count):
        prompt = [draw.randrange(3, 250) for _ in range(draw.randint(1, 50))]
        items.append({"prompt_ids": beginning + prompt if index % 3 == 0 else prompt, "seed": index, "logprobs": 2,
                      "max_tokens": draw.randint(1, most_tokens), "temperature": draw.choice([0, 0.8, 1.3])})
    return items
