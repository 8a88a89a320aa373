"""Graphs for the conditions: what is asked of one, a DAG given by its parents, a part of one."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Any, Protocol

import numpy as np

from hikernel.engines.protocol import FloatArray
from hikernel.reduced import HullMap

__all__ = ["GraphPart", "ParentGraph", "SupportsWeight", "Vertex"]

Vertex = Hashable
"""A node of any graph: what the graph itself takes as one."""


class SupportsWeight(Protocol):
    """What the conditions need to know of a graph; :class:`hikernel.graphs.Grid` is one."""

    def ancestors(self, node: Any) -> Sequence[Any]:
        """Return A(v), v included."""
        ...

    def weight(self, node: Any) -> float:
        """Return d_v."""
        ...


class ParentGraph:
    """A finite DAG given by the parents of every node.

    Parameters
    ----------
    parents : mapping of node to an iterable of nodes
        Every node is a key; those without parents have an empty iterable.
    weights : mapping of node to float, optional
        d_v > 0; 1 for all nodes by default.

    Examples
    --------
    >>> chain = ParentGraph({"a": [], "b": ["a"], "c": ["b"]}, {"a": 1, "b": 2, "c": 4})
    >>> chain.ancestors("c"), chain.weight("c")
    (['a', 'b', 'c'], 4.0)
    """

    def __init__(
        self,
        parents: Mapping[Any, Iterable[Any]],
        weights: Mapping[Any, float] | None = None,
    ) -> None:
        edges = {node: tuple(above) for node, above in parents.items()}
        for node, above in edges.items():
            for parent in above:
                if parent not in edges:
                    raise ValueError(
                        f"{parent!r} is a parent of {node!r} but no key of parents; "
                        f"add it, with an empty list if it has no parents."
                    )
        try:
            self.nodes: list[Any] = list(TopologicalSorter(edges).static_order())
        except CycleError as error:
            cycle = " -> ".join(map(repr, error.args[1]))
            raise ValueError(f"The graph has a cycle: {cycle}.") from None
        if weights is None:
            weights = dict.fromkeys(self.nodes, 1.0)
        if set(weights) != set(self.nodes):
            odd = sorted(map(repr, set(weights) ^ set(self.nodes)))
            raise ValueError(f"parents and weights must have the same nodes; see {', '.join(odd)}.")
        self._weights = {node: float(weight) for node, weight in weights.items()}
        position = {node: i for i, node in enumerate(self.nodes)}
        self._ancestors: dict[Any, list[Any]] = {}
        for node in self.nodes:
            found = {node}.union(*(self._ancestors[parent] for parent in edges[node]))
            self._ancestors[node] = sorted(found, key=position.__getitem__)

    def ancestors(self, node: Any) -> list[Any]:
        """Return A(v), v included, ancestors first."""
        return self._ancestors[node]

    def weight(self, node: Any) -> float:
        """Return d_v."""
        return self._weights[node]


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
