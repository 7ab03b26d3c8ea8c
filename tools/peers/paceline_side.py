"""Paceline's measurements: `paceline bench --json` for rates, generate for memory, score for log-probabilities, and
the benchmark program of embeddings."""
import json
import re
import tempfile
from pathlib import Path

from .children import Failed, run

MEMORY_OUTPUT = 4  # prompts cause the peak


def member(found, name, where):
    if name not in found:
        raise Failed(f"paceline bench --json: {where} has no \"{name}\", only {sorted(found)}")
    return found[name]


def roofline_of(result, rate):
    """The rate at which the machine's limit would be reached. Decoding's is the read bandwidth."""
    where = member(result, "test", "a result")
    if where == "decode":
        reached, limit = (member(result, name, where) for name in ("bytes_per_second", "roofline_bytes_per_second"))
        return rate * limit / reached
    return rate / member(result, "fraction", where)


def rates_of(report):
    """{test: (tokens per second, the roofline's)} of a report on one model; a batch is a total and a decode."""
    rates = {}
    for result in member(report, "results", "the report"):
        test = member(result, "test", "a result")
        rate = member(result, "tokens_per_second", test)
        if test == "batch":
            rates["total"] = (member(result, "total_tokens_per_second", test), None)
            rates["decode"] = (rate, roofline_of(result, rate))
        else:
            rates[test] = (rate, roofline_of(result, rate))
    return rates


def prompt_lines(sequences, count):
    """Prompts of ids of any vocabulary, all with different beginnings."""
    return "".join(json.dumps({"prompt_ids": [1 + (i * 7919 + sequence * 104729) % 255 for i in range(count)]}) + "\n"
                   for sequence in range(sequences))


class Paceline:
    def __init__(self, binary, threads):
        self.binary, self.threads = binary, threads
        self.instruction_set = "?"

    def call(self, command, file, *options):
        return run([self.binary, command, "-m", file, "--threads", self.threads, *options])

    def version(self):
        return run([self.binary, "--version"]).output.splitlines()[0]

    def bench(self, file, tests, prompt, output, *options):
        """{test: (tokens per second, the roofline's)}, and the cores used by others meanwhile."""
        done = self.call("bench", file, "--json", "--tests", tests, "--repetitions", 1, "--prompt-tokens", prompt,
                         "--output-tokens", output, *options)
        report = json.loads(done.output)
        self.instruction_set = member(report, "instruction_set", "the report")
        return rates_of(report), done.others_cores

    def batch(self, file, test):
        return self.bench(file, "batch", test["prompt"], test["output"], "--sequences", test["sequences"])

    def peak_bytes(self, file, test):
        """The peak memory of a process that computes the prompts of a batch, with room for the outputs."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "prompts.jsonl"
            path.write_text(prompt_lines(test["sequences"], test["prompt"]))
            return self.call("generate", file, "--jsonl", "--file", path, "--max-tokens", MEMORY_OUTPUT,
                             "--ignore-eos", "--temperature", 0, "--max-num-seqs", test["sequences"],
                             "--max-model-len", test["prompt"] + test["output"]).peak_bytes

    def embed(self, file, test):
        """Texts a second, and the cores used by others meanwhile."""
        done = run([self.binary.parent / "bench" / "paceline_bench_embeddings", file, f"--threads={self.threads}",
                    f"--texts={test['texts']}", f"--tokens={test['tokens']}", "--rounds=1"])
        found = re.search(r": ([0-9.]+) a second", done.output)
        if not found:
            raise Failed(f"paceline_bench_embeddings: no rate in {done.output!r}")
        return float(found[1]), done.others_cores

    def logprobs(self, file, ids):
        done = self.call("score", file, "--jsonl", "--prompt-ids", ",".join(map(str, ids)))
        return json.loads(done.output)["logprobs"][1:]
