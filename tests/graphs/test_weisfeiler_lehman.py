"""Weisfeiler-Lehman labels against nested tuples, written out in full."""

from __future__ import annotations

import pickle
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hikernel.graphs.weisfeiler_lehman import WeisfeilerLehman

DEPTH = 3


@st.composite
def graphs(draw):
    size = draw(st.integers(0, 6))
    labels = draw(st.lists(st.sampled_from("CNO"), min_size=size, max_size=size))
    pairs = [(i, j) for i in range(size) for j in range(size) if i != j]
    edges = draw(st.lists(st.sampled_from(pairs), max_size=8)) if pairs else []
    return labels, edges


def nested(graph, v, h):
    """The pattern around v as nested tuples, by its definition."""
    labels, edges = graph
    if h == 0:
        return labels[v]
    around = {j for i, j in edges if i == v} | {i for i, j in edges if j == v}
    return nested(graph, v, h - 1), tuple(sorted(nested(graph, u, h - 1) for u in around))


def naive_kernel(G, H, h):
    left, right = (Counter(nested(g, v, h) for v in range(len(g[0]))) for g in (G, H))
    return sum(left[pattern] * right[pattern] for pattern in left)


def permuted(graph, rng):
    labels, edges = graph
    to = rng.permutation(len(labels))
    moved = [None] * len(labels)
    for v, label in enumerate(labels):
        moved[to[v]] = label
    flipped = [(to[j], to[i]) for i, j in edges]
    return moved, [flipped[i] for i in rng.permutation(len(flipped))]


@given(st.lists(graphs(), min_size=1, max_size=4), st.lists(graphs(), min_size=1, max_size=4))
@settings(max_examples=60, deadline=None)
def test_kernels_count_equal_nested_tuples(G, H):
    wl = WeisfeilerLehman(DEPTH, normalize=False)
    grams = wl.grams(G, H)
    for h in range(DEPTH + 1):
        expected = [[naive_kernel(g, k, h) for k in H] for g in G]
        np.testing.assert_array_equal(grams[h], expected)
        np.testing.assert_array_equal(wl.kernel(h)(G, H), expected)


@pytest.mark.parametrize("normalize", [False, True])
@given(st.lists(graphs(), min_size=6, max_size=6))
@settings(max_examples=25, deadline=None)
def test_what_a_kernel_must_be(normalize, G):
    wl = WeisfeilerLehman(DEPTH, normalize=normalize)
    rng = np.random.default_rng(0)
    grams = wl.grams(G, G)
    for h, gram in enumerate(grams):
        np.testing.assert_array_equal(gram, gram.T)
        assert np.linalg.eigvalsh(gram).min() > -1e-10
        # The kernel of two graphs depends on no other graph, and on no numbering.
        np.testing.assert_array_equal(wl.kernel(h)(G[1:3], G[2:]), gram[1:3, 2:])
        np.testing.assert_array_equal(wl.kernel(h)([permuted(g, rng) for g in G], G), gram)
        if normalize:
            nonempty = [float(len(labels) > 0) for labels, _ in G]
            np.testing.assert_array_equal(np.diag(gram), nonempty)
    if not normalize:  # labels only split: deeper ones match less
        assert (np.diff(grams, axis=0) <= 0.0).all()


def test_refinement_by_hand():
    # C-C-O and C-O-C: the same atoms, told apart from depth 1 on.
    chain, ether = (("C", "C", "O"), [(0, 1), (1, 2)]), (("C", "O", "C"), [(0, 1), (1, 2)])
    grams = WeisfeilerLehman(2, normalize=False).grams([chain], [chain, ether])
    # Depth 0: 2 * 2 + 1. Depth 1: C(C), C(CO), O(C) against twice C(O), O(CC).
    np.testing.assert_array_equal(grams, [[[5, 5]], [[3, 0]], [[3, 0]]])


def test_regular_graphs_of_one_degree_look_alike():
    # What refinement cannot see: a ring of six and two rings of three.
    ring = "C" * 6, [(i, (i + 1) % 6) for i in range(6)]
    rings = "C" * 6, [(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3)]
    np.testing.assert_array_equal(WeisfeilerLehman(4).grams([ring], [rings]), np.ones((5, 1, 1)))


