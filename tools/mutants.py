#!/usr/bin/env python3
"""make mutants: small changes to the sources, each of which some test of its module must notice."""
import argparse
import dataclasses
import hashlib
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

from mutations import mutants_of

ROOT = Path(__file__).resolve().parents[1]
MODULES = ("kv", "sched", "sampling", "engine", "protocol")
# The tests of a file elsewhere than in its own module's: what it needs is only there.
TESTED_BY = {"src/engine/model_runner.cc": "load"}
COPIED = ("CMakeLists.txt", "Makefile", "LICENSE", "README.md", "bench", "cmake", "deploy", "docs", "fuzz", "include", "src",
          "tests", "tools", "traffic")
MEMORY_BYTES = 8 << 30
VERDICTS = ("caught", "survived", "equivalent", "invalid")


def known_equivalents(path):
    """From the key of a mutant to the reason why no test can notice it."""
    with open(path, "rb") as file:
        entries = tomllib.load(file).get("equivalent", [])
    for entry in entries:
        if not entry["reason"].strip():
            raise SystemExit(f"{path}: {entry['file']}: {entry['after']}: expected a reason")
    return {(entry["file"], entry["operator"], entry["before"], entry["after"]): entry["reason"] for entry in entries}


def mutants_of_module(root, module):
    found = []
    for path in sorted((root / "src" / module).rglob("*.cc")):
        found += mutants_of(str(path.relative_to(root)), path.read_text())
    return found


def choose(mutants, seed, count):
    """The same ones whatever else the sources hold: by a hash of the key, not by place. No count: all."""
    ranked = sorted(mutants, key=lambda mutant: hashlib.sha256(repr((seed, mutant.key)).encode()).digest())
    return ranked[:count] if count else ranked


def part_of(mutants, part):
    """Every n-th from the k-th on, for part "k/n"."""
    index, count = map(int, part.split("/"))
    if not 1 <= index <= count:
        raise SystemExit(f"--part: found {part}, expected k/n with k from 1 to n")
    return mutants[index - 1::count]


def in_order(mutants):
    """File by file: a source that is changed back is compiled once more."""
    return sorted(mutants, key=lambda mutant: (mutant.file, mutant.begin, mutant.key))


class Workshop:
    """A copy of the tree and a build of it, in which one source at a time is changed."""

    def __init__(self, directory):
        self.source = directory / "source"
        self.build = directory / "build"
        self.tests = {}  # by the tests' module: digest of the executable and the seconds it takes

    def refresh(self):
        """Brings the copy up to date; what is the same keeps its time, so that it isn't compiled again."""
        wanted = set()
        for name in COPIED:
            top = ROOT / name
            for path in [top] if top.is_file() else sorted(top.rglob("*")):
                if not path.is_file() or "__pycache__" in path.parts:
                    continue
                relative = path.relative_to(ROOT)
                wanted.add(relative)
                copy = self.source / relative
                if not copy.is_file() or copy.read_bytes() != path.read_bytes():
                    copy.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy(path, copy)
        for path in list(self.source.rglob("*")):
            if path.is_file() and path.relative_to(self.source) not in wanted:
                path.unlink()

    def configure(self):
        subprocess.run(["cmake", "--log-level=WARNING", "-G", "Ninja", "-S", self.source, "-B", self.build,
                        "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_CXX_FLAGS_DEBUG=-O1", "-DPACELINE_TESTS=ON",
                        "-DPACELINE_BENCH=OFF", "-DPACELINE_UNITY=OFF", "-DPACELINE_WERROR=OFF"],
                       check=True, stdout=subprocess.DEVNULL)

    def compile(self, module):
        return subprocess.run(["ninja", "-C", self.build, f"test_{module}"], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, check=False).returncode == 0

    def digest(self, module):
        return hashlib.sha256((self.build / "tests" / f"test_{module}").read_bytes()).digest()

    def run_tests(self, module, seconds):
        """Whether they pass, in time and in memory."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PACELINE_")}
        limit = lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))  # noqa: E731
        tests = subprocess.Popen([self.build / "tests" / f"test_{module}", "--gtest_brief=1", "--gtest_fail_fast"],
                                 cwd=self.source, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                 preexec_fn=limit, start_new_session=True)
        try:
            return tests.wait(seconds) == 0
        except subprocess.TimeoutExpired:
            return False
        finally:
            if tests.poll() is None:
                os.killpg(tests.pid, signal.SIGKILL)
                tests.wait()

    def prepare(self, module):
        if not self.compile(module):
            raise SystemExit(f"test_{module}: does not compile in {self.build}: ninja -C {self.build} test_{module}")
        began = time.monotonic()
        if not self.run_tests(module, 600):
            raise SystemExit(f"test_{module}: fails without any change, in {self.source}")
        self.tests[module] = (self.digest(module), time.monotonic() - began)

    def verdict(self, module, mutant):
        path = self.source / mutant.file
        text = path.read_text()
        tests = TESTED_BY.get(mutant.file, module)
        if tests not in self.tests:
            self.prepare(tests)
        digest, seconds = self.tests[tests]
        try:
            path.write_text(mutant.apply(text))
            if not self.compile(tests):
                return "invalid"
            if self.digest(tests) == digest:
                return "equivalent"  # the compiler's output is the same
            return "survived" if self.run_tests(tests, 5 + 5 * seconds) else "caught"
        finally:
            path.write_text(text)


@dataclasses.dataclass
class Tally:
    counts: dict = dataclasses.field(default_factory=lambda: dict.fromkeys(VERDICTS, 0))

    def add(self, verdict):
        self.counts[verdict] += 1

    @property
    def percent(self):
        tried = self.counts["caught"] + self.counts["survived"]
        return 100 * self.counts["caught"] / tried if tried else 100.0


def judge(workshop, module, mutants, equivalents):
    """A tally and the survivors of a module's mutants."""
    tally, survivors = Tally(), []
    for mutant in mutants:
        verdict = "equivalent" if mutant.key in equivalents else workshop.verdict(module, mutant)
        tally.add(verdict)
        if verdict == "survived":
            survivors.append(mutant)
            print(f"survived  {mutant.file}:{mutant.line}  {mutant.operator}\n  - {mutant.before}\n  + {mutant.after}",
                  flush=True)
    return tally, survivors


