"""The function max(t, 0), smoothed by a logarithmic barrier on its slope.

max(t, 0) is the maximum of a t over 0 <= a <= 1. With s > 0,

    plus_s(t) = max over a of a t + s (log a + log(1 - a)),

is smooth. Its slope is the maximiser a in (0, 1), and max(t, 0) - a t <= s, so a dual point made of
these slopes loses at most s per max(t, 0) in the loss. Newton's method can follow plus_s down to
small s, like an interior-point method. The usual quadratic smoothing is harder to follow, because
its second derivative is zero outside a narrow band.
"""

from __future__ import annotations

import numpy as np

from hikernel.engines.protocol import FloatArray

__all__ = ["plus_curvature", "plus_slope"]


def _slopes(t: FloatArray, smoothing: float) -> tuple[FloatArray, FloatArray]:
    """Return the slope a and 1 - a, both to full relative accuracy."""
    u = np.abs(t) / (2.0 * smoothing)
    root = np.hypot(u, 1.0)
    small = 0.5 * (1.0 + 1.0 / (root + u)) / (root + 1.0)
    large = 1.0 - small
    return np.where(t > 0.0, large, small), np.where(t > 0.0, small, large)


def plus_slope(t: FloatArray, smoothing: float) -> FloatArray:
    """Return the slope a, the derivative of plus_s, where s is ``smoothing``.

    >>> plus_slope(np.array([-1.0, 0.0, 1.0]), 1e-9).round(6)
    array([0. , 0.5, 1. ])
    """
    return _slopes(t, smoothing)[0]


def plus_curvature(t: FloatArray, smoothing: float) -> FloatArray:
    """Return the second derivative of plus_s, where s is ``smoothing``."""
    a, rest = _slopes(t, smoothing)
    return np.asarray((a * rest) ** 2 / (smoothing * (a**2 + rest**2)))
