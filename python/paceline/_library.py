"""libpaceline.so: where it is, its functions, and calls that raise."""
from __future__ import annotations

import ctypes
import os
import select
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from . import _abi
from .errors import error_of


def _path() -> str:
    """The one that came with the package, unless PACELINE_LIBRARY names another; else the system's."""
    named = os.environ.get("PACELINE_LIBRARY")
    if named:
        return named
    for folder in ("lib", "lib64"):
        inside = Path(__file__).parent / folder / "libpaceline.so.0"
        if inside.exists():
            return str(inside)
    return "libpaceline.so.0"


def _load() -> ctypes.CDLL:
    path = _path()
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        raise ImportError(f"{path}: {error}; install the paceline package, or set PACELINE_LIBRARY to the library of a build") from None
    for name, (result, arguments) in _abi.FUNCTIONS.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


T = TypeVar("T")
library = _load()


def version() -> str:
    return text(library.paceline_version()) or ""


def check(status: int) -> None:
    """Raises the error of the call that this thread has made last."""
    if status != _abi.PACELINE_OK:
        raise error_of(library.paceline_status_name(status).decode(), library.paceline_last_error().decode(errors="replace"))


class Cancellation:
    """Ends the calls that were given it, from any thread."""

    def __init__(self) -> None:
        self.handle = library.paceline_new_cancellation()

    def cancel(self) -> None:
        library.paceline_cancel(self.handle)

    def __del__(self) -> None:
        library.paceline_free_cancellation(self.handle)


def interruptible(call: Callable[[], T], cancel: Callable[[], None]) -> T:
    """call(), on another thread where this one gets the signals: Ctrl-C then cancels it and is raised when it has ended."""
    if not is_main_thread():
        return call()
    result: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            result.append(call())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        thread.join()
    except BaseException:
        cancel()
        thread.join()
        raise
    if errors:
        raise errors[0]
    return result[0]


class Wakeup:
    """Where the main thread waits for generations: in poll(), which signals interrupt. One for all of them, under one tag, because no
    other thread takes from it; others wait in the library."""

    def __init__(self) -> None:
        self.handle = ctypes.c_void_p()
        check(library.paceline_new_queue(self.handle))
        self._ready = select.poll()
        self._ready.register(library.paceline_queue_descriptor(self.handle), select.POLLIN)
        self._tags = (ctypes.c_int64 * 1)()

    def wait(self) -> None:
        """Until a generation that was polled before may have more; not longer than a second, so that no signal waits."""
        self._ready.poll(1000)
        library.paceline_take_ready(self.handle, self._tags, 1)


_wakeup: Wakeup | None = None
_wakeup_lock = threading.Lock()


def wakeup() -> Wakeup:
    """The process's own."""
    global _wakeup
    with _wakeup_lock:
        if _wakeup is None:
            _wakeup = Wakeup()
        return _wakeup


def is_main_thread() -> bool:
    """The one that gets the signals."""
    return threading.current_thread() is threading.main_thread()


class Result:
    """A structure that the library has made, and which lives as long as what was made of it."""

    def __init__(self, pointer: Any, free: Callable[[Any], None]):
        self.pointer, self._free = pointer, free

    @property
    def contents(self) -> Any:
        return self.pointer.contents

    def __del__(self) -> None:
        self._free(self.pointer)


def result_of(kind: type[ctypes.Structure], call: Callable[[Any], int], free: Callable[[Any], None]) -> Result:
    """Makes a structure by a call whose last argument is where a pointer to it goes."""
    pointer = ctypes.POINTER(kind)()
    check(call(ctypes.byref(pointer)))
    return Result(pointer, free)


def sized_text(structure: ctypes.Structure, name: str) -> str | None:
    """The text of a member beside which there is its size: it may have zero bytes in it."""
    address = ctypes.c_void_p.from_address(ctypes.addressof(structure) + getattr(type(structure), name).offset).value
    if address is None:
        return None
    return ctypes.string_at(address, getattr(structure, name + "_size")).decode(errors="replace")


def text(value: bytes | None) -> str | None:
    return None if value is None else value.decode(errors="replace")


def texts(values: Sequence[str]) -> ctypes.Array[ctypes.c_char_p]:
    """An array of strings."""
    return (ctypes.c_char_p * len(values))(*[value.encode() for value in values])


def integers(values: Sequence[int]) -> ctypes.Array[ctypes.c_int32]:
    """Token ids; ctypes alone would cut larger numbers off."""
    ids = [int(value) for value in values]
    for value in ids:
        if not -2**31 <= value < 2**31:
            raise error_of("invalid", f"token ids: found {value}, expected a number of 32 bits")
    return (ctypes.c_int32 * len(ids))(*ids)
