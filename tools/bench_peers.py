#!/usr/bin/env python3
"""make bench-peers: Paceline, llama.cpp and the roofline on the same GGUF files, in one table.

llama.cpp is the release in the package llama-cpp-python, compiled here; the files have random weights. Each run is a
process of its own, and the sides take turns. docs/peers.md describes the measurements.
"""
import argparse
import json
import os
import sys
from pathlib import Path

from peers import environment
from peers.bars import bar_of, mixture_bar_of
from peers.best_setting import Remembered
from peers.children import BUSY_CORES, Failed, ask, make_file
from peers.comparison import (AGREEMENT, DELTA_NET_AGREEMENT, Compared, Sides, agree, compare_batch, compare_embed,
                              compare_single)
from peers.llama_bench import LlamaBench
from peers.paceline_side import Paceline
from peers.shapes import FORMATS, SHAPES
from peers.table import table

ROOT = Path(__file__).resolve().parents[1]
SHAPES_ASKED, FORMATS_ASKED = ("llama-3.2-1b", "qwen3-0.6b"), ("BF16", "Q8_0", "Q4_0", "Q4_K_M")
BATCHES = {"Q8_0": 32, "Q4_0": 8}  # sequences per batch, by format
MIXTURE_BATCHES = {"Q4_K_M": 8}
BATCH_PROMPT, BATCH_OUTPUT = 128, 64
EMBEDDERS, EMBEDDED = ("tiny", "qwen3-0.6b"), {"Q8_0": {"kind": "embed", "texts": 200, "tokens": 20}}  # shapes; by format


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shape", action="append", choices=SHAPES,
                        help="repeat it for several [llama-3.2-1b, qwen3-0.6b]")
    parser.add_argument("--format", action="append", choices=FORMATS, dest="formats",
                        help="repeat it for several [BF16, Q8_0, Q4_0, Q4_K_M]")
    parser.add_argument("--runs", type=int, default=3, help="of each side, taking turns [3]")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="[one per usable core]")
    parser.add_argument("--prompt-tokens", type=int, default=512, help="[512]")
    parser.add_argument("--output-tokens", type=int, default=128, help="[128]")
    parser.add_argument("--no-batches", action="store_true", help="one sequence at a time only")
    parser.add_argument("--embed-only", action="store_true", help="embeddings only, of shapes and formats that have them")
    parser.add_argument("--search-again", action="store_true", help="forget the peer's best settings")
    parser.add_argument("--llama-bench", type=Path, metavar="PATH",
                        help="a second peer: any build of llama-bench, such as ik_llama.cpp's; the faster of both "
                             "counts (one sequence at a time)")
    parser.add_argument("--without-amx", action="store_true", help="compile the peer without its AMX code")
    parser.add_argument("--json", type=Path, help="write every run there as well")
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "peers", help="GGUF files and settings")
    parser.add_argument("--venv", type=Path, default=ROOT / "build" / "peers-venv", help="the peer's environment")
    parser.add_argument("--paceline", type=Path, default=ROOT / "build" / "release" / "paceline")
    chosen = parser.parse_args()
    if chosen.runs < 1 or chosen.threads < 1:
        parser.error("--runs and --threads begin at 1")
    return chosen


def say(text):
    print(text, file=sys.stderr, flush=True)


def compare(sides, options, shape, wanted):
    say(f"{shape} {wanted}")
    file = make_file(sides.python, shape, wanted, options.work)
    names, compared = f"{shape} {wanted}", Compared()
    is_mixture = SHAPES[shape].num_experts > 0

    def bars(test, sequences=1):
        return mixture_bar_of(test, sequences) if is_mixture else bar_of(test, wanted, sequences)

    compared.agreement = agree(sides, file, DELTA_NET_AGREEMENT if SHAPES[shape].delta_net else AGREEMENT)
    if shape in EMBEDDERS and wanted in EMBEDDED:
        compare_embed(sides, compared, names, bars("embed"), wanted, file, EMBEDDED[wanted])
    if options.embed_only:
        return compared
    compare_single(sides, compared, names, bars, wanted, file, options.prompt_tokens, options.output_tokens)
    batches = MIXTURE_BATCHES if is_mixture else BATCHES
    if wanted in batches and not options.no_batches:
        compare_batch(sides, compared, names, bars, wanted, file, {
            "kind": "batch", "sequences": batches[wanted], "prompt": BATCH_PROMPT, "output": BATCH_OUTPUT})
    return compared


