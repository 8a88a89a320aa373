"""Waves: functions of a column that come back after a period, such as the day of a year."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from hikernel.bases.basis import Basis, FittedBasis, FittedConstant
from hikernel.bases.column import Column, Standardizer
from hikernel.checks import check_integer, check_positive
from hikernel.engines.protocol import FloatArray

__all__ = ["FittedPeriodic", "Periodic"]

_LEAST_VARIANCE = 1e-6
"""Variance of a wave on the training rows below which it is a constant there."""


@dataclass(frozen=True)
class Periodic(Basis):
    """k_0 = 1, k_j(x, z) = s_j^2 <e_j(x) - m_j, e_j(z) - m_j>, e_j(x) = (cos, sin)(2 pi j x / T).

    m_j is the mean of e_j over the training rows, so that level j, the j-th harmonic, has mean zero
    there. The factor s_j makes the variance of its two columns one in total, unless its norm would
    then exceed ``bound`` somewhere; in that case s_j makes the largest norm equal to ``bound``. For
    rows that are spread evenly over the period, k_j(x, z) = cos(2 pi j (x - z) / T).

    A level is one block: no phase is preferred, and k_j depends on no choice of the origin.

    Parameters
    ----------
    period : float
        T, in the units of the column.
    degree : int, default 4
        Highest level. There are at most half as many levels as distinct phases, since higher waves
        could not be told from lower ones, and none from the first that is constant on the rows.
    bound : float, default 2.0
        Largest norm of a level.

    Examples
    --------
    >>> fitted = Periodic(24.0, degree=2).fit([0.0, 6.0, 12.0, 18.0])
    >>> fitted.widths
    (1, 2, 2)
    >>> fitted.transform([0.0, 6.0, 24.0])[1].round(6) + 0.0
    array([[1., 0.],
           [0., 1.],
           [1., 0.]])
    """

    name: ClassVar[str] = "periodic"
    standardises: ClassVar[bool] = False
    period: float
    degree: int = 4
    bound: float = 2.0

    def __post_init__(self) -> None:
        check_positive("period", self.period, "the distance after which values come back")
        check_integer("degree", self.degree, 1)
        check_positive("bound", self.bound, "the largest norm of a row of a level")

    def _fit(self, column: Column, scaler: Standardizer) -> FittedBasis:
        period = float(self.period)
        phases = np.unique(np.round(_phase(column.values, period), 9) % 1.0)
        means, scales = [], []
        for level in range(1, min(int(self.degree), max(1, len(phases) // 2)) + 1):
            wave = _wave(column.values, period, level)
            mean = column.weights @ wave
            variance = float(column.weights @ np.sum((wave - mean) ** 2, axis=1))
            if variance < _LEAST_VARIANCE:
                break
            longest = 1.0 + math.hypot(*mean)  # on the whole circle
            means.append(mean)
            scales.append(min(1.0 / math.sqrt(variance), self.bound / longest))
        if not means:
            return FittedConstant(scaler, True)
        return FittedPeriodic(scaler, True, period, np.array(means), np.array(scales))


@dataclass(frozen=True, eq=False)
class FittedPeriodic(FittedBasis):
    """Level j is s_j ((cos, sin)(2 pi j x / T) - m_j).

    Parameters
    ----------
    period : float
        T.
    means : ndarray of shape (q, 2)
        The means m_j.
    scales : ndarray of shape (q,)
        The factors s_j.
    """

    period: float
    means: FloatArray
    scales: FloatArray

    def __post_init__(self) -> None:
        if not self.period > 0.0 or self.means.shape != (len(self.scales), 2):
            raise ValueError("A period is positive, and every level has two means and a scale.")

    @property
    def widths(self) -> tuple[int, ...]:
        """Columns per level: two for every level above 0."""
        return (1, *([2] * len(self.scales)))

    @property
    def bulk(self) -> tuple[float, float]:
        """One period."""
        return 0.0, self.period

    def level_name(self, level: int, name: str) -> str:
        """Return the name of the column, or "wave 2 of hour" for the second harmonic."""
        return name if level == 1 else f"wave {level} of {name}"

    def _levels(self, z: FloatArray) -> list[FloatArray]:
        levels = [np.ones((z.size, 1))]
        for j, (mean, scale) in enumerate(zip(self.means, self.scales, strict=True), start=1):
            levels.append(scale * (_wave(z, self.period, j) - mean))
        return levels

    def up_to(self, level: int) -> FittedPeriodic:
        """Return the basis with levels 0 to ``level`` only; one level at least."""
        few = max(1, level)
        return replace(self, means=self.means[:few], scales=self.scales[:few])


def _phase(x: FloatArray, period: float) -> FloatArray:
    """Return x / T modulo one, for numbers of any size."""
    return np.asarray(np.mod(x, period) / period)


def _wave(x: FloatArray, period: float, level: int) -> FloatArray:
    """Return (cos, sin)(2 pi level x / T), shape (n, 2)."""
    angle = (2.0 * math.pi * level) * _phase(x, period)
    return np.column_stack([np.cos(angle), np.sin(angle)])
