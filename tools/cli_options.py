"""Reads the binary's description of its commands and options, for the man page and the completions."""
import json
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Option:
    flags: tuple  # as written, short and long: ("-m", "--model")
    env: str  # environment variable, or ""
    help: str
    placeholder: str  # the value's name in the help: "FILE"
    value: str  # none, text, file, directory, choice, or choices (several, with commas)
    choices: tuple

    @property
    def takes_value(self):
        return self.value != "none"


@dataclass
class Interface:
    version: str
    summary: str  # one line
    commands: dict  # {command: one line}
    options: dict  # {command, "" for the program itself: [Option]}

    def common(self):
        """The options every command has, which are described once."""
        lists = [self.options[c] for c in self.commands]
        return [o for o in lists[0] if all(o in other for other in lists[1:])] if lists else []


def run(binary, *arguments):
    binary = str(Path(binary).resolve())
    done = subprocess.run([binary, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    if done.returncode != 0:
        raise SystemExit(f"{binary} {' '.join(arguments)} failed: {done.stderr.strip()}")
    return done.stdout


def parse_options(text):
    """Reads the JSON lines of `--dump-options`: {command: [Option]}."""
    options = {"": []}
    for line in text.splitlines():
        if line.strip():
            row = json.loads(line)
            option = Option(tuple(row["flags"]), row["env"], row["help"].strip(), row["placeholder"], row["value"],
                            tuple(row["choices"]))
            options.setdefault(row["command"] or "", []).append(option)
    return options


def parse_summary(help_text):
    """The first line of `--help` that isn't the usage line."""
    for line in help_text.splitlines():
        if line.strip() and not line.lower().startswith("usage"):
            return line.strip()
    raise SystemExit("--help says nothing")


def parse_commands(help_text, names):
    """The one-line descriptions of the commands in `--help`, continuation lines included."""
    commands = {name: "" for name in names}
    current = None
    for line in help_text.splitlines():
        match = re.match(r"^\s{1,8}([a-z][a-z-]*)(?:\s{2,}(.*))?$", line)
        if match and match[1] in commands:
            current = match[1]
            commands[current] = (match[2] or "").strip()
        elif current and re.match(r"^\s{9,}\S", line):
            commands[current] = f"{commands[current]} {line.strip()}".strip()
        else:
            current = None
    return commands


def read_interface(binary):
    options = parse_options(run(binary, "--dump-options"))
    help_text = run(binary, "--help")
    names = [name for name in options if name]
    commands = parse_commands(help_text, names)
    undescribed = [name for name, text in commands.items() if not text]
    if undescribed or not names:
        raise SystemExit(f"--help describes no command {', '.join(undescribed)}".rstrip())
    version = (run(binary, "--version").split("\n")[0]).strip()
    return Interface(version, parse_summary(help_text), commands, options)
