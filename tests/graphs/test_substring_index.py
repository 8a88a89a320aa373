"""Substrings against counting by hand, explorations against looking at every node."""

from __future__ import annotations

import itertools
import math
import pickle
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hikernel.graphs.substring_index import SubstringIndex

texts = st.lists(st.text("ABC", max_size=12), min_size=1, max_size=6).filter(any)
lengths = st.integers(1, 5)
memories = st.sampled_from([0, 2000, 2**28])


def naive_count(node, string):
    return sum(string[i : i + len(node)] == node for i in range(len(string)))


def naive_column(node, strings, binary=False):
    counts = np.array([naive_count(node, s) for s in strings], dtype=float)
    return np.minimum(counts, 1.0) if binary else counts


def every_node(strings, max_length):
    alphabet = sorted(set("".join(strings)))
    for length in range(1, max_length + 1):
        yield from map("".join, itertools.product(alphabet, repeat=length))


def naive_scores(strings, max_length, binary, alpha, weights):
    outputs = np.atleast_2d(np.asarray(alpha).T)
    out = {}
    for node in every_node(strings, max_length):
        column = naive_column(node, strings, binary)
        squares = [math.fsum(a * column) ** 2 for a in outputs]
        out[node] = math.fsum(squares) / weights[len(node) - 1] ** 2
    return out


@st.composite
def explorations(draw):
    strings, k = draw(texts), draw(lengths)
    n = len(strings)
    shape = draw(st.sampled_from([(n,), (n, 1), (n, 3)]))
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    alpha = rng.integers(-3, 4, shape) * draw(st.sampled_from([1.0, 0.1, 1e-9]))
    weights = draw(st.lists(st.sampled_from([0.25, 0.9, 1.0, 2.0, 5.0]), min_size=k, max_size=k))
    return strings, k, draw(st.booleans()), alpha, weights, draw(memories)


@given(texts, lengths, st.booleans(), memories)
@settings(max_examples=40, deadline=None)
def test_graph_and_columns_equal_enumeration(strings, k, binary, memory):
    index = SubstringIndex(strings, k, binary, memory=memory)
    nodes = list(every_node(strings, k))
    assert index.n_vertices == len(nodes)

    def check():
        for node in nodes:
            assert node in index
            np.testing.assert_array_equal(
                index.column(node), naive_column(node, strings, binary), strict=True
            )
            ancestors = index.ancestors(node)
            assert set(ancestors) == {v for v in nodes if v in node}
            assert len(set(ancestors)) == len(ancestors)
            assert [len(v) for v in ancestors] == sorted(len(v) for v in ancestors)
            assert ancestors[-1] == node

    check()
    index.explore(np.ones(len(strings)), 0.0, [1.0] * k)  # builds what it may keep
    check()


@given(explorations(), st.floats(0.0, 1.2))
@settings(max_examples=150, deadline=None)
def test_an_exploration_tells_of_every_node(case, fraction):
    strings, k, binary, alpha, weights, memory = case
    scores = naive_scores(strings, k, binary, alpha, weights)
    threshold = fraction * max(scores.values())
    index = SubstringIndex(strings, k, binary, memory=memory)
    found = index.explore(alpha, threshold, weights)
    sure = {node for node, score in scores.items() if score > threshold}
    assert sure <= set(found.violators)
    for node, score in found.violators.items():
        # Scores are rounded up: a node in doubt is listed.
        assert score > threshold
        assert scores[node] <= score <= scores[node] + 1e-12 * rounding_scale(case)
    assert found.rest <= threshold
    rest = [score for node, score in scores.items() if node not in found.violators]
    assert found.rest >= max(rest, default=0.0)
    assert len(found.violators) <= found.n_explored <= index.n_vertices
    again = index.explore(alpha, threshold, weights)
    assert again == found
    assert list(again.violators) == sorted(found.violators, key=lambda node: (len(node), node))


def rounding_scale(case):
    strings, _, _, alpha, weights, _ = case
    return (np.abs(alpha).sum() * max(map(len, strings)) / min(weights)) ** 2


@given(explorations(), st.integers(1, 60))
@settings(max_examples=60, deadline=None)
def test_a_budget_leaves_a_bound_that_holds(case, budget):
    strings, k, binary, alpha, weights, memory = case
    scores = naive_scores(strings, k, binary, alpha, weights)
    threshold = 0.1 * max(scores.values())
    index = SubstringIndex(strings, k, binary, memory=memory)
    found = index.explore(alpha, threshold, weights, max_nodes=budget)
    assert found.n_explored <= max(budget, len(index.alphabet))
    rest = [score for node, score in scores.items() if node not in found.violators]
    assert found.rest >= max(rest, default=0.0)


