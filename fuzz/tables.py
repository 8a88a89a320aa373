"""Random tables, targets and weights, most of them strange.

Everything is drawn from one NumPy generator, so that a case is the same on every machine.
"""

from __future__ import annotations

import datetime
import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import scipy.sparse as sp

__all__ = ["COLUMNS", "NAMES", "container", "some", "table", "target", "weights"]

SCALES = (1e-300, 5e-324, 1e-160, 1e-20, 1e-3, 1.0, 1.0, 1e6, 1e20, 1e155, 1e300)
WORDS = (
    "Oslo",
    "Bérgen",
    "東京",
    "",
    " ",
    "NaN",
    "a,b",
    "x > 1",
    "é",
    "e\u0301",
    "\u202eabc",
    "😀",
    "None",
)


def some(rng, choices):
    """Return one of some choices, whatever they are."""
    choices = list(choices)
    return choices[int(rng.integers(len(choices)))]


def _normal(rng, n):
    return rng.standard_normal(n)


def _scaled(rng, n):
    return rng.standard_normal(n) * some(rng, SCALES)


def _wide(rng, n):
    """Numbers over the whole range of floating point in one column."""
    return 10.0 ** rng.uniform(-300, 300, n) * rng.choice([-1.0, 1.0], n)


def _shifted(rng, n):
    """Small differences on a large number."""
    return 10.0 ** rng.integers(3, 17) + rng.standard_normal(n)


def _missing(rng, n):
    return np.where(
        rng.random(n) < some(rng, (0.1, 0.5, 0.95, 1.0)), np.nan, rng.standard_normal(n)
    )


def _infinite(rng, n):
    return np.where(rng.random(n) < 0.1, some(rng, (np.inf, -np.inf)), rng.standard_normal(n))


def _spike(rng, n):
    out = np.zeros(n)
    out[rng.integers(max(n, 1)) : rng.integers(max(n, 1)) + 1] = some(rng, SCALES)
    return out


def _integers(rng, n):
    kind = some(rng, ("int8", "uint8", "int64", "uint64"))
    info = np.iinfo(kind)
    return rng.integers(info.min, info.max, n, dtype=kind, endpoint=True)


def _mixed(rng, n):
    pool = [1, 2.5, None, "a", np.nan, True, Decimal("1.5"), Fraction(1, 3), b"x", (1, 2), "1.5"]
    return np.array(
        [some(rng, pool) if rng.random() < 0.9 else [1] for _ in range(n)] + [None], object
    )[:-1]


def _decimals(rng, n):
    return np.array([Decimal(int(v)) / 7 for v in rng.integers(-9, 9, n)] + [None], object)[:-1]


def _words(rng, n):
    return np.array([some(rng, WORDS) for _ in range(n)] + [None], object)[:-1]


def _days(rng, n):
    start = some(rng, (np.datetime64("2020-01-01"), np.datetime64("1700-01-01")))
    days = start.astype("datetime64[ns]") + rng.integers(0, 3000, n).astype("timedelta64[h]")
    return np.where(rng.random(n) < 0.05, np.datetime64("NaT"), days)


def _moments(rng, n):
    return np.array(
        [datetime.date(2020, 1, 1 + int(d)) for d in rng.integers(0, 28, n)] + [None], object
    )[:-1]


def _nullable(rng, n):
    values = [None if rng.random() < 0.2 else int(rng.integers(0, 4)) for _ in range(n)]
    kind = some(rng, ("Int64", "UInt8", "Float32", "boolean"))
    return pd.array(
        [None if v is None else v % 2 if kind == "boolean" else v for v in values], dtype=kind
    )


def _categories(rng, n):
    codes = rng.integers(-1, 3, n)
    return pd.Categorical.from_codes(
        codes, ["low", "fair", "good"], ordered=bool(rng.random() < 0.5)
    )


def _odd(rng, n):
    return some(
        rng,
        (
            rng.standard_normal(n) + 1j,
            pd.Series(pd.period_range("2020-01", periods=n, freq="M")),
            pd.arrays.IntervalArray.from_breaks(np.arange(n + 1.0)),
            rng.integers(0, 9, n).astype("timedelta64[s]"),
            pd.Series(pd.date_range("2020-01-01", periods=n, freq="h", tz="Europe/Oslo")),
            np.full(n, b"abc"),
            rng.standard_normal(n).astype(np.float16),
            rng.standard_normal(n).astype(np.longdouble),
            rng.standard_normal(n).astype(">f8"),
            pd.Series([{}] * n, dtype=object),
            pd.arrays.SparseArray(rng.integers(0, 2, n).astype(float)),
        ),
    )


