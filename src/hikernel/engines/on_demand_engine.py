"""Engine of a graph whose nodes have one feature column each, computed on demand."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from hikernel.engines.features import Blocks, WeightedRows, centred_gram, normalised
from hikernel.engines.machine import require_memory
from hikernel.engines.protocol import FloatArray, Vertex

__all__ = ["OnDemandEngine"]


class OnDemandEngine(WeightedRows):
    """Engine that computes each feature column when it is needed and does not store it.

    Parameters
    ----------
    column : callable
        Maps a node to its column over all N rows, shape (N,).
    rows : ndarray of int of shape (n,)
        Positions, among the N rows, of the rows of this engine.
    row_weights : ndarray of shape (n,)
        Positive weights; they are normalised to sum to one.
    """

    def __init__(
        self,
        column: Callable[[Vertex], FloatArray],
        rows: NDArray[np.intp],
        row_weights: FloatArray,
    ) -> None:
        self._column = column
        self.rows = rows
        super().__init__(row_weights)

    def subset(self, rows: NDArray[np.intp]) -> OnDemandEngine:
        """Return an engine over some of the rows."""
        return OnDemandEngine(self._column, self.rows[rows], self._weights[rows])

    def width(self, node: Vertex) -> int:
        """Return 1, the number of feature columns of any node."""
        return 1

    @property
    def has_kernels(self) -> bool:
        """False: every node has a feature column."""
        return False

    def kernel_operator(self, nodes: Sequence[Vertex]) -> None:
        """Return None: every node has a feature column."""

    def features(self, nodes: Sequence[Vertex]) -> FloatArray:
        """Return the columns of the nodes, shape (n, m)."""
        require_memory(
            3 * self.n_rows * len(nodes),  # as they are, centred, and scaled by zeta
            f"The features of {len(nodes)} nodes for {self.n_rows} rows",
            "Lower max_kernels.",
        )
        out = np.empty((self.n_rows, len(nodes)), order="F")
        for i, node in enumerate(nodes):
            out[:, i] = self._column(node)[self.rows]
        return out

    def means(self, nodes: Sequence[Vertex], weights: FloatArray | None = None) -> FloatArray:
        """Return the weighted means of the columns."""
        omega = self._weights if weights is None else normalised(weights)
        return np.asarray(omega @ self.features(nodes))

    def gram(
        self,
        left: Sequence[Vertex],
        right: Sequence[Vertex],
        left_means: FloatArray,
        right_means: FloatArray,
        weights: FloatArray | None = None,
    ) -> FloatArray:
        """Return the centred cross moments of two lists of nodes."""
        weights = self._weights if weights is None else weights
        a, b = self.features(left), self.features(right)
        return centred_gram(a, b, left_means, right_means, weights)

    def gram_diagonal(self, nodes: Sequence[Vertex], means: FloatArray) -> FloatArray:
        """Return the variances of the columns."""
        return np.asarray(self._weights @ (self.features(nodes) - means) ** 2)

    def correlate(
        self, nodes: Sequence[Vertex], vector: FloatArray, *, absolute: bool = False
    ) -> FloatArray:
        """Return Phi' vector, or |Phi|' |vector| if ``absolute``."""
        features = self.features(nodes)
        if absolute:
            return np.asarray(np.abs(features).T @ np.abs(vector))
        return np.asarray(features.T @ vector)

    def score_squares(
        self, nodes: Sequence[Vertex], vector: FloatArray, *, rounded_up: bool = False
    ) -> FloatArray:
        """Return |Phi_w' vector|^2 for each node w, shape (len(nodes),).

        With ``rounded_up`` no entry is below its exact value.
        """
        scores = self.score_bounds(nodes, vector) if rounded_up else self.correlate(nodes, vector)
        return Blocks([1] * len(nodes)).squares(scores)

    def apply(self, nodes: Sequence[Vertex], coef: FloatArray) -> FloatArray:
        """Return Phi coef, shape (n,) or (n, k)."""
        return np.asarray(self.features(nodes) @ coef)
