"""Smooth losses: quadratic models with a line search on the true objective.

Every accepted step decreases the objective, up to rounding. Near the solution full steps are taken
and converge quadratically.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hikernel.engines.machine import check_time
from hikernel.engines.numerics import backtrack
from hikernel.reduced.loss_solve import LossSolve, Point
from hikernel.reduced.solution import ReducedSolution, Status, WarmStart

if TYPE_CHECKING:
    from hikernel.reduced.problem import ReducedProblem

__all__ = ["Descent"]

_MAX_STEPS = 100
_PATIENCE = 8
"""Steps without a smaller gap after which the solve stops: rounding is then the likely limit."""
_LEAST_PRECISION = 1e-6
_ROUNDING = 1e-15
"""Rounding error of the objective, relative. Near the optimum the objective is flat and says no
more where to go, while the gap, which falls like the distance, is still far above rounding; so
steps are taken that change the objective by no more than this."""


class Descent(LossSolve):
    """One solve with a smooth loss; parameters are those of ``LossSolve``."""

    def __init__(
        self, problem: ReducedProblem, lam: float, tol: float, warm: WarmStart | None
    ) -> None:
        super().__init__(problem, lam, tol, warm)
        self._point = self.first_point(warm, 0.0)

    def run(self) -> ReducedSolution:
        """Take steps until the gap is small enough, and return the best point found."""
        last_gap, precision = np.inf, 1.0
        for self.steps in range(1, _MAX_STEPS + 1):
            check_time()
            objective = self.objective(self._point)
            wanted = max(0.3 * self.tol * objective, 0.03 * min(last_gap, objective))
            gradient, curvature = self._model()
            goal, dual_norm = self.model_solution(
                self._point, gradient, curvature, precision * wanted
            )
            moved = self._line_search(goal)
            if moved is None:
                # Either the model was solved too inaccurately to give a descent direction, or
                # rounding is the limit.
                precision *= 0.1
            else:
                self._point = self.with_intercept(moved.coef, moved.linear, moved.intercept, 0.0)
            residuals = self.loss.residuals(self.y, self._point.f, self.omega)
            gap = self.note(self._point, residuals, dual_norm)
            last_gap = gap.value
            if self.is_enough(gap):
                return self.solution(Status.CONVERGED)
            if self.since_best > _PATIENCE or precision < _LEAST_PRECISION:
                return self.solution(Status.STALLED)
        return self.solution(Status.ITERATIONS)

    def _model(self) -> tuple[np.ndarray, np.ndarray]:
        """Return gradient and curvature at the current point; the curvature is kept positive."""
        gradient = self.loss.gradient(self.y, self._point.f)
        curvature = self.loss.curvature(self.y, self._point.f)
        least = self.least_curvature(gradient, curvature)
        return gradient, np.maximum(np.maximum(curvature, least), np.finfo(float).tiny)

    def _line_search(self, goal: Point) -> Point | None:
        """Return a point between the current one and the goal with a lower objective, or None."""
        point = self._point
        gradient = self.loss.gradient(self.y, point.f)
        slope = float(np.sum(self.omega @ (gradient * (goal.f - point.f))))
        slope += 0.5 * self.lam * (goal.norm**2 - point.norm**2)
        before = self.objective(point)
        slack = _ROUNDING * abs(before)
        if slope >= slack:
            return None
        found = backtrack(
            lambda length: self.mix(point, goal, length),
            self.objective,
            before,
            min(slope, 0.0),
            slack=slack,
        )
        return None if found is None else found[0]
