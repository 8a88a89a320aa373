"""Losses of the margin y f with labels y in {-1, 1}: log loss, hinge, squared hinge.

With k outputs they are one-vs-rest: y has shape (n, k) with one entry 1 per row, and the loss of a
row is the sum over its outputs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import expit, xlogy

from hikernel.engines.protocol import FloatArray
from hikernel.losses.loss import Loss, row_sums
from hikernel.losses.plus import plus_curvature, plus_slope

__all__ = ["Hinge", "LogLoss", "SquaredHinge"]


class _MarginLoss(Loss):
    for_labels: ClassVar[bool] = True

    def check_target(self, y: FloatArray) -> None:
        """Raise unless all labels are -1 or 1 and both occur in every column of y."""
        if not np.all(np.abs(y) == 1.0):
            raise ValueError(f"{self.name} needs labels -1 and 1.")
        columns = y if y.ndim == 2 else y[:, None]
        if np.any(np.min(columns, axis=0) == np.max(columns, axis=0)):
            raise ValueError(f"{self.name} needs two classes, but y has one only.")


@dataclass(frozen=True)
class LogLoss(_MarginLoss):
    """loss(y, f) = log(1 + exp(-y f)); psi(b) = c log c + (1 - c) log(1 - c), c = -y b."""

    name: ClassVar[str] = "log_loss"

    def value(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Return the loss of each row."""
        return row_sums(np.logaddexp(0.0, -y * f))

    def gradient(self, y: FloatArray, f: FloatArray, smoothing: float = 0.0) -> FloatArray:
        """Return -y / (1 + exp(y f))."""
        return np.asarray(-y * expit(-y * f))

    def curvature(self, y: FloatArray, f: FloatArray, smoothing: float = 0.0) -> FloatArray:
        """Return p (1 - p), where p = 1 / (1 + exp(-f))."""
        return np.asarray(expit(f) * expit(-f))

    def conjugate(self, y: FloatArray, b: FloatArray) -> FloatArray:
        """Return c log c + (1 - c) log(1 - c), the negative entropy of c = -y b."""
        c = -y * b
        inside = (c >= 0.0) & (c <= 1.0)
        c = np.where(inside, c, 0.5)
        return row_sums(np.where(inside, xlogy(c, c) + xlogy(1.0 - c, 1.0 - c), np.inf))


@dataclass(frozen=True)
class Hinge(_MarginLoss):
    """loss(y, f) = max(1 - y f, 0); psi(b) = -c for c = -y b in [0, 1]."""

    name: ClassVar[str] = "hinge"
    smooth: ClassVar[bool] = False

    def value(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Return the loss of each row."""
        return row_sums(np.maximum(1.0 - y * f, 0.0))

    def gradient(self, y: FloatArray, f: FloatArray, smoothing: float = 0.0) -> FloatArray:
        """Return -y a, where a in (0, 1) is the slope of the smoothed max(t, 0) at t = 1 - y f."""
        return -y * plus_slope(1.0 - y * f, smoothing)

    def curvature(self, y: FloatArray, f: FloatArray, smoothing: float = 0.0) -> FloatArray:
        """Return the second derivative of the smoothed loss."""
        return plus_curvature(1.0 - y * f, smoothing)

    def plus_parts(self, y: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return slope, c and d for the only part, max(1 - y f, 0)."""
        return np.zeros_like(y), -y[None], np.ones_like(y[None])

    def conjugate(self, y: FloatArray, b: FloatArray) -> FloatArray:
        """Return -c, where c = -y b."""
        c = -y * b
        return row_sums(np.where((c >= 0.0) & (c <= 1.0), -c, np.inf))


@dataclass(frozen=True)
class SquaredHinge(_MarginLoss):
    """loss(y, f) = max(1 - y f, 0)^2 / 2; psi(b) = c^2 / 2 - c for c = -y b >= 0."""

    name: ClassVar[str] = "squared_hinge"
    is_likelihood: ClassVar[bool] = False

    def value(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Return the loss of each row."""
        return row_sums(0.5 * np.maximum(1.0 - y * f, 0.0) ** 2)

    def gradient(self, y: FloatArray, f: FloatArray, smoothing: float = 0.0) -> FloatArray:
        """Return -y max(1 - y f, 0)."""
        return -y * np.maximum(1.0 - y * f, 0.0)

    def curvature(self, y: FloatArray, f: FloatArray, smoothing: float = 0.0) -> FloatArray:
        """Return one where y f < 1, zero elsewhere."""
        return np.asarray(np.where(y * f < 1.0, 1.0, 0.0))

    def conjugate(self, y: FloatArray, b: FloatArray) -> FloatArray:
        """Return c^2 / 2 - c, where c = -y b."""
        c = -y * b
        return row_sums(np.where(c >= 0.0, 0.5 * c**2 - c, np.inf))
