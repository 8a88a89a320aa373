"""Ridge with its penalty by leave-one-out: exact for the squared error, approximate otherwise.

With features scaled to F, weights omega of sum one and a penalty mu (which is not lambda),

    min over B, b of sum_i omega_i loss(y_i, b + B' F_i) + (mu/2) |B|^2,

B of shape (R, k) for k outputs.

Squared error of one output: from F~ = sqrt(omega) (F - mean) = U S V', leverages h_i = omega_i +
sum_k U_ik^2 s_k^2 / (s_k^2 + mu) give the leave-one-out residuals r_i / (1 - h_i) of every mu from
one decomposition. Otherwise, for smooth losses: Newton's method, and one Newton step away from the
solution for each row left out. With x_i = (F_i, 1), X_i = I kron x_i' (f_i = X_i theta), g_i and
W_i the gradient and the second derivative of the loss of row i at f_i (k, and k x k), and H the
Hessian of the objective with the intercept in it,

    theta_(i) = theta + (H - omega_i X_i' W_i X_i)^-1 omega_i X_i' g_i,
    f_(i) = f_i + (I - Q_i W_i)^-1 Q_i g_i,   Q_i = omega_i X_i H^-1 X_i'

by the Woodbury identity; f_i + g_i q_i / (1 - W_i q_i) for one output.

A loss that does not change when all outputs move alike (multinomial) leaves that direction of b
undetermined, and the penalty makes it zero in B. So f = z C' with C of shape (k, k - 1) of
orthonormal columns of sum zero: k - 1 outputs z with gradient g C, second derivative C' W C and the
same penalty, and H has no null direction.

A row is left out with all its weight, the other weights and mu stay as they are, and its loss
counts with its weight. A row of weight 2 is therefore a pair of equal rows that are left out
together: the fit is that of the repeated row, the leave-one-out score is not (a copy that stays
behind would tell the answer).
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import partial
from operator import itemgetter

import numpy as np
from scipy import linalg

from hikernel.engines.numerics import backtrack
from hikernel.engines.protocol import FloatArray
from hikernel.losses import Loss, SquaredError

__all__ = ["RidgeFit", "fit_ridge"]

_PENALTIES = np.geomspace(1e-10, 100.0, 31)
"""Values of mu that are tried, relative to the variance of the features."""
_FEW_PENALTIES = np.geomspace(1e-7, 100.0, 15)
"""The same for losses that need Newton's method for each of them."""
_PATIENCE = 2
"""With several outputs, whose Hessians are large, smaller penalties are not tried after this many
scores in a row that are worse than the best."""
_CHUNK = 2**21
"""Numbers held at a time for the steps away from the rows: 16 MiB."""
_NEWTON_STEPS = 50
_SMALLEST_SQUARE = 1e-13
"""Directions with less than this part of the largest square are left out."""
_TINY = float(np.finfo(float).tiny)
_LEAST_FREE = 1e-14
"""What 1 - h_i is at least: a row that the others say nothing about has h_i = 1."""


@dataclass(frozen=True)
class RidgeFit:
    """A ridge fit.

    Attributes
    ----------
    coef : ndarray of shape (R,) or (R, k)
        B.
    intercept : ndarray of shape () or (k,)
        b; of sum zero where a common shift of the outputs changes nothing.
    mu : float
        The penalty itself, not relative to the features.
    score : float
        Weighted mean of the leave-one-out losses.
    """

    coef: FloatArray
    intercept: FloatArray
    mu: float
    score: float


def fit_ridge(
    features: FloatArray,
    y: FloatArray,
    omega: FloatArray,
    loss: Loss,
    relative_mu: float | None = None,
) -> RidgeFit:
    """Fit ridge with the penalty that leave-one-out chooses.

    Parameters
    ----------
    features : ndarray of shape (n, R)
        F, in the metric of the penalty. Overwritten by its centred columns.
    y : ndarray of shape (n,) or (n, k)
        Target.
    omega : ndarray of shape (n,)
        Weights of sum one.
    loss : Loss
        A smooth one.
    relative_mu : float, optional
        mu in place of leave-one-out, relative to the mean variance of the features; 0 for
        no penalty (of all such fits the one of least norm, where there are several).
    """
    if isinstance(loss, SquaredError) and y.ndim == 1:
        return _squared(features, y, omega, relative_mu)
    return _general(features, y, omega, loss, relative_mu)


