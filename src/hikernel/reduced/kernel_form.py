"""Given zeta, solve for beta when nodes are given by their kernels: an n x n form.

With row weights W = diag(weights), w = weights / sum, centring H = I - 1 w' and S = W^1/2,

    B = lambda I + S H (sum_w zeta_w K_w) H' S,    s = B^-1 S y,    u = H' S s,

u has sum zero, the function of node w is zeta_w K_w u, and |a_w|^2 = u' K_w u. One factorisation
costs n^3 / 3, everything else m n^2. No cost grows with the rank of the kernels.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack

from hikernel.engines.node_kernels import KernelOperator
from hikernel.engines.numerics import matmul
from hikernel.engines.protocol import FloatArray
from hikernel.reduced.forms import Evaluation, IndexArray

__all__ = ["KernelForm"]


class KernelForm:
    """The n x n form from kernels.

    Parameters
    ----------
    kernels : KernelOperator
        The kernels of the m nodes; beta and a are in the coordinates that it defines.
    weights : ndarray of shape (n,)
        Weights of the rows, positive, of any sum.
    target : ndarray of shape (n,)
        y, with weighted mean zero.
    """

    def __init__(self, kernels: KernelOperator, weights: FloatArray, target: FloatArray) -> None:
        self._kernels = kernels
        self._weights = weights
        self._target = target
        self._root = np.sqrt(weights)
        self._mean_weights = weights / float(np.sum(weights))
        self._scaled = self._root * target
        self.total = float(self._scaled @ self._scaled)
        self.n_columns = kernels.blocks.n_columns

    def evaluate(self, zeta: FloatArray, lam: float) -> Evaluation | None:
        """Solve for one zeta by a Cholesky factorisation of B."""
        factor, info = lapack.dpotrf(self._system(zeta, lam).T, lower=0, overwrite_a=1, clean=0)
        if info != 0:
            return None
        solved, _ = lapack.dpotrs(factor, self._scaled, lower=0)
        dual = self._to_rows(solved)
        applied = self._kernels.apply(dual)
        score_squares = np.maximum(dual @ applied, 0.0)
        fitted = self._centred(applied)
        residual = self._scaled - fitted @ zeta
        scores = self._kernels.coordinates(dual)

        def curvature() -> FloatArray:
            # L^-1 times the parts S H K_w u zeta_w, where B = L L' and ``factor`` holds L'.
            half, _ = lapack.dtrtrs(factor, fitted * zeta, lower=0, trans=1)
            out = -lam * matmul(half.T, half)
            out.flat[:: len(out) + 1] += lam * zeta * score_squares
            return np.asarray(out)

        return Evaluation(
            coef=self._kernels.blocks.spread(zeta) * scores,
            scores=scores,
            coef_squares=zeta**2 * score_squares,
            score_squares=score_squares,
            loss=0.5 * float(residual @ residual),
            fit=float(self._scaled @ residual),
            curvature=curvature,
        )

    def scores(self, coef: FloatArray, lam: float) -> FloatArray:
        """Return a for any beta, given in coordinates."""
        residual = self._scaled - self._centred(self._kernels.expand(coef))
        return self._kernels.coordinates(self._to_rows(residual / lam))

    def columns(self, nodes: IndexArray) -> IndexArray:
        """Return the positions of the coordinates of some nodes; nodes are given by position."""
        return self._kernels.blocks.columns(nodes)

    def squares(self, x: FloatArray) -> FloatArray:
        """Return the squared norm of each node's function."""
        return self._kernels.squares(x)

    def inner(self, x: FloatArray, z: FloatArray) -> float:
        """Return the inner product of two models, given in coordinates."""
        return self._kernels.inner(x, z)

    def restrict(self, nodes: IndexArray) -> KernelForm:
        """Return the form restricted to some of the nodes."""
        return KernelForm(self._kernels.restrict(nodes), self._weights, self._target)

    def _system(self, zeta: FloatArray, lam: float) -> FloatArray:
        """Return B, shape (n, n)."""
        system = self._kernels.weighted_sum(zeta)
        means = system @ self._mean_weights
        system -= means[:, None]
        system -= means - float(self._mean_weights @ means)
        system *= self._root[:, None]
        system *= self._root
        system.flat[:: len(system) + 1] += lam
        return system

    def _centred(self, values: FloatArray) -> FloatArray:
        """Return S H values, for values of shape (n,) or (n, m)."""
        centred = values - self._mean_weights @ values
        return np.asarray((self._root * centred.T).T)

    def _to_rows(self, solved: FloatArray) -> FloatArray:
        """Return H' S s."""
        weighted = self._root * solved
        return np.asarray(weighted - self._mean_weights * float(np.sum(weighted)))
