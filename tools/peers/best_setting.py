"""Searches the peer's best settings: one setting after the other, each alternating with the best so far."""
import json

TRIES = 2
HOPELESS = 0.85  # of the best: not tried a second time

# The search begins with the first of each. Flash attention and cache types affect caches, ubatch (tokens computed
# together) affects prompts, the unified cache affects several sequences.
FOR_PREFILL = {"flash": (True, False), "repacked": (True, False), "ubatch": (512, 128), "cache": ("f16", "bf16")}
FOR_DECODE = {"flash": (True, False), "repacked": (True, False), "cache": ("f16", "bf16")}
FOR_BATCH = {"flash": (True, False), "unified": (False, True), "ubatch": (512, 2048), "repacked": (True, False),
             "cache": ("f16", "bf16")}
# Of texts, as many are computed together as an ubatch holds.
FOR_EMBED = {"flash": (True, False), "unified": (False, True), "ubatch": (512, 2048), "repacked": (True, False)}
CHOICES = {"prefill": FOR_PREFILL, "decode": FOR_DECODE, "batch": FOR_BATCH, "embed": FOR_EMBED}
PLAIN = ("F32", "F16", "BF16")  # nothing of these is ever repacked


def choices_for(kind, wanted):
    return {**CHOICES[kind], "repacked": (False,)} if wanted in PLAIN else CHOICES[kind]


def compare(best, other, rate_of):
    """Whether `other` is faster at its best try."""
    rates = {True: [], False: []}
    for _ in range(TRIES):
        rates[False].append(rate_of(best))
        rates[True].append(rate_of(other))
        if rates[True][0] < HOPELESS * rates[False][0]:
            break
    return max(rates[True]) > max(rates[False])


def search(choices, rate_of):
    best = {name: values[0] for name, values in choices.items()}
    for name, values in choices.items():
        for value in values[1:]:
            other = {**best, name: value}
            if compare(best, other, rate_of):
                best = other
    return best


def shorter(test):
    """A shorter test with the same best settings."""
    if test["kind"] == "decode":
        return {**test, "output": min(test["output"], 32)}
    if test["kind"] == "batch":
        return {**test, "prompt": max(1, test["prompt"] // 2), "output": min(test["output"], 16)}
    if test["kind"] == "embed":
        return {**test, "texts": min(test["texts"], 64)}
    return test


class Remembered:
    """Settings found before, stored in a file beside the models."""

    def __init__(self, path):
        self.path = path
        self.known = json.loads(path.read_text()) if path.exists() else {}

    def get(self, key):
        return self.known.get(key)

    def keep(self, key, settings):
        self.known[key] = settings
        self.path.write_text(json.dumps(self.known, indent=1) + "\n")


def words(settings):
    """Settings for people."""
    said = [f"flash attention {'on' if settings['flash'] else 'off'}", f"{settings.get('cache', 'f16')} cache"]
    if "unified" in settings:
        said.append("one cache for all" if settings["unified"] else "a cache for each sequence")
    if "ubatch" in settings:
        said.append(f"ubatch {settings['ubatch']}")
    return ", ".join(said + ["weights repacked" if settings["repacked"] else "weights as in the file"])
