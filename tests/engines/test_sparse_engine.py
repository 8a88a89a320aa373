"""The engine of sparse columns against the dense one, loops and enumeration."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from oracles.naive import all_nodes, descendant_sum
from scipy import sparse

from hikernel.engines import NumpyEngine, sparse_engine, sparse_sums
from hikernel.engines.sparse_engine import SparseEngine
from hikernel.graphs import Grid, geometric_weights

DEPTHS = (1, 2, 3, 1, 2)


@pytest.fixture(params=["one block", "many blocks"])
def blocks(request, monkeypatch):
    """Results must not depend on how work is cut."""
    if request.param == "many blocks":
        monkeypatch.setattr(sparse_engine, "_BLOCK_NUMBERS", 1)
        monkeypatch.setattr(sparse_sums, "_BLOCK_MEETINGS", 1)


def both(n=60, seed=0, parents=None):
    """The same levels as a sparse and as a dense engine, with levels, omega and grid."""
    rng = np.random.default_rng(seed)
    pairs = [(m, j) for m, depth in enumerate(DEPTHS) for j in range(1, depth + 1)]
    zeros = rng.standard_normal(len(pairs))
    G = np.zeros((n, len(pairs)))
    for m in range(len(DEPTHS)):
        here = rng.random(n) < 0.3
        own = [c for c, (k, _) in enumerate(pairs) if k == m]
        G[np.ix_(here, own)] = rng.standard_normal((here.sum(), len(own)))
    weights = rng.uniform(0.5, 2.0, n)
    dense = zeros + G
    levels = [
        [np.ones((n, 1)), *(dense[:, [pairs.index((m, j))]] for j in range(1, depth + 1))]
        for m, depth in enumerate(DEPTHS)
    ]
    widths = [(1,) * (depth + 1) for depth in DEPTHS]
    one = SparseEngine(sparse.csc_array(G), zeros, pairs, weights)
    other = NumpyEngine(widths, levels, weights, [True] * len(DEPTHS))
    grid = Grid(geometric_weights(DEPTHS, 2.0), max_order=2, level_parents=parents)
    return one, other, levels, grid


def test_it_computes_what_the_dense_engine_computes(blocks):
    one, other, _, grid = both()
    nodes = all_nodes(grid)
    rng = np.random.default_rng(1)
    assert one.level_pairs == other.level_pairs
    np.testing.assert_allclose(one.features(nodes), other.features(nodes), atol=1e-14)
    for vector in (rng.standard_normal(60), rng.standard_normal((60, 3))):
        for absolute in (False, True):
            found = one.correlate(nodes, vector, absolute=absolute)
            expected = other.correlate(nodes, vector, absolute=absolute)
            np.testing.assert_allclose(found, expected, atol=1e-12)
        np.testing.assert_allclose(
            one.score_squares(nodes, vector), other.score_squares(nodes, vector), rtol=1e-9
        )
        prefixes = [(), ((0, 1),), ((2, 3),), ((1, 1), (3, 1)), ((4, 2),)]
        exact = other.extension_squares(prefixes, vector)
        np.testing.assert_allclose(one.extension_squares(prefixes, vector), exact, rtol=1e-9)
        up = one.extension_squares(prefixes, vector, rounded_up=True)
        np.testing.assert_allclose(up, exact, rtol=1e-7)
        assert np.all((up >= exact) | np.isnan(exact))
        coef = rng.standard_normal((len(nodes), *vector.shape[1:]))
        np.testing.assert_allclose(one.apply(nodes, coef), other.apply(nodes, coef), atol=1e-12)
    weights = rng.random(60)
    for w in (None, weights):
        a, b = one.means(nodes, w), other.means(nodes, w)
        np.testing.assert_allclose(a, b, atol=1e-14)
        for left in (nodes, nodes[::3]):
            c = one.means(left, w)
            np.testing.assert_allclose(
                one.gram(left, nodes, c, a, w), other.gram(left, nodes, c, a, w), atol=1e-12
            )
    means = one.means(nodes)
    np.testing.assert_allclose(
        one.gram_diagonal(nodes, means), other.gram_diagonal(nodes, means), rtol=1e-10
    )
    vector = rng.standard_normal(60)
    np.testing.assert_allclose(one.level_squares(vector), other.level_squares(vector), rtol=1e-10)
    rows = rng.permutation(60)[:25]
    few, fewer = one.subset(rows), other.subset(rows)
    np.testing.assert_allclose(few.features(nodes), fewer.features(nodes), atol=1e-14)
    np.testing.assert_allclose(few.row_weights, fewer.row_weights)


@pytest.mark.parametrize("max_order", [1, 2])
@pytest.mark.parametrize("parents", [None, ((0,), (0, 0), (0, 1, 0), (0,), (0, 1))])
def test_descendant_sums_equal_enumeration(blocks, max_order, parents):
    one, other, levels, grid = both(parents=parents)
    grid = replace(grid, max_order=max_order)
    alpha = np.random.default_rng(2).standard_normal(60)
    nodes = [node for node in all_nodes(grid) if node]
    expected = np.array([descendant_sum(grid, levels, t, alpha) for t in nodes])
    found = one.tail_sums(nodes, alpha, grid.tail_scales(), max_order)
    np.testing.assert_allclose(found, expected, rtol=1e-8)
    assert np.all(found >= expected * (1 - 1e-14))
    tops = [((m, grid.any_level(m)),) for m in range(5)] + [()]
    outputs = np.random.default_rng(3).standard_normal((60, 3))
    for scales, a in product((grid.tail_scales(), grid.own_scales()), (alpha, outputs)):
        found = one.tail_sums(tops, a, scales, max_order)
        np.testing.assert_allclose(found, other.tail_sums(tops, a, scales, max_order), rtol=1e-8)


def test_sums_that_cancel_are_rounded_up():
    # Two rows with all entries and opposite alpha: their terms are far larger than the sums.
    rng = np.random.default_rng(0)
    G = np.where(rng.random((40, 6)) < 0.2, rng.standard_normal((40, 6)), 0.0)
    G[-2:] = 1e4
    zeros = rng.standard_normal(6)
    pairs = [(m, 1) for m in range(6)]
    engine = SparseEngine(sparse.csc_array(G), zeros, pairs, np.ones(40))
    alpha = rng.standard_normal(40)
    alpha[-2:] = 1e6, -1e6
    exact = SparseEngine(sparse.csc_array(G[:-2]), zeros, pairs, np.ones(38))
    grid = Grid(geometric_weights([1] * 6, 2.0), max_order=2)
    nodes = [(), *(((m, 1),) for m in range(6)), ((0, 1), (3, 1))]
    for scales in (grid.tail_scales(), grid.own_scales()):
        found = engine.tail_sums(nodes, alpha, scales, 2)
        assert np.all(found >= exact.tail_sums(nodes, alpha[:-2], scales, 2) * (1 - 1e-9))


def test_more_than_two_variables_are_refused():
    one, _, _, grid = both()
    for order in (None, 3):
        with pytest.raises(ValueError, match="max_order 1 or 2"):
            one.tail_sums([()], np.ones(60), grid.tail_scales(), order)
    assert not one.has_draws


def test_columns_without_an_entry_or_a_level():
    empty = SparseEngine(sparse.csc_array((5, 0)), np.empty(0), [], np.ones(5))
    assert empty.extension_squares([()], np.ones(5)).shape == (1, 0)
    assert empty.tail_sums([()], np.ones(5), [], 2) == pytest.approx([25.0])
    assert np.all(empty.apply([()], np.ones(1)) == 1.0)
