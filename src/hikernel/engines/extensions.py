"""Scores of many extensions at once: from products of columns to squares by prefix and level."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hikernel.engines.features import Blocks
from hikernel.engines.protocol import FloatArray, Node

__all__ = ["mark_present", "sums_of_squares"]


def sums_of_squares(
    squares: FloatArray, level_starts: Sequence[int], widths: Sequence[int], single: bool
) -> FloatArray:
    """Return the sums over the columns of each prefix and of each level, which start as given.

    ``single`` tells that every level has one column, so that no sum is needed.
    """
    if single:
        return squares
    starts = np.array(level_starts, dtype=np.intp)
    return Blocks(widths).sum(np.asarray(np.add.reduceat(squares, starts, axis=1)))


def mark_present(
    out: FloatArray, prefixes: Sequence[Node], pairs: Sequence[tuple[int, int]]
) -> None:
    """Write NaN where a prefix already contains the variable of a (variable, level) pair."""
    variables = np.array([m for m, _ in pairs], dtype=np.intp)  # in increasing order
    present = np.array([m for prefix in prefixes for m, _ in prefix], dtype=np.intp)
    rows = np.repeat(np.arange(len(prefixes)), [len(prefix) for prefix in prefixes])
    first = np.searchsorted(variables, present)
    counts = np.searchsorted(variables, present, side="right") - first
    # The columns of each variable that is present: first, first + 1, ...
    within = np.arange(np.sum(counts)) - np.repeat(np.cumsum(counts) - counts, counts)
    out[np.repeat(rows, counts), np.repeat(first, counts) + within] = np.nan
