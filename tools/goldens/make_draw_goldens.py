#!/usr/bin/env python3
"""Makes tests/goldens/draws/race.json: the tokens that a race draws from rows of logits, in Python's integers and float64.

    python tools/goldens/make_draw_goldens.py

A draw of (seed, position) has the key made of the first two words of Philox4x32-10 with the seed as its key and the
position as its counter. Token i has the noise v = (output i of SplitMix64 from that key + 1/2) / 2^64 and comes after
-log(1 - v) / exp((logit - largest) / temperature); the first is drawn. Left out are draws whose two least times differ by
less than 1e-4 of themselves. Needs the standard library alone.
"""
import json
import math
import random
from pathlib import Path

OUT = Path(__file__).resolve().parents[2] / "tests/goldens/draws/race.json"
MARGIN = 1e-4
NUM_DRAWS = 25
MASK32, MASK64 = 2**32 - 1, 2**64 - 1

# Tokens, standard deviation of the logits, temperature.
CASES = [(2, 1.0, 1.0), (16, 2.0, 0.7), (16, 0.0, 1.0), (64, 4.0, 1.9), (65, 1.0, 1.0), (200, 3.0, 0.5),
         (300, 1.0, 1.0), (300, 6.0, 1.5)]


def philox(seed, counter):
    c = [counter & MASK32, counter >> 32, 0, 0]
    k = [seed & MASK32, seed >> 32]
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(b >> 32) ^ c[1] ^ k[0], b & MASK32, (a >> 32) ^ c[3] ^ k[1], a & MASK32]
        k = [(k[0] + 0x9E3779B9) & MASK32, (k[1] + 0xBB67AE85) & MASK32]
    return c


def splitmix(state):
    while True:
        state = (state + 0x9E3779B97F4A7C15) & MASK64
        z = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & MASK64
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK64
        yield z ^ (z >> 31)


def race(logits, temperature, seed, position):
    """The first token, and by how much of its time the second comes later."""
    words = philox(seed, position)
    largest = max(logits)
    times = [-math.log1p(-(noise + 0.5) / 2**64) / math.exp((logit - largest) / temperature)
             for logit, noise in zip(logits, splitmix(words[0] << 32 | words[1]))]
    first, second = sorted(times)[:2]
    return times.index(first), second / first - 1


def make_case(size, spread, temperature):
    rng = random.Random(f"{size} {spread} {temperature}")
    logits = [round(rng.gauss(0, spread), 3) for _ in range(size)]
    draws = []
    while len(draws) < NUM_DRAWS:
        seed, position = rng.choice([rng.getrandbits(62), rng.randrange(10)]), rng.randrange(100000)
        token, margin = race(logits, temperature, seed, position)
        if margin > MARGIN:
            draws.append([seed, position, token])
    return {"temperature": temperature, "logits": logits, "draws": draws}


def main():
    lines = [json.dumps(make_case(*case)) for case in CASES]
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text('{"made_by": "tools/goldens/make_draw_goldens.py", "cases": [\n' + ",\n".join(lines) + "\n]}\n")


if __name__ == "__main__":
    main()
