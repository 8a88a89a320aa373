"""Categories: a constant and centred indicators, in one block or from frequent to rare."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hikernel.bases.basis import Basis, FittedBasis, FittedConstant
from hikernel.bases.column import Column, Standardizer
from hikernel.checks import check_fraction, check_integer, check_positive
from hikernel.engines.protocol import FloatArray

__all__ = ["Categorical", "FittedCategorical"]

_MOST_TAKEN = 500
"""Largest number of categories that levels take out of the pool, if there are several levels."""


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

    More than ``most`` categories form a chain of levels from frequent to rare. Level 1 has the
    ``most // 2`` most frequent ones, one by one, and all others as a single category, the pool.
    Level 2 takes the next ``most`` out of the pool and is zero outside of it, level 3 the next
    2 ``most``, and so on: k_j is k_1 within the pool of level j - 1. So rare categories are pooled
    until the data ask for them. Categories with a share below ``least`` are never taken out, nor
    are any after the first 500. If every share is below ``least``, as in a column of identifiers,
    there is nothing to learn, and the column is a constant.

    Parameters
    ----------
    bound : float, default 2.0
        Upper bound on the norm of a row of a level on the training rows, and so on the magnitude of
        its entries. It should be at most the weight base of the graph.
    most : int, default 32
        Largest number of categories in a single level.
    least : float, default 0.0
        Share of the rows below which a category stays in the pool, if there are several levels.

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
    >>> Categorical().fit(np.arange(500.0) % 100).widths      # 16 and the pool, 32 of the rest, ...
    (1, 16, 32, 51)
    """

    name: ClassVar[str] = "categorical"
    standardises: ClassVar[bool] = False
    bound: float = 2.0
    most: int = 32
    least: float = 0.0

    def __post_init__(self) -> None:
        check_positive("bound", self.bound, "the largest norm of a row of level 1")
        check_integer("most", self.most, 2)
        if self.least != 0.0:
            check_fraction("least", self.least, "the share below which a category stays pooled")

    def _fit(self, column: Column, scaler: Standardizer) -> FittedBasis:
        shares = column.weights
        taken = self._taken(column)
        if len(taken) == 0:
            return FittedConstant(scaler, True)
        fitted = FittedCategorical(scaler, True, column.values, shares, np.ones(len(taken)), taken)
        scales = [self._scale(fitted.groups(level)[1]) for level in range(1, len(taken) + 1)]
        return replace(fitted, scales=np.array(scales))

    def _taken(self, column: Column) -> NDArray[np.int64]:
        """Return how many categories each level takes out of the pool."""
        size = len(column.values)
        if size <= self.most:
            return np.array([size])
        left = min(int(np.sum(column.weights >= self.least)), _MOST_TAKEN)
        out, step = [], self.most // 2
        while left > 0:
            # What would be left for a last, small level is taken at once.
            out.append(left if left <= step + step // 2 else step)
            left -= out[-1]
            step = self.most * 2 ** (len(out) - 1)
        return np.array(out, dtype=np.int64)

    def _scale(self, shares: FloatArray) -> float:
        """Return the factor s of a level, from the shares of its categories among all rows."""
        inside = float(np.sum(shares))
        w = shares / inside
        # 1 - sum_c w_c^2, but without cancellation when one category has nearly all the rows.
        variance = inside * float(w @ _others(w))
        longest = math.sqrt(1.0 - 2.0 * float(w.min()) + float(w @ w))
        return min(1.0 / math.sqrt(variance), self.bound / longest)


@dataclass(frozen=True, eq=False)
class FittedCategorical(FittedBasis):
    """Level j is s_j H' (e_c - w) at category c of its pool, and zero at all other categories.

    H is the Helmert matrix, e_c the unit vector of c and w the shares in the pool, where all
    categories that the level leaves in the pool count as one.

    Parameters
    ----------
    codes : ndarray of shape (K,)
        Distinct values of the column in increasing order, K >= 2.
    shares : ndarray of shape (K,)
        Their weights, summing to one.
    scales : ndarray of shape (q,)
        The factors s_j.
    taken : ndarray of int, shape (q,)
        How many categories each level takes out of the pool, the most frequent first. With one
        level and taken[0] = K there is no pool, and categories are in the order of their codes.
    """

    codes: FloatArray
    shares: FloatArray
    scales: FloatArray
    taken: NDArray[np.int64]

    def __post_init__(self) -> None:
        if not len(self.codes) == len(self.shares) >= max(2, int(np.sum(self.taken))):
            raise ValueError("There must be a share for every category, and not more are taken.")
        if not len(self.scales) == len(self.taken) >= 1 or np.any(self.taken < 1):
            raise ValueError("Every level must take a category, and have a scale.")

    @property
    def widths(self) -> tuple[int, ...]:
        """Columns per level: one for level 0, one fewer than its categories for any other."""
        left = len(self.codes) - np.cumsum(self.taken)
        return (1, *(self.taken - (left == 0)).tolist())

    @property
    def exponents(self) -> tuple[float, ...]:
        """Powers of the weight base in the weights: (j + 1) / 2, as for steps."""
        return (0.0, *[0.5 * (j + 1) for j in range(1, len(self.taken) + 1)])

    def level_name(self, level: int, name: str) -> str:
        """Return the name of the column, or "rare town" and "rarer town" for levels 2 and 3."""
        if level == 1:
            return name
        words = {2: "rare", 3: "rarer"}
        return f"{words.get(level, f'rare{level}')} {name}"

    def groups(self, level: int) -> tuple[NDArray[np.intp], FloatArray]:
        """Return for every category its group in a level, and the shares of the groups.

        A group is one category or, the last one, what the level leaves in the pool. It is -1 for
        categories that the levels below have taken.
        """
        size = len(self.codes)
        if len(self.taken) == 1 and self.taken[0] == size:
            return np.arange(size, dtype=np.intp), self.shares
        order = np.argsort(-self.shares, kind="stable")
        start = int(np.sum(self.taken[: level - 1]))
        count = int(self.taken[level - 1])
        group = np.full(size, -1, dtype=np.intp)
        group[order[start:]] = np.minimum(np.arange(size - start), count)
        n_groups = min(count + 1, size - start)
        inside = group >= 0
        shares = np.bincount(group[inside], self.shares[inside], minlength=n_groups)
        return group, shares.astype(np.float64)

    def level_heights(self, level: int) -> FloatArray:
        """Return a level above 0 at every category, shape (K, width)."""
        group, shares = self.groups(level)
        helmert = _helmert(len(shares))
        table = np.zeros((len(shares) + 1, len(shares) - 1))  # the last row is for group -1
        table[:-1] = self.scales[level - 1] * (helmert - (shares / np.sum(shares)) @ helmert)
        return np.asarray(table[group])

    def _levels(self, z: FloatArray) -> list[FloatArray]:
        place = np.minimum(np.searchsorted(self.codes, z), self.codes.size - 1)
        unseen = self.codes[place] != z
        levels = [np.ones((z.size, 1))]
        for level in range(1, len(self.taken) + 1):
            values = self.level_heights(level)[place]
            values[unseen] = 0.0
            levels.append(values)
        return levels

    def up_to(self, level: int) -> FittedCategorical:
        """Return the basis with levels 0 to ``level`` only; one level at least."""
        few = max(1, level)
        return replace(self, scales=self.scales[:few], taken=self.taken[:few])


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
