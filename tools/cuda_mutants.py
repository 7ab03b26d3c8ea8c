#!/usr/bin/env python3
"""make cuda-mutants: barriers, waits and bounds that are taken out of the kernels for GPUs; some test on the emulation must
fail for each."""
import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from mutants import (ROOT, Tally, Verdicts, Workbench, choose, command_words, flags_of, in_order, known_equivalents,
                     report, run_quietly)
from mutations import mutants_of

CODE = Path("src/kernels/cuda/code")
# What nvcc alone reads, lists, functions without bounds, and a kernel that tests/cuda has the tests of.
LEFT_ALONE = {"gpu_thread.h", "device_code.h", "kernel_list.h", "math.h", "small_floats.h", "index3.h", "mma_probe.h"}
# The kernels are compiled into the first, which the second looks them up in.
SOURCES = ("src/kernels/cuda/emulation/kernel_table.cc", "src/kernels/cuda/emulation/emulated_device.cc")
TESTS = "cuda_backend"
SYNC = re.compile(r"^(if \(lane_index\(\) == 0\) )?"
                  r"(sync_threads|sync_warp|wait_copies(<[^>]+>)?|commit_copies|wait_barrier|arrive|begin_bulk|end_bulk|"
                  r"wait_for_earlier_kernels)\(")
BOUND = re.compile(r"[<>]=? ")
# The smaller or larger of two values, whichever comes first where they are equal.
CHOICE = re.compile(r"(\w+)(\.\w+)* [<>]=? (\w+)(\.\w+)* \? (\1(\.\w+)* : \3|\3(\.\w+)* : \1)\b")


def is_sync(mutant):
    return mutant.operator == "drop_statement" and bool(SYNC.match(mutant.before))


def is_bound(mutant):
    """A relation that is off by one, or a guard that is missing."""
    if mutant.operator == "relational":
        return mutant.replacement in ("<", "<=", ">", ">=") and not CHOICE.search(mutant.before)
    return mutant.operator == "drop_statement" and mutant.before.startswith("if ") and bool(BOUND.search(mutant.before))


def mutants_of_kernels(root):
    """(barriers and waits, bounds)"""
    every = [mutant for path in sorted((root / CODE).glob("*.h")) if path.name not in LEFT_ALONE
             for mutant in mutants_of(str(path.relative_to(root)), path.read_text())]
    return [mutant for mutant in every if is_sync(mutant)], [mutant for mutant in every if is_bound(mutant)]


# The mutant that a test process has is named by this variable.
CHOSEN = "CHOSEN_MUTANT"
# `a < b` becomes `a <Relation<7, less, less_equal>{}> b`, which has the precedence of a relation.
SWITCH = """#pragma once
#include <cstdlib>
#include <functional>
namespace mutants {
inline const int chosen = [] {
  const char* const text = std::getenv("%s");
  return text == nullptr ? -1 : std::atoi(text);
}();
template <int number, class Before, class After>
struct Relation {};
template <class T, int number, class Before, class After>
struct Left {
  T value;
};
template <class T, int number, class Before, class After>
Left<T, number, Before, After> operator<(T value, Relation<number, Before, After>) {
  return {value};
}
template <class T, int number, class Before, class After, class U>
bool operator>(Left<T, number, Before, After> left, U right) {
  return chosen == number ? After{}(left.value, right) : Before{}(left.value, right);
}
}
""" % CHOSEN
FUNCTIONS = {"<": "std::less<>", "<=": "std::less_equal<>", ">": "std::greater<>", ">=": "std::greater_equal<>"}


def with_switches(text, mutants):
    """The text with all mutants in it, each with its number; lines keep their numbers."""
    edits = []
    for number, mutant in mutants:
        if mutant.operator == "relational":
            before, after = FUNCTIONS[text[mutant.begin:mutant.end]], FUNCTIONS[mutant.replacement]
            edits.append((mutant.begin, mutant.end, f"<::mutants::Relation<{number}, {before}, {after}>{{}}>"))
        else:
            edits.append((mutant.begin, mutant.begin, f"{{ if (::mutants::chosen != {number}) {{ "))
            edits.append((mutant.end, mutant.end, " } }"))
    for begin, end, replacement in sorted(edits, reverse=True):
        text = text[:begin] + replacement + text[end:]
    return text


