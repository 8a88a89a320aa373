"""Ridge with its strength by leave-one-out: exact for the squared error, approximate otherwise.

With features scaled to F, weights omega of sum one and strength mu,

    min over beta, b of sum_i omega_i loss(y_i, b + F_i beta) + (mu/2) |beta|^2.

Squared error: from F~ = sqrt(omega) (F - mean) = U S V', leverages h_i = omega_i + sum_k U_ik^2
s_k^2 / (s_k^2 + mu) give the leave-one-out residuals r_i / (1 - h_i) of every mu from one
decomposition. Other smooth losses: Newton's method, and one Newton step away from the solution
for each row left out,

    f_(i) = f_i + g_i q_i / (1 - W_i q_i),   q_i = omega_i x_i' H^-1 x_i,

H the Hessian with the intercept in it.

A row is left out with all its weight, the other weights and mu stay as they are, and its loss
counts with its weight. A row of weight 2 is therefore a pair of equal rows that are left out
together: the fit is that of the repeated row, the leave-one-out score is not (a copy that stays
behind would tell the answer).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from hikernel.engines.protocol import FloatArray
from hikernel.losses import Loss, SquaredError

__all__ = ["RidgeFit", "fit_ridge"]

_STRENGTHS = np.geomspace(1e-10, 100.0, 31)
"""Strengths tried, relative to the variance of the features."""
_FEW_STRENGTHS = np.geomspace(1e-7, 100.0, 15)
"""The same for losses that need Newton's method for each of them."""
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
    coef : ndarray of shape (R,)
        beta.
    intercept : float
        b.
    strength : float
        mu itself, not relative to the features.
    score : float
        Weighted mean of the leave-one-out losses.
    """

    coef: FloatArray
    intercept: float
    strength: float
    score: float


def fit_ridge(
    features: FloatArray,
    y: FloatArray,
    omega: FloatArray,
    loss: Loss,
    strength: float | None = None,
) -> RidgeFit:
    """Fit ridge with the strength that leave-one-out chooses.

    Parameters
    ----------
    features : ndarray of shape (n, R)
        F, in the metric of the penalty. Overwritten by its centred columns.
    y, omega : ndarray of shape (n,)
        Target, and weights of sum one.
    loss : Loss
        Smooth, of one output.
    strength : float, optional
        Strength in place of leave-one-out, relative to the mean variance of the features; 0 for
        no penalty (of all such fits the one of least norm, where there are several).
    """
    if isinstance(loss, SquaredError):
        return _squared(features, y, omega, strength)
    return _general(features, y, omega, loss, strength)


def _squared(
    features: FloatArray, y: FloatArray, omega: FloatArray, strength: float | None
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
    best = (np.inf, 0.0)
    for mu in unit * (_STRENGTHS if strength is None else np.array([strength])):
        lost = mu / (squares + mu)
        residuals = outside + left @ (lost * along)
        score = residuals / np.maximum(free + left_squares @ lost, _LEAST_FREE)
        mean = 0.5 * float(np.sum(score**2))
        if mean < best[0]:
            best = (mean, float(mu))
    coef = vectors @ (np.sqrt(squares) * along / (squares + best[1]))
    return RidgeFit(coef, center - float(means @ coef), best[1], best[0])


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
    features: FloatArray, y: FloatArray, omega: FloatArray, loss: Loss, strength: float | None
) -> RidgeFit:
    n, size = features.shape
    means = omega @ features
    features -= means
    design = np.hstack([features, np.ones((n, 1))])
    unit = float(np.sum(omega @ features**2)) / max(size, 1)
    coef = np.zeros(size + 1)
    coef[-1] = float(loss.intercept(y, np.zeros(n), omega))
    best: RidgeFit | None = None
    grid = _FEW_STRENGTHS if strength is None else np.array([strength])
    for mu in unit * grid[::-1]:
        penalty = np.full(size + 1, max(float(mu), 1e-12 * unit, _TINY))
        penalty[-1] = 0.0
        coef, factor = _newton(design, y, omega, loss, penalty, coef)
        f = design @ coef
        solved = linalg.solve_triangular(factor, design.T, lower=True, check_finite=False)
        q = omega * np.sum(solved**2, axis=0)
        gradient, curvature = loss.gradient(y, f), loss.curvature(y, f)
        moved = f + gradient * q / np.maximum(1.0 - curvature * q, 1e-10)
        score = float(omega @ loss.value(y, moved))
        if best is None or score < best.score:
            intercept = float(coef[-1] - means @ coef[:-1])
            best = RidgeFit(coef[:-1].copy(), intercept, float(mu), score)
    assert best is not None
    return best


def _newton(
    design: FloatArray,
    y: FloatArray,
    omega: FloatArray,
    loss: Loss,
    penalty: FloatArray,
    coef: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Return the minimiser and the Cholesky factor of the Hessian there."""

    def value(beta: FloatArray) -> float:
        return float(omega @ loss.value(y, design @ beta)) + 0.5 * float(penalty @ beta**2)

    before = value(coef)
    for _ in range(_NEWTON_STEPS):
        f = design @ coef
        slope = design.T @ (omega * loss.gradient(y, f)) + penalty * coef
        weights = omega * np.maximum(loss.curvature(y, f), 1e-10)
        hessian = design.T @ (weights[:, None] * design)
        hessian.flat[:: len(coef) + 1] += penalty + 1e-14 * np.trace(hessian)
        factor = linalg.cholesky(hessian, lower=True, check_finite=False)
        step = linalg.cho_solve((factor, True), slope, check_finite=False)
        length = 1.0
        while length > 1e-8:
            after = value(coef - length * step)
            if after <= before - 1e-4 * length * float(slope @ step):
                break
            length *= 0.5
        else:
            break
        coef, gain, before = coef - length * step, before - after, after
        if gain <= 1e-10 * max(before, 1e-300):
            break
    return coef, factor
