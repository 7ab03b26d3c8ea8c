#!/usr/bin/env python3
"""Compares constrained decoding with llguidance: JSON Schemas with valid and invalid instances, and the time of masks.

    python tools/bench_grammar.py SCHEMAS TOKENIZER [--limit N] [--every K] [--program build/release/paceline]

SCHEMAS has one JSON object a line (it may be compressed by xz): name, schema, tests (valid, data), as MaskBench has them.
TOKENIZER is a directory with a tokenizer.json. Both programs run on one core, one after the other, on the same schemas.
An instance is written as Python's json.dumps does it, tokenised, and walked: the mask of each token is computed, the token
has to be in it and is consumed, and at the end the text has to be complete. A token's time is that of its mask and of
consuming it; the first mask's time includes the compilation of the schema. Needs `pip install llguidance`.
"""

import argparse
import itertools
import json
import lzma
import os
import subprocess
import sys
import threading
import time
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def read_schemas(options):
    opener = lzma.open if options.schemas.suffix == ".xz" else open
    with opener(options.schemas, "rt", encoding="utf-8") as lines:
        chosen = itertools.islice(lines, 0, None, options.every)
        for line in itertools.islice(chosen, options.limit):
            yield json.loads(line)


def texts_of(item):
    return [json.dumps(test["data"], indent=None, ensure_ascii=False) for test in item["tests"]]


class Totals:
    """What one program did with all schemas."""

    def __init__(self):
        self.schemas = self.right = self.errors = self.wrongly_accepted = self.wrongly_rejected = 0
        self.token_us = []
        self.first_us = []
        self.messages = {}

    def add_error(self, message):
        self.schemas += 1
        self.errors += 1
        message = message.split("\n")[0][:100]
        self.messages[message] = self.messages.get(message, 0) + 1

    def add(self, item, accepted, token_us, first_us):
        self.schemas += 1
        wanted = [test["valid"] for test in item["tests"]]
        self.wrongly_accepted += sum(a and not w for a, w in zip(accepted, wanted))
        self.wrongly_rejected += sum(w and not a for a, w in zip(accepted, wanted))
        self.right += accepted == wanted
        self.token_us += token_us
        self.first_us.append(first_us)

    def row(self, name):
        masks, first = sorted(self.token_us), sorted(self.first_us)
        mean = sum(masks) / len(masks) if masks else 0
        return [name, self.schemas, self.right, self.wrongly_accepted, self.wrongly_rejected, self.errors,
                *(f"{us:.1f}" for us in (mean, share(masks, 0.5), share(masks, 0.99), share(masks, 1))),
                *(f"{us / 1000:.2f}" for us in (share(first, 0.5), share(first, 0.99)))]


def share(ordered, part):
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))] if ordered else 0


def run_paceline(options, on_wrong):
    command = [options.program, "grammar", "--jsonl", "--masks", "-m", str(options.tokenizer)]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8")
    waiting = []
    may_send = threading.Semaphore(64)  # lines that wait for their answers

    def send():
        for item in read_schemas(options):
            may_send.acquire()
            waiting.append(item)
            child.stdin.write(json.dumps({"json_schema": json.dumps(item["schema"]), "texts": texts_of(item)}) + "\n")
            child.stdin.flush()
        child.stdin.close()

    threading.Thread(target=send, daemon=True).start()
    totals = Totals()
    for line in child.stdout:
        answer = json.loads(line)
        item = waiting.pop(0)
        may_send.release()
        if "error" in answer:
            totals.add_error(answer["error"]["message"])
            on_wrong(item, answer["error"]["message"])
            continue
        totals.add(item, answer["accepted"], answer["mask_us"]["all"], answer["first_mask_us"])
        if answer["accepted"] != [test["valid"] for test in item["tests"]]:
            on_wrong(item, answer["accepted"])
    if child.wait() not in (0, 1):
        sys.exit(f"{options.program}: exit code {child.returncode}")
    return totals


