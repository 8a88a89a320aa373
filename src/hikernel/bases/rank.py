"""Bounded polynomials in the rank of a column: for heavy tails and rare values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from hikernel.bases.basis import Basis, FittedBasis, FittedConstant
from hikernel.bases.column import Column, Standardizer
from hikernel.bases.orthonormal import OrthonormalPolynomial
from hikernel.checks import check_integer, check_positive
from hikernel.engines.protocol import FloatArray

__all__ = ["FittedRankPolynomial", "RankPolynomial"]

MAX_KNOTS = 1024
"""Largest number of values of the column at which the levels are stored."""


@dataclass(frozen=True)
class RankPolynomial(Basis):
    """Polynomials orthonormal in u(x), the share of training rows below x, and bounded.

    u is the weighted distribution function, where tied rows count half. A level that exceeds
    ``bound`` in magnitude on the training rows is scaled down as a whole. Levels are linear between
    training values (at most 1024 of them) and constant beyond, so the bound holds everywhere. (The
    polynomial itself may exceed it in gaps without training rows.)

    Products of levels then stay below the product of their weights, even with heavy tails or rare
    values. With orthonormal polynomials, a row that is extreme in several columns has products
    larger than those of all other rows together, and deep terms fit that row alone.

    Parameters
    ----------
    degree : int, default 4
        Highest degree q. A column with m distinct values has at most m - 1 levels above 0.
    bound : float, default 2.0
        Largest magnitude of a level. It should be at most the weight base of the graph.

    Examples
    --------
    >>> x = np.array([0.0, 1.0, 2.0, 1e6])
    >>> linear = RankPolynomial(degree=1).fit(x).transform(x)[1][:, 0]
    >>> np.allclose(np.diff(linear), linear[1] - linear[0])      # evenly spaced
    True
    """

    name: ClassVar[str] = "rank"
    degree: int = 4
    bound: float = 2.0

    def __post_init__(self) -> None:
        check_integer("degree", self.degree, 1)
        check_positive("bound", self.bound, "the largest magnitude of a level")

    def _fit(self, column: Column, scaler: Standardizer) -> FittedBasis:
        ranks = np.cumsum(column.weights) - 0.5 * column.weights
        scaler_of_ranks = Standardizer.fit(ranks, column.weights)
        inner = Column(scaler_of_ranks.transform(ranks), column.weights, column.position)
        polynomial = OrthonormalPolynomial(self.degree)._fit(inner, scaler_of_ranks)
        if polynomial.max_level == 0:  # all weight is on one value, up to rounding
            return FittedConstant(scaler, constant_level=True)
        levels = np.hstack(polynomial.transform(ranks)[1:])
        levels *= np.minimum(1.0, self.bound / np.max(np.abs(levels), axis=0))
        size = len(ranks)
        chosen = np.unique(np.linspace(0, size - 1, min(size, MAX_KNOTS)).round().astype(np.intp))
        return FittedRankPolynomial(scaler, True, column.values[chosen], levels[chosen])


@dataclass(frozen=True, eq=False)
class FittedRankPolynomial(FittedBasis):
    """Levels that are linear between knots and constant beyond the outer ones.

    With two knots, as for a column of zeros and ones, level 1 is c_0 + c_1 t, where t is the
    standardised column clipped to the knots. A formula then writes it out.

    Parameters
    ----------
    knots : ndarray of shape (m,)
        Standardised points in increasing order.
    heights : ndarray of shape (m, q)
        Values of the levels above 0 at the knots.
    """

    knots: FloatArray
    heights: FloatArray

    @property
    def widths(self) -> tuple[int, ...]:
        """Columns per level: one each."""
        return (1,) * (int(self.heights.shape[1]) + 1)

    def up_to(self, level: int) -> FittedRankPolynomial:
        """Return the basis with levels 0 to ``level`` only."""
        return replace(self, heights=self.heights[:, :level])

    def argument(self, x: ArrayLike) -> FloatArray:
        """Return x standardised, shape (n,); clipped to the knots if there are exactly two."""
        z = super().argument(x)
        return np.clip(z, self.knots[0], self.knots[1]) if self._linear else z

    @property
    def points(self) -> FloatArray:
        """The knots in the units of the column, shape (m,)."""
        return self.scaler.center + self.scaler.scale * self.knots

    @property
    def domain(self) -> tuple[float, float] | None:
        """The two values of a column with exactly two distinct values, otherwise None."""
        return (float(self.points[0]), float(self.points[1])) if self._linear else None

    def level_polynomial(self, level: int) -> FloatArray | None:
        """Return the coefficients of a level in powers of `argument`; None for 3 or more knots.

        >>> fitted = RankPolynomial(degree=1).fit([0.0, 0.0, 0.0, 1.0])
        >>> fitted.level_polynomial(1).round(3) + 0.0       # sqrt(3) is within the bound
        array([0., 1.])
        """
        if not self._linear:
            return None
        if level == 0:
            return np.ones(1)
        (left, right), (low, high) = self.knots, self.heights[:, level - 1]
        slope = (high - low) / (right - left)
        constant = (low * right - high * left) / (right - left)
        # A level has mean zero up to rounding, which a formula should not show.
        rounding = 16.0 * np.finfo(np.float64).eps * max(abs(low), abs(high))
        return np.array([constant if abs(constant) > rounding else 0.0, slope])

    def slopes(self) -> FloatArray:
        """Return the differences between knots: levels are linear there and constant beyond."""
        return np.diff(self.heights, axis=0)

    @property
    def _linear(self) -> bool:
        """Whether the levels are linear functions of the clipped column."""
        return self.knots.size == 2

    def _levels(self, z: FloatArray) -> list[FloatArray]:
        levels = [np.interp(z, self.knots, height) for height in self.heights.T]
        return [np.ones((z.size, 1)), *[level[:, None] for level in levels]]
