"""Child processes with a time limit, whose output so far is kept when it ends them."""
import os
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass


@dataclass(frozen=True)
class Finished:
    code: int | None  # None: the time limit ended it, or it could not be started
    output: str
    errors: str
    seconds: float

    def fault(self):
        """Why it has no result, in a line; empty when it has one."""
        if self.code == 0:
            return ""
        last = (self.errors.strip().splitlines() or ["no message"])[-1][-300:]
        return f"after {self.seconds:.0f} s: {last}" if self.code is None else f"exit code {self.code}: {last}"


def run(command, limit_s, stdin="", variables=None):
    """Runs a command in a process group of its own, with more variables in its environment."""
    begin = time.monotonic()
    with tempfile.TemporaryFile("w+") as given, tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        given.write(stdin)
        given.seek(0)
        try:
            child = subprocess.Popen([str(word) for word in command], stdin=given, stdout=output, stderr=errors,
                                     start_new_session=True, env={**os.environ, **(variables or {})})
        except OSError as error:
            return Finished(None, "", str(error), 0.0)
        try:
            code = child.wait(timeout=max(1.0, limit_s))
        except subprocess.TimeoutExpired:
            code = None
        finally:
            end_group(child)
        seconds = time.monotonic() - begin
        texts = []
        for file in (output, errors):
            file.seek(0)
            texts.append(file.read().decode("utf-8", "replace"))
        if code is None:
            texts[1] += "\nthe time limit ended it"
        return Finished(code, *texts, seconds)


def end_group(child):
    """Ends what is left of the child and its own children."""
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    child.wait()
