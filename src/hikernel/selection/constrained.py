"""Ridge under linear constraints: effects that may only rise, or only fall.

With the features, weights and penalty of ``ridge`` and rows A of constraints,

    min over B, b of sum_i omega_i loss(y_i, b + B' F_i) + (mu/2) |B|^2   subject to  A B >= 0.

This is strictly convex in B. Newton's method minimises the quadratic model of the objective under
the constraints, at every step. Let H be its Hessian in theta = (B, b), theta_0 its minimiser
without constraints, c the coefficients that have any, and V = (H^-1)_cc = T' T. The dual of the
step is a non-negative least squares problem,

    min over nu >= 0 of |T A' nu + T'^-1 theta_0c|^2,   theta_c = theta_0c + V A' nu,

and the other coefficients follow from theta_c. For the squared error one step is exact.

mu is chosen by leave-one-out on a face of the constraints: those that bind are kept binding, and
their null space gives features for ``ridge``. The solution on a face is a ridge fit without
constraints, so leave-one-out is as exact there as it is in ``ridge``, as long as no row decides on
its own which constraints bind. From the mu of the fit without constraints, a few faces are tried,
each at the mu that is best on the one before, and the least leave-one-out error is kept.

Any residuals r with weighted sum zero and any nu >= 0 bound the optimum from below by

    -sum_i omega_i psi_i(-r_i) - |sum_i omega_i r_i F_i + A' nu|^2 / (2 mu),

where psi is the conjugate of the loss. So the gap of the estimate is proven, like a certificate.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import itemgetter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from scipy.optimize import lsq_linear, nnls

from hikernel.engines.numerics import backtrack
from hikernel.engines.protocol import FloatArray
from hikernel.graphs import Direction
from hikernel.losses import Loss, balanced
from hikernel.selection.ridge import RidgeFit, fit_ridge
from hikernel.selection.ridge_objective import RidgeObjective

__all__ = ["fit_constrained"]

_LEAST_MU = 1e-12
"""Least penalty, relative to the mean variance of the features: it keeps the problem strictly
convex where no penalty was asked for."""
_FACES = 3
"""Number of faces on which mu is chosen again."""
_NEWTON_STEPS = 50
_CONVERGED = 1e-14
"""Relative decrease of the objective, predicted by a step, below which Newton's method ends."""
_FLAT = 1e-11
"""An effect whose coefficients are so small, relative to those without constraints, is zero."""
_ZERO_ROW = 1e-14
"""A constraint so short, relative to the longest, is rounding error of one that does not bind."""
_NO_INSIDE = 1e-12
"""Squared distance to a point inside a cone, as a share, below which the cone is taken for flat."""
_ROUNDED = 1e-9
"""Violation, relative to the largest coefficient, up to which a step into the cone removes it."""
_NOISE = 1e-13
_POLISH = 1e-6
"""Shares of the distance to the tip of a cone: of a push that is rounding error, and of the most
that rounding errors of a projection are corrected by."""
_TINY = float(np.finfo(float).tiny)


def fit_constrained(
    features: FloatArray,
    y: FloatArray,
    omega: FloatArray,
    loss: Loss,
    scales: FloatArray,
    directions: Sequence[Direction],
    relative_mu: float | None = None,
) -> RidgeFit:
    """Fit ridge under constraints, with the penalty chosen by leave-one-out.

    Parameters
    ----------
    features : ndarray of shape (n, R)
        F, scaled so that the penalty is |B|^2.
    y : ndarray of shape (n,)
        Target.
    omega : ndarray of shape (n,)
        Weights of sum one.
    loss : Loss
        A smooth loss.
    scales : ndarray of shape (R,)
        Positive; the coefficients of the model are scales * B.
    directions : sequence of Direction
        Constraints on some coefficients of the model each.
    relative_mu : float, optional
        Fixed mu, relative to the mean variance of the features, instead of leave-one-out.

    Returns
    -------
    RidgeFit
        Where the fit without constraints meets them, it is that fit. ``score`` is the leave-one-out
        loss with the binding constraints kept binding, and ``gap`` is proven.
    """
    means = omega @ features
    fit = _fit_centred(features - means, y, omega, loss, scales, directions, relative_mu)
    return replace(fit, intercept=fit.intercept - means @ fit.coef)


