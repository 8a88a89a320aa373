"""What engines share: row weights, blocks, products of levels, rounding margins.

Certificates need scores that are never too small. ``rounding_margin`` is the single definition of
the bound on the rounding error of a sum over the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from hikernel.engines.protocol import FloatArray, Node, Vertex

if TYPE_CHECKING:
    from hikernel.engines.repeated_rows import RepeatedLevels

__all__ = [
    "Blocks",
    "NodeFeatures",
    "WeightedRows",
    "by_output",
    "centred_gram",
    "cut_blocks",
    "highest_levels",
    "level_spans",
    "normalised",
    "rounding_margin",
]

IndexArray = NDArray[np.intp]

_WIDE = 32
"""Columns of a level from which on its rows may repeat, as they do in levels of many categories.
Categories that form a single level have fewer."""

_SPARE = 64
"""Operations that a margin covers in addition to the sum: products, squares, a few additions."""


def rounding_margin(n_rows: int) -> float:
    """Return a bound on the error of a sum of n products, relative to the sum of their magnitudes.

    A computed inner product of n terms is off by at most (n + 1) eps / 2 times the sum of the
    magnitudes, to first order. The margin is twice that, plus an allowance for the operations
    before and after the sum.

    >>> x = np.random.default_rng(0).standard_normal(10_000).astype(np.float32).astype(float)
    >>> import math
    >>> error = abs(float(x @ x) - math.fsum(v * v for v in x))
    >>> error <= rounding_margin(len(x)) * float(np.abs(x) @ np.abs(x))
    True
    """
    return (n_rows + _SPARE) * float(np.finfo(np.float64).eps)


def normalised(weights: FloatArray) -> FloatArray:
    """Return weights scaled to sum one; dividing by the largest first avoids overflow."""
    scaled = weights / np.max(weights)
    return np.asarray(scaled / np.sum(scaled))


def by_output(vector: FloatArray) -> FloatArray:
    """Return a vector of shape (n,) as (n, 1), one column per output; leave (n, k) as it is."""
    return vector[:, None] if vector.ndim == 1 else vector


def cut_blocks(widths: Sequence[int], most: int) -> Iterator[slice]:
    """Yield slices of a list of nodes: each has at most ``most`` columns, or is a single node."""
    start, total = 0, 0
    for i, width in enumerate(widths):
        if total and total + width > most:
            yield slice(start, i)
            start, total = i, 0
        total += width
    if widths:
        yield slice(start, len(widths))


def level_spans(
    widths: Sequence[tuple[int, ...]], constant_levels: Sequence[bool]
) -> tuple[dict[tuple[int, int], slice], int]:
    """Return the columns of every stored (variable, level), and their number in all.

    A level 0 that is identically one is not stored.

    >>> level_spans([(1, 2), (1, 1)], [True, False])
    ({(0, 1): slice(0, 2, None), (1, 0): slice(2, 3, None), (1, 1): slice(3, 4, None)}, 4)
    """
    spans: dict[tuple[int, int], slice] = {}
    start = 0
    for m, (variable_widths, constant) in enumerate(zip(widths, constant_levels, strict=True)):
        for j, width in enumerate(variable_widths):
            if j > 0 or not constant:
                spans[m, j] = slice(start, start + width)
                start += width
    return spans, start


class Blocks:
    """Positions of adjacent blocks of columns, one block per node.

    Parameters
    ----------
    widths : sequence of int
        Number of columns of each of the m nodes.

    Examples
    --------
    >>> blocks = Blocks([1, 2])
    >>> blocks.starts, blocks.sum(np.array([1.0, 2.0, 3.0]))
    (array([0, 1]), array([1., 5.]))
    """

    def __init__(self, widths: Sequence[int] | IndexArray) -> None:
        self.widths = np.asarray(widths, dtype=np.intp)
        self._ends = np.cumsum(self.widths)

    def __len__(self) -> int:
        return len(self.widths)

    @property
    def n_columns(self) -> int:
        """Number of columns R."""
        return int(self._ends[-1]) if len(self) else 0

    @cached_property
    def starts(self) -> IndexArray:
        """First column of each node, shape (m,)."""
        return self._ends - self.widths

    @cached_property
    def _single(self) -> bool:
        """Whether every node has one column, so that no sum is needed."""
        return bool(np.all(self.widths == 1))

    def columns(self, index: Sequence[int] | IndexArray) -> IndexArray:
        """Return the columns of the nodes at some positions."""
        if self._single:
            return np.asarray(index, dtype=np.intp)
        parts = [np.arange(self.starts[i], self._ends[i]) for i in index]
        return np.concatenate([np.empty(0, dtype=np.intp), *parts])

    def restrict(self, index: Sequence[int] | IndexArray) -> Blocks:
        """Return the blocks of the nodes at some positions, as if the others did not exist."""
        return Blocks(self.widths[np.asarray(index, dtype=np.intp)])

    def spread(self, x: NDArray[Any]) -> NDArray[Any]:
        """Repeat the value of each node for each of its columns."""
        return x if self._single else np.repeat(x, self.widths)

    def sum(self, x: FloatArray, axis: int = 0) -> FloatArray:
        """Return the sums over the columns of each node, along one axis."""
        if self._single:
            return x
        return np.asarray(np.add.reduceat(x, self.starts, axis=axis))

    def squares(self, x: FloatArray) -> FloatArray:
        """Return the squared norm of each node's part of x; x has shape (R,) or (R, k)."""
        squares = x**2 if x.ndim == 1 else np.sum(x**2, axis=1)
        return self.sum(np.asarray(squares))

    def split(self, x: FloatArray) -> list[FloatArray]:
        """Return the part of x that belongs to each node, split along the first axis."""
        return np.split(x, self._ends[:-1]) if len(self) else []


