"""The target of a training problem: its units, and what a constant leaves of it."""

from __future__ import annotations

import numpy as np

from hikernel.bases import Standardizer
from hikernel.engines.features import normalised
from hikernel.engines.machine import one_blas_thread
from hikernel.engines.protocol import FloatArray
from hikernel.losses import Loss, SquaredError

__all__ = ["null_residuals", "target_units"]


def null_residuals(loss: Loss, y: FloatArray, omega: FloatArray) -> FloatArray:
    """Return the residuals of the best constant, in the shape of y."""
    f = np.zeros_like(y)
    f = f + loss.intercept(y, f, omega, 1.0)
    return loss.residuals(y, f, omega, 1.0)


def target_units(y: FloatArray, weights: FloatArray, loss: Loss) -> tuple[float, float]:
    """Return the location and scale by which y is standardised.

    These are mean and standard deviation for the squared error. For the other losses of positive
    degree, which must be robust to outliers, they are the median and the interquartile range over
    1.349 (the standard deviation for normal data). Losses of degree 0 leave y unchanged: 0 and 1.
    ``weights`` are positive, of any sum.
    """
    if loss.degree == 0:
        return 0.0, 1.0
    with one_blas_thread():
        scaler = Standardizer.fit(y, normalised(weights))
    scale = 1.0 if scaler.constant else scaler.scale
    if isinstance(loss, SquaredError):
        return scaler.center, scale
    low, middle, high = (_quantile(y, q, weights) for q in (0.25, 0.5, 0.75))
    spread = (high - low) / 1.349
    return middle, spread if spread > 1e-6 * scale else scale


def _quantile(y: FloatArray, q: float, weights: FloatArray) -> float:
    """Return a weighted quantile; if it falls between two rows, their midpoint.

    The weights are scaled by a power of two, which is exact. Division by their sum would round
    integer weights, and a quantile between two rows could then differ from that of repeated rows.
    """
    exact = np.ldexp(weights, -int(np.frexp(np.max(weights))[1]))
    below = np.quantile(y, q, weights=exact, method="inverted_cdf")
    above = -np.quantile(-y, 1.0 - q, weights=exact, method="inverted_cdf")
    return 0.5 * float(below) + 0.5 * float(above)
