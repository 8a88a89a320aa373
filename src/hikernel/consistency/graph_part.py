"""A part of a graph, for the conditions."""

from __future__ import annotations

import math
from collections.abc import Sequence

from hikernel.engines.protocol import FloatArray, Vertex
from hikernel.graphs import SupportsAncestors
from hikernel.reduced import HullMap

__all__ = ["GraphPart"]


class GraphPart:
    """Some nodes of a graph, and which of them are ancestors of which.

    Parameters
    ----------
    nodes : sequence of nodes
        W, or its complement within the nodes considered.
    graph : SupportsAncestors
        The graph they come from.

    Attributes
    ----------
    above : list of list of int
        For every node w, the positions in ``nodes`` of its ancestors in the part, w included.
    map : HullMap
        The same relation as matrices, with the weights d_v.
    """

    def __init__(self, nodes: Sequence[Vertex], graph: SupportsAncestors) -> None:
        self.nodes = list(nodes)
        self._graph = graph
        self._index = {node: i for i, node in enumerate(self.nodes)}
        self.above = [[self._index[v] for v in self.ancestors(w)] for w in self.nodes]
        self.map = HullMap(self.nodes, self)

    def ancestors(self, node: Vertex) -> list[Vertex]:
        """Return the ancestors of a node that belong to the part, the node included."""
        return [v for v in self._graph.ancestors(node) if v in self._index]

    def weights(self, nodes: Sequence[Vertex]) -> FloatArray:
        """Return the weights d_v of the nodes."""
        return self._graph.weights(nodes)

    @property
    def sources(self) -> list[int]:
        """Positions of the nodes whose only ancestor in the part is the node itself."""
        return [w for w, above in enumerate(self.above) if len(above) == 1]

    def ancestor_sums(self, x: FloatArray) -> FloatArray:
        """Return sum_{v in A(w)} x_v for every w, v in the part; x must be positive."""
        return 1.0 / self.map.zeta(1.0 / x)

    def weight_below(self, source: int) -> dict[int, float]:
        """Return sum_{v in A(w) and D(t)} d_v for every descendant w of the node t = source."""
        below = [source in above for above in self.above]
        return {
            w: math.fsum(self.map.weights[v] for v in self.above[w] if below[v])
            for w in range(len(self.nodes))
            if below[w]
        }
