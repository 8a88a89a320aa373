"""Estimates of descendant sums from random signs: unbiased, with a cost linear in the rows.

Each variable's factor F (S_{m,j} = F F') is multiplied by a vector r_m of independent random signs.
Then z_t(x_i) = prod_m (F_{m,t_m} r_m)_i has E z_t(x_i) z_t(x_k) = prod_m S_{m,t_m}(x_i, x_k), and

    y_t = sum_i alpha_i z_t(x_i),     E y_t^2 = U(t).

With several outputs alpha_i is replaced by sum_c s_c alpha_ic, where the s_c are independent random
signs of the draw. As E s_c s_d is zero for c != d, E y_t^2 is the sum of the U(t) of the outputs.

One draw is the same computation as one tile of the exact sums, with rows in place of pairs of rows.
The squares y_t^2 have a heavy upper tail, but a mean of M nonnegative numbers is rarely far below
its expectation: P(mean <= (1 - e) U) <= exp(-M e^2 / (2 kappa)) with kappa = E y^4 / (E y^2)^2,
because the lower tail of a nonnegative variable X is sub-Gaussian with variance factor E X^2. Hence

    U <= mean / (1 - e),   e = sqrt(2 kappa log(n_nodes / risk) / M)

with probability at least 1 - risk for all nodes at once. kappa is estimated from the same draws,
with a margin. This makes the bound approximate; ``benchmarks/statistical_bound.py`` measures its
coverage. The draws would miss rows whose z are huge with a tiny probability. Two exact parts of the
sum include such rows, the diagonal sum_i alpha_i^2 K_ii and the sum over all pairs of the heaviest
rows: if one is much larger than the mean, the bound is infinity.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hikernel.engines.features import by_output
from hikernel.engines.machine import TILE_NUMBERS, check_time, in_threads
from hikernel.engines.protocol import FloatArray, Node
from hikernel.engines.watch import watched, watching

__all__ = ["KURTOSIS_MARGIN", "draw_signs", "exact_parts", "run_draws", "sketched_bounds"]

KURTOSIS_MARGIN = 2.0
"""Factor on the estimated kurtosis, because M draws of a heavy tail tend to underestimate it."""

_UNSEEN = 2.0
"""Ratio of an exact part to the mean above which the draws are not trusted."""

_HEAVIEST = 500
"""Number of the heaviest rows; their 125,250 pairs cost what as many rows cost in one draw."""


def sketched_bounds(draws: FloatArray, risk: float, parts: FloatArray | None = None) -> FloatArray:
    """Return upper bounds on E y_t^2 that hold for all nodes with probability 1 - risk.

    Parameters
    ----------
    draws : ndarray of shape (M, n_nodes)
        Independent draws of y_t.
    risk : float
        Probability that some bound is too small.
    parts : ndarray of shape (n_nodes,), optional
        Exact parts of the sums, at least the diagonal sum_i alpha_i^2 K_ii. If one is more than
        twice the mean, rows whose z is rarely huge dominate the sum, and the draws have missed
        them: the bound is infinity.

    Returns
    -------
    ndarray of shape (n_nodes,)
        Infinity where M draws do not suffice for a bound; zero where the diagonal is zero, or
        all draws where there are no parts.

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
    if parts is None:
        nothing = means == 0.0
    else:
        # U is the value of a quadratic form, so it vanishes with its diagonal.
        nothing = parts == 0.0
        bounds = np.where(parts > _UNSEEN * means, np.inf, bounds)
    # Draws that overflow give no bound.
    return np.where(nothing, 0.0, np.where(np.isfinite(bounds), bounds, np.inf))


