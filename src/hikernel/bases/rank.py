"""Bounded polynomials in the rank of a column: for heavy tails and rare values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from hikernel.bases.basis import Basis, FittedBasis
from hikernel.bases.column import Column, Standardizer
from hikernel.bases.orthonormal import OrthonormalPolynomial
from hikernel.checks import check_integer, check_positive
from hikernel.engines.protocol import FloatArray

__all__ = ["FittedRankPolynomial", "RankPolynomial"]

MAX_KNOTS = 1024
"""Points of the column at which the levels are kept."""


@dataclass(frozen=True)
class RankPolynomial(Basis):
    """Polynomials orthonormal in u(x), the share of training rows below x, and bounded.

    u is the weighted distribution function (ties at their middle). Level j is scaled down where it
    exceeds ``bound`` in magnitude on the training rows; between training values it is linear,
    beyond them constant, so that the bound holds everywhere (the polynomial itself may leave it
    in gaps without training rows). Products of levels then stay below the product of their
    weights, however heavy the tails or rare the values of the columns: with orthonormal
    polynomials a row that is far out in several columns has products larger than all others
    together, and deep terms that fit that row alone.

    Parameters
    ----------
    degree : int, default 4
        Highest degree q. A column with m distinct values has at most m - 1 levels above 0.
    bound : float, default 2.0
        Largest magnitude of a level; the weight base of the graph or less.

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

    def _fit(self, column: Column, scaler: Standardizer) -> FittedRankPolynomial:
        ranks = np.cumsum(column.weights) - 0.5 * column.weights
        scaler_of_ranks = Standardizer.fit(ranks, column.weights)
        inner = Column(scaler_of_ranks.transform(ranks), column.weights, column.position)
        polynomial = OrthonormalPolynomial(self.degree)._fit(inner, scaler_of_ranks)
        levels = np.hstack(polynomial.transform(ranks)[1:])
        levels *= np.minimum(1.0, self.bound / np.max(np.abs(levels), axis=0))
        size = len(ranks)
        chosen = np.unique(np.linspace(0, size - 1, min(size, MAX_KNOTS)).round().astype(np.intp))
        return FittedRankPolynomial(scaler, True, column.values[chosen], levels[chosen])


@dataclass(frozen=True, eq=False)
class FittedRankPolynomial(FittedBasis):
    """Levels that are linear between knots and constant beyond the outer ones.

    With two knots, as of a column of zeros and ones, level 1 is c_0 + c_1 t with t the
    standardised column clipped to the knots, and a formula writes it out.

    Parameters
    ----------
    knots : ndarray of shape (m,)
        Standardised points in increasing order.
    heights : ndarray of shape (m, q)
        The levels above 0 there.
    """

    knots: FloatArray
    heights: FloatArray

    @property
    def widths(self) -> tuple[int, ...]:
        """Columns per level: one each."""
        return (1,) * (int(self.heights.shape[1]) + 1)

    def up_to(self, level: int) -> FittedRankPolynomial:
        """Return the levels 0 to ``level``."""
        return replace(self, heights=self.heights[:, :level])

    def argument(self, x: ArrayLike) -> FloatArray:
        """Return x standardised, shape (n,), and between the knots where there are two."""
        z = super().argument(x)
        return np.clip(z, self.knots[0], self.knots[1]) if self._linear else z

    @property
    def points(self) -> FloatArray:
        """The knots in the units of the column, shape (m,)."""
        return self.scaler.center + self.scaler.scale * self.knots

    @property
    def domain(self) -> tuple[float, float] | None:
        """The two values of a column that has no others, or None."""
        return (float(self.points[0]), float(self.points[1])) if self._linear else None

    def level_polynomial(self, level: int) -> FloatArray | None:
        """Coefficients of a level in powers of the standardised column; None for three knots on.

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
        # The mean of a level is zero, but for rounding, which no formula should show.
        rounding = 16.0 * np.finfo(np.float64).eps * max(abs(low), abs(high))
        return np.array([constant if abs(constant) > rounding else 0.0, slope])

    @property
    def _linear(self) -> bool:
        """Whether levels are linear functions of the clipped column."""
        return self.knots.size == 2

    def _levels(self, z: FloatArray) -> list[FloatArray]:
        levels = [np.interp(z, self.knots, height) for height in self.heights.T]
        return [np.ones((z.size, 1)), *[level[:, None] for level in levels]]
