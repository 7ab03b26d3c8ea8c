"""Server: `paceline serve` while a with block runs."""
from __future__ import annotations

import re
import threading
from types import TracebackType
from typing import Any

from . import _program
from .errors import error_of


class Server:
    """Options are those of `paceline serve`, with underscores: Server("model", max_num_seqs=8, api_key="..."). It ends with this process,
    however that ends.

        with Server("models/paceline-10m") as server:
            client = openai.OpenAI(base_url=server.base_url, api_key="none")
    """

    def __init__(self, model: str, *, port: int = 0, **options: Any):
        self._given = ["-m", str(model), "--port", str(port), *_program.arguments(options)]
        self._child: _program.Child | None = None
        self._ready = threading.Event()
        self.url = ""

    @property
    def base_url(self) -> str:
        """Of OpenAI's API."""
        return self.url + "/v1"

    def start(self, timeout: float = 600) -> Server:
        """Returns when it answers. Raises what the program says, with the code of its error."""
        self._ready.clear()
        self.url = ""
        self._child = child = _program.Child("serve", self._given, self._read)
        threading.Thread(target=self._notice_end, args=(child,), daemon=True).start()
        try:
            is_ready = self._ready.wait(timeout)
        except BaseException:
            self.stop()
            raise
        if not self.url:
            self.stop()
            raise child.error() if is_ready else error_of("exhausted", f"paceline serve: it wasn't ready after {timeout} s")
        return self

    def _read(self, line: str) -> None:
        found = re.match(r"listening on (http\S+)", line)
        if found:
            self.url = found.group(1)
            self._ready.set()

    def _notice_end(self, child: _program.Child) -> None:
        child.process.wait()
        self._ready.set()

    def stop(self, timeout: float = 30) -> int | None:
        """Ends it; requests that run are finished first. Returns its exit code."""
        return None if self._child is None else self._child.stop(timeout)

    def __enter__(self) -> Server:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()
