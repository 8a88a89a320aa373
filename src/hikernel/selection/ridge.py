"""Ridge with its strength by leave-one-out: exact for the squared error, approximate otherwise.

With features scaled to F, weights omega of sum one and strength mu,

    min over beta, b of sum_i omega_i loss(y_i, b + F_i beta) + (mu/2) |beta|^2.

Squared error: from F~ = sqrt(omega) (F - mean) = U S V', leverages h_i = omega_i + sum_k U_ik^2
s_k^2 / (s_k^2 + mu) give the leave-one-out residuals r_i / (1 - h_i) of every mu from one
decomposition. Other smooth losses: Newton's method, and one Newton step away from the solution
for each row left out,

    f_(i) = f_i + g_i q_i / (1 - W_i q_i),   q_i = omega_i x_i' H^-1 x_i,

H the Hessian with the intercept in it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from hikernel.engines.protocol import FloatArray
from hikernel.losses import Loss, SquaredError

__all__ = ["RidgeFit", "fit_ridge"]

_STRENGTHS = np.geomspace(1e-10, 1.0, 26)
"""Strengths tried, relative to the mean square of the features."""
_FEW_STRENGTHS = np.geomspace(1e-7, 1.0, 12)
"""The same for losses that need Newton's method for each of them."""
_NEWTON_STEPS = 50


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
        mu.
    score : float
        Mean leave-one-out loss.
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
        F, in the metric of the penalty. Overwritten.
    y, omega : ndarray of shape (n,)
        Target, and weights of sum one.
    loss : Loss
        Smooth, of one output.
    strength : float, optional
        Relative strength, in place of leave-one-out; 0 for no penalty.
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
    squares, vectors = linalg.eigh(features.T @ features, check_finite=False)
    unit = max(float(np.sum(squares)) / max(len(squares), 1), np.finfo(float).tiny)
    kept = squares > 1e-13 * max(float(squares[-1]), np.finfo(float).tiny)
    squares, vectors = squares[kept], vectors[:, kept]
    left = (features @ vectors) / np.sqrt(squares)
    along = left.T @ target
    left_squares = left**2
    best = (np.inf, 0.0)
    for mu in unit * (_STRENGTHS if strength is None else np.array([strength])):
        shrink = squares / (squares + mu)
        residuals = target - left @ (shrink * along)
        leverages = np.minimum(omega + left_squares @ shrink, 1.0 - 1e-10)
        score = 0.5 * float(np.sum((residuals / (1.0 - leverages)) ** 2))
        if score < best[0]:
            best = (score, float(mu))
    coef = vectors @ (np.sqrt(squares) * along / (squares + best[1]))
    return RidgeFit(coef, center - float(means @ coef), best[1], best[0])


def _general(
    features: FloatArray, y: FloatArray, omega: FloatArray, loss: Loss, strength: float | None
) -> RidgeFit:
    n, size = features.shape
    design = np.hstack([features, np.ones((n, 1))])
    unit = float(np.sum(omega @ features**2)) / max(size, 1)
    coef = np.zeros(size + 1)
    coef[-1] = float(loss.intercept(y, np.zeros(n), omega))
    best: RidgeFit | None = None
    grid = _FEW_STRENGTHS if strength is None else np.array([strength])
    for mu in unit * grid[::-1]:
        penalty = np.full(size + 1, max(float(mu), 1e-12 * unit))
        penalty[-1] = 0.0
        coef, factor = _newton(design, y, omega, loss, penalty, coef)
        f = design @ coef
        solved = linalg.solve_triangular(factor, design.T, lower=True, check_finite=False)
        q = omega * np.sum(solved**2, axis=0)
        gradient, curvature = loss.gradient(y, f), loss.curvature(y, f)
        moved = f + gradient * q / np.maximum(1.0 - curvature * q, 1e-10)
        score = float(omega @ loss.value(y, moved))
        if best is None or score < best.score:
            best = RidgeFit(coef[:-1].copy(), float(coef[-1]), float(mu), score)
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
