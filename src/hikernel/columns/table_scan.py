"""What the encoding of a table depends on, found block by block: a small table like the large one.

The kinds of columns, their categories, the parts of dates and which columns have missing values
follow from few values: the extremes of a column of numbers, the first and the last time of every
day, and the distinct values of all else. A table of these has the encoding of the whole table.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hikernel.columns.named_columns import named_columns
from hikernel.columns.reading import RawColumn, RawTable, check_names, read_table
from hikernel.columns.table import ColumnTable
from hikernel.engines.protocol import FloatArray

__all__ = ["BlockScan", "Encoding", "TableScan", "scanned"]

_MOST_DISTINCT = 10**6
"""Number of distinct values of a column of text that are kept on the way to its categories."""

_TOGETHER = 32
"""Number of blocks whose small tables become one."""


@dataclass(frozen=True)
class BlockScan:
    """A small table like a block, and the number of rows of the block."""

    table: RawTable
    n_rows: int


@dataclass(frozen=True)
class TableScan:
    """Takes a block of a table and returns a small table like it.

    Attributes
    ----------
    categorical, ordered
        As for :meth:`hikernel.columns.ColumnTable.fit_transform`.
    """

    categorical: Any = None
    ordered: Any = None

    def __call__(self, block: Any) -> BlockScan | None:
        """Return the scan of a block of a table, in any form that can be read; None if empty."""
        if len(block) == 0:
            return None
        raw = read_table(block)
        named, _, _ = named_columns(self.categorical, self.ordered, raw)
        columns = [_few(column, m in named) for m, column in enumerate(raw.columns)]
        return BlockScan(replace(raw, columns=columns, block=None), raw.n_rows)


@dataclass(frozen=True)
class Encoding:
    """Takes a block of a table and returns its matrix.

    Attributes
    ----------
    table : ColumnTable
        The encoding.
    """

    table: ColumnTable

    def __call__(self, block: Any) -> FloatArray:
        """Return the matrix of a block, shape (n, p)."""
        if len(block) == 0:
            return np.empty((0, len(self.table.names)))
        return self.table.transform(block)


def scanned(scans: Iterable[BlockScan | None]) -> tuple[RawTable, list[int]]:
    """Return a small table like all blocks together, and their numbers of rows.

    Raises
    ------
    ValueError
        If blocks have different columns, or orders of categories, or there is no row.
    """
    tables: list[RawTable] = []
    sizes = []
    for scan in scans:
        sizes.append(0 if scan is None else scan.n_rows)
        if scan is not None:
            tables.append(scan.table)
        if len(tables) == _TOGETHER:
            tables = [_one_table(tables)]
    if not tables:
        raise ValueError("X has no rows: Found array with 0 sample(s), and 2 are required.")
    return _one_table(tables), sizes


def _one_table(tables: Sequence[RawTable]) -> RawTable:
    """Return one small table like several together."""
    first = tables[0]
    for table in tables[1:]:
        if first.names is not None and table.names is not None:
            check_names(first.names, table.names)
        if len(table.columns) != len(first.columns):
            raise ValueError(
                f"The parts of X have {len(first.columns)} and {len(table.columns)} columns; "
                "give all the same ones."
            )
    every = zip(*(table.columns for table in tables), strict=True)
    columns = [_joined(list(parts)) for parts in every]
    longest = max(len(column.values) for column in columns)
    return replace(first, columns=[_padded(column, longest) for column in columns])


def _few(column: RawColumn, is_category: bool) -> RawColumn:
    """Return few values of a column from which the same follows; a missing one, if any, last."""
    import pandas as pd

    values = column.values
    known = values[~np.asarray(pd.isna(values), dtype=np.bool_)]
    kind = values.dtype.kind
    if column.declared_category or is_category or kind not in "fiumM" or not known.size:
        kept = _distinct(known)
        if kept.size > _MOST_DISTINCT:
            raise ValueError(
                f"Column {column.name!r} has more than {_MOST_DISTINCT:,} distinct values, like an "
                "identifier; leave it out, or turn it into numbers."
            )
    elif kind == "M":
        kept = _ends_of_days(known)
    else:
        kept = np.array([known.min(), known.max()], dtype=values.dtype)
    if known.size < values.size:
        missing = values[np.asarray(pd.isna(values), dtype=np.bool_)][:1]
        kept = np.concatenate([kept, missing])
    return replace(column, values=kept)


def _distinct(values: NDArray[Any]) -> NDArray[Any]:
    import pandas as pd

    plain = values.astype(object) if values.dtype.kind == "U" else values
    try:
        return np.asarray(pd.unique(plain))
    except TypeError:  # values that cannot be hashed are refused with a sentence later
        return plain[:1]


def _ends_of_days(times: NDArray[Any]) -> NDArray[Any]:
    """Return the first and the last time of every day."""
    order = np.sort(times)
    days = order.astype("datetime64[D]")
    first = np.flatnonzero(np.append(True, days[1:] != days[:-1]))
    last = np.append(first[1:], len(order)) - 1
    return np.unique(order[np.concatenate([first, last])])


def _joined(parts: list[RawColumn]) -> RawColumn:
    """Return one column of the values of the same column in several blocks."""
    first = parts[0]
    orders = {part.order for part in parts if part.order is not None}
    if len(orders) > 1:
        raise ValueError(
            f"The categories of column {first.name!r} have different orders in parts of X; give "
            "all parts the same dtype."
        )
    zones = {part.zone for part in parts}
    if len(zones) > 1:
        raise ValueError(
            f"Column {first.name!r} has different time zones in parts of X; give all the same one."
        )
    kinds = {part.values.dtype.kind for part in parts}
    values = [part.values for part in parts]
    if len(kinds) > 1 and not kinds <= set("fiu"):
        values = [value.astype(object) for value in values]
    column = RawColumn(
        first.name,
        np.concatenate(values),
        any(part.declared_category for part in parts),
        next(iter(orders), None),
        any(part.ordered for part in parts),
        first.zone,
    )
    return _few(column, True)


def _padded(column: RawColumn, n_rows: int) -> RawColumn:
    """Return a column made longer by its first value."""
    more = np.full(n_rows - len(column.values), column.values[0], dtype=column.values.dtype)
    return replace(column, values=np.concatenate([column.values, more]))
