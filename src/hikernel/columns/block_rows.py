"""Rows of a table that lie in blocks: read once, encoded as matrices, and selected by number."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hikernel.bases import FittedBasis
from hikernel.bases.column import Column
from hikernel.columns.block_table import BlockTable
from hikernel.columns.column_summary import MOST_VALUES, ColumnSummary, weighted_median
from hikernel.columns.table import ColumnTable
from hikernel.columns.table_scan import Encoding, TableScan, scanned
from hikernel.engines.numpy_engine import NumpyEngine
from hikernel.engines.protocol import FloatArray
from hikernel.engines.row_blocks import (
    HeldBlocks,
    RowBlocks,
    Selection,
    as_slices,
    n_selected,
    split_rows_of_blocks,
)
from hikernel.graphs import RowSet

__all__ = ["BlockRows", "ColumnLevels", "StreamedRows", "Summary"]

_MOST_SAMPLE = 2**17
"""Number of rows up to which a sample is the whole."""

_GROUP = 2**16
"""Rows of a column that are summarised together."""


class Summary(NamedTuple):
    """The distribution of a column over some rows, and how many of them have a value."""

    column: Column
    n_rows: int


@dataclass(frozen=True)
class StreamedRows:
    """New rows in blocks, which are encoded whenever they are gone through, and only predicted.

    Attributes
    ----------
    table : ColumnTable
        The encoding of the training rows.
    source : BlockTable
        The new rows.
    """

    table: ColumnTable
    source: BlockTable
    in_blocks: ClassVar[bool] = True

    def __len__(self) -> int:
        raise ValueError(
            "X lies in blocks, for which there are predictions only; pass some of its rows, in "
            "memory, for explanations and error bars."
        )

    def __getitem__(self, rows: Any) -> FloatArray:
        len(self)  # raises
        raise IndexError

    def each(self, name: str, work: Callable[[FloatArray], Any]) -> Iterator[Any]:
        """Yield ``work(matrix)`` for the matrix of every block."""
        return self.source.blocks().map(name, Encoded(self.table, work))


@dataclass(frozen=True)
class Encoded:
    """Takes a block of a table, and computes with its matrix."""

    table: ColumnTable
    work: Callable[[FloatArray], Any]

    def __call__(self, block: Any) -> Any:
        """Return ``work(matrix)``."""
        return self.work(Encoding(self.table)(block))


@dataclass(frozen=True, eq=False)
class BlockRows(RowSet):
    """Training rows in blocks of matrices, made once and kept where the blocks lie.

    Attributes
    ----------
    table : ColumnTable
        The encoding of the table.
    blocks : RowBlocks
        Matrices: ``block[start:stop, m]`` is a part of a column.
    sizes : tuple of int
        Rows of every block.
    selections : tuple of (ndarray of int or None)
        Which rows of every block are selected.
    labels : tuple or None
        Labels of the columns that are not strings, as the user gave them.
    """

    table: ColumnTable
    blocks: RowBlocks
    sizes: tuple[int, ...]
    selections: tuple[Selection, ...]
    labels: tuple[Any, ...] | None = None
    in_blocks: ClassVar[bool] = True
    _known: list[tuple[FloatArray, list[Summary]]] = field(default_factory=list, repr=False)

    @classmethod
    def read(cls, source: BlockTable, categorical: Any, ordered: Any) -> BlockRows:
        """Find the encoding of a table, and encode its rows."""
        blocks = source.blocks()
        scans = blocks.map("scan", TableScan(categorical, ordered))
        small, sizes = scanned(scans)
        table, _ = ColumnTable.fit_transform(small, categorical=categorical, ordered=ordered)
        plain = source.plain_matrix()
        if plain is None or len(table.names) > source.n_columns or "category" in table.kinds:
            matrices = blocks.kept("encode", Encoding(table))
        else:
            matrices = HeldBlocks(as_slices(plain, sizes[0]))
        if list(matrices.map("rows", len)) != sizes:
            raise ValueError(
                "X had other rows when it was read a second time; write it to a file, or keep it "
                "in memory, so that every pass reads the same rows in the same order."
            )
        every = (None,) * len(sizes)
        return cls(table, matrices, tuple(sizes), every, small.labels)

    def __len__(self) -> int:
        return sum(n_selected(self.sizes, self.selections))

    def __getitem__(self, rows: Any) -> BlockRows:
        """Return some rows, given by increasing positions, a mask or a slice."""
        if isinstance(rows, slice):
            rows = np.arange(*rows.indices(len(self)))
        chosen = split_rows_of_blocks(self.sizes, self.selections, rows)
        return replace(self, selections=tuple(chosen), _known=[])

    def alone(self, rows: Any) -> BlockRows:
        """Raise: no bases are fitted to a few of the rows."""
        raise ValueError(
            "Subsamples of rows in blocks are not fitted by themselves; pass a sample of the rows "
            "that fits into memory."
        )

    def arguments(self, *vectors: FloatArray) -> Iterator[tuple[Any, ...]]:
        """Yield the selected rows of every block, their number and the parts of vectors."""
        start = 0
        counts = n_selected(self.sizes, self.selections)
        for count, selection in zip(counts, self.selections, strict=True):
            part = slice(start, start + count)
            yield (selection, count, *(vector[part] for vector in vectors))
            start += count

    def sample(self) -> tuple[NDArray[np.intp], FloatArray]:
        """Return the positions of evenly spaced rows, and their matrix.

        They do not depend on how rows are cut. All rows are taken where they are few.
        """
        step = max(1, -(-len(self) // _MOST_SAMPLE))
        positions = np.arange(0, len(self), step)
        chosen = self if step == 1 else self[positions]
        found = self.blocks.map("sample", MatrixOf(len(self.table.names)), chosen.arguments())
        return positions, np.concatenate(list(found))

    def missing(self) -> tuple[int, ...]:
        """Return the number of missing values in every column."""
        counting = MissingOf(len(self.table.names))
        counts = self.blocks.map("missing values", counting, self.arguments())
        return tuple(np.sum(list(counts), axis=0).tolist())

    def distribution(self, m: int, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return values of column m and their weights, as bases are fitted to them."""
        column = self.summaries(weights)[m].column
        return column.values, column.weights

    def summaries(self, weights: FloatArray) -> list[Summary]:
        """Return the distribution of every column under positive weights of the rows."""
        for known, found in self._known:
            if np.allclose(weights * (known[0] / weights[0]), known, rtol=1e-12, atol=0.0):
                return found
        positions, sample = self.sample()
        some = weights[positions]
        centers = [weighted_median(column, some) for column in sample.T]
        limits = [np.inf if kind == "category" else MOST_VALUES for kind in self.table.kinds]
        work = Summaries(tuple(centers), tuple(limits))
        parts = self.blocks.map("summaries", work, self.arguments(weights))
        self._known[:] = [(weights, _merged(parts, limits))]
        return self._known[0][1]


