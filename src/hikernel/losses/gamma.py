"""The gamma loss, for positive targets whose standard deviation grows with their mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from scipy.special import xlog1py

from hikernel.engines.protocol import FloatArray
from hikernel.losses.loss import LARGEST_EXPONENT, Loss, bounded_exp, row_sums

__all__ = ["Gamma"]

_LARGEST_TARGET = 1e100


@dataclass(frozen=True)
class Gamma(Loss):
    """Half the deviance, y exp(-f) + f - 1 - log y, of positive numbers with mean exp(f).

    psi(b) = (1 - b) log(1 - b) + b + b log y for b <= 1. Multiplying y by a constant only shifts f,
    so that the penalty does not depend on the unit of y.
    """

    name: ClassVar[str] = "gamma"
    link: ClassVar[Literal["identity", "log"]] = "log"
    free_dispersion: ClassVar[bool] = True

    def value(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Return the loss of each row, exp(-d) - 1 + d with d = f - log y."""
        d = f - np.log(y)
        near = np.minimum(-d, LARGEST_EXPONENT)  # expm1 keeps small d exact
        return row_sums(np.where(-d > near, bounded_exp(-d) - 1.0, np.expm1(near)) + d)

    def gradient(self, y: FloatArray, f: FloatArray, smoothing: float = 0.0) -> FloatArray:
        """Return 1 - y exp(-f)."""
        return np.asarray(-np.expm1(np.minimum(np.log(y) - f, LARGEST_EXPONENT)))

    def curvature(self, y: FloatArray, f: FloatArray, smoothing: float = 0.0) -> FloatArray:
        """Return y exp(-f)."""
        return np.asarray(np.exp(np.minimum(np.log(y) - f, LARGEST_EXPONENT)))

    def conjugate(self, y: FloatArray, b: FloatArray) -> FloatArray:
        """Return (1 - b) log(1 - b) + b + b log y; log1p keeps the digits of a small b."""
        t = np.where(b <= 1.0, b, 0.0)
        return row_sums(np.where(b <= 1.0, xlog1py(1.0 - t, -t) + t + t * np.log(y), np.inf))

    def check_target(self, y: FloatArray) -> None:
        """Raise unless all targets are positive, and neither above 1e100 nor below 1e-100."""
        if np.any(y <= 0.0):
            raise ValueError(
                'loss="gamma" needs y above zero, but some values are zero or negative; use '
                'loss="tweedie" if zeros are real, or check the target.'
            )
        if np.any(y > _LARGEST_TARGET) or np.any(y < 1.0 / _LARGEST_TARGET):
            raise ValueError(
                'loss="gamma" takes y from 1e-100 to 1e100, but some values lie outside; '
                "multiply y by a constant."
            )