class DrawingEngine(Protocol):
    """What ``exact_parts`` asks of an engine, besides the verbs that all engines have."""

    def subset(self, rows: NDArray[np.intp]) -> Any:
        """Return an engine over some of the rows."""
        ...

    def log_kernels(self, scales: Sequence[FloatArray]) -> FloatArray:
        """Return log prod_m S_{m,0}(x_i, x_i), shape (n,)."""
        ...

    def tail_diagonal(
        self,
        nodes: Sequence[Node],
        dual_coef: FloatArray,
        scales: Sequence[FloatArray],
        max_order: int | None,
    ) -> FloatArray:
        """Return sum_i |alpha_i|^2 prod_m S_{m,t_m}(x_i, x_i), the diagonal part of U(t)."""
        ...


def exact_parts(
    engine: DrawingEngine,
    nodes: Sequence[Node],
    dual_coef: FloatArray,
    scales: Sequence[FloatArray],
    max_order: int | None,
) -> FloatArray:
    """Return the larger of two exact parts of U(t), for each node t.

    They are the diagonal, and the sum over all pairs of the 500 rows with the largest
    |alpha_i|^2 prod_m S_{m,0}(x_i, x_i), rounded up.
    """
    with np.errstate(all="ignore"):  # rows of weight zero come last
        logs = np.log(np.sum(by_output(dual_coef) ** 2, axis=1)) + engine.log_kernels(scales)
    rows = np.sort(np.argsort(-logs, kind="stable")[:_HEAVIEST])
    with watching(None):  # a small part of the work that is watched
        among = engine.subset(rows).tail_sums(nodes, dual_coef[rows], scales, max_order)
    diagonal = engine.tail_diagonal(nodes, dual_coef, scales, max_order)
    return np.asarray(np.maximum(diagonal, among))


def run_draws(
    draw: Callable[[slice, dict[int, FloatArray], FloatArray], FloatArray],
    factors: Sequence[FloatArray],
    dual_coef: FloatArray,
    n_draws: int,
    seed: int,
) -> FloatArray:
    """Return y_t for independent draws, shape (n_draws, n_nodes).

    Parameters
    ----------
    draw : callable
        Takes a slice of rows, the signs of every factor (by position) and the weights of these
        rows, and returns the contribution of these rows to y_t, shape (n_nodes,).
    factors : sequence of ndarray of shape (n_rows, width)
        The factors F that are multiplied by random signs.
    dual_coef : ndarray of shape (n_rows,) or (n_rows, k)
        alpha, the weights of the rows. k outputs are combined with random signs.
    n_draws, seed : int
        Number of draws, and seed of their generators. Each draw has its own generator, so the
        result does not depend on the number of threads.
    """
    n_rows = len(dual_coef)
    outputs = by_output(dual_coef)
    step = max(256, TILE_NUMBERS // max(1, len(factors)))
    chunks = [slice(s, min(s + step, n_rows)) for s in range(0, n_rows, step)]

    widths = [factor.shape[1] for factor in factors]

    def work(number: int) -> FloatArray:
        signs, of_outputs = draw_signs(seed, number, widths, outputs.shape[1])
        weight = outputs @ of_outputs
        parts = []
        with np.errstate(all="ignore"):
            for rows in chunks:
                check_time()
                parts.append(draw(rows, signs, weight[rows]))
            return np.asarray(np.sum(parts, axis=0))

    found = in_threads(work, list(range(n_draws)), n_rows)
    return np.array(list(watched(found, n_draws)))


def draw_signs(
    seed: int, number: int, widths: Sequence[int], n_outputs: int
) -> tuple[dict[int, FloatArray], FloatArray]:
    """Return the signs of one draw: by position of the factor, and of the outputs.

    A single output has no sign of its own: y_t and -y_t have the same square.
    """
    rng = np.random.default_rng([seed, number])
    signs = {k: _signs(rng, width) for k, width in enumerate(widths)}
    return signs, np.ones(1) if n_outputs == 1 else _signs(rng, n_outputs)


def _signs(rng: np.random.Generator, size: int) -> FloatArray:
    return np.asarray(rng.integers(0, 2, size=size) * 2.0 - 1.0)
