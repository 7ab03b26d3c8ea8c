#!/usr/bin/env python3
"""Writes python/paceline/_abi.py: the structures, constants and functions of include/paceline/paceline.h for ctypes.

    python3 tools/make_python_abi.py [--check]     (--check compares with the file instead of writing it)
"""
from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools"))
import make_abi_dump  # noqa: E402

OUTPUT = ROOT / "python" / "paceline" / "_abi.py"
SCALARS = {"int": "c_int", "int32_t": "c_int32", "int64_t": "c_int64", "uint64_t": "c_uint64", "size_t": "c_size_t",
           "float": "c_float", "double": "c_double"}
BEGIN = '''"""include/paceline/paceline.h for ctypes; made by tools/make_python_abi.py."""
from ctypes import (CFUNCTYPE, POINTER, Structure, c_char_p, c_double, c_float, c_int, c_int32, c_int64, c_size_t, c_uint64,
                    c_void_p)

'''


class Names:
    def __init__(self, text: str):
        self.structures = re.findall(r"typedef struct (\w+) \{", text)
        self.enums = re.findall(r"typedef enum (\w+) \{", text)
        self.callbacks = re.findall(r"typedef \w+ ?\(\*(\w+)\)", text)

    def ctype(self, text: str) -> str:
        """Of a type in C, such as `const char* const*`."""
        base, stars = re.match(r"((?:const )?\w+)((?: ?const| ?\*)*)", text.strip()).groups()
        base, depth = base.removeprefix("const "), stars.count("*")
        if base == "void":
            if depth == 0:
                return "None"
            return "c_void_p" if depth == 1 else "POINTER(c_void_p)"
        if base == "char":
            made, depth = "c_char_p", depth - 1
        elif base in SCALARS:
            made = SCALARS[base]
        elif base in self.enums:
            made = "c_int"
        elif base in self.structures or base in self.callbacks:
            made = base
        else:  # an opaque one
            made, depth = "c_void_p", depth - 1
        for _ in range(depth):
            made = f"POINTER({made})"
        return made


def typed_name(declaration: str) -> tuple[str, str]:
    """Type and name of `const char* text`."""
    return re.match(r"(.*?)(\w+)$", declaration.strip()).groups()


def callback(names: Names, result: str, arguments: str) -> str:
    types = [names.ctype(typed_name(argument)[0]) for argument in arguments.split(",")]
    return f"CFUNCTYPE({', '.join([names.ctype(result), *types])})"


def made() -> str:
    text = make_abi_dump.read_header()
    names = Names(text)
    parts = [BEGIN]
    for body in re.findall(r"typedef enum \w+ \{(.*?)\}", text):
        parts += [f"{name} = {value}\n" for name, value in re.findall(r"(PACELINE_\w+) = (-?\d+)", body)]
    parts.append("PACELINE_DEFAULT = -(2 ** 63)\nPACELINE_DEFAULT_FLOAT = -1e30\n")
    for name, body in re.findall(r"typedef struct (\w+) \{(.*?)\} \1;", text):
        fields = []
        for declaration in filter(None, (part.strip() for part in body.split(";"))):
            pointer = re.match(r"(\w+) \(\*(\w+)\)\((.*)\)$", declaration)
            if pointer:
                fields.append((pointer.group(2), callback(names, pointer.group(1), pointer.group(3))))
            else:
                kind, member = typed_name(declaration)
                fields.append((member, names.ctype(kind)))
        lines = "".join(f'        ("{member}", {kind}),\n' for member, kind in fields)
        parts.append(f"\n\nclass {name}(Structure):\n    _fields_ = [\n{lines}    ]\n")
    for result, name, arguments in re.findall(r"typedef (\w+) ?\(\*(\w+)\)\((.*?)\);", text):
        parts.append(f"\n\n{name} = {callback(names, result, arguments)}\n")
    parts.append("\n\nFUNCTIONS = {\n")
    for name, prototype in sorted(make_abi_dump.functions(text).items()):
        result, arguments = re.match(rf"(.*?){name}\((.*)\)$", prototype).groups()
        kinds = [] if arguments == "void" else [names.ctype(typed_name(argument)[0]) for argument in arguments.split(", ")]
        # A text that the library frees later, and NULL, must come as they are.
        parts.append(f'    "{name}": ({names.ctype(result)}, [{", ".join(kinds)}]),\n')
    parts.append("}\n")
    return "".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare with python/paceline/_abi.py instead of writing it")
    options = parser.parse_args()
    if not options.check:
        OUTPUT.parent.mkdir(parents=True, exist_ok=True)
        OUTPUT.write_text(made())
    elif OUTPUT.read_text() != made():
        sys.exit("python/paceline/_abi.py isn't what the header says: run tools/make_python_abi.py")


if __name__ == "__main__":
    main()
