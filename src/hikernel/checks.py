"""Checks of user input; each error message names the parameter and says what it must be.

Checks that several modules share are here. A check that only one module needs stays in that module.
``outside_level`` makes a warning point to the line of user code that caused it.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from numbers import Integral, Real
from pathlib import Path

__all__ = [
    "check_choice",
    "check_flag",
    "check_fraction",
    "check_integer",
    "check_number",
    "check_optional_integer",
    "check_positive",
    "outside_level",
]

_PACKAGE = str(Path(__file__).parent / "_")[:-1]
"""The folder of this package, with a separator at its end."""


def check_integer(name: str, value: object, minimum: int) -> None:
    """Raise unless ``value`` is an integer (not a bool) of at least ``minimum``."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < minimum:
        raise ValueError(f"{name} must be an integer >= {minimum}, got {value!r}.")


def check_optional_integer(name: str, value: object, minimum: int, meaning_of_none: str) -> None:
    """Raise unless ``value`` is None or an integer of at least ``minimum``.

    ``meaning_of_none`` completes the error message: "pass None for ...".
    """
    if value is None:
        return
    try:
        check_integer(name, value, minimum)
    except ValueError as error:
        raise ValueError(f"{str(error)[:-1]}; pass None for {meaning_of_none}.") from None


def check_positive(name: str, value: object, meaning: str) -> None:
    """Raise unless ``value`` is a positive finite number; ``meaning`` explains the parameter."""
    if not _is_real(value) or not 0.0 < value < math.inf:  # type: ignore[operator]
        raise ValueError(f"{name} ({meaning}) must be a positive finite number, got {value!r}.")


def check_fraction(name: str, value: object, meaning: str) -> None:
    """Raise unless ``value`` lies strictly between 0 and 1; ``meaning`` explains the parameter."""
    if not _is_real(value) or not 0.0 < value < 1.0:  # type: ignore[operator]
        raise ValueError(f"{name} ({meaning}) must lie strictly between 0 and 1, got {value!r}.")


def check_flag(name: str, value: object) -> None:
    """Raise unless ``value`` is True or False."""
    if not isinstance(value, bool):
        raise ValueError(f"{name} must be True or False, got {value!r}.")


def check_number(
    name: str, value: object, *, above: float, below: float = math.inf, remedy: str = ""
) -> None:
    """Raise unless ``value`` is a real number strictly between two limits.

    ``remedy`` is a sentence that is appended to the error message.
    """
    if not _is_real(value) or not above < float(value) < below:  # type: ignore[arg-type]
        limits = f"above {above:g}" + (f" and below {below:g}" if below < math.inf else "")
        problem = f"{name} must be a finite number {limits}, got {value!r}."
        raise ValueError(f"{problem} {remedy}".strip())


def check_choice(name: str, value: object, choices: Sequence[str]) -> None:
    """Raise unless ``value`` is one of the strings in ``choices``."""
    if not isinstance(value, str) or value not in choices:
        listed = ", ".join(repr(choice) for choice in choices)
        raise ValueError(f"{name} must be one of {listed}, got {value!r}.")


def outside_level() -> int:
    """Return the ``stacklevel`` that makes a warning point to the line that called this package.

    Call it in the arguments of ``warnings.warn``, at any depth inside the package.
    """
    frame, level = sys._getframe(1), 1
    while frame.f_code.co_filename.startswith(_PACKAGE) and frame.f_back is not None:
        frame, level = frame.f_back, level + 1
    return level


def _is_real(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)
