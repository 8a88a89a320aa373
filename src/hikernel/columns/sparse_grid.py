"""The columns of a sparse matrix as a graph: single levels, and products of two.

The graph, its bases, weights and models are those of the dense matrix with ``max_order`` 1 or 2.
What differs is how they are computed: nothing here takes n p numbers, or the square of p.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from scipy import sparse

from hikernel.columns.choices import column_chooser, warn_of_lost_columns
from hikernel.columns.column_design import ColumnDesign
from hikernel.columns.column_grid import ColumnGrid
from hikernel.columns.reading import check_names, holds_sparse
from hikernel.columns.shared_bases import SharedBases
from hikernel.columns.sparse_levels import (
    FittedColumns,
    SparseLevelSizes,
    fit_columns,
    level_matrix,
)
from hikernel.columns.sparse_rows import SparseRows, as_columns, check_booleans, sparse_table
from hikernel.columns.weights import level_weights
from hikernel.engines.machine import one_blas_thread, require_memory
from hikernel.engines.protocol import FloatArray, Node
from hikernel.engines.sparse_engine import SparseEngine
from hikernel.engines.torch_device import TorchType
from hikernel.graphs import Grid, RicherDesign

__all__ = ["SparseDesign", "SparseGrid"]

_MOST_ORDER = 2
"""Number of variables that may interact; also that of ``max_order=None``."""

_BLOCK_NUMBERS = 2**25
"""Numbers of the largest block of scores of a search or a proof (256 MiB)."""

_CHUNK_NUMBERS = 2**22
"""Numbers of dense columns that a prediction holds at a time (32 MiB)."""


@dataclass(frozen=True)
class SparseGrid(ColumnGrid):
    """The graph of all levels of the columns of a sparse matrix and their products of two.

    The attributes are those of ``ColumnGrid``; ``max_order`` None means 2 here.
    """

    @classmethod
    def of(cls, grid: ColumnGrid) -> SparseGrid:
        """Return the sparse form of a grid; raise for what sparse columns do not have."""
        settings = {f.name: getattr(grid, f.name) for f in fields(ColumnGrid)}
        if grid.max_order is not None and grid.max_order > _MOST_ORDER:
            raise ValueError(
                f"max_order={grid.max_order} with a sparse X: its columns interact in pairs at "
                "most. Use max_order=2 (or None, which then is the same) or 1, or pass "
                "X.toarray()."
            )
        for name in ("categorical", "ordered"):
            if settings[name] is not None:
                raise ValueError(
                    f"{name} names columns of categories, and the columns of a sparse X are "
                    f"numbers; leave {name} out, or pass a frame of dense columns."
                )
        if grid.interactions is not None:
            raise ValueError(
                "interactions is not available for a sparse X; leave it out (max_order=1 allows no "
                "interactions), or pass X.toarray()."
            )
        if grid.monotone:
            raise ValueError(
                "monotone is not available for a sparse X; leave it out, or pass X.toarray()."
            )
        if TorchType.is_name(grid.engine):
            raise ValueError(
                f"engine={grid.engine!r} computes with dense columns, and a sparse X has an engine "
                'of its own. Leave engine="auto", or pass X.toarray().'
            )
        return cls(**settings | {"max_order": grid.max_order or _MOST_ORDER})

    def read(self, X: Any) -> SparseRows:  # type: ignore[override]
        """Read the training rows.

        Raises
        ------
        TypeError
            For numbers that are not real.
        ValueError
            For NaN, infinity, wrong shapes, and fewer than two rows.
        """
        matrix = as_columns(X)
        if np.any(np.isnan(matrix.data)):
            m = int(np.searchsorted(matrix.indptr, np.argmax(np.isnan(matrix.data)), "right")) - 1
            raise ValueError(
                f"Input X contains NaN in column {m}, and X is sparse, where what is not stored is "
                "zero and not missing. Impute it, or give missing values a column of their own."
            )
        if matrix.shape[0] < 2:
            raise ValueError(
                f"Found array with {matrix.shape[0]} sample(s) while a minimum of 2 is required by "
                f"{self.owner}."
            )
        return SparseRows(sparse_table(X), matrix)

    def fit(self, rows: SparseRows, weights: FloatArray) -> SparseDesign:  # type: ignore[override]
        """Choose a basis for every column, fit it, and return the design."""
        require_memory(
            self.planned_numbers(rows),
            f"A fit to {rows.matrix.nnz} entries of a sparse X, of {rows.shape[0]} rows and "
            f"{rows.shape[1]} columns,",
            "Use degree=1, fewer rows, or drop columns that are rarely not zero.",
        )
        choose, named = column_chooser(self.basis, self.degree, rows.table)
        # Fitting consists of short vector products, which BLAS threads only slow down.
        with one_blas_thread():
            fitted = fit_columns(rows, weights, choose, lambda m: m not in named)
        warn_of_lost_columns(rows, fitted.bases, rows.table)
        return SparseDesign(
            rows.table,
            tuple(fitted.bases),
            self._weighted_grid(fitted, rows, weights),
            tuple((choice.name, choice.why) for choice in fitted.choices),
            self.owner,
            self.engine,
            self,
            tuple(fitted.choices),
        )

    def planned_numbers(self, rows: SparseRows) -> int:
        """Return a bound on the float64 numbers that a fit allocates beside those of X.

        The levels have one entry per level and entry of X, twice with half a number of index each,
        and as much again while their weights are found. Scores are computed in blocks of fixed
        size. What every column has of names, weights and scales takes about 100 numbers.
        """
        counts = np.diff(rows.matrix.indptr)
        depths = np.where(np.isnan(rows.indicators()), self.degree, 1)
        return int(6 * (depths @ counts)) + 2 * _BLOCK_NUMBERS + 100 * rows.shape[1]

    def _weighted_grid(self, fitted: FittedColumns, rows: SparseRows, weights: FloatArray) -> Grid:
        """Return the grid of the levels, with weights from the rows unless a base is given."""
        bases = fitted.bases
        if isinstance(self.weight_base, str):
            levels = level_matrix(bases, rows, range(len(bases)))
            sizes = SparseLevelSizes(bases, levels, fitted.sizes, weights)
            found = sizes.weights(sizes.base(self.max_order))
        else:
            found = level_weights(bases, np.empty((0, 0)), weights, self.weight_base, None)
        parents = tuple(basis.parents for basis in bases)
        return Grid(found, self.root_weight, self.max_order, parents)


@dataclass(frozen=True)
class SparseDesign(ColumnDesign):
    """Fitted bases of the columns of a sparse matrix, and the grid of their levels.

    Predictions and explanations take the columns that a model uses as dense ones, a chunk of rows
    at a time, and are those of a ``ColumnDesign`` of these columns.
    """

    def stored_features(self) -> tuple[int, int] | None:
        """Return None: what is stored depends on the entries of X, and was planned by ``fit``."""
        return None

    def training_rows(self, rows: SparseRows) -> SparseRows:  # type: ignore[override]
        """Return the rows as they are."""
        return rows

    def read(self, X: Any) -> SparseRows:  # type: ignore[override]
        """Return new rows, sparse or dense; a missing value counts as in a ``ColumnDesign``."""
        if not holds_sparse(X):
            return SparseRows(self.table, as_columns(sparse.csc_array(super().read(X))))
        matrix = as_columns(X)
        table, given = self.table, sparse_table(X)
        self.check_columns(given.feature_names_in, X.shape[1])
        if table.feature_names_in is not None and given.feature_names_in is not None:
            check_names(table.feature_names_in, given.feature_names_in)
        check_booleans(table, matrix)
        return SparseRows(table, matrix)

    def engine(  # type: ignore[override]
        self, rows: SparseRows, weights: FloatArray, variables: Iterable[int] | None = None
    ) -> SparseEngine:
        """Return an engine over rows, with the levels of some variables only if these are given."""
        wanted = range(len(self.bases)) if variables is None else sorted(set(variables))
        levels = level_matrix(self.bases, rows, wanted)
        return SparseEngine(levels.columns, levels.zeros, levels.pairs, weights)

    def predict(self, nodes: Sequence[Node], coef: FloatArray, rows: SparseRows) -> FloatArray:  # type: ignore[override]
        """Return sum_w <coef_w, Phi_w(x)> for rows, shape (n,) or (n, k)."""
        few = _FewColumns(self, nodes)
        out = np.empty((len(rows), *coef.shape[1:]))
        for some, matrix in few.chunks(rows):
            out[some] = few.design.predict(few.nodes, coef, matrix)
        return out

    def effects(  # type: ignore[override]
        self, nodes: Sequence[Node], blocks: Sequence[FloatArray], rows: SparseRows
    ) -> list[FloatArray]:
        """Return <coef_w, Phi_w(x)> for each node separately."""
        few = _FewColumns(self, nodes)
        out = [np.empty((len(rows), *block.shape[1:])) for block in blocks]
        for some, matrix in few.chunks(rows):
            found = few.design.effects(few.nodes, blocks, matrix)
            for target, values in zip(out, found, strict=True):
                target[some] = values
        return out

    def features(self, nodes: Sequence[Node], rows: SparseRows) -> dict[Node, FloatArray]:  # type: ignore[override]
        """Return the feature columns of each node on rows."""
        few = _FewColumns(self, nodes)
        found = few.design.features(few.nodes, rows.dense(few.variables))
        return {node: found[own] for node, own in zip(nodes, few.nodes, strict=True)}

    def rows_at(self, values: dict[int, FloatArray]) -> SparseRows:  # type: ignore[override]
        """Return rows with given values in some columns, and zero elsewhere."""
        n_rows = len(next(iter(values.values())))
        places = sorted(values)
        columns = np.repeat(places, n_rows)
        index = (np.tile(np.arange(n_rows), len(places)), columns)
        data = np.concatenate([values[m] for m in places])
        shape = (n_rows, len(self.bases))
        return SparseRows(self.table, as_columns(sparse.coo_array((data, index), shape)))

    def n_missing(self, rows: SparseRows) -> tuple[int, ...]:
        """Return zero for every column: a sparse X has no missing values in ``fit``."""
        return (0,) * rows.shape[1]

    def richer(  # type: ignore[override]
        self, rows: SparseRows, weights: FloatArray, variables: Sequence[int]
    ) -> RicherDesign | None:
        """Return the same levels: products of all levels of some variables, within the order."""
        engine = self.engine(rows, weights, variables)
        levels = {m: list(range(1, self.bases[m].max_level + 1)) for m in variables}
        degree = _MOST_ORDER * max((self.bases[m].max_level for m in variables), default=1)
        return RicherDesign(self, engine, self.grid, max(degree, 3), levels)

    def kept_bases(self) -> SharedBases:
        """Return every distinct basis once, and which columns have it."""
        return SharedBases.of(self.bases)

    def with_steps(self) -> list[ColumnGrid]:
        """Return nothing: steps of sparse columns are fitted where basis= asks for them."""
        return []

    @property
    def follows_target(self) -> bool:
        """False: steps of sparse columns are cut at quantiles."""
        return False

    def linear(self) -> ColumnGrid | None:
        """Return the columns with one linear level each; None for a loaded model."""
        return self.source and replace(self.source, basis="orthonormal", degree=1)


class _FewColumns:
    """The columns that some nodes use, as a dense design of their own."""

    def __init__(self, whole: SparseDesign, nodes: Sequence[Node]) -> None:
        self.variables = sorted({m for node in nodes for m, _ in node})
        place = {m: i for i, m in enumerate(self.variables)}
        self.nodes = [tuple((place[m], j) for m, j in node) for node in nodes]
        bases = tuple(whole.bases[m] for m in self.variables)
        self.design = ColumnDesign(whole.table, bases, whole.grid, (), whole.owner)

    def chunks(self, rows: SparseRows) -> Iterator[tuple[slice, FloatArray]]:
        """Yield positions of rows and their matrix, in order."""
        few = rows.matrix[:, self.variables].tocsr()
        step = max(1, _CHUNK_NUMBERS // (len(self.variables) + 1))
        for start in range(0, len(rows), step):
            some = slice(start, min(start + step, len(rows)))
            yield some, few[some].toarray()
