"""Polynomials in the inverse hyperbolic sine of a column: for skewed and heavy-tailed columns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from hikernel.bases.basis import Basis, FittedBasis
from hikernel.bases.column import Column, Standardizer
from hikernel.bases.orthonormal import FittedOrthonormalPolynomial, OrthonormalPolynomial
from hikernel.checks import check_integer
from hikernel.engines.protocol import FloatArray

__all__ = ["AsinhPolynomial", "FittedAsinhPolynomial"]

_NORMAL = float(np.sqrt(np.pi / 2.0))
"""Ratio of the standard deviation to the mean absolute deviation for normal data."""


@dataclass(frozen=True)
class AsinhPolynomial(Basis):
    """Polynomials orthonormal in t(x) = asinh((x - median) / s), s = sqrt(pi/2) E|x - median|.

    Within one s of the median, t equals (x - median) / s up to a third-order term; beyond, it grows
    like a logarithm. So a few rows in a long tail do not dominate the powers of t. Outside the
    range of the training data the levels keep the values they have at its ends.

    Parameters
    ----------
    degree : int, default 4
        Highest degree q. A column with m distinct values has at most m - 1 levels above 0.

    Examples
    --------
    >>> x = np.random.default_rng(0).lognormal(sigma=2.0, size=1000)
    >>> plain = OrthonormalPolynomial(degree=4).fit(x).transform(x)[1]
    >>> calm = AsinhPolynomial(degree=4).fit(x).transform(x)[1]
    >>> bool(np.mean(plain**4) > 10 * np.mean(calm**4))     # plain rests on few rows
    True
    """

    name: ClassVar[str] = "asinh"
    degree: int = 4

    def __post_init__(self) -> None:
        check_integer("degree", self.degree, 1)

    def _fit(self, column: Column, scaler: Standardizer) -> FittedAsinhPolynomial:
        z, w = column.values, column.weights
        center = float(z[np.searchsorted(np.cumsum(w), 0.5 - 1e-12)])
        spread = _NORMAL * float(w @ np.abs(z - center))
        t = _bend(z, center, spread)
        inner = Standardizer.fit(t, w)
        standard = Column(inner.transform(t), w, column.position)
        polynomial = OrthonormalPolynomial(self.degree)._fit(standard, inner)
        return FittedAsinhPolynomial(scaler, True, center, spread, polynomial)


@dataclass(frozen=True, eq=False)
class FittedAsinhPolynomial(FittedBasis):
    """Polynomials in t(x) = asinh((z - center) / spread), where z is the standardised column.

    Parameters
    ----------
    center, spread : float
        Median of z, and sqrt(pi/2) times its mean absolute deviation from the median.
    polynomial : FittedOrthonormalPolynomial
        The levels as functions of t.
    """

    center: float
    spread: float
    polynomial: FittedOrthonormalPolynomial

    @property
    def widths(self) -> tuple[int, ...]:
        """Columns per level: one each."""
        return self.polynomial.widths

    def _levels(self, z: FloatArray) -> list[FloatArray]:
        return self.polynomial.transform(_bend(z, self.center, self.spread))

    def argument(self, x: ArrayLike) -> FloatArray:
        """Return t(x), standardised, shape (n,)."""
        return self.polynomial.argument(_bend(super().argument(x), self.center, self.spread))

    @property
    def domain(self) -> tuple[float, float]:
        """Range of the training column, in its units."""
        low, high = self.polynomial.domain
        return self.median + self.unit * np.sinh(low), self.median + self.unit * np.sinh(high)

    @property
    def median(self) -> float:
        """Median of the training column, in its units."""
        return self.scaler.center + self.scaler.scale * self.center

    @property
    def unit(self) -> float:
        """The divisor s of (x - median), in the units of the column."""
        return self.scaler.scale * self.spread

    def up_to(self, level: int) -> FittedAsinhPolynomial:
        """Return the basis with levels 0 to ``level`` only."""
        return replace(self, polynomial=self.polynomial.up_to(level))

    def level_polynomial(self, level: int) -> FloatArray | None:
        """Return the coefficients of a level in powers of `argument`, or None.

        None if the powers would cancel too many digits.
        """
        return self.polynomial.level_polynomial(level)

    def slopes(self) -> FloatArray:
        """Return those of the polynomials in t, which increases with x."""
        return self.polynomial.slopes()


def _bend(z: FloatArray, center: float, spread: float) -> FloatArray:
    """Return asinh((z - center) / spread), finite for every finite z."""
    with np.errstate(over="ignore"):
        ratio = (z - center) / spread
    largest = np.finfo(np.float64).max
    return np.arcsinh(np.clip(ratio, -largest, largest))