def _fit_centred(
    features: FloatArray,
    y: FloatArray,
    omega: FloatArray,
    loss: Loss,
    scales: FloatArray,
    directions: Sequence[Direction],
    relative_mu: float | None,
) -> RidgeFit:
    """Return the fit for features of mean zero."""
    free = fit_ridge(features.copy(), y, omega, loss, relative_mu)
    problem = _Constrained.of(features, y, omega, loss, scales, directions)
    if problem.is_feasible(free.coef):
        return replace(free, gap=problem.gap(free.coef, free.intercept, free.mu))
    start = np.append(free.coef, free.intercept)
    best = problem.solve(max(free.mu, problem.least_mu), start, free.coef)
    if relative_mu is not None:
        return best.fit
    tried, last = {best.fit.mu}, best
    for _ in range(_FACES):
        on_face = problem.on_face(last.binding, None)
        if on_face is None or on_face.mu in tried:
            break
        tried.add(on_face.mu)
        theta = np.append(last.fit.coef, last.fit.intercept)
        last = problem.solve(max(on_face.mu, problem.least_mu), theta, free.coef)
        if last.fit.score < best.fit.score:
            best = last
    return best.fit


class _Solved(NamedTuple):
    """A fit under constraints, and which of them bind."""

    fit: RidgeFit
    binding: NDArray[np.bool_]


