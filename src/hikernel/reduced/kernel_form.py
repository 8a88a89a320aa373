"""Given zeta, solve for beta when nodes are given by their kernels: an n x n form.

With row weights W = diag(weights), w = weights / sum, centring H = I - 1 w' and S = W^1/2,

    B = lambda I + S H (sum_w zeta_w K_w) H' S,    s = B^-1 S y,    u = H' S s,

u has sum zero, the function of node w is zeta_w K_w u, and |a_w|^2 = u' K_w u. One factorisation
costs n^3 / 3, everything else m n^2. No cost grows with the rank of the kernels.

The part of u that no kernel sees, K_w u = 0, is the residual over lambda. Where lambda is tiny
beside the kernels it is so large that its rounding error exceeds u' K_w u. There an
eigendecomposition of B takes the place of its Cholesky factor, and this part is left out of u.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh, lapack

from hikernel.engines.node_kernels import KernelOperator
from hikernel.engines.numerics import matmul, matvec
from hikernel.engines.protocol import FloatArray
from hikernel.reduced.forms import Evaluation, IndexArray

__all__ = ["KernelForm"]

_SPECTRAL = 1e-8
"""Share of the trace of the kernels below which lambda counts as tiny. Above it, rounding changes
an objective by a share of 1e-8 at most. An eigendecomposition takes some thirty times as long as
a Cholesky factorisation."""


class _Solved(NamedTuple):
    """s = B^-1 S y."""

    seen: FloatArray
    """s, without the part that B does not see where this part is known."""
    half: Callable[[FloatArray], FloatArray]
    """Returns X with X'X = Z' B^-1 Z for Z of shape (n, m)."""
    unseen: FloatArray | None = None
    """The part of s that was left out; None if there is none."""


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
        """Solve for one zeta by a Cholesky factorisation of B, or by its eigenvectors."""
        solved = self._solved(zeta, lam)
        if solved is None:
            return None
        dual = self._to_rows(solved.seen)
        applied = self._kernels.apply(dual)
        score_squares = np.maximum(dual @ applied, 0.0)
        scores = self._kernels.coordinates(dual)
        if solved.unseen is not None:
            whole = dual + self._to_rows(solved.unseen)
            clear = self._kernels.sees(whole - dual)
            wholly = self._kernels.apply(whole)
            score_squares = np.where(clear, np.maximum(whole @ wholly, 0.0), score_squares)
            applied = np.where(clear, wholly, applied)
            columns = self._kernels.blocks.spread(clear)
            scores = np.where(columns, self._kernels.coordinates(whole), scores)
        fitted = self._centred(applied)
        residual = self._scaled - fitted @ zeta

        def curvature() -> FloatArray:
            half = solved.half(fitted * zeta)  # of the parts S H K_w u zeta_w
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

    def _solved(self, zeta: FloatArray, lam: float) -> _Solved | None:
        """Return B^-1 S y; None if the matrix is numerically singular."""
        system = self._system(zeta, lam)
        if not lam >= _SPECTRAL * float(np.trace(system)):
            return self._spectrally_solved(system, lam)
        factor, info = lapack.dpotrf(system.T, lower=0, overwrite_a=1, clean=0)
        if info != 0:
            return None
        # B = L L', and ``factor`` holds L'.
        return _Solved(
            lapack.dpotrs(factor, self._scaled, lower=0)[0],
            lambda parts: np.asarray(lapack.dtrtrs(factor, parts, lower=0, trans=1)[0]),
        )

    def _spectrally_solved(self, system: FloatArray, lam: float) -> _Solved | None:
        """Return the same where lambda is tiny: eigenvalues down to rounding count as not seen."""
        if not np.all(np.isfinite(system)):
            return None
        values, vectors = eigh(system, overwrite_a=True, check_finite=False, driver="evd")
        seen = values - lam > len(values) * np.finfo(float).eps * values[-1]
        values, vectors = values[seen], np.asfortranarray(vectors[:, seen])
        roots = np.sqrt(values)
        along = matvec(vectors.T, self._scaled)
        # Parts are functions of the kernels: what rounding puts outside the eigenvectors is none.
        return _Solved(
            matvec(vectors, along / values),
            lambda parts: matmul(vectors.T, parts) / roots[:, None],
            None if np.all(seen) else (self._scaled - matvec(vectors, along)) / lam,
        )

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
