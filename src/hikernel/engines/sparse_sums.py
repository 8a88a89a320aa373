"""Sums over all products of two sparse levels, without listing them.

Level c has the feature phi_c = z_c + G_c with a sparse G_c. For a vector u over the rows let
b = G' u, a_c = phi_c' u = b_c + z_c 1' u, and M = G' diag(u) G. The score of a product is

    a_cw = (phi_c phi_w)' u = M_cw + e_cw,    e_cw = z_c b_w + a_c z_w,

so that for nonnegative r_w, over the levels w of all other variables than that of c,

    T_c = sum_w r_w a_cw^2 = sum_w r_w e_cw^2 + sum_w r_w M_cw (M_cw + 2 e_cw).

The first sum has three numbers per variable, the second one only the levels w that are not zero in
some row together with c. All T_c therefore take as many operations as there are pairs of entries of
G in one row: 2 10^8 for 20,000 rows of 100 entries, whether there are 10^3 columns or 10^5.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from hikernel.engines.features import rounding_margin
from hikernel.engines.machine import check_time
from hikernel.engines.protocol import FloatArray

__all__ = ["DescendantSums", "PairSums", "Summary"]

IndexArray = NDArray[np.intp]

_BLOCK_MEETINGS = 2**22
"""Multiplications, and so at most entries, of one block of M: about 100 MiB with its indices."""


@dataclass(frozen=True)
class Summary:
    """What one pass over G says about a vector u.

    Attributes
    ----------
    products : ndarray of shape (C,)
        b = G' u.
    scores : ndarray of shape (C,)
        a = Phi' u.
    sizes : ndarray of shape (C,)
        h_c = sum_i |u_i| (|z_c| + |G_ic|)^2. By the Cauchy-Schwarz inequality the magnitudes of
        the summands of a_cw add up to at most sqrt(h_c h_w).
    total : float
        sum_i u_i.
    """

    products: FloatArray
    scores: FloatArray
    sizes: FloatArray
    total: float

    @classmethod
    def of(cls, columns: sparse.csc_array, zeros: FloatArray, u: FloatArray) -> Summary:
        """Return the summary of a vector over the rows."""
        products, total = np.asarray(columns.T @ u), float(np.sum(u))
        magnitudes, constants = abs(columns), np.abs(zeros)
        sizes = magnitudes.power(2).T @ np.abs(u) + 2.0 * constants * (magnitudes.T @ np.abs(u))
        sizes += constants**2 * np.sum(np.abs(u))
        return cls(products, products + zeros * total, np.asarray(sizes), total)


@dataclass(frozen=True)
class DescendantSums:
    """Sums of squared scores over levels and products of two levels, rounded up.

    Attributes
    ----------
    root : float
        Over everything: (sum_i u_i)^2, all levels, and all products of two levels.
    levels : ndarray of shape (C,)
        a_c^2 + T_c for each level c, without a factor for c itself.
    """

    root: float
    levels: FloatArray


class PairSums:
    """Sums over all products of two levels of different variables.

    Parameters
    ----------
    columns, rows : csc_array and csr_array of shape (n, C)
        G, in both orders.
    zeros : ndarray of shape (C,)
        z.
    variables : ndarray of shape (C,)
        The variable of each level, increasing.
    """

    def __init__(
        self,
        columns: sparse.csc_array,
        rows: sparse.csr_array,
        zeros: FloatArray,
        variables: IndexArray,
    ) -> None:
        self._columns = columns
        self._rows = rows
        self._zeros = zeros
        self._variables = variables

    def of(self, dual_coef: FloatArray, scales: FloatArray, *, pairs: bool) -> DescendantSums:
        """Return the sums for alpha of shape (n, k), added over its columns.

        Parameters
        ----------
        dual_coef : ndarray of shape (n, k)
            alpha, one column per output.
        scales : ndarray of shape (C,)
            r, nonnegative factors of the squares.
        pairs : bool
            Whether products of two levels are included.
        """
        n, c = self._columns.shape
        singles, products, root = np.zeros(c), np.zeros(c), 0.0
        for u in dual_coef.T:
            check_time()
            summary = Summary.of(self._columns, self._zeros, u)
            weight = float(np.sum(np.abs(u)))
            # Magnitudes of a_c: sum_i |u_i| |phi_c| <= sqrt(h_c sum_i |u_i|).
            margins = rounding_margin(n) * np.sqrt(summary.sizes * weight)
            singles += (np.abs(summary.scores) + margins) ** 2
            root += (abs(summary.total) + rounding_margin(n) * weight) ** 2
            if pairs:
                # The squares of a_cw, and the sum over w, err by at most this share of the sum of
                # the squared magnitudes, which is at most h_c sum_w r_w h_w. The subtraction of a
                # variable's own part at most doubles the terms.
                gamma = 4.0 * (rounding_margin(n) + rounding_margin(c))
                spread = gamma * summary.sizes * float(scales @ summary.sizes)
                products += np.maximum(self._products(u, summary, scales), 0.0) + spread
        root += float(scales @ singles) + 0.5 * float(scales @ products)
        return DescendantSums(root * (1.0 + rounding_margin(c)), singles + products)

    def _products(self, u: FloatArray, summary: Summary, scales: FloatArray) -> FloatArray:
        """Return T_c for all levels c."""
        z, b, a = self._zeros, summary.products, summary.scores
        out = np.zeros(len(z))
        for own, other in ((z**2, b**2), (2.0 * z * a, b * z), (a**2, z**2)):
            by_variable = np.bincount(self._variables, scales * other)
            rest = np.sum(by_variable) - by_variable
            out += own * rest[self._variables]
        for some in self._blocks():
            check_time()
            left = self._columns[:, some].multiply(u[:, None]).T.tocsr()
            met = (left @ self._rows).tocoo()
            c, w = met.row + some.start, met.col
            constant = z[c] * b[w] + a[c] * z[w]
            terms = scales[w] * met.data * (met.data + 2.0 * constant)
            terms[self._variables[c] == self._variables[w]] = 0.0
            out[some] += np.bincount(met.row, terms, minlength=some.stop - some.start)
        return out

    def _blocks(self) -> list[slice]:
        """Return slices of levels whose products with G take about ``_BLOCK_MEETINGS`` each."""
        per_row = np.diff(self._rows.indptr).astype(np.float64)
        entries = np.append(0.0, np.cumsum(per_row[self._columns.indices]))
        before = entries[self._columns.indptr]  # multiplications of the levels before each one
        out, start, n_levels = [], 0, len(self._zeros)
        while start < n_levels:
            stop = int(np.searchsorted(before, before[start] + _BLOCK_MEETINGS, side="right")) - 1
            stop = min(max(stop, start + 1), n_levels)
            out.append(slice(start, stop))
            start = stop
        return out
