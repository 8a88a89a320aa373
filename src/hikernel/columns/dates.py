"""Dates: columns of times as the parts that a model can use, each a readable column of its own.

A date is the number x of days since 1970-01-01, with the time of day as a fraction. Its parts are

    days         x - s, where s is the day of the first date in ``fit``
    year         of the calendar
    day of year  1 to 366
    weekday      0 to 6, Monday to Sunday
    hour         24 (x - floor x), to six decimals

and a duration has one, its length in days. Which parts a column has follows from the dates in
``fit``. A cycle that no two rows have gone through is no cycle: within a year the day of the year
is a copy of the days, within a week the weekday, within a day the hour. So a cyclic part is there
if the dates span more than its cycle and it varies, and the year if they span more than a year.
Dates that are all the first, or all the last, of a month are months, and have no weekday. If all
are the first of a year, they are years, and the year takes the place of the days.

Times are those that a clock shows in the time zone that the column has in ``fit``.
"""

from __future__ import annotations

import datetime
import math
import re
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hikernel.checks import outside_level
from hikernel.columns.kinds import WEEKDAYS, DateColumn, Part
from hikernel.columns.reading import RawColumn, unused_name
from hikernel.engines.protocol import FloatArray

__all__ = [
    "CYCLES",
    "date_text",
    "days_of",
    "find_dates",
    "goes_around",
    "part_columns",
    "part_name",
    "part_values",
    "warn_of_text",
]

CYCLES: dict[str, float] = {"day of year": 365.25, "hour": 24.0}
"""Parts that come back after a period, in their units."""

_DAY = np.timedelta64(1, "D")
_PER_DAY = {"h": 24, "m": 1440, "s": 86400, "ms": 86400 * 10**3, "us": 86400 * 10**6}
_PER_DAY["ns"] = 86400 * 10**9
_END_OF_DAY = 1.0 - 1e-9
"""Largest fraction of a day, 0.1 ms before midnight: 23:59:59.999999999 is not the next day, as
which the nearest float counts it."""
_LEAP_YEAR, _WEEK = 366.0, 7.0
_DECIMALS = 6
"""Decimals of an hour. The fraction of a day has rounding errors, and ties must stay ties."""
_WIDEST_GAP = 0.25
"""Widest gap in a circle of values, in periods, over which waves are still determined."""
_ISO = re.compile(r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}.*)?")


def part_name(date: DateColumn, part: Part) -> str:
    """Return the name of a part, such as "sold (weekday)"."""
    words = {"days": f"days since {date_text(date.start)}", "length": "days"}
    return f"{date.name} ({words.get(part, part)})"


def days_of(date: DateColumn, column: RawColumn) -> FloatArray:
    """Return x for every row of the column in a table, shape (n,); NaN where it is missing.

    Raises
    ------
    ValueError
        For other values than in ``fit``, or with a time zone where there was none, or without.
    """
    column = replace(column, name=date.name)
    found = _times(column)
    if found is None:
        if _is_empty(column):
            return np.full(len(column.values), np.nan)
        raise ValueError(
            f"Column {date.name!r} is a column of {date.kind}s, but holds {_first(column)!r}; pass "
            f"{date.kind}s as in fit, for example by "
            f"pandas.{'to_datetime' if date.kind == 'date' else 'to_timedelta'}."
        )
    values, kind, zone = found
    if kind != date.kind:
        raise ValueError(
            f"Column {date.name!r} is a column of {date.kind}s, but holds {kind}s; pass the column "
            "as it was in fit."
        )
    if (zone is None) != (date.zone is None) and not np.isnat(values).all():
        has, had = (
            "no time zone" if one is None else f"the time zone {one}" for one in (zone, date.zone)
        )
        raise ValueError(
            f"Column {date.name!r} has {has}, but had {had} in fit, so that its times cannot be "
            "compared; give it one or take it away, for example by dt.tz_localize of pandas."
        )
    return _as_days(values, date.zone, date.name)


def find_dates(columns: Sequence[RawColumn], positions: Sequence[int]) -> tuple[DateColumn, ...]:
    """Return the columns at some positions that hold dates or durations, with their parts."""
    found = []
    for m in positions:
        times = _times(columns[m])
        if times is None:
            continue
        values, kind, zone = times
        days = _as_days(values, zone, columns[m].name)
        known = days[~np.isnan(days)]
        date = DateColumn(m, columns[m].name, kind, ("length",), zone=zone)
        if kind == "date":
            first, last = (known.min(), known.max()) if known.size else (0.0, 0.0)
            start = float(np.floor(first))
            date = replace(date, parts=_parts(known), start=start, end=float(last))
        found.append(date)
    return tuple(found)


