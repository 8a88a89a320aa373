"""The units of y: what is taken out of the target before a fit, which leaves alpha as it is."""

from __future__ import annotations

import numpy as np

from hikernel.bases import Standardizer
from hikernel.engines.protocol import FloatArray
from hikernel.engines.threads import one_blas_thread
from hikernel.engines.weights import normalised
from hikernel.losses import Loss, SquaredError

__all__ = ["target_units"]


def target_units(y: FloatArray, weights: FloatArray, loss: Loss) -> tuple[float, float]:
    """Return the location and the scale that are taken out of y.

    Mean and standard deviation for the squared error; for losses that outliers must not move,
    median and interquartile range over 1.349 (which is the standard deviation of normal data).
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
    """Return a quantile, the middle between two rows where it lies between them.

    Weights are scaled by a power of two, which keeps their ratios: divided by their sum, whole
    numbers round, and then a quantile between two rows is not that of repeated rows.
    """
    exact = np.ldexp(weights, -int(np.frexp(np.max(weights))[1]))
    below = np.quantile(y, q, weights=exact, method="inverted_cdf")
    above = -np.quantile(-y, 1.0 - q, weights=exact, method="inverted_cdf")
    return 0.5 * float(below) + 0.5 * float(above)
