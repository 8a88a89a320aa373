"""Which pairs of levels can violate: bounds that spare most of them their score.

For two levels v, w of different variables, with weights d, and any dual points alpha and alpha0,

    |a_vw(alpha)| <= |s| |a_vw(alpha0)| + |rows of Phi_v scaled by (alpha - s alpha0) / u|
                                          |rows of Phi_w scaled by u|,      u = sqrt(omega),

by Cauchy and Schwarz (norms of Frobenius, s any number). With the largest |a_vw(alpha0)| / d_w
over w known from one pass over all pairs, that bounds all pairs of v at the cost of one product
with v. Before any pass alpha0 is zero, and the bound is a norm, which is enough to rule out deep
levels while lambda is large. With several outputs |alpha_i| is the norm over them. From one round
or lambda to the next alpha changes little, so a pass over all pairs is needed only now and then.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hikernel.engines.protocol import FloatArray, GridEngine, Node
from hikernel.graphs import Grid

__all__ = ["PairScreen"]

_MOST_SCORES = 10**12
"""Rows (or pairs of rows, from Gram matrices) times pairs of levels that are scored in one round at
most: some ten seconds on two cores. The prefixes with the largest bounds come first."""

_REFERENCES = 4
"""Dual points whose passes are remembered."""

_REFRESH = 0.5
"""Share of prefixes from which on all are scored, to start anew from there."""


class PairScreen:
    """Bounds on the scores of all products of two levels, kept up from round to round.

    Parameters
    ----------
    engine : GridEngine
        The rows.
    graph : Grid
        The weights.
    """

    def __init__(self, engine: GridEngine, graph: Grid) -> None:
        self._engine = engine
        self._prefixes: list[Node] = [(pair,) for pair in engine.level_pairs]
        self._index = {prefix: i for i, prefix in enumerate(self._prefixes)}
        self._weights = np.array([graph.weight(prefix) for prefix in self._prefixes])
        self._roots = np.sqrt(engine.row_weights)
        sizes = np.sqrt(engine.level_squares(self._roots)) / self._weights
        self._largest = float(np.max(sizes, initial=0.0))
        self._references: list[FloatArray] = []
        self._scores = np.zeros(len(self._prefixes))
        self._source = np.full(len(self._prefixes), -1)  # which reference; -1 is alpha0 = 0

    def open_prefixes(self, alpha: FloatArray, level: float) -> list[Node]:
        """Return the levels that can be part of a pair with |a|^2 / d^2 above ``level``."""
        bounds = self._bounds(alpha)
        chosen: NDArray[np.intp] = np.flatnonzero(bounds**2 > level)
        if len(chosen) > _REFRESH * len(bounds):
            chosen = np.arange(len(bounds))
        n_outputs = 1 if alpha.ndim == 1 else alpha.shape[1]
        most = _MOST_SCORES // max(1, self._engine.score_work * len(bounds) * n_outputs)
        if len(chosen) > most:
            chosen = chosen[np.argsort(-bounds[chosen], kind="stable")[:most]]
        return [self._prefixes[i] for i in chosen]

    def update(self, alpha: FloatArray, prefixes: Sequence[Node], largest: FloatArray) -> None:
        """Take note of the largest |a|^2 / d^2 over the pairs of some levels."""
        if not prefixes or not np.any(alpha):
            return
        index = np.array([self._index[prefix] for prefix in prefixes])
        if len(self._references) == _REFERENCES:
            # The oldest goes; levels that hang on it fall back to the bound by norms.
            del self._references[0]
            self._scores[self._source == 0] = 0.0
            self._source = np.maximum(self._source - 1, -1)
        self._references.append(alpha.copy())
        self._scores[index] = np.sqrt(largest)
        self._source[index] = len(self._references) - 1

    def _bounds(self, alpha: FloatArray) -> FloatArray:
        out = np.empty(len(self._prefixes))
        for source in np.unique(self._source):
            here = self._source == source
            factor, change = 0.0, alpha
            if source >= 0:
                reference = self._references[source]
                factor = float(np.vdot(alpha, reference) / np.vdot(reference, reference))
                change = alpha - factor * reference
            rows = np.abs(change) if change.ndim == 1 else np.linalg.norm(change, axis=1)
            norms = np.sqrt(self._engine.level_squares(rows / self._roots)) / self._weights
            out[here] = (abs(factor) * self._scores + norms * self._largest)[here]
        return out
