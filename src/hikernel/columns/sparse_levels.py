"""Bases of sparse columns: fitted to their distinct values, and their levels as sparse columns.

A basis is a function of the weighted distribution of its column, of which zero is one value. So
it costs as much as the distinct values that are not zero. Columns with the same distribution, such
as indicators of the same frequency, share one fitted basis. The levels, weights and models are
those of the dense matrix.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from hikernel.bases import FittedBasis
from hikernel.bases.column import Column
from hikernel.columns.basis_choice import BasisChoice
from hikernel.columns.sparse_rows import SparseRows
from hikernel.columns.weights import LevelSizes, level_size
from hikernel.engines.machine import require_memory
from hikernel.engines.protocol import FloatArray

__all__ = ["FittedColumns", "LevelMatrix", "SparseLevelSizes", "fit_columns", "level_matrix"]

_FEW = 64
"""Columns of at most so many distinct values may share a basis with others."""


@dataclass(frozen=True)
class FittedColumns:
    """The fitted bases of all columns.

    Attributes
    ----------
    bases : list of FittedBasis
        One per column.
    choices : list of BasisChoice
        The bases before they were fitted, and why.
    sizes : list of tuple of float
        For every column, the sizes s_ml of its levels above 0 (``weights``).
    """

    bases: list[FittedBasis]
    choices: list[BasisChoice]
    sizes: list[tuple[float, ...]]


def fit_columns(
    rows: SparseRows,
    weights: FloatArray,
    choose: Callable[[int, Column], BasisChoice],
    can_share: Callable[[int], bool],
) -> FittedColumns:
    """Choose and fit a basis for every column.

    Parameters
    ----------
    rows : SparseRows
        The training rows.
    weights : ndarray of shape (n,)
        Positive weights of the rows, of any sum.
    choose : callable
        Returns the choice for a column, from its position and its distribution.
    can_share : callable
        Whether the choice for a column depends on its distribution alone, and not on its position.
    """
    weights = weights / np.max(weights)
    present = sparse.csc_array(
        (np.ones(rows.matrix.nnz), rows.matrix.indices, rows.matrix.indptr), shape=rows.shape
    )
    # Value and weight of a column with one value but zero are its whole distribution.
    pairs = list(
        zip(rows.indicators().tolist(), np.asarray(present.T @ weights).tolist(), strict=True)
    )
    del present
    total = float(np.sum(weights))
    fitted: dict[Any, tuple[FittedBasis, BasisChoice, tuple[float, ...]]] = {}
    found = FittedColumns([], [], [])
    for m, pair in enumerate(pairs):
        shared = can_share(m)
        known = fitted.get(pair) if shared else None
        if known is None:
            column = _distribution(rows, m, weights, total)
            key = (column.values.tobytes(), column.weights.tobytes())
            known = fitted.get(key) if shared else None
            if known is None:
                known = _fit_column(column, choose(m, column), rows.table.names[m])
            if shared and len(column.values) <= _FEW:
                fitted[key] = known
                if pair[0] == pair[0]:
                    fitted[pair] = known
        for parts, part in zip((found.bases, found.choices, found.sizes), known, strict=True):
            parts.append(part)  # type: ignore[attr-defined]
    return found


def _fit_column(
    column: Column, choice: BasisChoice, name: str
) -> tuple[FittedBasis, BasisChoice, tuple[float, ...]]:
    """Return the fitted basis of a column, the choice, and the sizes of its levels above 0."""
    basis = choice.basis.fit_column(column)
    if not basis.constant_level or any(width != 1 for width in basis.widths):
        raise ValueError(
            f"The basis {choice.name!r} of column {name} has levels of several columns, or no "
            'constant level 0, and X is sparse. Use "auto", "orthonormal", "asinh", "rank" or '
            '"polynomial", or pass X.toarray().'
        )
    squares = [level[:, 0] ** 2 for level in basis.transform(column.values)[1:]]
    return basis, choice, tuple(level_size(square, column.weights) for square in squares)


def _distribution(rows: SparseRows, m: int, weights: FloatArray, total: float) -> Column:
    """Return the distribution of a column, zero included where there is one."""
    where, _ = rows.column(m)
    values, inverse = rows.distinct(m)
    merged = np.bincount(inverse, weights[where], minlength=len(values))
    if len(where) < len(rows):
        place = int(np.searchsorted(values, 0.0))
        # The rest of the sum, which is positive although it may round to zero.
        rest = max(total - float(np.sum(merged)), np.finfo(float).eps * total)
        values, merged = np.insert(values, place, 0.0), np.insert(merged, place, rest)
    return Column(values, merged / np.sum(merged), np.empty(0, dtype=np.intp))


@dataclass(frozen=True)
class LevelMatrix:
    """The levels above 0 of some columns as a constant plus a sparse matrix.

    Attributes
    ----------
    columns : csc_array of shape (n, C)
        Levels minus their values at zero.
    zeros : ndarray of shape (C,)
        Levels at zero.
    pairs : list of (int, int)
        Variable and level of each column, in increasing order.
    """

    columns: sparse.csc_array
    zeros: FloatArray
    pairs: list[tuple[int, int]]


def level_matrix(
    bases: Sequence[FittedBasis], rows: SparseRows, variables: Iterable[int]
) -> LevelMatrix:
    """Return the levels of some variables on rows."""
    used = [m for m in variables if bases[m].max_level > 0]
    depths = np.array([bases[m].max_level for m in used], dtype=np.int64)
    indptr = rows.matrix.indptr.astype(np.int64)
    counts = indptr[[m + 1 for m in used]] - indptr[used] if used else depths
    n_entries = int(depths @ counts)
    require_memory(
        3 * n_entries,  # in both orders, each with indices of half the size
        f"The {n_entries} entries of {int(np.sum(depths))} levels of sparse columns",
        "Use degree=1, fewer rows, or drop columns that are rarely not zero.",
    )
    data, indices = np.empty(n_entries), np.empty(n_entries, dtype=np.int32)
    zeros: list[FloatArray] = []
    tables: dict[Any, tuple[FloatArray, FloatArray]] = {}
    start, indicators = 0, rows.indicators().tolist()
    for m, depth in zip(used, depths.tolist(), strict=True):
        where, _ = rows.column(m)
        stop = start + depth * len(where)
        block = slice(start, stop)
        key = (id(bases[m]), indicators[m])  # NaN equals nothing, so it finds nothing
        known = tables.get(key)
        if known is None:
            values, inverse = rows.distinct(m)
            found = np.hstack(bases[m].transform(np.append(values, 0.0))[1:])
            known = (found[:-1] - found[-1]).T, found[-1]
            if len(values) == 1:
                tables[key] = known
            else:
                data[block] = known[0][:, inverse].ravel()
        if known[0].shape[1] == 1:
            data[block].reshape(depth, -1)[...] = known[0]
        indices[block].reshape(depth, -1)[...] = where
        zeros.append(known[1])
        start = stop
    lengths = np.repeat(counts, depths)
    pairs = [(m, j) for m, depth in zip(used, depths, strict=True) for j in range(1, depth + 1)]
    parts = (data, indices, np.append(0, np.cumsum(lengths)))
    columns = sparse.csc_array(parts, shape=(len(rows), len(pairs)))
    return LevelMatrix(columns, np.concatenate([np.empty(0), *zeros]), pairs)


class SparseLevelSizes(LevelSizes):
    """The weights of ``LevelSizes`` from sparse levels, with products of at most two variables.

    With rho_m = sum_l phi_ml^2 / c_ml^2, the diagonal is 1 + e_1, plus e_2 = (e_1^2 - sum_m
    rho_m^2) / 2 for products of two. Both sums have a constant part, of the values at zero, and a
    sparse one.

    Parameters
    ----------
    bases : sequence of FittedBasis
        One per column.
    levels : LevelMatrix
        The levels of all columns.
    sizes : sequence of tuple of float
        The sizes s_ml of the levels above 0 of each column.
    weights : ndarray of shape (n,)
        Positive weights of the rows, of any sum.
    """

    def __init__(
        self,
        bases: Sequence[FittedBasis],
        levels: LevelMatrix,
        sizes: Sequence[tuple[float, ...]],
        weights: FloatArray,
    ) -> None:
        self._omega = weights / np.sum(weights)
        self._depths = [basis.max_level for basis in bases]
        self._level_sizes = np.array([size for some in sizes for size in some])
        exponents = [basis.exponents[1:] for basis in bases]
        self._level_exponents = np.array([e for some in exponents for e in some])
        self._exponents = [np.append(0.0, self._level_exponents)]
        self._lineage = _lineages(bases)
        self._variables = np.array([m for m, _ in levels.pairs], dtype=np.intp)
        counts = np.diff(levels.columns.indptr)
        self._column = np.repeat(np.arange(len(counts)), counts)
        self._zero_squares = levels.zeros**2
        self._squares_of = (levels.columns.data + levels.zeros[self._column]) ** 2
        # The levels of a variable have the same rows: its entries are those of its first level.
        first = np.append(True, self._variables[1:] != self._variables[:-1])
        self._first = first[self._column] if len(counts) else np.empty(0, dtype=bool)
        starts = levels.columns.indptr[:-1]
        within = np.arange(len(self._column)) - starts[self._column]
        before = np.append(0, np.cumsum(np.where(first, counts, 0)))[:-1]
        of_variable = np.maximum.accumulate(np.where(first, before, 0)) if len(counts) else before
        self._entry = of_variable[self._column] + within
        self._rows = levels.columns.indices[self._first]
        self._of = self._variables[self._column[self._first]]

    def weights(self, base: float) -> tuple[tuple[float, ...], ...]:
        """Return d_ml = s_ml base^e_ml for all variables and levels, with d_m0 = 1."""
        own = iter(self._own(base).tolist())
        return tuple((1.0, *(next(own) for _ in range(depth))) for depth in self._depths)

    def log_diagonal(self, base: float, max_order: int | None = None) -> FloatArray:
        """Return log K_ii of the rows, shape (n,)."""
        scales = (1.0 + self._lineage @ self._own(base)) ** -2.0
        size = len(self._depths)
        zero = np.bincount(self._variables, scales * self._zero_squares, minlength=size)
        rho = np.bincount(
            self._entry, scales[self._column] * self._squares_of, minlength=len(self._rows)
        )
        n = len(self._omega)
        first = np.sum(zero) + np.bincount(self._rows, rho - zero[self._of], minlength=n)
        if max_order == 1:
            return np.asarray(np.log1p(first))
        squares = zero @ zero + np.bincount(self._rows, rho**2 - zero[self._of] ** 2, minlength=n)
        return np.asarray(np.log1p(first + 0.5 * np.maximum(first**2 - squares, 0.0)))

    def _own(self, base: float) -> FloatArray:
        return np.asarray(self._level_sizes * np.power(base, self._level_exponents))


def _lineages(bases: Sequence[FittedBasis]) -> sparse.csr_array:
    """Return the matrix with a one where a level above 0 is on the way to another, or is it."""
    rows: list[int] = []
    cols: list[int] = []
    known: dict[tuple[int, ...], list[tuple[int, int]]] = {}
    start = 0
    for basis in bases:
        parents = basis.parents
        if parents not in known:
            steps = []
            for level in range(1, len(parents) + 1):
                above = level
                while above > 0:
                    steps.append((level - 1, above - 1))
                    above = parents[above - 1]
            known[parents] = steps
        rows += [start + level for level, _ in known[parents]]
        cols += [start + above for _, above in known[parents]]
        start += len(parents)
    index: tuple[NDArray[Any], NDArray[Any]] = (
        np.array(rows, dtype=int),
        np.array(cols, dtype=int),
    )
    return sparse.csr_array((np.ones(len(rows)), index), shape=(start, start))
