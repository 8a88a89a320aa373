"""Scores of extensions on a device if level 0 of some variables is not constant (a "bump").

The formula and the cumulative products are those of ``bumps``; here the levels are rows of a table.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from hikernel.engines.features import NodeFeatures
from hikernel.engines.protocol import Node
from hikernel.engines.torch_features import DeviceFeatures, to_device

__all__ = ["bump_scores"]

Tensor = Any


def bump_scores(
    features: DeviceFeatures,
    layout: NodeFeatures,
    prefix: Node,
    pairs: Sequence[tuple[int, int]],
    vectors: Tensor,
    with_sizes: bool,
) -> tuple[Tensor, Tensor]:
    """Return the scores of all extensions of a prefix, and the sums of the magnitudes.

    Parameters
    ----------
    features : DeviceFeatures
        The stored columns; each level 0 has at most one.
    layout : NodeFeatures
        Names the variables with bumps.
    prefix : Node
        The node that is extended.
    pairs : sequence of (variable, level)
        The levels above 0.
    vectors : tensor of shape (n, k)
        What the features are multiplied with.
    with_sizes : bool
        Whether the sums of magnitudes are wanted; they are zero otherwise.

    Returns
    -------
    scores, sizes : tensors of shape (prefix columns times k, columns of all levels)
    """
    spans, device = features.spans, features.device
    present = {m for m, _ in prefix}
    absent = [m for m in layout.everywhere if m not in present]
    position = {m: i for i, m in enumerate(absent)}
    blocks = [np.arange(spans[pair].start, spans[pair].stop) for pair in pairs]
    levels = to_device(np.concatenate([np.empty(0, dtype=np.intp), *blocks]), device)
    chosen = [position.get(m, len(absent)) for m, _ in pairs]
    # Without its own bump, for a level of an absent variable; the last one is the whole product.
    without = to_device(np.repeat(chosen, [len(block) for block in blocks]), device)
    bumps = to_device(np.array([spans[m, 0].start for m in absent], dtype=np.intp), device)
    own = features.own_index(prefix)
    scores = vectors.new_zeros((len(own) * vectors.shape[1], len(levels)))
    sizes = torch.zeros_like(scores)
    for rows in features.chunks(3 * len(levels) + len(scores) + 4 * len(absent)):
        table = features.table[:, rows]
        right = table.index_select(0, levels)
        right *= _others(table.index_select(0, bumps)).index_select(0, without)
        left = features.values(own, rows)[:, None, :] * vectors[rows].T
        left = left.reshape(len(scores), -1)
        scores += left @ right.T
        if with_sizes:
            sizes += left.abs_() @ right.abs_().T
    return scores, sizes


def _others(bumps: Tensor) -> Tensor:
    """Return the products of all rows but one, for each of them, and of all rows in the end."""
    n_bumps, n_rows = bumps.shape
    before, after = bumps.new_ones((2, n_bumps + 1, n_rows))
    if n_bumps:
        before[1:] = bumps.cumprod(0)
        after[:-1] = bumps.flip(0).cumprod(0).flip(0)
    return torch.cat([before[:-1] * after[1:], before[-1:]])
