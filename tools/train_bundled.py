#!/usr/bin/env python3
"""make train-bundled: Paceline trains its bundled model from a corpus with its own trainer and the recipe of models/README.md.

    tools/train_bundled.py DIRECTORY --corpus CORPUS [--tokens 16482304] [--threads N]

CORPUS has train.txt.xz and valid.txt.xz, titles separated by a line <|endoftext|>. The run goes on in DIRECTORY where it
was stopped, to the same bits. At the end `paceline perplexity` measures the result on the validation text.

The text that is learnt is written once: the titles, and behind every nine parts of them a part of conversations in ChatML,
cut from the text of other places, in which the assistant goes on where the user stops. So a tenth of what is learnt are
conversations. Everything is drawn from a fixed seed.
"""
import argparse
import json
import lzma
import math
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACELINE = ROOT / "build/release/paceline"
MODEL = ROOT / "models/paceline-10m"
EOT, IM_START, IM_END = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
SENTENCE_END = re.compile(r"[.!?][\"'”’)]*(?=\s)")
PART = 3700  # characters: about 1,024 tokens
PARTS_BESIDE = 9  # of plain text for each of conversations
SEED = 20
TOKENS_PER_STEP = 8192
# The first run of models/README.md, with linear decay to the end of one long run.
RECIPE = ["--fine-tune-type", "full", "--from-scratch", "--optimizer", "muon", "--learning-rate", "0.012",
          "--adamw-learning-rate", "3e-3", "--weight-decay", "0.05", "--adam-beta2", "0.99", "--adam-epsilon", "1e-10",
          "--max-grad-norm", "0", "--lr-schedule", "wsd", "--decay-fraction", "0.35", "--warmup-steps", "100",
          "--max-seq-length", "1025", "--first-token", EOT, "--sequence-lengths", "256:0.45,512:0.85",
          "--batch-size", "1", "--grad-accumulation-steps", "8", "--no-grad-checkpoint", "--seed", str(SEED)]


class Conversations:
    """Draws conversations from a text: what the user says is a passage, the assistant goes on behind it."""

    def __init__(self, text):
        self.text = text
        self.random = random.Random(SEED)

    def sentence_end(self, start, count=1):
        """The place behind `count` sentence ends."""
        for _ in range(count):
            match = SENTENCE_END.search(self.text, start)
            start = match.end() if match else len(self.text)
        return start

    def passage(self):
        """A passage from the beginning of a sentence to the end of one, of 40 to 1,800 characters and more."""
        while True:
            near = self.random.randrange(len(self.text) - 20000)
            start = self.sentence_end(near)
            end = self.sentence_end(start + int(math.exp(self.random.uniform(math.log(40), math.log(1800)))))
            if EOT not in self.text[near:end + 4000]:
                return start, end

    def part(self):
        """About PART characters of conversations; three of five begin with a new passage."""
        written, start, end = [], -1, -1
        while sum(map(len, written)) < PART:
            if start < 0 or self.random.random() < 0.6:
                if start >= 0:
                    written.append(EOT)
                start, end = self.passage()
            else:
                start, end = end, self.sentence_end(end, self.random.randint(1, 4))
            reply_end = self.sentence_end(end, self.random.randint(1, 12))
            said, reply = self.text[start:end].strip(), self.text[end:reply_end].strip()
            if EOT in said or EOT in reply:
                start = -1
                continue
            written.append(f"{IM_START}user\n{said}{IM_END}\n{IM_START}assistant\n{reply}{IM_END}\n")
            end = reply_end
        return EOT + "".join(written) + EOT


def parts_of(text):
    """The text cut at paragraphs into parts of about PART characters."""
    begin = 0
    while begin < len(text):
        cut = text.find("\n\n", begin + PART)
        end = len(text) if cut < 0 else cut + 2
        yield text[begin:end]
        begin = end


def titles(corpus, split):
    with lzma.open(corpus / f"{split}.txt.xz", "rt", encoding="utf-8", newline="") as file:
        return file.read()


def write_once(path, pieces):
    """Writes a file that appears when it is complete."""
    partial = path.with_suffix(".partial")
    with open(partial, "w", encoding="utf-8", newline="") as file:
        file.writelines(pieces)
    partial.rename(path)


def training_text(text):
    conversations = Conversations(text)
    for number, part in enumerate(parts_of(text), 1):
        yield part
        if number % PARTS_BESIDE == 0:
            yield conversations.part()


def prepare(corpus, directory):
    """train.txt and valid.txt in `directory`."""
    directory.mkdir(parents=True, exist_ok=True)
    train, valid = directory / "train.txt", directory / "valid.txt"
    if not train.exists():
        print(f"writing {train}", flush=True)
        write_once(train, training_text(titles(corpus, "train")))
    if not valid.exists():
        write_once(valid, [titles(corpus, "valid")])
    return train, valid


def run_timed(command, clock):
    """Runs a command that saves its work when it is interrupted. Returns the seconds of all its runs, and its exit code."""
    before = json.loads(clock.read_text()) if clock.exists() else 0.0
    begin = time.monotonic()
    process = subprocess.Popen(command)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal interrupts both
    signal.signal(signal.SIGTERM, lambda *_: process.terminate())
    while True:
        try:
            code = process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            code = None
        seconds = before + time.monotonic() - begin
        clock.write_text(json.dumps(seconds))
        if code is not None:
            return seconds, code


def bits_per_byte(model, text):
    done = subprocess.run([PACELINE, "perplexity", "-m", model, "-f", text], stdout=subprocess.PIPE, text=True, check=True)
    print(done.stdout, end="")
    match = re.search(r"([\d.]+) bits per byte", done.stdout)
    return float(match[1]) if match else math.nan


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--tokens", type=int, default=16482304, help="of the run (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=0, help="default: one a core")
    arguments = parser.parse_args()
    missing = [name for name in ("train", "valid") if not (arguments.corpus / f"{name}.txt.xz").exists()]
    if missing:
        sys.exit(f"train-bundled: {arguments.corpus} has no {missing[0]}.txt.xz: give CORPUS=DIR")
    train, valid = prepare(arguments.corpus, arguments.directory)
    model = arguments.directory / "model"
    steps = max(1, arguments.tokens // TOKENS_PER_STEP)
    command = [PACELINE, "train", "-m", MODEL, "--data", train, "--valid-data", valid, "-o", model, *RECIPE,
               "--iters", str(steps), "--steps-per-report", "20", "--steps-per-eval", "200", "--val-batches", "48",
               "--save-every", "100", *(["--resume"] if model.exists() else []),
               *(["-t", str(arguments.threads)] if arguments.threads else [])]
    seconds, code = run_timed(command, arguments.directory / "seconds.json")
    if code != 0:
        sys.exit(code)
    bits = bits_per_byte(model, valid)
    print(f"trained in {seconds / 60:.1f} minutes, {steps * TOKENS_PER_STEP:,} tokens: {bits:.4f} bits per byte of {valid}")


if __name__ == "__main__":
    main()
