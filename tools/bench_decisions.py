#!/usr/bin/env python3
"""What decisions cost, against prefill and decode of the same process; docs/performance.md has the figures.

64 questions of 3 choices over an input of 1,000 tokens, against their tokens at the rate of a prompt of 1,000; and one
predicate of 24 tokens over an input in the cache, against a step of decode. The weights are random, of a shape with the
tokenizer of the bundled model. The measurements take turns. With --clock cpu they are the server's processor time, for a
machine that others use, too.
"""
import argparse
import json
import os
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from peers.shapes import SHAPES

ROOT = Path(__file__).resolve().parents[1]
BUNDLED = ROOT / "models" / "paceline-10m"
INPUT_TOKENS, NUM_QUESTIONS, PREDICATE_TOKENS, STEPS = 1000, 64, 24, 16


def config(shape):
    return {"model_type": shape.architecture, "vocab_size": shape.vocab_size, "hidden_size": shape.hidden_size,
            "intermediate_size": shape.intermediate_size, "num_hidden_layers": shape.num_layers,
            "num_attention_heads": shape.num_heads, "num_key_value_heads": shape.num_kv_heads, "head_dim": shape.head_dim,
            "max_position_embeddings": 8192, "rms_norm_eps": shape.rms_norm_eps, "rope_theta": shape.rope_theta,
            "hidden_act": "silu", "tie_word_embeddings": shape.is_tied, "torch_dtype": "bfloat16"}


class Served:
    def __init__(self, program, directory, options, clock):
        self.clock = clock
        self.child = subprocess.Popen([program, "serve", "-m", directory, "--load-format", "dummy", "--port", "0", *options],
                                      stderr=subprocess.PIPE, text=True)
        for line in self.child.stderr:
            if found := re.search(r"listening on (http://\S+)", line):
                self.address = found.group(1)
                return
        sys.exit("the server didn't start")

    def seconds(self):
        if self.clock == "wall":
            return time.perf_counter()
        fields = Path(f"/proc/{self.child.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")  # user and system

    def post(self, path, body):
        """The answer and the seconds it took."""
        request = urllib.request.Request(self.address + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
        begin = self.seconds()
        with urllib.request.urlopen(request) as answer:
            text = answer.read()
        return json.loads(text), self.seconds() - begin

    def count(self, text):
        return self.post("/tokenize", {"content": text, "add_special": False})[0]["count"]


def text_of(served, num_tokens, mark):
    """About so many tokens that begin like no other text."""
    text = f"Case {mark}:"
    return text + " the" * (num_tokens - served.count(text))


def choice(index):
    return {"type": "choice", "instructions": f"Which of these three is it, in your opinion, number {index}?",
            "choices": [{"value": "first", "description": "the one"}, {"value": "second", "description": "the other"},
                        {"value": "third", "description": "neither"}]}


def predicate(served, mark):
    """A question whose branch has PREDICATE_TOKENS tokens."""
    end = "?\nAnswer Yes or No.<|im_end|>\n<|im_start|>assistant\n"
    text = f"Is {mark}"
    while served.count(text + end) < PREDICATE_TOKENS:
        text += " the"
    return {"type": "predicate", "instructions": text + "?"}


def measure(served, mark):
    dice = random.Random(mark)
    ids = [dice.randrange(300, 4000) for _ in range(INPUT_TOKENS)]
    generate = {"prompt": ids, "ignore_eos": True, "temperature": 0}
    token_s = served.post("/v1/completions", {**generate, "max_tokens": 1})[1] / INPUT_TOKENS
    first, whole = (served.post("/v1/completions", {**generate, "max_tokens": count})[1] for count in (1, STEPS + 1))
    step = (whole - first) / STEPS  # of a prompt in the cache
    text = text_of(served, INPUT_TOKENS, mark)
    asked = {"input": text, "questions": [choice(i) for i in range(NUM_QUESTIONS)]}
    answer, cold = served.post("/v1/decisions", asked)
    tokens = answer["usage"]["input_tokens"]
    warm = [served.post("/v1/decisions", {"input": text, "questions": [predicate(served, f"{mark} {i}")]})[1] for i in range(5)]
    return {"prefill tok/s": 1 / token_s, "decode step ms": 1000 * step, "questions' tokens": tokens - INPUT_TOKENS,
            "64 questions s": cold, "64 questions / prefill": cold / (tokens * token_s),
            "predicate ms": 1000 * statistics.median(warm), "predicate / step": statistics.median(warm) / step}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default=ROOT / "build" / "release" / "paceline")
    parser.add_argument("--shape", choices=("llama-3.2-1b", "qwen3-0.6b"), default="llama-3.2-1b")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall")
    parser.add_argument("options", nargs="*", help="of the server, after -- [--quantize q8]")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        shutil.copy(BUNDLED / "tokenizer.json", directory)
        (Path(directory) / "config.json").write_text(json.dumps(config(SHAPES[asked.shape])))
        served = Served(asked.program, directory, asked.options or ["--quantize", "q8"], asked.clock)
        try:
            runs = [measure(served, mark) for mark in range(asked.runs)]
        finally:
            served.child.terminate()
            served.child.wait()
    for name in runs[0]:
        print(f"{name:24} {statistics.median(run[name] for run in runs):10.2f}   of {', '.join(f'{run[name]:.2f}' for run in runs)}")


if __name__ == "__main__":
    main()
