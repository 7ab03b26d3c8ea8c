#!/usr/bin/env python3
"""Prints the seconds that build directories took, by module and by test, beside the budget of `make test`.

Usage: time_budget.py [--began SECONDS] [--budget-minutes 20] [--limit-minutes M] [--rows 12] BUILD_DIRECTORY...

Seconds are read from Ninja's log (.ninja_log, one line an output) and from ctest's (tests.xml, as `ctest
--output-junit` writes it). A build counts as the sum of its outputs shared by two processors, tests as the time that
ctest took from its start to its end. The whole is what passed since --began (seconds since 1970), because a build may
run beside tests; without --began it is the sum. It fails only above --limit-minutes: processors differ by more than
half, and a slow machine is no fault of the change that it tests.
"""
import argparse
import re
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections import defaultdict
from pathlib import Path

PROCESSORS = 2


def module_of(output):
    """The module of a build output, or None if it isn't compiled or linked."""
    for pattern, name in ((r"(?:^|/)CMakeFiles/paceline_(kernels)_\w+\.dir/", r"\1"),
                          (r"(?:^|/)tests/CMakeFiles/(test_\w+)\.dir/", r"\1"),
                          (r"(?:^|/)(fuzz|bench|traffic)/", r"\1"),
                          (r"(?:^|/)CMakeFiles/paceline_(\w+)\.dir/", r"\1"),
                          (r"(?:^|/)tests/(test_\w+)$", r"\1"),
                          (r"(?:^|/)(?:lib)?paceline(?:_\w+)?(?:\.a)?$", "link")):
        match = re.search(pattern, output)
        if match:
            return match.expand(name)
    return None


def build_seconds(directory):
    """{module: seconds} of the newest build of each output in directory/.ninja_log."""
    log = directory / ".ninja_log"
    newest = {}
    for line in log.read_text().splitlines() if log.exists() else []:
        fields = line.split("\t")
        if len(fields) == 5:  # start and end in ms, time stamp, output, hash of the command; a later line replaces
            newest[fields[3]] = (int(fields[1]) - int(fields[0])) / 1000
    seconds = defaultdict(float)
    for output, took in newest.items():
        module = module_of(output)
        if module:
            seconds[module] += took
    return dict(seconds)


def test_seconds(directory):
    """({test: seconds}, seconds from start to end) of the last run of ctest in directory; ({}, 0) where none was."""
    report = directory / "tests.xml"
    if not report.exists():
        return {}, 0.0
    suite = ElementTree.parse(report).getroot()
    tests = {case.get("name"): float(case.get("time", "0")) for case in suite.iter("testcase")}
    return tests, float(suite.get("time", "0"))


def print_rows(title, seconds, rows):
    print(title)
    ordered = sorted(seconds.items(), key=lambda item: -item[1])
    for name, took in ordered[:rows]:
        print(f"  {took:7.1f} s  {name}")
    rest = ordered[rows:]
    if rest:
        print(f"  {sum(took for _, took in rest):7.1f} s  {len(rest)} others")


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directories", nargs="+", type=Path, metavar="BUILD_DIRECTORY")
    parser.add_argument("--began", type=float)
    parser.add_argument("--budget-minutes", type=float, default=20)
    parser.add_argument("--limit-minutes", type=float)
    parser.add_argument("--rows", type=int, default=12)
    options = parser.parse_args(arguments)
    minutes = 0.0
    for directory in options.directories:
        modules = build_seconds(directory)
        build_minutes = sum(modules.values()) / PROCESSORS / 60
        print_rows(f"{directory}: built in {build_minutes:.1f} minutes on {PROCESSORS} processors, by module",
                   modules, options.rows)
        tests, wall = test_seconds(directory)
        print_rows(f"{directory}: tested in {wall / 60:.1f} minutes, by test (several at once)", tests, options.rows)
        minutes += build_minutes + wall / 60
    if options.began is not None:
        minutes = (time.time() - options.began) / 60
    print(f"Together {minutes:.1f} minutes; the budget is {options.budget_minutes:g} minutes.")
    if options.limit_minutes is not None and minutes > options.limit_minutes:
        print(f"time_budget.py: {minutes:.1f} minutes is over the limit of {options.limit_minutes:g}. Move the longest "
              "test to `make nightly` or share it out, or make the largest module cheaper to compile.", file=sys.stderr)
        return 1
    if minutes > options.budget_minutes:
        print("time_budget.py: over the budget on this machine; the largest rows above are where to begin.", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
