"""The Gaussian kernel split by Mehler's expansion, with the whole remainder as the last level."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hikernel.bases.basis import Basis, FittedBasis, as_levels
from hikernel.bases.column import Column, Standardizer
from hikernel.bases.lowrank import LowRankWarning, leading_directions
from hikernel.bases.mehler import MehlerSeries
from hikernel.checks import check_flag, check_fraction, check_integer, check_positive
from hikernel.engines.protocol import FloatArray

__all__ = ["FittedGaussian", "Gaussian"]

#: Largest number of series terms in a remainder; the cost of the rotation is cubic in it.
MAX_TERMS = 1024
#: b and s are refused unless the series resolves standardised points up to this magnitude.
CORE_RADIUS = 3.0
# Shares of the tolerance: truncating the series may neglect the first, the rotation the second.
_SERIES_SHARE, _ROTATION_SHARE = 0.01, 0.99
_BLOCK = 8192
# A remainder with a smaller trace is left out: it is too small for floating point.
_NEGLIGIBLE_TRACE = 1e-290


@dataclass(frozen=True)
class Gaussian(Basis):
    """exp(-b (x - z)^2) = sum_{j < q} phi_j(x) phi_j(z) + remainder, phi_j Mehler's functions.

    phi_j(x) = (1 - r^2)^(1/4) sqrt(r^j/(2^j j!)) H_j(sqrt(2c) x) exp(-(c - a) x^2) with
    a = 1/(4s), c = sqrt(a^2 + 2ab), r = b/(a + b + c), x standardised.

    =================  ===========  ==============================================
    constant_level     remainder    levels
    =================  ===========  ==============================================
    False (the paper)  True         phi_0 .. phi_{q-1}, sum_{j >= q}
    False              False        phi_0 .. phi_q
    True               True         1, phi_0 .. phi_{q-2}, sum_{j >= q-1}
    True               False        1, phi_0 .. phi_{q-1}
    =================  ===========  ==============================================

    Parameters
    ----------
    degree : int, default 8
        Highest level q.
    b : float, default 0.5
        Inverse squared length. On a standardised column 0.5 makes the kernel
        exp(-(x - z)^2 / 2), whose length is one standard deviation: smooth enough that eight
        levels carry all but 1e-3 of the kernel, and far from linear over the data.
    s : float, default 1.0
        Variance of the normal distribution under which the phi_j are orthogonal; the variance
        of a standardised column.
    constant_level : bool, default False
        Make level 0 the constant one, so that terms do not depend on their absent variables.
        If False, level 0 is the bump phi_0.
    remainder : bool, default True
        Make the last level the whole remainder of the kernel.
    tol : float, default 1e-10
        Fraction of the trace of the remainder on the training rows that may be neglected.

    Notes
    -----
    The remainder is summed as a series and not computed as a difference, which would cancel when
    r^q is small. Its terms are rotated to their principal directions on the training column. As
    few directions are kept as possible while neglecting at most ``tol`` of the trace. A remainder
    too small for floating point (trace below 1e-290) is left out, and then ``max_level`` is q - 1.

    The series for the remainder has at most 1024 terms more than the degree. This suffices for
    points within about 40 standard deviations at the default b; a column with values further
    out gets a `LowRankWarning`, and the remainder fades to zero there. All levels underflow
    to zero far away, never to NaN.

    Examples
    --------
    >>> x = np.linspace(-2.0, 2.0, 7)
    >>> fitted = Gaussian(degree=4).fit(x)
    >>> F = np.hstack(fitted.transform(x))
    >>> z = fitted.scaler.transform(x)
    >>> np.allclose(F @ F.T, np.exp(-0.5 * (z[:, None] - z) ** 2), atol=1e-9)
    True
    """

    name: ClassVar[str] = "gaussian"
    degree: int = 8
    b: float = 0.5
    s: float = 1.0
    constant_level: bool = False
    remainder: bool = True
    tol: float = 1e-10

    def __post_init__(self) -> None:
        check_integer("degree", self.degree, 1)
        check_positive("b", self.b, "the inverse squared length of the kernel")
        check_positive("s", self.s, "the variance of the reference distribution")
        check_flag("constant_level", self.constant_level)
        check_flag("remainder", self.remainder)
        check_fraction("tol", self.tol, "the relative trace that may be neglected")
        self._check_ratio()

    @property
    def _n_single(self) -> int:
        """Number of Mehler functions that form a level of their own."""
        return int(self.degree) + (not self.remainder) - self.constant_level

    def _check_ratio(self) -> None:
        """Raise if the kernel is numerically constant, or if its series needs too many terms."""
        series = MehlerSeries(float(self.b), float(self.s))
        given = f"got b={self.b!r}, s={self.s!r}"
        if not series.r > 1e-100:
            raise ValueError(
                f"b * s is so small that the Gaussian kernel is constant in floating point "
                f"({given}); increase b, or use a polynomial basis."
            )
        needed = math.inf
        if series.r < 1.0:
            smallest = self._n_single * math.log(series.r) + 0.5 * math.log1p(-(series.r**2))
            log_target = math.log(_SERIES_SHARE * self.tol) + smallest
            needed = series.terms_needed(CORE_RADIUS, log_target)
        if needed > MAX_TERMS + self._n_single and (self.remainder or series.r == 1.0):
            raise ValueError(
                f"b * s is too large: the series of the Gaussian kernel would need {needed} "
                f"terms, more than {MAX_TERMS + self._n_single} ({given}). Decrease b or s, or "
                "use KernelPCA or Anova, which have no series."
            )

    def _fit(self, column: Column, scaler: Standardizer) -> FittedGaussian:
        series = MehlerSeries(float(self.b), float(self.s))
        n_single = self._n_single
        rotation = np.empty((0, 0))
        if self.remainder:
            n_terms = self._series_length(series, column)
            if n_terms > n_single:
                rotation = _rotation(series, column, n_single, n_terms, float(self.tol))
        return FittedGaussian(scaler, self.constant_level, series, n_single, rotation)

    def _series_length(self, series: MehlerSeries, column: Column) -> int:
        """Return the number of series terms for this column, at most `MAX_TERMS` in the remainder.

        Equal to ``_n_single`` if the remainder is negligible.
        """
        first = self._n_single
        # Use two successive terms, since all data may lie at roots of a single one.
        terms = series.terms(column.values, first + 2)[first:]
        smallest = float((terms**2 @ column.weights).sum())
        if smallest < _NEGLIGIBLE_TRACE:
            return first
        log_target = math.log(_SERIES_SHARE * self.tol) + math.log(smallest)
        largest = float(np.abs(column.values).max())
        needed = max(first + 2, series.terms_needed(largest, log_target))
        limit = first + MAX_TERMS
        if needed > limit:
            reach = series.radius(limit, log_target)
            warnings.warn(
                f"A column has values {largest:.3g} standard deviations from its mean. The "
                f"Gaussian series resolves points up to {reach:.3g}; beyond, the remainder level "
                "fades to zero. Take logarithms or ranks of the column, decrease b, or use "
                "KernelPCA or Anova.",
                LowRankWarning,
                stacklevel=4,
            )
        return min(needed, limit)


@dataclass(frozen=True, eq=False)
class FittedGaussian(FittedBasis):
    """Mehler functions, then the rotated tail of their series.

    Parameters
    ----------
    series : MehlerSeries
    n_single : int
        Number of Mehler functions that form a level of their own.
    rotation : ndarray of shape (T, r)
        Orthonormal columns that compress the next T functions to the r columns of the last
        level; r = 0 if there is no remainder.
    """

    series: MehlerSeries
    n_single: int
    rotation: FloatArray

    @property
    def widths(self) -> tuple[int, ...]:
        """Columns per level: one each, except for the remainder, which has as many as its rank."""
        last = (self.rotation.shape[1],) if self.rotation.shape[1] else ()
        return (1,) * (self.constant_level + self.n_single) + last

    def _levels(self, z: FloatArray) -> list[FloatArray]:
        n_terms, rank = self.rotation.shape
        single = np.empty((self.n_single, z.size))
        rest = np.empty((z.size, rank))
        for rows, terms in _term_blocks(self.series, z, self.n_single + n_terms):
            single[:, rows] = terms[: self.n_single]
            rest[rows] = terms[self.n_single :].T @ self.rotation
        levels = [np.ones((z.size, 1))] if self.constant_level else []
        levels += as_levels(single)
        return [*levels, rest] if rank else levels


def _rotation(
    series: MehlerSeries, column: Column, first: int, n_terms: int, tol: float
) -> FloatArray:
    """Return principal directions of terms first..n_terms-1, shape (n_terms - first, r)."""
    moment = np.zeros((n_terms - first, n_terms - first))
    for rows, terms in _term_blocks(series, column.values, n_terms):
        tail = terms[first:]
        moment += (tail * column.weights[rows]) @ tail.T
    return leading_directions(moment, _ROTATION_SHARE * tol)[0]


def _term_blocks(
    series: MehlerSeries, z: FloatArray, n_terms: int
) -> Iterator[tuple[slice, FloatArray]]:
    """Yield blocks of rows and their terms of shape (n_terms, block), to limit memory."""
    for begin in range(0, z.size, _BLOCK):
        rows = slice(begin, begin + _BLOCK)
        yield rows, series.terms(z[rows], n_terms)