COLUMNS = {
    "normal": _normal,
    "scaled": _scaled,
    "wide": _wide,
    "shifted": _shifted,
    "missing": _missing,
    "infinite": _infinite,
    "spike": _spike,
    "constant": lambda rng, n: np.full(n, some(rng, (0.0, 1.0, 1e300, -5e-324, 0.1))),
    "two values": lambda rng, n: rng.integers(0, 2, n) * some(rng, SCALES),
    "boolean": lambda rng, n: rng.random(n) < 0.5,
    "float32": lambda rng, n: rng.standard_normal(n).astype(np.float32),
    "integers": _integers,
    "few": lambda rng, n: rng.integers(0, 4, n),
    "distinct": lambda rng, n: rng.permutation(n),
    "mixed": _mixed,
    "decimals": _decimals,
    "words": _words,
    "identifiers": lambda rng, n: np.array([f"id{i}" for i in range(n)] + [None], object)[:-1],
    "days": _days,
    "dates": _moments,
    "nullable": _nullable,
    "categories": _categories,
    "odd": _odd,
}
TAME = ("normal", "normal", "few", "two values", "shifted", "float32", "constant", "distinct")
FINITE = (*TAME, "scaled", "wide", "missing", "spike", "boolean")
NUMBERS = (*FINITE, "infinite")
USABLE = (*TAME, "missing", "boolean", "words", "days", "nullable", "categories", "dates")

NAMES = (
    "a",
    "b",
    "size",
    "größe",
    "价格",
    "x0",
    "x1",
    "x0 > 1",
    "",
    " ",
    "a b",
    'q"uote',
    "a\nb",
    "1",
    "missing",
    "x (missing)",
    "😀",
    "e\u0301",
    "é",
    "constant",
    "y",
    "term",
    "None",
    "a:b",
    "a * b",
    "\ud800",
)


def size(rng, tame):
    """Return a number of rows and columns: mostly small, seldom none, one, or many columns."""
    n = int(some(rng, (5, 7, 10, 12, 15, 18, 20, 25, 30, 40)))
    p = int(some(rng, (1, 1, 2, 2, 3, 3, 4)))
    if not tame and rng.random() < 0.3:
        n, p = int(rng.integers(0, 5)), int(rng.integers(0, 3))
    return (n, p) if rng.random() > 0.002 else (min(n, 12), 5000)


