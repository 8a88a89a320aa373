"""The Poisson loss, for counts and other targets that are zero or positive."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from scipy.special import xlog1py, xlogy

from hikernel.engines.protocol import FloatArray
from hikernel.losses.loss import LARGEST_EXPONENT, Loss, bounded_exp, row_sums

__all__ = ["Poisson"]

_LARGEST_COUNT = 1e15
"""Largest y accepted: above it, a difference of one is of the order of rounding errors."""


@dataclass(frozen=True)
class Poisson(Loss):
    """Half the deviance, exp(f) - y f + y log y - y, of counts with mean exp(f).

    psi(b) = c log c - c - (y log y - y) for c = b + y >= 0.
    """

    name: ClassVar[str] = "poisson"
    link: ClassVar[Literal["identity", "log"]] = "log"

    def value(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Return the loss of each row: y (exp(d) - 1 - d) with d = f - log y, or exp(f) for y = 0.

        This form is accurate for large y, and expm1 keeps small d exact.
        """
        positive = y > 0.0
        some = np.where(positive, y, 1.0)
        d = f - np.log(some)
        near = np.minimum(d, LARGEST_EXPONENT)
        change = np.where(d > near, bounded_exp(d) - 1.0, np.expm1(near))
        return row_sums(np.where(positive, some * (change - d), bounded_exp(f)))

    def gradient(self, y: FloatArray, f: FloatArray, smoothing: float = 0.0) -> FloatArray:
        """Return exp(f) - y."""
        return np.asarray(np.exp(np.minimum(f, LARGEST_EXPONENT)) - y)

    def curvature(self, y: FloatArray, f: FloatArray, smoothing: float = 0.0) -> FloatArray:
        """Return exp(f)."""
        return np.asarray(np.exp(np.minimum(f, LARGEST_EXPONENT)))

    def conjugate(self, y: FloatArray, b: FloatArray) -> FloatArray:
        """Return y ((1 + t) log(1 + t) - t) + b log y with t = b / y, or b log b - b for y = 0."""
        inside = b + y >= 0.0
        positive = y > 0.0
        t = np.where(inside & positive, b, 0.0) / np.where(positive, y, 1.0)
        counted = y * (xlog1py(1.0 + t, t) - t) + b * np.log(np.where(positive, y, 1.0))
        b = np.where(inside & ~positive, b, 0.0)
        return row_sums(np.where(inside, np.where(positive, counted, xlogy(b, b) - b), np.inf))

    def check_target(self, y: FloatArray) -> None:
        """Raise if a target is negative or above 1e15, or if all are zero."""
        if np.any(y < 0.0):
            raise ValueError(
                'loss="poisson" needs y that is zero or positive, but some values are negative; '
                'use loss="squared_error", or check the target.'
            )
        if np.any(y > _LARGEST_COUNT):
            raise ValueError(
                f'loss="poisson" takes y up to {_LARGEST_COUNT:g}, but there are larger values; '
                "divide y by a constant."
            )
        if not np.any(y > 0.0):
            raise ValueError('loss="poisson" needs some y above zero, but all are zero.')
