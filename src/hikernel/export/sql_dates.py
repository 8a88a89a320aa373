"""Dates in SQL: days since 1970-01-01 and parts of dates, which every engine spells its own way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hikernel.explain.portable import NotPortableError
from hikernel.export.sql_text import number

__all__ = ["date_days", "date_part", "duration_days"]

Data = dict[str, Any]

_EPOCH = 2440587.5
"""1970-01-01, 0:00 as a Julian day."""


def date_days(column: str, clock: str | None) -> str:
    """Return days since 1970-01-01, with the time of day as a fraction; NULL if it is no date.

    Parameters
    ----------
    column : str
        The column of the table.
    clock : {"strftime", "extract"} or None
        How the engine takes dates apart.
    """
    day, seconds = _CLOCKS[_checked(clock)]
    return f"{day(column)}\n            + ({seconds(column)}) / 86400.0e0"


def duration_days(column: str, clock: str | None) -> str:
    """Return a length in days: an interval, or for engines that have none a number of days."""
    if _checked(clock) == "extract":
        return f"{_extracted('EPOCH', column)} / 86400.0e0"
    return f"CAST({column} AS DOUBLE PRECISION)"


def date_part(part: str, column: str, days: str, start: float | None, clock: str | None) -> str:
    """Return a part of a date.

    Parameters
    ----------
    part : str
        The part.
    column : str
        The column of the table.
    days : str
        Its days since 1970-01-01.
    start : float or None
        The day from which days are counted.
    clock : {"strftime", "extract"} or None
        How the engine takes dates apart.
    """
    if part == "length":
        return days
    if part == "days":
        return f"{days} - ({number(start or 0.0)})"
    if part == "hour":  # to six decimals, as in the fit
        return f"ROUND(1.0e6 * ({_CLOCKS[_checked(clock)][1](column)}) / 3600.0e0) / 1.0e6"
    return _PARTS[_checked(clock)][part](column)


def _checked(clock: str | None) -> str:
    if clock is None:
        raise NotPortableError(
            'The model uses dates, which ANSI SQL does not take apart; pass dialect="sqlite", '
            '"duckdb" or "postgresql", or export to Python.'
        )
    return clock


def _formatted(code: str, column: str) -> str:
    return f"CAST(strftime('{code}', {column}) AS DOUBLE PRECISION)"


def _extracted(field: str, column: str) -> str:
    return f"CAST(EXTRACT({field} FROM {column}) AS DOUBLE PRECISION)"


def _midnight(column: str) -> str:
    return f"CAST(CAST({column} AS DATE) AS TIMESTAMP)"


def _time(column: str) -> str:
    return f"CAST({column} AS TIMESTAMP)"


_CLOCKS: dict[str, tuple[Callable[[str], str], Callable[[str], str]]] = {
    "strftime": (
        lambda c: f"julianday(date({c})) - {number(_EPOCH)}",
        lambda c: (
            f"{_formatted('%H', c)} * 3600 + {_formatted('%M', c)} * 60 + {_formatted('%f', c)}"
        ),
    ),
    "extract": (
        lambda c: f"{_extracted('EPOCH', _midnight(c))} / 86400.0e0",
        lambda c: _extracted("EPOCH", f"({_time(c)} - {_midnight(c)})"),
    ),
}
"""For every way to take dates apart: days since 1970-01-01, and seconds since midnight."""

_PARTS: dict[str, dict[str, Callable[[str], str]]] = {
    "strftime": {
        "year": lambda c: _formatted("%Y", c),
        "day of year": lambda c: _formatted("%j", c),
        "weekday": lambda c: f"(CAST(strftime('%w', {c}) AS INTEGER) + 6) % 7",
    },
    "extract": {
        "year": lambda c: _extracted("YEAR", _time(c)),
        "day of year": lambda c: _extracted("DOY", _time(c)),
        "weekday": lambda c: f"{_extracted('ISODOW', _time(c))} - 1",
    },
}
"""Parts that follow from the calendar, for every way to take dates apart."""
