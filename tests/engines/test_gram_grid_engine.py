"""The engine of Gram matrices against that of the features they are made of, and against loops."""

from __future__ import annotations

import numpy as np
import pytest
from engines.cases import make_engine, rational_tail_sum
from oracles.naive import all_nodes, descendant_sum, node_features

from hikernel.engines import (
    NumpyEngine,
    gram_tails,
    limited_tails,
    machine,
    node_kernels,
    tails,
)
from hikernel.engines.gram_grid_engine import GramGridEngine, ProductGram
from hikernel.engines.node_kernels import DenseGram
from hikernel.graphs import Grid, geometric_weights

WIDTHS = ((1, 1, 1), (1, 1, 3), (1, 2), (1, 1))


@pytest.fixture(params=["one tile", "many tiles"])
def cut(request, monkeypatch):
    """Results must not depend on how rows are cut, nor on threads."""
    if request.param == "many tiles":
        monkeypatch.setattr(node_kernels, "_CHUNK_NUMBERS", 100)
        monkeypatch.setattr(machine, "_MIN_ROWS_FOR_THREADS", 1)
        monkeypatch.setattr(machine, "n_threads", lambda: 2)
        for part in (tails, limited_tails, gram_tails):
            monkeypatch.setattr(part, "TILE_NUMBERS", 1)
    return request.param


def gram_engine(levels, weights, dtype=np.float64):
    grams = [[DenseGram((b @ b.T).astype(dtype)) for b in blocks[1:]] for blocks in levels]
    return GramGridEngine(grams, weights)


def pair_of_engines(n=40, widths=WIDTHS, dtype=np.float64):
    features, levels, omega, grid = make_engine(
        NumpyEngine, n=n, widths=widths, constant=(True,) * len(widths)
    )
    return features, gram_engine(levels, omega, dtype), levels, grid


def vectors(n):
    rng = np.random.default_rng(3)
    return [rng.standard_normal(n), rng.standard_normal((n, 3))]


def test_nodes_are_products_of_their_levels(cut):
    features, engine, levels, grid = pair_of_engines()
    nodes = all_nodes(grid)
    blocks = [node_features(levels, v) for v in nodes]
    assert engine.n_rows == 40
    np.testing.assert_allclose(engine.row_weights, features.row_weights)
    assert [engine.width(v) for v in nodes] == [40 if v else 1 for v in nodes]
    zeta = np.random.default_rng(1).uniform(0.1, 1.0, len(nodes))
    operator = engine.kernel_operator(nodes)
    # The root is a constant, of no use beside an intercept: zero as an operator.
    products = [(b @ b.T) * bool(v) for v, b in zip(nodes, blocks, strict=True)]
    expected = sum(z * K for z, K in zip(zeta, products, strict=True))
    np.testing.assert_allclose(operator.weighted_sum(zeta), expected, atol=1e-10)
    u = vectors(40)[0]
    applied = np.column_stack([K @ u for K in products])
    np.testing.assert_allclose(operator.apply(u), applied, atol=1e-10)
    for node, K in zip(nodes, products, strict=True):
        if len(node) > 1:
            product = engine.kernel_operator([node])._kernels[0]
            assert isinstance(product, ProductGram)
            np.testing.assert_allclose(product.diagonal(), np.diag(K), rtol=1e-12)


def test_functions_and_scores_equal_those_of_features(cut):
    features, engine, _, grid = pair_of_engines()
    nodes = all_nodes(grid)
    for vector in vectors(40):
        for node in nodes:
            ours = engine.apply([node], engine.correlate([node], vector))
            theirs = features.apply([node], features.correlate([node], vector))
            np.testing.assert_allclose(ours, theirs, atol=1e-9)
        exact = features.score_squares(nodes, vector)
        np.testing.assert_allclose(engine.score_squares(nodes, vector), exact, rtol=1e-9)
        up = engine.score_squares(nodes, vector, rounded_up=True)
        np.testing.assert_allclose(up, exact, rtol=1e-9)
        assert np.all(up >= exact * (1.0 - 1e-15))
    assert engine.correlate([], vector).shape == (0, 3)


def test_means_and_variances_are_by_coordinate():
    _, engine, levels, _ = pair_of_engines()
    nodes = [(), ((0, 1),), ((1, 2), (2, 1))]
    omega = engine.row_weights
    grams = [b @ b.T for b in (node_features(levels, v) for v in nodes[1:])]
    expected = np.concatenate([[1.0], *[K @ omega for K in grams]])
    np.testing.assert_allclose(engine.means(nodes), expected)
    other = np.linspace(1.0, 2.0, 40)
    np.testing.assert_allclose(engine.weighted(other).means(nodes), engine.means(nodes, other))
    variances = engine.gram_diagonal(nodes, expected)
    assert variances[0] == 0.0
    assert np.all(np.isposinf(variances[1:]))
    assert engine.means([]).shape == (0,)


