"""Checks of user input; each error message names the parameter and says what it must be.

Checks that several modules share are here. A check that only one module needs stays in that module.
``outside_level`` makes a warning point to the line of user code that caused it.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import _check_sample_weight, _check_y, check_random_state

__all__ = [
    "check_choice",
    "check_flag",
    "check_fraction",
    "check_integer",
    "check_number",
    "check_optional_integer",
    "check_positive",
    "check_target",
    "check_weights",
    "has_half_character",
    "name_of",
    "outside_level",
    "random_generator",
]

_LEAST_WEIGHT = 1e-100
_LONE = re.compile("[\ud800-\udfff]")
_SMALLEST = float(np.nextafter(0.0, 1.0))
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
    if not 0.0 < _real(value) < math.inf:
        raise ValueError(f"{name} ({meaning}) must be a positive finite number, got {value!r}.")


def check_fraction(name: str, value: object, meaning: str) -> None:
    """Raise unless ``value`` lies strictly between 0 and 1; ``meaning`` explains the parameter."""
    if not 0.0 < _real(value) < 1.0:
        raise ValueError(f"{name} ({meaning}) must lie strictly between 0 and 1, got {value!r}.")


def check_flag(name: str, value: object) -> None:
    """Raise unless ``value`` is True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise ValueError(f"{name} must be True or False, got {value!r}.")


def check_number(
    name: str, value: object, *, above: float, below: float = math.inf, remedy: str = ""
) -> None:
    """Raise unless ``value`` is a real number strictly between two limits.

    ``remedy`` is a sentence that is appended to the error message.
    """
    if not above < _real(value) < below:
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


def _real(value: object) -> float:
    """Return a real number as a float, infinite if it is too large for one; NaN for all else."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return math.nan
    try:
        return float(value)
    except OverflowError:  # an integer of hundreds of digits
        return math.inf


def random_generator(random_state: Any) -> np.random.RandomState:
    """Return the random generator of a seed; raise if ``random_state`` is none."""
    try:
        generator: np.random.RandomState = check_random_state(random_state)
        return generator
    except (ValueError, TypeError):
        raise ValueError(
            "random_state must be None, an integer from 0 to 2**32 - 1, or a "
            f"numpy.random.RandomState, got {random_state!r}."
        ) from None


def check_target(y: Any, *, labels: bool, remedy: str) -> NDArray[Any]:
    """Return y as float64, or as labels of any type, shape (n,).

    Parameters
    ----------
    y : array-like of shape (n,)
        Numbers, or labels of any type.
    labels : bool
        Whether y holds labels.
    remedy : str
        Advice in the error message if y holds text and numbers are needed.
    """
    _refuse_missing(y, "label" if labels else "value")
    with _text_explained("y", f"a regressor needs numbers; for labels {remedy}"):
        target = _check_y(y, multi_output=False, y_numeric=not labels)
        return target if labels else np.asarray(target, dtype=np.float64)


def has_half_character(text: str) -> bool:
    """Return whether a text holds a lone surrogate, which no table of terms can show."""
    return not text.isascii() and _LONE.search(text) is not None


def name_of(y: Any) -> str | None:
    """Return the name of a target, which columns of data frames have; None if it has none."""
    name = getattr(y, "name", None)
    return None if name is None or callable(name) or str(name) == "" else str(name)


def check_weights(n_rows: int, sample_weight: Any) -> NDArray[np.float64]:
    """Check sample weights and scale them to a maximum of one; return them, shape (n_rows,).

    A weight below 1e-100 of the largest is zero: what such a row adds to a loss is no number beside
    the others, and the square of its weight is none at all.
    """
    with _text_explained("sample_weight", "weights are numbers, one for each row"):
        weights = np.asarray(
            _check_sample_weight(sample_weight, np.empty((n_rows, 1)), dtype=np.float64)
        )
    if np.any(weights < 0):
        raise ValueError("sample_weight has negative entries; weights must be zero or positive.")
    weights = weights / max(float(np.max(weights, initial=0.0)), _SMALLEST)
    weights[weights < _LEAST_WEIGHT] = 0.0
    positive = int(np.count_nonzero(weights))
    if positive < 2:
        raise ValueError(
            f"Only {positive} row(s) have a positive sample_weight, not counting weights below "
            f"{_LEAST_WEIGHT:g} of the largest; at least 2 are needed."
        )
    return np.asarray(weights)


@contextmanager
def _text_explained(name: str, advice: str) -> Iterator[None]:
    """Replace the error for text in place of numbers by one that gives advice."""
    try:
        yield
    except ValueError as error:
        if "could not convert string" in str(error):
            raise ValueError(f"{name} holds text ({error}), but {advice}.") from error
        if "setting an array element" in str(error):
            raise ValueError(
                f"{name} must have one entry per row, and some of its entries are sequences."
            ) from error
        raise


def _refuse_missing(y: Any, what: str) -> None:
    """Raise if y has missing entries, which NumPy may turn into text or fail to sort."""
    import pandas as pd

    # In a list of strings, NumPy would turn a NaN into the string "nan".
    values = np.asarray(y, dtype=object) if isinstance(y, (list, tuple)) else np.asarray(y)
    if values.dtype.kind not in "fOmM" or values.size != len(np.atleast_1d(values)):
        return
    rows = np.flatnonzero(pd.isna(values.ravel()))
    if rows.size:
        raise ValueError(
            f"y contains NaN or None: it has {rows.size} missing {what}(s), the first in row "
            f"{rows[0]}, counted from 0; drop these rows of X and y."
        )
