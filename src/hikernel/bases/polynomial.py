"""The polynomial decomposition of the paper."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hikernel.bases.basis import Basis, FittedBasis, as_levels
from hikernel.bases.column import Column, Standardizer
from hikernel.bases.recurrence import binomial_powers
from hikernel.checks import check_integer
from hikernel.engines.protocol import FloatArray

__all__ = ["FittedPolynomial", "Polynomial"]


@dataclass(frozen=True)
class Polynomial(Basis):
    """phi_j(x) = sqrt(binom(q, j)) x^j, j = 0..q; the kernels sum to (1 + x z)^q.

    x is standardised. A column with fewer than q + 1 distinct values keeps all levels, which are
    then linearly dependent; the penalty handles this.

    Parameters
    ----------
    degree : int, default 4
        Highest power q.

    Notes
    -----
    A power beyond the largest float becomes infinite with the correct sign, never NaN. For q = 4
    this happens at points about 1e77 standard deviations away.

    Examples
    --------
    >>> levels = Polynomial(degree=2).fit([1.0, 3.0]).transform([1.0, 2.0, 3.0])
    >>> [level.ravel().round(3).tolist() for level in levels]
    [[1.0, 1.0, 1.0], [-1.414, 0.0, 1.414], [1.0, 0.0, 1.0]]
    """

    name: ClassVar[str] = "polynomial"
    degree: int = 4

    def __post_init__(self) -> None:
        check_integer("degree", self.degree, 1)

    def _fit(self, column: Column, scaler: Standardizer) -> FittedPolynomial:
        return FittedPolynomial(scaler, True, int(self.degree))


@dataclass(frozen=True, eq=False)
class FittedPolynomial(FittedBasis):
    """Powers of the standardised column.

    Parameters
    ----------
    degree : int
        Highest power q.
    """

    degree: int

    @property
    def widths(self) -> tuple[int, ...]:
        """Columns per level: one each."""
        return (1,) * (self.degree + 1)

    def _levels(self, z: FloatArray) -> list[FloatArray]:
        return as_levels(binomial_powers(z, self.degree))

    def level_polynomial(self, level: int) -> FloatArray:
        """Return the coefficients of a level in powers of the standardised column.

        Only the last one, of the power ``level``, is not zero.
        """
        coefficients = np.zeros(level + 1)
        coefficients[level] = binomial_powers(np.ones(1), self.degree)[level, 0]
        return coefficients
