"""What a loss is: a pure object of the target y and the prediction f.

All arrays are of shape (n,), or (n, k) for models with k outputs. With weights omega of sum one the
problem is min sum_i omega_i loss(y_i, f_i) + (lambda/2) Omega^2, and its dual, at residuals r of
weighted sum zero and alpha_i = omega_i r_i / lambda,

    D(alpha) = -sum_i omega_i psi_i(-r_i) - (lambda/2) Omega*(alpha)^2,

psi the conjugate. -r is a (sub)gradient of the loss. A loss with kinks is smoothed by ``smoothing``
> 0 for the solver; ``value`` and ``conjugate`` are always exact, so that gaps are about the true
problem. Every loss here has minimum zero, so that zero is a valid dual bound, and every domain of
-r is convex and contains zero, so that shrinking a residual keeps it feasible.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from hikernel.engines.protocol import FloatArray
from hikernel.losses.dual import DualCurve, SampledCurve

__all__ = ["Loss", "balanced", "row_sums"]

_NEWTON_STEPS = 200


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

    def smoothed_value(self, y: FloatArray, f: FloatArray, smoothing: float) -> FloatArray:
        """Return what ``gradient`` and ``curvature`` are derivatives of; never above ``value``."""
        return self.value(y, f)

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