def centred_gram(
    left: FloatArray,
    right: FloatArray,
    left_means: FloatArray,
    right_means: FloatArray,
    weights: FloatArray,
) -> FloatArray:
    """Return sum_i weights_i (left_i - left_means) (right_i - right_means)'."""
    root = np.sqrt(weights)[:, None]
    return np.asarray(((left - left_means) * root).T @ ((right - right_means) * root))


class WeightedRows:
    """Weighted rows, the base class of all in-memory engines.

    Parameters
    ----------
    row_weights : ndarray of shape (n,)
        Positive weights; they are normalised to sum to one.
    """

    def __init__(self, row_weights: FloatArray) -> None:
        self._weights = normalised(np.asarray(row_weights, dtype=np.float64))

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self._weights)

    @property
    def row_weights(self) -> FloatArray:
        """Weights of the rows; they sum to one."""
        return self._weights

    @property
    def sum_work(self) -> int:
        """Numbers to process for a sum over all pairs of rows."""
        return self.n_rows * (self.n_rows + 1) // 2

    in_blocks = False
    """Whether the rows lie in blocks, whose features are not brought together."""

    def variances(self, nodes: Sequence[Vertex], blocks: Sequence[FloatArray]) -> FloatArray:
        """Return the variance of <block_w, Phi_w(x)> over the rows for each node w."""
        out = []
        for node, block in zip(nodes, blocks, strict=True):
            values = self.apply([node], block)
            out.append(float(np.sum(self._weights @ (values - self._weights @ values) ** 2)))
        return np.array(out)

    def apply(self, nodes: Sequence[Vertex], coef: FloatArray) -> FloatArray:
        """Return Phi coef."""
        raise NotImplementedError

    def weighted(self, row_weights: FloatArray) -> Self:
        """Return an engine over the same rows with other weights; no features are copied."""
        out = object.__new__(type(self))
        out.__dict__.update(self.__dict__)
        out._weights = normalised(np.asarray(row_weights, dtype=np.float64))
        return out

    def correlate(
        self, nodes: Sequence[Vertex], vector: FloatArray, *, absolute: bool = False
    ) -> FloatArray:
        """Return Phi' vector, or |Phi|' |vector| if ``absolute``."""
        raise NotImplementedError

    def score_bounds(self, nodes: Sequence[Vertex], vector: FloatArray) -> FloatArray:
        """Return upper bounds on |Phi' vector| that hold in spite of rounding errors."""
        margin = rounding_margin(self.n_rows) * self.correlate(nodes, vector, absolute=True)
        return np.asarray(np.abs(self.correlate(nodes, vector)) + margin)


class NodeFeatures:
    """Node features, computed as row-wise Kronecker products of stored one-variable levels.

    Parameters
    ----------
    columns : ndarray of shape (n, C)
        All stored one-variable features, in Fortran order.
    spans : mapping of (variable, level) to slice
        The columns of each level; a level 0 that is identically one is not stored.
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
        self.widths = widths
        self.stored = list(spans)
        # A variable without a constant level 0 contributes to every node, even if absent from it.
        self.everywhere = [m for m in range(len(widths)) if (m, 0) in spans]
        self.single_columns = not self.everywhere and all(
            width == 1 for variable_widths in widths for width in variable_widths
        )

    @cached_property
    def repeated(self) -> RepeatedLevels | None:
        """Products by groups of equal rows; None if no level is wide."""
        widest = max((max(widths[1:], default=0) for widths in self.widths), default=0)
        if widest < _WIDE or self.everywhere:
            return None
        from hikernel.engines.repeated_rows import RepeatedLevels  # imported only when needed

        return RepeatedLevels(self._columns, self._spans, self)

    def width(self, node: Node) -> int:
        """Return the number of feature columns of a node."""
        if self.single_columns:
            return 1
        width = 1
        for m, level in self.factors(node):
            width *= self.widths[m][level]
        return width

    def factors(self, node: Node) -> list[tuple[int, int]]:
        """Return the (variable, level) pairs whose product gives the features of a node."""
        if not self.everywhere:
            return list(node)
        present = dict(node)
        absent = [(m, 0) for m in self.everywhere if m not in present]
        return sorted([*node, *absent])

    def own(self, node: Node, rows: slice) -> FloatArray:
        """Return the product of a node's own levels, without level 0 of absent variables."""
        width = 1
        for m, level in node:
            width *= self.widths[m][level]
        out = np.empty((rows.stop - rows.start, width), order="F")
        self._fill(out, tuple(node), rows, {})
        return out

    def builder(self, nodes: Sequence[Node]) -> Callable[[slice], FloatArray]:
        """Return a function that maps a slice of rows to their features, shape (rows, R)."""
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
                done[node_factors] = block  # reused by nodes that extend this one
                start += width
            return out

        return build

    def _single_column_builder(self, nodes: Sequence[Node]) -> Callable[[slice], FloatArray]:
        """Return the same if every level has one column: products of columns, without copies."""
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
        """Write the row-wise Kronecker product of the factors into ``block``.

        ``done`` maps factors to products that are already computed.
        """
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


def highest_levels(nodes: Sequence[Node]) -> dict[int, int]:
    """Return the highest level in ``nodes`` of every variable that occurs in them."""
    highest: dict[int, int] = {}
    for node in nodes:
        for m, level in node:
            highest[m] = max(highest.get(m, 0), level)
    return highest
