#!/usr/bin/env python3
"""Compares our tokenizer with Hugging Face `tokenizers` over random strings: ids and decoded text must be equal.

    python tools/compare_tokenizers.py --tokenizer DIR [--count N] [--seed S] [-- COMMAND ...]

COMMAND reads {"text": ...} lines and prints {"ids": [...], "decoded": ...} lines; by default it is
`build/release/paceline tokenize --jsonl -m DIR`. It is run three times: as it is, with --special (what the
post-processor adds), and with --specials-as-text. Needs the `tokenizers` of tools/goldens/requirements.txt.
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
    """An endless mixture of strings, chosen to stand on the borders of the rules."""

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


def ours(command, flags, texts):
    lines = "".join(json.dumps({"text": text}) + "\n" for text in texts)
    run = subprocess.run(command + flags, input=lines, capture_output=True, text=True, encoding="utf-8", check=False)
    outputs = [json.loads(line) for line in run.stdout.split("\n") if line]
    if run.returncode != 0 or len(outputs) != len(texts):
        sys.exit(f"{' '.join(command + flags)}: exit code {run.returncode}, {len(outputs)} lines for {len(texts)}\n"
                 + run.stderr[-2000:])
    return outputs


def compare(tokenizer, command, flags, texts):
    """Prints the differences; returns how many strings differ."""
    tokenizer.encode_special_tokens = "--specials-as-text" in flags
    theirs = tokenizer.encode_batch(texts, add_special_tokens="--special" in flags)
    differences = 0
    for text, mine, other in zip(texts, ours(command, flags, texts), theirs, strict=True):
        decoded = tokenizer.decode(other.ids, skip_special_tokens=False)
        if mine.get("ids") != other.ids or mine.get("decoded") != decoded:
            differences += 1
            if differences <= 5:
                print(json.dumps({"flags": flags, "text": text, "ours": mine, "theirs": other.ids, "decoded": decoded}))
    return differences


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokenizer", required=True, type=Path, help="a directory with tokenizer.json")
    parser.add_argument("--count", type=int, default=100_000, help="strings")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("command", nargs="*", help="what to run instead of the built binary")
    options = parser.parse_args()
    if tokenizers.__version__ != PINNED:
        sys.exit(f"tokenizers {tokenizers.__version__} found, {PINNED} expected")
    command = options.command or [str(ROOT / "build/release/paceline"), "tokenize", "--jsonl", "-m", str(options.tokenizer)]
    tokenizer = tokenizers.Tokenizer.from_file(str(options.tokenizer / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    strings = Strings(options.seed, tokenizer)
    differences = done = 0
    while done < options.count:
        texts = [strings.one() for _ in range(min(BATCH, options.count - done))]
        for flags in ([], ["--special"], ["--specials-as-text"]):
            differences += compare(tokenizer, command, flags, texts)
        done += len(texts)
        print(f"{options.tokenizer.name}: {done} strings, {differences} differences", file=sys.stderr)
    sys.exit(1 if differences else 0)


if __name__ == "__main__":
    main()
