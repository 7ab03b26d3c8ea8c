"""Numbers that the library made, without a copy: a numpy array where numpy is installed, else an Array. Both have __dlpack__, which
torch.from_dlpack, jax.dlpack and others take."""
from __future__ import annotations

import ctypes
import itertools
from collections.abc import Iterator
from math import prod
from typing import Any

FLOAT_BYTES = 4


# The structures of DLPack's version 0.8, dlpack.h: https://dmlc.github.io/dlpack/latest/c_api.html
class _Device(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int32), ("id", ctypes.c_int32)]


class _Kind(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class _Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device", _Device), ("ndim", ctypes.c_int32), ("dtype", _Kind),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


class _ManagedTensor(ctypes.Structure):
    _fields_ = [("tensor", _Tensor), ("manager", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


_CPU, _FLOAT, _FLOAT_BITS = 1, 2, 32
_UNUSED = b"dltensor"  # the name of a capsule that nobody has taken
_lent: dict[int, tuple[_ManagedTensor, Any]] = {}  # by address: what a consumer still reads


def _give_back(address: int) -> None:
    _lent.pop(address, None)


_capsule = ctypes.PyDLL(None)
_capsule.PyCapsule_New.restype = ctypes.py_object
_capsule.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_capsule.PyCapsule_IsValid.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
_capsule.PyCapsule_GetPointer.restype = ctypes.c_void_p
_capsule.PyCapsule_GetPointer.argtypes = [ctypes.c_void_p, ctypes.c_char_p]


def _drop_unused(capsule: int) -> None:
    if _capsule.PyCapsule_IsValid(capsule, _UNUSED):
        _lent.pop(_capsule.PyCapsule_GetPointer(capsule, _UNUSED), None)


_c_give_back = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(_give_back)
_c_drop_unused = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(_drop_unused)


class Array:
    """float32 numbers of one or two dimensions: lengths, indices, iteration, tolist(), `data` (a memoryview), DLPack and numpy's
    interface."""

    def __init__(self, numbers: ctypes.Array[ctypes.c_float], shape: tuple[int, ...], offset: int = 0):
        self.shape, self._numbers, self._offset = shape, numbers, offset

    @property
    def data(self) -> Any:
        flat = memoryview(self._numbers).cast("B").cast("f")
        return flat[self._offset:self._offset + prod(self.shape)]

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: int) -> Any:
        """A number, or a row."""
        if not -len(self) <= index < len(self):
            raise IndexError(f"index {index} of {len(self)}")
        index %= len(self)
        if len(self.shape) == 1:
            return self.data[index]
        return Array(self._numbers, self.shape[1:], self._offset + index * prod(self.shape[1:]))

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def tolist(self) -> list[Any]:
        return self.data.tolist() if len(self.shape) == 1 else [row.tolist() for row in self]

    def _address(self) -> int:
        return ctypes.addressof(self._numbers) + self._offset * FLOAT_BYTES

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return {"shape": self.shape, "typestr": "<f4", "data": (self._address(), False), "version": 3}

    def __dlpack_device__(self) -> tuple[int, int]:
        return _CPU, 0

    def __dlpack__(self, *, stream: Any = None, **options: Any) -> Any:
        """A capsule; the memory lives until its consumer gives it back. The options of later versions ask for what this is."""
        strides = [prod(self.shape[i + 1:]) for i in range(len(self.shape))]
        numbers = (ctypes.c_int64 * (2 * len(self.shape)))(*itertools.chain(self.shape, strides))
        first = ctypes.cast(numbers, ctypes.POINTER(ctypes.c_int64))
        second = ctypes.cast(ctypes.addressof(numbers) + ctypes.sizeof(numbers) // 2, ctypes.POINTER(ctypes.c_int64))
        tensor = _Tensor(self._address(), _Device(_CPU, 0), len(self.shape), _Kind(_FLOAT, _FLOAT_BITS, 1), first, second, 0)
        managed = _ManagedTensor(tensor, None, ctypes.cast(_c_give_back, ctypes.c_void_p))
        address = ctypes.addressof(managed)
        _lent[address] = managed, (self._numbers, numbers)
        return _capsule.PyCapsule_New(address, _UNUSED, ctypes.cast(_c_drop_unused, ctypes.c_void_p))


def array(numbers: ctypes.Array[ctypes.c_float], shape: tuple[int, ...]) -> Any:
    """Of all these numbers, which live as long."""
    try:
        import numpy
    except ImportError:
        return Array(numbers, shape)
    return numpy.frombuffer(memoryview(numbers).cast("B"), dtype=numpy.float32).reshape(shape)


def floats(pointer: Any, count: int, owner: Any) -> Any:
    """Of the library's memory; `owner` lives as long."""
    if count == 0:
        return array((ctypes.c_float * 0)(), (0,))
    numbers = (ctypes.c_float * count).from_address(ctypes.addressof(pointer.contents))
    numbers.owner = owner  # type: ignore[attr-defined]
    return array(numbers, (count,))
