"""Arrays in a model file: all arrays of one dtype are concatenated in one .npy member, a pool.

A fitted model has thousands of small arrays; one pool per dtype keeps the file small and its
members few. Data are little-endian in the file and native in memory, and values are restored
exactly. The memory layout (C or Fortran) is kept, since the rounding of matrix products depends on
it.
"""

from __future__ import annotations

import io
import math
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hikernel.persistence.content import ContentError, shown

__all__ = ["ArrayReader", "ArrayWriter", "dtype_named", "has_storable_dtype", "raw_bytes"]

_NUMBERS = [
    "bool",
    *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
    *("float16", "float32", "float64", "complex64", "complex128"),
]
_TEXT = re.compile(r"str[1-9][0-9]{0,6}")
_LAST_CODE_POINT = 0x10FFFF
_MAX_DIMENSIONS = 8


def has_storable_dtype(array: NDArray[Any]) -> bool:
    """Return whether an array holds booleans, numbers or text of fixed width."""
    name = array.dtype.name
    return name in _NUMBERS or _TEXT.fullmatch(name) is not None


def dtype_named(name: object) -> np.dtype[Any]:
    """Return the little-endian dtype of a name such as "float64" or "str96"."""
    if isinstance(name, str) and name in _NUMBERS:
        return np.dtype(name).newbyteorder("<")
    if isinstance(name, str) and _TEXT.fullmatch(name) and int(name[3:]) % 32 == 0:
        return np.dtype(f"<U{int(name[3:]) // 32}")
    raise ContentError(f"it names the data type {shown(name)}, which model files do not have")


def raw_bytes(array: NDArray[Any]) -> bytes:
    """Return the entries of an array as little-endian bytes, in C order."""
    return array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()


class ArrayWriter:
    """Collects arrays and turns them into .npy members."""

    def __init__(self) -> None:
        self._pools: dict[str, list[NDArray[Any]]] = {}

    def add(self, array: NDArray[Any]) -> list[Any]:
        """Add an array and return its reference [dtype, shape, order], to read it back."""
        flags = array.flags
        order = "F" if flags.f_contiguous and not flags.c_contiguous else "C"
        name = array.dtype.name
        self._pools.setdefault(name, []).append(array.ravel(order=order))  # type: ignore[arg-type]
        return [name, list(array.shape), order]

    def members(self) -> dict[str, bytes]:
        """Return the .npy members by name."""
        out = {}
        for name, parts in self._pools.items():
            pool = np.concatenate(parts)
            buffer = io.BytesIO()
            little = pool.astype(pool.dtype.newbyteorder("<"), copy=False)
            np.lib.format.write_array(buffer, little, version=(1, 0), allow_pickle=False)
            out[f"arrays/{name}.npy"] = buffer.getvalue()
        return out


class ArrayReader:
    """Returns the arrays of a file, in the order in which they were added.

    Parameters
    ----------
    members : dict of str to bytes
        The .npy members.
    """

    def __init__(self, members: dict[str, bytes]) -> None:
        self._pools: dict[str, NDArray[Any]] = {}
        for member, data in members.items():
            name = member.removeprefix("arrays/").removesuffix(".npy")
            self._pools[name] = _read_pool(member, data, dtype_named(name))
        self._position = dict.fromkeys(self._pools, 0)

    def take(self, reference: object) -> NDArray[Any]:
        """Return the next array for a reference [dtype, shape, order]: a new, writable array."""
        if not isinstance(reference, list) or len(reference) != 3:
            raise ContentError(f"it describes an array as {shown(reference)}")
        name, shape, order = reference
        if not isinstance(name, str) or name not in self._pools:
            raise ContentError(f"the member with arrays of type {shown(name)} is missing")
        if order not in ("C", "F") or not _is_shape(shape):
            raise ContentError(f"it describes an array as {shown(reference)}")
        start = self._position[name]
        stop = start + math.prod(shape)
        pool = self._pools[name]
        if stop > len(pool):
            raise ContentError(f"the data of an array of shape {shown(shape)} are missing")
        self._position[name] = stop
        try:
            return pool[start:stop].reshape(shape, order=order).copy(order=order)
        except ValueError:
            raise ContentError(f"an array has the impossible shape {shown(shape)}") from None

    def finish(self) -> None:
        """Raise unless all data were read."""
        for name, pool in self._pools.items():
            if self._position[name] != len(pool):
                raise ContentError(f"it holds {name} data that nothing refers to")


def _is_shape(shape: object) -> bool:
    return (
        isinstance(shape, list)
        and len(shape) <= _MAX_DIMENSIONS
        and all(type(size) is int and 0 <= size < 2**40 for size in shape)
    )


def _read_pool(member: str, data: bytes, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return a .npy member as a 1-D array of native byte order; pickle is never used."""
    stream = io.BytesIO(data)
    try:
        if np.lib.format.read_magic(stream) != (1, 0):
            raise ValueError("version")
        shape, _, found = np.lib.format.read_array_header_1_0(stream)
    except Exception as error:
        raise ContentError(f"the header of {member} cannot be read ({error})") from error
    if found.hasobject:
        raise ContentError(f"{member} holds Python objects, which are never loaded")
    if found != dtype:
        raise ContentError(f"{member} holds data of type {found} and not {dtype}")
    start = stream.tell()
    if len(shape) != 1 or (len(data) - start) != shape[0] * dtype.itemsize:
        raise ContentError(f"{member} does not have the size that it declares")
    # A copy in a bytearray is aligned, and the checks below can view it as plain integers.
    pool = np.frombuffer(bytearray(data[start:]), dtype=dtype)
    if dtype.kind == "b" and np.any(pool.view(np.uint8) > 1):
        raise ContentError(f"{member} holds bytes that are neither true nor false")
    if dtype.kind == "U" and np.any(pool.view("<u4") > _LAST_CODE_POINT):
        raise ContentError(f"{member} holds text that is no Unicode")
    return pool.astype(dtype.newbyteorder("="), copy=False)
