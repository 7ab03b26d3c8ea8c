#!/usr/bin/env python3
"""Compares our tokenizer with Hugging Face `tokenizers`: ids, offsets and decoded text of random strings, and the
decoded text of random ids must be equal.

    python tools/compare_tokenizers.py --tokenizer DIR [--count N] [--seed S] [--program build/release/paceline]

Runs `PROGRAM tokenize --jsonl -m DIR` three times, with --spans, with --special (what the post-processor adds) and
with --specials-as-text, and `PROGRAM detokenize --jsonl -m DIR`. Their offsets count code points, ours bytes. Needs the
`tokenizers` of tools/goldens/requirements.txt.
"""

import argparse
import json
import random
import subprocess
import sys
from pathlib import Path

import tokenizers

PINNED = "0.23.3"
ROOT = Path(__file__).resolve().parent.parent
BATCH = 20_000
WORDS = """the The THE house's don't I'LL we've they'RE 'tis x'y can't \u02bcs it\u2019s '\u017f na\u00efve cafe\u0301
caf\u00e9 \u00c5ngstr\u00f6m A\u030angstro\u0308m 1 12 123 1234 12345 3.14 1,000 \u0661\u0662\u0663 \u2460 \u00bd x\u00b2
http://a.b/c?d=e&f foo_bar() {"k": [1, 2]} != -> ... !!! ??? #$% \u4f60\u597d\u4e16\u754c \u65e5\u672c\u8a9e
\u30ab\u30bf\u30ab\u30ca \ud55c\uad6d\uc5b4 \u1112\u1161\u11ab \u0928\u092e\u0938\u094d\u0924\u0947 \u05e9\u05dc\u05d5\u05dd
\u0645\u0631\u062d\u0628\u0627 \u041f\u0440\u0438\u0432\u0435\u0442 \u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35
\U0001f600 \U0001f468\u200d\U0001f469\u200d\U0001f467 \U0001f1e9\U0001f1ea \ufb01 \u212b \u1e9b\u0323 \ufeff""".split()
SPACES = [" ", " ", " ", "  ", "   ", "\n", "\n\n", "\r\n", "\t", " \n", "\n ", "\u00a0", "\u3000", "\u2028", "\x85", "\v"]


def random_code_point(rng):
    while True:
        c = rng.choice((rng.randrange(0x110000), rng.randrange(0x20000), rng.randrange(0x3000), rng.randrange(0x250)))
        if not 0xD800 <= c <= 0xDFFF:
            return c