def report(tallies, least):
    """Prints the table; the modules in which fewer are caught than there must be."""
    print(f"{'module':<10}" + "".join(f"{verdict:>12}" for verdict in VERDICTS) + f"{'caught %':>12}")
    for module, tally in tallies.items():
        print(f"{module:<10}" + "".join(f"{tally.counts[verdict]:>12}" for verdict in VERDICTS) + f"{tally.percent:>12.1f}")
    below = [module for module, tally in tallies.items() if tally.percent < least]
    for module in below:
        print(f"{module}: {tallies[module].percent:.1f} % caught, expected at least {least:g} %: "
              "write the missing tests, or list what no test can notice in tools/mutants_equivalent.toml")
    return below


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--modules", default=",".join(MODULES), help="which, with commas between them (default: %(default)s)")
    parser.add_argument("--count", type=int, default=40, help="mutants of each module, 0 for all (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="chooses them (default: %(default)s)")
    parser.add_argument("--part", default="1/1", help="k/n: the k-th of n parts of those chosen")
    parser.add_argument("--again", action="store_true", help="those that survived last time")
    parser.add_argument("--least", type=float, default=95, help="percentage that must be caught (default: %(default)s)")
    parser.add_argument("--directory", type=Path, default=ROOT / "build" / "mutants", help="of the copy and its build")
    asked = parser.parse_args()
    modules = asked.modules.split(",")
    if not set(modules) <= set(MODULES):
        parser.error(f"--modules: found {asked.modules}, expected some of {', '.join(MODULES)}")
    equivalents = known_equivalents(ROOT / "tools" / "mutants_equivalent.toml")
    last = asked.directory / "survivors.json"
    survived = {tuple(key) for key in json.loads(last.read_text())} if last.exists() else set()

    workshop = Workshop(asked.directory.resolve())
    workshop.refresh()
    workshop.configure()
    tallies = {}
    for module in modules:
        every = mutants_of_module(workshop.source, module)
        unknown = [key for key in equivalents
                   if key[0].startswith(f"src/{module}/") and key not in {mutant.key for mutant in every}]
        for key in unknown:
            print(f"tools/mutants_equivalent.toml: no such mutant any more: {key[0]}  {key[1]}: {key[3]}")
        chosen = [mutant for mutant in every if mutant.key in survived] if asked.again else \
            choose(every, asked.seed, asked.count)
        tallies[module], survivors = judge(workshop, module, in_order(part_of(chosen, asked.part)), equivalents)
        survived = {key for key in survived if asked.part != "1/1" or not key[0].startswith(f"src/{module}/")}
        survived |= {mutant.key for mutant in survivors}
        last.write_text(json.dumps(sorted(survived)))
    return 1 if report(tallies, asked.least) else 0


if __name__ == "__main__":
    sys.exit(main())
