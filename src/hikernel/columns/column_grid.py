"""The columns of a table as a graph: all products of the levels of their bases.

``ColumnGrid`` is a graph source like the others: it reads the table of a user and fits a basis to
every column. The result is a ``ColumnDesign``, which works on training rows and new rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from hikernel.bases import FittedBasis
from hikernel.checks import check_integer, check_number, check_optional_integer
from hikernel.columns.choices import choose_bases, warn_of_lost_columns
from hikernel.columns.column_design import ColumnDesign
from hikernel.columns.reading import holds_sparse, lies_in_blocks, read_table
from hikernel.columns.table import TableRows
from hikernel.columns.weights import KnownSizes, level_weights
from hikernel.engines import choose_engine
from hikernel.engines.machine import one_blas_thread
from hikernel.engines.protocol import FloatArray
from hikernel.graphs import Grid
from hikernel.graphs.restriction import Restriction

__all__ = ["ColumnGrid"]

_FEW = 8
"""If ``interactions`` leaves terms of at most this many variables, that is a ``max_order``. Larger
terms have next to no weight in the sum of all kernels, and a limit has its cost."""


@dataclass(frozen=True)
class ColumnGrid:
    """The graph of all products of one-variable functions of the columns of a table.

    Attributes
    ----------
    basis, degree, categorical, ordered, max_order, interactions, weight_base, root_weight, engine
        As for :class:`~hikernel.HKLRegressor`.
    monotone : mapping or None
        Columns with a direction, as there. They take part in no interaction.
    owner : str
        Name of the estimator in error messages and warnings.
    """

    basis: Any = "auto"
    degree: int = 4
    categorical: Any = None
    ordered: Any = None
    max_order: int | None = None
    interactions: Any = None
    weight_base: float | Literal["auto"] = "auto"
    root_weight: float = 1.0
    engine: str = "auto"
    monotone: Any = None
    owner: str = "ColumnGrid"

    def __post_init__(self) -> None:
        check_integer("degree", self.degree, 1)
        check_optional_integer("max_order", self.max_order, 1, "any number of variables")
        if not (isinstance(self.weight_base, str) and self.weight_base == "auto"):
            check_number(
                "weight_base", self.weight_base, above=0.0, remedy='Or use weight_base="auto".'
            )
        check_number("root_weight", self.root_weight, above=0.0)
        choose_engine(self.engine)
        if self.interactions is not None:
            from hikernel.columns.interactions import check_interactions

            check_interactions(self.interactions)
        if self.monotone is not None:
            from hikernel.columns.monotone import check_monotone  # imported only when needed

            check_monotone(self.monotone)

    def suited_to(self, X: Any) -> ColumnGrid:
        """Return the grid that reads X: this one, or its form for a sparse X or for blocks."""
        if lies_in_blocks(X):
            from hikernel.columns.block_grid import BlockGrid  # imported only when needed

            return BlockGrid.of(self)
        if not holds_sparse(X):
            return self
        from hikernel.columns.sparse_grid import SparseGrid  # imported only when needed

        return SparseGrid.of(self)

    def read(self, X: Any) -> TableRows:
        """Read and encode the training table.

        Raises
        ------
        TypeError
            For sparse matrices, lazy frames and objects that are neither text nor numbers.
        ValueError
            For infinity, dates, wrong shapes, and fewer than two rows.
        """
        raw = read_table(X)
        if raw.n_rows < 2:
            raise ValueError(
                f"Found array with {raw.n_rows} sample(s) while a minimum of 2 is required by "
                f"{self.owner}."
            )
        rows = TableRows.read(raw, self.categorical, self.ordered)
        self._restriction(rows)  # raises if it names a column that is not there
        return rows

    def _restriction(self, rows: TableRows) -> Restriction | None:
        """Return which variables may interact; None for all."""
        alone = tuple(self.monotone) if self._signs(rows) else ()
        if self.interactions is None and not alone:
            return None
        from hikernel.columns.interactions import read_interactions

        return read_interactions(self.interactions, rows.table, rows.labels, alone)

    def _signs(self, rows: TableRows) -> dict[int, int]:
        """Return the columns with a direction, by position."""
        if self.monotone is None:
            return {}
        from hikernel.columns.monotone import monotone_signs  # imported only when needed

        return monotone_signs(self.monotone, self.interactions, rows.table, rows.labels)

    def fit(self, rows: TableRows, weights: FloatArray) -> ColumnDesign:
        """Choose a basis for every column, fit it, and return the design.

        Raises
        ------
        ValueError
            For unknown bases and columns, and for a basis that does not suit its column.
        """
        table, matrix = rows.table, rows.matrix
        choices = choose_bases(self.basis, self.degree, table, matrix, weights, rows.labels)
        # Rows that were read but not selected take part with weight zero: the parameter
        # ``first_pivot`` of a basis counts the rows of the table as the user gave it.
        every = rows.weights(weights)
        # Fitting consists of short vector products, which BLAS threads only slow down.
        with one_blas_thread():
            bases = tuple(
                choice.basis.fit(rows.column(m), every) for m, choice in enumerate(choices)
            )
        signs = self._signs(rows)
        if signs:
            from hikernel.columns.monotone import check_bases  # imported only when needed

            check_bases(signs, table, choices, bases)
        restriction = self._restriction(rows)
        self.check_limits(bases, restriction)
        warn_of_lost_columns(matrix, bases, table)
        notes = tuple((choice.name, choice.why) for choice in choices)
        sizes: KnownSizes = {}
        grid = self.grid(bases, matrix, weights, restriction, sizes)
        return ColumnDesign(
            table, bases, grid, notes, self.owner, self.engine, self, tuple(choices), signs, sizes
        )

    def check_limits(self, bases: Sequence[FittedBasis], restriction: Restriction | None) -> None:
        """Raise if terms are limited, and a basis is in all of them."""
        limited = self.max_order is not None or restriction is not None
        if limited and not all(basis.constant_level for basis in bases):
            what = "interactions" if self.max_order is None else "max_order"
            raise ValueError(
                f"{what} needs bases with a constant level 0: without one every term contains "
                "every variable. Pass constant_level=True to the basis, or give it by name."
            )

    def grid(
        self,
        bases: Sequence[FittedBasis],
        matrix: FloatArray,
        weights: FloatArray,
        restriction: Restriction | None,
        known: KnownSizes | None = None,
    ) -> Grid:
        """Return the grid of the levels, with weights from the rows unless a base is given."""
        base = None if isinstance(self.weight_base, str) else self.weight_base
        limit = self.max_order
        if restriction is not None and restriction.largest_term <= min(limit or _FEW, _FEW):
            limit = restriction.largest_term
        found = level_weights(bases, matrix, weights, base, limit, known)
        parents = tuple(basis.parents for basis in bases)
        return Grid(found, self.root_weight, limit, parents, restriction)
