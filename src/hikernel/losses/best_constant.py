"""The best constant that is added to f in one output: Newton's method, safeguarded by bisection."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from hikernel.engines.protocol import FloatArray

if TYPE_CHECKING:
    from hikernel.losses.loss import Loss

__all__ = ["best_constant"]

_NEWTON_STEPS = 200


def best_constant(
    loss: Loss, y: FloatArray, f: FloatArray, weights: FloatArray, smoothing: float, start: float
) -> float:
    """Return the constant that a one-output loss is best with, by Newton's method and bisection."""

    def slope(b: float) -> float:
        return float(weights @ loss.gradient(y, f + b, smoothing))

    low, high = _bracket(slope, start)
    b = min(max(start, low), high)
    halved = True
    for _ in range(_NEWTON_STEPS):
        gradient = loss.gradient(y, f + b, smoothing)
        slope_here = float(weights @ gradient)
        if abs(slope_here) <= 1e-16 * float(weights @ np.abs(gradient)):
            break
        width = high - low
        low, high = (low, b) if slope_here > 0.0 else (b, high)
        if high - low <= 4e-16 * max(abs(low), abs(high)):
            break
        curve = float(weights @ loss.curvature(y, f + b, smoothing))
        step = b - slope_here / curve if curve > 0.0 else np.inf
        # Take Newton's step if it stays inside the bracket, and if the bracket has just halved
        # or the last step was a bisection. Otherwise bisect.
        newton = low < step < high and (high - low < 0.5 * width or halved)
        halved = not newton
        b = step if newton else 0.5 * (low + high)
    return b


def _bracket(slope: Callable[[float], float], start: float) -> tuple[float, float]:
    """Return an interval around ``start`` over which an increasing function changes sign."""
    low, high, step = start, start, 1.0
    while slope(low) > 0.0 and step < 1e300:
        high, low, step = low, low - step, 2.0 * step
    step = 1.0
    while slope(high) < 0.0 and step < 1e300:
        low, high, step = high, high + step, 2.0 * step
    return low, high
