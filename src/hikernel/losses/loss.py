"""What a loss is: a pure object of the target y and the prediction f; and its dual objective.

All arrays are of shape (n,), or (n, k) for models with k outputs. With weights omega of sum one the
problem is min sum_i omega_i loss(y_i, f_i) + (lambda/2) Omega^2, and its dual, at residuals r of
weighted sum zero and alpha_i = omega_i r_i / lambda,

    D(alpha) = -sum_i omega_i psi_i(-r_i) - (lambda/2) Omega*(alpha)^2,

psi the conjugate. -r is a (sub)gradient of the loss. A loss with kinks is smoothed by ``smoothing``
> 0 for the solver; ``value`` and ``conjugate`` are always exact, so that gaps are about the true
problem. Every loss here has minimum zero, so that zero is a valid dual bound, and every domain of
-r is convex and contains zero, so that shrinking a residual keeps it feasible.

Along multiples s >= 0 of a dual point, D(s alpha) = C(s) - (s^2/2) penalty with a concave C that
depends on the loss alone and penalty = lambda Omega*(alpha)^2. Any s gives a valid bound; a
``DualCurve`` picks a good one.
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
"""Multiples of a dual point at which a loss without a closed form is looked at."""


class DualCurve(Protocol):
    """C(s), with the two questions that gaps and searches ask."""

    def value(self, penalty: float) -> float:
        """Return the largest D(s alpha) found; never below zero, the value at s = 0."""
        ...

    def penalty_for(self, value: float) -> float:
        """Return the largest penalty at which ``value(penalty)`` is still ``value``."""
        ...


@dataclass(frozen=True)
class QuadraticCurve:
    """C(s) = s fit - (s^2/2) residual, the squared error: the best s in closed form."""

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
        return 0.5 * self.fit * (self.fit / value) - self.residual


@dataclass(frozen=True)
class SampledCurve:
    """C at some multiples, dense around one, where the best one is near a solution.

    Attributes
    ----------
    multiples, heights : ndarray of shape (n_multiples,)
        s > 0 and C(s), finite.
    """

    multiples: FloatArray
    heights: FloatArray

    @classmethod
    def of(cls, curve: Callable[[float], float]) -> SampledCurve:
        """Sample a concave function that is finite between 0 and 1 at least."""
        chosen = []
        for s in [*_BELOW[_BELOW > 0.0], *_ABOVE]:
            height = curve(float(s))
            if s > 1.0 and not math.isfinite(height):
                break  # outside the domain, and so is all beyond
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
        Its name in ``loss=``.
    smooth : bool
        Whether the derivative is continuous; otherwise ``smoothing`` must be positive.
    degree : int
        loss(c y, c f) = c^degree loss(y, f) for losses whose y has a scale, otherwise 0.
    shift_invariant : bool
        Whether adding the same number to all outputs changes nothing.
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
        """Return the derivative of the smoothed loss in f, of the shape of f."""

    @abstractmethod
    def curvature(self, y: FloatArray, f: FloatArray, smoothing: float = 0.0) -> FloatArray:
        """Return the second derivative of the smoothed loss in each output, of the shape of f.

        Where the outputs of a row interact, a diagonal matrix that is no smaller.
        """

    def hessian(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Return the second derivative of a smooth loss in all outputs, shape (n, k, k)."""
        curvature = self.curvature(y, f)
        return curvature[:, :, None] * np.eye(f.shape[1])

    @abstractmethod
    def conjugate(self, y: FloatArray, b: FloatArray) -> FloatArray:
        """Return psi(b) = max over f of <b, f> - loss(y, f), shape (n,); infinity outside."""

    def plus_parts(self, y: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return slope, c and d with loss = slope f + sum_j max(c_j f + d_j, 0) + constant.

        For losses with kinks. ``slope`` has the shape of y, c and d one such array per part.
        """
        raise NotImplementedError(f"{self.name} is smooth.")

    def check_target(self, y: FloatArray) -> None:
        """Raise a ValueError that says what is wrong if y is outside the loss's domain."""
        return

    def predict_mean(self, f: FloatArray) -> FloatArray:
        """Return what a regression model predicts in units of y."""
        return f

    def intercept(
        self,
        y: FloatArray,
        f: FloatArray,
        weights: FloatArray,
        smoothing: float = 0.0,
        start: FloatArray | float = 0.0,
    ) -> FloatArray:
        """Return b that minimises sum weights_i loss(y_i, f_i + b): 0-d, or of shape (k,).

        Newton's method with bisection where it leaves the bracket; one output at a time.
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
            # Newton's step, but where it does not shorten the bracket, its middle.
            newton = low < step < high and (high - low < 0.5 * width or halved)
            halved = not newton
            b = step if newton else 0.5 * (low + high)
        return b

    def residuals(
        self, y: FloatArray, f: FloatArray, weights: FloatArray, smoothing: float = 0.0
    ) -> FloatArray:
        """Return the dual point: r = -gradient, of weighted sum zero, -r in the domain of psi.

        f must include the best intercept, so that only rounding (or a solver's tolerance) is
        left to remove: the residuals of the heavier sign shrink.
        """
        return balanced(-self.gradient(y, f, smoothing), weights)

    def dual_curve(self, y: FloatArray, r: FloatArray, weights: FloatArray) -> DualCurve:
        """Return -sum weights_i psi_i(-s r_i) as a function of s."""
        return SampledCurve.of(lambda s: -float(weights @ self.conjugate(y, -s * r)))


def balanced(r: FloatArray, weights: FloatArray) -> FloatArray:
    """Return residuals of weighted sum zero in every output: those of the heavier sign shrink.

    >>> balanced(np.array([1.0, 1.0, -1.0]), np.full(3, 1 / 3))
    array([ 0.5,  0.5, -1. ])
    """
    up = weights @ np.maximum(r, 0.0)
    down = weights @ np.maximum(-r, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        shrink_up = np.where(up > down, down / up, 1.0)
        shrink_down = np.where(down > up, up / down, 1.0)
    return np.asarray(np.where(r > 0.0, shrink_up, shrink_down) * r)


def _bracket(slope: object, start: float) -> tuple[float, float]:
    """Return an interval around ``start`` over which an increasing function changes sign."""
    assert callable(slope)
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
    """Return a loss from its name or itself.

    Parameters
    ----------
    spec : str or Loss
        A name of ``choices``, or an object of one of its classes.
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
