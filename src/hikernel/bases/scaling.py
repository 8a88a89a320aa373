"""Standardisation that survives any finite input, from subnormal numbers to 1e308."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from hikernel.bases.column import FloatArray

__all__ = ["Standardizer"]

_LARGEST = float(np.finfo(np.float64).max)
# Powers of two up to this size are floats, and so are their inverses.
_PLAIN_EXPONENT = 1000
# A spread this small beside the values is the rounding of a constant, not information.
_CONSTANT = 10.0 * float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Standardizer:
    """z = (x - mean) / std, with the weighted mean and the weighted 1/n standard deviation.

    The column is first divided by 2**exponent, which is exact and brings its largest
    magnitude into [1/2, 1); no square can then overflow or vanish.

    Parameters
    ----------
    exponent : int
        Power of two by which the column is divided.
    mean, std : float
        Of the divided column. ``std`` is positive unless ``constant``.
    constant : bool
        True when the standard deviation is at most 10 eps times the largest magnitude.

    Examples
    --------
    >>> scaler = Standardizer.fit(np.array([1e308, -1e308]), np.array([0.5, 0.5]))
    >>> scaler.transform(np.array([0.0, 1e308]))
    array([0., 1.])
    """

    exponent: int
    mean: float
    std: float
    constant: bool

    @classmethod
    def fit(cls, values: FloatArray, weights: FloatArray) -> Standardizer:
        """Fit on ``values`` of shape (m,) with ``weights`` of shape (m,) that sum to one.

        No values at all, as in a column that is missing throughout, count as a constant.
        """
        if values.size == 0:
            return cls(exponent=0, mean=0.0, std=0.0, constant=True)
        largest = float(np.abs(values).max())
        exponent = math.frexp(largest)[1]
        scaled = np.ldexp(values, -exponent)
        mean = float(weights @ scaled)
        # A second pass removes the rounding of the first: a large offset must not cost digits.
        mean += float(weights @ (scaled - mean))
        std = math.sqrt(float(weights @ (scaled - mean) ** 2))
        constant = std <= _CONSTANT * math.ldexp(largest, -exponent)
        return cls(exponent, mean, std, constant)

    @classmethod
    def identity(cls) -> Standardizer:
        """Leave every x as it is, to the last bit: for bases that do not standardise."""
        return cls(exponent=0, mean=0.0, std=1.0, constant=False)

    @property
    def center(self) -> float:
        """Mean in the units of the column."""
        return math.ldexp(self.mean, self.exponent)

    @property
    def scale(self) -> float:
        """Standard deviation in the units of the column (may round to 0 for subnormal data)."""
        return math.ldexp(self.std, self.exponent)

    def transform(self, x: FloatArray) -> FloatArray:
        """Standardised ``x``, same shape; always finite, saturating at the largest float.

        A constant column has no unit, so every point of it goes to zero.
        """
        if self.constant:
            return np.zeros_like(x)
        with np.errstate(over="ignore"):
            z = self._divided(x)
            z -= self.mean
            z /= self.std
        return np.clip(z, -_LARGEST, _LARGEST, out=z)

    def _divided(self, x: FloatArray) -> FloatArray:
        """Return x / 2**exponent, which is a product, and faster, where the power is a float."""
        if abs(self.exponent) < _PLAIN_EXPONENT:
            return np.asarray(x * math.ldexp(1.0, -self.exponent))
        return np.asarray(np.ldexp(x, -self.exponent))
