"""Categories: a constant, and the centred indicators of all categories as one block."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hikernel.bases.basis import Basis, FittedBasis
from hikernel.bases.column import Column, Standardizer
from hikernel.checks import check_positive
from hikernel.engines.protocol import FloatArray

__all__ = ["Categorical", "FittedCategorical"]


@dataclass(frozen=True)
class Categorical(Basis):
    """k_0 = 1, k_1(x, z) = s^2 (1[x = z] - w_x - w_z + sum_c w_c^2), w_c the share of category c.

    k_1 is the kernel of the centred indicators s (1[x = c] - w_c), one for each of the K distinct
    values c of the column. A value that is missing, or was not seen in ``fit``, gives zero at
    level 1. This is the average effect, since the indicators are centred.

    The factor s makes the total variance of the block one on the training rows, unless the norm
    sqrt(k_1(x, x)) of some row of the block would then exceed ``bound``. In that case s makes the
    largest norm equal to ``bound``. This happens if one category is common and the others are rare
    (with two categories: if one has less than a fifth of the rows). Without the bound, products of
    rare categories of several columns would be larger than all other products.

    Parameters
    ----------
    bound : float, default 2.0
        Upper bound on the norm of a row of level 1 on the training rows, and so on the magnitude of
        its entries. It should be at most the weight base of the graph.

    Notes
    -----
    After centring, the K indicators add up to zero, so they span K - 1 dimensions. Level 1 has
    K - 1 columns: the indicators times the orthonormal Helmert matrix, which compares each category
    with the mean of those before it. Kernel, norms, penalty and predictions stay the same, with
    fewer columns in every product. Two categories need one column, which increases from the smaller
    code to the larger one. The effect of a category is level 1 at its code times the coefficients.

    Codes may be any numbers. They are compared exactly, without a tolerance.

    Examples
    --------
    >>> fitted = Categorical().fit([0.0, 1.0, 2.0, 2.0])
    >>> fitted.widths
    (1, 2)
    >>> level = fitted.transform([0.0, 1.0, 2.0, 2.0])[1]
    >>> bool(np.isclose(level.var(axis=0).sum(), 1.0))
    True
    >>> fitted.transform([7.0, np.nan])[1]       # not seen, missing
    array([[0., 0.],
           [0., 0.]])
    """

    name: ClassVar[str] = "categorical"
    standardises: ClassVar[bool] = False
    bound: float = 2.0

    def __post_init__(self) -> None:
        check_positive("bound", self.bound, "the largest norm of a row of level 1")

    def _fit(self, column: Column, scaler: Standardizer) -> FittedCategorical:
        shares = column.weights
        purity = float(shares @ shares)
        # 1 - sum_c w_c^2, but without cancellation when one category has nearly all the rows.
        variance = float(shares @ _others(shares))
        longest = math.sqrt(1.0 - 2.0 * float(shares.min()) + purity)
        scale = min(1.0 / math.sqrt(variance), self.bound / longest)
        return FittedCategorical(scaler, True, column.values, shares, scale)


@dataclass(frozen=True, eq=False)
class FittedCategorical(FittedBasis):
    """Level 1 is s H' (e_c - w) at category c, where H is the Helmert matrix.

    Parameters
    ----------
    codes : ndarray of shape (K,)
        Distinct values of the column in increasing order, K >= 2.
    shares : ndarray of shape (K,)
        Their weights w, summing to one.
    scale : float
        The factor s.
    """

    codes: FloatArray
    shares: FloatArray
    scale: float

    @property
    def widths(self) -> tuple[int, ...]:
        """Columns per level: one for level 0, K - 1 for level 1."""
        return (1, self.codes.size - 1)

    def _levels(self, z: FloatArray) -> list[FloatArray]:
        place = np.minimum(np.searchsorted(self.codes, z), self.codes.size - 1)
        # The last row of the table is for values that were not seen in fit.
        place[self.codes[place] != z] = self.codes.size
        return [np.ones((z.size, 1)), self._table()[place]]

    def _table(self) -> FloatArray:
        """Return level 1 at every category, then at an unseen one, shape (K + 1, K - 1)."""
        helmert = _helmert(self.codes.size)
        table = np.zeros((self.codes.size + 1, self.codes.size - 1))
        table[:-1] = self.scale * (helmert - self.shares @ helmert)
        return table


def _others(shares: FloatArray) -> FloatArray:
    """Return sum_{d != c} w_d for every c, shape (K,), as sums of positive numbers only."""
    before = np.append(0.0, np.cumsum(shares[:-1]))
    after = np.append(0.0, np.cumsum(shares[:0:-1]))[::-1]
    return np.asarray(before + after)


def _helmert(size: int) -> FloatArray:
    """Return orthonormal columns orthogonal to the vector of ones, shape (size, size - 1).

    Column j is (-1, ..., -1, j + 1, 0, ..., 0) / sqrt((j + 1)(j + 2)), with j + 1 entries -1.
    """
    count = np.arange(1.0, size)
    columns = np.triu(np.full((size, size - 1), -1.0))
    columns[np.arange(1, size), np.arange(size - 1)] = count
    return columns / np.sqrt(count * (count + 1.0))
