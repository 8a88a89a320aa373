"""The best constant that is added to f in one output: Newton's method, safeguarded by bisection."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hikernel.engines.protocol import FloatArray

if TYPE_CHECKING:
    from hikernel.losses.loss import Loss

__all__ = ["best_constant"]

_STEPS = 400
_SLOPE = 1e-15
"""A slope of at most this share of the mean magnitude of the gradients is rounding."""
_WIDTH = 4e-16
"""A step or a bracket of at most this share of the constant is rounding."""
_FIRST_STRIDE = 4.0
"""Longest first step to a side on which no bound is known yet; it grows fourfold."""


def best_constant(
    loss: Loss, y: FloatArray, f: FloatArray, weights: FloatArray, smoothing: float, start: float
) -> float:
    """Return the constant that a one-output loss is best with, by Newton's method and bisection.

    The slope increases in the constant, so that every point gives a bound on one side. Newton's
    step is taken if it stays between the bounds, and if the slope has halved or the last step was
    none of Newton's. Otherwise the bracket is bisected, or looked for at growing strides.
    """
    low, high, b = -np.inf, np.inf, start
    last, stride = np.inf, _FIRST_STRIDE
    for _ in range(_STEPS):
        gradient = loss.gradient(y, f + b, smoothing)
        slope = float(weights @ gradient)
        if abs(slope) <= _SLOPE * float(weights @ np.abs(gradient)):
            break
        low, high = (low, b) if slope > 0.0 else (b, high)
        known = np.isfinite(high - low)
        if known and high - low <= _WIDTH * max(abs(low), abs(high)):
            break
        curve = float(weights @ loss.curvature(y, f + b, smoothing))
        move = -slope / curve if curve > 0.0 else -np.copysign(np.inf, slope)
        if abs(move) <= _WIDTH * abs(b):
            break
        newton = low < b + move < high and abs(slope) <= 0.5 * last
        last = abs(slope) if newton else np.inf
        if known and not newton:
            b = 0.5 * (low + high)
        elif known:
            b += move
        else:
            b += float(np.clip(move if newton else np.copysign(stride, move), -stride, stride))
            stride = min(4.0 * stride, 1e300)
    return b
