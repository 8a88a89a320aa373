"""One-variable decompositions for the tables, in addition to those of ``hikernel.bases``."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hikernel.bases import KernelPCA, Polynomial
from hikernel.engines.protocol import FloatArray

__all__ = ["CentredGaussian", "RawPolynomial", "centred_gaussian"]


@dataclass(frozen=True)
class RawPolynomial(Polynomial):
    """phi_j(x) = sqrt(binom(q, j)) x^j, without standardising the column.

    Meant for indicators: the standardised indicator of a category that one row in 400 has is 20 in
    that row.

    Examples
    --------
    >>> levels = RawPolynomial(degree=2).fit([0.0, 0.0, 1.0]).transform([0.0, 1.0])
    >>> [level.ravel().round(3).tolist() for level in levels]
    [[1.0, 1.0], [0.0, 1.414], [0.0, 1.0]]
    """

    standardises: ClassVar[bool] = False


@dataclass(frozen=True)
class CentredGaussian:
    """k(x, z) = exp(-b (x - z)^2) - m(x) - m(z) + M, centred under N(0, 1).

    m(x) = E exp(-b (x - Z)^2) = (1 + 2b)^(-1/2) exp(-b x^2 / (1 + 2b)) and M = E m(Z) =
    (1 + 4b)^(-1/2). Kernel PCA is usually applied to centred kernels. This kernel is centred under
    the normal distribution of the paper's expansion, so that it does not depend on the training
    rows.

    Parameters
    ----------
    b : float
        Inverse squared length scale; x is standardised.

    Examples
    --------
    >>> kernel = CentredGaussian(0.5)
    >>> z = np.random.default_rng(0).standard_normal(200_000)
    >>> bool(abs(kernel(np.array([0.7]), z).mean()) < 1e-3)
    True
    """

    b: float

    def __call__(self, x: FloatArray, z: FloatArray) -> FloatArray:
        """Return the kernel matrix k(x, z), shape (len(x), len(z))."""
        kernel = np.exp(-self.b * np.subtract.outer(x, z) ** 2)
        kernel -= self._mean(x)[:, None]
        kernel -= self._mean(z)
        return np.asarray(kernel + 1.0 / math.sqrt(1.0 + 4.0 * self.b))

    def _mean(self, x: FloatArray) -> FloatArray:
        spread = 1.0 + 2.0 * self.b
        return np.asarray(np.exp(-self.b * x * x / spread) / math.sqrt(spread))


def centred_gaussian(b: float, levels: int = 9) -> KernelPCA:
    """Return the decomposition of 1 + k into ``levels`` kernels per variable.

    Level 0 is the constant. Levels 1 to levels - 2 are principal directions of the centred kernel
    on the training column. The last level contains all remaining directions.

    Parameters
    ----------
    b : float
        Inverse squared length scale; x is standardised.
    levels : int
        Number of kernels per variable.
    """
    return KernelPCA(CentredGaussian(b), degree=levels - 1, constant_level=True)
