"""The encoding of a training table as a matrix, stored so that it can be applied to new tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hikernel.columns.kinds import (
    UNSEEN,
    Category,
    Kind,
    check_finite,
    find_categories,
    find_kind,
    order_categories,
    to_booleans,
    to_codes,
    to_numbers,
)
from hikernel.columns.reading import (
    RawColumn,
    RawTable,
    column_position,
    known_columns,
    read_table,
    unused_name,
)
from hikernel.engines.protocol import FloatArray
from hikernel.graphs import RowSet

__all__ = ["ColumnTable", "TableRows"]


@dataclass(frozen=True)
class ColumnTable:
    """The encoding of a table, found in ``fit``: plain data that can be saved without pickle.

    The matrix has the columns of the table in their order. After them comes one column of zeros
    and ones, "<name> is missing", for every column with some, but not all, values missing in
    ``fit``:

    ========  ==============================================================================
    kind      in the matrix
    ========  ==============================================================================
    number    the value; NaN where missing
    boolean   0 or 1; NaN where missing
    category  position in its categories; NaN where missing, -1 if not seen in ``fit``
    ========  ==============================================================================

    NaN and -1 contribute zero to every term with that variable (see
    :class:`hikernel.bases.Categorical` and :meth:`hikernel.bases.FittedBasis.transform`). So a row
    with an unseen category gets the average effect of that variable. The same holds for a missing
    value in a column that had no missing values in ``fit``. In an ordered column an unseen category
    has no place, and counts as missing. A column without any value in ``fit``
    is NaN in the matrix and counts as constant. It has no indicator, which would be constant too.

    Attributes
    ----------
    names : tuple of str
        Names of the columns of the matrix; x0, x1, ... if the table has no names. Names that are
        not strings are given as text, the parts of a tuple joined by " / ".
    kinds : tuple of {"number", "boolean", "category"}
        Kinds of the columns of the matrix.
    categories : tuple of (tuple or None)
        For each column of the matrix, its categories as str, bool, int or float: sorted numbers,
        then sorted text. None for other kinds.
    n_features_in : int
        Number of columns of the table.
    feature_names_in : tuple of str or None
        Names of these columns if the table was a frame with string names, otherwise None.
    indicators : tuple of int
        For each indicator column at the end of the matrix, the position of its table column.
    ordered : tuple of int
        Positions of the columns whose categories have an order; they are listed in that order.
    labelled : bool
        Whether ``names`` are those of a frame whose column names are not strings.

    Examples
    --------
    >>> import pandas as pd
    >>> X = pd.DataFrame({"age": [31.0, None, 58.0], "town": ["Oslo", "Bergen", "Oslo"]})
    >>> table, matrix = ColumnTable.fit_transform(X)
    >>> table.names
    ('age', 'town', 'age is missing')
    >>> matrix
    array([[31.,  1.,  0.],
           [nan,  0.,  1.],
           [58.,  1.,  0.]])
    """

    names: tuple[str, ...]
    kinds: tuple[Kind, ...]
    categories: tuple[tuple[Category, ...] | None, ...]
    n_features_in: int
    feature_names_in: tuple[str, ...] | None
    indicators: tuple[int, ...]
    ordered: tuple[int, ...] = ()
    labelled: bool = False

    @classmethod
    def fit_transform(
        cls, X: Any, *, categorical: Iterable[str | int] | None = None, ordered: Any = None
    ) -> tuple[ColumnTable, FloatArray]:
        """Find the kinds, categories and missing values of a table, and encode it.

        Parameters
        ----------
        X : array_like of shape (n, p), or data frame
            A NumPy array of numbers, booleans, text or objects, nested lists, or any eager frame
            that narwhals reads (pandas, polars, pyarrow). Kinds come from the dtypes; columns of
            text and of category types are categories. A ``RawTable`` from ``read_table`` is also
            accepted, here and in ``transform``.
        categorical : iterable of str or int, or mask of p booleans, optional
            Names or positions of further columns to treat as categories. Where the names of the
            columns are integers, an integer is a name.
        ordered : mapping or iterable of columns, optional
            Columns whose categories have an order, and that order; without one, that of numbers.
            Ordered dtypes need not be named.

        Returns
        -------
        tuple of (ColumnTable, ndarray of shape (n, len(names)))
            The encoding, and the matrix that ``transform`` returns for X.

        Raises
        ------
        TypeError
            For a sparse matrix, a lazy frame, and objects that are neither text nor numbers.
        ValueError
            For dates, infinity, text mixed with numbers, no rows or columns, a repeated column
            name, or a column in ``categorical`` that X does not have.
        """
        raw = X if isinstance(X, RawTable) else read_table(X)
        names = [column.name for column in raw.columns]
        orders: dict[int, Any] = {m: None for m, c in enumerate(raw.columns) if c.ordered}
        orders |= _check_ordered(ordered, names, raw)
        chosen = _check_categorical(categorical, names, raw) | orders.keys()
        kinds: list[Kind] = []
        categories: list[tuple[Category, ...] | None] = []
        for m, column in enumerate(raw.columns):
            kinds.append("category" if m in chosen else find_kind(column))
            found = None
            if kinds[m] == "category":
                known = m in orders
                found = order_categories(column, orders[m]) if known else find_categories(column)
            categories.append(found)
        in_order = tuple(sorted(orders))
        table = cls(
            tuple(names), tuple(kinds), tuple(categories), len(names), raw.names, (), in_order
        )
        table = replace(table, labelled=raw.labels is not None)
        matrix = table._matrix(raw)
        missing = np.isnan(matrix).sum(axis=0)
        indicators = tuple(int(m) for m in np.flatnonzero((missing > 0) & (missing < raw.n_rows)))
        for m in indicators:
            names.append(unused_name(f"{names[m]} is missing", names))
            kinds.append("boolean")
            categories.append(None)
        table = replace(
            table,
            names=tuple(names),
            kinds=tuple(kinds),
            categories=tuple(categories),
            indicators=indicators,
        )
        return table, table._with_indicators(matrix)

    def transform(self, X: Any) -> FloatArray:
        """Return the matrix of a table.

        Parameters
        ----------
        X : array_like of shape (n, n_features_in), or data frame
            The same columns in the same order, in any of the forms that ``fit_transform`` takes.
            Names are compared if both tables have them.

        Returns
        -------
        ndarray of shape (n, len(names)), float64
            May be X itself, so it must not be written to.

        Raises
        ------
        TypeError, ValueError
            As ``fit_transform``, and for columns that differ from those of ``fit``, and for text in
            a column of numbers.
        """
        raw = X if isinstance(X, RawTable) else read_table(X)
        self._check_columns(raw)
        return self._with_indicators(self._matrix(raw))

    def _with_indicators(self, matrix: FloatArray) -> FloatArray:
        """Return the matrix with the indicators of missing values appended."""
        if not self.indicators:
            return matrix
        missing = np.isnan(matrix[:, self.indicators])
        return np.concatenate([matrix, missing], axis=1, dtype=np.float64)

    def _matrix(self, raw: RawTable) -> FloatArray:
        """Return the columns of the table as floats, shape (n, n_features_in)."""
        names, kinds = self.names[: self.n_features_in], self.kinds[: self.n_features_in]
        if raw.block is not None and all(kind == "number" for kind in kinds):
            with np.errstate(over="ignore"):
                block = np.asarray(raw.block, dtype=np.float64)
            check_finite(names, block)
            return block
        # Fortran order, since columns are used one at a time from here on.
        matrix = np.empty((raw.n_rows, self.n_features_in), order="F")
        for m, column in enumerate(raw.columns):
            # Error messages use the column names of fit, since an array has none.
            matrix[:, m] = self._encode(m, RawColumn(names[m], column.values))
        return matrix

    def _encode(self, m: int, column: RawColumn) -> FloatArray:
        known = self.categories[m]
        if known is not None:
            codes = to_codes(column, known)
            return np.where(codes == UNSEEN, np.nan, codes) if m in self.ordered else codes
        return to_numbers(column) if self.kinds[m] == "number" else to_booleans(column)

    def _check_columns(self, raw: RawTable) -> None:
        if self.feature_names_in is not None and raw.names is not None:
            _check_names(self.feature_names_in, raw.names)
        if self.labelled and raw.labels is not None:
            given = tuple(column.name for column in raw.columns)
            _check_names(self.names[: self.n_features_in], given)
        if len(raw.columns) != self.n_features_in:
            raise ValueError(
                f"X has {len(raw.columns)} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in} features as input."
            )


@dataclass(frozen=True)
class TableRows(RowSet):
    """Rows of a table that was read and encoded once; indexing selects some of them.

    Attributes
    ----------
    table : ColumnTable
        The encoding of the table.
    matrix : ndarray of shape (n, p)
        The selected rows: finite numbers, codes of categories, and NaN.
    positions : ndarray of shape (n,)
        Positions of the selected rows among the rows that were read.
    n_read : int
        Number of rows that were read.
    labels : tuple or None
        Labels of the columns that are not strings, as the user gave them.
    """

    table: ColumnTable
    matrix: FloatArray
    positions: NDArray[np.intp]
    n_read: int
    labels: tuple[Any, ...] | None = None

    @classmethod
    def read(
        cls, raw: RawTable, categorical: Iterable[str | int] | None = None, ordered: Any = None
    ) -> TableRows:
        """Encode all rows of a table."""
        table, matrix = ColumnTable.fit_transform(raw, categorical=categorical, ordered=ordered)
        return cls(table, matrix, np.arange(len(matrix)), len(matrix), raw.labels)

    def __len__(self) -> int:
        return len(self.matrix)

    def __getitem__(self, rows: Any) -> TableRows:
        return replace(self, matrix=self.matrix[rows], positions=self.positions[rows])

    def alone(self, rows: Any) -> TableRows:
        """Return some rows as if no others had been read, in the encoding of all rows."""
        matrix = self.matrix[rows]
        return replace(self, matrix=matrix, positions=np.arange(len(matrix)), n_read=len(matrix))

    def column(self, m: int) -> FloatArray:
        """Return column m for all rows that were read, NaN in the rows that are not selected."""
        if len(self) == self.n_read:
            return np.ascontiguousarray(self.matrix[:, m])
        out = np.full(self.n_read, np.nan)
        out[self.positions] = self.matrix[:, m]
        return out

    def weights(self, weights: FloatArray) -> FloatArray:
        """Return weights for all rows that were read, zero for the rows that are not selected."""
        out = np.zeros(self.n_read)
        out[self.positions] = weights
        return out


def _check_categorical(
    categorical: Iterable[str | int] | None, names: list[str], raw: RawTable
) -> set[int]:
    """Return the positions of the columns that the user named as categories."""
    if categorical is None:
        return set()
    if isinstance(categorical, (str, bytes)) or not isinstance(categorical, Iterable):
        raise ValueError(
            f"categorical must be a list of column names or positions, got {categorical!r}."
        )
    keys = list(categorical)
    if any(isinstance(key, (bool, np.bool_)) for key in keys):
        return _read_mask(keys, len(names))
    return {_position("categorical", key, names, raw) for key in keys}


def _check_ordered(ordered: Any, names: list[str], raw: RawTable) -> dict[int, Any]:
    """Return the order of the columns that the user named as ordered; None where none is given."""
    if ordered is None:
        return {}
    if isinstance(ordered, (str, bytes)) or not isinstance(ordered, Iterable):
        raise ValueError(
            "ordered must be a mapping from columns to their categories in order, or a list of "
            f"columns, got {ordered!r}."
        )
    items = dict(ordered) if isinstance(ordered, Mapping) else dict.fromkeys(ordered)
    for key, order in items.items():
        if isinstance(order, str) or not isinstance(order, Iterable | None):
            raise ValueError(
                f"ordered[{key!r}] must list its categories in their order, got {order!r}."
            )
    return {
        _position("ordered", key, names, raw): None if order is None else list(order)
        for key, order in items.items()
    }


def _position(what: str, key: Any, names: list[str], raw: RawTable) -> int:
    """Return the position of a column that a parameter names; raise if there is none."""
    position = column_position(key, names, raw.labels, len(names))
    if position is None:
        unnamed = raw.names is None and raw.labels is None
        raise ValueError(
            f"{what} names the column {key!r}, which X does not have; its columns are "
            f"{known_columns(names, raw.labels, len(names))}"
            f"{'; X has no column names of its own' if unnamed else ''}."
        )
    return position


def _read_mask(keys: list[Any], n_columns: int) -> set[int]:
    """Return the positions at which a mask of the columns is true."""
    if len(keys) != n_columns or not all(isinstance(key, (bool, np.bool_)) for key in keys):
        raise ValueError(
            f"categorical holds True or False and {len(keys)} entries; pass the names or the "
            f"positions of the columns, or a mask of {n_columns} booleans, one for each column."
        )
    return {m for m, key in enumerate(keys) if key}


def _check_names(expected: tuple[str, ...], given: tuple[str, ...]) -> None:
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
