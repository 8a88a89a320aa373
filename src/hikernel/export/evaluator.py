"""f(x) from its plain data with NumPy alone: the functions that an exported Python module has.

`hikernel.export.python_text` copies the text of those that a model needs, so nothing here may use
anything but NumPy, the standard library and other functions of this file.
"""

from __future__ import annotations

import datetime
import math
import numbers
import zoneinfo
from decimal import Decimal
from typing import Any

import numpy as np

__all__ = ["LEVELS", "PARTS", "READERS", "contributions", "read_inputs"]


def read_inputs(X: Any, inputs: Any, columns: Any, readers: Any) -> list[np.ndarray[Any, Any]]:
    """Return the inputs of f as arrays of floats, NaN where a value is missing."""
    if hasattr(X, "keys") or hasattr(X, "columns"):
        keys = {_key_name(key): key for key in (X.keys() if hasattr(X, "keys") else X.columns)}
        lost = [one["name"] for one in inputs if one["name"] not in keys]
        if lost:
            raise ValueError(f"X has no column {lost[0]!r}; it has {list(keys)[:10]}.")
        names = [one["name"] for one in inputs] or list(keys)[:1]
        found = [np.atleast_1d(np.asarray(X[keys[name]])) for name in names]
        if len({len(column) for column in found}) > 1:
            raise ValueError("The columns of X have different numbers of rows.")
    else:
        table = X if isinstance(X, np.ndarray) else np.array(list(X), dtype=object)
        if table.ndim != 2 or table.shape[1] != len(columns):
            raise ValueError(
                f"X must be a mapping of columns, or rows of {len(columns)} values in the order of "
                "COLUMNS."
            )
        found = [table[:, one["column"]] for one in inputs] or [table[:, 0]]
    if not inputs:
        return [np.zeros(len(found[0]))]
    return [readers[one["kind"]](one, column) for one, column in zip(inputs, found, strict=True)]


def _key_name(key: Any) -> str:
    """Return the name of a column; that of a tuple joins its parts."""
    parts = key if isinstance(key, tuple) else (key,)
    return " / ".join(str(part) for part in parts if str(part))


