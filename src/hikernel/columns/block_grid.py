"""The columns of a table in blocks as a graph: the same graph, from summaries of the columns.

Bases are fitted to ``column_summary``, which keeps all values of a column with few of them, and
says by how much it moves others. Weights of the levels need values of one row in several columns:
they come from evenly spaced rows, as they do from many rows in memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

import numpy as np

from hikernel.columns.block_rows import BlockRows, ColumnLevels, StreamedRows
from hikernel.columns.block_table import BlockTable, as_block_table
from hikernel.columns.choices import choose_from, warn_of_lost_columns
from hikernel.columns.column_design import ColumnDesign
from hikernel.columns.column_grid import ColumnGrid
from hikernel.engines.machine import one_blas_thread
from hikernel.engines.protocol import FloatArray, GridEngine, Node
from hikernel.engines.row_block_engine import RowBlockEngine
from hikernel.graphs import RicherDesign

__all__ = ["BlockDesign", "BlockGrid", "predict_blocks", "read_blocks"]


@dataclass(frozen=True)
class BlockGrid(ColumnGrid):
    """The graph of all products of functions of the columns of a table in blocks.

    The attributes are those of ``ColumnGrid``.
    """

    @classmethod
    def of(cls, grid: ColumnGrid) -> BlockGrid:
        """Return the form of a grid for blocks; raise for what rows in blocks do not have."""
        if grid.monotone:
            raise ValueError(
                "monotone is not available for rows in blocks; leave it out, or pass a sample of "
                "the rows that fits into memory."
            )
        return cls(**{f.name: getattr(grid, f.name) for f in fields(ColumnGrid)})

    def read(self, X: BlockTable) -> BlockRows:  # type: ignore[override]
        """Read and encode the training table.

        Raises
        ------
        TypeError, ValueError
            As for a table in memory.
        """
        rows = BlockRows.read(X, self.categorical, self.ordered)
        if len(rows) < 2:
            raise ValueError(
                f"Found array with {len(rows)} sample(s) while a minimum of 2 is required by "
                f"{self.owner}."
            )
        self._restriction(rows)  # type: ignore[arg-type]  # raises for a column that is not there
        return rows

    def fit(self, rows: BlockRows, weights: FloatArray) -> BlockDesign:  # type: ignore[override]
        """Choose a basis for every column, fit it, and return the design."""
        table, summaries = rows.table, rows.summaries(weights)
        found = choose_from(self.basis, self.degree, table, summaries.__getitem__, rows.labels)
        choices = [choice.at_quantiles() for choice in found]  # trees would need rows in memory
        with one_blas_thread():
            bases = tuple(
                choice.basis.fit_column(summary.column)
                for choice, summary in zip(choices, summaries, strict=True)
            )
        restriction = self._restriction(rows)  # type: ignore[arg-type]
        self.check_limits(bases, restriction)
        positions, sample = rows.sample()
        warn_of_lost_columns(sample, bases, table)
        notes = tuple((choice.name, choice.why) for choice in choices)
        grid = self.grid(bases, sample, weights[positions], restriction)
        chosen = tuple(choices)
        return BlockDesign(table, bases, grid, notes, self.owner, self.engine, self, chosen)


@dataclass(frozen=True)
class BlockDesign(ColumnDesign):
    """Fitted bases of the columns of a table in blocks, and the grid of their levels.

    For rows in memory it is a ``ColumnDesign``.
    """

    def training_rows(self, rows: BlockRows) -> BlockRows:  # type: ignore[override]
        """Return the rows as they are."""
        return rows

    def engine(
        self, rows: Any, weights: FloatArray, variables: Iterable[int] | None = None
    ) -> GridEngine:
        """Return an engine over rows."""
        if not isinstance(rows, BlockRows):
            return super().engine(rows, weights, variables)
        return engine_of_blocks(self, rows, weights)

    def n_missing(self, rows: Any) -> tuple[int, ...]:
        """Return the number of missing values in every column of the matrix."""
        return rows.missing() if isinstance(rows, BlockRows) else super().n_missing(rows)

    def with_steps(self) -> list[ColumnGrid]:
        """Return the columns with steps at quantiles, the one form there is here."""
        return super().with_steps()[-1:]

    def richer(
        self, rows: Any, weights: FloatArray, variables: Sequence[int]
    ) -> RicherDesign | None:
        """Return None: products of many levels have too many columns for many rows."""
        return None


def read_blocks(design: ColumnDesign, X: Any) -> BlockRows | StreamedRows:
    """Return rows in blocks in the form that ``predict_blocks`` takes.

    Of a table with names, the columns of ``fit`` are taken, whatever others there are beside them.
    """
    if isinstance(X, BlockRows):
        return X
    source = as_block_table(X)
    assert source is not None
    known = design.table.feature_names_in
    if known is not None and set(known) <= set(source.names or ()):
        source = source.select(known)
    design.check_columns(source.names, source.n_columns)
    return StreamedRows(design.table, source)


def predict_blocks(
    design: ColumnDesign, nodes: Sequence[Node], coef: FloatArray, rows: BlockRows | StreamedRows
) -> FloatArray:
    """Return sum_w <coef_w, Phi_w(x)> for rows in blocks, shape (n,) or (n, k)."""
    if isinstance(rows, BlockRows):
        return engine_of_blocks(design, rows, np.ones(len(rows))).apply(nodes, coef)
    parts = list(rows.each("predict", partial(design.predict, nodes, coef)))
    return np.concatenate([np.empty((0, *coef.shape[1:])), *parts])


def engine_of_blocks(design: ColumnDesign, rows: BlockRows, weights: FloatArray) -> RowBlockEngine:
    """Return an engine over rows in blocks."""
    make = ColumnLevels(design.bases)
    layout = make(np.full((1, len(design.bases)), np.nan), slice(0, 1), None)
    return RowBlockEngine(rows.blocks, rows.sizes, rows.selections, make, layout, weights)