def peer_words(described, options):
    parts = described["system"].replace("CPU : ", "").split(" | ")
    features = [part.split(" = ")[0] for part in parts if " = 1" in part]
    built = f"llama-cpp-python {described['package']}" + (f", {described['version']}" if described["version"] else "")
    amx = ", its AMX code left out (--without-amx)" if options.without_amx else ""
    return f"llama.cpp ({built}), compiled here with {', '.join(features)}{amx}"


def report(sides, options, described, all_compared):
    print(f"{sides.paceline.version()}, {sides.paceline.instruction_set}; {peer_words(described, options)}; "
          f"{options.threads} threads; medians of {options.runs} runs that took turns; random weights\n")
    print(table([row for compared in all_compared for row in compared.rows]))
    print("\nllama.cpp's settings, the best of those tried:")
    for compared in all_compared:
        print("\n".join(f"- {sentence}" for sentence in compared.settings))
    print(f"\nLog-probabilities of both correlate by {min(one.agreement for one in all_compared):.4f} or more.")
    others = sides.others()
    print(f"Other work took {others:.2f} cores meanwhile (median of all runs)"
          + (": these figures don't count, measure again on a quiet machine." if others > BUSY_CORES else "."))


def write_json(path, sides, options, described, all_compared):
    everything = {
        "paceline": sides.paceline.version(), "peer": described, "threads": options.threads, "runs": options.runs,
        "others_cores": sides.others(),
        "rows": [{"file": row.file, "test": row.test, "paceline": row.ours, "llama_cpp": row.theirs, "peer": row.peer,
                  "roofline": row.roofline, "ratio": row.judged.ratio, "bar": row.bar, "passes": row.judged.passes}
                 for compared in all_compared for row in compared.rows],
        "files": [{"agreement": compared.agreement, "runs": compared.raw} for compared in all_compared]}
    path.write_text(json.dumps(everything, indent=1) + "\n")


def compare_all(sides, options):
    """The finished comparisons, and the failures of the others: one failure doesn't lose an hour's figures."""
    done, failures = [], []
    for shape in options.shape or SHAPES_ASKED:
        for wanted in options.formats or FORMATS_ASKED:
            try:
                done.append(compare(sides, options, shape, wanted))
            except Failed as failed:
                failures.append(f"{shape} {wanted}: {failed}")
                say(failures[-1])
    return done, failures


def main():
    options = arguments()
    options.work.mkdir(parents=True, exist_ok=True)
    python = environment.make(options.venv, not options.without_amx)
    described, _ = ask(python, {"do": "describe"})
    remembered = options.work / f"settings-{described['package']}.json"
    if options.search_again:
        remembered.unlink(missing_ok=True)
    sides = Sides(Paceline(options.paceline, options.threads), python, options.threads, Remembered(remembered),
                  options.runs, say)
    if options.llama_bench:
        sides.second = LlamaBench(options.llama_bench, options.threads, say, sides.note)
    say(peer_words(described, options))
    all_compared, failures = compare_all(sides, options)
    if all_compared:
        report(sides, options, described, all_compared)
    if options.json:
        write_json(options.json, sides, options, described, all_compared)
    if failures:
        raise Failed("\n".join(failures))


if __name__ == "__main__":
    try:
        main()
    except (Failed, environment.Missing, OSError) as problem:
        sys.exit(f"bench_peers.py: {problem}")