def test_edges_count_once_and_loops_are_neighbours():
    wl = WeisfeilerLehman(2)
    single, double = ("CN", [(0, 1)]), ("CN", [(0, 1), (1, 0), (0, 1)])
    np.testing.assert_array_equal(wl.grams([single], [double]), np.ones((3, 1, 1)))
    loop = "CN", [(0, 1), (0, 0)]
    assert wl.kernel(1)([single], [loop])[0, 0] == 0.5


def test_labels_of_any_kind():
    mixed = [("x", 1), 2.5, frozenset({3}), "x"], np.array([[0, 1], [2, 3]])
    other = ["x", ("x", 1)], []
    np.testing.assert_array_equal(
        WeisfeilerLehman(1, normalize=False).grams([mixed], [mixed, other]), [[[4, 2]], [[4, 0]]]
    )


def test_degrees_stand_in_for_absent_labels():
    path = [None, None, None], [(0, 1), (1, 2)]
    given_as_labels = [1, 2, 1], [(0, 1), (1, 2)]
    wl = WeisfeilerLehman(1, normalize=False, degree_labels=True)
    np.testing.assert_array_equal(wl.kernel(0)([path], [path, given_as_labels]), [[5, 0]])
    with pytest.raises(ValueError, match="degree_labels=True"):
        WeisfeilerLehman(1).kernel(0)([path], [path])


class LikeNetworkx:
    """The part of networkx.Graph that is used, so that the test needs no networkx."""

    class _Nodes(dict):
        def __call__(self, data):
            return [(node, attributes.get(data)) for node, attributes in self.items()]

    class _Edges(list):
        def __call__(self):
            return list(self)

    def __init__(self, nodes, edges, directed=False):
        self.nodes, self.edges, self._directed = self._Nodes(nodes), self._Edges(edges), directed

    def is_directed(self):
        return self._directed


def check_networkx(make):
    pair = ("CNO", [(0, 1), (1, 2)])
    nodes = {"c": {"label": "C"}, 7: {"label": "N"}, ("o",): {"label": "O"}}
    graph = make(nodes, [("c", 7), (7, ("o",))])
    wl = WeisfeilerLehman(2)
    np.testing.assert_array_equal(wl.grams([graph], [pair]), np.ones((3, 1, 1)))
    with pytest.raises(ValueError, match="'element'"):
        WeisfeilerLehman(2, label="element").grams([graph], [graph])
    unlabelled = WeisfeilerLehman(2, label="element", degree_labels=True, normalize=False)
    np.testing.assert_array_equal(unlabelled.grams([graph], [graph])[0], [[5]])


def test_graphs_like_those_of_networkx():
    check_networkx(LikeNetworkx)
    with pytest.raises(ValueError, match="to_undirected"):
        WeisfeilerLehman(1).grams([LikeNetworkx({}, [], directed=True)], [("C", [])])


def test_graphs_of_networkx_itself():
    networkx = pytest.importorskip("networkx")

    def make(nodes, edges):
        graph = networkx.Graph()
        graph.add_nodes_from(nodes.items())
        graph.add_edges_from(edges)
        return graph

    check_networkx(make)
    with pytest.raises(ValueError, match="to_undirected"):
        WeisfeilerLehman(1).grams([networkx.DiGraph([(0, 1)])], [("C", [])])


def test_a_kernel_survives_pickling():
    kernel = WeisfeilerLehman(2).kernel(2)
    G = [("CNO", [(0, 1)]), ("CN", [(0, 1)])]
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(kernel))(G, G), kernel(G, G))


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (3, "must be a pair"),
        (("CN", [(0, 1, 2)]), "must be a pair"),
        (("CN", [("a", 1)]), "must be a pair"),
        (("CN", [(0, 2)]), "2 vertices, but an edge"),
        (("CN", [(-1, 0)]), "2 vertices, but an edge"),
        (([["C"]], []), "cannot be hashed"),
    ],
)
def test_bad_graphs_are_told_in_a_sentence(graph, message):
    with pytest.raises(ValueError, match=message):
        WeisfeilerLehman(1).kernel(0)([graph], [("C", [])])


def test_bad_parameters_are_refused():
    for depth in (-1, 1.5, True):
        with pytest.raises(ValueError, match="depth"):
            WeisfeilerLehman(depth)
    with pytest.raises(ValueError, match="h must be one of"):
        WeisfeilerLehman(1).kernel(2)
    with pytest.raises(ValueError, match="is empty"):
        WeisfeilerLehman(1).kernel(0)([], [("C", [])])