class KernelBench(Workbench):
    """A copy of the kernels' headers that comes first when the emulation's table of kernels is compiled; the rest of the
    tests is what the release build made. One build has all mutants, of which each test process has one. What can't be
    compiled so, as constant expressions can't, is compiled alone."""

    def __init__(self, directory, build, mutants):  # pylint: disable=super-init-not-called
        self.directory, self.build = directory, build
        self.headers = directory / "overlay"
        shutil.rmtree(self.headers, ignore_errors=True)
        shutil.copytree(ROOT / CODE, self.headers / CODE)
        if not run_quietly(["ninja", "-C", build, f"test_{TESTS}"], ROOT):
            raise SystemExit(f"test_{TESTS}: does not compile: ninja -C {build} test_{TESTS}")
        commands = subprocess.run(["ninja", "-C", build, "-t", "commands", f"test_{TESTS}"], check=True, text=True,
                                  stdout=subprocess.PIPE).stdout.splitlines()
        words, header = flags_of(command_words(commands, r" -o CMakeFiles/paceline_kernels\.dir/\S+\.o "))
        self.compile_words = [words[0], f"-I{self.headers / 'src'}", *words[1:]]
        if header:
            self.precompile(header)
        self.objects = [self.directory / (Path(source).stem + ".o") for source in SOURCES]
        self.digests = [self.compile_source(source, target) for source, target in zip(SOURCES, self.objects)]
        if None in self.digests:
            raise SystemExit(f"{SOURCES}: do not compile alone")
        words = command_words(commands, rf" -o tests/test_{TESTS} ")
        words[words.index("-o") + 1] = str(directory / f"test_{TESTS}_alone")
        # The first definition of a name counts: that of these objects, not the archive's.
        self.link_words = [words[0], *map(str, self.objects), "-Wl,--allow-multiple-definition", *words[1:]]
        self.numbers = self.compile_all(mutants)
        print(f"{len(self.numbers)} of {len(mutants)} mutants are in one build", flush=True)
        self.executable = directory / f"test_{TESTS}_all"
        self.time_tests()

    def compile_source(self, source, target):
        if not run_quietly([*self.compile_words, "-c", ROOT / source, "-o", target], self.build):
            return None
        return target.read_bytes()

    def compile_all(self, mutants):
        """The mutants that one build has, with their numbers. A mutant on a line that an error names is left out."""
        left = dict(enumerate(mutants))
        switch, target = self.directory / "mutant_switch.h", self.directory / "all.o"
        switch.write_text(SWITCH)
        words = [*self.compile_words, "-include", switch, "-c", ROOT / SOURCES[0], "-o", target]
        while True:
            for file in {mutant.file for mutant in mutants}:
                own = [(number, mutant) for number, mutant in left.items() if mutant.file == file]
                (self.headers / file).write_text(with_switches((ROOT / file).read_text(), own))
            done = subprocess.run(words, cwd=self.build, stderr=subprocess.PIPE, text=True, check=False)
            for file in {mutant.file for mutant in mutants}:
                (self.headers / file).write_text((ROOT / file).read_text())
            if done.returncode == 0:
                break
            named = set(re.findall(rf"({re.escape(str(CODE))}/\w+\.h):(\d+)", done.stderr))
            faulty = [number for number, mutant in left.items() if (mutant.file, str(mutant.line)) in named]
            if not faulty:
                raise SystemExit(f"{SOURCES[0]}: does not compile with all mutants:\n{done.stderr[:2000]}")
            for number in faulty:
                del left[number]
        words = [str(target) if word == str(self.objects[0]) else
                 str(self.directory / f"test_{TESTS}_all") if word == str(self.directory / f"test_{TESTS}_alone") else word
                 for word in self.link_words]
        if not run_quietly(words, self.build):
            raise SystemExit(f"test_{TESTS}: does not link with all mutants")
        return {mutant: number for number, mutant in left.items()}

    def verdict(self, mutant):
        if mutant not in self.numbers:
            return self.verdict_alone(mutant)
        os.environ[CHOSEN] = str(self.numbers[mutant])
        try:
            passes = self.passes()
        finally:
            del os.environ[CHOSEN]
        return self.verdict_alone(mutant) if passes else "caught"

    def verdict_alone(self, mutant):
        header = self.headers / mutant.file
        text = (ROOT / mutant.file).read_text()
        try:
            header.write_text(mutant.apply(text))
            made = self.compile_source(SOURCES[0], self.objects[0])
        finally:
            header.write_text(text)
        if not made:
            return "invalid"
        if made == self.digests[0]:
            return "equivalent"  # the compiler's output is the same
        if mutant in self.numbers:
            return "survived"
        if not run_quietly(self.link_words, self.build):
            return "invalid"
        together, self.executable = self.executable, self.directory / f"test_{TESTS}_alone"
        try:
            return "survived" if self.passes() else "caught"
        finally:
            self.executable = together


def judge(bench, mutants, equivalents, verdicts, again):
    tally = Tally()
    for mutant in mutants:
        verdict = verdicts.of(mutant) if again else None
        if mutant.key in equivalents:
            verdict = "equivalent"
        elif verdict in (None, "survived"):
            verdict = bench.verdict(mutant)
            verdicts.keep(mutant, verdict)
        tally.add(verdict)
        if verdict == "survived":
            print(f"survived  {mutant.file}:{mutant.line}  {mutant.operator}\n  - {mutant.before}\n  + {mutant.after}",
                  flush=True)
    return tally


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bounds", type=int, default=12,
                        help="how many, beside all barriers and waits; 0 for all (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="chooses the bounds (default: %(default)s)")
    parser.add_argument("--files", metavar="NAME,...", type=lambda text: text.split(","),
                        help="only the mutants of these, such as lora.h")
    parser.add_argument("--again", action="store_true", help="only those that survived last time or have no verdict yet")
    parser.add_argument("--least", type=float, default=100, help="percentage that must be caught (default: %(default)s)")
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "release", help="(default: build/release)")
    parser.add_argument("--directory", type=Path, default=ROOT / "build" / "mutants" / "cuda",
                        help="of the objects and the verdicts (default: build/mutants/cuda)")
    asked = parser.parse_args()
    equivalents = known_equivalents(ROOT / "tools" / "mutants_equivalent.toml")
    syncs, bounds = mutants_of_kernels(ROOT)
    bounds = [mutant for mutant in bounds if mutant.key not in equivalents]
    if asked.files:
        syncs, bounds = ([mutant for mutant in some if Path(mutant.file).name in asked.files] for some in (syncs, bounds))
    chosen = in_order(syncs) + in_order(choose(bounds, asked.seed, asked.bounds))
    asked.directory.mkdir(parents=True, exist_ok=True)
    bench = KernelBench(asked.directory.resolve(), asked.build.resolve(), chosen)
    verdicts = Verdicts(asked.directory / "verdicts.json")
    tally = judge(bench, chosen, equivalents, verdicts, asked.again)
    return 1 if report({"cuda": tally}, asked.least) else 0


if __name__ == "__main__":
    sys.exit(main())
