"""Weisfeiler-Lehman kernels: labelled graphs compared by the neighbourhoods of their vertices.

The label of depth 0 of a vertex is its own label. Its label of depth h + 1 is its label of depth h
together with the multiset of its neighbours' labels of depth h. The depths form a chain from
shallow to deep.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from operator import index
from typing import Any

import numpy as np
from scipy import sparse

from hikernel.engines.protocol import FloatArray
from hikernel.graphs.sparse_counts import inner_products

__all__ = ["WeisfeilerLehman"]


@dataclass(frozen=True)
class _Graph:
    """The label of every vertex, and the positions of its neighbours."""

    labels: list[Hashable]
    neighbours: list[list[int]]


class WeisfeilerLehman:
    """K_h(G, H) = number of pairs of vertices, one of each graph, with the same label of depth h.

    Two vertices have the same label of depth h if h rounds of refinement do not distinguish them.
    Labels are not hashed into a fixed range, so different patterns never collide. Every call
    numbers the patterns of its own graphs: the kernel of two graphs depends neither on the other
    graphs nor on earlier calls.

    Parameters
    ----------
    depth : int
        The largest h.
    normalize : bool
        Whether to divide by sqrt(K_h(G, G) K_h(H, H)). By default this is done: otherwise the
        number of pairs grows with the product of the numbers of vertices, and the size of a graph
        outweighs its structure. Set it to False if counts of patterns should add up. The kernel of
        a graph without vertices with any graph is 0.
    label : str
        Name of the attribute with the label, for networkx graphs.
    degree_labels : bool
        Whether a vertex without a label (None) gets its degree as label, which differs from all
        given labels. If False, such a vertex is an error.

    Notes
    -----
    A graph is a pair (labels, edges) or an undirected networkx graph. Labels are any hashable
    values, and edges are pairs (i, j) of positions in labels. Edges have no direction, and repeated
    edges count once. A loop makes a vertex its own neighbour.

    Examples
    --------
    >>> water, peroxide = ("HOH", [(0, 1), (1, 2)]), ("HOOH", [(0, 1), (1, 2), (2, 3)])
    >>> kernels = WeisfeilerLehman(1, normalize=False).grams([water], [water, peroxide])
    >>> kernels.tolist()
    [[[5.0, 6.0]], [[5.0, 4.0]]]
    """

    def __init__(
        self,
        depth: int,
        *,
        normalize: bool = True,
        label: str = "label",
        degree_labels: bool = False,
    ) -> None:
        if isinstance(depth, bool) or not isinstance(depth, (int, np.integer)):
            raise ValueError(f"depth must be a whole number, got {depth!r}.")
        if depth < 0:
            raise ValueError(f"depth must be at least 0, got {depth}.")
        self.depth = int(depth)
        self.normalize = bool(normalize)
        self.label = label
        self.degree_labels = bool(degree_labels)

    def kernel(self, h: int) -> Callable[[Sequence[Any], Sequence[Any]], FloatArray]:
        """Return the kernel of one depth, a function (G, H) -> K_h of shape (len(G), len(H))."""
        if h not in range(self.depth + 1):
            raise ValueError(f"h must be one of 0 to {self.depth}, got {h!r}.")
        return partial(self._one_depth, h)

    def grams(self, G: Sequence[Any], H: Sequence[Any]) -> FloatArray:
        """Return K_0 .. K_depth, shape (depth + 1, len(G), len(H)); labels are computed once."""
        return np.stack([self._products(*sides) for sides in self._refine(self.depth, G, H)])

    def _one_depth(self, h: int, G: Sequence[Any], H: Sequence[Any]) -> FloatArray:
        *_, last = self._refine(h, G, H)
        return self._products(*last)

    def _products(self, left: list[list[int]], right: list[list[int]]) -> FloatArray:
        counts = _counts([*left, *right])
        split = len(left)
        return inner_products(counts[:split], counts[split:], normalize=self.normalize)

    def _refine(
        self, depth: int, G: Sequence[Any], H: Sequence[Any]
    ) -> Iterable[tuple[list[list[int]], list[list[int]]]]:
        """Yield the labels of all vertices of G and of H as numbers, for the depths 0 .. depth.

        A graph that is in both lists, as in a training Gram matrix, is labelled once.
        """
        G, H = list(G), list(H)  # keeps the graphs alive, so that their ids are unique
        if not G or not H:
            raise ValueError("A list of graphs is empty; at least one graph is needed.")
        graphs: dict[int, _Graph] = {}
        for i, graph in enumerate((*G, *H)):
            if id(graph) not in graphs:
                graphs[id(graph)] = self._read(graph, i if i < len(G) else i - len(G))
        labels: dict[int, list[int]] = {}
        numbers: dict[Any, int] = {}
        for key, graph in graphs.items():
            labels[key] = [numbers.setdefault(own, len(numbers)) for own in graph.labels]
        for h in range(depth + 1):
            if h > 0:
                # Every depth has its own numbers; patterns refer to those of the previous depth.
                numbers = {}
                labels = {
                    key: _one_step(graph, labels[key], numbers) for key, graph in graphs.items()
                }
            yield [labels[id(graph)] for graph in G], [labels[id(graph)] for graph in H]

    def _read(self, graph: Any, i: int) -> _Graph:
        """Return the labels and neighbours of graph number i, given in either of the two forms."""
        if hasattr(graph, "nodes") and hasattr(graph, "edges"):
            if graph.is_directed():
                raise ValueError(f"Graph {i} is directed; call its to_undirected() first.")
            position = {node: j for j, node in enumerate(graph.nodes)}
            labels = [label for _, label in graph.nodes(data=self.label)]
            edges = [(position[u], position[v]) for u, v in graph.edges()]
        else:
            try:
                labels, edges = graph
                labels, edges = list(labels), [(index(u), index(v)) for u, v in edges]
            except (TypeError, ValueError):
                raise ValueError(
                    f"Graph {i} must be a pair (labels, edges), edges being pairs of positions, "
                    f"or a networkx graph, got {type(graph).__name__}."
                ) from None
        neighbours = _neighbours(len(labels), edges, i)
        degrees = map(len, neighbours)
        own = [self._own(label, d, i) for label, d in zip(labels, degrees, strict=True)]
        return _Graph(own, neighbours)

    def _own(self, label: Any, degree: int, i: int) -> Hashable:
        """Return the label of depth 0, tagged so that degrees differ from given labels."""
        if label is None:
            if not self.degree_labels:
                raise ValueError(
                    f"Graph {i} has a vertex without a label (for networkx graphs: without the "
                    f"attribute {self.label!r}); degree_labels=True takes the degree instead."
                )
            return "degree", degree
        try:
            hash(label)
        except TypeError:
            raise ValueError(f"Graph {i} has a label that cannot be hashed: {label!r}.") from None
        return "label", label


def _neighbours(size: int, edges: list[tuple[int, int]], i: int) -> list[list[int]]:
    out: list[set[int]] = [set() for _ in range(size)]
    for u, v in edges:
        if not (0 <= u < size and 0 <= v < size):
            raise ValueError(f"Graph {i} has {size} vertices, but an edge ({u}, {v}).")
        out[u].add(v)
        out[v].add(u)
    return [sorted(found) for found in out]


def _one_step(graph: _Graph, labels: list[int], numbers: dict[Any, int]) -> list[int]:
    """Return the labels of the next depth: a number for every (own label, neighbours' labels)."""
    out = []
    for own, around in zip(labels, graph.neighbours, strict=True):
        pattern = (own, *sorted([labels[v] for v in around]))
        out.append(numbers.setdefault(pattern, len(numbers)))
    return out


def _counts(labels: list[list[int]]) -> sparse.csr_array:
    """Return the number of vertices of each graph with each label, shape (n_graphs, n_labels)."""
    rows = np.repeat(np.arange(len(labels)), [len(of_graph) for of_graph in labels])
    flat = np.array([x for of_graph in labels for x in of_graph], dtype=np.intp)
    shape = (len(labels), int(flat.max(initial=0)) + 1)
    # Repeated entries are added up.
    return sparse.csr_array((np.ones(len(flat)), (rows, flat)), shape=shape)
