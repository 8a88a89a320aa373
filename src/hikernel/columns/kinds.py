"""The kind of a column (numbers, booleans, categories), and its conversion to floats.

The functions work on one column at a time, except ``check_finite``. Missing values (NaN, None, NaT,
``pandas.NA``) become NaN.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from numbers import Complex, Integral, Real
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hikernel.columns.reading import RawColumn
from hikernel.engines.protocol import FloatArray

__all__ = [
    "UNSEEN",
    "WEEKDAYS",
    "Category",
    "DateColumn",
    "Kind",
    "Part",
    "check_finite",
    "find_categories",
    "find_kind",
    "holds_dates",
    "order_categories",
    "to_booleans",
    "to_codes",
    "to_numbers",
]

Kind = Literal["number", "boolean", "category"]
Category = str | bool | int | float
Part = Literal["days", "year", "day of year", "weekday", "hour", "length"]

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
UNSEEN = -1.0
"""Code of a category that was not seen in ``fit``."""

# Sorts of values that a column can hold. "number" includes Decimal, but not bool.
_ValueType = Literal["text", "boolean", "number", "complex", "date", "other"]
_DATES = (datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64)
# Below this magnitude, floats represent every integer exactly.
_EXACT = 2.0**53


@dataclass(frozen=True)
class DateColumn:
    """A column of dates or durations, found in ``fit``: plain data.

    Attributes
    ----------
    column : int
        Position in the table. The first part has this position in the matrix; the others follow
        after the columns of the table.
    name : str
        Name of the column in the table.
    kind : {"date", "duration"}
        What the column holds.
    parts : tuple of str
        Its parts, at least one.
    start, end : float
        s, the day of the first date, and the last date, in days since 1970-01-01.
    zone : str or None
        The time zone whose clock counts; None for times without a zone.
    """

    column: int
    name: str
    kind: Literal["date", "duration"]
    parts: tuple[Part, ...]
    start: float = 0.0
    end: float = 0.0
    zone: str | None = None


def find_kind(column: RawColumn) -> Kind:
    """Return the kind of a column, from its dtype, or from its values if it holds objects.

    A column of objects without any value has the kind "category", with no categories.

    Raises
    ------
    ValueError
        For times of day, periods, complex numbers, and text mixed with anything else.
    TypeError
        For objects that are neither text nor numbers.
    """
    if column.declared_category:
        return "category"
    sorts = set(_value_types(column))
    _refuse_impossible(column, sorts)
    if "text" in sorts and len(sorts) > 1:
        text, other = _example(column, "text"), _example(column, *(sorts - {"text"}))
        raise ValueError(
            f"Column {column.name!r} mixes text and numbers (such as {text!r} and {other!r}). "
            "Make it all numbers, with NaN where a value is missing, or all text; or name it in "
            "categorical to treat each distinct value as a category."
        )
    if not sorts or sorts == {"text"}:
        return "category"
    return "boolean" if sorts == {"boolean"} else "number"


def holds_dates(column: RawColumn) -> bool:
    """Return whether a column holds dates, times or durations, alone or among other values."""
    return not column.declared_category and "date" in _value_types(column)


def order_categories(column: RawColumn, order: Sequence[Any] | None) -> tuple[Category, ...]:
    """Return the distinct values of an ordered column in their order.

    Parameters
    ----------
    column : RawColumn
        The column.
    order : sequence or None
        The order, which may have values that do not occur. None for that of the dtype, or else
        of numbers.

    Raises
    ------
    ValueError
        If the order is not known, or lacks a value of the column, or has one twice.
    """
    found = find_categories(column)
    if order is None:
        order = column.order
    dated = set(_value_types(column)) == {"date"}  # whose text is in the order of time
    if order is None and not dated and any(isinstance(value, str) for value in found):
        raise ValueError(
            f"ordered names the column {column.name!r}, whose text ({_listed(found)}) has no order "
            f"of its own; pass the order, ordered={{{column.name!r}: [{found[0]!r}, ...]}}."
        )
    if order is None:
        return found
    known = [_as_category(value) for value in order]
    lost = sorted(set(found).difference(known), key=found.index)
    if lost or len(set(known)) < len(known):
        what = f"lacks {_listed(lost)}" if lost else "has a value twice"
        raise ValueError(
            f"The order of column {column.name!r} {what}; give every value of the column once."
        )
    seen = set(found)
    return tuple(value for value in known if value in seen)


def find_categories(column: RawColumn) -> tuple[Category, ...]:
    """Return the distinct values of a column: numbers in order, then text in order.

    Whole floats are returned as integers, since a missing value turns integers to floats in many
    frames. Values that are neither text nor numbers, such as the intervals of ``pandas.cut``, are
    returned as ``str(value)``.
    """
    _, found = _factorize(column)
    for value in found:
        if isinstance(value, float) and not np.isfinite(value):
            raise ValueError(_infinite(column.name))
    return tuple(sorted(set(found), key=lambda value: (isinstance(value, str), value)))


def to_codes(column: RawColumn, categories: Sequence[Category]) -> FloatArray:
    """Return positions in ``categories``, shape (n,): NaN for missing, -1 for unseen values.

    Raises
    ------
    ValueError
        For text if all categories are numbers, and for numbers if all are text. This means that the
        column is a different one or was read differently; it is not a new category.
    """
    positions, found = _factorize(column)
    known = {value: float(code) for code, value in enumerate(categories)}
    if known:
        textual = {isinstance(value, str) for value in known}
        for value in found:
            if isinstance(value, str) not in textual:
                raise ValueError(
                    f"Column {column.name!r} holds {value!r}, but its categories in fit were "
                    f"{_listed(categories)}; {'numbers' if False in textual else 'text'} "
                    "cannot be told from these, so pass the column as it was in fit."
                )
    table = np.array([*(known.get(value, UNSEEN) for value in found), np.nan])
    return table[positions]  # a missing value has position -1, the NaN at the end


def to_numbers(column: RawColumn) -> FloatArray:
    """Return the values of a column of numbers as floats, shape (n,)."""
    _refuse_impossible(column, set(_value_types(column)))
    values = column.values
    if values.dtype.kind in "fiub":
        return _finite_floats(column.name, values)
    text = _example(column, "text")
    if text is not None:
        raise ValueError(
            f"Column {column.name!r} is a column of numbers, but holds the text {text!r}; "
            "convert it to a number, or to NaN if the value is missing."
        )
    present = ~_missing(values)
    numbers = np.full(len(values), np.nan)
    numbers[present] = _finite_floats(column.name, values[present])
    return numbers


def to_booleans(column: RawColumn) -> FloatArray:
    """Return the values of a column of booleans as 0.0 and 1.0, shape (n,)."""
    numbers = to_numbers(column)
    wrong = np.flatnonzero((numbers != 0.0) & (numbers != 1.0) & ~np.isnan(numbers))
    if wrong.size:
        raise ValueError(
            f"Column {column.name!r} is a column of booleans, but holds {numbers[wrong[0]]:g}; "
            "pass True and False, or 1 and 0."
        )
    return numbers


def check_finite(names: Sequence[str], values: FloatArray) -> bool:
    """Raise if an array of shape (n, p) holds infinity; return whether it is free of NaN."""
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(np.sum(values)):
            return True
    infinite = np.flatnonzero(np.isinf(values).any(axis=0))
    if infinite.size:
        raise ValueError(_infinite(names[infinite[0]]))
    return not np.isnan(values).any()


def _infinite(name: str) -> str:
    return (
        f"Column {name!r} contains infinity (or a value too large for a float); replace it by a "
        "finite number, or by NaN if the value is missing."
    )


def _finite_floats(name: str, values: NDArray[Any]) -> FloatArray:
    try:
        with np.errstate(over="ignore"):
            numbers = values.astype(np.float64)
    except OverflowError:
        raise ValueError(_infinite(name)) from None
    check_finite([name], numbers[:, np.newaxis])
    return numbers


def _factorize(column: RawColumn) -> tuple[NDArray[np.intp], list[Category]]:
    """Return each row's position in the list of distinct values (-1 if missing), and this list."""
    import pandas as pd

    values = column.values
    try:
        # pandas 2 cannot hash NumPy's text dtype.
        positions, distinct = pd.factorize(
            values.astype(object) if values.dtype.kind == "U" else values
        )
    except TypeError as error:
        raise TypeError(_not_a_value(column, f"something that is no category ({error})")) from None
    zoned = column.zone is not None
    return np.asarray(positions, dtype=np.intp), [_as_category(value, zoned) for value in distinct]


