"""Graphs for the conditions: what is asked of one, and a part of one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from hikernel.engines.protocol import FloatArray
from hikernel.reduced import HullMap

__all__ = ["GraphPart", "SupportsWeight"]


class SupportsWeight(Protocol):
    """What the conditions need to know of a graph; :mod:`hikernel.graphs` has them."""

    def ancestors(self, node: Any) -> Sequence[Any]:
        """Return A(v), v included."""
        ...

    def weight(self, node: Any) -> float:
        """Return d_v."""
        ...


class GraphPart:
    """Some nodes of a graph with the ancestors that are among them, by position.

    Parameters
    ----------
    nodes : sequence of nodes
        W, or its complement within the nodes considered.
    graph : SupportsWeight
        The graph they come from.

    Attributes
    ----------
    above : list of list of int
        Positions of A(w) within the part, for every w.
    map : HullMap
        The same relation and the weights d_v.
    """

    def __init__(self, nodes: Sequence[Any], graph: SupportsWeight) -> None:
        self.nodes = list(nodes)
        self._graph = graph
        self._index = {node: i for i, node in enumerate(self.nodes)}
        self.above = [[self._index[v] for v in self.ancestors(w)] for w in self.nodes]
        self.map = HullMap(self.nodes, self)

    def ancestors(self, node: Any) -> list[Any]:
        """Return the ancestors that belong to the part."""
        return [v for v in self._graph.ancestors(node) if v in self._index]

    def weights(self, nodes: Sequence[Any]) -> FloatArray:
        """Return d_v of the nodes."""
        return np.array([self._graph.weight(node) for node in nodes], dtype=np.float64)

    @property
    def sources(self) -> list[int]:
        """Positions of the nodes without another ancestor in the part."""
        return [w for w, above in enumerate(self.above) if len(above) == 1]

    def ancestor_sums(self, x: FloatArray) -> FloatArray:
        """Return sum_{v in A(w)} x_v over the part for every w; x must be positive."""
        return 1.0 / self.map.zeta(1.0 / x)

    def weight_below(self, source: int) -> dict[int, float]:
        """Return sum_{v in A(w) and D(t)} d_v for every descendant w of one node t."""
        below = [source in above for above in self.above]
        return {
            w: math.fsum(self.map.weights[v] for v in self.above[w] if below[v])
            for w in range(len(self.nodes))
            if below[w]
        }
