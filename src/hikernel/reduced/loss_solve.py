"""Any convex loss on a hull: Newton's method on the loss, with the penalty kept exact.

At the current prediction f the loss is replaced by a quadratic model,

    sum_i omega_i W_i (z_i - f_i)^2 / 2,    z = f - g / W,

with gradient g and curvature W. This is a squared-error problem with other row weights and another
target; ``newton`` solves it over beta, b and eta together. ``descent`` takes g and W from a smooth
loss, ``interior`` from the central path of a loss with kinks. Both stop on the duality gap of the
exact loss, computed with its exact conjugate.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hikernel.engines.protocol import FloatArray
from hikernel.reduced.forms import Form
from hikernel.reduced.solution import ReducedSolution, Status, WarmStart
from hikernel.reduced.variational import DualNormBound
from hikernel.reduced.working_set import solve_form

if TYPE_CHECKING:
    from hikernel.reduced.problem import ReducedProblem

__all__ = ["LossSolve", "Point"]

_LEAST_TOL, _LARGEST_TOL = 1e-14, 0.03
"""Limits of the relative tolerance to which a quadratic model is solved."""
_LEAST_CURVATURE = 1e-3
"""Least curvature of a row, relative to the mean over the rows: bounds the move of a flat row."""
_LARGEST_MOVE = 20.0
"""Largest move |z - f| of a row that the quadratic model may ask for."""


@dataclass(frozen=True)
class Point:
    """A model on the hull.

    Attributes
    ----------
    coef : ndarray of shape (R,) or (R, k)
        beta.
    linear : ndarray of shape (n,) or (n, k)
        Phi beta.
    intercept : ndarray of shape () or (k,)
        b.
    norm : float
        Omega(beta).
    """

    coef: FloatArray
    linear: FloatArray
    intercept: FloatArray
    norm: float

    @property
    def f(self) -> FloatArray:
        """The prediction."""
        return np.asarray(self.linear + self.intercept)


@dataclass(frozen=True)
class Gap:
    """The duality gap at a point, with the dual point (residuals) that proves it."""

    objective: float
    dual_bound: float
    dual_norm: DualNormBound
    scores: FloatArray
    residuals: FloatArray

    @property
    def value(self) -> float:
        """Objective minus dual bound."""
        return max(0.0, self.objective - self.dual_bound)


class LossSolve(ABC):
    """Base class of the solvers for general losses.

    Parameters
    ----------
    problem : ReducedProblem
        The problem: hull, rows, target and loss.
    lam : float
        lambda.
    tol : float
        Relative duality gap to reach.
    warm : WarmStart, optional
        Starting point; the zero model by default.
    """

    def __init__(
        self, problem: ReducedProblem, lam: float, tol: float, warm: WarmStart | None
    ) -> None:
        self.problem = problem
        self.loss = problem.loss
        self.y = problem.y
        self.omega = problem.engine.row_weights
        self.lam = lam
        self.tol = tol
        self.outputs = self.y.shape[1:]
        self.eta = None if warm is None else warm.eta
        self.steps = 0
        self._best: tuple[Gap, Point, FloatArray] | None = None
        self.since_best = 0

    @abstractmethod
    def run(self) -> ReducedSolution:
        """Take steps until the gap is small enough, and return the best point found."""

    def first_point(self, warm: WarmStart | None, smoothing: float) -> Point:
        """Return the starting point, with the best intercept for it."""
        if warm is None:
            coef = np.zeros((self.problem.n_columns, *self.outputs))
            return self.with_intercept(coef, np.zeros_like(self.y), 0.0, smoothing)
        return self.with_intercept(warm.coef, self.apply(warm.coef), 0.0, smoothing)

    def model_solution(
        self, point: Point, gradient: FloatArray, curvature: FloatArray, wanted: float
    ) -> tuple[Point, DualNormBound]:
        """Solve the quadratic model at a point to the absolute gap ``wanted``.

        Returns the minimiser of the model and the dual norm bound of its solution. The eta of the
        solution is stored as ``self.eta``, from which the next model starts.
        """
        problem = self.problem
        joint = problem.joint_form(point.f, curvature, point.coef) if self.loss.joint else None
        if joint is not None:
            solution = self._form_solution(*joint, point, wanted)
            coef = solution.coef
            return self.with_intercept(coef, self.apply(coef), 0.0, 0.0), solution.dual_norm
        shape = (len(self.omega), -1)
        targets = (point.f - gradient / curvature).reshape(shape)
        form, target_means, column_means = problem.quadratic_form(targets, curvature.reshape(shape))
        value = 0.5 * float(np.sum(self.omega @ (gradient**2 / curvature)))
        solution = self._form_solution(form, value, point, wanted)
        coef = solution.coef.reshape(-1, problem.n_columns)
        b = target_means - np.sum(column_means * coef, axis=1)
        if self.loss.shift_invariant:
            # The component that all outputs share does not change the loss, only the penalty.
            coef, b = coef - np.mean(coef, axis=0), b - np.mean(b)
        coef = coef.T if self.outputs else coef[0]
        goal = Point(coef, self.apply(coef), b if self.outputs else b[0], self.norm(coef))
        return goal, solution.dual_norm

    def least_curvature(self, gradient: FloatArray, curvature: FloatArray) -> FloatArray:
        """Return the least curvature that a model gives a row, in the shape of the gradient."""
        least = _LEAST_CURVATURE * (self.omega @ curvature)
        return np.asarray(np.maximum(least, np.abs(gradient) / _LARGEST_MOVE))

    def _form_solution(
        self, form: Form, value: float, point: Point, wanted: float
    ) -> ReducedSolution:
        """Solve a model whose loss has the given value at a point, and store the eta found."""
        value += 0.5 * self.lam * point.norm**2
        tol = wanted / max(value, np.finfo(float).tiny)
        solution = solve_form(
            form,
            self.problem.hull,
            self.lam,
            tol=float(np.clip(tol, _LEAST_TOL, _LARGEST_TOL)),
            warm_eta=self.eta,
        )
        self.eta = solution.eta
        return solution

    def gap(self, point: Point, residuals: FloatArray, eta: FloatArray) -> Gap:
        """Return the duality gap of the exact problem at a point and a dual point.

        ``residuals`` are the dual point. ``eta`` is the starting point for the refinement of the
        dual norm bound.
        """
        problem = self.problem
        objective = self.objective(point)
        dual_coef = (self.omega * residuals.T).T / self.lam
        scores = problem.correlate(dual_coef)
        scores[problem.constant_columns] = 0.0
        curve = self.loss.dual_curve(self.y, residuals, self.omega)
        enough = curve.penalty_for((1.0 - self.tol) * objective) / self.lam
        bound = problem.hull.refine_dual_norm(problem.node_squares(scores), eta, enough=enough)
        dual = min(curve.value(self.lam * bound.value), objective)
        return Gap(objective, dual, bound, scores, residuals)

    def note(self, point: Point, residuals: FloatArray, start: DualNormBound) -> Gap:
        """Return the gap of a point, and keep the point if it is the best so far."""
        gap = self.gap(point, residuals, start.eta)
        assert self.eta is not None
        self.since_best += 1
        if self._best is None or gap.value < self._best[0].value:
            self._best, self.since_best = (gap, point, self.eta), 0
        return gap

    def is_enough(self, gap: Gap) -> bool:
        """Return whether the tolerance is met, or the gap is down to rounding."""
        return gap.value <= max(self.tol * gap.objective, 1e-15)

    def solution(self, status: Status) -> ReducedSolution:
        """Return the best point found, with the given status."""
        assert self._best is not None
        gap, point, eta = self._best
        return ReducedSolution(
            eta=eta,
            zeta=self.problem.hull.zeta(eta),
            coef=point.coef,
            scores=gap.scores,
            objective=gap.objective,
            dual_bound=gap.dual_bound,
            dual_norm=gap.dual_norm,
            n_iter=self.steps,
            status=status,
            residuals=gap.residuals,
        )

    def with_intercept(
        self, coef: FloatArray, linear: FloatArray, start: FloatArray | float, smoothing: float
    ) -> Point:
        """Return the point with these coefficients and the best intercept."""
        b = self.loss.intercept(self.y, linear, self.omega, smoothing, start)
        return Point(coef, linear, b, self.norm(coef))

    def mix(self, point: Point, goal: Point, length: float) -> Point:
        """Return point + length (goal - point)."""
        coef = point.coef + length * (goal.coef - point.coef)
        return Point(
            coef,
            point.linear + length * (goal.linear - point.linear),
            point.intercept + length * (goal.intercept - point.intercept),
            self.norm(coef),
        )

    def apply(self, coef: FloatArray) -> FloatArray:
        """Return Phi beta."""
        return self.problem.apply(coef)

    def norm(self, coef: FloatArray) -> float:
        """Return Omega(beta)."""
        return self.problem.hull.norm(self.problem.node_squares(coef))

    def objective(self, point: Point) -> float:
        """Return the exact objective."""
        loss = float(self.omega @ self.loss.value(self.y, point.f))
        return loss + 0.5 * self.lam * point.norm**2