def _as_category(value: Any, zoned: bool = False) -> Category:
    """Return a value as a plain Python scalar; ``zoned`` tells that a time is one in UTC."""
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, (datetime.date, np.datetime64)):
        return _date_category(value, zoned)
    if isinstance(value, (datetime.timedelta, np.timedelta64)):
        value = np.timedelta64(value) / np.timedelta64(1, "D")
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, (Real, Decimal)):
        number = float(value)
        return int(number) if number.is_integer() and abs(number) < _EXACT else number
    return str(value)


def _date_category(value: Any, zoned: bool) -> str:
    """Return a date or time as text that is the same in every unit and type.

    >>> _date_category(np.datetime64("2021-03-04T00:00", "ns"), False)
    '2021-03-04'
    >>> _date_category(datetime.datetime(2021, 3, 4, 17, 30), True)
    '2021-03-04 17:30:00+00:00'
    """
    if isinstance(value, np.datetime64):
        plain = value.astype("datetime64[us]").item()
        if not isinstance(plain, datetime.datetime):  # before the year 1 or after 9999
            return str(value)
        value = plain
    if zoned and isinstance(value, datetime.datetime) and value.tzinfo is None:
        value = value.replace(tzinfo=datetime.UTC)
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        return str(value.astimezone(datetime.UTC))
    return str(value).removesuffix(" 00:00:00")