def test_extensions_equal_those_of_features(cut):
    features, engine, _, _ = pair_of_engines()
    assert engine.level_pairs == features.level_pairs
    prefixes = [(), ((0, 2),), ((1, 1),), ((0, 1), (2, 1)), ((0, 1), (1, 2), (3, 1))]
    for vector in vectors(40):
        expected = features.extension_squares(prefixes, vector)
        found = engine.extension_squares(prefixes, vector)
        np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
        np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-9)
        up = engine.extension_squares(prefixes, vector, rounded_up=True)
        np.testing.assert_allclose(up, expected, rtol=1e-8, atol=1e-9)
        known = ~np.isnan(expected)
        assert np.all(up[known] >= found[known])
    assert engine.extension_squares([], vector).shape == (0, len(engine.level_pairs))


def test_scores_that_cancel_are_rounded_up():
    # Two equal rows with opposite alpha, far away: the terms are 1e16 times their sum.
    rng = np.random.default_rng(0)
    X = np.round(8.0 * rng.standard_normal((30, 2))) / 8.0
    X[-2:] = 4096.0
    alpha = np.round(64.0 * rng.standard_normal(30)) / 64.0
    alpha[-2:] = 1024.0, -1024.0
    engine = gram_engine([[None, x[:, None]] for x in X.T], np.ones(30))
    exact = float(np.sum(X[:-2, 0] * X[:-2, 1] * alpha[:-2])) ** 2
    assert engine.extension_squares([((0, 1),)], alpha, rounded_up=True)[0, 1] >= exact
    assert engine.score_squares([((0, 1), (1, 1))], alpha, rounded_up=True)[0] >= exact


def test_level_squares_bound_all_products_of_two(cut):
    features, engine, _, _ = pair_of_engines()
    vector = vectors(40)[0]
    np.testing.assert_allclose(engine.level_squares(vector), features.level_squares(vector))
    u = np.random.default_rng(4).uniform(0.5, 2.0, 40)
    bounds = np.outer(engine.level_squares(vector / u), engine.level_squares(u))
    exact = engine.extension_squares([(pair,) for pair in engine.level_pairs], vector)
    assert np.all((exact <= bounds) | np.isnan(exact))


@pytest.mark.parametrize("max_order", [None, 1, 2, 3])
def test_tail_sums_equal_enumeration(cut, max_order):
    features, engine, levels, grid = pair_of_engines()
    grid = Grid(grid.level_weights, 1.0, max_order)
    nodes = [v for v in all_nodes(grid) if v]
    for vector in vectors(40):
        columns = vector.reshape(40, -1).T
        expected = sum(
            np.array([descendant_sum(grid, levels, t, column) for t in nodes]) for column in columns
        )
        found = engine.tail_sums(nodes, vector, grid.tail_scales(), max_order)
        np.testing.assert_allclose(found, expected, rtol=1e-8)
        assert np.all(found >= expected * (1.0 - 1e-14))
        whole = engine.tail_sums([()], vector, grid.own_scales(), max_order)
        other = features.tail_sums([()], vector, grid.own_scales(), max_order)
        np.testing.assert_allclose(whole, other, rtol=1e-8)
    deep = (((0, 1), (1, 1), (2, 1), (3, 1)),)
    if max_order is not None:
        assert engine.tail_sums(deep, vector, grid.tail_scales(), max_order) == 0.0
    assert engine.tail_sums([], vector, grid.tail_scales(), max_order).shape == (0,)


def test_tail_sums_where_level_zero_sums_vanish_or_are_negative():
    # 1 + x x' / 4 is exactly zero for half of the pairs of plus and minus two, and below zero for
    # half of those of plus and minus four.
    z = np.random.default_rng(0).standard_normal(20)
    columns = [np.array([2.0, -2.0] * 10), np.array([4.0, -4.0] * 10), z]
    levels = [[np.ones((20, 1)), x[:, None]] for x in columns]
    grid = Grid(geometric_weights([1, 1, 1], 1.0))
    engine = gram_engine(levels, np.ones(20))
    alpha = np.random.default_rng(1).standard_normal(20)
    nodes = [v for v in all_nodes(grid) if v]
    expected = np.array([descendant_sum(grid, levels, t, alpha) for t in nodes])
    found = engine.tail_sums(nodes, alpha, grid.tail_scales())
    np.testing.assert_allclose(found, expected, rtol=1e-8)
    assert np.all(found >= expected * (1.0 - 1e-14))


