"""The peer's virtual environment: llama.cpp as the package llama-cpp-python, compiled here for this machine."""
import os
import subprocess
import sys
import venv

PACKAGES = ("gguf", "numpy")
PEER = "llama-cpp-python"
FLAGS = ("-DGGML_NATIVE=ON", "-DCMAKE_BUILD_TYPE=Release", "-DLLAMA_BUILD_TESTS=OFF", "-DLLAMA_BUILD_EXAMPLES=OFF",
         "-DLLAMA_BUILD_TOOLS=OFF", "-DLLAMA_BUILD_SERVER=OFF", "-DLLAVA_BUILD=OFF")
# Compiled by GCC 12, its AMX code loads a tile configuration that isn't written yet, and crashes.
NO_AMX = "-mno-amx-tile -mno-amx-int8 -mno-amx-bf16"


class Missing(RuntimeError):
    pass


def flags(has_amx):
    return " ".join(FLAGS if has_amx else (*FLAGS, f"'-DCMAKE_C_FLAGS={NO_AMX}'", f"'-DCMAKE_CXX_FLAGS={NO_AMX}'"))


def pip(folder, *arguments, **variables):
    command = [folder / "bin" / "python", "-m", "pip", "--disable-pip-version-check", "--quiet", "install", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **variables})
    if done.returncode != 0:
        said = done.stderr.strip().splitlines()
        reasons = [line for line in said if "error" in line.lower()][:5] or said[-5:]
        names = ", ".join(name for name in arguments if not name.startswith("-"))
        raise Missing(f"pip can't install {names} into {folder}:\n" + "\n".join(reasons))


def make(folder, has_amx):
    """Its python; makes the environment if needed. Raises Missing with the missing requirement."""
    stamp, wanted = folder / "made-of", f"{PEER} {flags(has_amx)} {sys.version}"
    python = folder / "bin" / "python"
    if stamp.exists() and stamp.read_text() == wanted:
        return python
    if folder.exists() and any(folder.iterdir()) and not stamp.exists():
        raise Missing(f"{folder} was made by somebody else and would be replaced: remove it, or name another --venv")
    print(f"compiling {PEER} into {folder} (some minutes)", file=sys.stderr, flush=True)
    try:
        venv.EnvBuilder(clear=True, with_pip=True, symlinks=True).create(folder)
    except (OSError, subprocess.CalledProcessError) as error:
        raise Missing(f"python3 -m venv fails (Debian: python3-venv): {error}") from None
    stamp.write_text("unfinished")
    pip(folder, *PACKAGES)
    # A wheel in pip's cache may be one for another machine, or with other flags.
    pip(folder, "--no-cache-dir", f"--no-binary={PEER}", PEER, CMAKE_ARGS=flags(has_amx))
    stamp.write_text(wanted)
    return python
