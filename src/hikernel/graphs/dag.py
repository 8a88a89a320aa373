"""Finite directed acyclic graphs: named nodes with weights, edges from parent to child.

Trees and flat graphs (no edges: multiple kernel learning) are special cases. This module holds only
the structure; ``kernel_graph`` adds the kernels.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from numbers import Real
from typing import Any

import numpy as np

from hikernel.engines.protocol import Engine, FloatArray, Vertex
from hikernel.graphs.interface import Exploration
from hikernel.graphs.weight_base import WEIGHT_RANGE, check_weight_base

__all__ = ["Dag", "parents_of"]


class Dag:
    """A finite DAG with weights.

    Parameters
    ----------
    parents : mapping of node to an iterable of nodes
        Every node is a key; a node without parents has an empty iterable.
    weights : mapping of node to float, or None
        d_v > 0; by default ``weight_base`` to the power of the depth.
    weight_base : float, default=2.0
        Factor by which the weights grow with depth. Used only if ``weights`` is None.

    Attributes
    ----------
    nodes : list of nodes
        In topological order: parents before children.

    Examples
    --------
    >>> chain = Dag({"a": [], "b": ["a"], "c": ["b"]})
    >>> chain.ancestors("c"), chain.weight("c")
    (['a', 'b', 'c'], 4.0)
    """

    searches = ("explicit",)

    def __init__(
        self,
        parents: Mapping[Any, Iterable[Any]],
        weights: Mapping[Any, float] | None = None,
        *,
        weight_base: float = 2.0,
    ) -> None:
        self._parents = {node: tuple(dict.fromkeys(above)) for node, above in parents.items()}
        if not self._parents:
            raise ValueError("The graph has no nodes.")
        for node, above in self._parents.items():
            for parent in above:
                if parent not in self._parents:
                    raise ValueError(
                        f"{parent!r} is a parent of {node!r} but no node of the graph itself; add "
                        "it, with an empty list of parents if it has none."
                    )
        self.nodes: list[Any] = _topological(self._parents)
        self._depths: dict[Any, int] = {}
        for node in self.nodes:
            above = self._parents[node]
            self._depths[node] = 1 + max((self._depths[v] for v in above), default=-1)
        self._position = {node: i for i, node in enumerate(self.nodes)}
        self._weights = self._checked_weights(weights, weight_base)
        self._array = np.array([self._weights[node] for node in self.nodes])
        self._ancestors: dict[Any, list[Any]] = {}
        self._children: dict[Any, list[Any]] = {node: [] for node in self.nodes}
        for node in self.nodes:
            for parent in self._parents[node]:
                self._children[parent].append(node)

    @property
    def n_vertices(self) -> int:
        """Number of nodes."""
        return len(self.nodes)

    def __contains__(self, node: object) -> bool:
        return node in self._parents

    def parents(self, node: Vertex) -> list[Any]:
        """Return the nodes that have an edge to ``node``."""
        return list(self._parents[node])

    def children(self, node: Vertex) -> list[Any]:
        """Return the nodes that have an edge from ``node``."""
        return list(self._children[node])

    def depth(self, node: Vertex) -> int:
        """Return the length of the longest path from a source to the node."""
        return self._depths[node]

    def sort_key(self, node: Vertex) -> int:
        """Return the position of a node in topological order."""
        return self._position[node]

    def weight(self, node: Vertex) -> float:
        """Return d_v."""
        return self._weights[node]

    def weights(self, nodes: Sequence[Vertex]) -> FloatArray:
        """Return d_v of several nodes, shape (len(nodes),)."""
        return np.array([self._weights[node] for node in nodes], dtype=np.float64)

    def ancestors(self, node: Vertex) -> list[Any]:
        """Return A(v), v included, ancestors first."""
        if node not in self._ancestors:
            found = {node}
            waiting = [node]
            while waiting:
                for parent in self._parents[waiting.pop()]:
                    if parent not in found:
                        found.add(parent)
                        waiting.append(parent)
            self._ancestors[node] = sorted(found, key=self._position.__getitem__)
        return self._ancestors[node]

    def hull(self, nodes: Iterable[Vertex]) -> set[Any]:
        """Return the union of the ancestors of the nodes."""
        out: set[Any] = set()
        for node in nodes:
            if node not in out:
                out.update(self.ancestors(node))
        return out

    @property
    def sources(self) -> list[Any]:
        """The nodes without parents."""
        return [node for node in self.nodes if not self._parents[node]]

    def explore(
        self, engine: Engine, dual_coef: FloatArray, threshold: float, max_nodes: int | None = None
    ) -> Exploration:
        """Score every node of the graph: |a_w|^2 / d_w^2, rounded up.

        All nodes are in memory anyway, so ``max_nodes`` is ignored.
        """
        scores = engine.score_squares(self.nodes, dual_coef, rounded_up=True) / self._array**2
        above = scores > threshold
        return Exploration(
            violators={self.nodes[i]: float(scores[i]) for i in np.flatnonzero(above)},
            rest=float(np.max(scores[~above], initial=0.0)),
            n_explored=len(self.nodes),
        )

    def strongest(self, engine: Engine, dual_coef: FloatArray) -> Vertex:
        """Return the node with the largest |a_w| / (sum of d over its ancestors)."""
        scores = engine.score_squares(self.nodes, dual_coef) / self._totals**2
        return self.nodes[int(np.argmax(scores))]

    def n_scored(self, engine: Engine) -> int:
        """Return the number of nodes: all of them are scored together."""
        return len(self.nodes)

    @cached_property
    def _totals(self) -> FloatArray:
        """Sum of d over the ancestors of every node."""
        return np.array([np.sum(self.weights(self.ancestors(node))) for node in self.nodes])

    def _checked_weights(self, weights: Any, weight_base: float) -> dict[Any, float]:
        """Return d_v of every node."""
        if weights is None:
            deepest = max(self._depths.values())
            weight_base = check_weight_base(weight_base, deepest)
            powers = np.power(weight_base, np.arange(deepest + 1.0)).tolist()
            found = {node: powers[depth] for node, depth in self._depths.items()}
        else:
            if not isinstance(weights, Mapping):
                raise ValueError(
                    f"weights must be a mapping from nodes to numbers, got {weights!r}."
                )
            odd = [node for node in self._parents if node not in weights]
            if odd:
                raise ValueError(f"weights lacks the node {odd[0]!r}; give it one above 0.")
            odd = [node for node in weights if node not in self._parents]
            if odd:
                raise ValueError(f"weights names {odd[0]!r}, which is no node of the graph.")
            found = {node: _as_number(weights[node]) for node in self._parents}
        low, high = WEIGHT_RANGE
        for node, weight in found.items():
            if not low <= weight <= high:
                raise ValueError(
                    f"The weight of {node!r} must lie between {low:g} and {high:g}, "
                    f"got {weight if weights is None else weights[node]!r}."
                )
        return found


def parents_of(edges: Any, nodes: Iterable[Any] = ()) -> dict[Any, list[Any]]:
    """Return a mapping from every node to the list of its parents.

    Parameters
    ----------
    edges : mapping, iterable of pairs, or networkx.DiGraph
        A mapping from node to its parents, (parent, child) pairs, or a directed graph whose edges
        go from parent to child.
    nodes : iterable of nodes
        Nodes of the graph that need not appear in ``edges``.

    Examples
    --------
    >>> parents_of([("a", "b"), ("a", "c")])
    {'a': [], 'b': ['a'], 'c': ['a']}
    """
    out: dict[Any, list[Any]] = {node: [] for node in nodes}
    if isinstance(edges, Mapping) and not isinstance(edges, Set):  # networkx edge views are both
        for node, above in edges.items():
            if isinstance(above, str) or not isinstance(above, Iterable):
                raise ValueError(
                    f"The parents of {node!r} must be a list of nodes, got {above!r}; a node "
                    "without parents has an empty list."
                )
            out[node] = list(above)
            for parent in out[node]:
                _check_hashable(parent)
        return out
    if hasattr(edges, "predecessors"):
        return out | {node: list(edges.predecessors(node)) for node in edges.nodes}
    if hasattr(edges, "edges"):
        raise ValueError("The graph has no directions; pass a networkx.DiGraph, parent to child.")
    if not isinstance(edges, Iterable) or isinstance(edges, str):
        raise ValueError(
            "edges must be pairs (parent, child), a mapping from nodes to their parents, or a "
            f"networkx.DiGraph, got {edges!r}."
        )
    for edge in edges.tolist() if isinstance(edges, np.ndarray) else edges:
        if isinstance(edge, str) or not isinstance(edge, Sequence) or len(edge) != 2:
            raise ValueError(f"Every edge must be a pair (parent, child), got {edge!r}.")
        parent, child = edge
        for node in edge:
            _check_hashable(node)
        out.setdefault(parent, [])
        out.setdefault(child, []).append(parent)
    return out


def _check_hashable(node: Any) -> None:
    try:
        hash(node)
    except TypeError:
        raise ValueError(
            f"Nodes must be hashable (names, numbers, tuples), got {node!r}."
        ) from None


def _as_number(value: Any) -> float:
    """Return a number as a float, and NaN for anything else."""
    return float(value) if isinstance(value, Real) else np.nan


def _topological(parents: Mapping[Any, Iterable[Any]]) -> list[Any]:
    try:
        return list(TopologicalSorter(parents).static_order())
    except CycleError as error:
        cycle = " -> ".join(repr(node) for node in error.args[1])
        raise ValueError(f"The graph has a cycle: {cycle}; remove one of these edges.") from None
