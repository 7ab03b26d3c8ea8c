"""The program that comes with the package."""
from __future__ import annotations

import os
import shutil
from pathlib import Path

from .errors import error_of


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


def arguments(options: dict) -> list[str]:
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


def main() -> None:
    """The command `paceline`."""
    import sys
    os.execv(path(), ["paceline", *sys.argv[1:]])
