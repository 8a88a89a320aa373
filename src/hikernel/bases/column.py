"""One column of data: its distinct values with their weights, and its scale.

Every fitted quantity of a basis is a function of the weighted distribution of the column. Bases
therefore get distinct values with weights that sum to one, never rows. So ties cost nothing,
integer weights are the same as repeated rows by construction, and the order of rows cannot matter.
Standardisation works for any finite input, from subnormal numbers to 1e308.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hikernel.engines.protocol import FloatArray

__all__ = ["Column", "Standardizer", "as_points", "distinct"]

_LARGEST = float(np.finfo(np.float64).max)
# Powers of two with an exponent up to this size, and their inverses, are floats.
_PLAIN_EXPONENT = 1000
# A standard deviation this small relative to the values is rounding error of a constant.
_CONSTANT = 10.0 * float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class Column:
    """Weighted distribution sum_i w_i delta(x_i) of one column over its distinct values.

    Parameters
    ----------
    values : ndarray of shape (m,)
        Distinct values in increasing order, without missing values and those of zero weight.
    weights : ndarray of shape (m,)
        Their weights, summing to one.
    position : ndarray of shape (n,)
        Index into ``values`` for every row; -1 for missing values and rows of zero weight.
    """

    values: FloatArray
    weights: FloatArray
    position: NDArray[np.intp]

    @classmethod
    def from_rows(cls, x: ArrayLike, sample_weight: ArrayLike | None = None) -> Column:
        """Check rows ``x`` of shape (n,) and their weights, drop missing values, and merge ties.

        Examples
        --------
        >>> column = Column.from_rows([3.0, 1.0, 3.0, np.nan, 7.0], [1, 2, 1, 1, 0])
        >>> column.values, column.weights
        (array([1., 3.]), array([0.5, 0.5]))
        """
        rows = as_points(x)
        if rows.size == 0:
            raise ValueError("x has no rows; fit needs at least one.")
        if sample_weight is None:
            weights = np.ones(rows.size)
        else:
            weights = _check_weights(sample_weight, rows.size)
        kept = np.flatnonzero((weights > 0) & ~np.isnan(rows))
        values, inverse, merged = distinct(rows[kept], weights[kept])
        position = np.full(rows.size, -1, dtype=np.intp)
        position[kept] = inverse
        return cls(values, merged, position)

    def index_of_row(self, row: int) -> int:
        """Return the index into ``values`` of training row ``row``; raise if it is not used."""
        if row >= self.position.size:
            raise ValueError(
                f"first_pivot={row} is not a row of the {self.position.size} training rows "
                "(they count from 0); pass a smaller one, or None for the greedy choice."
            )
        index = int(self.position[row])
        if index < 0:
            raise ValueError(
                f"first_pivot={row} is a row of zero weight or with a missing value, which must "
                "not influence the fit; pass another row, or None for the greedy choice."
            )
        return index


@dataclass(frozen=True)
class Standardizer:
    """z = (x - mean) / std, with the weighted mean and the weighted 1/n standard deviation.

    The column is first divided by 2**exponent. This is exact and brings its largest magnitude
    into [1/2, 1), so that squares do not overflow and the largest does not underflow.

    Parameters
    ----------
    exponent : int
        Power of two by which the column is divided.
    mean, std : float
        Mean and standard deviation of the divided column. ``std`` is positive unless ``constant``.
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
        """Fit to ``values`` of shape (m,) with ``weights`` of shape (m,) that sum to one.

        Without any values, as for a column with all values missing, the result is constant.
        """
        if values.size == 0:
            return cls(exponent=0, mean=0.0, std=0.0, constant=True)
        largest = float(np.abs(values).max())
        exponent = math.frexp(largest)[1]
        scaled = np.ldexp(values, -exponent)
        mean = float(weights @ scaled)
        # A second pass removes the rounding error of the first, which matters for a large offset.
        mean += float(weights @ (scaled - mean))
        std = math.sqrt(float(weights @ (scaled - mean) ** 2))
        constant = std <= _CONSTANT * math.ldexp(largest, -exponent)
        return cls(exponent, mean, std, constant)

    @classmethod
    def identity(cls) -> Standardizer:
        """Return a scaler that leaves every x unchanged, for bases that do not standardise."""
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
        """Return standardised ``x``, in the same shape; finite, clipped to the largest float.

        For a constant column every point is mapped to zero.
        """
        if self.constant:
            return np.zeros_like(x)
        with np.errstate(over="ignore"):
            z = self._divided(x)
            z -= self.mean
            z /= self.std
        return np.clip(z, -_LARGEST, _LARGEST, out=z)

    def _divided(self, x: FloatArray) -> FloatArray:
        """Return x / 2**exponent, by a faster plain product if 2**-exponent is a normal float."""
        if abs(self.exponent) < _PLAIN_EXPONENT:
            return np.asarray(x * math.ldexp(1.0, -self.exponent))
        return np.asarray(np.ldexp(x, -self.exponent))


def as_points(x: ArrayLike) -> FloatArray:
    """Return ``x`` as a float64 array of shape (n,), or raise if that is not possible.

    NaN is allowed and means a missing value; infinity is not allowed.
    """
    try:
        points = np.asarray(x, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"x must hold real numbers, and could not be converted ({error}); "
            "encode other columns as numbers first."
        ) from None
    if points.ndim != 1:
        raise ValueError(
            f"x must be one column, an array of shape (n,), got shape {points.shape}; "
            "pass X[:, j] for column j."
        )
    if np.isinf(points).any():
        raise ValueError(
            "x contains infinity; a basis takes finite numbers, and NaN where a value is missing, "
            "so replace it by one of these."
        )
    return points


def distinct(x: FloatArray, weights: FloatArray) -> tuple[FloatArray, NDArray[np.intp], FloatArray]:
    """Return the distinct values of ``x``, the index of each row among them, and their weights.

    The weight of a value is the sum over its rows, scaled so that all weights sum to one.
    """
    values, inverse = np.unique(x, return_inverse=True)
    merged = np.bincount(inverse, weights, minlength=values.size)
    return values, inverse.astype(np.intp, copy=False), merged / merged.sum()


def _check_weights(sample_weight: ArrayLike, n_rows: int) -> FloatArray:
    try:
        weights = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"sample_weight must hold real numbers ({error}).") from None
    if weights.shape != (n_rows,):
        raise ValueError(
            f"sample_weight must have one entry per row, shape ({n_rows},), got {weights.shape}."
        )
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise ValueError("sample_weight must be finite and nonnegative; use 0 to leave a row out.")
    if not weights.any():
        raise ValueError("sample_weight is zero on every row; give at least one a positive weight.")
    # Divide by the largest weight: sums stay finite, and weights that underflow become zero.
    return weights / float(weights.max())