class Strings:
    """An endless mixture of strings that test edge cases of the rules."""

    def __init__(self, seed, tokenizer):
        self.rng = random.Random(seed)
        added = [t.content for t in tokenizer.get_added_tokens_decoder().values()]
        self.added = added[:200]
        vocabulary = sorted(tokenizer.get_vocab())
        self.alphabet = vocabulary[:: max(1, len(vocabulary) // 5000)]
        marks = [c for c in range(0x300, 0x1100) if tokenizers.normalizers.NFD().normalize_str("a" + chr(c) + "\u0334")
                 != "a" + chr(c) + "\u0334"]
        self.marks = [chr(c) for c in marks] + ["\u0334", "\u0345", "\u3099", "\u1161", "\u11a8"]

    def part(self):
        rng = self.rng
        kind = rng.randrange(10)
        if kind < 3:
            return rng.choice(WORDS)
        if kind < 5:
            return rng.choice(SPACES)
        if kind == 5:
            return "".join(chr(random_code_point(rng)) for _ in range(rng.randrange(1, 6)))
        if kind == 6:
            return "".join(chr(rng.randrange(128)) for _ in range(rng.randrange(1, 8)))
        if kind == 7:
            return rng.choice(self.added) if self.added else "<|x|>"
        if kind == 8:
            return chr(random_code_point(rng)) + "".join(rng.choices(self.marks, k=rng.randrange(1, 5)))
        return rng.choice(self.alphabet) * rng.choice((1, 1, 1, 2, 7))

    def one(self):
        text = "".join(self.part() for _ in range(self.rng.randrange(1, 12)))
        if self.rng.randrange(8) == 0:  # cut somewhere, so that tokens and words end early
            text = text[: self.rng.randrange(len(text) + 1)]
        return text


def ours(command, flags, items):
    lines = "".join(json.dumps(item) + "\n" for item in items)
    run = subprocess.run(command + flags, input=lines, capture_output=True, text=True, encoding="utf-8", check=False)
    outputs = [json.loads(line) for line in run.stdout.split("\n") if line]
    if run.returncode != 0 or len(outputs) != len(items):
        sys.exit(f"{' '.join(command + flags)}: exit code {run.returncode}, {len(outputs)} lines for {len(items)}\n"
                 + run.stderr[-2000:])
    return outputs


def byte_spans(text, offsets):
    """Offsets in code points as offsets in bytes."""
    position, positions = 0, [0]
    for c in text:
        position += len(c.encode())
        positions.append(position)
    return [[positions[begin], positions[end]] for begin, end in offsets]


def compare(tokenizer, command, flags, texts):
    """Prints the differences; returns how many strings differ."""
    tokenizer.encode_special_tokens = "--specials-as-text" in flags
    theirs = tokenizer.encode_batch(texts, add_special_tokens="--special" in flags)
    differences = 0
    for text, mine, other in zip(texts, ours(command, flags, [{"text": text} for text in texts]), theirs, strict=True):
        expected = {"ids": other.ids, "decoded": tokenizer.decode(other.ids, skip_special_tokens=False)}
        if "--spans" in flags:
            expected["spans"] = byte_spans(text, other.offsets)
        if mine != expected:
            differences += 1
            if differences <= 5:
                print(json.dumps({"flags": flags, "text": text, "ours": mine, "theirs": expected}))
    return differences


def random_ids(rng, size, bytes_of_fallback):
    ids = []
    for _ in range(rng.randrange(12)):
        # Sometimes runs of bytes, which may be whole characters.
        if bytes_of_fallback and rng.randrange(3) == 0:
            ids.extend(bytes_of_fallback[b] for b in rng.choice(("\u00e9", "\u4f60", "\U0001f600")).encode())
            ids.extend(rng.choices(bytes_of_fallback, k=rng.randrange(3)))
        else:
            ids.append(rng.randrange(size))
    return ids


def compare_decoding(tokenizer, command, rng, count):
    vocabulary = tokenizer.get_vocab()
    size = max(vocabulary.values()) + 1
    fallback = [vocabulary.get(f"<0x{b:02X}>") for b in range(256)]
    lists = [random_ids(rng, size, None if None in fallback else fallback) for _ in range(count)]
    differences = 0
    for ids, mine in zip(lists, ours(command, [], [{"ids": ids} for ids in lists]), strict=True):
        expected = tokenizer.decode(ids, skip_special_tokens=False)
        if mine["text"] != expected:
            differences += 1
            if differences <= 5:
                print(json.dumps({"ids": ids, "ours": mine, "theirs": expected}))
    return differences


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokenizer", required=True, type=Path, help="a directory with tokenizer.json")
    parser.add_argument("--count", type=int, default=100_000, help="strings")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--program", default=str(ROOT / "build/release/paceline"), help="the binary")
    options = parser.parse_args()
    if tokenizers.__version__ != PINNED:
        sys.exit(f"tokenizers {tokenizers.__version__} found, {PINNED} expected")
    encoder = [options.program, "tokenize", "--jsonl", "-m", str(options.tokenizer)]
    decoder = [options.program, "detokenize", "--jsonl", "-m", str(options.tokenizer)]
    tokenizer = tokenizers.Tokenizer.from_file(str(options.tokenizer / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    strings = Strings(options.seed, tokenizer)
    differences = done = 0
    while done < options.count:
        texts = [strings.one() for _ in range(min(BATCH, options.count - done))]
        for flags in (["--spans"], ["--special"], ["--specials-as-text"]):
            differences += compare(tokenizer, encoder, flags, texts)
        differences += compare_decoding(tokenizer, decoder, strings.rng, len(texts))
        done += len(texts)
        print(f"{options.tokenizer.name}: {done} strings, {differences} differences", file=sys.stderr)
    sys.exit(1 if differences else 0)


if __name__ == "__main__":
    main()