def _squared(
    features: FloatArray, y: FloatArray, omega: FloatArray, relative_mu: float | None
) -> RidgeFit:
    means = omega @ features
    features -= means
    center = float(omega @ y)
    root = np.sqrt(omega)
    features *= root[:, None]
    target = root * (y - center)
    unit = float(np.sum(features**2)) / max(features.shape[1], 1)
    left, squares, vectors = _decomposed(features)
    along = left.T @ target
    left_squares = left**2
    # Residuals and 1 - h as what lies outside the features plus what shrinking adds: both are
    # tiny where the fit interpolates, and a difference of large numbers would be noise.
    outside = target - left @ along
    free = np.maximum(1.0 - omega - np.sum(left_squares, axis=1), 0.0)
    penalties = unit * (_PENALTIES if relative_mu is None else np.array([relative_mu]))
    lost = penalties / (squares[:, None] + penalties)
    residuals = outside[:, None] + left @ (lost * along[:, None])
    residuals /= np.maximum(free[:, None] + left_squares @ lost, _LEAST_FREE)
    scores = 0.5 * np.sum(residuals**2, axis=0)
    best = int(np.argmin(scores))
    mu = float(penalties[best])
    coef = vectors @ (np.sqrt(squares) * along / (squares + mu))
    return RidgeFit(coef, np.asarray(center - means @ coef), mu, float(scores[best]))


