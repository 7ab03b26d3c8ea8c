#!/usr/bin/env python3
"""Checks the sources against src/LAYERS: who may include whom, no cycles, no strays.

Usage: check_layers.py [src] | --self-test
"""
import os
import re
import sys
import tempfile
import unittest
from pathlib import Path

SUFFIXES = {".h", ".cc", ".cu", ".cuh", ".in"}
INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')
LAYER = re.compile(r"^([a-z_0-9]+):((?:\s+[a-z_0-9]+)*)$")


def read_layers(path):
    """Returns ({module: set of modules it may include}, errors)."""
    layers, errors = {}, []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        line = line.split("#")[0].rstrip()
        if not line:
            continue
        match = LAYER.match(line)
        if not match:
            errors.append(f"{path}:{number}: expected `module: modules it may include`, found `{line}`")
            continue
        module, needs = match[1], match[2].split()
        if module in layers:
            errors.append(f"{path}:{number}: module {module} has a line already")
            continue
        for need in needs:
            if need not in layers:
                errors.append(f"{path}:{number}: {module} names {need}, which has no line above it")
        if len(set(needs)) != len(needs):
            errors.append(f"{path}:{number}: {module} names a module twice")
        layers[module] = set(needs)
    return layers, errors


def source_files(root):
    return sorted(p for p in root.rglob("*") if p.is_file() and p.suffix in SUFFIXES)


def includes(path):
    """Yields (line number, quoted or angled, included path)."""
    text = path.read_text(encoding="utf-8")
    text = re.sub(r"/\*.*?\*/", lambda m: "\n" * m[0].count("\n"), text, flags=re.S)
    for number, line in enumerate(text.splitlines(), 1):
        match = INCLUDE.match(line)
        if match:
            yield number, match[1], match[2]


def public_header_owner(src, layers, target):
    """The module that implements a public header: the one with a source of the same name, if any."""
    return next((m for m in layers if (src / m / (Path(target).stem + ".cc")).exists()), None)


def check_include(src, layers, file, where, quote, target):
    """Returns the error in one #include of a file in src/, or None."""
    module = file.relative_to(src).parts[0]
    first = target.split("/")[0]
    if ".." in target.split("/"):
        return f"{where}: include `{target}` from the root src/, not relative to the file"
    if "/" not in target:
        sibling = (file.parent / target).exists()
        return f'{where}: write "{file.parent.relative_to(src)}/{target}" (include root is src/)' if sibling else None
    if first == "paceline":
        if quote == '"' and not (src.parent / "include" / target).exists():
            return f"{where}: no such public header: {target}"
        owner = public_header_owner(src, layers, target)
        if owner and owner != module and owner not in layers[module]:
            return f"{where}: {module} may not include {target}, which {owner} implements (src/LAYERS)"
        return None
    if first == "tests":
        return f"{where}: src/ includes nothing of tests/"
    if first not in layers:
        return f"{where}: no such module: {first}" if quote == '"' else None
    if first != module and first not in layers[module]:
        return f"{where}: {module} may not include {first} (src/LAYERS)"
    if not (src / target).exists() and not (src / (target + ".in")).exists():
        return f"{where}: no such file: src/{target}"
    return None


def check_public_include(src, file, where, target):
    """Public headers stand alone: they include the standard library and each other."""
    first = target.split("/")[0]
    if "/" in target and ((src / first).is_dir() or ".." in target.split("/")):
        return f"{where}: a public header includes nothing from src/ ({target})"
    if "/" not in target and (file.parent / target).exists():
        return f'{where}: write "paceline/{target}"'
    return None


def find_cycles(graph):
    """Returns the include cycles of {file: {included file: line}} as error lines."""
    errors, state, path = [], {}, []

    def visit(node):
        state[node] = "open"
        path.append(node)
        for target, line in sorted(graph[node].items()):
            if state.get(target) == "open":
                cycle = path[path.index(target):] + [target]
                errors.append(f"{node}:{line}: include cycle: " + " -> ".join(p.name for p in cycle))
            elif target in graph and target not in state:
                visit(target)
        path.pop()
        state[node] = "done"

    for node in sorted(graph):
        if node not in state:
            visit(node)
    return errors


def check(src):
    """Returns every violation under src/ and the include/ beside it, as `file:line: message`."""
    layers_file = src / "LAYERS"
    if not layers_file.exists():
        return [f"{layers_file}: missing"]
    layers, errors = read_layers(layers_file)
    for directory in sorted(p for p in src.iterdir() if p.is_dir() and p.name != "__pycache__"):
        if directory.name not in layers:
            errors.append(f"{directory}:1: directory without a line in {layers_file}")
    graph = {}
    for file in source_files(src):
        parts = file.relative_to(src).parts
        if len(parts) < 2:
            errors.append(f"{file}:1: sources belong into a module, not into src/ itself")
            continue
        if parts[0] not in layers:
            continue
        graph[file] = {}
        for number, quote, target in includes(file):
            error = check_include(src, layers, file, f"{file}:{number}", quote, target)
            if error:
                errors.append(error)
            graph[file].setdefault(src / target, number)
    public = src.parent / "include"
    for file in source_files(public) if public.is_dir() else []:
        graph[file] = {}
        for number, _, target in includes(file):
            error = check_public_include(src, file, f"{file}:{number}", target)
            if error:
                errors.append(error)
            graph[file].setdefault(public / target, number)
    return errors + find_cycles(graph)


