"""What the gradients of losses with kinks are derivatives of: their plus parts, smoothed."""

from __future__ import annotations

import numpy as np

from hikernel.losses.plus import plus_slope


def plus_value(t, smoothing):
    """max over 0 <= a <= 1 of a t + s (log a + log(1 - a)), at the slope that attains it."""
    a, rest = plus_slope(t, smoothing), plus_slope(-t, smoothing)
    return a * t + smoothing * (np.log(a) + np.log(rest))


def smoothed_value(loss, y, f, smoothing):
    """The loss of each row with its plus parts smoothed; a smooth loss as it is."""
    value = loss.value(y, f)
    if loss.smooth:
        return value
    _, c, d = loss.plus_parts(y)
    t = c * f + d
    lost = np.sum(np.maximum(t, 0.0) - plus_value(t, smoothing), axis=0)
    return value - (lost if lost.ndim == 1 else lost.sum(axis=1))
