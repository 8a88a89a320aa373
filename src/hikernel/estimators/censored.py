"""Censored times as a target: reading y, and the ranks that the loss takes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hikernel.engines.protocol import FloatArray

__all__ = ["censored_target", "event_and_time", "read_censored", "time_name"]

_FORMS = (
    "y must have a time and an event for each row: a structured array with a boolean field (the "
    "event) and a field of numbers (the time), or two columns (time, event) with events 0 or 1"
)


def read_censored(y: Any) -> NDArray[Any]:
    """Return y as a structured array of a boolean field and a field of float64, shape (n,).

    Parameters
    ----------
    y : structured array, array of shape (n, 2), or data frame of two columns
        In a structured array the boolean field is the event, in any order and with any names, as
        ``Surv`` of scikit-survival makes it. In a data frame a boolean column is the event, if
        there is exactly one. Otherwise the first column is the time, and the second the event: 1 if
        it happened at that time, 0 if the time is censored.

    Raises
    ------
    ValueError
        If y is something else, or has missing, infinite or negative times.
    """
    names = getattr(getattr(y, "dtype", None), "names", None)
    if names is not None:
        (event, flags), (time, times) = _fields(np.asarray(y), names)
    elif _is_frame(y):
        (event, flags), (time, times) = _frame_columns(y)
    else:
        (event, flags), (time, times) = _array_columns(y)
    flags, times = _checked_events(flags, times), _checked_times(times)
    out = np.empty(len(times), dtype=[(event, np.bool_), (time, np.float64)])
    out[event], out[time] = flags, times
    return out


def event_and_time(y: NDArray[Any]) -> tuple[NDArray[np.bool_], FloatArray]:
    """Return events and times of what ``read_censored`` returned."""
    assert y.dtype.names is not None
    event, time = y.dtype.names
    return y[event], y[time]


def time_name(y: Any) -> str | None:
    """Return the name of the times if y has names; None for an array of two columns."""
    if getattr(getattr(y, "dtype", None), "names", None) is None and not _is_frame(y):
        return None
    names = read_censored(y).dtype.names
    assert names is not None
    return str(names[1])


def censored_target(y: NDArray[Any]) -> FloatArray:
    """Return the rank of each time among the distinct times, negative if it is censored.

    >>> censored_target(read_censored([[5.0, 1], [2.5, 0], [5.0, 0]]))
    array([ 2., -1., -2.])
    """
    event, time = event_and_time(y)
    ranks = np.unique(time, return_inverse=True)[1] + 1.0
    return np.asarray(np.where(event, ranks, -ranks))


Named = tuple[str, NDArray[Any]]


def _is_frame(y: Any) -> bool:
    return hasattr(y, "columns") and hasattr(y, "shape")


def _fields(y: NDArray[Any], names: tuple[str, ...]) -> tuple[Named, Named]:
    """Return event and time of a structured array."""
    flags = [name for name in names if y.dtype[name] == np.bool_]
    if y.ndim != 1 or len(names) != 2 or len(flags) != 1:
        listed = ", ".join(f"{name} ({y.dtype[name]})" for name in names)
        raise ValueError(f"{_FORMS}; this structured array has {listed}.")
    time = next(name for name in names if name != flags[0])
    return (flags[0], y[flags[0]]), (time, y[time])


def _frame_columns(y: Any) -> tuple[Named, Named]:
    """Return event and time of a data frame."""
    names = [str(name) or "y" for name in y.columns]
    if len(names) != 2:
        raise ValueError(f"{_FORMS}; this data frame has {len(names)} columns.")
    if len(set(names)) != 2:
        raise ValueError(f"{_FORMS}; both columns of this data frame are called {names[0]!r}.")
    columns = [np.asarray(y[name]) for name in y.columns]
    flags = [i for i, column in enumerate(columns) if _holds_flags(column)]
    where = flags[0] if len(flags) == 1 else 1
    return (names[where], columns[where]), (names[1 - where], columns[1 - where])


def _holds_flags(values: NDArray[Any]) -> bool:
    """Return whether a column is boolean; nullable ones of pandas are objects."""
    return values.dtype.kind == "b" or (
        values.dtype.kind == "O" and all(isinstance(value, (bool, np.bool_)) for value in values)
    )


def _array_columns(y: Any) -> tuple[Named, Named]:
    """Return event and time of an array of two columns."""
    try:
        table = np.asarray(y)
    except ValueError:
        raise ValueError(f"{_FORMS}; the rows of this y differ in length.") from None
    if table.ndim != 2 or table.shape[1] != 2:
        shape = f"it has shape {table.shape}" if table.ndim else "it is a single value"
        raise ValueError(f"{_FORMS}; {shape}.")
    return ("event", table[:, 1]), ("time", table[:, 0])


def _numbers(values: NDArray[Any], what: str) -> FloatArray:
    """Return values as float64; NaN for missing ones."""
    import pandas as pd

    missing = np.flatnonzero(pd.isna(values))
    if len(missing):
        raise ValueError(
            f"y contains NaN or None: {len(missing)} {what}(s) are missing, the first in row "
            f"{missing[0]}, counted from 0; drop these rows of X and y."
        )
    if values.dtype.kind in "mM":
        raise ValueError(
            f"The {what}s of y are dates or time spans; turn them into numbers of one unit, for "
            "example (end - start) / np.timedelta64(1, 'D')."
        )
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"The {what}s of y hold text; {_FORMS}.") from None


def _checked_events(event: NDArray[Any], time: NDArray[Any]) -> NDArray[np.bool_]:
    """Return the events as booleans; raise unless they are True and False, or 1 and 0."""
    numbers = _numbers(event, "event")
    wrong = np.flatnonzero((numbers != 0.0) & (numbers != 1.0))
    if len(wrong):
        swapped = time.dtype.kind in "biuf" and bool(np.all((time == 0) | (time == 1)))
        advice = (
            "the columns seem to be swapped, the time comes first"
            if swapped
            else "1 means that the event happened at the time of the row, 0 that it was censored"
        )
        raise ValueError(
            f"The events of y must be 0 or 1, and row {wrong[0]} has {numbers[wrong[0]]:g}; "
            f"{advice}."
        )
    return np.asarray(numbers == 1.0)


def _checked_times(time: NDArray[Any]) -> FloatArray:
    """Return the times; raise unless they are finite, and zero or positive."""
    times = _numbers(time, "time")
    wrong = np.flatnonzero(~np.isfinite(times) | (times < 0.0))
    if len(wrong):
        raise ValueError(
            f"The times of y must be finite, and zero or positive, and row {wrong[0]} has "
            f"{times[wrong[0]]:g}; a time is how long a row was observed."
        )
    return times
