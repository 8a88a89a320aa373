"""The squared error."""

from __future__ import annotations

import math
from dataclasses import dataclass

from hikernel.engines.protocol import FloatArray

__all__ = ["SquaredError"]


@dataclass(frozen=True)
class SquaredError:
    """loss(y, f) = (y - f)^2 / 2, conjugate psi(b) = b^2 / 2 + b y (all arrays of shape (n,)).

    The dual objective of section 1 at a multiple s of the dual point alpha_i = omega_i r_i / lambda
    of residuals r (weighted sum zero) is

        D(s alpha) = s fit - (s^2/2) (residual + penalty),
        fit = sum omega_i r_i y_i,  residual = sum omega_i r_i^2,  penalty = lambda Omega*(alpha)^2.
    """

    def value(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Return the loss of each row."""
        return 0.5 * (y - f) ** 2

    def gradient(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Return the derivative in f of each row."""
        return f - y

    def conjugate(self, y: FloatArray, b: FloatArray) -> FloatArray:
        """Return psi(b) = max over f of b f - loss(y, f) for each row."""
        return 0.5 * b**2 + b * y

    def best_dual_value(self, fit: float, residual: float, penalty: float) -> float:
        """Return max over s of D(s alpha) = fit^2 / (2 (residual + penalty)).

        Never below D(alpha), and never below zero, the value at s = 0.
        """
        curvature = residual + penalty
        if fit <= 0.0 or not math.isfinite(curvature) or curvature <= 0.0:
            return 0.0
        return 0.5 * fit * (fit / curvature)

    def penalty_for(self, fit: float, residual: float, value: float) -> float:
        """Return the largest penalty at which ``best_dual_value`` still reaches ``value``."""
        if value <= 0.0:
            return math.inf
        return 0.5 * fit * (fit / value) - residual
