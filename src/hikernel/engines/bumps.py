"""Scores of extensions if level 0 of some variables is not constant (a "bump").

Such a variable contributes a feature to every node, even if it is absent from the node. Let E be
the set of these variables. The features of prefix + (m, j) are

    own levels of the prefix * phi_{m,j} * prod_{m' in E, absent, m' != m} phi_{m',0}.

The products over all absent variables but one are computed from cumulative products in both
directions, without division. One prefix therefore costs a few passes over the columns, whatever the
number of variables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from hikernel.engines.features import Blocks, NodeFeatures
from hikernel.engines.protocol import FloatArray, Node

__all__ = ["BumpExtensions"]


class BumpExtensions:
    """Scores of all one-variable extensions of a prefix; each level 0 must have at most one column.

    Parameters
    ----------
    columns : ndarray of shape (n, C)
        All stored one-variable features.
    spans : mapping of (variable, level) to slice
        The columns of each stored level.
    pairs : sequence of (variable, level)
        The levels above 0, in the order in which scores are returned.
    features : NodeFeatures
        Computes the features of the prefixes.
    """

    def __init__(
        self,
        columns: FloatArray,
        spans: Mapping[tuple[int, int], slice],
        pairs: Sequence[tuple[int, int]],
        features: NodeFeatures,
    ) -> None:
        self._columns = columns
        self._features = features
        self._pairs = list(pairs)
        blocks = [np.arange(spans[pair].start, spans[pair].stop) for pair in pairs]
        self._levels = np.concatenate(blocks) if blocks else np.empty(0, dtype=np.intp)
        self._blocks = Blocks([len(block) for block in blocks])
        self._variables = self._blocks.spread(np.array([m for m, _ in pairs]))
        self._bumps = {m: spans[m, 0].start for m in features.everywhere}

    def products(
        self, prefix: Node, weighted: FloatArray, rows: slice, *, absolute: bool
    ) -> FloatArray:
        """Return Phi' weighted over some rows, shape (prefix columns, k, level columns).

        ``weighted`` has shape (number of rows, k). With ``absolute`` all numbers are replaced by
        their magnitudes.
        """
        own = self._features.own(prefix, rows)
        levels = self._columns[rows][:, self._levels] * self._others(prefix, rows)
        if absolute:
            own, levels, weighted = np.abs(own), np.abs(levels), np.abs(weighted)
        left = (own[:, :, None] * weighted[:, None, :]).reshape(len(own), -1)
        out = left.T @ levels
        return np.asarray(out.reshape(own.shape[1], weighted.shape[1], -1))

    def squares(self, scores: FloatArray, prefix: Node) -> FloatArray:
        """Return the squared score of each extension; NaN if the prefix contains its variable."""
        out = self._blocks.sum(np.sum(scores**2, axis=(0, 1)))
        present = {m for m, _ in prefix}
        out[[m in present for m, _ in self._pairs]] = np.nan
        return np.asarray(out)

    def _others(self, prefix: Node, rows: slice) -> FloatArray:
        """Return, per level column, the product of the bumps of all other absent variables."""
        present = {m for m, _ in prefix}
        absent = [m for m in self._bumps if m not in present]
        bumps = self._columns[rows][:, [self._bumps[m] for m in absent]]
        before = np.ones((len(bumps), len(absent) + 1))
        np.cumprod(bumps, axis=1, out=before[:, 1:])
        after = np.ones_like(before)
        after[:, :-1] = np.cumprod(bumps[:, ::-1], axis=1)[:, ::-1]
        # Column i is the product without absent variable i; the last one is the full product.
        without = np.hstack([before[:, :-1] * after[:, 1:], before[:, -1:]])
        position = {m: i for i, m in enumerate(absent)}
        return without[:, [position.get(int(m), len(absent)) for m in self._variables]]