def walk_llguidance(matcher, tokens, token_us):
    """Whether the tokens are allowed and may end there."""
    for token in tokens:
        begin = time.perf_counter()
        mask = matcher.compute_bitmask()
        is_allowed = mask[token >> 3] >> (token & 7) & 1
        if is_allowed:
            matcher.consume_token(token)
        token_us.append((time.perf_counter() - begin) * 1e6)
        if not is_allowed:
            return False
    begin = time.perf_counter()
    matcher.compute_bitmask()
    token_us.append((time.perf_counter() - begin) * 1e6)
    return matcher.is_accepting()


def run_llguidance(options, on_wrong):
    import llguidance
    import tokenizers

    ours = tokenizers.Tokenizer.from_file(str(options.tokenizer / "tokenizer.json"))
    theirs = llguidance.LLTokenizer(str(options.tokenizer / "tokenizer.json"))
    totals = Totals()
    for item in read_schemas(options):
        token_us = []
        texts = [ours.encode(text, add_special_tokens=False).ids for text in texts_of(item)]
        begin = time.perf_counter()
        try:
            grammar = llguidance.LLMatcher.grammar_from_json_schema(json.dumps(item["schema"]))
            matcher = llguidance.LLMatcher(theirs, grammar, log_level=0)
            error = matcher.get_error() if matcher.is_error() else ""
            if not error:
                matcher.compute_bitmask()
                error = matcher.get_error() if matcher.is_error() else ""
        except ValueError as exception:
            error = str(exception)
        first_us = (time.perf_counter() - begin) * 1e6
        if error:
            totals.add_error(error)
            on_wrong(item, error)
            continue
        accepted = [walk_llguidance(matcher.deep_copy(), tokens, token_us) for tokens in texts]
        totals.add(item, [bool(one) for one in accepted], token_us, first_us)
        if accepted != [test["valid"] for test in item["tests"]]:
            on_wrong(item, accepted)
    return totals


HEADINGS = ["", "schemas", "right", "wrongly accepted", "wrongly rejected", "compile errors", "token us: mean", "p50", "p99",
            "max", "first mask ms: p50", "p99"]


def print_table(rows):
    print("| " + " | ".join(HEADINGS) + " |")
    print("|" + " --- |" * len(HEADINGS))
    for row in rows:
        print("| " + " | ".join(str(cell) for cell in row) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("schemas", type=Path)
    parser.add_argument("tokenizer", type=Path)
    parser.add_argument("--limit", type=int, help="the first N schemas only")
    parser.add_argument("--every", type=int, default=1, help="every Kth schema only")
    parser.add_argument("--program", default=str(ROOT / "build/release/paceline"))
    parser.add_argument("--only", choices=["paceline", "llguidance"], help="one of the two")
    parser.add_argument("--core", type=int, default=min(os.sched_getaffinity(0)), help="the core that both run on")
    parser.add_argument("--wrong", type=Path, help="a file for the schemas that a program had wrong, as JSON Lines")
    parser.add_argument("--messages", action="store_true", help="also print the messages of compile errors")
    options = parser.parse_args()
    os.sched_setaffinity(0, {options.core})
    wrong = open(options.wrong, "w", encoding="utf-8") if options.wrong else None
    rows = []
    for name, run in [("paceline", run_paceline), ("llguidance", run_llguidance)]:
        if options.only not in (None, name):
            continue

        def on_wrong(item, what, name=name):
            if wrong:
                print(json.dumps({"program": name, "name": item["name"], "found": what}), file=wrong)

        totals = run(options, on_wrong)
        version = f" {metadata.version('llguidance')}" if name == "llguidance" else ""
        rows.append(totals.row(name + version))
        if options.messages:
            for message, count in sorted(totals.messages.items(), key=lambda pair: -pair[1])[:40]:
                print(f"{name}: {count} times: {message}")
    print_table(rows)


if __name__ == "__main__":
    main()
