"""Moments of the levels of one variable, for the functional ANOVA."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from hikernel.bases.basis import FittedBasis
from hikernel.bases.column import distinct
from hikernel.engines.protocol import FloatArray

__all__ = ["Marginal"]

_ROUNDING = 1e-12
"""Means below this part of the root mean square of a feature are rounding, and set to zero."""

_CHUNK_NUMBERS = 2**21
"""Numbers held in memory at a time, besides the result (16 MiB)."""


@dataclass(frozen=True)
class Marginal:
    """Moments of the features of the levels of one variable, over weighted rows.

    Attributes
    ----------
    spans : dict of int to slice
        Positions of the columns of each level among the S columns of all levels in use.
    means : ndarray of shape (S,)
        mu = E phi.
    root : ndarray of shape (s, S)
        Upper triangular R with E (phi - mu)(phi - mu)' = R'R.
    """

    spans: dict[int, slice]
    means: FloatArray
    root: FloatArray

    @classmethod
    def of(
        cls, basis: FittedBasis, levels: Iterable[int], x: FloatArray, weights: FloatArray
    ) -> Marginal:
        """Return the moments of the given levels over the values x, shape (n,), with weights.

        The triangular factor of sqrt(w) [1, phi] is [[1, mu'], [0, R]] up to signs, so that one
        pass over the rows gives mu and R, without cancellation between squares.
        """
        wanted = sorted(levels)
        values, _, w = distinct(x[weights > 0.0], weights[weights > 0.0])
        stops = np.cumsum([basis.widths[j] for j in wanted])
        spans = {
            j: slice(int(stop) - basis.widths[j], int(stop))
            for j, stop in zip(wanted, stops, strict=True)
        }
        factor = np.empty((0, 1 + int(stops[-1])))
        step = max(1, _CHUNK_NUMBERS // sum(basis.widths))
        for start in range(0, len(values), step):
            rows = slice(start, start + step)
            features = basis.transform(values[rows])
            ones = np.ones((len(values[rows]), 1))
            block = np.hstack([ones, *(features[j] for j in wanted)]) * np.sqrt(w[rows])[:, None]
            factor = np.asarray(np.linalg.qr(np.vstack([factor, block]), mode="r"))
        means = factor[0, 1:] / factor[0, 0]
        sizes = np.sqrt(np.sum(factor[:, 1:] ** 2, axis=0))
        means[np.abs(means) <= _ROUNDING * sizes] = 0.0
        return cls(spans, means, factor[1:, 1:])

    def mean(self, level: int) -> FloatArray:
        """Return mu of one level, shape (r,)."""
        return self.means[self.spans[level]]

    def roots(self, levels: Iterable[int]) -> dict[int, FloatArray]:
        """Return the columns of R for each of the given levels.

        R is upper triangular: rows that are zero for all of these levels are left out.
        """
        used = {level: self.spans[level] for level in levels}
        depth = max(span.stop for span in used.values())
        return {level: self.root[:depth, span] for level, span in used.items()}
