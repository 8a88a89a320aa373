"""The full kernel, the sum of the kernels of all vertices of the grid, and its feature map.

The sum over all levels^p vertices equals the product over the variables of sums over levels, so
that the vertices need not be enumerated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg

from hikernel.bases import FittedBasis, make_basis
from hikernel.engines.protocol import FloatArray

__all__ = ["KernelMap", "ProductKernel"]

_NEGLIGIBLE = 1e-13
"""Eigenvalues up to this share of the largest count as rounding errors."""


@dataclass(frozen=True)
class ProductKernel:
    """k(x, z) = prod_m (k_m0 + (c / u_m) sum_{j >= 1} t^(j-1) k_mj)(x_m, z_m).

    u_m is the mean of the sum at (x, x) over the training rows, so that c is the size of a
    variable's kernel relative to the constant. With c = 1 and dozens of variables the kernel
    matrix is nearly diagonal.

    Attributes
    ----------
    bases : tuple of FittedBasis
        One per variable.
    sizes : tuple of float
        u_m; 1 for a column without levels.
    share : float or None
        c; None means c = u_m for each variable, the plain sum of the levels if decay is 1.
    decay : float
        t.
    """

    bases: tuple[FittedBasis, ...]
    sizes: tuple[float, ...]
    share: float | None = 0.1
    decay: float = 1.0

    @classmethod
    def fit(
        cls, X: FloatArray, basis: Any, share: float | None = 0.1, decay: float = 1.0
    ) -> ProductKernel:
        """Fit one basis per column of X and return the kernel; X has shape (n, p)."""
        recipe = make_basis(basis)
        bases = tuple(recipe.fit(np.ascontiguousarray(x)) for x in X.T)
        sizes = []
        for m, fitted in enumerate(bases):
            upper = _levels(fitted, X[:, m], 1.0, decay)[:, fitted.widths[0] :]
            sizes.append(float(np.mean(np.sum(upper**2, axis=1))) or 1.0)
        return cls(bases, tuple(sizes), share, decay)

    def matrix(self, X: FloatArray, Z: FloatArray) -> FloatArray:
        """Return the kernel matrix of the rows of X and Z, shape (len(X), len(Z))."""
        out = np.ones((len(X), len(Z)))
        for m, basis in enumerate(self.bases):
            share = 1.0 if self.share is None else self.share / self.sizes[m]
            left = _levels(basis, X[:, m], share, self.decay)
            right = _levels(basis, Z[:, m], share, self.decay)
            out *= left @ right.T
        return out


def _levels(basis: FittedBasis, x: FloatArray, share: float, decay: float) -> FloatArray:
    """Return the features of one variable's kernel, shape (n, width), level 0 first."""
    first, *rest = basis.transform(np.ascontiguousarray(x))
    factors = [(share * decay**j) ** 0.5 for j in range(len(rest))]
    return np.hstack([first, *(c * level for c, level in zip(factors, rest, strict=True))])


@dataclass(frozen=True)
class KernelMap:
    """phi(x) = S^(-1/2) U' (k(x) - means), with C K C = U S U' on the training rows.

    C is the centring matrix. <phi(x), phi(z)> is the kernel centred on the training rows. Ridge or
    logistic regression on phi with an unpenalised intercept is therefore equivalent to kernel ridge
    or kernel logistic regression.

    Attributes
    ----------
    kernel : ProductKernel
        The kernel.
    rows : ndarray of shape (n, p)
        The training rows.
    means : ndarray of shape (n,)
        Means of the columns of K.
    vectors : ndarray of shape (n, r)
        U.
    values : ndarray of shape (r,)
        Diagonal of S, positive.
    """

    kernel: ProductKernel
    rows: FloatArray
    means: FloatArray
    vectors: FloatArray
    values: FloatArray

    @classmethod
    def fit(cls, kernel: ProductKernel, X: FloatArray) -> KernelMap:
        """Decompose the centred kernel matrix of the rows of X; X has shape (n, p)."""
        K = kernel.matrix(X, X)
        means = K.mean(axis=0)
        K -= means
        K -= K.mean(axis=1, keepdims=True)
        values, vectors = scipy.linalg.eigh(K, overwrite_a=True, check_finite=False)
        kept = values > _NEGLIGIBLE * max(float(values[-1]), 0.0)
        return cls(kernel, X, means, vectors[:, kept], values[kept])

    @property
    def features(self) -> FloatArray:
        """Features phi of the training rows, shape (n, r)."""
        return np.asarray(self.vectors * np.sqrt(self.values))

    @property
    def mean_square(self) -> float:
        """Mean of |phi|^2 over the training rows, by which lambda is multiplied."""
        return float(self.values.sum()) / len(self.rows)

    def centred(self, X: FloatArray) -> FloatArray:
        """Return the centred kernel matrix of new and training rows, shape (len(X), n)."""
        K = self.kernel.matrix(X, self.rows)
        K -= self.means
        K -= K.mean(axis=1, keepdims=True)
        return K

    def transform(self, X: FloatArray) -> FloatArray:
        """Return phi of new rows, shape (len(X), r)."""
        return np.asarray(self.centred(X) @ (self.vectors / np.sqrt(self.values)))
