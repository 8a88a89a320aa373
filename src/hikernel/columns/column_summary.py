"""The distribution of a column in a summary that can be merged, for rows that lie in blocks.

A column with at most 16,384 distinct values is kept as it is: values with their weights. Of any
other, values are merged in cells: those whose distance d from the center c of the column agrees in
its sign, its power of two and the next twelve binary digits. A cell has the total weight of its
values and their weighted mean, so that weights and the mean of the column are exact, and

    |x' - x| <= 2^-12 |x - c|

for every value x and the mean x' of its cell: no value moves by more than 1/4096 of its distance
from c, which is about the median. A quantile moves by no more than the value there, and a variance,
relative to itself, by no more than 2^-24 (1 + (mean - c)^2 / variance).

Merging adds weights and nothing else, so that a summary does not depend on how rows are cut, apart
from rounding: whether a column is in cells is a question of its distinct values alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hikernel.bases.column import Column, distinct
from hikernel.engines.protocol import FloatArray

__all__ = ["MOST_VALUES", "ColumnSummary", "weighted_median"]

MOST_VALUES = 2**14
"""Number of distinct values up to which all are kept."""

_DIGITS = 12
"""Binary digits of a distance that tell cells apart, after the first."""

_SHIFT = 52 - _DIGITS
_LARGEST = float(np.finfo(np.float64).max)


@dataclass(frozen=True, eq=False)
class ColumnSummary:
    """The weighted distribution of a column, or of some of its rows.

    Attributes
    ----------
    center : float
        c, the same for all parts of a column.
    cells : ndarray of int64 of shape (m,)
        The cells in increasing order of their numbers, which is not that of values; those of a
        column that is kept as it is are the values themselves, bit by bit.
    weights : ndarray of shape (m,)
        Their total weights.
    means : ndarray of shape (m,)
        Their weighted mean distances from c; for single values, the values.
    is_exact : bool
        Whether cells are single values.
    """

    center: float
    cells: NDArray[np.int64]
    weights: FloatArray
    means: FloatArray
    is_exact: bool

    @classmethod
    def of(
        cls, x: FloatArray, weights: FloatArray, center: float, most: float = MOST_VALUES
    ) -> ColumnSummary:
        """Return the summary of rows, of which NaN are missing.

        Parameters
        ----------
        x, weights : ndarray of shape (n,)
            Values and positive weights of the rows.
        center : float
            c.
        most : float
            Number of distinct values up to which all are kept; infinity to keep all.
        """
        known = ~np.isnan(x)
        if not known.all():
            x, weights = x[known], weights[known]
        x = x + 0.0  # minus zero is zero
        few = x[: int(min(2 * most, x.size))]
        if np.unique(few).size <= most:
            out = _added(x.view(np.int64), weights, x, center, True)
            return out if out.cells.size <= most else out._in_cells()
        return _cells(x, weights, center)

    def merge(self, other: ColumnSummary, most: float = MOST_VALUES) -> ColumnSummary:
        """Return the summary of the rows of both, which have the same center."""
        one, two = self, other
        if one.is_exact != two.is_exact:
            one, two = one._in_cells(), two._in_cells()
        out = _added(
            np.concatenate([one.cells, two.cells]),
            np.concatenate([one.weights, two.weights]),
            np.concatenate([one.means, two.means]),
            self.center,
            one.is_exact,
        )
        return out if not out.is_exact or out.cells.size <= most else out._in_cells()

    def column(self) -> Column:
        """Return the distribution for the fit of a basis; its rows have no positions."""
        values, _, weights = distinct(self.values(), self.weights)
        return Column(values, weights, np.empty(0, dtype=np.intp))

    def values(self) -> FloatArray:
        """Return the values, or the means of the cells, shape (m,)."""
        if self.is_exact:
            return self.means
        return np.asarray(self.center + self.means)

    def _in_cells(self) -> ColumnSummary:
        """Return the same distribution in cells."""
        if not self.is_exact:
            return self
        return _cells(self.means, self.weights, self.center)


def weighted_median(x: FloatArray, weights: FloatArray) -> float:
    """Return a value with about half of the weight below it; zero without any value.

    >>> weighted_median(np.array([3.0, np.nan, 1.0, 2.0]), np.ones(4))
    2.0
    """
    known = ~np.isnan(x)
    order = np.argsort(x[known], kind="stable")
    if not order.size:
        return 0.0
    below = np.cumsum(weights[known][order])
    return float(x[known][order[np.searchsorted(below, 0.5 * below[-1])]])


def _cells(x: FloatArray, weights: FloatArray, center: float) -> ColumnSummary:
    """Return values in cells."""
    with np.errstate(over="ignore"):
        distances = np.clip(x - center, -_LARGEST, _LARGEST) + 0.0
    return _added(distances.view(np.int64) >> _SHIFT, weights, distances, center, False)


def _added(
    cells: NDArray[np.int64],
    weights: FloatArray,
    means: FloatArray,
    center: float,
    is_exact: bool,
) -> ColumnSummary:
    """Return cells, of which none is repeated, with their total weights and their means."""
    known, first, place = np.unique(cells, return_index=True, return_inverse=True)
    place = place.reshape(-1)
    total = np.bincount(place, weights, minlength=known.size).astype(np.float64)
    if is_exact:
        return ColumnSummary(center, known, total, means[first], True)
    shares = weights / total[place]  # of at most one: sums do not overflow
    mean = np.bincount(place, shares * means, minlength=known.size).astype(np.float64)
    return ColumnSummary(center, known, total, mean, False)
