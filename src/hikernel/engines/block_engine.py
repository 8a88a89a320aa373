"""Engine of a general graph: every node has a feature block or a Gram matrix.

All feature blocks are columns of one matrix, so that one product scores all nodes. Gram matrices
are not copied. A subset of the rows keeps a list of positions, unless its Gram matrices are small
enough to be copied.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from hikernel.engines.features import (
    Blocks,
    WeightedRows,
    centred_gram,
    normalised,
    rounding_margin,
)
from hikernel.engines.machine import require_memory
from hikernel.engines.node_kernels import (
    BlockKernel,
    DenseGram,
    KernelOperator,
    NodeKernel,
    restrict_all,
)
from hikernel.engines.protocol import FloatArray, Vertex

__all__ = ["BlockEngine"]

_CHUNK_NUMBERS = 2**18
"""Numbers in the columns that are processed at a time (2 MiB)."""


class BlockEngine(WeightedRows):
    """Engine whose nodes are given by feature blocks and Gram matrices.

    Parameters
    ----------
    blocks : mapping of node to ndarray of shape (n, r)
        Feature columns, r >= 1.
    grams : mapping of node to DenseGram
        Gram matrices of shape (n, n).
    row_weights : ndarray of shape (n,)
        Positive weights; they are normalised to sum to one.
    """

    def __init__(
        self,
        blocks: Mapping[Vertex, FloatArray],
        grams: Mapping[Vertex, DenseGram],
        row_weights: FloatArray,
    ) -> None:
        n = len(row_weights)
        super().__init__(row_weights)
        self._spans: dict[Vertex, slice] = {}
        start = 0
        for node, block in blocks.items():
            self._spans[node] = slice(start, start + block.shape[1])
            start += block.shape[1]
        require_memory(
            n * start,
            f"Storing {start} feature columns of {len(blocks)} nodes for {n} rows",
            "Use fewer rows or smaller blocks.",
        )
        self._columns = np.empty((n, start), order="F")
        for node, block in blocks.items():
            self._columns[:, self._spans[node]] = block
        self._grams = dict(grams)

    def subset(self, rows: NDArray[np.intp]) -> BlockEngine:
        """Return an engine over some of the rows; small Gram matrices and all blocks are copied."""
        out = object.__new__(BlockEngine)
        out._weights = normalised(self._weights[rows])
        out._spans = self._spans
        out._columns = np.asfortranarray(self._columns[rows])
        out._grams = restrict_all(self._grams, rows)
        return out

    def predict(
        self,
        nodes: Sequence[Vertex],
        coef: FloatArray,
        rows: NDArray[np.intp],
        support: NDArray[np.intp],
    ) -> FloatArray:
        """Return the sum of the nodes' functions on ``rows``, shape (len(rows),) or (len(rows), k).

        ``coef`` are the coordinates of functions that were fitted on the rows ``support``.
        """
        out, start = np.zeros((len(rows), *coef.shape[1:])), 0
        for node in nodes:
            if self.has_block(node):
                stop = start + self.width(node)
                out += self._columns[rows, self._spans[node]] @ coef[start:stop]
            else:
                stop = start + len(support)
                out += self._grams[node].restricted(rows, support).expand(coef[start:stop])
            start = stop
        return out

    def has_block(self, node: Vertex) -> bool:
        """Whether a node has feature columns."""
        return node in self._spans

    def width(self, node: Vertex) -> int:
        """Return the number of coordinates of a node: its columns, or n for a Gram matrix."""
        if node in self._spans:
            span = self._spans[node]
            return int(span.stop - span.start)
        return self._grams[node].width

    @property
    def has_kernels(self) -> bool:
        """Whether some node has a Gram matrix."""
        return bool(self._grams)

    def kernel_operator(self, nodes: Sequence[Vertex]) -> KernelOperator | None:
        """Return the nodes as kernels if one of them has a Gram matrix, else None."""
        if all(node in self._spans for node in nodes):
            return None
        return KernelOperator([self._kernel(node) for node in nodes], self.n_rows)

    def features(self, nodes: Sequence[Vertex]) -> FloatArray:
        """Return the (n, R) features of nodes that have blocks."""
        columns = self._positions(nodes)
        require_memory(
            3 * self.n_rows * len(columns),  # as they are, centred, and scaled by zeta
            f"The features of {len(nodes)} nodes for {self.n_rows} rows",
            "Lower max_kernels, or use smaller blocks.",
        )
        return np.asfortranarray(self._columns[:, columns])

    def means(self, nodes: Sequence[Vertex], weights: FloatArray | None = None) -> FloatArray:
        """Return the weighted mean of each coordinate over the rows, shape (R,)."""
        omega = self._weights if weights is None else normalised(weights)
        if not nodes:
            return np.empty(0)
        return np.concatenate([self._along_rows(node, omega) for node in nodes])

    def gram(
        self,
        left: Sequence[Vertex],
        right: Sequence[Vertex],
        left_means: FloatArray,
        right_means: FloatArray,
        weights: FloatArray | None = None,
    ) -> FloatArray:
        """Return the centred cross moments of nodes that have blocks."""
        weights = self._weights if weights is None else weights
        a, b = self._columns[:, self._positions(left)], self._columns[:, self._positions(right)]
        return centred_gram(a, b, left_means, right_means, weights)

    def gram_diagonal(self, nodes: Sequence[Vertex], means: FloatArray) -> FloatArray:
        """Return the weighted variances of the columns; infinity for nodes with a Gram matrix."""
        out, start = [np.empty(0)], 0
        for node in nodes:
            width = self.width(node)
            if node in self._spans:
                centred = self._columns[:, self._spans[node]] - means[start : start + width]
                out.append(self._weights @ centred**2)
            else:
                out.append(np.full(width, np.inf))
            start += width
        return np.concatenate(out)

    def correlate(
        self, nodes: Sequence[Vertex], vector: FloatArray, *, absolute: bool = False
    ) -> FloatArray:
        """Return the coordinates of K_w vector: Phi' vector, or ``vector`` for a Gram matrix.

        ``absolute`` (|Phi|' |vector|) is for nodes with blocks only.
        """
        if absolute:
            return np.asarray(np.abs(self._columns[:, self._positions(nodes)]).T @ np.abs(vector))
        if all(node in self._spans for node in nodes):
            return np.asarray(self._columns[:, self._positions(nodes)].T @ vector)
        return np.concatenate([self._kernel(node).coordinates(vector) for node in nodes])

    def score_squares(
        self, nodes: Sequence[Vertex], vector: FloatArray, *, rounded_up: bool = False
    ) -> FloatArray:
        """Return |Phi_w' vector|^2 for each node w, shape (len(nodes),).

        With ``rounded_up`` no entry is below its exact value.
        """
        out = np.zeros(len(nodes))
        known = {node: i for i, node in enumerate(nodes)}
        wide = [node for node in nodes if node not in self._spans]
        if len(wide) < len(nodes):
            # One product with all blocks is faster than copying the requested columns.
            scores = np.abs(self._columns.T @ vector)
            if rounded_up:
                scores += rounding_margin(self.n_rows) * self._absolute_scores(np.abs(vector))
            sums = Blocks([self.width(node) for node in self._spans]).squares(scores)
            for node, value in zip(self._spans, sums, strict=True):
                if node in known:
                    out[known[node]] = value
        if wide:
            operator = KernelOperator([self._kernel(node) for node in wide], self.n_rows)
            out[[known[node] for node in wide]] = operator.score_squares(
                vector, rounded_up=rounded_up
            )
        return out

    def apply(self, nodes: Sequence[Vertex], coef: FloatArray) -> FloatArray:
        """Return the sum of the nodes' functions on the rows, shape (n,) or (n, k)."""
        out, start = np.zeros((self.n_rows, *coef.shape[1:])), 0
        for node in nodes:
            width = self.width(node)
            part = coef[start : start + width]
            if np.any(part):
                out += self._kernel(node).expand(part)
            start += width
        return out

    def _kernel(self, node: Vertex) -> NodeKernel:
        if node in self._spans:
            return BlockKernel(self._columns[:, self._spans[node]])
        return self._grams[node]

    def _absolute_scores(self, sizes: FloatArray) -> FloatArray:
        """Return |Phi|' sizes for all columns, in chunks that avoid a full copy of |Phi|."""
        out = np.empty((self._columns.shape[1], *sizes.shape[1:]))
        step = max(1, _CHUNK_NUMBERS // max(self.n_rows, 1))
        for start in range(0, len(out), step):
            some = slice(start, start + step)
            out[some] = np.abs(self._columns[:, some]).T @ sizes
        return out

    def _along_rows(self, node: Vertex, omega: FloatArray) -> FloatArray:
        """Return omega' Phi, or omega' K."""
        if node in self._spans:
            return np.asarray(omega @ self._columns[:, self._spans[node]])
        return self._grams[node].apply(omega)

    def _positions(self, nodes: Sequence[Vertex]) -> NDArray[np.intp]:
        """Return the column positions of the blocks of some nodes."""
        spans = [self._spans[node] for node in nodes]
        if not spans:
            return np.empty(0, dtype=np.intp)
        return np.concatenate([np.arange(span.start, span.stop) for span in spans])
