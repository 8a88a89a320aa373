"""Categories: a constant, and their centred indicators as one block."""

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
    values c of the column. A value that is missing, or was not there in the fit, gives zero at
    level 1: the average effect, since the indicators are centred.

    The factor s makes the total variance of the block one on the training rows, unless a row of
    the block would then be longer than ``bound``, sqrt(k_1(x, x)) > bound: then s makes the longest
    that long. This happens where one category is common and the others are rare (below a fifth of
    the rows, for two categories), whose products with other rare categories would otherwise be
    larger than all else.

    Parameters
    ----------
    bound : float, default 2.0
        Largest norm of a row of level 1, and so the largest magnitude of a column of it, on the
        training rows; the weight base of the graph or less.

    Notes
    -----
    The K indicators add up to zero after centring, so that they span K - 1 dimensions. Level 1 is
    given in K - 1 columns that are an orthonormal rotation of them (Helmert's: each category
    against the mean of those before it). The kernel is the same, and so are norms, penalty and
    predictions, at fewer columns in every product; two categories take one column, which grows
    from the smaller code to the larger one. The effect of each category is level 1 at its code
    times the coefficients.

    The codes are compared as they are, to the last bit. They may be any numbers.

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
        # 1 - sum_c w_c^2 without its cancellation when one category has nearly all the rows.
        variance = float(shares @ _others(shares))
        longest = math.sqrt(1.0 - 2.0 * float(shares.min()) + purity)
        scale = min(1.0 / math.sqrt(variance), self.bound / longest)
        return FittedCategorical(scaler, True, column.values, shares, scale)


@dataclass(frozen=True, eq=False)
class FittedCategorical(FittedBasis):
    """s H (e_c - w) at category c, H the Helmert matrix.

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
        """Columns per level: one, and one less than there are categories."""
        return (1, self.codes.size - 1)

    def _levels(self, z: FloatArray) -> list[FloatArray]:
        place = np.minimum(np.searchsorted(self.codes, z), self.codes.size - 1)
        # The last row is for values that were not there in the fit.
        place[self.codes[place] != z] = self.codes.size
        return [np.ones((z.size, 1)), self._table()[place]]

    def _table(self) -> FloatArray:
        """Level 1 at every category and at an unseen one, shape (K + 1, K - 1)."""
        helmert = _helmert(self.codes.size)
        table = np.zeros((self.codes.size + 1, self.codes.size - 1))
        table[:-1] = self.scale * (helmert - self.shares @ helmert)
        return table


def _others(shares: FloatArray) -> FloatArray:
    """sum_{d != c} w_d for every c, shape (K,), each a sum of positive numbers."""
    before = np.append(0.0, np.cumsum(shares[:-1]))
    after = np.append(0.0, np.cumsum(shares[:0:-1]))[::-1]
    return np.asarray(before + after)


def _helmert(size: int) -> FloatArray:
    """Orthonormal columns that are orthogonal to the ones, shape (size, size - 1).

    Column j is (-1, ..., -1, j + 1, 0, ..., 0) / sqrt((j + 1)(j + 2)), j + 1 entries being -1.
    """
    count = np.arange(1.0, size)
    columns = np.triu(np.full((size, size - 1), -1.0))
    columns[np.arange(1, size), np.arange(size - 1)] = count
    return columns / np.sqrt(count * (count + 1.0))
