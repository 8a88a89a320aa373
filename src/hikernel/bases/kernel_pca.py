"""Principal components of any one-variable kernel: the adaptive decomposition of the paper."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hikernel.bases.basis import Basis, FittedBasis
from hikernel.bases.column import Column, Standardizer
from hikernel.bases.kernels import KERNELS, Kernel, check_kernel_name
from hikernel.bases.lowrank import LowRankMap, leading_directions, pivoted_cholesky
from hikernel.checks import (
    check_flag,
    check_fraction,
    check_integer,
    check_optional_integer,
    check_positive,
)
from hikernel.engines.protocol import FloatArray

__all__ = ["FittedKernelPCA", "KernelPCA"]


@dataclass(frozen=True)
class KernelPCA(Basis):
    """k(x, z) = sum_j phi_j(x) phi_j(z), phi_j(z) = sum_i w_i u_ij k(x_i, z) / sqrt(lambda_j).

    Here u_j, of weighted norm one, are the eigenvectors of the training Gram matrix,
    sum_k w_k k(x_i, x_k) u_kj = lambda_j u_ij, with the weights summing to one and the
    eigenvalues decreasing. Levels 0..q-1 are single directions. Level q holds all remaining
    directions as one block; it does not exist if none remain.

    Parameters
    ----------
    kernel : {"gaussian", "laplace"} or callable, default "gaussian"
        exp(-b (x - z)^2), exp(-b |x - z|), or a positive semidefinite function k(x, z) of two
        1-D arrays of standardised points, with values of shape (len(x), len(z)).
    degree : int, default 4
        Highest level q.
    b : float, default 0.5
        Parameter of the named kernels; not used with a callable.
    constant_level : bool, default False
        Make level 0 the constant one, and levels 1..q-1 the first directions. If False, level 0
        is the first direction, usually a bump.
    tol : float, default 1e-10
        Fraction of the trace of the kernel on the training rows that may be neglected.
    max_rank : int, optional
        Largest number of columns in the factor of the kernel; None means 1000. Rough kernels such
        as "laplace" need as many as there are distinct values: raise ``tol`` to 1e-3 or so.
    first_pivot : int, optional
        Training row of the first pivot of the Cholesky factor; None takes the largest diagonal
        entry.

    Notes
    -----
    The n x n Gram matrix is never formed. The kernel is first replaced by a pivoted Cholesky factor
    with r columns; the directions are then eigenvectors of its r x r moment matrix.

    Examples
    --------
    >>> x = np.random.default_rng(0).normal(size=300)
    >>> fitted = KernelPCA(degree=3, tol=1e-8).fit(x)
    >>> fitted.widths[:3], fitted.max_level
    ((1, 1, 1), 3)
    """

    name: ClassVar[str] = "kernel_pca"
    kernel: str | Kernel = "gaussian"
    degree: int = 4
    b: float = 0.5
    constant_level: bool = False
    tol: float = 1e-10
    max_rank: int | None = None
    first_pivot: int | None = None

    def __post_init__(self) -> None:
        if isinstance(self.kernel, str):
            check_kernel_name(self.kernel)
        elif not callable(self.kernel):
            raise ValueError(
                f"kernel must be one of {', '.join(sorted(KERNELS))} or a callable k(x, z), "
                f"got {self.kernel!r}."
            )
        check_integer("degree", self.degree, 1)
        check_positive("b", self.b, "the inverse length of the kernel")
        check_flag("constant_level", self.constant_level)
        check_fraction("tol", self.tol, "the relative trace that may be neglected")
        check_optional_integer("max_rank", self.max_rank, 1, "up to 1000 columns")
        check_optional_integer("first_pivot", self.first_pivot, 0, "the greedy choice")

    def _fit(self, column: Column, scaler: Standardizer) -> FittedKernelPCA:
        kernel = (
            KERNELS[self.kernel](float(self.b)) if isinstance(self.kernel, str) else self.kernel
        )
        z, w = column.values, column.weights
        start = None if self.first_pivot is None else column.index_of_row(self.first_pivot)
        # The factor and the truncation of directions may each neglect half of the tolerance.
        low_rank = pivoted_cholesky(kernel, z, w, 0.5 * self.tol, self.max_rank, start)
        phi = low_rank.transform(z)
        moment = (phi.T * w) @ phi
        rotation, _ = leading_directions(moment, 0.5 * self.tol)
        if rotation.shape[1] == 0:
            raise ValueError(
                "The kernel is zero on all training points, or so small that its squares are, so "
                "that it has no directions; choose another kernel, or multiply it by a constant."
            )
        n_single = int(self.degree) - self.constant_level
        return FittedKernelPCA(scaler, self.constant_level, low_rank, rotation, n_single)


@dataclass(frozen=True, eq=False)
class FittedKernelPCA(FittedBasis):
    """Directions of a low-rank feature map: one per level, the rest together in the last level.

    Parameters
    ----------
    low_rank : LowRankMap
        Feature map of the kernel, with r columns.
    rotation : ndarray of shape (r, c)
        Principal directions, those of largest eigenvalue first.
    n_single : int
        Largest number of directions that form a level of their own.
    """

    low_rank: LowRankMap
    rotation: FloatArray
    n_single: int

    @property
    def widths(self) -> tuple[int, ...]:
        """Columns per level: one each, except for the last, which has all remaining directions."""
        n_directions = int(self.rotation.shape[1])
        rest = n_directions - self.n_single
        single = self.constant_level + min(self.n_single, n_directions)
        return (1,) * single + ((rest,) if rest > 0 else ())

    def _levels(self, z: FloatArray) -> list[FloatArray]:
        directions = self.low_rank.transform(z) @ self.rotation
        if self.constant_level:
            directions = np.hstack([np.ones((z.size, 1)), directions])
        return np.split(directions, np.cumsum(self.widths)[:-1], axis=1)
