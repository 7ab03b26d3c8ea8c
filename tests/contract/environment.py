#!/usr/bin/env python3
"""Makes a virtual environment of the contract tests, and runs them in it.

Usage: environment.py make FOLDER REQUIREMENTS            make it, unless it is there with just these packages
       environment.py run FOLDER REQUIREMENTS SCRIPT...   run the script in it

REQUIREMENTS is a file of this folder.

Exit code 77, which CTest takes for "skipped", when it could not be made; with PACELINE_REQUIRE_CONTRACT=1 that
is a failure.
"""
import hashlib
import os
import subprocess
import sys
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent
SKIPPED = 77
IS_REQUIRED = os.environ.get("PACELINE_REQUIRE_CONTRACT") == "1"


def fingerprint(requirements):
    return hashlib.sha256(requirements.read_bytes() + sys.version.encode()).hexdigest()


def is_made(folder, requirements):
    stamp = folder / "made-of"
    return stamp.exists() and stamp.read_text() == fingerprint(requirements)


def make(folder, requirements):
    """Why it can't be made; None when it is."""
    if is_made(folder, requirements):
        return None
    try:
        venv.EnvBuilder(clear=True, with_pip=True, symlinks=True).create(folder)
    except (OSError, subprocess.CalledProcessError) as error:
        return f"python3 -m venv fails (Debian: python3-venv): {error}"
    pip = [folder / "bin" / "python", "-m", "pip", "--disable-pip-version-check", "--quiet", "install", "--retries", "1",
           "--timeout", "20", "--no-compile", "--no-deps", "--requirement", requirements]
    done = subprocess.run(pip, capture_output=True, text=True)
    if done.returncode != 0:
        return f"pip can't install {requirements.name}: " + "\n".join(done.stderr.splitlines()[-3:])
    (folder / "made-of").write_text(fingerprint(requirements))
    return None


def main():
    command, folder, requirements, *script = sys.argv[1:]
    folder, requirements = Path(folder), HERE / requirements
    if command == "make":
        problem = make(folder, requirements)
        if problem is None:
            return 0
        print(f"NO CONTRACT TESTS: {problem}", file=sys.stderr)
        return 1 if IS_REQUIRED else SKIPPED
    if not is_made(folder, requirements):
        print(f"SKIPPED: the virtual environment {folder.name} could not be made (no network?); see the test "
              f"contract.{folder.name}", file=sys.stderr)
        return 1 if IS_REQUIRED else SKIPPED
    python = folder / "bin" / "python"
    # Only what is imported is compiled, once, beside the environment.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = str(folder.resolve() / "compiled")
    os.execv(python, [python, *script])


if __name__ == "__main__":
    sys.exit(main())
