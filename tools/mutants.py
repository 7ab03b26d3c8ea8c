#!/usr/bin/env python3
"""make mutants: small changes to the sources; some test of the module must fail for each."""
import argparse
import dataclasses
import hashlib
import json
import os
import re
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

from mutations import mutants_of

ROOT = Path(__file__).resolve().parents[1]
MODULES = ("state", "sched", "sampling", "spec", "runner", "engine", "protocol")
# Files whose tests are in another module, which has what they need.
TESTED_BY = {"src/runner/batch_builder.cc": "engine", "src/runner/model_runner.cc": "load"}
MEMORY_BYTES = 8 << 30
VERDICTS = ("caught", "survived", "equivalent", "invalid")


def known_equivalents(path):
    """From the key of a mutant to the reason why no test can notice it."""
    with open(path, "rb") as file:
        entries = tomllib.load(file).get("equivalent", [])
    for entry in entries:
        if not entry["reason"].strip():
            raise SystemExit(f"{path}: {entry['file']}: {entry['after']}: expected a reason")
    found = {}
    for entry in entries:
        key = (entry["file"], entry["operator"], entry["before"], entry["after"])
        if key in found:
            raise SystemExit(f"{path}: {entry['file']}: {entry['after']}: is there twice")
        found[key] = entry["reason"]
    return found


def stale_equivalents(root, equivalents):
    """The keys that no mutant of the sources has any more."""
    keys = {}
    for file in {key[0] for key in equivalents}:
        source = root / file
        keys[file] = {mutant.key for mutant in mutants_of(file, source.read_text())} if source.exists() else set()
    return [key for key in equivalents if key not in keys[key[0]]]


def mutants_of_module(root, module):
    found = []
    for path in sorted((root / "src" / module).rglob("*.cc")):
        found += mutants_of(str(path.relative_to(root)), path.read_text())
    return found


def choose(mutants, seed, count):
    """A sample that doesn't depend on other mutants: chosen by a hash of the key, not by position. No count: all."""
    def rank(mutant):
        return hashlib.sha256(repr((seed, mutant.key, mutant.nth)).encode()).digest()

    ranked = sorted(mutants, key=rank)
    return ranked[:count] if count else ranked


def part_of(mutants, part):
    """Every n-th from the k-th on, for part "k/n"."""
    index, count = map(int, part.split("/"))
    if not 1 <= index <= count:
        raise SystemExit(f"--part: found {part}, expected k/n with k from 1 to n")
    return mutants[index - 1::count]


def in_order(mutants):
    return sorted(mutants, key=lambda mutant: (mutant.file, mutant.begin, mutant.key))


def command_words(commands, pattern):
    """The compiler's part of the first of these shell commands that has the pattern, as words."""
    command = next(command for command in commands if re.search(pattern, command))
    words = shlex.split(command)
    begin = next(i for i, word in enumerate(words) if re.fullmatch(r"\S*/(c|g|clang)\+\+[-.\d]*", word))
    return words[begin:words.index("&&", begin) if "&&" in words[begin:] else None]


def flags_of(words):
    """A compile command without its files, its warnings and its optimisation; and the precompiled header."""
    flags, header = [], None
    rest = iter(words)
    for word in rest:
        if word == "-include":
            header = Path(next(rest))
        elif word in ("-MT", "-MF", "-o", "-c"):
            next(rest)
        elif not word.startswith(("-MD", "-O", "-W")):
            flags.append(word)
    return flags + ["-O1", "-w"], header


def without_whole_archives(words):
    """A link command that takes what it needs of each archive, where the changed object comes in an archive's place."""
    whole = "-Wl,--whole-archive", "-Wl,--no-whole-archive"
    if whole[0] not in words:
        return words
    return words[:words.index(whole[0])] + words[words.index(whole[1]) + 1:]


