"""Server: `paceline serve` while a with block runs."""
from __future__ import annotations

import re
import subprocess
import threading
from collections import deque

from . import _program
from .errors import error_of


class Server:
    """Options are those of `paceline serve`, with underscores: Server("model", max_num_seqs=8, api_key="...").

        with Server("models/paceline-10m") as server:
            client = openai.OpenAI(base_url=server.base_url, api_key="none")
    """

    def __init__(self, model: str, *, port: int = 0, **options):
        self._command = [_program.path(), "serve", "-m", str(model), "--port", str(port), *_program.arguments(options)]
        self._process: subprocess.Popen | None = None
        self._ready = threading.Event()
        self._last_lines: deque[str] = deque(maxlen=5)
        self.url = ""

    @property
    def base_url(self) -> str:
        """Of OpenAI's API."""
        return self.url + "/v1"

    def start(self, timeout: float = 600) -> Server:
        """Returns when it answers."""
        self._process = subprocess.Popen(self._command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                         text=True, errors="replace", start_new_session=True,
                                         env=_program.environment())
        threading.Thread(target=self._read_errors, daemon=True).start()
        try:
            is_ready = self._ready.wait(timeout)
        except BaseException:
            self.stop()
            raise
        if not self.url:
            self.stop()
            said = " / ".join(self._last_lines) or ("nothing" if is_ready else f"it wasn't ready after {timeout} s")
            raise error_of("internal", f"paceline serve: {said}")
        return self

    def _read_errors(self) -> None:
        """Its notes would fill the pipe if nobody read them."""
        with self._process.stderr as lines:
            for line in lines:
                self._last_lines.append(line.rstrip())
                found = re.match(r"listening on (http\S+)", line)
                if found:
                    self.url = found.group(1)
                    self._ready.set()
        self._ready.set()

    def stop(self, timeout: float = 30) -> int | None:
        """Ends it; requests that run are finished first. Returns its exit code."""
        if self._process is None:
            return None
        if self._process.poll() is None:
            self._process.terminate()
        try:
            return self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()

    def __enter__(self) -> Server:
        return self.start()

    def __exit__(self, *_) -> None:
        self.stop()
