"""Given zeta, solve for beta: the R x R (primal) and the n x n (dual) form of the squared error.

F holds the centred features, with rows scaled by sqrt(omega). D is the diagonal matrix that gives
every column of node w the entry zeta_w. y is the target, centred and scaled in the same way.

    beta = argmin |y - F beta|^2 / 2 + (lambda/2) sum_w |beta_w|^2 / zeta_w,
    a = F'(y - F beta) / lambda,    beta_w = zeta_w a_w.

Let P be the minimum value as a function of eta. In log(eta) coordinates its Hessian is
lambda diag(h) - kappa C kappa' with h_v = |beta_D(v)|^2 / eta_v. Both forms give the (m, m)
curvature C:

    primal  C = lambda^2 E'(u u' * M^-1)E,   M = lambda I + D^1/2 F'F D^1/2, u = beta / zeta^1/2
    dual    C = lambda diag(q) - lambda V' B^-1 V,   B = lambda I + F D F', V_w = F_w beta_w

E is the (R, m) indicator matrix that sums over the columns of each node; q_w = zeta_w |a_w|^2. The
two expressions are equal. The primal form is cheaper for R < n, the dual form for R > n.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from hikernel.engines.features import Blocks
from hikernel.engines.numerics import lower_gram, matmul, matvec
from hikernel.engines.protocol import FloatArray

__all__ = ["DualForm", "Evaluation", "Form", "IndexArray", "PrimalForm"]

IndexArray = NDArray[np.intp]

_FEW_NODES = 0.25
"""Nodes per column up to which the curvature is computed node by node, without M^-1."""


@dataclass(frozen=True)
class Evaluation:
    """The solution for one zeta.

    Attributes
    ----------
    coef, scores : ndarray of shape (R,)
        beta and a.
    coef_squares, score_squares : ndarray of shape (m,)
        |beta_w|^2 and |a_w|^2.
    loss : float
        |y - F beta|^2 / 2.
    fit : float
        y'(y - F beta), the linear part of the dual objective.
    curvature : callable
        Returns C, shape (m, m). Called only when a Newton step is taken.
    """

    coef: FloatArray
    scores: FloatArray
    coef_squares: FloatArray
    score_squares: FloatArray
    loss: float
    fit: float
    curvature: Callable[[], FloatArray]


class Form(Protocol):
    """A way to solve for beta given zeta; see the module docstring for the notation."""

    total: float
    """|y|^2: twice the objective of the empty model."""
    n_columns: int
    """R, the number of coordinates of beta."""

    def evaluate(self, zeta: FloatArray, lam: float) -> Evaluation | None:
        """Solve for one zeta of shape (m,); return None if the system is numerically singular."""
        ...

    def scores(self, coef: FloatArray, lam: float) -> FloatArray:
        """Return a = F'(y - F beta) / lambda, shape (R,), for any beta."""
        ...

    def columns(self, nodes: IndexArray) -> IndexArray:
        """Return the positions of the columns of some nodes; nodes are given by position."""
        ...

    def squares(self, x: FloatArray) -> FloatArray:
        """Return the squared norm of each node's coordinates, shape (m,)."""
        ...

    def inner(self, x: FloatArray, z: FloatArray) -> float:
        """Return the inner product of two coordinate vectors of shape (R,)."""
        ...

    def restrict(self, nodes: IndexArray) -> Form:
        """Return the form restricted to some of the nodes, given by position."""
        ...