def table(rng, n, p, tame):
    """Return X and a word for its kind; n and p are what was asked for, not always what it has.

    A tame table is one that a fit should take; most of its columns are still strange.
    """
    if p > 100:
        return container(rng, rng.standard_normal((n, p)), ("array", "csr", "frame"))
    how = rng.random()
    if tame and how > 0.75:
        return _frame(rng, [COLUMNS[some(rng, USABLE)](rng, n) for _ in range(p)], n, tame)
    if tame or how < 0.45:
        kinds = [some(rng, TAME if how < 0.45 else FINITE) for _ in range(p)]
    elif how < 0.75:
        kinds = [some(rng, NUMBERS) for _ in range(p)]
    else:
        return _frame(rng, [COLUMNS[some(rng, COLUMNS)](rng, n) for _ in range(p)], n, tame)
    values = np.zeros((n, p))
    with np.errstate(all="ignore"):
        for m, kind in enumerate(kinds):
            values[:, m] = COLUMNS[kind](rng, n)
        if p > 1 and rng.random() < 0.15:  # perfect collinearity
            values[:, 0] = values[:, 1] * some(rng, (1.0, -1.0, 1e-8)) + some(rng, (0.0, 1.0))
    if n and rng.random() < 0.05:  # repeated rows
        values = values[rng.integers(0, max(1, n // 3), n)]
    return container(rng, values, GOOD if tame else CONTAINERS)


def _names(rng, p):
    if rng.random() < 0.5:
        return [f"c{m}" for m in range(p)]
    pool = [*NAMES, 3, 0, 1.5, None, ("a", "b"), True, np.nan, pd.Timestamp("2020-01-01")]
    if rng.random() < 0.7:
        pool = NAMES
    return [some(rng, pool) for _ in range(p)]


def _frame(rng, columns, n, tame):
    """A data frame of columns of any type, of pandas or polars, with strange names at times."""
    names = [f"ü{m}" for m in range(len(columns))] if tame else _names(rng, len(columns))
    frame = pd.concat(
        [pd.Series(column, index=range(n)) if n else pd.Series(column) for column in columns]
        or [pd.Series(dtype=float)],
        axis=1,
    ).iloc[:, : len(columns)]
    frame.columns = pd.Index(names, dtype=object, tupleize_cols=False)
    how = rng.random()
    if how < 0.15:
        frame.index = pd.Index(rng.integers(0, max(1, n // 2), n))
        return frame, "frame with repeated index"
    if how < 0.3:
        try:
            frame.columns = [str(name) for name in names]
            return pl.from_pandas(frame), "polars"
        except Exception:  # what polars does not take is no case
            return frame, "frame"
    if how < 0.36:
        return frame.to_numpy(dtype=object), "objects"
    return frame, "frame"


def container(rng, values, kinds):
    """Return numbers in a container of one of some kinds, and the kind."""
    kind = some(rng, kinds)
    p = values.shape[1]
    if kind == "frame":
        return pd.DataFrame(values, columns=pd.Index(_names(rng, p), dtype=object)), kind
    if kind in ("polars", "arrow"):
        data = {f"c{m}": values[:, m] for m in range(p)}
        return (pl.DataFrame(data) if kind == "polars" else pa.table(data)), kind
    made = {
        "array": lambda: values,
        "Fortran": lambda: np.asfortranarray(values),
        "read-only": lambda: _frozen(values),
        "strided": lambda: np.repeat(np.repeat(values, 2, 0), 3, 1)[::2, ::3],
        "reversed": lambda: values[::-1, ::-1],
        "list": values.tolist,
        "float32": lambda: values.astype(np.float32),
        "objects": lambda: values.astype(object),
        "matrix": lambda: _matrix(values),
        "masked": lambda: np.ma.masked_array(values, mask=rng.random(values.shape) < 0.1),
        "text": lambda: values.astype(str),
        "complex": lambda: values.astype(complex),
        "vector": lambda: values.ravel(),
        "cube": lambda: values[None],
        "series": lambda: pd.Series(values[:, 0] if p else []),
        "dict": lambda: {m: values[:, m] for m in range(p)},
        "ragged": lambda: [row[: 1 + i % 2] for i, row in enumerate(values.tolist())],
        "none": lambda: None,
        "scalar": lambda: 3.0,
        "sparse frame": lambda: pd.DataFrame(_gappy(rng, values)).astype(
            pd.SparseDtype(float, 0.0)
        ),
        "csr": lambda: sp.csr_array(_gappy(rng, values)),
        "csc": lambda: sp.csc_matrix(_gappy(rng, values)),
        "coo": lambda: sp.coo_array(_gappy(rng, values)),
    }
    with np.errstate(all="ignore"):
        return made[kind](), kind


GOOD = (
    *("array",) * 3,
    *("frame",) * 2,
    "Fortran",
    "read-only",
    "strided",
    "reversed",
    "list",
    "objects",
    "polars",
    "arrow",
    "csr",
    "csc",
)
CONTAINERS = (
    *GOOD,
    *GOOD,
    "float32",
    "matrix",
    "masked",
    "text",
    "complex",
    "vector",
    "cube",
    "series",
    "dict",
    "ragged",
    "none",
    "scalar",
    "sparse frame",
    "coo",
)


def _matrix(values):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy wants no new ones
        return np.asmatrix(values)


def _frozen(values):
    out = values.copy()
    out.setflags(write=False)
    return out


def _gappy(rng, values):
    return np.where(rng.random(values.shape) < 0.6, 0.0, values)


def target(rng, n, kind, tame):
    """Return y of n rows for "numbers", "labels" or "times", and a word for what it is."""
    makers = {"numbers": _NUMBERS, "labels": _LABELS, "times": _TIMES}[kind]
    how = some(rng, list(makers)[:3] if tame or rng.random() < 0.5 else makers)
    with np.errstate(all="ignore"):
        y = makers[how](rng, n)
    wrap = rng.random() * (0.25 if tame else 1.0)
    if isinstance(y, np.ndarray) and y.ndim == 1 and y.dtype.names is None:
        if wrap < 0.1:
            return y.tolist(), how
        if wrap < 0.2:
            return pd.Series(y, index=range(5, 5 + len(y)), name=some(rng, NAMES)), how
        if wrap < 0.25:
            return _frozen(y), how
        if wrap < 0.3:
            return y.reshape(-1, 1), f"{how}, a column"
        if wrap < 0.34 and y.dtype.kind in "fiub":
            return pl.Series("y", y), how
        if wrap < 0.38:
            return y[: max(0, n - 1)], f"{how}, too short"
    return y, how


_NUMBERS = {
    "sizes": lambda rng, n: rng.gamma(2.0, 1.0, n),
    "counts": lambda rng, n: rng.poisson(2.0, n) + 1.0 * (np.arange(n) < 2),
    "signal": _normal,
    "scaled": _scaled,
    "wide": _wide,
    "shifted": _shifted,
    "constant": lambda rng, n: np.full(n, some(rng, (0.0, 1.0, -3.5, 1e300, 5e-324))),
    "integers": _integers,
    "boolean": lambda rng, n: rng.random(n) < 0.5,
    "one other": _spike,
    "missing": _missing,
    "infinite": _infinite,
    "words": _words,
    "mixed": _mixed,
    "days": _days,
    "nullable": _nullable,
    "two columns": lambda rng, n: rng.standard_normal((n, 2)),
    "complex": lambda rng, n: rng.standard_normal(n) + 1j,
    "decimals": _decimals,
    "none": lambda rng, n: None,
    "text numbers": lambda rng, n: rng.standard_normal(n).astype(str),
}
_LABELS = {
    "two": lambda rng, n: rng.integers(0, 2, n),
    "three": lambda rng, n: np.array(["a", "b", "c"])[rng.integers(0, 3, n)],
    "boolean": lambda rng, n: rng.random(n) < 0.5,
    "one": lambda rng, n: np.full(n, "only"),
    "all": lambda rng, n: np.arange(n),
    "rare": lambda rng, n: (np.arange(n) == 0).astype(int),
    "words": _words,
    "categories": _categories,
    "mixed": _mixed,
    "floats": _normal,
    "whole floats": lambda rng, n: rng.integers(0, 3, n).astype(float),
    "missing": _missing,
    "nullable": _nullable,
    "days": _days,
    "none": lambda rng, n: None,
}


def _times(event, time):
    out = np.zeros(len(time), dtype=[("event", bool), ("time", float)])
    out["event"], out["time"] = event, time
    return out


_TIMES = {
    "times": lambda rng, n: _times(rng.random(n) < 0.7, rng.exponential(1.0, n)),
    "ties": lambda rng, n: _times(rng.random(n) < 0.7, rng.integers(1, 4, n)),
    "columns": lambda rng, n: np.column_stack([rng.random(n) < 0.7, rng.exponential(1.0, n)]),
    "no event": lambda rng, n: _times(np.zeros(n, bool), rng.exponential(1.0, n)),
    "one event": lambda rng, n: _times(np.arange(n) == 0, rng.exponential(1.0, n)),
    "scaled": lambda rng, n: _times(rng.random(n) < 0.7, abs(_scaled(rng, n))),
    "negative": lambda rng, n: _times(rng.random(n) < 0.7, rng.standard_normal(n)),
    "missing": lambda rng, n: _times(rng.random(n) < 0.7, _missing(rng, n)),
    "numbers": _normal,
    "none": lambda rng, n: None,
}


def weights(rng, n, tame):
    """Return sample weights: none most of the time, else good ones and bad ones."""
    if rng.random() < 0.6:
        return None
    if tame:
        return some(rng, (rng.uniform(0.1, 2.0, n), 1e-310 * rng.uniform(0.5, 1.0, n)))
    makers = (
        lambda: rng.uniform(0.1, 2.0, n),
        lambda: rng.integers(0, 3, n),
        lambda: rng.integers(0, 2, n).astype(float),
        lambda: np.full(n, 5e-324) * rng.integers(0, 5, n),
        lambda: 10.0 ** rng.uniform(-300, 300, n),
        lambda: np.where(np.arange(n) == 0, 1.0, 1e-200),
        lambda: np.full(n, 1e308),
        lambda: rng.standard_normal(n),
        lambda: np.full(n, np.nan),
        lambda: np.ones(n + 1),
        lambda: ["heavy"] * n,
        lambda: pd.Series(np.ones(n), index=range(7, 7 + n)),
        lambda: np.ones((n, 1)),
        lambda: 2.0,
        lambda: np.zeros(n),
        lambda: (rng.random(n) < 0.5).tolist(),
        lambda: np.where(rng.random(n) < 0.2, np.inf, 1.0),
    )
    return some(rng, makers)()
