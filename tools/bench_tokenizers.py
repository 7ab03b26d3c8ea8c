#!/usr/bin/env python3
"""Measures loading, encoding and decoding beside Hugging Face `tokenizers`, both on one thread, in one run.

    python tools/bench_tokenizers.py --text FILE DIR... [--repetitions N] [--program build/release/bench/...]

Every repetition starts a process of ours (bench/tokenizer.cc), then one of theirs, so that other load affects both; the
medians over the repetitions are compared. A text is encoded whole, and by paragraphs (separated by blank lines).
`first` is a loaded tokenizer's first call; in the other rows the text was encoded before, so that both word caches are
warm. Ours is the mean of a process, HF's the best of three calls of its fastest function: `encode`, `encode_batch` and
`encode_batch_fast` (without offsets, like our encode); `decode` and `decode_batch`, which have to read a Python list.

Needs the `tokenizers` of tools/goldens/requirements.txt.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path

PINNED = "0.23.3"
ROOT = Path(__file__).resolve().parent.parent
ONE_THREAD = {"TOKENIZERS_PARALLELISM": "false", "RAYON_NUM_THREADS": "1"}
RATES = ["encode_first", "encode_whole", "encode_paragraphs", "decode_whole", "decode_paragraphs"]


def ours(program, directory, text):
    """{row: seconds or MB/s} and the tokens of the whole text, of one process."""
    environment = dict(os.environ, PACELINE_BENCH_TOKENIZER=str(directory), PACELINE_BENCH_TEXT=str(text))
    command = [program, "--benchmark_format=json", "--benchmark_min_time=0.2"]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        sys.exit(f"{program}: exit code {run.returncode}\n{run.stderr[-2000:]}")
    rows = {row["name"].split("/")[0]: row for row in json.loads(run.stdout)["benchmarks"]}
    result = {name: rows[name]["bytes_per_second"] / 1e6 for name in RATES}
    size = (directory / "tokenizer.json").stat().st_size
    result["load"] = rows["load"]["real_time"] / 1e3
    result["resident"] = rows["load"]["resident_bytes"] / size
    result["peak"] = rows["load"]["peak_bytes"] / size
    result["tokens"] = int(rows["encode_whole"]["tokens"])
    return result


def seconds(function, repetitions=1):
    best, value = float("inf"), None
    for _ in range(repetitions):
        begin = time.perf_counter()
        value = function()
        best = min(best, time.perf_counter() - begin)
    return best, value


def measure_theirs(directory, path):
    """The results of `ours` for Hugging Face tokenizers, in this process."""
    import tokenizers

    if tokenizers.__version__ != PINNED:
        sys.exit(f"tokenizers {tokenizers.__version__} found, {PINNED} expected")
    text = Path(path).read_bytes().decode()
    paragraphs = [p for p in text.split("\n\n") if p]
    before = resident_bytes()
    load, tokenizer = seconds(lambda: tokenizers.Tokenizer.from_file(f"{directory}/tokenizer.json"))
    resident = (resident_bytes() - before) / Path(directory, "tokenizer.json").stat().st_size
    tokenizer.no_truncation()
    tokenizer.no_padding()
    flags = {"add_special_tokens": False}
    # Repeated, so that no function runs with colder caches than another.
    encode_ways = [
        lambda texts: [tokenizer.encode(t, **flags) for t in texts],
        lambda texts: tokenizer.encode_batch(texts, **flags),
        lambda texts: tokenizer.encode_batch_fast(texts, **flags),
    ]
    decode_ways = [
        lambda lists: [tokenizer.decode(ids, skip_special_tokens=False) for ids in lists],
        lambda lists: tokenizer.decode_batch(lists, skip_special_tokens=False),
    ]
    size = len(text.encode())
    first, encodings = seconds(lambda: tokenizer.encode_batch_fast([text], **flags))
    result = {"load": load, "resident": resident, "tokens": len(encodings[0].ids), "encode_first": size / first / 1e6}
    for name, texts in (("whole", [text]), ("paragraphs", paragraphs)):
        size = sum(len(t.encode()) for t in texts)
        best = min(seconds(lambda way=way: way(texts), 3)[0] for way in encode_ways)
        result[f"encode_{name}"] = size / best / 1e6
        lists = [e.ids for e in tokenizer.encode_batch(texts, **flags)]
        best = min(seconds(lambda way=way: way(lists), 3)[0] for way in decode_ways)
        result[f"decode_{name}"] = size / best / 1e6
    return result


def resident_bytes():
    with open("/proc/self/statm", encoding="ascii") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def theirs(directory, text):
    command = [sys.executable, __file__, "--theirs", str(directory), "--text", str(text)]
    run = subprocess.run(command, env=dict(os.environ, **ONE_THREAD), capture_output=True, text=True, check=False)
    if run.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit code {run.returncode}\n{run.stderr[-2000:]}")
    return json.loads(run.stdout)


def medians(runs):
    return {name: statistics.median(run[name] for run in runs) for name in runs[0]}


def print_table(directory, mine, other):
    size = (directory / "tokenizer.json").stat().st_size / 1e6
    print(f"\n{directory.name}: tokenizer.json of {size:.1f} MB, {mine['tokens']} tokens")
    print(f"| {'':<32} | {'paceline':>9} | {'HF':>9} | {'times':>6} |")
    print(f"| {'---':<32} | {'---:':>9} | {'---:':>9} | {'---:':>6} |")
    print(f"| {'load, s':<32} | {mine['load']:9.3f} | {other['load']:9.3f} | {other['load'] / mine['load']:6.1f} |")
    for name, label in (("resident", "resident after load / file"), ("peak", "resident at most / file")):
        theirs_too = f"{other[name]:9.2f}" if name in other else " " * 9
        print(f"| {label:<32} | {mine[name]:9.2f} | {theirs_too} | {'':>6} |")
    for name in RATES:
        ratio = mine[name] / other[name]
        label = name.replace("_", ", ") + ", MB/s"
        print(f"| {label:<32} | {mine[name]:9.1f} | {other[name]:9.2f} | {ratio:6.1f} |")


def processor():
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.split(":")[1].strip()
    return platform.processor()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directories", nargs="*", type=Path, help="directories with tokenizer.json")
    parser.add_argument("--text", required=True, type=Path, help="UTF-8")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--program", default=str(ROOT / "build/release/bench/paceline_bench_tokenizer"))
    parser.add_argument("--theirs", metavar="DIR", help="measure HF tokenizers only, and print JSON")
    options = parser.parse_args()
    if options.theirs:
        print(json.dumps(measure_theirs(options.theirs, options.text)))
        return
    print(f"{processor()}, {os.cpu_count()} cores, one thread; {options.text.name}: {options.text.stat().st_size} bytes; "
          f"medians of {options.repetitions} interleaved runs; HF tokenizers {PINNED}")
    names = " ".join(directory.name for directory in options.directories)
    print(f"tools/bench_tokenizers.py --repetitions {options.repetitions} --text {options.text.name} {names}")
    for directory in options.directories:
        pairs = [(ours(options.program, directory, options.text), theirs(directory, options.text))
                 for _ in range(options.repetitions)]
        mine, other = (medians(runs) for runs in zip(*pairs, strict=True))
        if mine["tokens"] != other["tokens"]:
            sys.exit(f"{directory}: {mine['tokens']} tokens, HF has {other['tokens']}")
        print_table(directory, mine, other)


if __name__ == "__main__":
    main()