class PrimalForm:
    """The R x R form, from moments: its cost does not depend on the number of rows n.

    Parameters
    ----------
    gram : ndarray of shape (R, R)
        F'F.
    cross : ndarray of shape (R,)
        F'y.
    total : float
        |y|^2.
    blocks : Blocks
        Columns of each node.
    """

    def __init__(self, gram: FloatArray, cross: FloatArray, total: float, blocks: Blocks) -> None:
        self.gram = gram
        self.cross = cross
        self.total = total
        self.n_columns = len(cross)
        self._blocks = blocks

    def evaluate(self, zeta: FloatArray, lam: float) -> Evaluation | None:
        """Solve for one zeta by a Cholesky factorisation of M."""
        root = np.sqrt(self._blocks.spread(zeta))
        system = self.gram * root[:, None]
        system *= root
        system.flat[:: len(root) + 1] += lam
        factor, info = lapack.dpotrf(system.T, lower=0, overwrite_a=1, clean=0)
        if info != 0:
            return None
        u, _ = lapack.dpotrs(factor, root * self.cross, lower=0)
        coef = root * u
        fitted = matvec(self.gram, coef)
        scores = (self.cross - fitted) / lam
        fit = self.total - float(self.cross @ coef)
        loss = 0.5 * (fit - float(coef @ (self.cross - fitted)))

        def curvature() -> FloatArray:
            if len(self._blocks) <= _FEW_NODES * self.n_columns:
                return self._curvature_of_few(factor, u, lam)
            inverse, _ = lapack.dpotri(factor, lower=0)
            upper = np.triu(inverse)
            upper *= u[:, None]
            upper *= lam**2 * u
            full = upper + upper.T
            full.flat[:: len(u) + 1] *= 0.5
            return self._blocks.sum(self._blocks.sum(full), axis=1)

        return Evaluation(
            coef=coef,
            scores=scores,
            coef_squares=self._blocks.squares(coef),
            score_squares=self._blocks.squares(scores),
            loss=max(loss, 0.0),
            fit=fit,
            curvature=curvature,
        )

    def _curvature_of_few(self, factor: FloatArray, u: FloatArray, lam: float) -> FloatArray:
        """Return C = lambda^2 U' M^-1 U, where U_w is u in the columns of node w, zero elsewhere.

        For m nodes this takes m R^2 multiplications, and the inverse of M takes R^3.
        """
        parts = np.zeros((len(u), len(self._blocks)), order="F")
        parts[np.arange(len(u)), self._blocks.spread(np.arange(len(self._blocks)))] = u
        half, _ = lapack.dtrtrs(factor, parts, lower=0, trans=1, overwrite_b=1)
        return lam**2 * matmul(half.T, half)

    def scores(self, coef: FloatArray, lam: float) -> FloatArray:
        """Return a = F'(y - F beta) / lambda for any beta."""
        return (self.cross - matvec(self.gram, coef)) / lam

    def columns(self, nodes: IndexArray) -> IndexArray:
        """Return the positions of the feature columns of some nodes."""
        return self._blocks.columns(nodes)

    def squares(self, x: FloatArray) -> FloatArray:
        """Return the squared norm of each node's columns."""
        return self._blocks.squares(x)

    def inner(self, x: FloatArray, z: FloatArray) -> float:
        """Return x'z."""
        return float(x @ z)

    def restrict(self, nodes: IndexArray) -> PrimalForm:
        """Return the form restricted to some of the nodes."""
        columns = self._blocks.columns(nodes)
        return PrimalForm(
            self.gram[np.ix_(columns, columns)],
            self.cross[columns],
            self.total,
            self._blocks.restrict(nodes),
        )


class DualForm:
    """The n x n form, for hulls with more feature columns than rows.

    Parameters
    ----------
    features : ndarray of shape (n, R)
        F: centred, rows scaled by sqrt(omega).
    target : ndarray of shape (n,)
        y: centred, scaled in the same way.
    blocks : Blocks
        Columns of each node.
    """

    def __init__(self, features: FloatArray, target: FloatArray, blocks: Blocks) -> None:
        self._features = features
        self._target = target
        self.total = float(target @ target)
        self.n_columns = features.shape[1]
        self._blocks = blocks

    def evaluate(self, zeta: FloatArray, lam: float) -> Evaluation | None:
        """Solve for one zeta by a Cholesky factorisation of B."""
        columns = self._blocks.spread(zeta)
        system = lower_gram(self._features * np.sqrt(columns))
        system.flat[:: len(system) + 1] += lam
        factor, info = lapack.dpotrf(system, lower=1, overwrite_a=1, clean=0)
        if info != 0:
            return None
        solved, _ = lapack.dpotrs(factor, self._target, lower=1)
        scores = matvec(self._features.T, solved)
        coef = columns * scores
        residual = self._target - matvec(self._features, coef)
        score_squares = self._blocks.squares(scores)

        def curvature() -> FloatArray:
            parts = self._blocks.sum(self._features * coef, axis=1)
            half, _ = lapack.dtrtrs(factor, parts, lower=1)
            out = -lam * matmul(half.T, half)
            out.flat[:: len(out) + 1] += lam * zeta * score_squares
            return np.asarray(out)

        return Evaluation(
            coef=coef,
            scores=scores,
            coef_squares=self._blocks.squares(coef),
            score_squares=score_squares,
            loss=0.5 * float(residual @ residual),
            fit=float(self._target @ residual),
            curvature=curvature,
        )

    def scores(self, coef: FloatArray, lam: float) -> FloatArray:
        """Return a = F'(y - F beta) / lambda for any beta."""
        residual = self._target - matvec(self._features, coef)
        return matvec(self._features.T, residual) / lam

    def columns(self, nodes: IndexArray) -> IndexArray:
        """Return the positions of the feature columns of some nodes."""
        return self._blocks.columns(nodes)

    def squares(self, x: FloatArray) -> FloatArray:
        """Return the squared norm of each node's columns."""
        return self._blocks.squares(x)

    def inner(self, x: FloatArray, z: FloatArray) -> float:
        """Return x'z."""
        return float(x @ z)

    def restrict(self, nodes: IndexArray) -> Form:
        """Return the form restricted to some nodes: primal unless they have more than n columns."""
        features = self._features[:, self._blocks.columns(nodes)]
        blocks = self._blocks.restrict(nodes)
        if features.shape[1] > len(self._target):
            return DualForm(features, self._target, blocks)
        return PrimalForm(
            matmul(features.T, features), matvec(features.T, self._target), self.total, blocks
        )
