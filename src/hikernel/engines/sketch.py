"""Descendant sums from random signs: unbiased, linear in the rows.

Each variable's factor F (S_{m,j} = F F') is multiplied by a vector of independent signs, so that
z_t(x_i) = prod_m (F_{m,t_m} r_m)_i has E z_t(x_i) z_t(x_k) = prod_m S_{m,t_m}(x_i, x_k), and

    y_t = sum_i alpha_i z_t(x_i),     E y_t^2 = U(t).

With several outputs alpha_i stands for sum_c s_c alpha_ic, the s_c independent signs of the draw:
E s_c s_d is zero for c != d, and E y_t^2 the sum of the outputs' U(t).

One draw is the same computation as one tile of the exact sums, with rows in place of pairs of rows.
The squares have heavy tails upwards, but a mean of nonnegative numbers rarely falls far below its
expectation: P(mean <= (1 - e) U) <= exp(-M e^2 / (2 kappa)), kappa = E y^4 / (E y^2)^2 (the lower
tail of a nonnegative variable is sub-Gaussian with variance factor E X^2). Hence

    U <= mean / (1 - e),   e = sqrt(2 kappa log(n_nodes / risk) / M)

with probability at least 1 - risk for all nodes at once. kappa is estimated from the same draws,
with a margin; that makes the bound approximate, and its coverage is tested. A row whose z is huge
with a tiny probability would go unseen; the exact diagonal sum_i alpha_i^2 K_ii counts it, and
nothing is bounded where that is much larger than the mean.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from hikernel.engines.features import by_output
from hikernel.engines.machine import TILE_NUMBERS, in_threads
from hikernel.engines.protocol import FloatArray

__all__ = ["KURTOSIS_MARGIN", "run_draws", "sketched_bounds"]

KURTOSIS_MARGIN = 2.0
"""Factor on the estimated kurtosis: an estimate from M draws of a heavy tail runs low."""

_UNSEEN = 2.0
"""Diagonal over mean above which the draws cannot be trusted."""


def sketched_bounds(
    draws: FloatArray, risk: float, diagonal: FloatArray | None = None
) -> FloatArray:
    """Return upper bounds on E y_t^2 that hold for all nodes with probability 1 - risk.

    Parameters
    ----------
    draws : ndarray of shape (M, n_nodes)
        Independent draws of y_t.
    risk : float
        Probability that some bound is too small.
    diagonal : ndarray of shape (n_nodes,), optional
        sum_i alpha_i^2 K_ii. Where it is more than twice the mean, rows of rare and huge z carry
        the sum and the draws have not seen them: nothing is bounded.

    Returns
    -------
    ndarray of shape (n_nodes,)
        Infinity where M draws do not suffice for a bound.

    Examples
    --------
    >>> y = np.random.default_rng(0).standard_normal((1000, 1))
    >>> bool(1.0 < sketched_bounds(y, 0.05)[0] < 1.5)
    True
    """
    n_draws, n_nodes = draws.shape
    squares = draws**2
    means = np.mean(squares, axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        kurtosis = np.mean(squares**2, axis=0) / means**2
        shortfall = np.sqrt(
            2.0 * KURTOSIS_MARGIN * kurtosis * np.log(max(1, n_nodes) / risk) / n_draws
        )
        bounds = np.where(shortfall < 1.0, means / (1.0 - shortfall), np.inf)
    if diagonal is not None:
        bounds = np.where(diagonal > _UNSEEN * means, np.inf, bounds)
    # All draws zero: every term of the sum is zero. Draws that overflowed bound nothing.
    return np.where(means == 0.0, 0.0, np.where(np.isfinite(bounds), bounds, np.inf))


def run_draws(
    draw: Callable[[slice, dict[int, FloatArray], FloatArray], FloatArray],
    factors: Sequence[FloatArray],
    dual_coef: FloatArray,
    n_draws: int,
    seed: int,
) -> FloatArray:
    """Return y_t of independent draws, shape (n_draws, n_nodes).

    Parameters
    ----------
    draw : callable
        Given rows, the signs of every factor (by position) and the weights of those rows,
        returns their part of y_t.
    factors : sequence of ndarray of shape (n_rows, width)
        The factors that get signs.
    dual_coef : ndarray of shape (n_rows,) or (n_rows, k)
        alpha. Weights of the rows; those of k outputs are combined with random signs.
    n_draws, seed : int
        Draws, and the seed of their generators (one per draw, so that threads don't matter).
    """
    n_rows = len(dual_coef)
    outputs = by_output(dual_coef)
    step = max(256, TILE_NUMBERS // max(1, len(factors)))
    chunks = [slice(s, min(s + step, n_rows)) for s in range(0, n_rows, step)]

    def work(number: int) -> FloatArray:
        rng = np.random.default_rng([seed, number])
        signs = {k: _signs(rng, factor.shape[1]) for k, factor in enumerate(factors)}
        n_outputs = outputs.shape[1]
        # A single output needs no sign: y_t and -y_t have the same square.
        weight = outputs.ravel() if n_outputs == 1 else outputs @ _signs(rng, n_outputs)
        with np.errstate(all="ignore"):
            return np.asarray(np.sum([draw(rows, signs, weight[rows]) for rows in chunks], axis=0))

    return np.array(list(in_threads(work, list(range(n_draws)), n_rows)))


def _signs(rng: np.random.Generator, size: int) -> FloatArray:
    return np.asarray(rng.integers(0, 2, size=size) * 2.0 - 1.0)
