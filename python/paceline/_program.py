"""The program that comes with the package, and processes that run it."""
from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .errors import Error, error_of

_NUM_LAST_LINES = 20  # of what it said: an error's message is among them
_PATIENCE_S = 10  # for its last lines
_FAILED, _BAD_USAGE, _INTERRUPTED = 1, 2, 128  # exit codes; of an interruption 128 + the signal


def path() -> str:
    """The one that came with the package, unless PACELINE_BINARY names another; else the system's."""
    named = os.environ.get("PACELINE_BINARY")
    inside = Path(__file__).parent / "bin" / "paceline"
    found = named or (str(inside) if inside.exists() else shutil.which("paceline"))
    if found is None:
        raise error_of("not_found", "paceline: the program isn't there; install the paceline package, or set PACELINE_BINARY")
    return found


def environment() -> dict[str, str]:
    """Without what is for the package alone."""
    return {name: value for name, value in os.environ.items() if name not in ("PACELINE_LIBRARY", "PACELINE_BINARY")}


def arguments(options: dict[str, Any]) -> list[str]:
    """max_model_len=64 as --max-model-len 64; True is a flag alone, a list repeats the option."""
    made: list[str] = []
    for name, value in options.items():
        flag = "--" + name.replace("_", "-")
        for one in value if isinstance(value, (list, tuple)) else [value]:
            if one is True:
                made.append(flag)
            elif one is not None and one is not False:
                made += [flag, str(one)]
    return made


class Child:
    """A command of the program that ends when this process does, even where that is killed: the child's standard input is a pipe of ours,
    and Linux sends it a signal when the thread that started it ends, which is the one that reads its notes until then."""

    def __init__(self, command: str, given: list[str], on_line: Callable[[str], None] = lambda line: None):
        self._name, self._on_line = command, on_line
        self._last_lines: deque[str] = deque(maxlen=_NUM_LAST_LINES)
        self._process: subprocess.Popen[str] | None = None
        self._refusal: OSError | None = None
        is_started = threading.Event()
        self._reader = threading.Thread(target=self._run, args=([path(), command, "--stop-with-parent", "--error-codes", *given], is_started),
                                        daemon=True)
        self._reader.start()
        is_started.wait()
        if self._refusal is not None:
            raise error_of("not_found" if isinstance(self._refusal, FileNotFoundError) else "exhausted", f"paceline {command}: {self._refusal}")

    @property
    def process(self) -> subprocess.Popen[str]:
        assert self._process is not None
        return self._process

    def _run(self, command: list[str], is_started: threading.Event) -> None:
        """Its notes would fill the pipe if nobody read them."""
        try:
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                             errors="replace", start_new_session=True, env=environment())
        except OSError as error:
            self._refusal = error
            return
        finally:
            is_started.set()
        assert self._process.stderr is not None
        with self._process.stderr as lines:
            for line in lines:
                self._last_lines.append(line.rstrip())
                self._on_line(self._last_lines[-1])

    def stop(self, timeout: float) -> int:
        """Asks it to end, waits, and returns its exit code."""
        if self.process.poll() is None:
            self.process.terminate()
        try:
            return self.wait(timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.wait(None)

    def wait(self, timeout: float | None) -> int:
        """Its exit code, when all it said was read."""
        code = self.process.wait(timeout)
        self._reader.join(_PATIENCE_S)
        if self.process.stdin is not None:
            self.process.stdin.close()
        return code

    def error(self) -> Error:
        """Why it ended, when it has."""
        said = list(self._last_lines)
        first = max((i for i, line in enumerate(said) if line.startswith("paceline: ")), default=None)
        message = " ".join(said if first is None else said[first:]).removeprefix("paceline: ")
        exit_code = self.process.returncode
        found = re.match(r"(\w+): (.*)", message)
        if exit_code == _FAILED and first is not None and found and error_of(found[1], "").code == found[1]:
            return error_of(found[1], f"paceline {self._name}: {found[2]}")
        if exit_code == _BAD_USAGE:
            return error_of("invalid", f"paceline {self._name}: {message.removeprefix('invalid: ')}")
        if exit_code == -signal.SIGKILL:
            return error_of("exhausted", f"paceline {self._name} was killed, as the system does when memory runs out; {message}")
        if exit_code > _INTERRUPTED or exit_code in (-signal.SIGTERM, -signal.SIGINT):
            return error_of("cancelled", f"paceline {self._name}: {message or 'interrupted'}")
        return error_of("internal", f"paceline {self._name} ended with code {exit_code}: {message or 'it said nothing'}")


def main() -> None:
    """The command `paceline`."""
    import sys
    os.execv(path(), ["paceline", *sys.argv[1:]])
