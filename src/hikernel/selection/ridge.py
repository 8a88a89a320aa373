"""Ridge with a penalty chosen by leave-one-out: exact for the squared error, else approximate.

With scaled features F, weights omega of sum one and a penalty mu (which is not lambda),

    min over B, b of sum_i omega_i loss(y_i, b + B' F_i) + (mu/2) |B|^2,

where B has shape (R, k) for k outputs.

Squared error with one output: let F~ = sqrt(omega) (F - mean) = U S V'. The leverages are
h_i = omega_i + sum_k U_ik^2 s_k^2 / (s_k^2 + mu), and the leave-one-out residuals r_i / (1 - h_i).
One decomposition gives them for every mu.

Other smooth losses: Newton's method solves the problem. Leaving out row i is approximated by one
Newton step from the solution. Let x_i = (F_i, 1) and X_i = I kron x_i', so that f_i = X_i theta.
Let g_i (shape (k,)) and W_i (shape (k, k)) be the first and second derivative of the loss of row i
at f_i, and H the Hessian of the objective, including the intercept. Then

    theta_(i) = theta + (H - omega_i X_i' W_i X_i)^-1 omega_i X_i' g_i,
    f_(i) = f_i + (I - Q_i W_i)^-1 Q_i g_i,   Q_i = omega_i X_i H^-1 X_i'

by the Woodbury identity. For one output this is f_i + g_i q_i / (1 - W_i q_i).

A shift-invariant loss (multinomial) does not change when the same number is added to all outputs.
It leaves that direction of b undetermined, and the penalty makes it zero in B. So f = z C', where C
of shape (k, k - 1) has orthonormal columns of sum zero. The k - 1 outputs z have gradient g C,
second derivative C' W C and the same penalty, and H has no null direction.

In a joint loss, row i is part of the losses of others. Leaving it out changes the gradient by
omega_i u_i, where u_i is the derivative of the gradient with respect to omega_i, and

    f_(i) = f_i + q_i / (1 - W_i h_i),   q_i = omega_i x_i' H^-1 u_i,   h_i = omega_i z_i' H^-1 z_i,

where z_i is x_i minus its mean over the rows that row i is compared with. (For Cox's loss, u_i is
minus the score residual of survival analysis.) The score is the loss of the vector of all f_(i).

A row is left out with all its weight; the other weights and mu do not change. Its loss counts with
its weight. A row of weight 2 is therefore like two equal rows that are left out together. The fit
is the same as with a repeated row, but the leave-one-out score is not: with a repeated row, the
remaining copy would reveal the target of the copy left out.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from typing import NamedTuple

import numpy as np
from scipy import linalg

from hikernel.engines.machine import check_time
from hikernel.engines.numerics import backtrack, gram_in_parts, product_in_parts
from hikernel.engines.protocol import FloatArray
from hikernel.losses import Loss, SquaredError

__all__ = ["RidgeFit", "fit_ridge", "ridge_work"]

_PENALTIES = np.geomspace(1e-10, 100.0, 31)
"""Values of mu that are tried, relative to the mean variance of the features."""
_CONSTANT = 1e-26
"""A feature column counts as constant if its variance is at most this times its squared mean."""
_FEW_PENALTIES = np.geomspace(1e-7, 100.0, 15)
"""Values of mu for losses that need Newton's method for each value."""
_PATIENCE = 2
"""Where every penalty needs Newton's method, smaller ones are not tried after this many scores in a
row that are no better than the best; never while the largest penalty is the best, where the fit is
almost a constant."""
_CHUNK = 2**21
"""Numbers per chunk of rows in the leave-one-out step: 16 MiB."""
_NEWTON_STEPS = 50
_USUAL_STEPS = 4
"""Newton steps that a penalty usually takes, for the count of work."""
_SMALLEST_SQUARE = 1e-13
"""Directions with a squared singular value below this fraction of the largest are dropped."""
_TINY = float(np.finfo(float).tiny)
_LEAST_FREE = 1e-14
"""Least value of 1 - h_i, which is zero for a row that the other rows do not determine."""
_LEAST_FREE_OF_JOINT = 1e-3
"""Least value of 1 - W_i h_i in a joint loss, where it is approximate."""