def run_quietly(words, directory):
    return subprocess.run(words, cwd=directory, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode == 0


class Workbench:
    """A module and the tests that judge it. The module's sources are compiled one by one, quickly, and linked with what else
    the release build makes these tests of; nothing in that build or in the tree changes."""

    def __init__(self, directory, build, module, tests):
        self.directory, self.build = directory, build
        directory.mkdir(parents=True, exist_ok=True)
        if not run_quietly(["ninja", "-C", build, f"test_{tests}"], ROOT):
            raise SystemExit(f"test_{tests}: does not compile: ninja -C {build} test_{tests}")
        commands = subprocess.run(["ninja", "-C", build, "-t", "commands", f"test_{tests}"], check=True, text=True,
                                  stdout=subprocess.PIPE).stdout.splitlines()
        self.compile_words, header = flags_of(command_words(commands, rf" -o CMakeFiles/paceline_{module}\.dir/\S+\.o "))
        if header:
            self.precompile(header)
        self.texts = {str(path.relative_to(ROOT)): path.read_text() for path in sorted((ROOT / "src" / module).rglob("*.cc"))}
        self.digests = {}  # of the objects, by source
        for name, text in self.texts.items():
            self.digests[name] = self.compile(name, text, self.object_of(name))
            if not self.digests[name]:
                raise SystemExit(f"{name}: does not compile alone: {shlex.join(map(str, self.compile_words))}")
        self.executable = directory / f"test_{tests}"
        words = without_whole_archives(command_words(commands, rf" -o tests/test_{tests} "))
        archive = words.index(f"libpaceline_{module}.a")
        words[words.index("-o") + 1] = str(self.executable)
        self.link_words = words[:archive], words[archive + 1:]
        if not self.link():
            raise SystemExit(f"{self.executable}: does not link: {shlex.join(words)}")
        self.time_tests()

    def precompile(self, header):
        copy = self.directory / "precompiled.h"
        shutil.copy(header, copy)
        run_quietly([*self.compile_words, "-x", "c++-header", "-c", copy, "-o", f"{copy}.gch"], self.build)
        self.compile_words += ["-include", str(copy)]

    def object_of(self, name):
        return self.directory / (name.replace("/", "_") + ".o")

    def compile(self, name, text, target):
        """The digest of the object; None when it doesn't compile. Changed or not, the source has the same path."""
        source = self.directory / name.replace("/", "_")
        source.write_text(text)
        if not run_quietly([*self.compile_words, "-c", source, "-o", target], self.build):
            return None
        return hashlib.sha256(target.read_bytes()).digest()

    def link(self, changed=None, instead=None):
        before, after = self.link_words
        objects = [instead if name == changed else self.object_of(name) for name in self.texts]
        return run_quietly([*before, *objects, *after], self.build)

    def time_tests(self):
        """Finds the slow tests, which run after the others, and how long all of them take."""
        times = self.directory / "times.json"
        self.slow, self.cpu_seconds = [], 600
        began = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
        if not self.run_tests(f"--gtest_output=json:{times}", 600):
            raise SystemExit(f"{self.executable}: fails without any change, in {ROOT}")
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.seconds = time.monotonic() - began[0]
        self.cpu_seconds = usage.ru_utime + usage.ru_stime - began[1].ru_utime - began[1].ru_stime
        for suite in json.loads(times.read_text())["testsuites"]:
            for test in suite["testsuite"]:
                if float(test["time"].removesuffix("s")) > 0.05 + 0.02 * self.seconds:
                    self.slow.append(f"{suite['name']}.{test['name']}")

    def run_tests(self, argument, seconds):
        """Whether the tests pass within the limits of time and memory."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PACELINE_")}

        def limit():
            cpu = 2 + int(4 * self.cpu_seconds)
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
            resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

        tests = subprocess.Popen([self.executable, "--gtest_brief=1", "--gtest_fail_fast", argument], cwd=ROOT, env=environment,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=limit,
                                 start_new_session=True)
        try:
            return tests.wait(seconds) == 0
        except subprocess.TimeoutExpired:
            return False
        finally:
            if tests.poll() is None:
                os.killpg(tests.pid, signal.SIGKILL)
                tests.wait()

    def passes(self):
        slow = ":".join(self.slow)
        filters = [f"-{slow}", slow] if slow else ["*"]
        return all(self.run_tests(f"--gtest_filter={chosen}", 10 + 5 * self.seconds) for chosen in filters)

    def verdict(self, mutant):
        changed = self.directory / "changed.o"
        digest = self.compile(mutant.file, mutant.apply(self.texts[mutant.file]), changed)
        if not digest:
            return "invalid"
        if digest == self.digests[mutant.file]:
            return "equivalent"  # the compiler's output is the same
        if not self.link(mutant.file, changed):
            return "invalid"
        return "survived" if self.passes() else "caught"


class Workshop:
    """The workbench that a mutant needs."""

    def __init__(self, directory, build):
        self.directory, self.build = directory, build
        self.benches = {}

    def verdict(self, module, mutant):
        tests = TESTED_BY.get(mutant.file, module)
        if (module, tests) not in self.benches:
            directory = self.directory / f"{module}_by_{tests}"
            self.benches[module, tests] = Workbench(directory, self.build, module, tests)
        return self.benches[module, tests].verdict(mutant)


class Verdicts:
    """Those so far, kept in a file so that a run that was cut short, or in parts, can go on."""

    def __init__(self, path):
        self.path = path
        self.by_key = {tuple(entry[:-1]): entry[-1] for entry in json.loads(path.read_text())} if path.exists() else {}

    def of(self, mutant):
        return self.by_key.get((*mutant.key, mutant.nth))

    def keep(self, mutant, verdict):
        self.by_key[*mutant.key, mutant.nth] = verdict
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(json.dumps([[*key, verdict] for key, verdict in sorted(self.by_key.items())]))


@dataclasses.dataclass
class Tally:
    counts: dict = dataclasses.field(default_factory=lambda: dict.fromkeys(VERDICTS, 0))

    def add(self, verdict):
        self.counts[verdict] += 1

    @property
    def percent(self):
        tried = self.counts["caught"] + self.counts["survived"]
        return 100 * self.counts["caught"] / tried if tried else 100.0


def judge(workshop, module, mutants, equivalents, verdicts, again=False):
    """A tally of a module's mutants. Again: only those that survived, or have no verdict yet, are tried."""
    tally = Tally()
    for mutant in mutants:
        known = verdicts.of(mutant) if again else None
        if mutant.key in equivalents:
            verdict = "equivalent"
        elif known in (None, "survived"):
            verdict = workshop.verdict(module, mutant)
            verdicts.keep(mutant, verdict)
        else:
            verdict = known
        tally.add(verdict)
        if verdict == "survived":
            print(f"survived  {mutant.file}:{mutant.line}  {mutant.operator}\n  - {mutant.before}\n  + {mutant.after}",
                  flush=True)
    return tally


def report(tallies, least):
    """Prints the table; returns the modules in which too few mutants are caught."""
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
    parser.add_argument("--again", action="store_true",
                        help="only mutants that survived last time or have no verdict yet; the others keep theirs")
    parser.add_argument("--least", type=float, default=95, help="percentage that must be caught (default: %(default)s)")
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "release",
                        help="what everything but the module is taken from, configured with unity builds (default: build/release)")
    parser.add_argument("--directory", type=Path, default=ROOT / "build" / "mutants",
                        help="of the objects and the verdicts (default: build/mutants)")
    asked = parser.parse_args()
    modules = asked.modules.split(",")
    if not set(modules) <= set(MODULES):
        parser.error(f"--modules: found {asked.modules}, expected some of {', '.join(MODULES)}")
    equivalents = known_equivalents(ROOT / "tools" / "mutants_equivalent.toml")
    verdicts = Verdicts(asked.directory / "verdicts.json")
    workshop = Workshop(asked.directory.resolve(), asked.build.resolve())
    tallies = {}
    for module in modules:
        every = mutants_of_module(ROOT, module)
        keys = {mutant.key for mutant in every}
        for file, operator, before, after in equivalents:
            if file.startswith(f"src/{module}/") and (file, operator, before, after) not in keys:
                print(f"tools/mutants_equivalent.toml: no such mutant any more: {file}  {operator}: {after}")
        chosen = part_of(choose(every, asked.seed, asked.count), asked.part)
        tallies[module] = judge(workshop, module, in_order(chosen), equivalents, verdicts, asked.again)
    return 1 if report(tallies, asked.least) else 0


if __name__ == "__main__":
    sys.exit(main())
