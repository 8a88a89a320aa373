"""The dual objective along multiples of a dual point.

For a dual point alpha and s >= 0, D(s alpha) = C(s) - (s^2/2) penalty with a concave C that depends
on the loss alone and penalty = lambda Omega*(alpha)^2. Any s gives a valid bound; a curve picks a
good one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from hikernel.engines.protocol import FloatArray

__all__ = ["DualCurve", "QuadraticCurve", "SampledCurve"]


class DualCurve(Protocol):
    """C(s), with the two questions that gaps and searches ask."""

    def value(self, penalty: float) -> float:
        """Return the largest D(s alpha) found; never below zero, the value at s = 0."""
        ...

    def penalty_for(self, value: float) -> float:
        """Return the largest penalty at which ``value(penalty)`` is still ``value``."""
        ...


@dataclass(frozen=True)
class QuadraticCurve:
    """C(s) = s fit - (s^2/2) residual, the squared error: the best s in closed form."""

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
        return 0.5 * self.fit * (self.fit / value) - self.residual


_BELOW = np.concatenate([1.0 - np.geomspace(1e-4, 1.0, 17), [1.0]])
_ABOVE = 1.0 + np.geomspace(1e-4, 1.0, 9)


@dataclass(frozen=True)
class SampledCurve:
    """C at some multiples, dense around one, where the best one is near a solution.

    Attributes
    ----------
    multiples, heights : ndarray of shape (n_multiples,)
        s > 0 and C(s), finite.
    """

    multiples: FloatArray
    heights: FloatArray

    @classmethod
    def of(cls, curve: Callable[[float], float]) -> SampledCurve:
        """Sample a concave function that is finite between 0 and 1 at least."""
        chosen = []
        for s in [*_BELOW[_BELOW > 0.0], *_ABOVE]:
            height = curve(float(s))
            if s > 1.0 and not math.isfinite(height):
                break  # outside the domain, and so is all beyond
            chosen.append((float(s), height))
        multiples, heights = np.array(chosen).T
        finite = np.isfinite(heights)
        return cls(multiples[finite], heights[finite])

    def value(self, penalty: float) -> float:
        """Return the best value over the sampled multiples."""
        if not math.isfinite(penalty):
            return 0.0
        values = self.heights - 0.5 * penalty * self.multiples**2
        return max(0.0, float(np.max(values, initial=0.0)))

    def penalty_for(self, value: float) -> float:
        """Return the largest penalty at which some multiple reaches ``value``."""
        if value <= 0.0:
            return math.inf
        return float(np.max(2.0 * (self.heights - value) / self.multiples**2, initial=-np.inf))
