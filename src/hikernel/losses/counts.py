"""The Poisson loss, for counts and other targets that are zero or positive."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from scipy.special import xlogy

from hikernel.engines.protocol import FloatArray
from hikernel.losses.base import Loss, row_sums

__all__ = ["Poisson"]

_LARGEST = 500.0
"""exp of more than this is beyond any count; the loss goes on linearly, and stays finite."""


class Poisson(Loss):
    """Half the deviance, exp(f) - y f + y log y - y, of counts with mean exp(f).

    psi(b) = c log c - c - (y log y - y) for c = b + y >= 0.
    """

    name: ClassVar[str] = "poisson"

    def value(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Return the loss of each row."""
        return row_sums(_exp(f) - y * f + xlogy(y, y) - y)

    def gradient(self, y: FloatArray, f: FloatArray, smoothing: float = 0.0) -> FloatArray:
        """Return exp(f) - y."""
        return np.asarray(np.exp(np.minimum(f, _LARGEST)) - y)

    def curvature(self, y: FloatArray, f: FloatArray, smoothing: float = 0.0) -> FloatArray:
        """Return exp(f)."""
        return np.asarray(np.exp(np.minimum(f, _LARGEST)))

    def conjugate(self, y: FloatArray, b: FloatArray) -> FloatArray:
        """Return c log c - c - (y log y - y)."""
        c = b + y
        inside = c >= 0.0
        c = np.where(inside, c, 0.0)
        return row_sums(np.where(inside, xlogy(c, c) - c - (xlogy(y, y) - y), np.inf))

    def check_target(self, y: FloatArray) -> None:
        """Raise for negative targets, and where all are zero."""
        if np.any(y < 0.0):
            raise ValueError(
                'loss="poisson" needs y that is zero or positive, but some values are negative; '
                'use loss="squared_error", or check the target.'
            )
        if not np.any(y > 0.0):
            raise ValueError('loss="poisson" needs some y above zero, but all are zero.')

    def predict_mean(self, f: FloatArray) -> FloatArray:
        """Return exp(f).

        Raises
        ------
        ValueError
            Where that overflows: the row is far outside the training data.
        """
        if np.any(f > _LARGEST):
            row = int(np.argmax(f > _LARGEST))
            raise ValueError(
                f"Row {row} of X lies so far outside the training data that its prediction "
                "overflows; check its units, or clip X to the range of the training data."
            )
        return np.asarray(np.exp(f))


def _exp(f: FloatArray) -> FloatArray:
    """Return exp(f), continued linearly where it would overflow."""
    return np.asarray(np.exp(np.minimum(f, _LARGEST)) * (1.0 + np.maximum(f - _LARGEST, 0.0)))