@dataclass(frozen=True)
class RidgeFit:
    """A ridge fit.

    Attributes
    ----------
    coef : ndarray of shape (R,) or (R, k)
        B.
    intercept : ndarray of shape () or (k,)
        b; it sums to zero for shift-invariant losses.
    mu : float
        The penalty itself, not relative to the features.
    score : float
        Weighted mean of the leave-one-out losses, on the scale of ``Loss.error``.
    gap : float or None
        Proven bound on how far a fit under constraints is from its optimum, relative to its
        objective; None without constraints.
    """

    coef: FloatArray
    intercept: FloatArray
    mu: float
    score: float
    gap: float | None = None


def fit_ridge(
    features: FloatArray,
    y: FloatArray,
    omega: FloatArray,
    loss: Loss,
    relative_mu: float | None = None,
) -> RidgeFit:
    """Fit ridge with the penalty chosen by leave-one-out.

    Parameters
    ----------
    features : ndarray of shape (n, R)
        F, scaled so that the penalty is |B|^2. Overwritten.
    y : ndarray of shape (n,) or (n, k)
        Target.
    omega : ndarray of shape (n,)
        Weights of sum one.
    loss : Loss
        A smooth loss.
    relative_mu : float, optional
        Fixed mu instead of leave-one-out, relative to the mean variance of the features. 0 means
        no penalty; if several fits are then optimal, the one of least norm is returned.
    """
    if isinstance(loss, SquaredError) and y.ndim == 1:
        return _squared(features, y, omega, relative_mu)
    return _general(features, y, omega, loss, relative_mu)


def ridge_work(n_rows: int, n_columns: int, n_outputs: int, loss: Loss) -> float:
    """Return the work of a ridge fit with its choice of mu, in multiplications."""
    width = float(n_columns)
    if isinstance(loss, SquaredError) and n_outputs == 1:
        return 4.0 * n_rows * width * (min(n_rows, width) + len(_PENALTIES))
    width *= n_outputs
    return len(_FEW_PENALTIES) * _USUAL_STEPS * (n_rows * width**2 + width**3)


def _squared(
    features: FloatArray, y: FloatArray, omega: FloatArray, relative_mu: float | None
) -> RidgeFit:
    means = omega @ features
    center = float(omega @ y)
    root = np.sqrt(omega)
    sizes = np.zeros(features.shape[1])
    for rows in _row_chunks(*features.shape):
        features[rows] -= means
        features[rows] *= root[rows, None]
        sizes += np.sum(features[rows] ** 2, axis=0)
    # What is left of a constant column is rounding, and no direction of the features.
    features[:, sizes <= _CONSTANT * means**2] = 0.0
    target = root * (y - center)
    unit = sum(float(np.sum(features[rows] ** 2)) for rows in _row_chunks(*features.shape))
    unit /= max(features.shape[1], 1)
    left, squares, vectors = _decomposed(features)
    along = left.T @ target
    left_squares = left**2
    # Residuals and 1 - h are computed as the part outside the span of the features plus the part
    # due to shrinkage. Both are tiny if the fit interpolates; computed as differences of larger
    # numbers they would be rounding noise.
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
    """Return U, s^2 and V of the features, without directions of numerically zero size.

    With many rows they come from the Gram matrix, which squares the condition number. With few rows
    leverages can be near one, and would show that error; then the SVD is used.
    """
    n, size = features.shape
    if n > 2 * size:
        squares, vectors = linalg.eigh(gram_in_parts(features), check_finite=False)
        kept = squares > _SMALLEST_SQUARE * max(float(np.max(squares, initial=0.0)), _TINY)
        squares, vectors = squares[kept], vectors[:, kept]
        return product_in_parts(features, vectors) / np.sqrt(squares), squares, vectors
    left, values, right = linalg.svd(features, full_matrices=False, check_finite=False)
    squares = values**2
    kept = squares > _SMALLEST_SQUARE * max(float(np.max(squares, initial=0.0)), _TINY)
    return left[:, kept], squares[kept], right[kept].T