def _missing(values: NDArray[Any]) -> NDArray[np.bool_]:
    import pandas as pd

    return np.asarray(pd.isna(values), dtype=np.bool_)


def _value_types(column: RawColumn) -> dict[_ValueType, type]:
    """Return the sorts of values in a column, each with a Python or NumPy type of that sort."""
    values = column.values
    if values.dtype.kind == "O":
        types = set(map(type, values[~_missing(values)]))
    else:
        types = {values.dtype.type}
    return {_value_type(kind): kind for kind in types}


def _value_type(kind: type) -> _ValueType:
    if issubclass(kind, str):
        return "text"
    if issubclass(kind, (bool, np.bool_)):
        return "boolean"
    # Check dates before numbers: NumPy's timedelta64 is a subclass of its integers.
    if issubclass(kind, _DATES) or kind.__name__ == "Period":
        return "date"
    if issubclass(kind, (Real, Decimal)):
        return "number"
    return "complex" if issubclass(kind, Complex) else "other"


def _example(column: RawColumn, *sorts: _ValueType) -> Any:
    """Return the first value of one of these sorts, or None."""
    values = column.values
    present = values[~_missing(values)].astype(object)
    return next((value for value in present if _value_type(type(value)) in sorts), None)


def _refuse_impossible(column: RawColumn, sorts: set[_ValueType]) -> None:
    """Raise for values that no basis can use as numbers."""
    if "complex" in sorts:
        raise ValueError(f"Complex data not supported: column {column.name!r} is complex.")
    if "date" in sorts:
        raise ValueError(
            f"Column {column.name!r} holds dates or times (such as {_example(column, 'date')!r}) "
            "where numbers are needed; replace them by numbers that matter (the hour for a time of "
            "day), or by dates (dt.to_timestamp() of pandas for a period), or name the column in "
            "categorical to treat each distinct value as a category."
        )
    if "other" in sorts:
        value = _example(column, "other")
        what = f"{value!r}, of type {type(value).__name__}"
        raise TypeError(_not_a_value(column, what))


def _not_a_value(column: RawColumn, what: str) -> str:
    return (
        f"Column {column.name!r} holds {what}; each argument must be a string or a real number, "
        "so convert or drop the column."
    )


def _listed(categories: Sequence[Category]) -> str:
    shown = ", ".join(repr(value) for value in categories[:5])
    return shown + (", ..." if len(categories) > 5 else "")
