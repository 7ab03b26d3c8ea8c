"""libpaceline.so: where it is, its functions, and calls that raise."""
from __future__ import annotations

import ctypes
import os
import threading
from pathlib import Path

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


library = _load()


def version() -> str:
    return library.paceline_version().decode()


def check(status: int) -> None:
    """Raises the error of the call that this thread has made last."""
    if status != _abi.PACELINE_OK:
        raise error_of(library.paceline_status_name(status).decode(), library.paceline_last_error().decode(errors="replace"))


class Cancellation:
    """Ends the calls that were given it, from any thread."""

    def __init__(self):
        self.handle = library.paceline_new_cancellation()

    def cancel(self) -> None:
        library.paceline_cancel(self.handle)

    def __del__(self):
        library.paceline_free_cancellation(self.handle)


def interruptible(call, cancel):
    """call(), on another thread where this one gets the signals: Ctrl-C then cancels it and is raised when it has ended."""
    if threading.current_thread() is not threading.main_thread():
        return call()
    result = []

    def run():
        try:
            result.append((call(), None))
        except BaseException as error:
            result.append((None, error))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        thread.join()
    except BaseException:
        cancel()
        thread.join()
        raise
    value, error = result[0]
    if error is not None:
        raise error
    return value


class Result:
    """A structure that the library has made, and which lives as long as what was made of it."""

    def __init__(self, pointer, free):
        self.pointer, self._free = pointer, free

    @property
    def contents(self):
        return self.pointer.contents

    def __del__(self):
        self._free(self.pointer)


def result_of(kind, call, free) -> Result:
    """Makes a structure by a call whose last argument is where a pointer to it goes."""
    pointer = ctypes.POINTER(kind)()
    check(call(ctypes.byref(pointer)))
    return Result(pointer, free)


def floats(pointer, count: int, owner):
    """Numbers without a copy: of numpy where it is there, else a memoryview. `owner` lives as long."""
    if count == 0:
        numbers = (ctypes.c_float * 0)()
    else:
        numbers = (ctypes.c_float * count).from_address(ctypes.addressof(pointer.contents))
    numbers.owner = owner
    try:
        import numpy
    except ImportError:
        return memoryview(numbers).cast("B").cast("f")
    return numpy.frombuffer(numbers, dtype=numpy.float32)


def sized_text(structure, name: str) -> str | None:
    """The text of a member beside which there is its size: it may have zero bytes in it."""
    address = ctypes.c_void_p.from_address(ctypes.addressof(structure) + getattr(type(structure), name).offset).value
    if address is None:
        return None
    return ctypes.string_at(address, getattr(structure, name + "_size")).decode(errors="replace")


def text(value: bytes | None) -> str | None:
    return None if value is None else value.decode(errors="replace")


def texts(values) -> ctypes.Array:
    """An array of strings."""
    return (ctypes.c_char_p * len(values))(*[value.encode() for value in values])


def integers(values) -> ctypes.Array:
    """Token ids; ctypes alone would cut larger numbers off."""
    ids = [int(value) for value in values]
    for value in ids:
        if not -2**31 <= value < 2**31:
            raise error_of("invalid", f"token ids: found {value}, expected a number of 32 bits")
    return (ctypes.c_int32 * len(ids))(*ids)
