"""Scaled Hermite polynomials, as in the author's MATLAB toolbox."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hikernel.bases.basis import Basis, FittedBasis, as_levels
from hikernel.bases.column import Column, Standardizer
from hikernel.bases.recurrence import scaled_hermite
from hikernel.checks import check_fraction, check_integer
from hikernel.engines.protocol import FloatArray

__all__ = ["FittedHermite", "Hermite"]


@dataclass(frozen=True)
class Hermite(Basis):
    """phi_j(x) = sqrt((a/2)^j / j!) H_j(x), j = 0..q, with the physicists' polynomials H_j.

    x is standardised. As q grows, the sum of the kernels tends to Mehler's kernel
    (1 - a^2)^(-1/2) exp((2 a x z - a^2 (x^2 + z^2)) / (1 - a^2)).

    Parameters
    ----------
    degree : int, default 4
        Highest level q.
    a : float, default 0.5
        In (0, 1); the larger, the slower the levels decay.

    Notes
    -----
    A value beyond the largest float becomes infinite with the correct sign, never NaN.

    Examples
    --------
    >>> fitted = Hermite(degree=2).fit([1.0, 3.0])     # H_2(x) = 4 x^2 - 2
    >>> [level.ravel().round(4).tolist() for level in fitted.transform([2.0, 3.0])]
    [[1.0, 1.0], [0.0, 1.0], [-0.3536, 0.3536]]
    """

    name: ClassVar[str] = "hermite"
    degree: int = 4
    a: float = 0.5

    def __post_init__(self) -> None:
        check_integer("degree", self.degree, 1)
        check_fraction("a", self.a, "the decay of the levels")

    def _fit(self, column: Column, scaler: Standardizer) -> FittedHermite:
        return FittedHermite(scaler, True, int(self.degree), float(self.a))


@dataclass(frozen=True, eq=False)
class FittedHermite(FittedBasis):
    """Scaled Hermite polynomials of the standardised column.

    Parameters
    ----------
    degree : int
        Highest level q.
    a : float
        Decay of the levels.
    """

    degree: int
    a: float

    @property
    def widths(self) -> tuple[int, ...]:
        """Columns per level: one each."""
        return (1,) * (self.degree + 1)

    def _levels(self, z: FloatArray) -> list[FloatArray]:
        return as_levels(scaled_hermite(z, self.a, np.ones_like(z), self.degree + 1))

    def level_polynomial(self, level: int) -> FloatArray:
        """Return the coefficients of a level in powers of the standardised column.

        >>> fitted = Hermite(degree=2).fit([1.0, 3.0])
        >>> fitted.level_polynomial(2) * np.sqrt(32.0)      # H_2(x) = 4 x^2 - 2
        array([-2.,  0.,  4.])
        """
        below, here = np.zeros(level + 1), np.eye(1, level + 1)[0]
        for j in range(level):
            # The recurrence of scaled_hermite for coefficients; multiplying by x shifts them.
            above = np.sqrt(2.0 * self.a / (j + 1)) * np.append(0.0, here[:-1])
            above -= self.a * np.sqrt(j / (j + 1)) * below
            below, here = here, above
        return np.asarray(here)
