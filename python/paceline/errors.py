"""Error: what every call raises; it is also the built-in exception that fits its code."""


class Error(Exception):
    """`code` is the name of its kind: "invalid", "not_found", ... The message says where, what was found, what was expected, and
    what would fix it."""

    code = "internal"


class InvalidError(Error, ValueError):
    code = "invalid"


class NotFoundError(Error, FileNotFoundError):
    code = "not_found"


class UnsupportedError(Error, NotImplementedError):
    code = "unsupported"


class ExhaustedError(Error, MemoryError):
    code = "exhausted"


class CorruptError(Error, ValueError):
    code = "corrupt"


class NumericalError(Error, ArithmeticError):
    code = "numerical"


class CancelledError(Error):
    code = "cancelled"


class InternalError(Error, RuntimeError):
    code = "internal"


_CLASSES = {made.code: made for made in (InvalidError, NotFoundError, UnsupportedError, ExhaustedError, CorruptError, NumericalError,
                                         CancelledError, InternalError)}


def error_of(code: str, message: str) -> Error:
    return _CLASSES.get(code, InternalError)(message)
