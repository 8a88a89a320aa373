"""Mehler's expansion of the Gaussian kernel, and the number of terms needed at a point.

This module has only the mathematics of the series; ``gaussian.py`` assigns its terms to levels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hikernel.bases.recurrence import scaled_hermite
from hikernel.engines.protocol import FloatArray

__all__ = ["MehlerSeries"]


@dataclass(frozen=True)
class MehlerSeries:
    """exp(-b (x - z)^2) = sum_{j >= 0} phi_j(x) phi_j(z), with

        phi_j(x) = (1 - r^2)^(1/4) sqrt(r^j / (2^j j!)) H_j(sqrt(2c) x) exp(-(c - a) x^2),
        a = 1/(4s),  c = sqrt(a^2 + 2ab),  A = a + b + c,  r = b/A,

    where H_j are the physicists' Hermite polynomials. The paper omits the factor (1 - r^2)^(1/2) of
    the kernels, without which the sum is too large. It writes (b/A)(a + c) for the equal c - a.

    Parameters
    ----------
    b : float
        Inverse squared length of the kernel.
    s : float
        Variance of the normal distribution under which the phi_j are orthogonal.
    """  # noqa: D400 - the formula is the summary

    b: float
    s: float

    @cached_property
    def a(self) -> float:
        """1/(4s)."""
        return 0.25 / self.s

    @cached_property
    def c(self) -> float:
        """sqrt(a^2 + 2ab), computed as a product of roots so that no square overflows."""
        return math.sqrt(self.a) * math.sqrt(self.a + 2.0 * self.b)

    @cached_property
    def r(self) -> float:
        """Ratio b/A of successive terms, in (0, 1)."""
        return self.b / (self.a + self.b + self.c)

    def terms(self, x: FloatArray, n_terms: int) -> FloatArray:
        """Return phi_0..phi_{n_terms-1} at ``x`` of shape (n,), an array of shape (n_terms, n).

        The recurrence starts from the exponential, so that far points underflow to zero.
        """
        # Compute c - a and 1 - r^2 by identities without cancellation.
        decay = 2.0 * self.c * self.r / (1.0 + self.r)
        height = (2.0 * self.a / (self.a + self.c) * (1.0 + self.r)) ** 0.25
        with np.errstate(over="ignore", under="ignore"):
            start = height * np.exp(-decay * x * x)
            # Beyond 1e150 the start is zero; clipping keeps sqrt(2c) x finite.
            t = math.sqrt(2.0 * self.c) * np.clip(x, -1e150, 1e150)
        return scaled_hermite(t, self.r, start, n_terms)

    def terms_needed(self, largest: float, log_target: float) -> int:
        """Return K with sum_{j >= K} phi_j(x)^2 <= exp(log_target) for all |x| <= largest.

        K is the smallest number for which Chernoff's bound proves this, with u on a grid. For any u
        in (r, 1), sum_{j >= K} phi_j(x)^2 is at most (r/u)^K sum_j (u/r)^j phi_j(x)^2, and Mehler's
        formula gives the last sum in closed form,

            sqrt((1 - r^2)/(1 - u^2)) exp(4c x^2 (u/(1 + u) - r/(1 + r))).

        No terms are computed, so this can be called before a series is summed.
        """
        rate, log_front, growth = self._chernoff()
        bounds = (log_front + growth * largest**2 - log_target) / rate
        return max(0, math.ceil(float(bounds.min())))

    def radius(self, n_terms: int, log_target: float) -> float:
        """Return the largest |x| for which ``n_terms`` suffice: the inverse of `terms_needed`."""
        rate, log_front, growth = self._chernoff()
        square = ((n_terms * rate - log_front + log_target) / growth).max()
        return math.sqrt(max(0.0, float(square)))

    def _chernoff(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return log(u/r), the log of the square root and the factor of x^2 on a grid of u."""
        log_r = math.log(self.r)
        u = np.exp(log_r * np.linspace(0.01, 0.99, 99))
        log_front = 0.5 * (np.log1p(-self.r * self.r) - np.log1p(-u * u))
        growth = 4.0 * self.c * (u / (1.0 + u) - self.r / (1.0 + self.r))
        return np.log(u) - log_r, log_front, growth
