"""Runs the measured programs, each run as a process of its own, and monitors them."""
import json
import os
import resource
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

LOOK_SECONDS = 0.02
BUSY_CORES = 0.1  # used by others: figures don't count
AMX_HINT = "this processor has AMX, whose code in llama.cpp can crash when GCC 12 compiled it: try --without-amx"
FOLDER = Path(__file__).resolve().parent


class Failed(RuntimeError):
    pass


class Killed(Failed):
    """By a signal."""


@dataclass(frozen=True)
class Finished:
    output: str
    peak_bytes: int      # the largest resident memory that was seen
    others_cores: float  # used by other processes meanwhile


def machine_seconds():
    """Core seconds used by all processes since boot."""
    user, nice, system, _, _, irq, softirq = map(int, Path("/proc/stat").read_text().split(maxsplit=8)[1:8])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def own_seconds():
    used = [resource.getrusage(who) for who in (resource.RUSAGE_CHILDREN, resource.RUSAGE_SELF)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def peak_of(pid):
    try:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


def why(command, code, errors):
    last = "\n".join(errors.strip().splitlines()[-5:])
    how = f"was killed by signal {-code}" if code < 0 else f"exited with {code}"
    return f"{' '.join(map(str, command))} {how}" + (f":\n{last}" if last else "")


def run(command, text=""):
    """Runs it to its end with `text` on standard input; Failed with its last words when it fails."""
    machine, own = machine_seconds(), own_seconds()
    began = os.times().elapsed
    child = subprocess.Popen([str(part) for part in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True)
    peak = 0
    while True:
        peak = max(peak, peak_of(child.pid))
        try:
            output, errors = child.communicate(text or None, timeout=LOOK_SECONDS)
            break
        except subprocess.TimeoutExpired:
            text = ""
        except BaseException:
            child.kill()
            child.wait()
            raise
    if child.returncode != 0:
        raise (Killed if child.returncode < 0 else Failed)(why(command, child.returncode, errors))
    seconds = max(os.times().elapsed - began, 1 / os.sysconf("SC_CLK_TCK"))
    others = (machine_seconds() - machine) - (own_seconds() - own)
    return Finished(output, peak, max(0.0, others / seconds))


def has_amx():
    return " amx_tile " in Path("/proc/cpuinfo").read_text()


def ask(python, request):
    """llama_side.py's answer, and the cores used by others meanwhile."""
    try:
        done = run([python, FOLDER / "llama_side.py"], json.dumps(request))
    except Failed as failed:
        hint = f"\n{AMX_HINT}" if isinstance(failed, Killed) and has_amx() else ""
        raise Failed(f"llama.cpp: {request}\n{failed}{hint}") from None
    return json.loads(done.output), done.others_cores


def make_file(python, shape, wanted, work):
    """The GGUF file of random weights, made unless it is there."""
    path = work / f"{shape}-{wanted}.gguf"
    if not path.exists():
        print(f"making {path}", file=sys.stderr, flush=True)
        run([python, FOLDER / "make_gguf.py", shape, wanted, path])
    return path
