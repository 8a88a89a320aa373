"""The squared error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hikernel.engines.protocol import FloatArray
from hikernel.losses.dual_curve import QuadraticCurve
from hikernel.losses.loss import Loss, row_sums

__all__ = ["SquaredError"]


@dataclass(frozen=True)
class SquaredError(Loss):
    """loss(y, f) = (y - f)^2 / 2, with conjugate psi(b) = b^2 / 2 + b y.

    For residuals r with weighted sum zero, the dual objective at a multiple s of the dual point is
    s fit - (s^2/2) (residual + penalty), with fit = sum_i omega_i r_i y_i and
    residual = sum_i omega_i r_i^2.
    """

    name: ClassVar[str] = "squared_error"
    degree: ClassVar[int] = 2

    def value(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Return the loss of each row."""
        return row_sums(0.5 * (y - f) ** 2)

    def gradient(self, y: FloatArray, f: FloatArray, smoothing: float = 0.0) -> FloatArray:
        """Return f - y."""
        return f - y

    def curvature(self, y: FloatArray, f: FloatArray, smoothing: float = 0.0) -> FloatArray:
        """Return one."""
        return np.ones_like(f)

    def conjugate(self, y: FloatArray, b: FloatArray) -> FloatArray:
        """Return b^2 / 2 + b y."""
        return row_sums(0.5 * b**2 + b * y)

    def intercept(
        self,
        y: FloatArray,
        f: FloatArray,
        weights: FloatArray,
        smoothing: float = 0.0,
        start: FloatArray | float = 0.0,
    ) -> FloatArray:
        """Return the weighted mean of y - f."""
        return np.asarray(weights @ (y - f))

    def residuals(
        self, y: FloatArray, f: FloatArray, weights: FloatArray, smoothing: float = 0.0
    ) -> FloatArray:
        """Return y - f minus its weighted mean."""
        r = y - f
        return np.asarray(r - weights @ r)

    def dual_curve(self, y: FloatArray, r: FloatArray, weights: FloatArray) -> QuadraticCurve:
        """Return the curve in closed form."""
        weighted = (weights * r.T).T
        # Centring y leaves fit unchanged, since r has weighted sum zero, and avoids the rounding
        # error of a large mean.
        return QuadraticCurve(
            fit=float(np.sum(weighted * (y - weights @ y))), residual=float(np.sum(weighted * r))
        )
