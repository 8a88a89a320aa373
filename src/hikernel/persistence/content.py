"""Type checks of values from a file against annotations, and the error for invalid content.

This module does not know the file: an error message is a phrase, and the caller adds the file name.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Mapping
from typing import Any, Literal, Union, get_args, get_origin

import numpy as np

__all__ = ["ContentError", "conforms", "reason", "shown"]


class ContentError(ValueError):
    """The content of a file is invalid; the message is a phrase that follows the file name."""


def shown(value: object) -> str:
    """Return the ``repr`` of a value from a file, shortened for an error message."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}..."


def reason(error: Exception) -> str:
    """Return the message of an error, shortened: it may quote values of the file."""
    text = str(error) or type(error).__name__
    return text if len(text) <= 200 else f"{text[:200]}..."


def conforms(value: object, hint: Any) -> bool:
    """Return whether a value is of an annotated type.

    Parameters
    ----------
    value : object
        A value of a kind that :mod:`hikernel.persistence.codec` decodes.
    hint : type or annotation
        A class, ``None``, ``Any``, a union, ``Literal``, ``list[...]``, ``tuple[...]``,
        ``dict[...]``, an array type, or ``Callable``. Integers (not booleans) count as floats where
        they are in the range of floating point.

    Examples
    --------
    >>> conforms(((0, 1), (2, 3)), tuple[tuple[int, int], ...])
    True
    >>> conforms([True], list[int])
    False
    """
    origin = get_origin(hint)
    if origin is None:
        return _is_plain(value, hint)
    check = _GENERIC.get(origin)
    return check is not None and check(value, get_args(hint))


def _is_plain(value: object, hint: Any) -> bool:
    if hint is Any:
        return True
    if hint is None:
        return value is None
    if hint is bool:
        return isinstance(value, (bool, np.bool_))
    if hint is int:
        return isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if hint is float:
        if type(value) is int:
            return abs(value) <= sys.float_info.max
        return isinstance(value, (float, np.floating, np.integer))
    return isinstance(hint, type) and isinstance(value, hint)


def _is_list(value: object, arguments: tuple[Any, ...]) -> bool:
    return isinstance(value, list) and all(conforms(item, arguments[0]) for item in value)


def _is_tuple(value: object, arguments: tuple[Any, ...]) -> bool:
    if not isinstance(value, tuple):
        return False
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        return all(conforms(item, arguments[0]) for item in value)
    return len(value) == len(arguments) and all(map(conforms, value, arguments))


def _is_mapping(value: object, arguments: tuple[Any, ...]) -> bool:
    return isinstance(value, dict) and all(
        conforms(key, arguments[0]) and conforms(item, arguments[1]) for key, item in value.items()
    )


def _is_array(value: object, arguments: tuple[Any, ...]) -> bool:
    # Scalars count as arrays: NumPy turns arrays without dimensions into scalars in computations.
    if not isinstance(value, (np.ndarray, np.generic)):
        return False
    scalar = next(iter(get_args(arguments[1])), Any)
    return scalar is Any or issubclass(value.dtype.type, scalar)


def _is_union(value: object, arguments: tuple[Any, ...]) -> bool:
    return any(conforms(value, argument) for argument in arguments)


def _is_choice(value: object, arguments: tuple[Any, ...]) -> bool:
    return any(type(value) is type(choice) and value == choice for choice in arguments)


def _is_callable(value: object, arguments: tuple[Any, ...]) -> bool:
    # A decoded callable is an object of a registered class, that is, one of our kernels.
    return callable(value)


_GENERIC: dict[Any, Callable[[object, tuple[Any, ...]], bool]] = {
    list: _is_list,
    tuple: _is_tuple,
    dict: _is_mapping,
    Mapping: _is_mapping,
    np.ndarray: _is_array,
    Union: _is_union,
    types.UnionType: _is_union,
    Literal: _is_choice,
    Callable: _is_callable,
}
