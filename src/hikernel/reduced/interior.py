"""Losses with kinks: a primal-dual interior-point method along the central path.

Such a loss is slope f + sum_j max(t_j, 0) with t_j = c_j f + d_j, and max(t, 0) is the value of

    min v  subject to  v - u = t,  u, v >= 0,   with multiplier a in [0, 1]:  a u = (1 - a) v = 0.

On the central path a u = (1 - a) v = s. A Newton step for these equations gives every plus part a
quadratic model of curvature 1 / (u/a + v/(1 - a)). The reduced solver minimises the sum of these
models. s is lowered in proportion to the mean complementarity. Smoothing max(t, 0) with parameter s
follows the same path, but Newton's method in f alone then converges only in a neighbourhood of
width s.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hikernel.engines.machine import check_time
from hikernel.engines.protocol import FloatArray
from hikernel.losses import balanced
from hikernel.losses.plus import plus_slope
from hikernel.reduced.loss_solve import LossSolve
from hikernel.reduced.solution import ReducedSolution, Status, WarmStart

if TYPE_CHECKING:
    from hikernel.reduced.problem import ReducedProblem

__all__ = ["InteriorPoint"]

_MAX_STEPS = 100
_FIRST_SHARES = (0.1, 0.01, 0.5)
"""First values of s, relative to the starting loss per output; each is tried if the last failed."""
_EXACT = 1e-12
"""Smoothing so small that the intercept computed with it is exact for all practical purposes."""
_TO_BOUNDARY = 0.99
_PATIENCE = 15
_CENTRING = ((0.9, 0.1), (0.5, 0.3), (0.1, 0.7), (-1.0, 2.0))
"""Pairs (least step length, factor): the next s is factor times the mean complementarity, with the
first pair whose least length the step exceeds. The shorter the step, the less s falls. After a very
short step s rises, which leads back to the central path."""
_PROGRESS = 0.7
"""Ratio of a gap to the previous one above which the models are solved more precisely."""
_LEAST_PRECISION = 1e-8
_SHARE = 0.15
"""Share of the tolerance that the smoothing s may use up."""


@dataclass(frozen=True)
class _Slacks:
    """a, u and v of every plus part, row and output: shape (parts, n) or (parts, n, k)."""

    a: FloatArray
    u: FloatArray
    v: FloatArray

    def complementarity(self, omega: FloatArray) -> float:
        """Return the weighted mean of a u and (1 - a) v."""
        products = 0.5 * (self.a * self.u + (1.0 - self.a) * self.v)
        return float(np.mean(np.tensordot(products, omega, (1, 0))))

    def curvature(self) -> FloatArray:
        """Return the curvature 1 / (u/a + v/(1 - a)) of each part."""
        return 1.0 / (self.u / self.a + self.v / (1.0 - self.a))

    def moved(self, change: _Slacks, primal: float, dual: float) -> _Slacks:
        """Return the slacks after a step of length ``dual`` in a and ``primal`` in u and v."""
        return _Slacks(
            self.a + dual * change.a, self.u + primal * change.u, self.v + primal * change.v
        )


class InteriorPoint(LossSolve):
    """One solve with a loss that has kinks; parameters are those of ``LossSolve``."""

    def __init__(
        self, problem: ReducedProblem, lam: float, tol: float, warm: WarmStart | None
    ) -> None:
        super().__init__(problem, lam, tol, warm)
        self._slope, self._c, self._d = self.loss.plus_parts(self.y)
        self._exact_start = self.first_point(warm, _EXACT)
        self._first_eta = self.eta

    def run(self) -> ReducedSolution:
        """Follow the central path from each first s in turn until one run converges."""
        for share in _FIRST_SHARES:
            if self._follow(share):
                return self.solution(Status.CONVERGED)
        return self.solution(Status.OFF_CENTRE)

    def _start(self, share: float) -> None:
        """Set the first s from ``share``, and put the slacks on the central path for it."""
        start = self._exact_start
        loss = float(self.omega @ self.loss.value(self.y, start.f))
        outputs = int(np.prod(self.outputs, dtype=int))
        s = self._smoothing = max(share * loss / outputs, self._least(self.objective(start)))
        self._point = self.with_intercept(start.coef, start.linear, start.intercept, s)
        t = self._c * self._point.f + self._d
        a, rest = plus_slope(t, s), plus_slope(-t, s)
        self._slacks = _Slacks(a, s / a, s / rest)
        self.eta = self._first_eta
        self.since_best = 0

    def _follow(self, share: float) -> bool:
        """Take steps until the gap is small enough; return whether the tolerance was met."""
        self._start(share)
        last_gap, precision = np.inf, 0.03
        for _ in range(_MAX_STEPS):
            check_time()
            self.steps += 1
            slacks, f = self._slacks, self._point.f
            objective = self.objective(self._point)
            part_curvature = slacks.curvature()
            # aim: the multiplier after the step if f did not change. part_curvature: its
            # derivative with respect to t.
            aim = slacks.a + part_curvature * self._pull(self._c * f + self._d)
            gradient = self._slope + np.sum(self._c * aim, axis=0)
            curvature = np.sum(self._c**2 * part_curvature, axis=0)
            goal, dual_norm = self.model_solution(
                self._point, gradient, curvature, precision * min(last_gap, objective)
            )
            length = self._move(goal.f, part_curvature)
            self._point = self.mix(self._point, goal, length)
            exact = self.with_intercept(
                self._point.coef, self._point.linear, self._point.intercept, _EXACT
            )
            r = -(self._slope + np.sum(self._c * self._slacks.a, axis=0))
            gap = self.note(exact, balanced(r, self.omega), dual_norm)
            if gap.value > _PROGRESS * last_gap:
                precision = max(0.1 * precision, _LEAST_PRECISION)  # eta may be too inaccurate
            last_gap = gap.value
            if self.is_enough(gap):
                return True
            if self.since_best > _PATIENCE:
                return False
        return False

    def _pull(self, t: FloatArray) -> FloatArray:
        """Return t - s/(1 - a) + s/a, zero on the central path."""
        a, s = self._slacks.a, self._smoothing
        return np.asarray(t - s / (1.0 - a) + s / a)

    def _move(self, f: FloatArray, part_curvature: FloatArray) -> float:
        """Move the slacks towards the prediction f, update s, and return the primal length."""
        slacks, s = self._slacks, self._smoothing
        da = part_curvature * self._pull(self._c * f + self._d)
        change = _Slacks(
            da,
            (s - slacks.a * slacks.u - slacks.u * da) / slacks.a,
            (s - (1.0 - slacks.a) * slacks.v + slacks.v * da) / (1.0 - slacks.a),
        )
        primal = min(_length(slacks.u, change.u), _length(slacks.v, change.v))
        dual = min(_length(slacks.a, da), _length(1.0 - slacks.a, -da))
        self._slacks = slacks.moved(change, primal, dual)
        factor = next(f for least, f in _CENTRING if min(primal, dual) > least)
        mean = self._slacks.complementarity(self.omega)
        self._smoothing = max(factor * mean, self._least(self.objective(self._point)))
        return primal

    def _least(self, objective: float) -> float:
        """Return the s at which the smoothing uses up its share of the tolerance."""
        cost = len(self._c) * int(np.prod(self.outputs, dtype=int))
        return max(_SHARE * self.tol * objective / cost, 1e-14)


def _length(x: FloatArray, dx: FloatArray) -> float:
    """Return a step length, at most 1, that goes at most 99 % of the way to x + step dx = 0."""
    return float(min(1.0, _TO_BOUNDARY / max(float(np.max(-dx / x)), 1e-300)))
