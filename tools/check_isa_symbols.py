#!/usr/bin/env python3
"""Checks that no object compiled for one instruction set defines an inline function others may be linked to.

The linker keeps one copy of each inline function or template instance. If that copy was compiled with -mavx512f, code
that runs on every machine would call it. So such an object may define weak functions of its own namespace only.

Usage: check_isa_symbols.py NAMESPACE OBJECT...
"""
import subprocess
import sys


def foreign_functions(namespace, nm_output):
    """The mangled weak functions of `nm -P` that don't name the namespace, in order."""
    mark = f"{len(namespace)}{namespace}"
    found = set()
    for line in nm_output.splitlines():
        fields = line.split()
        if len(fields) > 2 and fields[1] == "W" and mark not in fields[0]:
            found.add(fields[0])
    return sorted(found)


def main(arguments):
    if len(arguments) < 2:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    namespace, objects = arguments[0], arguments[1:]
    failed = False
    for path in objects:
        nm = subprocess.run(["nm", "-P", "--defined-only", path], capture_output=True, text=True, check=True)
        names = foreign_functions(namespace, nm.stdout)
        if names:
            failed = True
            filt = subprocess.run(["c++filt"], input="\n".join(names), capture_output=True, text=True, check=True)
            for name in filt.stdout.splitlines():
                print(f"{path}: defines {name}, which code for every machine may be linked to", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
