"""The kernels of a graph on the training rows, and predictions on new rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hikernel.engines.block_engine import BlockEngine
from hikernel.engines.features import Blocks
from hikernel.engines.protocol import FloatArray, Vertex
from hikernel.graphs.dag import Dag
from hikernel.graphs.interface import Design
from hikernel.graphs.items import TrainingRows, take
from hikernel.graphs.kernel_checks import check_block

if TYPE_CHECKING:
    from hikernel.graphs.kernel_graph import KernelGraph

__all__ = ["KernelDesign", "node_names"]

_CROSS_NUMBERS = 2**23
"""Entries of a cross-Gram matrix that a prediction holds at a time: 64 MiB."""


@dataclass(frozen=True)
class KernelDesign(Design):
    """A :class:`~hikernel.graphs.KernelGraph` that is fitted to training rows.

    Attributes
    ----------
    source : KernelGraph
        The graph.
    rows : Any
        The n training rows, in the form that the functions of the graph take.
    store : BlockEngine
        Features and Gram matrices of these rows.
    support : ndarray of int, optional
        Positions of the training rows that a model is fitted on; all by default.
    reader : callable, optional
        Turns a user's new rows into the form that the source takes; ``source.read`` by default.
    """

    source: KernelGraph
    rows: Any
    store: BlockEngine
    support: NDArray[np.intp] | None = None
    reader: Callable[[Any], Any] | None = None

    @property
    def graph(self) -> Dag:
        """Structure and weights."""
        return self.source.dag

    def engine(self, rows: Any, weights: FloatArray) -> BlockEngine:
        """Return the engine over all training rows."""
        return self.store.weighted(weights)

    def read(self, X: Any) -> Any:
        """Return new rows in the form that the graph takes; a mapping of matrices is kept as is."""
        return X if isinstance(X, Mapping) else (self.reader or self.source.read)(X)

    def subset(self, rows: NDArray[np.intp]) -> KernelDesign:
        """Return the design of a model that is fitted on some of the rows."""
        support = rows if self.support is None else self.support[rows]
        return replace(self, support=support)

    def predict(self, nodes: Sequence[Vertex], coef: FloatArray, rows: Any) -> FloatArray:
        """Return the sum of the functions of the nodes on training rows or new rows."""
        if isinstance(rows, TrainingRows):
            return self.store.predict(nodes, coef, rows.positions, self._support)
        out = np.zeros((self._n_new(nodes, rows), *coef.shape[1:]))
        blocks = Blocks([self._width(node) for node in nodes])
        for node, part in zip(nodes, blocks.split(coef), strict=True):
            self._add(out, node, part, rows)
        return out

    def features(self, nodes: Sequence[Vertex], rows: Any) -> dict[Vertex, FloatArray]:
        """Return the feature blocks of nodes on rows; raise if one has a Gram matrix instead."""
        for node in nodes:
            if not self.store.has_block(node):
                raise ValueError(
                    f"{node!r} is given by a kernel, which has no columns; give the graph features."
                )
        return {node: self.source.block(node, rows) for node in nodes}

    def terms(self, nodes: Sequence[Vertex]) -> dict[str, list[Any]]:
        """Return the names and depths of the nodes, by column of a table."""
        return {
            "term": node_names(nodes, self.graph.nodes),
            "depth": [self.graph.depth(node) for node in nodes],
        }

    @property
    def _support(self) -> NDArray[np.intp]:
        return np.arange(len(self.rows)) if self.support is None else self.support

    def _width(self, node: Vertex) -> int:
        return self.store.width(node) if self.store.has_block(node) else len(self._support)

    def _add(self, out: FloatArray, node: Vertex, coef: FloatArray, new: Any) -> None:
        """Add the values of the function of one node on new rows to ``out``."""
        if self.store.has_block(node):
            block = check_block(node, self.source.block(node, new), len(out))
            if block.shape[1] != len(coef):
                raise ValueError(
                    f"The features of {node!r} have {block.shape[1]} columns on new rows and had "
                    f"{len(coef)} on the training rows."
                )
            out += block @ coef
            return
        training = self.rows if self.support is None else take(self.rows, self._support)
        if isinstance(new, Mapping):
            out += self.source.cross_gram(node, new, training) @ coef
            return
        step = max(1, _CROSS_NUMBERS // max(len(coef), 1))
        for start in range(0, len(out), step):
            part = take(new, np.arange(start, min(start + step, len(out))))
            out[start : start + step] += self.source.cross_gram(node, part, training) @ coef

    def _n_new(self, nodes: Sequence[Vertex], new: Any) -> int:
        """Return the number of new rows."""
        if not isinstance(new, Mapping):
            return len(new)
        missing = [node for node in nodes if node not in new]
        if missing:
            raise ValueError(
                f"X is a mapping from nodes to matrices but lacks {missing[0]!r}; predictions need "
                "every node of hull_ with a norm above zero."
            )
        unknown = [node for node in new if node not in self.graph]
        if unknown:
            raise ValueError(f"X has a matrix for {unknown[0]!r}, which is no node of the graph.")
        sizes = {node: len(np.atleast_1d(new[node])) for node in new}
        if not sizes:
            raise ValueError("X is an empty mapping; give the matrices of the nodes in hull_.")
        first = next(iter(sizes))
        for node, size in sizes.items():
            if size != sizes[first]:
                raise ValueError(
                    f"The matrix of {node!r} has {size} rows and that of {first!r} {sizes[first]}."
                )
        return sizes[first]


def node_names(nodes: Sequence[Vertex], every: Sequence[Vertex]) -> list[str]:
    """Return the names of some nodes: ``repr`` if ``str`` is ambiguous among all nodes, ``every``.

    >>> every = ["a", 1, "1", "intercept"]
    >>> node_names(["a", "1"], every), node_names([1, "intercept"], every)
    (['a', "'1'"], ['1', "'intercept'"])
    """
    counts = Counter(map(str, every))
    counts["intercept"] += 1  # effects() has a column of that name
    return [str(node) if counts[str(node)] < 2 else repr(node) for node in nodes]
