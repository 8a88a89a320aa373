"""Bounded polynomials in the rank of a column: for heavy tails and rare values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hikernel.bases.base import Basis, FittedBasis
from hikernel.bases.column import Column, FloatArray
from hikernel.bases.orthonormal import FittedOrthonormalPolynomial, OrthonormalPolynomial
from hikernel.bases.parameters import check_integer, check_positive
from hikernel.bases.scaling import Standardizer

__all__ = ["FittedRankPolynomial", "RankPolynomial"]

MAX_KNOTS = 1024
"""Points of the column at which its distribution function is kept."""


@dataclass(frozen=True)
class RankPolynomial(Basis):
    """Polynomials orthonormal in u(x), the share of training rows below x, and bounded.

    u is the weighted distribution function (ties at their middle), linear between the training
    values and constant outside their range. Level j is scaled down where it exceeds ``bound``
    in magnitude on the training rows. Products of levels then stay below the product of their
    weights, however heavy the tails or rare the values of the columns: with orthonormal
    polynomials a row that is far out in several columns has products larger than all others
    together, and deep terms that fit that row alone.

    Parameters
    ----------
    degree : int, default 4
        Highest degree q. A column with m distinct values has at most m - 1 levels above 0.
    bound : float, default 2.0
        Largest magnitude of a level on the training rows; the weight base of the graph or less.

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
        size = len(column.values)
        chosen = np.unique(np.linspace(0, size - 1, min(size, MAX_KNOTS)).round().astype(np.intp))
        knots, ranks = column.values[chosen], ranks[chosen]
        u = np.interp(column.values, knots, ranks)
        rank_scaler = Standardizer.fit(u, column.weights)
        inner = Column(rank_scaler.transform(u), column.weights, column.position)
        polynomial = OrthonormalPolynomial(self.degree)._fit(inner, rank_scaler)
        levels = polynomial.transform(u)
        factors = [min(1.0, self.bound / float(np.max(np.abs(level)))) for level in levels[1:]]
        return FittedRankPolynomial(
            scaler, True, knots, ranks, polynomial, np.array([1.0, *factors])
        )


@dataclass(frozen=True, eq=False)
class FittedRankPolynomial(FittedBasis):
    """factors_j p_j(u(x)).

    Parameters
    ----------
    knots, ranks : ndarray of shape (m,)
        Standardised points and u there.
    polynomial : FittedOrthonormalPolynomial
        The p_j, fitted to u.
    factors : ndarray of shape (q + 1,)
        At most one.
    """

    knots: FloatArray
    ranks: FloatArray
    polynomial: FittedOrthonormalPolynomial
    factors: FloatArray

    @property
    def widths(self) -> tuple[int, ...]:
        """Columns per level: one each."""
        return self.polynomial.widths

    def _levels(self, z: FloatArray) -> list[FloatArray]:
        levels = self.polynomial.transform(np.interp(z, self.knots, self.ranks))
        return [factor * level for factor, level in zip(self.factors, levels, strict=True)]