def part_columns(
    columns: Sequence[RawColumn], dates: Sequence[DateColumn], names: Sequence[str] | None = None
) -> list[RawColumn]:
    """Return the columns of a table with dates replaced by parts: the first in place, others last.

    Parameters
    ----------
    columns : sequence of RawColumn
        The columns of the table.
    dates : sequence of DateColumn
        Those of them that are dates.
    names : sequence of str, optional
        Names of all columns that are returned; by default they are made, and made unique.
    """
    out, taken = list(columns), [column.name for column in columns]
    for date in dates:
        days = days_of(date, columns[date.column])
        for k, part in enumerate(date.parts):
            place = date.column if k == 0 else len(out)
            if names is None:
                name = unused_name(part_name(date, part), taken)
                taken.append(name)
            else:
                name = names[place]
            made = _part_column(name, part, part_values(part, days, date.start))
            out[place : place + 1] = [made]
    return out


def part_values(part: Part, days: FloatArray, start: float) -> FloatArray:
    """Return a part of dates, shape (n,), NaN where they are missing.

    Parameters
    ----------
    part : str
        The part.
    days : ndarray of shape (n,)
        x, days since 1970-01-01.
    start : float
        s, the day from which days are counted.
    """
    if part == "length":
        return days
    if part == "days":
        return days - start
    if part == "hour":
        return np.round(24.0 * (days - np.floor(days)), _DECIMALS)
    if part == "weekday":
        return np.mod(np.floor(days) + 3.0, 7.0)  # 1970-01-01 was a Thursday
    out = np.full(len(days), np.nan)
    known = ~np.isnan(days)
    date = np.floor(days[known]).astype(np.int64).astype("datetime64[D]")
    year = date.astype("datetime64[Y]")
    if part == "year":
        out[known] = 1970.0 + year.astype(np.int64)
    else:
        out[known] = 1.0 + (date - year.astype("datetime64[D]")) / _DAY
    return out


def date_text(days: float) -> str:
    """Return a date as text, with its time if that is not midnight.

    >>> date_text(0.0), date_text(15037.604166666666), date_text(-1.0)
    ('1970-01-01', '2011-03-04 14:30', '1969-12-31')
    """
    day = math.floor(days)
    seconds = 86400 * day + min(round(86400.0 * (days - day)), 86399)  # never the next day
    text = str(np.datetime64(seconds, "s")).replace("T", " ")
    return text.removesuffix(" 00:00:00") if seconds % 86400 == 0 else text.removesuffix(":00")


def goes_around(values: FloatArray, period: float) -> bool:
    """Return whether numbers lie all around a circle: without a gap of a quarter of the period."""
    places = np.unique(np.mod(values[~np.isnan(values)], period))
    if places.size == 0:
        return False
    gaps = np.diff(places, append=places[0] + period)
    return bool(gaps.max() <= _WIDEST_GAP * period)


def warn_of_text(name: str, texts: Sequence[Any]) -> None:
    """Warn if all categories of a column are text that looks like dates."""
    if all(isinstance(text, str) and _ISO.fullmatch(text) for text in texts):
        warnings.warn(
            f"Column {name!r} holds text that looks like dates ({texts[0]!r}), and each is a "
            "category; convert it, for example by pandas.to_datetime, and its year, day of year "
            "and weekday count. Name it in categorical if it is meant so.",
            UserWarning,
            stacklevel=outside_level(),
        )


def _parts(days: FloatArray) -> tuple[Part, ...]:
    """Return the parts of a column with these dates, none of them missing."""
    if days.size == 0:
        return ("days",)
    found = {
        part: part_values(part, days, 0.0) for part in ("year", "day of year", "weekday", "hour")
    }
    span = float(np.ptp(days))
    if span > 0.0 and np.all(found["day of year"] == 1.0) and np.all(days == np.floor(days)):
        return ("year",)
    parts: list[Part] = ["days"]
    if span > _LEAP_YEAR:
        parts.append("year")
    cycles: dict[Part, float] = {"day of year": _LEAP_YEAR, "weekday": _WEEK, "hour": 1.0}
    for part, cycle in cycles.items():
        if span > cycle and np.ptp(found[part]) > 0.0:
            parts.append(part)
    if "weekday" in parts and _are_months(days):
        parts.remove("weekday")
    return tuple(parts)


def _are_months(days: FloatArray) -> bool:
    """Return whether all dates are the first day of a month, or all are the last one."""
    for shift in (0, 1):
        date = (np.floor(days).astype(np.int64) + shift).astype("datetime64[D]")
        if np.all(date == date.astype("datetime64[M]")):
            return True
    return False


def _part_column(name: str, part: Part, values: FloatArray) -> RawColumn:
    if part != "weekday":
        return RawColumn(name, values)
    words = np.array([*WEEKDAYS, None], dtype=object)
    known = ~np.isnan(values)
    places = np.where(known, values, len(WEEKDAYS)).astype(np.intp)
    return RawColumn(name, words[places], declared_category=True, order=WEEKDAYS)