def _decomposed(features: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return U, s^2 and V of the features, without directions that are all but zero.

    From the Gram matrix where there are many rows; that squares the condition number, which
    leverages near one would show.
    """
    n, size = features.shape
    if n > 2 * size:
        squares, vectors = linalg.eigh(features.T @ features, check_finite=False)
        kept = squares > _SMALLEST_SQUARE * max(float(np.max(squares, initial=0.0)), _TINY)
        squares, vectors = squares[kept], vectors[:, kept]
        return (features @ vectors) / np.sqrt(squares), squares, vectors
    left, values, right = linalg.svd(features, full_matrices=False, check_finite=False)
    squares = values**2
    kept = squares > _SMALLEST_SQUARE * max(float(np.max(squares, initial=0.0)), _TINY)
    return left[:, kept], squares[kept], right[kept].T


def _general(
    features: FloatArray, y: FloatArray, omega: FloatArray, loss: Loss, relative_mu: float | None
) -> RidgeFit:
    n, size = features.shape
    means = omega @ features
    features -= means
    unit = float(np.sum(omega @ features**2)) / max(size, 1)
    shape, y = y.shape[1:], y.reshape(n, -1)
    outputs = _contrasts(y.shape[1]) if loss.shift_invariant else np.eye(y.shape[1])
    problem = _RidgeObjective(np.hstack([features, np.ones((n, 1))]), y, omega, loss, outputs)
    theta = np.zeros((size + 1, outputs.shape[1]))
    theta[-1] = loss.intercept(y, np.zeros(y.shape), omega) @ outputs
    best: RidgeFit | None = None
    grid = _FEW_PENALTIES if relative_mu is None else np.array([relative_mu])
    worse = 0
    for mu in unit * grid[::-1]:
        penalty = np.full((size + 1, 1), max(float(mu), 1e-12 * unit, _TINY))
        penalty[-1] = 0.0
        theta, factor = problem.minimise(penalty, theta)
        score = float(omega @ loss.value(y, problem.left_out(theta, factor)))
        worse += 1
        if best is None or score < best.score:
            worse = 0
            coef = theta @ outputs.T
            intercept = coef[-1] - means @ coef[:-1]
            best = RidgeFit(
                coef[:-1].reshape(size, *shape), intercept.reshape(shape), float(mu), score
            )
        if shape and worse == _PATIENCE:
            break
    assert best is not None
    return best


def _contrasts(k: int) -> FloatArray:
    """Return orthonormal columns of sum zero, shape (k, k - 1): Helmert's.

    >>> np.round(_contrasts(3), 2)
    array([[ 0.71,  0.41],
           [-0.71,  0.41],
           [ 0.  , -0.82]])
    """
    return np.asarray(linalg.helmert(k).T)


@dataclass(frozen=True)
class _RidgeObjective:
    """The objective in theta of shape (R + 1, outputs), the intercepts in its last row.

    Its Hessian is laid out one output after the other.
    """

    design: FloatArray
    y: FloatArray
    omega: FloatArray
    loss: Loss
    outputs: FloatArray

    def predict(self, theta: FloatArray) -> FloatArray:
        """Return f."""
        return np.asarray(self.design @ theta @ self.outputs.T)

    def derivatives(self, f: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the first and second derivatives of the rows in their outputs z."""
        second = self.outputs.T @ self.loss.hessian(self.y, f) @ self.outputs
        return self.loss.gradient(self.y, f) @ self.outputs, second

    def minimise(self, penalty: FloatArray, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the minimiser and the Cholesky factor of the Hessian there."""

        def stepped(theta: FloatArray, step: FloatArray, length: float) -> tuple[FloatArray, float]:
            after = theta - length * step
            losses = self.loss.value(self.y, self.predict(after))
            penalised = 0.5 * float(np.sum(penalty * after**2))
            return after, float(self.omega @ losses) + penalised

        _, before = stepped(theta, theta, 0.0)
        for _ in range(_NEWTON_STEPS):
            first, second = self.derivatives(self.predict(theta))
            slope = self.design.T @ (self.omega[:, None] * first) + penalty * theta
            factor = self._factor(second, penalty)
            step = linalg.cho_solve((factor, True), slope.T.ravel(), check_finite=False)
            step = step.reshape(slope.T.shape).T
            descent = -float(np.sum(slope * step))
            found = backtrack(partial(stepped, theta, step), itemgetter(1), before, descent)
            if found is None:
                break
            (theta, after), _ = found
            gain, before = before - after, after
            if gain <= 1e-10 * max(before, 1e-300):
                break
        return theta, factor

    def _factor(self, second: FloatArray, penalty: FloatArray) -> FloatArray:
        """Return the Cholesky factor of the Hessian."""
        width, outputs = len(penalty), second.shape[1]
        blocks = np.empty((outputs, width, outputs, width))
        for a, b in itertools.combinations_with_replacement(range(outputs), 2):
            weights = self.omega * (second[:, a, b] + (1e-10 if a == b else 0.0))
            block = self.design.T @ (weights[:, None] * self.design)
            blocks[a, :, b], blocks[b, :, a] = block, block
        hessian = blocks.reshape(outputs * width, outputs * width)
        diagonal = np.tile(penalty[:, 0], outputs) + 1e-14 * np.trace(hessian)
        hessian.flat[:: len(hessian) + 1] += diagonal
        return np.asarray(
            linalg.cholesky(hessian, lower=True, overwrite_a=True, check_finite=False)
        )

    def left_out(self, theta: FloatArray, factor: FloatArray) -> FloatArray:
        """Return f of every row after one Newton step away from it."""
        (n, width), outputs = self.design.shape, theta.shape[1]
        f = self.predict(theta)
        first, second = self.derivatives(f)
        inverse = linalg.solve_triangular(
            factor, np.eye(len(factor)), lower=True, check_finite=False
        )
        inverse = inverse.reshape(-1, width).T
        chunk = max(_CHUNK // inverse.shape[1], 1)
        for rows in (slice(start, start + chunk) for start in range(0, n, chunk)):
            # With Q = S S', (I - Q W)^-1 Q = S (I - S' W S)^-1 S'; S is turned so that the matrix
            # in the middle is diagonal.
            solved = np.sqrt(self.omega[rows, None]) * (self.design[rows] @ inverse)
            solved = solved.reshape(-1, len(factor), outputs)
            squares, root = np.linalg.eigh(solved.transpose(0, 2, 1) @ solved)
            root *= np.sqrt(np.maximum(squares, 0.0))[:, None, :]
            leverages, turn = np.linalg.eigh(root.transpose(0, 2, 1) @ second[rows] @ root)
            root = root @ turn
            along = np.einsum("nab,na->nb", root, first[rows])
            along /= np.maximum(1.0 - leverages, 1e-10)
            f[rows] += np.einsum("nab,nb->na", root, along) @ self.outputs.T
        return f
