#!/usr/bin/env python3
"""Makes the contract tests' virtual environment, and runs them in it.

Usage: environment.py make FOLDER            make it, unless it is there with just these packages
       environment.py run FOLDER SCRIPT...   run the script in it

Exit code 77, which CTest takes for "skipped", when it could not be made; with PACELINE_REQUIRE_CONTRACT=1 that
is a failure.
"""
import hashlib
import os
import subprocess
import sys
import venv
from pathlib import Path

REQUIREMENTS = Path(__file__).resolve().parent / "requirements.txt"
SKIPPED = 77
IS_REQUIRED = os.environ.get("PACELINE_REQUIRE_CONTRACT") == "1"


def fingerprint():
    return hashlib.sha256(REQUIREMENTS.read_bytes() + sys.version.encode()).hexdigest()


def is_made(folder):
    stamp = folder / "made-of"
    return stamp.exists() and stamp.read_text() == fingerprint()


def make(folder):
    """Why it can't be made; None when it is."""
    if is_made(folder):
        return None
    try:
        venv.EnvBuilder(clear=True, with_pip=True, symlinks=True).create(folder)
    except (OSError, subprocess.CalledProcessError) as error:
        return f"python3 -m venv fails (Debian: python3-venv): {error}"
    pip = [folder / "bin" / "python", "-m", "pip", "--disable-pip-version-check", "--quiet", "install", "--retries", "1",
           "--timeout", "20", "--no-deps", "--requirement", REQUIREMENTS]
    done = subprocess.run(pip, capture_output=True, text=True)
    if done.returncode != 0:
        return f"pip can't install {REQUIREMENTS.name}: " + "\n".join(done.stderr.splitlines()[-3:])
    (folder / "made-of").write_text(fingerprint())
    return None


def main():
    command, folder, *script = sys.argv[1:]
    folder = Path(folder)
    if command == "make":
        problem = make(folder)
        if problem is None:
            return 0
        print(f"NO CONTRACT TESTS: {problem}", file=sys.stderr)
        return 1 if IS_REQUIRED else SKIPPED
    if not is_made(folder):
        print("SKIPPED: the contract tests' virtual environment could not be made (no network?); "
              "see the test contract.environment", file=sys.stderr)
        return 1 if IS_REQUIRED else SKIPPED
    python = folder / "bin" / "python"
    os.execv(python, [python, *script])


if __name__ == "__main__":
    sys.exit(main())