def _merged(
    parts: Iterator[list[tuple[ColumnSummary, int]]], limits: Sequence[float]
) -> list[Summary]:
    """Return the summaries of all blocks as one."""
    total: list[tuple[ColumnSummary, int]] = []
    for part in parts:
        if not total:
            total = part
            continue
        total = [
            (a.merge(b, limit), n + more)
            for (a, n), (b, more), limit in zip(total, part, limits, strict=True)
        ]
    return [Summary(summary.column(), n) for summary, n in total]


def column_part(block: Any, rows: slice | NDArray[np.intp], m: int) -> FloatArray:
    """Return column m of a block for a slice or increasing positions of its rows."""
    if isinstance(rows, slice):
        return np.ascontiguousarray(block[rows, m], dtype=np.float64)
    if not len(rows):
        return np.empty(0)
    first = int(rows[0])
    part = np.asarray(block[first : int(rows[-1]) + 1, m], dtype=np.float64)
    return part[rows - first]


@dataclass(frozen=True)
class MatrixOf:
    """The matrix of the selected rows of a block."""

    n_columns: int

    def __call__(self, block: Any, selection: Selection, n_rows: int) -> FloatArray:
        """Return the matrix, shape (n, p)."""
        rows = slice(0, n_rows) if selection is None else selection
        columns = [column_part(block, rows, m) for m in range(self.n_columns)]
        return np.stack(columns, axis=1)


@dataclass(frozen=True)
class MissingOf:
    """The number of missing values in every column of the selected rows of a block."""

    n_columns: int

    def __call__(self, block: Any, selection: Selection, n_rows: int) -> NDArray[np.intp]:
        """Return the numbers, shape (p,)."""
        rows = slice(0, n_rows) if selection is None else selection
        every = range(self.n_columns)
        return np.array([int(np.isnan(column_part(block, rows, m)).sum()) for m in every])


@dataclass(frozen=True)
class Summaries:
    """The summaries of all columns over the selected rows of a block.

    Attributes
    ----------
    centers : tuple of float
        Of the columns.
    limits : tuple of float
        Numbers of distinct values up to which all are kept.
    """

    centers: tuple[float, ...]
    limits: tuple[float, ...]

    def __call__(
        self, block: Any, selection: Selection, n_rows: int, weights: FloatArray
    ) -> list[tuple[ColumnSummary, int]]:
        """Return the summary of every column, and its number of values."""
        out = []
        for m, (center, most) in enumerate(zip(self.centers, self.limits, strict=True)):
            total, count = ColumnSummary.of(np.empty(0), np.empty(0), center, most), 0
            for start in range(0, n_rows, _GROUP):
                rows = slice(start, min(start + _GROUP, n_rows))
                x = column_part(block, rows if selection is None else selection[rows], m)
                total = total.merge(ColumnSummary.of(x, weights[rows], center, most), most)
                count += int(np.count_nonzero(~np.isnan(x)))
            out.append((total, count))
        return out


@dataclass(frozen=True)
class ColumnLevels:
    """Makes the engine of some rows of a block from fitted bases.

    Attributes
    ----------
    bases : tuple of FittedBasis
        One per column of the matrix.
    """

    bases: tuple[FittedBasis, ...]

    def __call__(
        self, block: Any, rows: slice | NDArray[np.intp], highest: Mapping[int, int] | None
    ) -> NumpyEngine:
        """Return the engine; variables that are not needed have level 0 only."""
        bases = list(self.bases)
        for m, level in (highest or {}).items():
            bases[m] = bases[m].up_to(level)
        wanted = range(len(bases)) if highest is None else highest
        constant = [basis.constant_level for basis in bases]
        widths = [b.widths if m in wanted else b.widths[:1] for m, b in enumerate(bases)]
        n_rows = rows.stop - rows.start if isinstance(rows, slice) else len(rows)

        def levels() -> Iterator[Sequence[FloatArray]]:
            for m, basis in enumerate(bases):
                if m in wanted or not constant[m]:
                    yield basis.transform(column_part(block, rows, m))[: len(widths[m])]
                else:
                    yield []

        return NumpyEngine(widths, levels(), np.ones(n_rows), constant)
