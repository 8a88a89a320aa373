"""Finite DAGs: structure against recursion, weights, and errors that name the node."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.dags import ancestors, descendants, random_parents

from hikernel.graphs import Dag
from hikernel.graphs.dag import parents_of

DIAMOND = {"a": [], "b": ["a"], "c": ["a"], "d": ["b", "c"]}


@given(seed=st.integers(0, 10**6), m=st.integers(1, 15))
@settings(max_examples=40, deadline=None, derandomize=True)
def test_structure_is_what_recursion_finds(seed, m):
    rng = np.random.default_rng(seed)
    parents = random_parents(rng, m)
    shuffled = {node: parents[node] for node in rng.permutation(list(parents)).tolist()}
    dag = Dag(shuffled)
    assert set(dag.nodes) == set(parents)
    assert dag.n_vertices == m
    position = {node: i for i, node in enumerate(dag.nodes)}
    for node, above in parents.items():
        assert sorted(dag.parents(node)) == above
        assert all(position[parent] < position[node] for parent in above)
        assert set(dag.ancestors(node)) == ancestors(parents, node)
        assert dag.ancestors(node)[-1] == node
        children = [w for w in parents if node in parents[w]]
        assert sorted(dag.children(node)) == sorted(children)
        assert dag.depth(node) == max((dag.depth(v) + 1 for v in above), default=0)
        assert dag.weight(node) == 2.0 ** dag.depth(node)
        assert node in dag
    assert set(dag.sources) == {node for node, above in parents.items() if not above}
    some = [node for node in parents if rng.random() < 0.3]
    assert dag.hull(some) == set().union(*(ancestors(parents, node) for node in some))
    assert all(node in descendants(parents, v) for node in some for v in dag.ancestors(node))


def test_depth_is_the_longest_way_and_weights_follow_it():
    dag = Dag({"top": [], "long": ["top"], "end": ["top", "long"]}, weight_base=3.0)
    assert [dag.depth(v) for v in ("top", "long", "end")] == [0, 1, 2]
    np.testing.assert_array_equal(dag.weights(["end", "top"]), [9.0, 1.0])


def test_weights_of_the_user_are_kept():
    weights = {"a": 0.5, "b": np.float32(2.0), "c": 1, "d": 7.25}
    dag = Dag(DIAMOND, weights)
    np.testing.assert_array_equal(dag.weights(list("abcd")), [0.5, 2.0, 1.0, 7.25])


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({"a": 1.0, "b": 1.0, "c": 1.0}, "lacks the node 'd'"),
        ({"a": 1.0, "b": 1.0, "c": 1.0, "d": 1.0, "e": 1.0}, "names 'e'"),
        ({"a": 1.0, "b": 0.0, "c": 1.0, "d": 1.0}, "weight of 'b'.*got 0.0"),
        ({"a": 1.0, "b": 1.0, "c": -1.0, "d": 1.0}, "weight of 'c'.*got -1.0"),
        ({"a": 1.0, "b": 1.0, "c": float("nan"), "d": 1.0}, "weight of 'c'.*got nan"),
        ({"a": 1.0, "b": 1.0, "c": float("inf"), "d": 1.0}, "weight of 'c'.*got inf"),
        ({"a": 1.0, "b": 1.0, "c": 1.0, "d": "heavy"}, "weight of 'd'.*got 'heavy'"),
        ({"a": None, "b": 1.0, "c": 1.0, "d": 1.0}, "weight of 'a'.*got None"),
        ([1.0, 1.0, 1.0, 1.0], "must be a mapping"),
    ],
    ids=["missing", "unknown", "zero", "negative", "nan", "inf", "text", "None", "list"],
)
def test_wrong_weights_are_named(weights, message):
    with pytest.raises(ValueError, match=message):
        Dag(DIAMOND, weights)


@pytest.mark.parametrize("base", [0.0, -1.0, float("nan"), "two", None])
def test_a_wrong_weight_base(base):
    with pytest.raises(ValueError, match="weight_base must be a number above 0"):
        Dag(DIAMOND, weight_base=base)


def test_weights_that_leave_the_range_of_numbers():
    chain = {i: [i - 1] if i else [] for i in range(150)}
    with pytest.raises(ValueError, match="depth 149 leave the range"):
        Dag(chain)
    assert Dag(chain, weight_base=1.0).weight(149) == 1.0


@pytest.mark.parametrize(
    ("parents", "names"),
    [
        ({"a": ["a"]}, ["'a'"]),
        ({"a": ["b"], "b": ["a"]}, ["'a'", "'b'"]),
        ({"s": [], "a": ["s", "c"], "b": ["a"], "c": ["b"]}, ["'a'", "'b'", "'c'"]),
    ],
    ids=["itself", "two", "three"],
)
def test_a_cycle_is_spelled_out(parents, names):
    with pytest.raises(ValueError, match="cycle") as error:
        Dag(parents)
    assert all(name in str(error.value) for name in names)
    assert "'s'" not in str(error.value)


def test_an_unknown_parent_is_named_with_its_child():
    with pytest.raises(ValueError, match="'z' is a parent of 'b'"):
        Dag({"a": [], "b": ["z"]})


def test_a_graph_without_nodes():
    with pytest.raises(ValueError, match="no nodes"):
        Dag({})


def test_edges_in_all_their_forms_are_the_same_graph():
    graph = nx.DiGraph([("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")])
    edges = list(graph.edges)
    forms = [
        DIAMOND,
        {"b": ["a"], "c": ("a",), "d": {"b": 1, "c": 2}, "a": []},
        edges,
        iter(edges),
        graph.edges,
        [list(edge) for edge in edges],
        [*edges, ("a", "b")],  # an edge twice
        graph,
        nx.MultiDiGraph([*edges, ("a", "b")]),
        np.array(edges),
    ]
    for form in forms:
        dag = Dag(parents_of(form))
        assert {node: sorted(dag.parents(node)) for node in dag.nodes} == DIAMOND


def test_numbers_and_tuples_are_nodes_too():
    assert parents_of(np.array([[0, 1], [0, 2]])) == {0: [], 1: [0], 2: [0]}
    assert parents_of([((0, 1), (1, 1))]) == {(0, 1): [], (1, 1): [(0, 1)]}


def test_nodes_without_edges():
    assert parents_of((), ["a", "b"]) == {"a": [], "b": []}
    alone = nx.DiGraph([("a", "b")])
    alone.add_node("c")
    assert parents_of(alone, ["d"]) == {"d": [], "a": [], "b": ["a"], "c": []}


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ({"b": "a"}, "parents of 'b' must be a list"),
        ({"b": 3}, "parents of 'b' must be a list"),
        ({"b": [["a"]]}, "must be hashable.*'a'"),
        (["ab"], "pair .parent, child.*'ab'"),
        ([("a", "b", "c")], "pair"),
        ([("a", ["b"])], "must be hashable"),
        ([({"a"}, "b")], "must be hashable"),
        ([(("a", []), "b")], "must be hashable"),
        (nx.Graph([("a", "b")]), "no directions"),
        (None, "edges must be pairs"),
        ("ab", "edges must be pairs"),
        (7, "edges must be pairs"),
    ],
    ids=[
        "string of parents",
        "number of parents",
        "list as a parent",
        "string as an edge",
        "three",
        "list as a child",
        "set as a parent",
        "tuple with a list",
        "undirected",
        "None",
        "text",
        "number",
    ],
)
def test_edges_that_are_none(edges, message):
    with pytest.raises(ValueError, match=message):
        parents_of(edges)


def test_ten_thousand_nodes_take_no_time():
    flat = Dag({i: [] for i in range(10_000)})
    assert flat.hull(range(10_000)) == set(range(10_000))
    tree = Dag({i: [(i - 1) // 2] if i else [] for i in range(10_000)}, weight_base=1.5)
    assert len(tree.ancestors(9_999)) == 14
