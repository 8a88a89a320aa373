"""Levels with few distinct rows, such as wide blocks of categories: products by groups of rows.

Let the rows of a level repeat, Phi = S T, where S (n, G) says to which of G groups a row belongs
and T (G, w) holds the distinct rows. Then

    Phi' V = T' (S' V),

where S' V is a sum over the rows of each group. For V of C columns this takes n C additions and
G w C multiplications in place of n w C. For a product of two such levels, Phi_1 kron Phi_2 row by
row, S' V has a group for each pair of groups, and T_1 and T_2 are applied one after the other:
n C + w_1 G_2 (G_1 + w_2) C operations in place of n w_1 w_2 C. Other factors of a node, which have
few columns, multiply the rows of V.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from hikernel.engines.features import Blocks, NodeFeatures, cut_blocks
from hikernel.engines.machine import check_time
from hikernel.engines.protocol import FloatArray, Node

__all__ = ["RepeatedLevels"]

_LEAST_GROUPS = 32
"""Number of groups of a node from which on its products are computed by groups."""
_LEAST_PART = 4
"""Number of columns from which on a level is grouped, in an engine that has a wide one."""
_LEAST_REPEATS = 8
"""Mean number of rows in a group, at least."""
_MOST_PAIRS = 2
"""Pairs of groups of two levels, at most, as a multiple of the rows."""
_MOST_OTHERS = 8
"""Columns of the factors of a node that are not grouped, at most."""
_BLOCK_COLUMNS = 512
"""Columns of the right-hand side of a Gram matrix that are computed together."""
_CHUNK_NUMBERS = 2**22
"""Numbers in one chunk of the right-hand side: 32 MiB."""


@dataclass(frozen=True)
class _Groups:
    """S as the group of each row, and T."""

    group: NDArray[np.intp]
    table: FloatArray


class RepeatedLevels:
    """Products Phi' V of nodes, by groups of rows where levels have few distinct rows.

    Parameters
    ----------
    columns : ndarray of shape (n, C)
        All stored one-variable features.
    spans : mapping of (variable, level) to slice
        The columns of each level.
    features : NodeFeatures
        The products of these levels; no level 0 may be among their factors.

    Examples
    --------
    >>> colours = np.eye(40)[np.arange(400) % 40]
    >>> spans, widths = {(0, 1): slice(0, 40)}, [(1, 40)]
    >>> levels = RepeatedLevels(colours, spans, NodeFeatures(colours, spans, widths))
    >>> values = np.arange(400.0)[:, None]
    >>> found = levels.product([((0, 1),)], slice(0, 400), values)
    >>> bool(np.allclose(found, colours.T @ values))
    True
    """

    def __init__(
        self,
        columns: FloatArray,
        spans: Mapping[tuple[int, int], slice],
        features: NodeFeatures,
    ) -> None:
        self._columns = columns
        self._spans = spans
        self._features = features
        self._groups: dict[tuple[int, int], _Groups] = {}
        for pair, span in spans.items():
            if span.stop - span.start >= _LEAST_PART:
                groups = _grouped(columns[:, span])
                if groups is not None:
                    self._groups[pair] = groups

    def product(self, nodes: Sequence[Node], rows: slice, values: FloatArray) -> FloatArray:
        """Return Phi' V of some rows, shape (R, C), for V of shape (rows, C)."""
        values = np.ascontiguousarray(values)
        blocks = Blocks([self._features.width(node) for node in nodes])
        out = np.empty((blocks.n_columns, values.shape[1]))
        others: list[int] = []
        for i, node in enumerate(nodes):
            if not self._is_grouped(node):
                others.append(i)
                continue
            start = blocks.starts[i]
            out[start : start + blocks.widths[i]] = self._of_groups(node, rows, values)
        if others:
            build = self._features.builder([nodes[i] for i in others])
            out[blocks.columns(others)] = build(rows).T @ values
        return out

    def gram(
        self,
        left: Sequence[Node],
        right: Sequence[Node],
        left_means: FloatArray,
        right_means: FloatArray,
        weights: FloatArray,
    ) -> FloatArray:
        """Return sum_i weights_i (left_i - left_means) (right_i - right_means)'."""
        out = np.zeros((len(left_means), len(right_means)))
        same = list(left) == list(right) and np.array_equal(left_means, right_means)
        ends = np.cumsum([self._features.width(node) for node in left])
        start, first = 0, 0
        for nodes, builder in self._parts(right):
            stop = start + sum(self._features.width(node) for node in nodes)
            # Of a symmetric matrix, one triangle of blocks is enough.
            from_column = int(ends[first - 1]) if same and first else 0
            some = left[first:] if same else left
            for rows in self._chunks(stop - start):
                check_time()
                values = builder(rows)
                values -= right_means[start:stop]
                values *= weights[rows, None]
                part = self.product(some, rows, values)
                part -= np.outer(left_means[from_column:], np.sum(values, axis=0))
                out[from_column:, start:stop] += part
            start, first = stop, first + len(nodes)
        return np.tril(out) + np.tril(out, -1).T if same else out

    def _parts(
        self, nodes: Sequence[Node]
    ) -> Iterator[tuple[Sequence[Node], Callable[[slice], FloatArray]]]:
        """Yield the nodes a few at a time, with the function that builds their features."""
        for block in cut_blocks([self._features.width(node) for node in nodes], _BLOCK_COLUMNS):
            yield nodes[block], self._features.builder(nodes[block])

    def _chunks(self, n_columns: int) -> Iterator[slice]:
        n_rows = len(self._columns)
        step = max(1, _CHUNK_NUMBERS // max(1, n_columns))
        for start in range(0, n_rows, step):
            yield slice(start, min(start + step, n_rows))

    def _is_grouped(self, node: Node) -> bool:
        """Return whether the product with a node is cheaper by groups of rows."""
        sizes = [len(self._groups[pair].table) for pair in node if pair in self._groups]
        spans = [self._spans[pair] for pair in node if pair not in self._groups]
        others = math.prod(span.stop - span.start for span in spans)
        if not sizes or math.prod(sizes) < _LEAST_GROUPS or others > _MOST_OTHERS:
            return False
        return len(sizes) == 1 or math.prod(sizes) <= _MOST_PAIRS * len(self._columns)

    def _of_groups(self, node: Node, rows: slice, values: FloatArray) -> FloatArray:
        """Return Phi' V of a node, computed by groups of rows."""
        grouped = [self._groups[pair] for pair in node if pair in self._groups]
        sizes = tuple(len(part.table) for part in grouped)
        codes = np.ravel_multi_index(tuple(part.group[rows] for part in grouped), sizes)
        n, width = values.shape
        members = sparse.csr_array(
            (np.ones(n), codes, np.arange(n + 1)), shape=(n, math.prod(sizes))
        ).T
        spans = [self._spans[pair] for pair in node]
        widths = [span.stop - span.start for span in spans]
        out = np.empty((*widths, width))
        choices: list[Sequence[int | slice]] = [
            [slice(None)] if pair in self._groups else range(w)
            for pair, w in zip(node, widths, strict=True)
        ]
        for index in itertools.product(*choices):
            scaled = values
            for span, column in zip(spans, index, strict=True):
                if not isinstance(column, slice):
                    scaled = scaled * self._columns[rows, span.start + column, None]
            total = np.asarray(members @ scaled).reshape(*sizes, width)
            # The last level first: the axes before it are those of the other levels.
            for axis in range(len(sizes) - 1, -1, -1):
                shape = total.shape
                flat = total.reshape(math.prod(shape[:axis]), shape[axis], -1)
                total = (grouped[axis].table.T @ flat).reshape(
                    *shape[:axis], grouped[axis].table.shape[1], *shape[axis + 1 :]
                )
            out[index] = total
        return out.reshape(-1, width)


def _grouped(level: FloatArray) -> _Groups | None:
    """Return the distinct rows of a level and the row of each, or None if they are many.

    Rows are told apart by a random combination of their entries, and compared afterwards.
    """
    n, width = level.shape
    keys = level @ np.random.default_rng(0).standard_normal(width)
    _, first, group = np.unique(keys, return_index=True, return_inverse=True)
    if len(first) * _LEAST_REPEATS > n:
        return None
    table = np.ascontiguousarray(level[first])
    group = group.ravel()
    if not all(np.array_equal(table[group, j], level[:, j]) for j in range(width)):
        return None
    return _Groups(group, table)