def _general(
    features: FloatArray, y: FloatArray, omega: FloatArray, loss: Loss, relative_mu: float | None
) -> RidgeFit:
    n, size = features.shape
    means, unit = omega @ features, 0.0
    for rows in _row_chunks(n, size):
        features[rows] -= means
        unit += float(np.sum(omega[rows] @ features[rows] ** 2)) / max(size, 1)
    shape, y = y.shape[1:], y.reshape(n, -1)
    outputs = _contrasts(y.shape[1]) if loss.shift_invariant else np.eye(y.shape[1])
    problem = RidgeObjective(np.hstack([features, np.ones((n, 1))]), y, omega, loss, outputs)
    theta = np.zeros((size + 1, outputs.shape[1]))
    theta[-1] = loss.intercept(y, np.zeros(y.shape), omega) @ outputs
    best: RidgeFit | None = None
    grid = _FEW_PENALTIES if relative_mu is None else np.array([relative_mu])
    curvature: Curvature | None = None
    worse = 0
    for k, mu in enumerate(unit * grid[::-1]):
        penalty = np.full((size + 1, 1), max(float(mu), 1e-12 * unit, _TINY))
        penalty[-1] = 0.0
        theta, factor, curvature = problem.minimise(penalty, theta, curvature)
        score = loss.error(float(omega @ loss.value(y, problem.left_out(theta, factor))))
        worse += 1
        if best is None or score < best.score:
            worse = 0
            coef = theta @ outputs.T
            intercept = coef[-1] - means @ coef[:-1]
            best = RidgeFit(
                coef[:-1].reshape(size, *shape), intercept.reshape(shape), float(mu), score
            )
        if _PATIENCE <= worse < k:
            break
    assert best is not None
    return best


def _contrasts(k: int) -> FloatArray:
    """Return the Helmert matrix of shape (k, k - 1): orthonormal columns of sum zero.

    >>> np.round(_contrasts(3), 2)
    array([[ 0.71,  0.41],
           [-0.71,  0.41],
           [ 0.  , -0.82]])
    """
    return np.asarray(linalg.helmert(k).T)


class Curvature(NamedTuple):
    """The Hessian of the loss, and what a joint loss subtracts from it: its square, or None."""

    hessian: FloatArray
    coupling: FloatArray | None


