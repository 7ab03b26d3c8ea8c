"""A second peer: any build of llama-bench, from llama.cpp or a fork (ik_llama.cpp). One sequence at a time; each
measurement is a process of its own."""
import json

from .children import Failed, run

# Tried: no option, flash attention, and ik_llama.cpp's repacking at load.
VARIANTS = ((), ("-fa", "1"), ("-rtr", "1"), ("-fa", "1", "-rtr", "1"))
SHORT_OUTPUT = 32


def rate_in(output, kind):
    """Tokens per second of the one test in the report of `llama-bench -o json`."""
    try:
        # Builds may write other lines before it.
        report = json.loads(output[output.index("["):])
        count = "n_prompt" if kind == "prefill" else "n_gen"
        rates = [float(test["avg_ts"]) for test in report if test[count] > 0]
    except (ValueError, KeyError, TypeError) as problem:
        raise Failed(f"llama-bench -o json: its report can't be read ({problem})") from None
    if len(rates) != 1:
        raise Failed(f"llama-bench -o json: {len(rates)} tests of {kind}, expected one")
    return rates[0]


class LlamaBench:
    def __init__(self, binary, threads, say, note):
        self.binary, self.threads, self.say, self.note = binary, threads, say, note
        self.variants = {}  # the fastest for a file and kind

    def rate(self, file, test, variant):
        kind = test["kind"]
        counts = (test["prompt"], 0) if kind == "prefill" else (0, test["output"])
        done = run([self.binary, "-m", file, "-t", self.threads, "-p", counts[0], "-n", counts[1], "-ngl", 0, "-r", 1,
                    "-o", "json", *variant])
        self.note(done.others_cores)
        return rate_in(done.output, kind)

    def best_variant(self, file, test):
        """The fastest of one short run each; a build refuses unknown options."""
        rates, reason = {}, None
        for variant in VARIANTS:
            try:
                rates[variant] = self.rate(file, test, variant)
                self.say(f"  llama-bench {test['kind']} {' '.join(variant)}: {rates[variant]:,.1f} tok/s")
            except Failed as failed:
                reason = failed
        if not rates:
            raise Failed(f"{file}: llama-bench measures nothing:\n{reason}")
        return max(rates, key=rates.get)

    def measure(self, file, test):
        key = (file, test["kind"])
        if key not in self.variants:
            short = {**test, "output": min(test["output"], SHORT_OUTPUT)} if test["kind"] == "decode" else test
            self.variants[key] = self.best_variant(file, short)
        return self.rate(file, test, self.variants[key])

    def words(self, file, kind):
        return " ".join((str(self.binary), *self.variants[file, kind]))
