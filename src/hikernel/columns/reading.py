"""Read the columns of a table as NumPy arrays, without interpreting their values.

A table is a NumPy array, a nested list, or any eager frame that narwhals reads (pandas, polars,
pyarrow, modin, cuDF). Sparse matrices, lazy frames and anything without two dimensions are refused.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hikernel.checks import has_half_character

if TYPE_CHECKING:
    import narwhals.stable.v2 as nw

__all__ = [
    "RawColumn",
    "RawTable",
    "check_names",
    "column_position",
    "holds_sparse",
    "known_columns",
    "lies_in_blocks",
    "read_table",
    "unused_name",
]

_LARGE = 2**25
"""Numbers from which on an array that is mapped from a file is read in blocks (256 MiB)."""


@dataclass(frozen=True, eq=False)
class RawColumn:
    """One column as it was read.

    Parameters
    ----------
    name : str
        Name in error messages.
    values : ndarray of shape (n,)
        The values, of any dtype; missing ones are NaN, NaT, None or ``pandas.NA``.
    declared_category : bool
        Whether the dtype of the column is a category type.
    order : tuple or None
        All categories in the order in which the dtype declares them, if that may mean something.
    ordered : bool
        Whether the dtype says that it does.
    zone : str or None
        Time zone of a dtype of times; the values are then in UTC.
    """

    name: str
    values: NDArray[Any]
    declared_category: bool = False
    order: tuple[Any, ...] | None = None
    ordered: bool = False
    zone: str | None = None


@dataclass(frozen=True, eq=False)
class RawTable:
    """The columns of a table X as they were read.

    Parameters
    ----------
    columns : sequence of RawColumn
        At least one column, with at least one row.
    names : tuple of str or None
        Names of the columns if X is a frame with string names, otherwise None.
    block : ndarray of shape (n, p) or None
        X itself if it is an array of integers or floats, otherwise None.
    labels : tuple or None
        Labels of the columns if X is a frame whose names are not strings: integers, or the tuples
        of a MultiIndex. The names of the columns are their text.
    """

    columns: Sequence[RawColumn]
    names: tuple[str, ...] | None
    block: NDArray[Any] | None = None
    labels: tuple[Any, ...] | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.columns[0].values)


def read_table(X: Any) -> RawTable:
    """Read the columns of a table.

    Parameters
    ----------
    X : array_like of shape (n, p), or an eager data frame
        The table.

    Returns
    -------
    RawTable

    Raises
    ------
    TypeError
        For a sparse matrix, a lazy frame, a frame with nested columns, or column names of which
        only some are strings.
    ValueError
        For anything that is not a table, an empty table, or one with a repeated column name.
    """
    _refuse_sparse(X)
    if not isinstance(X, (np.ndarray, list, tuple)):
        frame = _as_frame(X)
        if frame is not None:
            return _read_frame(frame)
    return _read_array(_as_array(X))


def holds_sparse(X: Any) -> bool:
    """Return whether X is a SciPy sparse matrix or array, or a pandas frame that leaves out zeros.

    Frames of sparse columns that leave out another value, such as NaN, are read like others.
    """
    # If X is one of them, its module is already imported, so there is no need to import it.
    sparse, pd = sys.modules.get("scipy.sparse"), sys.modules.get("pandas")
    if sparse is not None and sparse.issparse(X):
        return True
    if pd is None or not isinstance(X, pd.DataFrame) or X.shape[1] == 0:
        return False
    return all(isinstance(dtype, pd.SparseDtype) and dtype.fill_value == 0 for dtype in X.dtypes)


def lies_in_blocks(X: Any) -> bool:
    """Return whether X is a table that is read in blocks (:mod:`hikernel.columns.block_table`).

    Of arrays that are mapped from a file only large ones are, and those that joblib makes never.
    """
    arrow, polars = sys.modules.get("pyarrow.dataset"), sys.modules.get("polars")
    if arrow is not None and isinstance(X, arrow.Dataset):
        return True
    if polars is not None and isinstance(X, polars.LazyFrame):
        return True
    if isinstance(X, np.memmap):
        plain = X.ndim == 2 and X.size >= _LARGE and X.dtype.kind in "fiu"
        return plain and "joblib_memmapping" not in str(X.filename)
    return bool(getattr(type(X), "in_blocks", False))


def _refuse_sparse(X: Any) -> None:
    sparse = sys.modules.get("scipy.sparse")
    if sparse is not None and sparse.issparse(X):
        raise TypeError(
            "X is a sparse matrix where a dense table is needed: only models that were fitted to a "
            "sparse X read one. Pass X.toarray() if it fits into memory (8 bytes an entry), keep "
            "fewer columns, or fit to a sparse X."
        )


def _as_frame(X: Any) -> nw.DataFrame[Any] | None:
    """Return X as a narwhals frame, or None if it is not a frame."""
    import narwhals.stable.v2 as nw
    from narwhals.exceptions import DuplicateError

    try:
        wrapped: Any = nw.from_native(X, allow_series=True, pass_through=True)
        if isinstance(wrapped, nw.DataFrame):
            _ = wrapped.columns
    except DuplicateError:
        raise ValueError(_duplicates(list(getattr(X, "column_names", X.columns)))) from None
    if isinstance(wrapped, nw.LazyFrame):
        raise TypeError(
            f"X is a lazy frame ({type(X).__module__}.{type(X).__name__}), whose rows are not "
            "there yet; call its collect() (compute() in dask) and pass the result."
        )
    if isinstance(wrapped, nw.Series):
        raise ValueError(_not_a_table((len(wrapped),)))
    return wrapped if isinstance(wrapped, nw.DataFrame) else None


def _duplicates(names: list[Any]) -> str:
    repeated = [repr(name) for name, count in Counter(map(str, names)).items() if count > 1]
    what = f"the column name(s) {', '.join(repeated[:5])}" if repeated else "a column name"
    return f"X has {what} more than once; give every column a name of its own."


def _read_frame(frame: nw.DataFrame[Any]) -> RawTable:
    _check_shape(frame.shape)
    native_names: list[Any] = list(frame.columns)
    strings = sum(isinstance(name, str) for name in native_names)
    if 0 < strings < len(native_names):
        kinds = sorted({type(name).__name__ for name in native_names})
        raise TypeError(
            "Feature names are only supported if all input features have string names, but your "
            f"input has {kinds} as feature name / column name types. Rename the columns, in "
            "pandas by X.columns = X.columns.astype(str)."
        )
    names = tuple(str(name) for name in native_names) if strings else None
    shown = names if names is not None else _names_of(native_names)
    halves = [name for name in shown if has_half_character(name)]
    if halves:
        raise ValueError(
            f"The column name {halves[0]!r} holds half a character (a lone surrogate), which no "
            "table of terms can show; rename the column."
        )
    columns = [
        _read_series(name, series) for name, series in zip(shown, frame.iter_columns(), strict=True)
    ]
    return RawTable(columns, names, labels=None if strings else tuple(native_names))


def _names_of(labels: Sequence[Any]) -> list[str]:
    """Return the text of labels that are not strings; that of a tuple joins its parts.

    >>> _names_of([0, 1]), _names_of([("size", "mm"), ("size", ""), ("size / mm",)])
    (['0', '1'], ['size / mm', 'size', 'size / mm (2)'])
    """
    names: list[str] = []
    for m, label in enumerate(labels):
        parts = label if isinstance(label, tuple) else (label,)
        text = " / ".join(str(part) for part in parts if str(part))
        names.append(unused_name(text or f"x{m}", names))
    return names


def unused_name(name: str, names: Sequence[str]) -> str:
    """Return ``name``, with a number appended if it is among ``names``."""
    number, candidate = 2, name
    while candidate in names:
        candidate = f"{name} ({number})"
        number += 1
    return candidate


def _read_series(name: str, series: Any) -> RawColumn:
    import narwhals.stable.v2 as nw

    dtype = series.dtype
    if dtype.is_nested():
        raise TypeError(_nested(name, dtype))
    if isinstance(dtype, nw.Unknown) and series.null_count() == len(series):
        return RawColumn(name, np.full(len(series), None, dtype=object))
    declared = isinstance(dtype, (nw.Categorical, nw.Enum))
    order, ordered = _declared_order(series) if declared else (None, False)
    if declared and series.implementation.is_pyarrow():
        # pyarrow's to_numpy replaces nulls of a chunked dictionary by the last dictionary entry.
        native = series.to_native()
        values = native.cast(native.type.value_type).to_numpy()
        return RawColumn(name, values, True, order, ordered)
    if isinstance(dtype, (nw.Decimal, nw.Int128, nw.UInt128)):
        series = series.cast(nw.Float64)
    zone = getattr(dtype, "time_zone", None)
    if zone is not None:
        series = series.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    values = series.to_numpy()
    if values.ndim != 1:  # extension types of polars, such as the intervals of pandas
        raise TypeError(_nested(name, series.to_native().dtype))
    return RawColumn(name, values, declared, order, ordered, zone)


def _nested(name: str, dtype: Any) -> str:
    return (
        f"Column {name!r} holds {dtype}; each argument must be a string or a real number, so "
        "split it into plain columns first."
    )


def _declared_order(series: Any) -> tuple[tuple[Any, ...] | None, bool]:
    """Return the categories of a dtype in their order, if it has one, and whether it is ordered.

    Ordered are the categoricals of pandas and the dictionaries of pyarrow that say so. An
    enumeration of polars lists its categories, but does not tell whether that is an order.
    """
    native = series.to_native()
    if series.implementation.is_pyarrow():
        if not native.type.ordered or native.num_chunks == 0:
            return None, False
        return tuple(native.unify_dictionaries().chunk(0).dictionary.to_pylist()), True
    if series.implementation.is_pandas_like():
        ordered = bool(getattr(native.dtype, "ordered", False))
        return (tuple(native.dtype.categories), True) if ordered else (None, False)
    categories = getattr(series.dtype, "categories", None)
    return (None if categories is None else tuple(categories)), False


def _as_array(X: Any) -> NDArray[Any]:
    try:
        array = np.asarray(X)
        if array.dtype.kind in "US" and not isinstance(X, np.ndarray):
            # NumPy turns the numbers of a mixed list into text; dtype object keeps them as numbers.
            array = np.asarray(X, dtype=object)
    except ValueError as error:
        raise ValueError(
            f"X could not be read as a table; are its rows equally long? ({error})"
        ) from None
    return array


def _read_array(array: NDArray[Any]) -> RawTable:
    if array.dtype.names is not None:
        raise ValueError(
            "X is a structured array; pass a data frame, for example pandas.DataFrame(X)."
        )
    _check_shape(array.shape)
    columns = [RawColumn(name, array[:, m]) for m, name in enumerate(_positions(array.shape[1]))]
    return RawTable(columns, None, array if array.dtype.kind in "fiu" else None)


def _positions(n_columns: int) -> tuple[str, ...]:
    return tuple(f"x{m}" for m in range(n_columns))


def _check_shape(shape: tuple[int, ...]) -> None:
    if len(shape) != 2:
        raise ValueError(_not_a_table(shape))
    for count, what in ((shape[1], "feature"), (shape[0], "sample")):
        if count == 0:
            raise ValueError(
                f"Found array with 0 {what}(s) (shape={shape}) while a minimum of 1 is required."
            )


def _not_a_table(shape: tuple[int, ...]) -> str:
    advice = " Reshape your data: X.reshape(-1, 1) for one column, X.reshape(1, -1) for one row."
    return (
        f"X must be a table with rows and columns, got an array of {len(shape)} dimension(s), "
        f"shape {shape}.{advice if len(shape) == 1 else ''}"
    )


def column_position(
    key: object, names: Sequence[str], labels: Sequence[Any] | None, n_positions: int
) -> int | None:
    """Return the position of the column that a user names; None if there is none.

    Parameters
    ----------
    key : object
        A label of the frame, a name, or a position.
    names : sequence of str
        Names of the columns.
    labels : sequence or None
        Labels of the columns of the table that are not strings. Among integers, one is a name and
        not a position.
    n_positions : int
        Number of columns that may be given by position.
    """
    integer = isinstance(key, (int, np.integer)) and not isinstance(key, bool)
    if labels is not None and not isinstance(key, bool) and isinstance(key, Hashable):
        found = {label: m for m, label in enumerate(labels)}.get(key)
        if found is not None or (integer and _are_integers(labels)):
            return found
    if isinstance(key, str):
        return {name: m for m, name in enumerate(names)}.get(key)
    return int(key) if integer and 0 <= key < n_positions else None  # type: ignore[operator, call-overload]


def known_columns(names: Sequence[str], labels: Sequence[Any] | None, n_positions: int) -> str:
    """Return the columns that a user may name, for error messages."""
    listed = ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
    if labels is not None and _are_integers(labels):
        return listed
    return f"{listed} (or positions 0 to {n_positions - 1})"


def _are_integers(labels: Sequence[Any]) -> bool:
    return any(isinstance(label, (int, np.integer)) for label in labels)


def check_names(expected: tuple[str, ...], given: tuple[str, ...]) -> None:
    """Raise unless the names are the same in the same order, with scikit-learn's message."""
    if given == expected:
        return
    lines = ["The feature names should match those that were passed during fit."]
    for title, left, right in (
        ("Feature names unseen at fit time:", given, expected),
        ("Feature names seen at fit time, yet now missing:", expected, given),
    ):
        rest = set(right)
        lost = [name for name in left if name not in rest]
        if lost:
            lines += [title, *(f"- {name}" for name in lost[:5])]
            lines += ["- ..."] if len(lost) > 5 else []
    if len(lines) == 1:
        lines.append("Feature names must be in the same order as they were in fit.")
    raise ValueError("\n".join(lines) + "\n")
