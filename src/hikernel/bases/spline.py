"""Cubic smoothing splines: a constant, a line, and the smooth deviation from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hikernel.bases.basis import Basis, FittedBasis
from hikernel.bases.column import Column, Standardizer
from hikernel.bases.kernels import CubicSplineKernel
from hikernel.bases.lowrank import LowRankMap, pivoted_cholesky
from hikernel.checks import check_fraction, check_optional_integer
from hikernel.engines.protocol import FloatArray

__all__ = ["FittedSpline", "Spline"]

# Level 2 is evaluated at points clipped to this many standard deviations. It is then finite
# everywhere, since m^2 (3M - m) is at most 2e300.
_REACH = 1e100


@dataclass(frozen=True)
class Spline(Basis):
    """k_0 = 1, k_1 = x z, k_2 = 1[xz > 0] m^2 (3M - m), m and M the min and max of |x|, |z|.

    x is standardised. Functions of level 2 are cubic splines with knots at training points,
    zero with zero slope at the mean of the column, linear beyond the data.

    Parameters
    ----------
    tol : float, default 1e-4
        Fraction of the trace of k_2 on the training rows that may be neglected. The kernel is not
        smooth on its diagonal, so the trace left after r columns falls only like r^-3. On normal
        data 1e-4 takes 34 columns, 1e-6 takes 139, and 1e-10 takes one per distinct value up to
        thousands, where smooth kernels need about twenty. Products of levels multiply their numbers
        of columns, hence the coarser default than for other bases. The function is then a cubic
        spline with about 34 well spread knots.
    max_rank : int, optional
        Largest number of columns of level 2; None means 1000.
    first_pivot : int, optional
        Training row of the first pivot of the Cholesky factor; None takes the largest diagonal
        entry. ``first_pivot=0, tol=1e-3`` gives the factors of the MATLAB toolbox.

    Examples
    --------
    >>> Spline(tol=1e-10).fit([0.0, 1.0, 2.5, 5.0]).widths
    (1, 1, 4)
    """

    name: ClassVar[str] = "spline"
    tol: float = 1e-4
    max_rank: int | None = None
    first_pivot: int | None = None

    def __post_init__(self) -> None:
        check_fraction("tol", self.tol, "the relative trace that may be neglected")
        check_optional_integer("max_rank", self.max_rank, 1, "up to 1000 columns")
        check_optional_integer("first_pivot", self.first_pivot, 0, "the greedy choice")

    def _fit(self, column: Column, scaler: Standardizer) -> FittedSpline:
        start = None if self.first_pivot is None else column.index_of_row(self.first_pivot)
        low_rank = pivoted_cholesky(
            CubicSplineKernel(), column.values, column.weights, self.tol, self.max_rank, start
        )
        return FittedSpline(scaler, True, low_rank)


@dataclass(frozen=True, eq=False)
class FittedSpline(FittedBasis):
    """A constant, the standardised column, and a low-rank feature map.

    Parameters
    ----------
    low_rank : LowRankMap
        Feature map of level 2.
    """

    low_rank: LowRankMap

    @property
    def widths(self) -> tuple[int, ...]:
        """Columns per level: one for levels 0 and 1, the rank of the kernel for level 2."""
        return (1, 1, self.low_rank.rank)

    def _levels(self, z: FloatArray) -> list[FloatArray]:
        within = np.clip(z, -_REACH, _REACH)
        return [np.ones((z.size, 1)), z[:, np.newaxis], self.low_rank.transform(within)]

    def level_polynomial(self, level: int) -> FloatArray | None:
        """Return (0, 1) for level 1, which is the standardised column; None for other levels."""
        return np.array([0.0, 1.0]) if level == 1 else None