def _row_chunks(n_rows: int, n_columns: int) -> Iterator[slice]:
    """Yield slices of rows so that a chunk of so many columns stays small; checks the time."""
    chunk = max(_CHUNK // max(n_columns, 1), 1)
    for start in range(0, n_rows, chunk):
        check_time()
        yield slice(start, start + chunk)


@dataclass(frozen=True)
class RidgeObjective:
    """The objective in theta of shape (R + 1, outputs), whose last row holds the intercepts.

    In its Hessian theta is flattened one output after the other.
    """

    design: FloatArray
    y: FloatArray
    omega: FloatArray
    loss: Loss
    outputs: FloatArray

    def predict(self, theta: FloatArray) -> FloatArray:
        """Return f, shape (n, k)."""
        return np.asarray(self.design @ theta @ self.outputs.T)

    def derivatives(self, f: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the first and second derivatives of each row's loss with respect to z."""
        second = self.outputs.T @ self.loss.hessian(self.y, f) @ self.outputs
        return self.loss.gradient(self.y, f) @ self.outputs, second

    def minimise(
        self, penalty: FloatArray, theta: FloatArray, curvature: Curvature | None = None
    ) -> tuple[FloatArray, FloatArray, Curvature]:
        """Return the minimiser, the Cholesky factor of the Hessian there, and its part of the loss.

        ``curvature`` is that part at theta, where it is known: theta is the minimiser for another
        penalty. It is most of the work of a step.
        """

        def stepped(theta: FloatArray, step: FloatArray, length: float) -> tuple[FloatArray, float]:
            after = theta - length * step
            losses = self.loss.value(self.y, self.predict(after))
            penalised = 0.5 * float(np.sum(penalty * after**2))
            return after, float(self.omega @ losses) + penalised

        _, before = stepped(theta, theta, 0.0)
        known = curvature
        for _ in range(_NEWTON_STEPS):
            f = self.predict(theta)
            first, second = self.derivatives(f)
            slope = self.design.T @ (self.omega[:, None] * first) + penalty * theta
            if known is None:
                known = self.curvature(second, f)
            factor = self.factor(known, penalty)
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
            known = None
        return theta, factor, known or self.curvature(self.derivatives(f)[1], f)

    def curvature(self, second: FloatArray, f: FloatArray) -> Curvature:
        """Return the Hessian of the loss, from the second derivatives of the rows."""
        width, outputs = self.design.shape[1], second.shape[1]
        blocks = np.empty((outputs, width, outputs, width))
        for a, b in itertools.combinations_with_replacement(range(outputs), 2):
            if a == b:  # the product of a matrix with its own transpose takes half the time
                weights = self.omega * (np.maximum(second[:, a, a], 0.0) + 1e-10)
                half = np.sqrt(weights)[:, None] * self.design
                blocks[a, :, a] = gram_in_parts(half)
                continue
            right = (self.omega * second[:, a, b])[:, None] * self.design
            block = product_in_parts(self.design.T, right)
            blocks[a, :, b], blocks[b, :, a] = block, block
        hessian = blocks.reshape(outputs * width, outputs * width)
        return Curvature(hessian, self.loss.coupling(self.y, f, self.design))

    def factor(self, curvature: Curvature, penalty: FloatArray) -> FloatArray:
        """Return the Cholesky factor of the Hessian of the objective."""
        hessian, coupling = curvature.hessian.copy(), curvature.coupling
        outputs = len(hessian) // len(penalty)
        diagonal = np.tile(penalty[:, 0], outputs) + 1e-14 * np.trace(hessian)
        hessian.flat[:: len(hessian) + 1] += diagonal
        if coupling is not None:
            # The Hessian of a joint loss is zero along the intercept, which the loss fixes.
            smaller = hessian - coupling.T @ coupling
            smaller[-1, -1] += np.trace(hessian)
            # Where rounding makes it indefinite, its upper bound takes its place.
            with suppress(linalg.LinAlgError):
                return np.asarray(linalg.cholesky(smaller, lower=True, check_finite=False))
        return np.asarray(
            linalg.cholesky(hessian, lower=True, overwrite_a=True, check_finite=False)
        )

    def left_out(self, theta: FloatArray, factor: FloatArray) -> FloatArray:
        """Return f_(i) of every row i, predicted after one Newton step without that row."""
        (n, width), outputs = self.design.shape, theta.shape[1]
        f = self.predict(theta)
        if self.loss.joint:
            return self._left_out_of_joint(f, factor)
        first, second = self.derivatives(f)
        if outputs == 1:
            sizes = np.empty(n)
            for rows in _row_chunks(n, width):
                some = self.design[rows].T
                half = linalg.solve_triangular(factor, some, lower=True, check_finite=False)
                sizes[rows] = self.omega[rows] * np.sum(half**2, axis=0)
            free = np.maximum(1.0 - sizes * second[:, 0, 0], 1e-10)
            return np.asarray(f + (first[:, 0] * sizes / free)[:, None] @ self.outputs.T)
        inverse = linalg.solve_triangular(
            factor, np.eye(len(factor)), lower=True, check_finite=False
        )
        inverse = inverse.reshape(-1, width).T
        for rows in _row_chunks(n, inverse.shape[1]):
            # With Q = S S', (I - Q W)^-1 Q = S (I - S' W S)^-1 S'. S is rotated so that the
            # matrix in the middle is diagonal.
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

    def _left_out_of_joint(self, f: FloatArray, factor: FloatArray) -> FloatArray:
        """Return f_(i) of every row i of a joint loss."""

        def halves(x: FloatArray) -> FloatArray:
            solved = linalg.solve_triangular(factor, x.T, lower=True, check_finite=False)
            return np.asarray(np.sqrt(self.omega) * solved)

        pulls, around = self.loss.influence(self.y, f, self.design)
        leverages = self.loss.curvature(self.y, f)[:, 0] * np.sum(halves(around) ** 2, axis=0)
        moves = np.sum(halves(self.design) * halves(pulls), axis=0)
        moves /= np.maximum(1.0 - leverages, _LEAST_FREE_OF_JOINT)
        return np.asarray(f + moves[:, None])