@dataclass(frozen=True)
class _Constrained:
    """The problem: features of mean zero, target, loss, and the constraints in terms of B.

    ``where`` holds the positions of the coefficients with constraints, and ``rows`` their columns
    of A; ``parts`` are the constraints of each effect by itself.
    """

    features: FloatArray
    y: FloatArray
    omega: FloatArray
    loss: Loss
    parts: list[Direction]
    where: NDArray[np.intp]
    rows: FloatArray

    @classmethod
    def of(
        cls,
        features: FloatArray,
        y: FloatArray,
        omega: FloatArray,
        loss: Loss,
        scales: FloatArray,
        directions: Sequence[Direction],
    ) -> _Constrained:
        parts = [
            Direction(columns, _unit_rows(rows * scales[columns])) for columns, rows in directions
        ]
        where = np.concatenate([np.empty(0, dtype=np.intp), *[part.columns for part in parts]])
        rows = np.asarray(linalg.block_diag(*[part.rows for part in parts]))
        return cls(features, y, omega, loss, parts, where, rows)

    @property
    def least_mu(self) -> float:
        """The least penalty that is used."""
        return max(_LEAST_MU * float(np.mean(self.omega @ self.features**2)), _TINY)

    def is_feasible(self, coef: FloatArray) -> bool:
        """Return whether B meets all constraints."""
        return bool(np.all(self.rows @ coef[self.where] >= 0.0))

    def solve(self, mu: float, start: FloatArray, free: FloatArray) -> _Solved:
        """Return the fit at one mu, from a start theta; ``free`` is B without constraints."""
        theta, binding = self.minimise(mu, start)
        coef, intercept = self.cleaned(theta[:-1], free), theta[-1]
        on_face = self.on_face(binding, mu)
        if on_face is None:
            f = self.features @ coef + intercept
            score = self.loss.error(float(self.omega @ self.loss.value(self.y, f)))
        else:
            score = on_face.score
        gap = self.gap(coef, intercept, mu)
        return _Solved(RidgeFit(coef, np.asarray(intercept), mu, score, gap), binding)

    def minimise(self, mu: float, theta: FloatArray) -> tuple[FloatArray, NDArray[np.bool_]]:
        """Return the minimiser theta = (B, b), and which constraints bind there.

        The first step, from a point that need not be feasible, is taken as it is, unless a constant
        is better. The feasible set is convex, so all points of the later steps are feasible.
        """
        n, size = self.features.shape
        design = np.hstack([self.features, np.ones((n, 1))])
        target = self.y[:, None]
        quadratic = RidgeObjective(design, target, self.omega, self.loss, np.eye(1))
        penalty = np.append(np.full(size, mu), 0.0)
        binding = np.zeros(len(self.rows), dtype=bool)

        def stepped(theta: FloatArray, step: FloatArray, t: float) -> tuple[FloatArray, float]:
            after = theta + t * step
            losses = self.loss.value(target, (design @ after)[:, None])
            return after, float(self.omega @ losses + 0.5 * penalty @ after**2)

        before = math.inf
        for k in range(_NEWTON_STEPS):
            f = (design @ theta)[:, None]
            first, second = quadratic.derivatives(f)
            slope = design.T @ (self.omega * first[:, 0]) + penalty * theta
            factor = quadratic.factor(quadratic.curvature(second, f), penalty[:, None])
            aim, bound = self._step(theta, slope, factor)
            step = aim - theta
            if k == 0:
                level = float(self.loss.intercept(self.y, np.zeros(n), self.omega))
                constant = np.append(np.zeros(size), level)
                starts = stepped(theta, step, 1.0), stepped(constant, step, 0.0)
                theta, before = min(starts, key=itemgetter(1))
                binding = bound
                continue
            descent = float(slope @ step)
            if descent >= -_CONVERGED * before:
                break
            found = backtrack(partial(stepped, theta, step), itemgetter(1), before, descent)
            if found is None:
                break
            (theta, before), _ = found
            binding = bound
        return theta, binding

    def _step(
        self, theta: FloatArray, slope: FloatArray, factor: FloatArray
    ) -> tuple[FloatArray, NDArray[np.bool_]]:
        """Return the minimiser of the quadratic model under the constraints, and what binds."""
        unit = np.zeros((len(theta), len(self.where)))
        unit[self.where, np.arange(len(self.where))] = 1.0
        # V = W' W with W = L^-1 (I)_c. So T needs no factorisation of V, which may be singular.
        half = linalg.solve_triangular(factor, unit, lower=True, check_finite=False)
        root = np.linalg.qr(half).R
        inverse = linalg.solve_triangular(factor, half, lower=True, trans="T", check_finite=False)
        free = theta - linalg.cho_solve((factor, True), slope, check_finite=False)
        near, binding = _nearest(free[self.where], self.rows, root)
        pull = linalg.cho_solve((root, False), near - free[self.where], check_finite=False)
        out = free + inverse @ pull
        out[self.where] = near
        return out, binding

    def on_face(self, binding: NDArray[np.bool_], mu: float | None) -> RidgeFit | None:
        """Return the ridge fit with some constraints kept binding; None if that is a constant.

        With a given mu, or with the mu of least leave-one-out error.
        """
        face = np.eye(self.features.shape[1])
        if np.any(binding):
            free = linalg.null_space(self.rows[binding])
            rest = np.delete(face, self.where, axis=1)
            inside = np.zeros((len(face), free.shape[1]))
            inside[self.where] = free
            face = np.hstack([rest, inside])
        projected = self.features @ face
        unit = float(np.sum(self.omega @ projected**2))
        if face.shape[1] == 0 or unit <= 0.0:
            return None
        relative = None if mu is None else mu * face.shape[1] / unit
        return fit_ridge(projected, self.y, self.omega, self.loss, relative)

    def cleaned(self, coef: FloatArray, free: FloatArray) -> FloatArray:
        """Return B without rounding errors: nearby coefficients that meet the constraints.

        Newton's method may be off by rounding where the rows hardly determine a coefficient. So
        the nearest point that meets the constraints is taken, where every coefficient counts by its
        largest effect on a constraint; not where only the last digits violate one, since least
        squares cannot tell these from noise. What is left is removed by a small step into the cone.
        """
        coef = coef.copy()
        for columns, rows in self.parts:
            sizes = np.max(np.abs(rows), axis=0, initial=0.0)
            sizes[sizes == 0.0] = 1.0
            scaled = _unit_rows(rows / sizes)
            near = sizes * coef[columns]
            if np.min(scaled @ near, initial=0.0) < -_ROUNDED * np.max(np.abs(near)):
                near, _ = _nearest(near, scaled, np.eye(len(columns)))
            near = near + max(0.0, -float(np.min(scaled @ near, initial=0.0))) * _inward(scaled)
            flat = np.max(np.abs(near)) <= _FLAT * np.max(np.abs(sizes * free[columns]))
            coef[columns] = 0.0 if flat else near / sizes
        return coef

    def gap(self, coef: FloatArray, intercept: FloatArray, mu: float) -> float:
        """Return a bound on how far the estimate is from its optimum, relative to its objective.

        Infinite without a penalty, where this bound proves nothing.
        """
        f = self.features @ coef + intercept
        primal = float(self.omega @ self.loss.value(self.y, f) + 0.5 * mu * coef @ coef)
        residuals = balanced(-self.loss.gradient(self.y, f), self.omega)
        pull = self.features.T @ (self.omega * residuals)
        if len(self.rows):
            push, _ = _nonnegative(self.rows.T, -pull[self.where])
            pull[self.where] += self.rows.T @ push
        conjugates = float(self.omega @ self.loss.conjugate(self.y, -residuals))
        dual = -conjugates - 0.5 * float(pull @ pull) / mu if mu > 0.0 else -math.inf
        return max(0.0, primal - dual) / max(primal, _TINY)


