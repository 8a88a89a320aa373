"""The dual objective of a loss along the multiples of a dual point."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

__all__ = ["DualCurve", "QuadraticCurve", "SampledCurve"]

_BELOW = 1.0 - np.geomspace(1e-4, 1.0, 17)
_ABOVE = 1.0 + np.geomspace(1e-4, 1.0, 9)
_MULTIPLES = np.concatenate([_BELOW[_BELOW > 0.0][::-1], [1.0], _ABOVE])
_ONE = int(np.flatnonzero(_MULTIPLES == 1.0)[0])
"""Multiples s at which C(s) is evaluated for a loss without a closed form, and where one is."""


class DualCurve(Protocol):
    """C(s), with the two queries that duality gaps and searches need."""

    def value(self, penalty: float) -> float:
        """Return the largest D(s alpha) found over s; at least zero, the value at s = 0."""
        ...

    def penalty_for(self, value: float) -> float:
        """Return the largest penalty for which ``value(penalty)`` is still at least ``value``."""
        ...


@dataclass(frozen=True)
class QuadraticCurve:
    """C(s) = s fit - (s^2/2) residual, for the squared error; the best s has a closed form."""

    fit: float
    residual: float

    def value(self, penalty: float) -> float:
        """Return fit^2 / (2 (residual + penalty))."""
        curvature = self.residual + penalty
        if self.fit <= 0.0 or not math.isfinite(curvature) or curvature <= 0.0:
            return 0.0
        return 0.5 * self.fit * (self.fit / curvature)

    def penalty_for(self, value: float) -> float:
        """Return the penalty at which the best value is ``value``."""
        if value <= 0.0:
            return math.inf
        if self.fit <= 0.0:
            return -math.inf
        return 0.5 * self.fit * (self.fit / value) - self.residual


@dataclass(frozen=True)
class SampledCurve:
    """C at sampled multiples s, dense around s = 1, where the best s lies near a solution.

    Samples are taken as they are asked for. For the best one, neighbours are compared from s = 1
    on: C is concave, so that C(s) - (penalty / 2) s^2 has one maximum, and so has (C(s) - value) /
    s^2 where it is positive. (With N = s C' - 2 (C - value) its derivative has the sign of N. Where
    C rises, N falls; where C falls, N is negative.) Any sample gives a valid bound.

    Attributes
    ----------
    curve : callable
        C(s), concave; minus infinity or NaN outside its domain.
    heights : dict of int to float
        The values that are known, by position of the multiple.
    """

    curve: Callable[[float], float]
    heights: dict[int, float] = field(default_factory=dict, repr=False, compare=False)

    def value(self, penalty: float) -> float:
        """Return the best value over the sampled multiples."""
        if not math.isfinite(penalty):
            return 0.0
        return max(0.0, self._best(lambda s, height: height - 0.5 * penalty * s**2))

    def penalty_for(self, value: float) -> float:
        """Return the largest penalty at which some multiple reaches ``value``."""
        if value <= 0.0:
            return math.inf
        return self._best(lambda s, height: 2.0 * (height - value) / s**2)

    def _best(self, worth: Callable[[float, float], float]) -> float:
        """Return the largest worth of a sample, a function of multiple and height."""

        def at(i: int) -> float:
            height = self._height(i)
            return worth(float(_MULTIPLES[i]), height) if height > -math.inf else -math.inf

        i = _ONE
        while i > 0 and self._height(i) == -math.inf:
            i -= 1
        best = at(i)
        for step in (-1, 1):
            k = i + step
            while 0 <= k < len(_MULTIPLES) and at(k) > best:
                best, k = at(k), k + step
        return best

    def _height(self, i: int) -> float:
        if i not in self.heights:
            height = self.curve(float(_MULTIPLES[i]))
            self.heights[i] = height if math.isfinite(height) else -math.inf
        return self.heights[i]
