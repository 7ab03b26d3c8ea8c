#!/usr/bin/env python3
"""Writes what a compiled caller of include/paceline/paceline.h relies on: functions, structures and numbers.

    python3 tools/make_abi_dump.py [--check]     (writes tests/capi/abi.txt; --check compares with it)

A function's line is its prototype, a structure's its members with their offsets, a constant's its value. A library that
a caller was compiled against earlier may be replaced as long as no line of that time's file has gone: structures that the
library fills, and options, only grow at their end.
"""
from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HEADER = ROOT / "include" / "paceline" / "paceline.h"
DUMP = ROOT / "tests" / "capi" / "abi.txt"


def read_header() -> str:
    text = re.sub(r"/\*.*?\*/", " ", HEADER.read_text(), flags=re.DOTALL)
    text = re.sub(r"(?m)^#.*$", "", text)
    return re.sub(r"\s+", " ", text)


def functions(text: str) -> dict[str, str]:
    """Prototypes by name, without blanks that say nothing."""
    found = {}
    for prototype in re.findall(r"PACELINE_API ([^;{]*\([^;]*\));", text):
        prototype = re.sub(r" ?([*(),]) ?", r"\1", prototype).replace(",", ", ")
        name = re.search(r"\b(paceline_\w+)\(", prototype).group(1)
        found[name] = prototype
    return found


def structures(text: str) -> dict[str, list[str]]:
    """Names of members by structure."""
    found = {}
    for name, body in re.findall(r"typedef struct (\w+) \{(.*?)\} \1;", text):
        members = []
        for declaration in filter(None, (part.strip() for part in body.split(";"))):
            pointer = re.search(r"\(\*(\w+)\)", declaration)
            members.append(pointer.group(1) if pointer else re.search(r"(\w+)$", declaration).group(1))
        found[name] = members
    return found


def constants(text: str) -> list[str]:
    found = []
    for body in re.findall(r"typedef enum \w+ \{(.*?)\}", text):
        found += re.findall(r"(PACELINE_\w+) =", body)
    return found


def dump() -> list[str]:
    text = read_header()
    lines = [f"function {prototype}" for _, prototype in sorted(functions(text).items())]
    prints = []
    for name, members in sorted(structures(text).items()):
        for member in members:
            prints.append(f'printf("member {name}.{member} at %zu of %zu bytes\\n", offsetof({name}, {member}), '
                          f"sizeof((({name}*)0)->{member}));")
    for name in constants(text):
        prints.append(f'printf("constant {name} = %d\\n", (int){name});')
    program = '#include <stdio.h>\n#include <stddef.h>\n#include "paceline/paceline.h"\nint main(void) {\n'
    program += "\n".join(prints) + "\nreturn 0;\n}\n"
    with tempfile.TemporaryDirectory() as work:
        source, binary = Path(work) / "dump.c", Path(work) / "dump"
        source.write_text(program)
        subprocess.run(["cc", "-std=c11", f"-I{ROOT / 'include'}", str(source), "-o", str(binary)], check=True)
        lines += subprocess.run([str(binary)], capture_output=True, text=True, check=True).stdout.splitlines()
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare with tests/capi/abi.txt instead of writing it")
    options = parser.parse_args()
    lines = dump()
    if not options.check:
        DUMP.write_text("\n".join(lines) + "\n")
        return
    committed = DUMP.read_text().splitlines()
    gone = [line for line in committed if line not in lines]
    added = [line for line in lines if line not in committed]
    for line in gone:
        print(f"paceline.h: a compiled caller relies on this, which has gone or changed: {line}")
    for line in added:
        print(f"paceline.h: new, run tools/make_abi_dump.py: {line}")
    sys.exit(1 if gone or added else 0)


if __name__ == "__main__":
    main()