def _is_missing(value: Any) -> bool:
    """Return whether a value is None, NaN, NaT or pandas.NA."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, (float, np.floating, Decimal)) and value != value


def read_numbers(one: Any, values: Any) -> np.ndarray[Any, Any]:
    """Return a column of numbers."""
    if values.dtype.kind not in "fiub":
        text = next((value for value in values if isinstance(value, (str, bytes))), None)
        if text is not None:
            raise ValueError(f"Column {one['name']!r} holds {text!r}, and must hold numbers.")
        values = np.array([math.nan if _is_missing(value) else float(value) for value in values])
    found = np.asarray(values, dtype=float)
    if np.isinf(found).any():
        raise ValueError(f"Column {one['name']!r} contains infinity.")
    return found


def read_booleans(one: Any, values: Any) -> np.ndarray[Any, Any]:
    """Return a column of booleans as 0 and 1."""
    found = read_numbers(one, values)
    if not np.all((found == 0.0) | (found == 1.0) | np.isnan(found)):
        raise ValueError(f"Column {one['name']!r} must hold True and False, or 1 and 0.")
    return found


def read_categories(one: Any, values: Any) -> np.ndarray[Any, Any]:
    """Return positions among the categories; -1 for others (missing if these have an order)."""
    known = {value: float(i) for i, value in enumerate(one["values"] or one["labels"])}
    textual = {isinstance(value, str) for value in known}
    other = math.nan if one["ordered"] else -1.0
    found = np.full(len(values), math.nan)
    if values.dtype.kind in "mM":
        values = values.astype(f"{values.dtype.kind}8[us]").astype(object)
    for row, value in enumerate(values):
        if _is_missing(value):
            continue
        if isinstance(value, (bool, np.bool_)):
            value = bool(value)
        elif isinstance(value, datetime.date):
            zoned = getattr(value, "tzinfo", None) and value.astimezone(datetime.UTC)  # type: ignore[attr-defined]
            value = str(zoned or value).removesuffix(" 00:00:00")
        elif isinstance(value, datetime.timedelta):
            value = value / datetime.timedelta(days=1)
        elif isinstance(value, (numbers.Real, Decimal)):
            value = int(value) if isinstance(value, numbers.Integral) else float(value)
        else:
            value = str(value)
        if known and isinstance(value, str) not in textual:
            raise ValueError(
                f"Column {one['name']!r} holds {value!r}, and its categories are "
                f"{list(known)[:5]}; pass it as text, or as numbers, as these are."
            )
        found[row] = known.get(value, other)
    return found


def read_dates(one: Any, values: Any) -> np.ndarray[Any, Any]:
    """Return days since 1970-01-01, on the clock of the time zone of the column if it has one."""
    if values.dtype.kind != "M":
        found = [_clock_time(one, value) for value in values]
        values = np.array(found, dtype="datetime64[us]")
    elif one["zone"] is not None and not np.isnat(values).all():
        raise ValueError(
            f"Column {one['name']!r} must hold times with a time zone, as in the fit "
            f"({one['zone']}); datetime64 has none, so pass datetime objects with tzinfo."
        )
    whole = values.astype("datetime64[D]")
    days = whole.astype(np.int64) + np.minimum((values - whole) / np.timedelta64(1, "D"), 1 - 1e-9)
    return np.where(np.isnat(values), math.nan, days)


def _clock_time(one: Any, value: Any) -> Any:
    """Return a date or time without its zone, as a clock in the zone of the column shows it."""
    if _is_missing(value):
        return np.datetime64("NaT")
    if not isinstance(value, (datetime.date, np.datetime64)):
        raise ValueError(f"Column {one['name']!r} holds {value!r}, and must hold dates.")
    time: Any = value
    zone = getattr(time, "tzinfo", None)
    if (zone is None) != (one["zone"] is None):
        raise ValueError(
            f"Column {one['name']!r} holds {value!r}; in the fit its times had "
            f"{'no time zone' if one['zone'] is None else 'the time zone ' + one['zone']}."
        )
    if zone is not None and str(zone) != one["zone"]:
        time = time.astimezone(zoneinfo.ZoneInfo(one["zone"]))
    return np.datetime64(time if zone is None else time.replace(tzinfo=None))


def read_durations(one: Any, values: Any) -> np.ndarray[Any, Any]:
    """Return lengths in days."""
    if values.dtype.kind != "m":
        for value in values:
            if not (_is_missing(value) or isinstance(value, (datetime.timedelta, np.timedelta64))):
                raise ValueError(f"Column {one['name']!r} holds {value!r}, no timedelta.")
        found = [np.timedelta64("NaT" if _is_missing(v) else v, "us") for v in values]
        values = np.array(found, dtype="timedelta64[us]")
    return np.asarray(values / np.timedelta64(1, "D"), dtype=float)


# What a variable is of a date, in days since 1970-01-01.


def part_days(days: Any, start: Any) -> Any:
    """Days since the start."""
    return days - start


def part_length(days: Any, start: Any) -> Any:
    """The length itself."""
    return days


def part_hour(days: Any, start: Any) -> Any:
    """Hours since midnight."""
    return np.round(24.0 * (days - np.floor(days)), 6)


def part_weekday(days: Any, start: Any) -> Any:
    """0 for Monday to 6 for Sunday."""
    return np.mod(np.floor(days) + 3.0, 7.0)


def part_year(days: Any, start: Any) -> Any:
    """The year of the calendar."""
    return np.where(np.isnan(days), math.nan, 1970.0 + _years(days).astype(np.int64))


def part_day_of_year(days: Any, start: Any) -> Any:
    """1 for the first of January."""
    return np.floor(days) - _years(days).astype("datetime64[D]").astype(np.int64) + 1.0


def _years(days: Any) -> Any:
    """Return the years of dates, that of 1970 where they are missing."""
    known = np.where(np.isnan(days), 0.0, np.floor(days)).astype(np.int64)
    return known.astype("datetime64[D]").astype("datetime64[Y]")


def contributions(
    values: Any, variables: Any, terms: Any, n_outputs: int, levels_of: Any, parts: Any
) -> list[Any]:
    """Return what each term adds to f, one array of shape (n, n_outputs) per term."""
    known = []
    for one in variables:
        x = values[one["input"]]
        if one["missing"]:
            x = np.isnan(x).astype(float)
        elif one.get("part"):
            x = parts[one["part"]](x, one["start"])
        absent = np.isnan(x)
        known.append((one["levels"], np.where(absent, 0.0, x), absent))
    computed: dict[int, Any] = {}
    found = []
    for term in terms:
        factors = []
        for variable, level in term["factors"]:
            levels, x, absent = known[variable]
            if variable not in computed:
                computed[variable] = levels_of[levels["kind"]](levels, x, levels_of)
            factors.append(_present(computed[variable][level], level, levels, absent))
        coef = np.array(term["coef"], dtype=float).T.reshape([*term["shape"], n_outputs])
        found.append(_product(coef, factors, len(values[0])))
    return found


def _present(level: Any, number: int, levels: Any, absent: Any) -> Any:
    """Return a level that is zero (level 0: "absent") where its input is missing."""
    if level.ndim == 1:  # positions in a table, -1 for none
        return np.where(absent, -1, level)
    return np.where(absent[:, None], levels.get("absent", 1.0) if number == 0 else 0.0, level)


def _product(coef: Any, factors: Any, n_rows: int) -> Any:
    """Return <coef, outer product of the factors> for every row, shape (n, n_outputs)."""
    tables = [axis for axis, factor in enumerate(factors) if factor.ndim == 1]
    others = [axis for axis, factor in enumerate(factors) if factor.ndim == 2]
    coef = coef.transpose([*tables, *others, len(factors)])
    inside = np.ones(n_rows, dtype=bool)
    for axis in tables:
        inside &= factors[axis] >= 0
    places = tuple(np.where(inside, factors[axis], 0) for axis in tables)
    out = coef[places] if tables else np.broadcast_to(coef, (n_rows, *coef.shape))
    for axis in others:
        out = np.einsum("nw,nw...->n...", factors[axis], out)
    return np.where(inside[:, None], out, 0.0)


# The levels of a variable at x, by kind: arrays of shape (n, width), or positions in a table.


def _column(values: Any) -> Any:
    return np.asarray(values, dtype=float)[:, None]


def _z(levels: Any, x: Any) -> Any:
    return (x - levels["center"]) / levels["scale"]


def levels_constant(levels: Any, x: Any, levels_of: Any) -> list[Any]:
    """No level above 0."""
    return [np.ones((len(x), 1))]


def levels_lookup(levels: Any, x: Any, levels_of: Any) -> list[Any]:
    """The position of x among categories, or the number of cuts below x."""
    if levels["table"] == "steps":
        return [np.ones((len(x), 1)), np.searchsorted(levels["cuts"], x, side="left")]
    place = {float(code): i for i, code in enumerate(levels["codes"])}
    return [np.ones((len(x), 1)), np.array([place.get(value, -1) for value in x.tolist()], int)]


def levels_orthonormal(levels: Any, x: Any, levels_of: Any) -> list[Any]:
    """Polynomials by their recurrence, constant beyond the range of the training data."""
    z = np.clip(_z(levels, x), levels["low"], levels["high"])
    p = [np.ones(len(x))]
    for both, norm in zip(levels["projections"], levels["norms"], strict=True):
        c = z * p[-1]
        for projection in both:
            for i, one in enumerate(p):
                c = c - projection[i] * one
        p.append(c / norm)
    return [_column(one) for one in p]


def levels_asinh(levels: Any, x: Any, levels_of: Any) -> list[Any]:
    """Polynomials of asinh(x)."""
    inner = np.arcsinh((_z(levels, x) - levels["median"]) / levels["spread"])
    return list(levels_orthonormal(levels["inner"], inner, levels_of))


def levels_interpolation(levels: Any, x: Any, levels_of: Any) -> list[Any]:
    """Linear between knots, and constant beyond them."""
    z = _z(levels, x)
    heights = np.array(levels["heights"], dtype=float).T
    return [np.ones((len(x), 1)), *[_column(np.interp(z, levels["knots"], h)) for h in heights]]


def levels_periodic(levels: Any, x: Any, levels_of: Any) -> list[Any]:
    """Waves: points on a circle that go around j times in a period."""
    phase = 2.0 * math.pi * (np.mod(x, levels["period"]) / levels["period"])
    found = [np.ones((len(x), 1))]
    for j, scale in enumerate(levels["scales"], start=1):
        wave = np.column_stack([np.cos(j * phase), np.sin(j * phase)])
        found.append(scale * (wave - np.array(levels["means"][j - 1])))
    return found


def levels_powers(levels: Any, x: Any, levels_of: Any) -> list[Any]:
    """Powers of the standardised column."""
    z = _z(levels, x)
    return [_column(factor * z**j) for j, factor in enumerate(levels["factors"])]


def _series(start: Any, t: Any, ratio: float, n: int) -> list[Any]:
    """Return n Hermite polynomials or functions by their recurrence."""
    h = [start]
    for j in range(n - 1):
        value = t * math.sqrt(2.0 * ratio / (j + 1)) * h[j]
        h.append(value - (ratio * math.sqrt(j / (j + 1)) * h[j - 1] if j else 0.0))
    return h


def levels_hermite(levels: Any, x: Any, levels_of: Any) -> list[Any]:
    """Hermite polynomials."""
    h = _series(np.ones(len(x)), _z(levels, x), levels["ratio"], levels["n"])
    return [_column(one) for one in h]


def levels_mehler(levels: Any, x: Any, levels_of: Any) -> list[Any]:
    """Hermite functions, whose products sum up to a Gaussian kernel."""
    z = _z(levels, x)
    rotation = levels["rotation"] or []
    start = levels["height"] * np.exp(-levels["decay"] * z * z)
    n_single = levels["n_single"]
    h = _series(start, levels["root"] * z, levels["ratio"], n_single + len(rotation))
    found = [np.ones((len(x), 1))] if levels["constant"] else []
    found += [_column(one) for one in h[:n_single]]
    if rotation:
        found.append(np.array(h[n_single:]).T @ np.array(rotation, dtype=float))
    return found


def levels_kernel(levels: Any, x: Any, levels_of: Any) -> list[Any]:
    """Features of a kernel from its values at a few points."""
    z = _z(levels, x)
    u: list[Any] = []
    for pivot, row in zip(levels["pivots"], levels["factor"], strict=True):
        value = _kernel(levels["kernel"], pivot, z)
        for a, b in zip(row, u, strict=False):
            value = value - a * b
        u.append(value / row[-1])
    features = np.array(u).T
    if levels["rotation"] is not None:
        features = features @ np.array(levels["rotation"], dtype=float)
    found = [np.ones((len(x), 1)) if word == "one" else _column(z) for word in levels["before"]]
    ends = np.cumsum(levels["widths"])
    pieces = [features[:, e - w : e] for e, w in zip(ends, levels["widths"], strict=True)]
    return [*found, *pieces]


def _kernel(kernel: Any, p: float, z: Any) -> Any:
    if kernel["name"] == "gaussian":
        return np.exp(-kernel["b"] * (p - z) ** 2)
    if kernel["name"] == "laplace":
        return np.exp(-kernel["b"] * np.abs(p - z))
    small, large = np.minimum(abs(p), np.abs(z)), np.maximum(abs(p), np.abs(z))
    return np.where(p * z > 0.0, small**2 * (3.0 * large - small), 0.0)


def levels_branches(levels: Any, x: Any, levels_of: Any) -> dict[int, Any]:
    """The levels of several bases of one column, from the start of each on."""
    found = {0: np.ones((len(x), 1))}
    for start, part in zip(levels["starts"], levels["parts"], strict=True):
        own = levels_of[part["kind"]](part, x, levels_of)[1:]
        found |= {start + i: level for i, level in enumerate(own)}
    return found


READERS = {
    "number": read_numbers,
    "boolean": read_booleans,
    "category": read_categories,
    "date": read_dates,
    "duration": read_durations,
}
PARTS = {
    "days": part_days,
    "length": part_length,
    "hour": part_hour,
    "weekday": part_weekday,
    "year": part_year,
    "day of year": part_day_of_year,
}
LEVELS: dict[str, Any] = {
    "constant": levels_constant,
    "lookup": levels_lookup,
    "orthonormal": levels_orthonormal,
    "asinh": levels_asinh,
    "interpolation": levels_interpolation,
    "powers": levels_powers,
    "periodic": levels_periodic,
    "hermite": levels_hermite,
    "mehler": levels_mehler,
    "kernel": levels_kernel,
    "branches": levels_branches,
}