def _nearest(
    point: FloatArray, rows: FloatArray, root: FloatArray
) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Return the x with rows x >= 0 that is nearest to a point, and which rows bind.

    The squared distance is |T'^-1 (x - point)|^2 with T = ``root``, upper triangular.

    >>> _nearest(np.array([1.0, -2.0]), np.eye(2), np.eye(2))
    (array([1., 0.]), array([False,  True]))
    """
    if np.all(rows @ point >= 0.0):
        return point, np.zeros(len(rows), dtype=bool)
    start = linalg.solve_triangular(root, point, trans="T", check_finite=False)
    columns = root @ rows.T
    push, sizes = _nonnegative(columns, -start)
    found = start + columns @ push
    length = float(np.linalg.norm(start))
    # Pushes of the size of rounding errors are noise at a point on the boundary: nothing binds.
    binding = push * sizes > _NOISE * length
    if np.any(binding):
        # Least squares again over the columns in use: exact up to rounding, whatever solved first.
        again = linalg.lstsq(columns[:, binding], start, check_finite=False)[0]
        exact = start - columns[:, binding] @ again
        found = exact if np.linalg.norm(exact - found) <= _POLISH * length else found
    return root.T @ found, binding


def _inward(rows: FloatArray) -> FloatArray:
    """Return the shortest d with rows d >= 1, a step into the cone; zero if there is none.

    >>> _inward(np.eye(2))
    array([1., 1.])
    """
    n = rows.shape[1]
    aim = np.append(np.zeros(n), 1.0)
    columns = np.vstack([rows.T, np.ones(len(rows))])
    push, _ = _nonnegative(columns, aim)
    left = columns @ push - aim  # of least distance: Lawson and Hanson (1974), chapter 23
    if left[n] >= -_NO_INSIDE:
        return np.zeros(n)
    return np.asarray(-left[:n] / left[n])


def _unit_rows(rows: FloatArray) -> FloatArray:
    """Return rows of length one, without those of length zero up to rounding."""
    sizes = np.sqrt(np.sum(rows**2, axis=1))
    large = sizes > _ZERO_ROW * np.max(sizes, initial=_TINY)
    return np.asarray(rows[large] / sizes[large, None])


def _nonnegative(columns: FloatArray, aim: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the nu >= 0 of least |columns nu - aim|, and the lengths of the columns."""
    sizes = np.maximum(np.sqrt(np.sum(columns**2, axis=0)), _TINY)
    scaled = columns / sizes
    try:
        found, _ = nnls(scaled, aim, maxiter=30 * max(columns.shape))
    except RuntimeError:  # too many steps, which some versions of SciPy need near ties
        found = np.asarray(lsq_linear(scaled, aim, (0.0, np.inf), method="bvls").x)
    return found / sizes, sizes
