"""Checks of hyperparameters, each a sentence that names the parameter and says what to pass.

Only what several bases share lives here; a rule that concerns one basis stays in its file.
"""

from __future__ import annotations

import math
from numbers import Integral, Real

__all__ = [
    "check_flag",
    "check_fraction",
    "check_integer",
    "check_optional_integer",
    "check_positive",
]


def check_integer(name: str, value: object, minimum: int) -> None:
    """Raise unless ``value`` is an integer (not a bool) of at least ``minimum``."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < minimum:
        raise ValueError(f"{name} must be an integer >= {minimum}, got {value!r}.")


def check_optional_integer(name: str, value: object, minimum: int, meaning_of_none: str) -> None:
    """Raise unless ``value`` is None or an integer of at least ``minimum``."""
    if value is None:
        return
    try:
        check_integer(name, value, minimum)
    except ValueError as error:
        raise ValueError(f"{str(error)[:-1]}; pass None for {meaning_of_none}.") from None


def check_positive(name: str, value: object, meaning: str) -> None:
    """Raise unless ``value`` is a positive finite real number."""
    if not _is_real(value) or not 0.0 < value < math.inf:  # type: ignore[operator]
        raise ValueError(f"{name} ({meaning}) must be a positive finite number, got {value!r}.")


def check_fraction(name: str, value: object, meaning: str) -> None:
    """Raise unless ``value`` lies strictly between 0 and 1."""
    if not _is_real(value) or not 0.0 < value < 1.0:  # type: ignore[operator]
        raise ValueError(f"{name} ({meaning}) must lie strictly between 0 and 1, got {value!r}.")


def check_flag(name: str, value: object) -> None:
    """Raise unless ``value`` is True or False."""
    if not isinstance(value, bool):
        raise ValueError(f"{name} must be True or False, got {value!r}.")


def _is_real(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)