def test_sums_that_cancel_are_not_taken_for_zero():
    # (1 + 2^-60) - 1 is zero in floating point; the exact score is (2^-60)^2.
    strings = ["AB"] * 3
    alpha = np.array([1.0, 2.0**-60, -1.0])
    exact = math.fsum(alpha) ** 2
    found = SubstringIndex(strings, 2).explore(alpha, 0.0, [1.0, 1.0])
    assert min(found.violators.values()) >= exact > 0.0


def test_branches_close():
    rng = np.random.default_rng(0)
    strings = ["".join(rng.choice(list("ACGT"), 60)) for _ in range(200)]
    index = SubstringIndex(strings, 30)
    y = index.column("ACG") - index.column("ACG").mean()
    weights = [2.0**length for length in range(30)]
    threshold = 0.5 * (index.column("ACG") @ y) ** 2 / weights[2] ** 2
    found = index.explore(y, threshold, weights)
    assert found.n_explored < 500
    assert index.n_vertices > 10**18
    assert "ACG" in found.violators
    # B closes, and AB with it although A is open.
    two = SubstringIndex(["AB", "A", "A", "A"], 2)
    assert two.explore(np.ones(4), 4.0, [1.0, 1.0]).n_explored == 2
    # Everything is closed at once where the threshold is above all bounds.
    assert index.explore(y, np.inf, weights).n_explored == 4


@pytest.mark.slow
def test_memory_is_kept_within_its_bound():
    rng = np.random.default_rng(1)
    strings = ["".join(rng.choice(list("ACGT"), 200)) for _ in range(50)]
    held = {}
    for memory in (0, 2**21, 2**28):
        index = SubstringIndex(strings, 12, memory=memory)
        tracemalloc.start()
        index.explore(rng.standard_normal(50), 0.0, [1.0] * 12)
        held[memory] = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        np.testing.assert_array_equal(index.column(strings[0][:12]), np.eye(50)[0])
    assert held[0] < 2**17
    assert 2**20 < held[2**21] < 2**21 + 2**17
    assert held[2**28] > 2**21 + 2**17


@given(st.text("AB", min_size=1, max_size=5), texts, st.booleans())
@settings(max_examples=60, deadline=None)
def test_new_strings_are_counted_alike(node, strings, binary):
    index = SubstringIndex(["ABBA"], 5, binary)
    np.testing.assert_array_equal(
        index.count(node, strings), naive_column(node, strings, binary), strict=True
    )


def test_any_letters_will_do():
    strings = ["a\nb", "\n\n", "", "\U0001f40d\x00é", "\ud800a"]
    index = SubstringIndex(strings, 3)
    nodes = {s[i:j] for s in strings for i in range(len(s)) for j in range(i + 1, len(s) + 1)}
    # Equal weights of the rows and threshold 0: every substring that occurs is listed.
    assert set(index.explore(np.ones(5), 0.0, [1.0] * 3).violators) == nodes
    for node in nodes:
        np.testing.assert_array_equal(index.column(node), naive_column(node, strings))


def test_an_index_survives_pickling():
    index = SubstringIndex(["ABAB", "BA"], 3)
    found = index.explore([1.0, -2.0], 0.1, [1.0, 2.0, 4.0])
    copy = pickle.loads(pickle.dumps(index))
    assert copy.explore([1.0, -2.0], 0.1, [1.0, 2.0, 4.0]) == found


@pytest.mark.parametrize(
    ("strings", "k", "message"),
    [
        ([], 2, "is empty"),
        (["A", 3], 2, "number 1 is of type int"),
        (["A", None], 2, "NoneType"),
        ("ABC", 2, "put it in a list"),
        (["", ""], 2, "All strings are empty"),
        (["A"], 0, "at least 1"),
        (["A"], 2.5, "whole number"),
    ],
)
def test_bad_input_is_told_in_a_sentence(strings, k, message):
    with pytest.raises(ValueError, match=message):
        SubstringIndex(strings, k)


def test_bad_questions_are_told_in_a_sentence():
    index = SubstringIndex(["AB", "B"], 2)
    for node in ("", "ABA", "C", 3):
        assert node not in index
        for ask in (index.column, index.ancestors):
            with pytest.raises(ValueError, match="1 to 2 letters"):
                ask(node)
    with pytest.raises(ValueError, match="at least one letter"):
        index.count("", ["A"])
    with pytest.raises(ValueError, match="shape"):
        index.explore([1.0], 0.0, [1.0, 1.0])
    with pytest.raises(ValueError, match="finite"):
        index.explore([1.0, np.nan], 0.0, [1.0, 1.0])
    with pytest.raises(ValueError, match="threshold"):
        index.explore([1.0, 1.0], np.nan, [1.0, 1.0])
    for weights in ([1.0], [1.0, 0.0], [1.0, np.inf]):
        with pytest.raises(ValueError, match="2 numbers"):
            index.explore([1.0, 1.0], 0.0, weights)
