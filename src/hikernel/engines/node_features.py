"""Node features from stored one-variable levels: row-wise Kronecker products, for some rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from hikernel.engines.protocol import FloatArray, Node

__all__ = ["NodeFeatures"]


class NodeFeatures:
    """Makes the features of nodes.

    Parameters
    ----------
    columns : ndarray of shape (n, C)
        All stored one-variable features, in Fortran order.
    spans : mapping of (variable, level) to slice
        Where each level stands; a level 0 that is identically one is not stored.
    widths : sequence of tuple of int
        ``widths[m][j]`` is the number of columns of level j of variable m.
    """

    def __init__(
        self,
        columns: FloatArray,
        spans: Mapping[tuple[int, int], slice],
        widths: Sequence[tuple[int, ...]],
    ) -> None:
        self._columns = columns
        self._spans = spans
        self._widths = widths
        # Without a constant level 0 a variable takes part in every node, present or not.
        self.everywhere = [m for m in range(len(widths)) if (m, 0) in spans]
        self.single_columns = not self.everywhere and all(
            width == 1 for variable_widths in widths for width in variable_widths
        )

    def width(self, node: Node) -> int:
        """Return the number of feature columns of a node."""
        if self.single_columns:
            return 1
        width = 1
        for m, level in self.factors(node):
            width *= self._widths[m][level]
        return width

    def factors(self, node: Node) -> list[tuple[int, int]]:
        """Return the (variable, level) pairs whose features are multiplied for a node."""
        if not self.everywhere:
            return list(node)
        present = dict(node)
        absent = [(m, 0) for m in self.everywhere if m not in present]
        return sorted([*node, *absent])

    def own(self, node: Node, rows: slice) -> FloatArray:
        """Return the product of a node's own levels, without those of absent variables."""
        width = 1
        for m, level in node:
            width *= self._widths[m][level]
        out = np.empty((rows.stop - rows.start, width), order="F")
        self._fill(out, tuple(node), rows, {})
        return out

    def builder(self, nodes: Sequence[Node]) -> Callable[[slice], FloatArray]:
        """Return a function that makes the features of some rows, shape (rows, R)."""
        if self.single_columns:
            return self._single_column_builder(nodes)
        factors = [tuple(self.factors(node)) for node in nodes]
        widths = [self.width(node) for node in nodes]

        def build(rows: slice) -> FloatArray:
            out = np.empty((rows.stop - rows.start, sum(widths)), order="F")
            done: dict[tuple[tuple[int, int], ...], FloatArray] = {}
            start = 0
            for node_factors, width in zip(factors, widths, strict=True):
                block = out[:, start : start + width]
                self._fill(block, node_factors, rows, done)
                done[node_factors] = block  # nodes that extend it start from here
                start += width
            return out

        return build

    def _single_column_builder(self, nodes: Sequence[Node]) -> Callable[[slice], FloatArray]:
        """Return the same where every level is one column: products of columns, no copies."""
        table = self._columns.T
        factors = [[self._spans[pair].start for pair in node] for node in nodes]

        def build(rows: slice) -> FloatArray:
            out = np.empty((len(nodes), rows.stop - rows.start))
            part = table[:, rows]
            for target, columns in zip(out, factors, strict=True):
                if not columns:
                    target[...] = 1.0
                elif len(columns) == 1:
                    target[...] = part[columns[0]]
                else:
                    np.multiply(part[columns[0]], part[columns[1]], out=target)
                    for column in columns[2:]:
                        target *= part[column]
            return out.T

        return build

    def _fill(
        self,
        block: FloatArray,
        factors: tuple[tuple[int, int], ...],
        rows: slice,
        done: dict[tuple[tuple[int, int], ...], FloatArray],
    ) -> None:
        """Write the row-wise Kronecker product of the factors into ``block``."""
        if not factors:
            block[...] = 1.0
            return
        prefix, last = factors[:-1], factors[-1]
        right = self._columns[rows, self._spans[last]]
        if not prefix:
            block[...] = right
            return
        left = done.get(prefix)
        if left is None:
            width = block.shape[1] // right.shape[1]
            left = np.empty((block.shape[0], width), order="F")
            self._fill(left, prefix, rows, done)
        if left.shape[1] == 1 or right.shape[1] == 1:
            np.multiply(left, right, out=block)
        else:
            np.multiply(
                left[:, :, None],
                right[:, None, :],
                out=block.reshape(block.shape[0], left.shape[1], right.shape[1]),
            )
