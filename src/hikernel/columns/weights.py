"""Weights from the data: a budget on the diagonal of the total kernel.

The search and its proof live on the kernel that sums up the whole grid. Its diagonal at row i is

    K_ii = prod_m (1 + sum_{l >= 1} |phi_ml(x_i)|^2 / c_ml^2),    c_ml = d_m0 + ... + d_ml.

A row with a large K_ii and a large residual makes thousands of deep products violate the optimality
conditions at once: the hull fills up with products that describe this row, and no bound on the tail
closes. With d_ml = 2^l the mean of log K_ii grows with the number p of variables, and its upper
quantiles grow with rare levels, heavy tails and columns that are large together. So the weights are

    d_ml = s_ml b^e_ml,

a product of two parts. The exponent e_ml is l for the levels of smooth functions. (A basis may have
others: the l-th level of steps has (l + 1) / 2. Where the levels of a variable form a tree, c_ml is
the sum on the way from level 0 to l.) The size s_ml of a level makes rare and spiky levels pay for
themselves: s_ml^2 is the median of |phi_ml(x_i)|^2, row i counted omega_i |phi_ml(x_i)|^2 times
(at least 1). Half of the variance of the level comes from rows beyond that size. It is 1 for a
level of +-1, 2.4 for a normal variable, and 1 / f for the indicator of a rare event of frequency f.
A single row matters only as far as it holds half of the variance of a level.

The base b is the smallest number, at least sqrt(2), with

    mean_i log K_ii <= 1    and    95 % quantile of log K_ii <= mean + 0.75.

The first condition is about the proof, which sums over the rows; the second about rows that are
exceptional in many variables at once, as in correlated columns. Both hold for any p. One gross row
changes neither a mean of logarithms nor a quantile by more than its share. With ``max_order`` the
diagonal is that of the products of at most that many variables. Bases without a constant level 0
have no such budget: every term contains every variable, and their kernels are bounded as they are.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hikernel.bases import FittedBasis
from hikernel.engines.machine import in_threads, one_blas_thread
from hikernel.engines.protocol import FloatArray

__all__ = ["KnownSizes", "LevelSizes", "level_size", "level_weights"]

KnownSizes = dict[tuple[int, int], tuple[FittedBasis, FloatArray]]
"""Sizes of the levels of a column, by its position and the step by which rows are thinned out; with
the basis they belong to."""

_PAPER_BASE = 2.0
"""Base of bases without a constant level 0, as in Bach (2008)."""

_MEAN = 1.0
"""Largest mean of log K_ii over the rows."""
_SPREAD = 0.75
"""Largest distance of the upper quantile of log K_ii from the mean."""
_UPPER = 0.95
"""The upper quantile."""
_LEAST_BASE = 2.0**0.5
_LARGEST_WEIGHT = 1e12
"""Largest weight of a level of size one."""
_STEPS = 40
"""Number of bisections; the base is then exact to about ten digits."""
_MOST_NUMBERS = 2 * 10**7
"""Rows are thinned out evenly until rows times levels are at most this many."""
_BUDGET_NUMBERS = 4 * 10**6
"""The same for the budget, which is about a mean and a quantile over the rows, not about rare
levels."""
_TIE = 1e-9
"""If the lower half of the variance ends within this share of a row, both neighbours count."""


def level_weights(
    bases: Sequence[FittedBasis],
    matrix: FloatArray,
    weights: FloatArray,
    base: float | None,
    max_order: int | None,
    known: KnownSizes | None = None,
) -> tuple[tuple[float, ...], ...]:
    """Return d_ml for all variables and levels: base^e, or from the data if ``base`` is None.

    Parameters
    ----------
    bases : sequence of FittedBasis
        One per column of the matrix.
    matrix : ndarray of shape (n, p)
        Training rows.
    weights : ndarray of shape (n,)
        Positive weights of the rows, of any sum.
    base : float or None
        The base b, for weights without sizes.
    max_order : int or None
        Largest number of variables that may interact.
    known : dict, optional
        Sizes from these rows and weights, which need not be computed again; new ones are added.
    """
    if base is None and all(basis.constant_level for basis in bases):
        with one_blas_thread():
            sizes = LevelSizes(bases, matrix, weights, known)
            return sizes.weights(sizes.base(max_order))
    with np.errstate(over="ignore"):
        return tuple(
            tuple(np.power(base or _PAPER_BASE, np.array(basis.exponents)).tolist())
            for basis in bases
        )


class LevelSizes:
    """|phi_ml(x_i)|^2 for all levels of all variables, and the weights that follow from them.

    Parameters
    ----------
    bases : sequence of FittedBasis
        One per column of the matrix, with a constant level 0.
    matrix : ndarray of shape (n, p)
        Training rows.
    weights : ndarray of shape (n,)
        Positive weights of the rows, of any sum.
    known : dict, optional
        As for :func:`level_weights`.
    """

    def __init__(
        self,
        bases: Sequence[FittedBasis],
        matrix: FloatArray,
        weights: FloatArray,
        known: KnownSizes | None = None,
    ) -> None:
        n_numbers = len(matrix) * max(1, sum(basis.max_level + 1 for basis in bases))
        step = -(-n_numbers // _MOST_NUMBERS)
        rows, omega = matrix[::step], weights[::step] / np.sum(weights[::step])
        few = -(-n_numbers // _BUDGET_NUMBERS // step)
        known = {} if known is None else known
        self._squares, self._sizes = [], []
        for m, basis in enumerate(bases):
            basis_of, sizes = known.get((m, step), (None, np.ones(1)))
            column = np.ascontiguousarray(rows[:, m])
            if basis_of is not basis:
                squares = _row_squares(basis, column)
                jobs = list(squares)
                found = in_threads(
                    lambda one: level_size(one, omega), jobs, len(column), timed=False
                )
                sizes = np.array([1.0, *found])
                known[m, step] = (basis, sizes)
                squares = squares[:, ::few]
            else:
                squares = _row_squares(basis, column[::few])
            self._squares.append(np.ascontiguousarray(squares))
            self._sizes.append(sizes)
        self._omega = omega[::few] / np.sum(omega[::few])
        self._parents = [basis.parents for basis in bases]
        self._exponents = [np.array(basis.exponents) for basis in bases]

    def weights(self, base: float) -> tuple[tuple[float, ...], ...]:
        """Return d_ml = s_ml base^e_ml for all variables and levels, with d_m0 = 1."""
        return tuple(
            tuple((sizes * np.power(base, exponents)).tolist())
            for sizes, exponents in zip(self._sizes, self._exponents, strict=True)
        )

    def base(self, max_order: int | None = None) -> float:
        """Return the smallest base that keeps the budget."""
        largest = max((float(np.max(e)) for e in self._exponents), default=0.0)
        low, high = _LEAST_BASE, float(_LARGEST_WEIGHT ** (1.0 / max(1.0, largest)))
        if self._fits(low, max_order):
            return low
        for _ in range(_STEPS):
            middle = float(np.sqrt(low * high))
            if self._fits(middle, max_order):
                high = middle
            else:
                low = middle
        return high

    def log_diagonal(self, base: float, max_order: int | None = None) -> FloatArray:
        """Return log K_ii of the rows, shape (n,)."""
        parts = []
        for m, weights in enumerate(self.weights(base)):
            totals = [1.0]
            for parent, weight in zip(self._parents[m], weights[1:], strict=True):
                totals.append(totals[parent] + weight)
            parts.append(np.array(totals[1:]) ** -2.0 @ self._squares[m])
        if max_order is None or max_order >= len(parts):
            return np.asarray(np.sum(np.log1p(parts), axis=0))
        # by_order[k] is the sum over all products of k variables.
        by_order = np.zeros((max_order + 1, len(self._omega)))
        by_order[0] = 1.0
        for part in parts:
            by_order[1:] += by_order[:-1] * part
        return np.asarray(np.log(np.sum(by_order, axis=0)))

    def _fits(self, base: float, max_order: int | None) -> bool:
        logs = self.log_diagonal(base, max_order)
        mean = float(self._omega @ logs)
        upper = float(np.quantile(logs, _UPPER, weights=self._omega, method="inverted_cdf"))
        return mean <= _MEAN and upper - mean <= _SPREAD


def _row_squares(basis: FittedBasis, column: FloatArray) -> FloatArray:
    """Return |phi_l(x_i)|^2 for the levels l >= 1, shape (q, n)."""
    out = np.empty((basis.max_level, len(column)))
    for target, level in zip(out, basis.transform(column)[1:], strict=True):
        np.einsum("ij,ij->i", level, level, out=target)
    return out


def level_size(squares: FloatArray, omega: FloatArray) -> float:
    """Return s_l, the root of the median of the squares, rows weighted by their squares."""
    order = np.argsort(squares, kind="stable")
    shares = np.cumsum((omega * squares)[order])
    if not shares[-1] > 0.0:
        return 1.0
    shares /= shares[-1]
    low, high = np.searchsorted(shares, [0.5 - _TIE, 0.5 + _TIE])
    middle = 0.5 * float(squares[order[low]] + squares[order[high]])
    return float(np.sqrt(max(1.0, middle)))