class CheckLayersTest(unittest.TestCase):
    LAYERS = "# order\nbase:\ntensor: base # views\nengine: base tensor\n"

    def errors(self, files, layers=LAYERS):
        with tempfile.TemporaryDirectory() as top:
            for name, text in {"src/LAYERS": layers, **files}.items():
                path = Path(top) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            return [e.replace(f"{top}/", "") for e in check(Path(top) / "src")]

    def expect(self, files, *fragments, layers=LAYERS):
        errors = self.errors(files, layers)
        self.assertEqual(len(errors), len(fragments), errors)
        for error, fragment in zip(errors, fragments):
            self.assertIn(fragment, error)

    def test_downward_includes_pass(self):
        self.expect({
            "src/base/a.h": "#include <vector>\n", "src/base/version.h.in": "",
            "src/tensor/t.h": '#include "base/a.h"\n#include "base/version.h"\n',
            "src/tensor/t.cc": '#include "tensor/t.h"\n#include <sys/mman.h>\n',
            "include/paceline/llm.h": '#include <string>\n#include "paceline/types.h"\n',
            "include/paceline/types.h": ""})

    def test_upward_include(self):
        self.expect({"src/base/a.h": '\n#include "engine/e.h"\n', "src/engine/e.h": ""},
                    "src/base/a.h:2: base may not include engine")

    def test_upward_include_in_angle_brackets(self):
        self.expect({"src/base/a.h": "#include <engine/e.h>\n", "src/engine/e.h": ""}, "base may not include engine")

    def test_unlisted_include(self):
        self.expect({"src/engine/e.h": '#include "tensor/t.h"\n', "src/tensor/t.h": ""},
                    "engine may not include tensor", layers="base:\ntensor: base\nengine: base\n")

    def test_commented_include_counts_for_nothing(self):
        self.expect({"src/base/a.h": '// #include "engine/e.h"\n/*\n#include "engine/e.h"\n*/\n'})

    def test_missing_file_and_module(self):
        self.expect({"src/tensor/t.h": '#include "base/no.h"\n#include "bse/a.h"\n'},
                    "t.h:1: no such file: src/base/no.h", "t.h:2: no such module: bse")

    def test_relative_includes(self):
        self.expect({"src/base/a.h": "", "src/base/b.h": '#include "a.h"\n#include "../base/a.h"\n'},
                    'write "base/a.h"', "not relative to the file")

    def test_directory_without_line(self):
        self.expect({"src/extra/x.h": ""}, "src/extra:1: directory without a line")

    def test_file_outside_modules(self):
        self.expect({"src/x.h": ""}, "src/x.h:1: sources belong into a module")

    def test_layer_names_later_module(self):
        self.expect({}, "src/LAYERS:1: base names tensor, which has no line above it", layers="base: tensor\ntensor:\n")

    def test_layer_syntax_and_duplicates(self):
        self.expect({}, "LAYERS:1: expected", "LAYERS:3: module base has a line already",
                    layers="base tensor\nbase:\nbase:\n")

    def test_header_cycle(self):
        self.expect({"src/base/a.h": '#include "base/b.h"\n', "src/base/b.h": '#include "base/c.h"\n',
                     "src/base/c.h": '#include "base/a.h"\n'}, "src/base/c.h:1: include cycle: a.h -> b.h -> c.h -> a.h")

    def test_public_header_includes_source(self):
        self.expect({"include/paceline/llm.h": '#include "base/a.h"\n', "src/base/a.h": ""},
                    "include/paceline/llm.h:1: a public header includes nothing from src/")

    def test_public_header_counts_as_the_module_that_implements_it(self):
        self.expect({"include/paceline/run.h": "", "src/engine/run.cc": '#include "paceline/run.h"\n',
                     "src/base/a.cc": '#include "paceline/run.h"\n'},
                    "src/base/a.cc:1: base may not include paceline/run.h, which engine implements")

    def test_source_includes_missing_public_header(self):
        self.expect({"src/engine/e.cc": '#include "paceline/no.h"\n'}, "no such public header")


def main(arguments):
    if arguments == ["--self-test"]:
        return not unittest.main(argv=[sys.argv[0]], exit=False).result.wasSuccessful()
    if len(arguments) > 1 or any(a.startswith("-") for a in arguments):
        print(__doc__.strip(), file=sys.stderr)
        return 2
    src = Path(arguments[0]) if arguments else Path(__file__).resolve().parent.parent / "src"
    errors = check(Path(os.path.relpath(src)))
    for error in errors:
        print(error, file=sys.stderr)
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
