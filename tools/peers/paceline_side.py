"""Paceline's measurements: `paceline bench --json` for rates, generate for memory, score for what it computes."""
import json
import tempfile
from pathlib import Path

from .children import Failed, run

MEMORY_OUTPUT = 4


def member(found, name, where):
    if name not in found:
        raise Failed(f"paceline bench --json: {where} has no \"{name}\", only {sorted(found)}")
    return found[name]


def rates_of(report):
    """{test: (tokens per second, the roofline's)} of a report on one model."""
    rates = {}
    for result in member(report, "results", "the report"):
        test = member(result, "test", "a result")
        rate = member(result, "tokens_per_second", test)
        rates[test] = (rate, rate / member(result, "fraction", test))
    return rates


def batch_rates_of(report, sequences):
    for result in member(report, "generate", "the report"):
        if member(result, "sequences", "a batch") == sequences:
            return {"total": (member(result, "total_tokens_per_second", "a batch"), None),
                    "decode": (member(result, "decode_tokens_per_second", "a batch"), None)}
    raise Failed(f"paceline bench --json: no batch of {sequences} sequences")


class Paceline:
    def __init__(self, binary, threads):
        self.binary, self.threads = binary, threads
        self.instruction_set = "?"

    def call(self, command, file, *options, text=""):
        return run([self.binary, command, "-m", file, "--threads", self.threads, *options], text)

    def version(self):
        return run([self.binary, "--version"]).output.splitlines()[0]

    def bench(self, file, prompt, output):
        done = self.call("bench", file, "--json", "--repetitions", 1, "--prompt-tokens", prompt, "--output-tokens", output)
        report = json.loads(done.output)
        self.instruction_set = member(report, "instruction_set", "the report")
        return rates_of(report), done.others_cores

    def batch(self, file, test):
        done = self.call("bench", file, "--json", "--batch", "--repetitions", 1)
        return batch_rates_of(json.loads(done.output), test["sequences"]), done.others_cores

    def peak_bytes(self, file, test):
        """Of a process that computes the prompts of a batch, with room for the outputs."""
        sequences, prompt, length = test["sequences"], test["prompt"], test["prompt"] + test["output"]
        lines = "".join(json.dumps({"prompt_ids": [1 + (i * 7919 + sequence * 104729) % 255 for i in range(prompt)]}) + "\n"
                        for sequence in range(sequences))
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "prompts.jsonl"
            path.write_text(lines)
            return self.call("generate", file, "--jsonl", "--file", path, "--max-tokens", MEMORY_OUTPUT, "--ignore-eos",
                             "--temperature", 0, "--max-num-seqs", sequences, "--max-model-len", length).peak_bytes

    def logprobs(self, file, ids):
        done = self.call("score", file, "--jsonl", "--prompt-ids", ",".join(map(str, ids)))
        return json.loads(done.output)["logprobs"][1:]
