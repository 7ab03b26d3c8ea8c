#!/usr/bin/env python3
"""Checks the sources against src/LAYERS: allowed includes, modules reached through them, no cycles, no stray files.

A file may include headers of its own module and of the modules on its line. Modules reached only through these headers
are in parentheses on the line. Different modules, and tests and modules, define no constants (in headers) and no types
(outside of unnamed namespaces) of the same name: the linker would keep one of two inline constants or member functions
for both. Modules of serving ask the time through base/time_source.h alone.

Usage: check_layers.py [src]
"""
import os
import re
import sys
from pathlib import Path

SUFFIXES = {".h", ".cc", ".cu", ".cuh", ".in"}
INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')
CONSTANT = re.compile(r"^(?:inline )?constexpr [^(]*?\b(k[A-Z]\w*)\s*[\[={]")
TYPE = re.compile(r"^(?:class|struct|union|enum(?: class)?) (\w+)(?: final)?(?: : [^;{]*)?\s*(?:\{|$)")
LAYER = re.compile(r"^([a-z_0-9]+):((?:\s+[a-z_0-9]+)*)(?:\s+\(([a-z_0-9 ]+)\))?$")


class Layer:
    """A line of src/LAYERS: the modules that a module may include, and those reached through their headers."""

    def __init__(self, number, needs, brought):
        self.number, self.needs, self.brought = number, set(needs), set(brought)


def read_layers(path):
    """Returns ({module: Layer}, errors)."""
    layers, errors = {}, []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        line = line.split("#")[0].rstrip()
        if not line:
            continue
        match = LAYER.match(line)
        if not match:
            errors.append(f"{path}:{number}: expected `module: modules it may include (modules that come along)`, "
                          f"found `{line}`")
            continue
        module, needs, brought = match[1], match[2].split(), (match[3] or "").split()
        if module in layers:
            errors.append(f"{path}:{number}: module {module} has a line already")
            continue
        for need in needs + brought:
            if need not in layers:
                errors.append(f"{path}:{number}: {module} names {need}, which has no line above it")
        if len(set(needs + brought)) != len(needs + brought):
            errors.append(f"{path}:{number}: {module} names a module twice")
        layers[module] = Layer(number, needs, brought)
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
    """The module that implements a public header: the one with a source of its name, if that or its header includes it."""
    def implements(module):
        source = src / module / (Path(target).stem + ".cc")
        files = (file for file in (source, source.with_suffix(".h")) if source.exists() and file.exists())
        return any(included == target for file in files for _, _, included in includes(file))
    return next((m for m in layers if implements(m)), None)


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
        if owner and owner != module and owner not in layers[module].needs:
            return f"{where}: {module} may not include {target}, which {owner} implements (src/LAYERS)"
        return None
    if first == "tests":
        return f"{where}: src/ includes nothing of tests/"
    if first not in layers:
        return f"{where}: no such module: {first}" if quote == '"' else None
    if first != module and first not in layers[module].needs:
        return f"{where}: {module} may not include {first} (src/LAYERS)"
    if not (src / target).exists() and not (src / (target + ".in")).exists():
        return f"{where}: no such file: src/{target}"
    return None


def check_public_include(src, file, where, target):
    """Public headers may include only the standard library and each other."""
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


def reached_from(start, graph):
    """Returns {file: its includer} for all files that `start` includes, directly or not, by shortest paths."""
    parents, queue = {start: None}, [start]
    for file in queue:
        for target in sorted(graph.get(file, ())):
            if target in graph and target not in parents:
                parents[target] = file
                queue.append(target)
    return parents


def check_brought(src, layers, graph):
    """Returns an error for each module reached but not named, and for each in parentheses that isn't reached."""
    errors, brought, reported = [], {module: set() for module in layers}, set()
    for start in sorted(file for file in graph if file.is_relative_to(src)):
        module = start.relative_to(src).parts[0]
        layer, parents = layers[module], reached_from(start, graph)
        for file in (f for f in parents if f.is_relative_to(src)):
            other = file.relative_to(src).parts[0]
            if other == module or other in layer.needs:
                continue
            brought[module].add(other)
            # check_include has an error for what the file includes itself.
            if parents[file] == start or other in layer.brought or (module, other) in reported:
                continue
            reported.add((module, other))
            way, first = [file], file
            while parents[first] != start:
                first = parents[first]
                way.append(first)
            errors.append(f"{start}:{graph[start][first]}: {module} sees {other} through "
                          f"{' <- '.join(str(f.relative_to(src)) for f in way)}; include less there, or put {other} "
                          f"into the parentheses of its line (src/LAYERS)")
    for module, layer in layers.items():
        for other in sorted(layer.brought - brought[module]):
            errors.append(f"{src / 'LAYERS'}:{layer.number}: {module} sees nothing of {other}: take it out of the "
                          "parentheses")
    return errors


def names_outside(file):
    """Yields (line number, name) of the constants of a header and the types of any file, those at namespace scope.

    A name outside of `namespace paceline` itself has its namespace in front: `paceline::autodiff::Array`.
    """
    unnamed, spaces = False, []
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        if re.match(r"namespace \{|\}  // namespace$", line):
            unnamed = line.startswith("namespace")
        elif opened := re.match(r"namespace ([\w:]+) \{$", line):
            spaces.append(opened[1])
        elif spaces and re.match(r"\}  // namespace \S", line):
            spaces.pop()
        match = TYPE.match(line) or (CONSTANT.match(line) if file.suffix == ".h" else None)
        if match and not unnamed:
            space = "::".join(spaces)
            yield number, match[1] if space in ("", "paceline") else f"{space}::{match[1]}"


def check_names(src, public):
    """Returns an error for each constant or type that two modules define; the public headers are one module.

    Tests are linked with the modules, so their constants and types have other names too, or a namespace of their own.
    """
    errors, first = [], {}
    for file in source_files(src) + (source_files(public) if public.is_dir() else []):
        module = file.relative_to(src).parts[0] if file.is_relative_to(src) else "include"
        for number, name in names_outside(file):
            owner, place = first.setdefault(name, (module, f"{file}:{number}"))
            if owner != module:
                errors.append(f"{file}:{number}: {name} is also defined in {place}, of {owner}: rename one")
    tests = src.parent / "tests"
    for file in source_files(tests) if tests.is_dir() else []:
        if re.search(r"^namespace paceline::", file.read_text(encoding="utf-8"), re.M):
            continue
        for number, name in names_outside(file):
            if name in first:
                owner, place = first[name]
                errors.append(f"{file}:{number}: {name} is also defined in {place}, of {owner}: rename it here")
    return errors


# Modules that ask the time through base/time_source.h, so that a test or a simulation can set it.
TIMED = ("engine", "http", "protocol", "server")
CLOCK = re.compile(r"\b(?:steady|system|high_resolution)_clock::now\b|\b(?:clock_)?gettime(?:ofday)?\(|[^:\w.]time\((?:nullptr|NULL)\)")


def check_time(src):
    return [f"{file}:{number}: asks a clock of the machine: use Clock::now() or WallClock::now() (base/time_source.h)"
            for module in TIMED if (src / module).is_dir() for file in source_files(src / module)
            for number, line in enumerate(file.read_text().splitlines(), 1) if CLOCK.search(line.split("//")[0])]


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
    return errors + check_brought(src, layers, graph) + find_cycles(graph) + check_names(src, public) + check_time(src)


def main(arguments):
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