@pytest.mark.parametrize("max_order", [None, 12])
def test_tail_sums_that_cancel_are_rounded_up(max_order):
    # Entries of few bits, so that the Gram matrices are exact.
    rng = np.random.default_rng(0)
    n, p = 20, 12
    X = np.round(4.0 * rng.standard_normal((n, p))) / 4.0
    X[-2:] = 6.0
    levels = [[None, x[:, None], x[:, None] ** 2] for x in X.T]
    grid = Grid(geometric_weights([2] * p, 1.0))
    alpha = rng.standard_normal(n)
    alpha[-1], alpha[-2] = 5.0, -5.0
    nodes = [((m, 1),) for m in range(3)]
    scales = grid.tail_scales()
    exact = [rational_tail_sum(X, alpha, scales, node) for node in nodes]
    engine = gram_engine(levels, np.ones(n))
    assert np.all(engine.tail_sums(nodes, alpha, scales, max_order) >= exact)
    few = [sum_of_order_one(X, alpha, scales, node) for node in nodes]
    assert np.all(engine.tail_sums(nodes, alpha, scales, 1) >= few)


def sum_of_order_one(X, alpha, scales, node):
    """U(t) where no further variable may join."""
    ((m, j),) = node
    return sum(scales[m][j, level] * float(X[:, m] ** level @ alpha) ** 2 for level in (1, 2))


@pytest.mark.parametrize("max_order", [None, 5])
def test_tail_sums_that_overflow_are_infinite(max_order):
    levels = [[None, np.full((6, 1), 1e60)] for _ in range(8)]
    grid = Grid(geometric_weights([1] * 8, 2.0))
    alpha = np.array([1.0, -1.0, 2.0, -2.0, 0.5, -0.5])
    engine = gram_engine(levels, np.ones(6))
    found = engine.tail_sums([((0, 1),)], alpha, grid.tail_scales(), max_order)
    assert np.all(np.isposinf(found))


@pytest.mark.parametrize("most", [0, 10**6], ids=["positions", "copies"])
def test_a_subset_of_rows(most, monkeypatch):
    monkeypatch.setattr(node_kernels, "_COPIED_NUMBERS", most)
    features, engine, _, grid = pair_of_engines()
    rows = np.array([3, 3, 0, 17, 29, 8, 11, 5])
    part = engine.subset(rows)
    again = part.subset(np.array([1, 2, 4, 5, 6]))
    reference = features.subset(rows[[1, 2, 4, 5, 6]])
    np.testing.assert_allclose(again.row_weights, reference.row_weights)
    vector = vectors(5)[1]
    nodes = all_nodes(grid)
    np.testing.assert_allclose(
        again.score_squares(nodes, vector), reference.score_squares(nodes, vector), rtol=1e-9
    )
    np.testing.assert_allclose(
        again.tail_sums(nodes[1:], vector, grid.tail_scales()),
        reference.tail_sums(nodes[1:], vector, grid.tail_scales()),
        rtol=1e-8,
    )
    np.testing.assert_allclose(
        again.extension_squares([()], vector), reference.extension_squares([()], vector), rtol=1e-8
    )
    np.testing.assert_allclose(
        again.level_squares(vector[:, 0]), reference.level_squares(vector[:, 0])
    )
    assert (again._grams[0, 1]._matrix is engine._grams[0, 1]._matrix) == (most == 0)


def test_float32_matrices_are_summed_in_float64():
    features, engine, _, grid = pair_of_engines(dtype=np.float32)
    nodes = all_nodes(grid)
    vector = vectors(40)[0]
    size = np.max(features.score_squares(nodes, vector))
    np.testing.assert_allclose(
        engine.score_squares(nodes, vector),
        features.score_squares(nodes, vector),
        atol=1e-5 * size,
    )
    sums = engine.tail_sums(nodes[1:], vector, grid.tail_scales())
    expected = features.tail_sums(nodes[1:], vector, grid.tail_scales())
    np.testing.assert_allclose(sums, expected, rtol=1e-3, atol=1e-6 * size)
    assert engine.kernel_operator(nodes).weighted_sum(np.ones(len(nodes))).dtype == np.float64


def test_verbs_that_need_feature_columns_say_so():
    _, engine, _, grid = pair_of_engines()
    vector, scales, empty = np.ones(40), grid.tail_scales(), np.empty(0)
    assert not engine.has_draws
    assert engine.score_work == 820
    calls = [
        lambda: engine.features([()]),
        lambda: engine.gram([()], [()], empty, empty),
        lambda: engine.correlate([()], vector, absolute=True),
        lambda: engine.tail_draws([()], vector, scales, None, 10, 0),
        lambda: engine.tail_exact_parts([()], vector, scales, None),
    ]
    for call in calls:
        with pytest.raises(NotImplementedError, match="needs feature columns"):
            call()
