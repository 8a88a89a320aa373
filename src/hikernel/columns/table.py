"""The encoding of a training table as a matrix, stored so that it can be applied to new tables."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hikernel.columns.kinds import (
    UNSEEN,
    WEEKDAYS,
    Category,
    DateColumn,
    Kind,
    Part,
    check_finite,
    find_categories,
    find_kind,
    holds_dates,
    order_categories,
    to_booleans,
    to_codes,
    to_numbers,
)
from hikernel.columns.reading import (
    RawColumn,
    RawTable,
    check_names,
    read_table,
    unused_name,
)
from hikernel.engines.protocol import FloatArray
from hikernel.graphs import RowSet

__all__ = ["ColumnTable", "TableRows"]

_MANY = 32
"""Number of categories above which text that looks like dates is probably meant as dates."""


@dataclass(frozen=True)
class ColumnTable:
    """The encoding of a table, found in ``fit``: plain data that can be saved without pickle.

    The matrix has the columns of the table in their order, a column of dates as its first part.
    After them come the other parts of dates (see :mod:`hikernel.columns.dates`), and then one
    column of zeros and ones, "<name> is missing", for every column with some, but not all, values
    missing in ``fit``:

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
    dates : tuple of DateColumn
        The columns of dates and durations with their parts.

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
    dates: tuple[DateColumn, ...] = ()

    @property
    def input_names(self) -> tuple[str, ...]:
        """Names of the columns of the table, without words about parts of dates."""
        own = {date.column: date.name for date in self.dates}
        return tuple(own.get(m, name) for m, name in enumerate(self.names[: self.n_features_in]))

    @property
    def n_values(self) -> int:
        """Number of columns of the matrix before the indicators."""
        return len(self.names) - len(self.indicators)

    def input_of(self, m: int) -> int:
        """Return the column of the table from which a column of the matrix is made."""
        if m >= self.n_values:
            return self.indicators[m - self.n_values]
        found = self.part(m)
        return m if found is None else found[0].column

    def part(self, m: int) -> tuple[DateColumn, Part] | None:
        """Return the date and the part of it that column m of the matrix holds, or None."""
        place = self.n_features_in
        for date in self.dates:
            if m == date.column:
                return date, date.parts[0]
            if place <= m < place + len(date.parts) - 1:
                return date, date.parts[1 + m - place]
            place += len(date.parts) - 1
        return None

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
            Names or positions of further columns to treat as categories, or names of parts of
            dates. Where the names of the columns are integers, an integer is a name.
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
            For infinity, text or dates mixed with other values, no rows or columns, a repeated
            column name, or a column in ``categorical`` that X does not have.
        """
        raw = X if isinstance(X, RawTable) else read_table(X)
        inputs = [column.name for column in raw.columns]
        orders: dict[int, Any] = {m: None for m, c in enumerate(raw.columns) if c.ordered}
        chosen = set(orders)
        others: list[str] = []
        if categorical is not None or ordered is not None:
            from hikernel.columns.named_columns import named_columns, named_parts

            named, given, others = named_columns(categorical, ordered, raw)
            chosen |= named
            orders |= given
        dates, columns = _find_dates(raw, chosen)
        names = [column.name for column in columns]
        if others:
            chosen |= named_parts(others, names, raw)
        kinds: list[Kind] = []
        categories: list[tuple[Category, ...] | None] = []
        for m, column in enumerate(columns):
            kinds.append("category" if m in chosen else find_kind(column))
            found = None
            if kinds[m] == "category":
                known = m in orders
                found = order_categories(column, orders[m]) if known else find_categories(column)
                if column.order is WEEKDAYS:  # a part of a date, not a column that looks like one
                    found = WEEKDAYS
                elif m not in chosen and len(found) > _MANY:
                    _warn_of_dates(column.name, found)
            categories.append(found)
        table = cls(
            tuple(names),
            tuple(kinds),
            tuple(categories),
            len(inputs),
            raw.names,
            (),
            tuple(sorted(orders)),
            raw.labels is not None,
            dates,
        )
        matrix = table._encoded(columns, raw)
        missing = np.isnan(matrix[:, : len(inputs)]).sum(axis=0)
        indicators = tuple(int(m) for m in np.flatnonzero((missing > 0) & (missing < raw.n_rows)))
        for m in indicators:
            names.append(unused_name(f"{inputs[m]} is missing", names))
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
        columns = raw.columns
        if self.dates:
            from hikernel.columns.dates import part_columns

            columns = part_columns(columns, self.dates, self.names)
        return self._with_indicators(self._encoded(columns, raw))

    def _with_indicators(self, matrix: FloatArray) -> FloatArray:
        """Return the matrix with the indicators of missing values appended."""
        if not self.indicators:
            return matrix
        missing = np.isnan(matrix[:, self.indicators])
        return np.concatenate([matrix, missing], axis=1, dtype=np.float64)

    def _encoded(self, columns: Sequence[RawColumn], raw: RawTable) -> FloatArray:
        """Return columns as floats, shape (n, n_values): those of a table with dates in parts."""
        kinds = self.kinds[: self.n_values]
        if raw.block is not None and all(kind == "number" for kind in kinds) and not self.dates:
            with np.errstate(over="ignore"):
                block = np.asarray(raw.block, dtype=np.float64)
            check_finite(self.names, block)
            return block
        # Fortran order, since columns are used one at a time from here on.
        matrix = np.empty((raw.n_rows, self.n_values), order="F")
        for m, column in enumerate(columns):
            # Error messages use the column names of fit, since an array has none.
            matrix[:, m] = self._encode(
                m, RawColumn(self.names[m], column.values, zone=column.zone)
            )
        return matrix

    def _encode(self, m: int, column: RawColumn) -> FloatArray:
        known = self.categories[m]
        if known is not None:
            codes = to_codes(column, known)
            return np.where(codes == UNSEEN, np.nan, codes) if m in self.ordered else codes
        return to_numbers(column) if self.kinds[m] == "number" else to_booleans(column)

    def _check_columns(self, raw: RawTable) -> None:
        if self.feature_names_in is not None and raw.names is not None:
            check_names(self.feature_names_in, raw.names)
        if self.labelled and raw.labels is not None:
            given = tuple(column.name for column in raw.columns)
            check_names(self.input_names, given)
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


def _find_dates(
    raw: RawTable, categories: Collection[int]
) -> tuple[tuple[DateColumn, ...], Sequence[RawColumn]]:
    """Return the columns of dates that are no categories, and all columns with their parts."""
    if raw.block is not None:
        return (), raw.columns
    positions = [m for m, c in enumerate(raw.columns) if m not in categories and holds_dates(c)]
    if not positions:
        return (), raw.columns
    from hikernel.columns.dates import find_dates, part_columns

    dates = find_dates(raw.columns, positions)
    return dates, part_columns(raw.columns, dates)


def _warn_of_dates(name: str, found: tuple[Category, ...]) -> None:
    """Warn if many categories are text that looks like dates."""
    from hikernel.columns.dates import warn_of_text

    warn_of_text(name, found)
