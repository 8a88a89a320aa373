"""Minimise over eta: a primal-dual interior-point Newton method on the simplex.

With theta_v = d_v^2 eta_v on the unit simplex and P(theta) the value after solving for beta,

    min P(theta)  subject to  theta >= 0, sum theta = 1,

is convex and, in the scaled step x = dtheta / theta, has gradient g_v = -(lambda/2) h_v and
Hessian lambda diag(h) - kappa C kappa' (see ``forms``). Each iteration is one step of
Mehrotra's predictor-corrector method on

    (H + diag(s)) x + nu theta = mu - g,    theta' x = 0,    s = theta * z -> mu,

with an Armijo line search on the barrier function P - mu sum log theta. The stopping test does not
use mu. It computes the duality gap from a bound on the dual norm, refined for the current alpha.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import lapack

from hikernel.engines.machine import check_time
from hikernel.engines.numerics import backtrack
from hikernel.engines.protocol import FloatArray
from hikernel.losses.dual_curve import QuadraticCurve
from hikernel.reduced.forms import Evaluation, Form
from hikernel.reduced.solution import ReducedSolution, Status
from hikernel.reduced.variational import THETA_FLOOR, DualNormBound, HullMap

__all__ = ["solve_reduced"]

_TO_BOUNDARY = 0.995
_WARM_MIX = 1e-3
"""Share of the uniform distribution mixed into a warm start, so that no theta starts at zero."""
_ROUNDING = 1e-14
"""Gaps below this fraction of |y|^2 are rounding: the moments are no more accurate than this."""
_IDLE_STEPS = 3
"""Steps in a row that barely move, after which the solve has stalled. Where lambda is so small
beside the features that P is mostly rounding error, such steps would be taken without end."""
_IDLE = 1e-6
"""Relative change of every theta and slack up to which a step barely moves."""


@dataclass(frozen=True)
class _Point:
    """A theta and the solution for beta at it."""

    theta: FloatArray
    eta: FloatArray
    zeta: FloatArray
    solved: Evaluation
    pull: FloatArray  # h_v = |beta_D(v)|^2 / eta_v
    value: float  # P(theta)


@dataclass(frozen=True)
class _Gap:
    objective: float
    dual_bound: float
    dual_norm: DualNormBound

    @property
    def value(self) -> float:
        return self.objective - self.dual_bound


def solve_reduced(
    form: Form,
    hull: HullMap,
    lam: float,
    *,
    tol: float,
    warm_eta: FloatArray | None = None,
    max_iter: int = 200,
) -> ReducedSolution:
    """Solve the reduced problem to relative gap ``tol``.

    Parameters
    ----------
    form : Form
        The primal or the dual form.
    hull : HullMap
        The m nodes and their relations.
    lam : float
        lambda.
    tol : float
        Duality gap to reach, relative to the objective.
    warm_eta : ndarray of shape (m,), optional
        eta of a neighbouring problem, zero for nodes that it did not have.
    max_iter : int
        Largest number of Newton steps.

    Returns
    -------
    ReducedSolution
        The solution; its status says whether the solve converged. No exception is raised if it
        did not.
    """
    m = hull.size
    theta = _start(hull, warm_eta)
    point = _evaluate(form, hull, theta, lam)
    if point is None:
        if warm_eta is not None:
            return solve_reduced(form, hull, lam, tol=tol, max_iter=max_iter)
        return _singular(form, hull)
    slack = np.full(m, _first_barrier(point, lam, warm=warm_eta is not None))
    status, idle = Status.ITERATIONS, 0
    for iteration in range(max_iter + 1):
        check_time()
        # While the barrier is large the gap is large too, however good the dual norm bound is. So
        # the bound is refined only where the test may succeed.
        central = float(np.sum(slack)) <= 30.0 * tol * point.value
        warm = warm_eta is not None and iteration == 0
        gap = _gap(form, hull, point, lam, tol, refine=central or warm)
        if gap.value <= max(tol * gap.objective, _ROUNDING * form.total):
            status = Status.CONVERGED
            break
        if iteration == max_iter:
            break
        barrier_floor = 0.05 * tol * gap.objective / m
        moved = _step(form, hull, point, slack, lam, barrier_floor)
        idle = idle + 1 if moved is not None and _is_idle(point, slack, *moved) else 0
        if moved is None or idle == _IDLE_STEPS:
            status = Status.STALLED
            break
        point, slack = moved
    if not status.ok:
        gap = _gap(form, hull, point, lam, tol, refine=True)
        if gap.value <= max(tol * gap.objective, _ROUNDING * form.total):
            status = Status.CONVERGED
    return ReducedSolution(
        eta=point.eta,
        zeta=point.zeta,
        coef=point.solved.coef,
        scores=point.solved.scores,
        objective=gap.objective,
        dual_bound=gap.dual_bound,
        dual_norm=gap.dual_norm,
        n_iter=iteration,
        status=status,
    )


def _start(hull: HullMap, warm_eta: FloatArray | None) -> FloatArray:
    m = hull.size
    uniform = np.full(m, 1.0 / m)
    if warm_eta is None:
        return uniform
    theta = hull.weights**2 * warm_eta
    total = float(np.sum(theta))
    if not (np.isfinite(total) and total > 0.0):
        return uniform
    return (1.0 - _WARM_MIX) * theta / total + _WARM_MIX * uniform


def _first_barrier(point: _Point, lam: float, *, warm: bool) -> float:
    m = len(point.theta)
    if warm:
        return _WARM_MIX * point.value / m + np.finfo(float).tiny
    scale = max(0.5 * lam * float(np.sum(point.pull)), 1e-3 * point.value)
    return scale / m + np.finfo(float).tiny


def _evaluate(form: Form, hull: HullMap, theta: FloatArray, lam: float) -> _Point | None:
    eta = hull.eta(theta)
    zeta = hull.zeta(eta)
    solved = form.evaluate(zeta, lam)
    if solved is None:
        return None
    pull = hull.descendant_sums(solved.coef_squares) / eta
    value = solved.loss + 0.5 * lam * float(zeta @ solved.score_squares)
    if not np.isfinite(value):
        return None
    return _Point(theta, eta, zeta, solved, pull, value)


def _gap(form: Form, hull: HullMap, point: _Point, lam: float, tol: float, *, refine: bool) -> _Gap:
    """Return the primal objective, the dual bound, and the dual norm bound that proves it."""
    solved = point.solved
    objective = solved.loss + 0.5 * lam * hull.norm(solved.coef_squares) ** 2
    curve = QuadraticCurve(solved.fit, 2.0 * solved.loss)
    enough = curve.penalty_for((1.0 - tol) * objective) / lam
    bound = hull.refine_dual_norm(
        solved.score_squares, point.eta, rounds=20 if refine else 0, enough=enough
    )
    dual = curve.value(lam * bound.value)
    return _Gap(objective, min(dual, objective), bound)


def _step(
    form: Form,
    hull: HullMap,
    point: _Point,
    slack: FloatArray,
    lam: float,
    barrier_floor: float,
) -> tuple[_Point, FloatArray] | None:
    """Take one predictor-corrector step; return None when no step makes progress."""
    newton = _NewtonSystem(hull, point, slack, lam)
    if not newton.ok:
        return None
    mean_slack = float(np.mean(slack))
    x, dslack = newton.direction(0.0)
    primal, dual = _step_lengths(x, dslack, slack)
    predicted = float(np.mean((1.0 + primal * x) * (slack + dual * dslack)))
    centring = min(max((predicted / mean_slack) ** 3, 1e-4), 0.5)
    barrier = max(centring * mean_slack, barrier_floor)
    second_order = np.clip(x * dslack, -10.0 * barrier, 10.0 * barrier)
    for correction, trials in ((second_order, 4), (np.zeros_like(x), 40)):
        x, dslack = newton.direction(barrier, correction)
        slope = newton.slope(barrier, x)
        if not slope < 0.0:
            continue
        primal, dual = _step_lengths(x, dslack, slack)
        found = _line_search(form, hull, point, x, primal, slope, barrier, lam, trials)
        if found is None:
            continue
        new_point, length = found
        new_slack = (slack + dual * dslack) * (1.0 + length * x)
        return new_point, np.maximum(new_slack, 1e-4 * barrier)
    return None


def _is_idle(point: _Point, slack: FloatArray, moved: _Point, new_slack: FloatArray) -> bool:
    """Return whether a step leaves every theta and every slack nearly as it was."""
    pairs = ((point.theta, moved.theta), (slack, new_slack))
    return all(bool(np.all(np.abs(new - old) <= _IDLE * old)) for old, new in pairs)


class _NewtonSystem:
    """The factorised Newton matrix of one iterate, solved for several right-hand sides."""

    def __init__(self, hull: HullMap, point: _Point, slack: FloatArray, lam: float) -> None:
        self.gradient = -0.5 * lam * point.pull
        self._theta = point.theta
        self._slack = slack
        matrix = -hull.sandwich(point.solved.curvature(), point.eta, point.zeta)
        diagonal = lam * point.pull + slack
        matrix.flat[:: len(slack) + 1] += diagonal
        # The matrix is positive definite in exact arithmetic. Where rounding breaks this, a ridge
        # is added and increased until the factorisation succeeds.
        ridge = 0.0
        for _ in range(8):
            trial = matrix.copy()
            trial.flat[:: len(slack) + 1] += ridge * diagonal
            self._factor, info = lapack.dpotrf(trial.T, lower=0, overwrite_a=1, clean=0)
            self.ok = info == 0
            if self.ok:
                self._along, _ = lapack.dpotrs(self._factor, point.theta, lower=0)
                break
            ridge = max(1e-14, 100.0 * ridge)

    def direction(
        self, barrier: float, correction: FloatArray | float = 0.0
    ) -> tuple[FloatArray, FloatArray]:
        """Return the scaled primal step x and the step of the slack s."""
        free, _ = lapack.dpotrs(self._factor, barrier - self.gradient - correction, lower=0)
        multiplier = (self._theta @ free) / (self._theta @ self._along)
        x = free - multiplier * self._along
        return x, barrier - correction - self._slack - self._slack * x

    def slope(self, barrier: float, x: FloatArray) -> float:
        """Return the derivative of the barrier function along x.

        theta'x is zero up to rounding. Near the solution the gradient is nearly a multiple of
        theta, and times that rounding it would exceed the slope; so the multiple is taken out.
        """
        gradient, theta = self.gradient - barrier, self._theta
        return float((gradient - (gradient @ theta) / (theta @ theta) * theta) @ x)


def _step_lengths(x: FloatArray, dslack: FloatArray, slack: FloatArray) -> tuple[float, float]:
    """Return step lengths, at most 1, that keep theta and slack positive with a small margin."""
    primal = _TO_BOUNDARY / max(float(np.max(-x)), _TO_BOUNDARY)
    dual = _TO_BOUNDARY / max(float(np.max(-dslack / slack)), _TO_BOUNDARY)
    return primal, dual


def _line_search(
    form: Form,
    hull: HullMap,
    point: _Point,
    x: FloatArray,
    length: float,
    slope: float,
    barrier: float,
    lam: float,
    trials: int,
) -> tuple[_Point, float] | None:
    """Shorten the step along x until the barrier function decreases enough.

    Returns the new point and the step length, or None after ``trials`` attempts.
    """

    def trial_at(length: float) -> _Point | None:
        theta = np.maximum(point.theta * (1.0 + length * x), THETA_FLOOR)
        return _evaluate(form, hull, theta / np.sum(theta), lam)

    def value(point: _Point) -> float:
        return point.value - barrier * float(np.sum(np.log(point.theta)))

    before = value(point)
    return backtrack(
        trial_at, value, before, slope, length=length, trials=trials, slack=1e-13 * abs(before)
    )


def _singular(form: Form, hull: HullMap) -> ReducedSolution:
    """Return the zero model, with the trivial dual bound 0 and status SINGULAR."""
    eta = hull.eta(np.full(hull.size, 1.0 / hull.size))
    n_columns = form.n_columns
    return ReducedSolution(
        eta=eta,
        zeta=hull.zeta(eta),
        coef=np.zeros(n_columns),
        scores=np.zeros(n_columns),
        objective=0.5 * form.total,
        dual_bound=0.0,
        dual_norm=DualNormBound(np.inf, eta),
        n_iter=0,
        status=Status.SINGULAR,
    )
