"""The ANOVA decomposition: a constant and the whole Gaussian kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hikernel.bases.basis import Basis, FittedBasis
from hikernel.bases.column import Column, Standardizer
from hikernel.bases.kernels import GaussianKernel
from hikernel.bases.lowrank import LowRankMap, pivoted_cholesky
from hikernel.checks import check_fraction, check_optional_integer, check_positive
from hikernel.engines.protocol import FloatArray

__all__ = ["Anova", "FittedAnova"]


@dataclass(frozen=True)
class Anova(Basis):
    """k_0 = 1, k_1(x, z) = exp(-b (x - z)^2), so that products over variables are ANOVA kernels.

    x is standardised. A variable has only one level above 0 (q = 1), so the graph is that of
    the subsets of variables.

    Parameters
    ----------
    b : float, default 0.5
        Inverse squared length; 0.5 is a length of one standard deviation.
    tol : float, default 1e-10
        Fraction of the trace of k_1 on the training rows that may be neglected.
    max_rank : int, optional
        Largest number of columns of level 1; None means 1000.
    first_pivot : int, optional
        Training row of the first pivot of the Cholesky factor; None takes the largest diagonal
        entry. ``first_pivot=0, tol=1e-3`` gives the factors of the MATLAB toolbox.

    Examples
    --------
    >>> Anova().fit([0.0, 1.0, 1.0, 5.0]).widths      # three distinct values
    (1, 3)
    """

    name: ClassVar[str] = "anova"
    b: float = 0.5
    tol: float = 1e-10
    max_rank: int | None = None
    first_pivot: int | None = None

    def __post_init__(self) -> None:
        check_positive("b", self.b, "the inverse squared length of the kernel")
        check_fraction("tol", self.tol, "the relative trace that may be neglected")
        check_optional_integer("max_rank", self.max_rank, 1, "up to 1000 columns")
        check_optional_integer("first_pivot", self.first_pivot, 0, "the greedy choice")

    def _fit(self, column: Column, scaler: Standardizer) -> FittedAnova:
        start = None if self.first_pivot is None else column.index_of_row(self.first_pivot)
        kernel = GaussianKernel(float(self.b))
        low_rank = pivoted_cholesky(
            kernel, column.values, column.weights, self.tol, self.max_rank, start
        )
        return FittedAnova(scaler, True, low_rank)


@dataclass(frozen=True, eq=False)
class FittedAnova(FittedBasis):
    """A constant and a low-rank feature map.

    Parameters
    ----------
    low_rank : LowRankMap
        Feature map of level 1.
    """

    low_rank: LowRankMap

    @property
    def widths(self) -> tuple[int, ...]:
        """Columns per level: one for level 0, the rank of the kernel for level 1."""
        return (1, self.low_rank.rank)

    def _levels(self, z: FloatArray) -> list[FloatArray]:
        return [np.ones((z.size, 1)), self.low_rank.transform(z)]