def _times(
    column: RawColumn,
) -> tuple[NDArray[Any], Literal["date", "duration"], str | None] | None:
    """Return times or durations of NumPy, their kind and their zone; None for other columns.

    Times with a zone are in UTC.
    """
    values = column.values
    if values.dtype.kind == "M":
        return values, "date", column.zone
    if values.dtype.kind == "m":
        return values, "duration", None
    if values.dtype.kind != "O" or column.declared_category:
        return None
    import pandas as pd

    present = np.flatnonzero(~np.asarray(pd.isna(values), dtype=np.bool_))
    some = values[present]
    if not present.size or not any(
        isinstance(v, (datetime.date, datetime.timedelta, np.datetime64, np.timedelta64))
        for v in some
    ):
        return None
    if all(isinstance(value, (datetime.timedelta, np.timedelta64)) for value in some):
        lengths = np.full(len(values), np.timedelta64("NaT"), dtype="timedelta64[us]")
        lengths[present] = [np.timedelta64(value) for value in some]
        return lengths, "duration", None
    times, zone = _plain_times(column.name, some)
    out = np.full(len(values), np.datetime64("NaT"), dtype="datetime64[us]")
    out[present] = times
    return out, "date", zone


def _plain_times(name: str, values: NDArray[Any]) -> tuple[list[np.datetime64], str | None]:
    """Return Python objects as times of NumPy, in UTC if they have a zone, and that zone."""
    times: list[np.datetime64] = []
    zones: set[str | None] = set()
    for value in values:
        if not isinstance(value, (datetime.date, np.datetime64)):
            raise ValueError(
                f"Column {name!r} mixes dates with other values (such as {value!r}); make them all "
                "dates, for example by pandas.to_datetime, with NaT where a date is missing."
            )
        if isinstance(value, datetime.datetime) and value.tzinfo is not None:
            zones.add("UTC" if str(value.tzinfo) == "tzutc()" else str(value.tzinfo))
            value = value.astimezone(datetime.UTC).replace(tzinfo=None)
        else:
            zones.add(None)
        times.append(np.datetime64(value))
    if len(zones) > 1:
        shown = ", ".join(sorted("none" if zone is None else zone for zone in zones)[:5])
        raise ValueError(
            f"Column {name!r} mixes time zones ({shown}); give all its times the same one, for "
            "example by pandas.to_datetime(..., utc=True)."
        )
    return times, zones.pop()


def _as_days(values: NDArray[Any], zone: str | None, name: str) -> FloatArray:
    """Return days since 1970-01-01, or the lengths of durations in days; NaN where missing."""
    if values.dtype.kind == "m":
        if np.datetime_data(values.dtype)[0] in ("Y", "M"):
            raise ValueError(
                f"Column {name!r} holds durations in months or years, which differ in length; "
                "convert them to days, or to numbers."
            )
        return np.asarray(values / _DAY, dtype=np.float64)
    if zone is not None:
        values = _on_the_clock(values, zone, name)
    unit, _ = np.datetime_data(values.dtype)
    if unit not in _PER_DAY:  # days and longer, and less than a nanosecond
        unit = "D" if unit in ("Y", "M", "W", "D", "generic") else "ns"
    # As integers: where nanoseconds begin, in 1677, there is no midnight before, and NumPy's
    # conversion to days wraps around to 2262.
    ticks = values.astype(f"datetime64[{unit}]").astype(np.int64)
    whole, rest = np.divmod(ticks, _PER_DAY.get(unit, 1))
    days = whole + np.minimum(rest / _PER_DAY.get(unit, 1), _END_OF_DAY)
    days[np.isnat(values)] = np.nan
    return np.asarray(days, dtype=np.float64)


def _on_the_clock(values: NDArray[Any], zone: str, name: str) -> NDArray[Any]:
    """Return times in UTC as a clock in a time zone shows them."""
    import pandas as pd

    try:
        return np.asarray(
            pd.DatetimeIndex(values).tz_localize("UTC").tz_convert(zone).tz_localize(None)
        )
    except (KeyError, ValueError, OSError):
        raise ValueError(
            f"The time zone {zone!r} of column {name!r} is not known here by this name; convert it "
            'to one that is, for example by dt.tz_convert("UTC") of pandas.'
        ) from None


def _is_empty(column: RawColumn) -> bool:
    import pandas as pd

    return bool(np.all(pd.isna(column.values)))


def _first(column: RawColumn) -> Any:
    import pandas as pd

    values = column.values
    return values[~np.asarray(pd.isna(values), dtype=np.bool_)][:1].tolist()[0]
