"""Encode Python values as JSON and arrays, and decode them: plain data and registered classes.

None, booleans, text, lists, finite floats and integers from -2^63 to 2^63 - 1 are written as they
are in JSON. Every other value is a JSON object with one key, its kind::

    {"tuple": [...]}                 {"dict": [[key, value], ...]}
    {"int": "hex"}                   {"float": "bits in hex"}, for NaN and infinity
    {"array": [dtype, shape, order]} {"objects": [shape, [...]]}, text, numbers or None
    {"scalar": [dtype, value]}       {"enum": [class, name]}
    {"object": [class, {field: value}]}

"objects" is an array of dtype object. Decoding calls only the constructors of registered classes,
with fields of the declared types.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hikernel.persistence.arrays import (
    ArrayReader,
    ArrayWriter,
    dtype_named,
    has_storable_dtype,
    raw_bytes,
)
from hikernel.persistence.content import ContentError, conforms, reason, shown
from hikernel.persistence.registry import CLASSES, FIELD_TYPES, NAMES

__all__ = ["Decoder", "Encoder"]

_MAX_DEPTH = 40
_LARGE = 2**63
_PICKLE = (
    "use pickle or joblib for this model (and open such files only where you trust their source)"
)


class Encoder:
    """Turns values into JSON, and collects their arrays in ``arrays``."""

    def __init__(self) -> None:
        self.arrays = ArrayWriter()

    def encode(self, value: object, where: str = "the model", depth: int = 0) -> Any:
        """Return a value as JSON.

        Parameters
        ----------
        value : object
            The value to encode.
        where : str
            Description of its place in the model, for error messages.
        depth : int
            Its nesting depth.

        Raises
        ------
        ValueError
            If a model file cannot hold the value. The message says where it is.
        """
        if depth > _MAX_DEPTH:
            raise ValueError(f"{where} is nested too deeply to be saved.")
        kind = type(value)
        if value is None or kind is bool or kind is str:
            return value
        if kind is int:
            return self._integer(value)
        if kind is float:
            return self._float(value)
        if kind is list or kind is tuple:
            items = self._items(value, where, depth)
            return items if kind is list else {"tuple": items}
        if isinstance(value, Mapping):
            return {"dict": self._pairs(value, where, depth)}
        if isinstance(value, np.ndarray):
            return self._array(value, where, depth)
        if isinstance(value, np.generic):
            return self._scalar(value, where)
        return self._registered(value, where, depth)

    def _integer(self, value: Any) -> Any:
        # Numbers of vertices can have thousands of digits, more than JSON readers accept.
        return value if -_LARGE <= value < _LARGE else {"int": hex(value)}

    def _float(self, value: Any) -> Any:
        return value if math.isfinite(value) else {"float": struct.pack(">d", value).hex()}

    def _items(self, values: Any, where: str, depth: int) -> list[Any]:
        return [
            self.encode(item, f"entry {i} of {where}", depth + 1) for i, item in enumerate(values)
        ]

    def _pairs(self, value: Mapping[Any, Any], where: str, depth: int) -> list[Any]:
        return [
            [
                self.encode(key, f"a key of {where}", depth + 1),
                self.encode(item, f"{key!r} of {where}", depth + 1),
            ]
            for key, item in value.items()
        ]

    def _array(self, value: NDArray[Any], where: str, depth: int) -> Any:
        if type(value) is np.ndarray and value.dtype == object:
            items = value.ravel().tolist()
            if all(isinstance(item, (str, int, float, np.generic, type(None))) for item in items):
                return {"objects": [list(value.shape), self._items(items, where, depth)]}
        elif type(value) is np.ndarray and has_storable_dtype(value):
            return {"array": self.arrays.add(value)}
        raise ValueError(
            f"{where} is an array of type {value.dtype}, which a model file cannot hold; {_PICKLE}."
        )

    def _scalar(self, value: Any, where: str) -> Any:
        if isinstance(value, np.str_):
            return {"scalar": ["str", str(value)]}
        array = np.asarray(value)
        if not has_storable_dtype(array):
            raise ValueError(f"{where} is a {array.dtype}, which a model file cannot hold.")
        return {"scalar": [array.dtype.name, raw_bytes(array).hex()]}

    def _registered(self, value: Any, where: str, depth: int) -> Any:
        name = NAMES.get(type(value))
        if name is None:
            what = (
                "a Python function"
                if callable(value)
                else f"an object of the class {type(value).__qualname__}"
            )
            raise ValueError(
                f"{where} is {what}, which a model file cannot hold, since it holds data and no "
                f"code; {_PICKLE}."
            )
        if isinstance(value, Enum):
            return {"enum": [name, value.name]}
        fields = {}
        for field, hint in FIELD_TYPES[type(value)].items():
            item, place = getattr(value, field), f"{field} of {name}"
            fields[field] = self.encode(item, place, depth + 1)
            if not conforms(item, hint):
                raise ValueError(f"{place} is a {type(item).__name__}, which it must not be.")
        return {"object": [name, fields]}


class Decoder:
    """Turns JSON into values.

    Parameters
    ----------
    arrays : ArrayReader
        The arrays, in the order in which the JSON refers to them.
    """

    def __init__(self, arrays: ArrayReader) -> None:
        self._arrays = arrays
        self._kinds: dict[str, Callable[[Any, int], Any]] = {
            "tuple": self._tuple,
            "dict": self._dict,
            "int": self._integer,
            "float": self._float,
            "array": lambda content, depth: self._arrays.take(content),
            "objects": self._objects,
            "scalar": self._scalar,
            "enum": self._enum,
            "object": self._object,
        }

    def decode(self, tree: object, depth: int = 0) -> Any:
        """Return the value that a JSON tree encodes.

        Raises
        ------
        ContentError
            For anything that `Encoder` does not write.
        """
        if depth > _MAX_DEPTH:
            raise ContentError("its content is nested too deeply")
        if tree is None or isinstance(tree, (bool, int, float, str)):
            return tree
        if isinstance(tree, list):
            return [self.decode(item, depth + 1) for item in tree]
        if isinstance(tree, dict) and len(tree) == 1:
            ((kind, content),) = tree.items()
            if kind in self._kinds:
                return self._kinds[kind](content, depth + 1)
        raise ContentError(f"it holds {shown(tree)}, which stands for nothing")

    def _tuple(self, content: object, depth: int) -> tuple[Any, ...]:
        return tuple(self._list(content, depth))

    def _list(self, content: object, depth: int) -> list[Any]:
        if not isinstance(content, list):
            raise ContentError(f"it holds {shown(content)} in place of a list")
        return [self.decode(item, depth) for item in content]

    def _dict(self, content: object, depth: int) -> dict[Any, Any]:
        out: dict[Any, Any] = {}
        for pair in self._list(content, depth):
            if not isinstance(pair, list) or len(pair) != 2:
                raise ContentError(f"it holds {shown(pair)} in place of a key and a value")
            key, value = pair
            if not _is_key(key) or key in out:
                raise ContentError(f"a mapping has the impossible or repeated key {shown(key)}")
            out[key] = value
        return out

    def _integer(self, content: object, depth: int) -> int:
        try:
            # Parsing base 16 takes linear time, and Python does not limit the number of digits.
            return int(content, 16)  # type: ignore[call-overload, no-any-return]
        except (TypeError, ValueError):
            raise ContentError(f"it holds {shown(content)} in place of an integer") from None

    def _float(self, content: object, depth: int) -> float:
        return float(struct.unpack(">d", _from_hex(content, 8))[0])

    def _objects(self, content: object, depth: int) -> NDArray[Any]:
        if not isinstance(content, list) or len(content) != 2:
            raise ContentError(f"it describes an array as {shown(content)}")
        shape, items = content[0], self._list(content[1], depth)
        if not all(isinstance(item, (str, int, float, np.generic, type(None))) for item in items):
            raise ContentError("an array holds something that is neither text nor a number")
        if not conforms(shape, list[int]) or min(shape, default=0) < 0 or len(shape) > 8:
            raise ContentError(f"an array has the impossible shape {shown(shape)}")
        if math.prod(shape) != len(items):
            raise ContentError(f"an array of shape {shown(shape)} has {len(items)} entries")
        out = np.empty(len(items), dtype=object)
        out[:] = items
        try:
            return out.reshape(shape)
        except ValueError:
            raise ContentError(f"an array has the impossible shape {shown(shape)}") from None

    def _scalar(self, content: object, depth: int) -> Any:
        name, value = _two_texts(content)
        if name == "str":
            return np.str_(value)
        dtype = dtype_named(name)
        if dtype.kind == "U":
            raise ContentError(f"it describes a number as {shown(content)}")
        raw = _from_hex(value, dtype.itemsize)
        if dtype.kind == "b" and raw not in (b"\0", b"\1"):
            raise ContentError(f"it describes a truth value as {shown(content)}")
        return np.frombuffer(raw, dtype=dtype).astype(dtype.newbyteorder("="))[0]

    def _enum(self, content: object, depth: int) -> Enum:
        name, member = _two_texts(content)
        cls = CLASSES.get(name)
        if cls is None or not issubclass(cls, Enum) or member not in cls.__members__:
            raise ContentError(f"it names {shown(name)}.{member[:60]}, which is not a known choice")
        return cls.__members__[member]

    def _object(self, content: object, depth: int) -> Any:
        if not isinstance(content, list) or len(content) != 2 or not isinstance(content[1], dict):
            raise ContentError(f"it holds {shown(content)} in place of an object")
        name, fields = content
        cls = CLASSES.get(name) if isinstance(name, str) else None
        if cls is None or issubclass(cls, Enum):
            raise ContentError(
                f"it names the class {shown(name)}, which is not one of those that a model file "
                "may hold"
            )
        types = FIELD_TYPES[cls]
        if set(fields) != set(types):
            wrong = sorted(set(fields) ^ set(types))
            raise ContentError(f"the fields of {name} are wrong: {shown(wrong)}")
        values = {field: self.decode(item, depth) for field, item in fields.items()}
        for field, value in values.items():
            if not conforms(value, types[field]):
                raise ContentError(
                    f"{field} of {name} is of the wrong type ({type(value).__name__})"
                )
        try:
            return cls(**values)
        except Exception as error:
            raise ContentError(f"{name} cannot have these values ({reason(error)})") from error


def _is_key(key: object) -> bool:
    """Return whether a value may be the key of a mapping; tuples name columns of a MultiIndex."""
    parts = key if isinstance(key, tuple) and key else (key,)
    return all(isinstance(part, (str, int, float, np.generic, type(None))) for part in parts)


def _two_texts(content: object) -> tuple[str, str]:
    if isinstance(content, list) and len(content) == 2:
        first, second = content
        if isinstance(first, str) and isinstance(second, str):
            return first, second
    raise ContentError(f"it holds {shown(content)} in place of two texts")


def _from_hex(content: object, size: int) -> bytes:
    try:
        raw = bytes.fromhex(content)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raw = b""
    if len(raw) != size:
        raise ContentError(f"it holds {shown(content)} in place of {size} bytes")
    return raw
