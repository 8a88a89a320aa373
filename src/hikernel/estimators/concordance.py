"""Harrell's concordance: how often the row with the earlier event has the larger risk score."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hikernel.engines.protocol import FloatArray

__all__ = ["concordance"]

_TIED = 1e-12
"""Difference of risk scores up to which they are equal, relative to the largest one."""


def concordance(
    event: NDArray[np.bool_], time: FloatArray, risk: FloatArray, weights: FloatArray
) -> float:
    """Return Harrell's concordance; 0.5 is no better than chance.

    A pair (i, j) can be compared if i has an event, and j either a later time or the same time and
    no event. It is concordant if i has the larger risk score; equal scores count one half. A pair
    has the weight of both rows. The cost is O(n log^2 n).

    Parameters
    ----------
    event, time, risk, weights : ndarray of shape (n,)
        Events, times, risk scores, and weights of the rows.

    Raises
    ------
    ValueError
        If no two rows can be compared.

    Examples
    --------
    >>> flags, ones = np.array([True, True, False]), np.ones(3)
    >>> concordance(flags, np.array([1.0, 2.0, 3.0]), np.array([3.0, 0.0, 1.0]), ones)
    0.6666666666666666
    """
    # Rows by decreasing time, at equal times censored ones first: the rows that event i can be
    # compared with are the first ones up to its time, without the events of that time.
    order = np.lexsort((event, -time))
    event, time, risk, weights = event[order], time[order], risk[order], weights[order]
    later = np.searchsorted(-time, -time, side="left")
    censored = np.append(0, np.cumsum(~event))
    upto = np.searchsorted(-time, -time, side="right")
    stop = (later + censored[upto] - censored[later])[event]
    ranks = _ranks(risk)
    comparable = float(weights[event] @ np.append(0.0, np.cumsum(weights))[stop])
    if not comparable > 0.0:
        raise ValueError(
            "No two rows can be compared: an event is needed, and a row that was observed longer."
        )
    below = _prefix_weights(ranks, weights, stop, ranks[event])
    upto_equal = _prefix_weights(ranks, weights, stop, ranks[event] + 1)
    return float(weights[event] @ (0.5 * (below + upto_equal))) / comparable


def _ranks(risk: FloatArray) -> NDArray[np.intp]:
    """Return ranks from 0; scores that differ by rounding only have the same rank."""
    order = np.argsort(risk, kind="stable")
    gap = _TIED * float(np.max(np.abs(risk), initial=0.0))
    ranks = np.empty(len(risk), dtype=np.intp)
    ranks[order] = np.append(0, np.cumsum(np.diff(risk[order]) > gap))
    return ranks


def _prefix_weights(
    ranks: NDArray[np.intp], weights: FloatArray, stop: NDArray[np.intp], limit: NDArray[np.intp]
) -> FloatArray:
    """Return for each query the weight of the entries before ``stop`` with a rank below ``limit``.

    The entries before ``stop`` are a union of blocks, one of size 2^b for each bit b of ``stop``.
    Within the blocks of one size, entries are sorted by rank.
    """
    n, out = len(ranks), np.zeros(len(stop))
    width = n + 2
    for bit in range(n.bit_length()):
        chosen = (stop >> bit) & 1 == 1
        block = np.arange(n) >> bit
        keys = block * width + ranks
        order = np.argsort(keys, kind="stable")
        sums = np.append(0.0, np.cumsum(weights[order]))
        wanted = ((stop[chosen] >> (bit + 1)) << 1) * width
        low = np.searchsorted(keys[order], wanted)
        high = np.searchsorted(keys[order], wanted + limit[chosen])
        out[chosen] += sums[high] - sums[low]
    return out
