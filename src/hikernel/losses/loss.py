"""The base class of losses, as functions of the target y and the prediction f, and the dual.

All arrays have shape (n,), or (n, k) for models with k outputs. With weights omega that sum to one,
the problem is min sum_i omega_i loss(y_i, f_i) + (lambda/2) Omega^2. For residuals r with weighted
sum zero and alpha_i = omega_i r_i / lambda, the dual objective is

    D(alpha) = -sum_i omega_i psi_i(-r_i) - (lambda/2) Omega*(alpha)^2,

where psi is the conjugate of the loss. -r is a (sub)gradient of the loss at a prediction f.

A loss with kinks is smoothed by ``smoothing`` > 0 for the solver. ``value`` and ``conjugate`` are
never smoothed, so duality gaps refer to the original problem. Every loss here has minimum zero, so
zero is a valid dual bound. The domain of -r is always convex and contains zero, so shrinking a
residual keeps it feasible.

For multiples s >= 0 of a dual point, D(s alpha) = C(s) - (s^2/2) penalty, where C is concave and
depends only on the loss, and penalty = lambda Omega*(alpha)^2. Every s gives a valid lower bound;
a ``DualCurve`` picks a good one.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from hikernel.engines.protocol import FloatArray

__all__ = [
    "DualCurve",
    "Loss",
    "QuadraticCurve",
    "SampledCurve",
    "balanced",
    "make_loss",
    "row_sums",
]

_NEWTON_STEPS = 200

_BELOW = np.concatenate([1.0 - np.geomspace(1e-4, 1.0, 17), [1.0]])
_ABOVE = 1.0 + np.geomspace(1e-4, 1.0, 9)
"""Multiples s at which C(s) is evaluated for a loss without a closed form."""


class DualCurve(Protocol):
    """C(s), with the two queries that duality gaps and searches need."""

    def value(self, penalty: float) -> float:
        """Return the largest D(s alpha) found over s; at least zero, the value at s = 0."""
        ...

    def penalty_for(self, value: float) -> float:
        """Return the largest penalty for which ``value(penalty)`` is still at least ``value``."""
        ...


@dataclass(frozen=True)
class QuadraticCurve:
    """C(s) = s fit - (s^2/2) residual, for the squared error; the best s has a closed form."""

    fit: float
    residual: float

    def value(self, penalty: float) -> float:
        """Return fit^2 / (2 (residual + penalty))."""
        curvature = self.residual + penalty
        if self.fit <= 0.0 or not math.isfinite(curvature) or curvature <= 0.0:
            return 0.0
        return 0.5 * self.fit * (self.fit / curvature)

    def penalty_for(self, value: float) -> float:
        """Return the penalty at which the best value is ``value``."""
        if value <= 0.0:
            return math.inf
        if self.fit <= 0.0:
            return -math.inf
        return 0.5 * self.fit * (self.fit / value) - self.residual


@dataclass(frozen=True)
class SampledCurve:
    """C at sampled multiples s, dense around s = 1, where the best s lies near a solution.

    Attributes
    ----------
    multiples, heights : ndarray of shape (n_multiples,)
        The sampled s > 0 and the values C(s), all finite.
    """

    multiples: FloatArray
    heights: FloatArray

    @classmethod
    def of(cls, curve: Callable[[float], float]) -> SampledCurve:
        """Sample a concave function C(s) that is finite at least for s between 0 and 1."""
        chosen = []
        for s in [*_BELOW[_BELOW > 0.0], *_ABOVE]:
            height = curve(float(s))
            if s > 1.0 and not math.isfinite(height):
                break  # outside the domain, as are all larger s
            chosen.append((float(s), height))
        multiples, heights = np.array(chosen).T
        finite = np.isfinite(heights)
        return cls(multiples[finite], heights[finite])

    def value(self, penalty: float) -> float:
        """Return the best value over the sampled multiples."""
        if not math.isfinite(penalty):
            return 0.0
        values = self.heights - 0.5 * penalty * self.multiples**2
        return max(0.0, float(np.max(values, initial=0.0)))

    def penalty_for(self, value: float) -> float:
        """Return the largest penalty at which some multiple reaches ``value``."""
        if value <= 0.0:
            return math.inf
        return float(np.max(2.0 * (self.heights - value) / self.multiples**2, initial=-np.inf))


class Loss(ABC):
    """A convex loss.

    Attributes
    ----------
    name : str
        Name for the parameter ``loss`` of the estimators.
    smooth : bool
        Whether the derivative is continuous. If not, ``smoothing`` must be positive.
    degree : int
        Degree of homogeneity: loss(c y, c f) = c^degree loss(y, f), where parameters in units of y
        scale with c too. 0 for losses whose y has no free scale (labels, counts).
    shift_invariant : bool
        Whether adding the same number to all outputs of a row leaves the loss unchanged.
    """

    name: ClassVar[str]
    smooth: ClassVar[bool] = True
    degree: ClassVar[int] = 0
    shift_invariant: ClassVar[bool] = False

    @abstractmethod
    def value(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Return the loss of each row, shape (n,)."""

    @abstractmethod
    def gradient(self, y: FloatArray, f: FloatArray, smoothing: float = 0.0) -> FloatArray:
        """Return the derivative of the smoothed loss with respect to f, in the shape of f."""

    @abstractmethod
    def curvature(self, y: FloatArray, f: FloatArray, smoothing: float = 0.0) -> FloatArray:
        """Return the second derivative of the smoothed loss in each output, in the shape of f.

        If the outputs of a row interact, return instead the diagonal of a diagonal matrix that
        bounds the Hessian of the row from above.
        """

    def hessian(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Return the Hessian of a smooth loss in the outputs of each row, shape (n, k, k)."""
        curvature = self.curvature(y, f)
        return curvature[:, :, None] * np.eye(f.shape[1])

    @abstractmethod
    def conjugate(self, y: FloatArray, b: FloatArray) -> FloatArray:
        """Return psi(b) = max over f of <b, f> - loss(y, f), shape (n,).

        It is infinite where b is outside the domain of psi.
        """

    def plus_parts(self, y: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return slope, c and d with loss = slope f + sum_j max(c_j f + d_j, 0) + constant.

        Only for losses with kinks. ``slope`` has the shape of y; ``c`` and ``d`` stack one array of
        that shape per part j.
        """
        raise NotImplementedError(f"{self.name} is smooth.")

    def check_target(self, y: FloatArray) -> None:
        """Raise a ValueError that says what is wrong if y is outside the loss's domain."""
        return

    def predict_mean(self, f: FloatArray) -> FloatArray:
        """Return the prediction of a regression model in units of y, given its output f."""
        return f

    def intercept(
        self,
        y: FloatArray,
        f: FloatArray,
        weights: FloatArray,
        smoothing: float = 0.0,
        start: FloatArray | float = 0.0,
    ) -> FloatArray:
        """Return b that minimises sum_i weights_i loss(y_i, f_i + b): 0-d, or of shape (k,).

        Each output is solved separately, by Newton's method safeguarded by bisection.
        """
        if f.ndim == 1:
            return np.asarray(self._one_intercept(y, f, weights, smoothing, float(start)))
        first = np.broadcast_to(np.asarray(start, dtype=float), f.shape[1:])
        return np.array(
            [
                self._one_intercept(y[:, k], f[:, k], weights, smoothing, float(first[k]))
                for k in range(f.shape[1])
            ]
        )

    def _one_intercept(
        self, y: FloatArray, f: FloatArray, weights: FloatArray, smoothing: float, start: float
    ) -> float:
        def slope(b: float) -> float:
            return float(weights @ self.gradient(y, f + b, smoothing))

        low, high = _bracket(slope, start)
        b = min(max(start, low), high)
        halved = True
        for _ in range(_NEWTON_STEPS):
            gradient = self.gradient(y, f + b, smoothing)
            slope_here = float(weights @ gradient)
            if abs(slope_here) <= 1e-16 * float(weights @ np.abs(gradient)):
                break
            width = high - low
            low, high = (low, b) if slope_here > 0.0 else (b, high)
            if high - low <= 4e-16 * max(abs(low), abs(high)):
                break
            curve = float(weights @ self.curvature(y, f + b, smoothing))
            step = b - slope_here / curve if curve > 0.0 else np.inf
            # Take Newton's step if it stays inside the bracket, and if the bracket has just halved
            # or the last step was a bisection. Otherwise bisect.
            newton = low < step < high and (high - low < 0.5 * width or halved)
            halved = not newton
            b = step if newton else 0.5 * (low + high)
        return b

    def residuals(
        self, y: FloatArray, f: FloatArray, weights: FloatArray, smoothing: float = 0.0
    ) -> FloatArray:
        """Return r = -gradient, adjusted to weighted sum zero, with -r in the domain of psi.

        f must include the optimal intercept. The weighted sum of -gradient is then zero up to
        rounding or the tolerance of a solver; the rest is removed by ``balanced``.
        """
        return balanced(-self.gradient(y, f, smoothing), weights)

    def dual_curve(self, y: FloatArray, r: FloatArray, weights: FloatArray) -> DualCurve:
        """Return C(s) = -sum_i weights_i psi_i(-s r_i) as a curve in s."""
        return SampledCurve.of(lambda s: -float(weights @ self.conjugate(y, -s * r)))


def balanced(r: FloatArray, weights: FloatArray) -> FloatArray:
    """Return residuals with weighted sum zero in every output.

    In each output, the residuals of the sign with the larger weighted sum are shrunk.

    >>> balanced(np.array([1.0, 1.0, -1.0]), np.full(3, 1 / 3))
    array([ 0.5,  0.5, -1. ])
    """
    up = weights @ np.maximum(r, 0.0)
    down = weights @ np.maximum(-r, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        shrink_up = np.where(up > down, down / up, 1.0)
        shrink_down = np.where(down > up, up / down, 1.0)
    return np.asarray(np.where(r > 0.0, shrink_up, shrink_down) * r)


def _bracket(slope: Callable[[float], float], start: float) -> tuple[float, float]:
    """Return an interval around ``start`` over which an increasing function changes sign."""
    low, high, step = start, start, 1.0
    while slope(low) > 0.0 and step < 1e300:
        high, low, step = low, low - step, 2.0 * step
    step = 1.0
    while slope(high) < 0.0 and step < 1e300:
        low, high, step = high, high + step, 2.0 * step
    return low, high


def row_sums(x: FloatArray) -> FloatArray:
    """Return the sum over the outputs, shape (n,).

    >>> row_sums(np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([3., 7.])
    """
    return x if x.ndim == 1 else np.asarray(np.sum(x, axis=1))


def make_loss(spec: object, choices: dict[str, type[Loss]]) -> Loss:
    """Return the loss that ``spec`` names, or ``spec`` itself if it is a loss.

    Parameters
    ----------
    spec : str or Loss
        A key of ``choices``, or an object of one of its classes.
    choices : dict
        ``REGRESSION`` or ``CLASSIFICATION``.

    Examples
    --------
    >>> from hikernel.losses import REGRESSION
    >>> make_loss("quantile", REGRESSION)
    Quantile(level=0.5)
    """
    if isinstance(spec, Loss) and type(spec) in choices.values():
        return spec
    if isinstance(spec, str) and spec in choices:
        return choices[spec]()
    listed = ", ".join(repr(name) for name in choices)
    example = next(iter(choices.values())).__name__
    raise ValueError(
        f"loss must be one of {listed}, or an object of their classes such as "
        f"hikernel.losses.{example}(); got {spec!r}."
    )
