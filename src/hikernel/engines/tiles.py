"""Pairs of rows in tiles, on all cores, and the factors of their kernels."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np

from hikernel.engines.protocol import FloatArray
from hikernel.engines.threads import one_blas_thread

__all__ = [
    "TILE_NUMBERS",
    "Tile",
    "by_output",
    "cut_blocks",
    "cut_tiles",
    "in_threads",
    "pair_weights",
    "scaled_factor",
]

Tile = tuple[slice, slice]
Job = TypeVar("Job")

TILE_NUMBERS = 2**20
"""Numbers in each of the large arrays of a tile (8 MiB)."""

MIN_ROWS_FOR_THREADS = 500
"""Below this many rows starting threads costs more than it saves."""


def cut_tiles(n: int, n_stacked: int) -> list[Tile]:
    """Cut the pairs i <= k of n rows into square tiles, for ``n_stacked`` numbers a pair."""
    side = max(16, min(n, int(np.sqrt(TILE_NUMBERS / max(1, n_stacked)))))
    cuts = [slice(s, min(s + side, n)) for s in range(0, n, side)]
    return [(rows, cols) for i, rows in enumerate(cuts) for cols in cuts[i:]]


def by_output(vector: FloatArray) -> FloatArray:
    """Return shape (n, k) for a vector of shape (n,), one output, or (n, k)."""
    return vector[:, None] if vector.ndim == 1 else vector


def pair_weights(alpha: FloatArray, tile: Tile) -> FloatArray:
    """Return alpha_i alpha_k, summed over the outputs, for the pairs of a tile.

    Parameters
    ----------
    alpha : ndarray of shape (n, n_outputs)
        One column per output.
    tile : (slice, slice)
        Rows i and rows k. A tile off the diagonal stands for its mirror image too: doubled.

    Returns
    -------
    ndarray of shape (n_pairs,)
    """
    left, right = (alpha[rows] for rows in tile)
    weight = np.outer(left, right) if alpha.shape[1] == 1 else left @ right.T
    if tile[0].start != tile[1].start:
        weight *= 2.0
    return np.asarray(weight.ravel())


def in_threads(
    work: Callable[[Job], FloatArray], jobs: list[Job], n_rows: int
) -> Iterator[FloatArray]:
    """Yield the results of all jobs, in order; one per core at a time, BLAS kept to one."""
    if n_rows < MIN_ROWS_FOR_THREADS:
        yield from map(work, jobs)
        return
    with one_blas_thread(), ThreadPoolExecutor(os.cpu_count()) as pool:
        # A window keeps the number of waiting results small.
        window = 4 * (os.cpu_count() or 1)
        for start in range(0, len(jobs), window):
            yield from pool.map(work, jobs[start : start + window])


def scaled_factor(
    levels: Sequence[FloatArray | None], scales: FloatArray, n_rows: int
) -> FloatArray:
    """Return F with F F' = sum_l scales_l k_l; None stands for the kernel that is one."""
    columns = []
    for block, scale in zip(levels, scales, strict=True):
        features = np.ones((n_rows, 1)) if block is None else block
        columns.append(np.sqrt(scale) * features)
    return np.hstack(columns)


def cut_blocks(widths: Sequence[int], most: int) -> Iterator[slice]:
    """Cut a list of nodes so that a block has at most ``most`` columns, or a single node."""
    start, total = 0, 0
    for i, width in enumerate(widths):
        if total and total + width > most:
            yield slice(start, i)
            start, total = i, 0
        total += width
    if widths:
        yield slice(start, len(widths))
