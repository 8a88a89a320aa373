"""Losses that grow linearly in the residual y - f: Huber, quantile, epsilon-insensitive."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import ClassVar

import numpy as np

from hikernel.engines.protocol import FloatArray
from hikernel.losses.loss import Loss, row_sums
from hikernel.losses.plus import plus_curvature, plus_slope

__all__ = ["EpsilonInsensitive", "Huber", "Quantile"]


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


@dataclass(frozen=True)
class Huber(Loss):
    """r^2 / 2 for r = y - f, |r| <= delta, else linear; psi(b) = b^2 / 2 + b y for |b| <= delta.

    Parameters
    ----------
    delta : float, default=0.5
        Residual size above which the loss is linear. The estimators take it in units of the spread
        of y: its interquartile range over 1.349, which is the standard deviation of normal data.
    """

    delta: float = 0.5

    name: ClassVar[str] = "huber"
    degree: ClassVar[int] = 2

    def __post_init__(self) -> None:
        if not _is_number(self.delta) or not 0.0 < self.delta < np.inf:
            raise ValueError(f"delta of the Huber loss must be positive, got {self.delta!r}.")

    def value(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Return the loss of each row."""
        r = np.abs(y - f)
        inner = np.minimum(r, self.delta)
        return row_sums(inner * (r - 0.5 * inner))

    def gradient(self, y: FloatArray, f: FloatArray, smoothing: float = 0.0) -> FloatArray:
        """Return f - y, clipped to [-delta, delta]."""
        return np.clip(f - y, -self.delta, self.delta)

    def curvature(self, y: FloatArray, f: FloatArray, smoothing: float = 0.0) -> FloatArray:
        """Return one where |y - f| <= delta, zero elsewhere."""
        return np.asarray(np.where(np.abs(y - f) <= self.delta, 1.0, 0.0))

    def conjugate(self, y: FloatArray, b: FloatArray) -> FloatArray:
        """Return b^2 / 2 + b y."""
        return row_sums(np.where(np.abs(b) <= self.delta, 0.5 * b**2 + b * y, np.inf))


@dataclass(frozen=True)
class Quantile(Loss):
    """level r for r = y - f >= 0, else (level - 1) r; psi(b) = b y for -level <= b <= 1 - level.

    Parameters
    ----------
    level : float, default=0.5
        The quantile to predict, between 0 and 1.
    """

    level: float = 0.5

    name: ClassVar[str] = "quantile"
    smooth: ClassVar[bool] = False
    degree: ClassVar[int] = 1

    def __post_init__(self) -> None:
        if not _is_number(self.level) or not 0.0 < self.level < 1.0:
            raise ValueError(
                f"level of the quantile loss must be between 0 and 1, got {self.level!r}."
            )

    def value(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Return the loss of each row."""
        r = y - f
        return row_sums(self.level * r + np.maximum(-r, 0.0))

    def gradient(self, y: FloatArray, f: FloatArray, smoothing: float = 0.0) -> FloatArray:
        """Return the derivative of the smoothed loss, in (-level, 1 - level)."""
        return plus_slope(f - y, smoothing) - self.level

    def curvature(self, y: FloatArray, f: FloatArray, smoothing: float = 0.0) -> FloatArray:
        """Return the second derivative of the smoothed loss."""
        return plus_curvature(f - y, smoothing)

    def plus_parts(self, y: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return slope, c and d for -level f + max(f - y, 0)."""
        return np.full_like(y, -self.level), np.ones_like(y[None]), -y[None]

    def conjugate(self, y: FloatArray, b: FloatArray) -> FloatArray:
        """Return b y."""
        inside = (b >= -self.level) & (b <= 1.0 - self.level)
        return row_sums(np.where(inside, b * y, np.inf))


@dataclass(frozen=True)
class EpsilonInsensitive(Loss):
    """max(|y - f| - epsilon, 0); psi(b) = b y + epsilon |b| for |b| <= 1.

    Parameters
    ----------
    epsilon : float, default=0.1
        Residuals up to this size have zero loss. The estimators take it in units of the spread of
        y: its interquartile range over 1.349.
    """

    epsilon: float = 0.1

    name: ClassVar[str] = "epsilon_insensitive"
    smooth: ClassVar[bool] = False
    degree: ClassVar[int] = 1

    def __post_init__(self) -> None:
        if not _is_number(self.epsilon) or not 0.0 <= self.epsilon < np.inf:
            raise ValueError(
                "epsilon of the epsilon-insensitive loss must be zero or positive, "
                f"got {self.epsilon!r}."
            )

    def value(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Return the loss of each row."""
        return row_sums(np.maximum(np.abs(y - f) - self.epsilon, 0.0))

    def gradient(self, y: FloatArray, f: FloatArray, smoothing: float = 0.0) -> FloatArray:
        """Return the derivative of the smoothed loss, in (-1, 1)."""
        above, below = f - y - self.epsilon, y - f - self.epsilon
        return plus_slope(above, smoothing) - plus_slope(below, smoothing)

    def curvature(self, y: FloatArray, f: FloatArray, smoothing: float = 0.0) -> FloatArray:
        """Return the second derivative of the smoothed loss."""
        above, below = f - y - self.epsilon, y - f - self.epsilon
        return plus_curvature(above, smoothing) + plus_curvature(below, smoothing)

    def plus_parts(self, y: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return slope, c and d for max(f - y - epsilon, 0) + max(y - f - epsilon, 0)."""
        c = np.stack([np.ones_like(y), -np.ones_like(y)])
        return np.zeros_like(y), c, np.stack([-y, y]) - self.epsilon

    def conjugate(self, y: FloatArray, b: FloatArray) -> FloatArray:
        """Return b y + epsilon |b|."""
        return row_sums(np.where(np.abs(b) <= 1.0, b * y + self.epsilon * np.abs(b), np.inf))
