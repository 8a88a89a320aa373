"""Every engine of a grid against loops: features, moments, descendant sums."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest
from engines.cases import rational_tail_sum
from oracles.naive import all_nodes, descendant_sum, node_features

from hikernel.engines import ENGINES, NumpyEngine, tails
from hikernel.engines.machine import available_bytes, require_memory
from hikernel.errors import MemoryPlanError
from hikernel.graphs import Grid, geometric_weights


@pytest.mark.parametrize("constant", [(True, True, True), (False, True, False)])
def test_features_and_moments_equal_loops(make, chunked, constant):
    engine, levels, omega, grid = make(n=150, constant=constant)
    nodes = all_nodes(grid)
    expected = [node_features(levels, v) for v in nodes]
    assert [engine.width(v) for v in nodes] == [block.shape[1] for block in expected]
    dense = np.hstack(expected)
    np.testing.assert_allclose(engine.features(nodes), dense, rtol=1e-13)
    np.testing.assert_allclose(engine.row_weights, omega)
    np.testing.assert_allclose(engine.means(nodes), dense.T @ omega, atol=1e-13)
    rng = np.random.default_rng(1)
    vector = rng.standard_normal(engine.n_rows)
    coef = rng.standard_normal(dense.shape[1])
    np.testing.assert_allclose(engine.correlate(nodes, vector), dense.T @ vector, atol=1e-10)
    np.testing.assert_allclose(engine.apply(nodes, coef), dense @ coef, atol=1e-10)
    centred = dense - dense.T @ omega
    means = engine.means(nodes)
    gram = engine.gram(nodes, nodes, means, means)
    np.testing.assert_allclose(gram, centred.T @ (omega[:, None] * centred), atol=1e-10)
    half = nodes[::2]
    cross = engine.gram(half, nodes, engine.means(half), means)
    part = np.hstack([expected[i] for i in range(0, len(nodes), 2)])
    np.testing.assert_allclose(
        cross, (part - part.T @ omega).T @ (omega[:, None] * centred), atol=1e-10
    )


@pytest.mark.parametrize("constant", [(True, True, True), (False, True, False)])
@pytest.mark.parametrize("outputs", [(), (1,), (3,)])
def test_variances_of_terms_equal_loops(make, chunked, constant, outputs):
    engine, levels, omega, grid = make(n=150, constant=constant)
    nodes = all_nodes(grid)
    rng = np.random.default_rng(3)
    blocks = [rng.standard_normal((engine.width(node), *outputs)) for node in nodes]
    terms = [
        (node_features(levels, v) @ b).reshape(150, -1) for v, b in zip(nodes, blocks, strict=True)
    ]
    expected = [np.sum(omega @ (term - omega @ term) ** 2) for term in terms]
    np.testing.assert_allclose(engine.variances(nodes, blocks), expected, rtol=1e-12, atol=1e-15)
    assert engine.variances([], []).shape == (0,)


def test_level_squares_equal_loops(make, chunked):
    engine, levels, _, _ = make(n=150)
    vector = np.random.default_rng(2).standard_normal(150)
    expected = [np.sum((vector[:, None] * levels[m][j]) ** 2) for m, j in engine.level_pairs]
    np.testing.assert_allclose(engine.level_squares(vector), expected, rtol=1e-12)
    blind, *_ = make(constant=(False, True, True))
    assert np.all(np.isinf(blind.level_squares(np.ones(23))))


def test_features_do_not_depend_on_the_order_of_nodes(make):
    engine, levels, _, grid = make()
    nodes = all_nodes(grid)[::-1]
    np.testing.assert_allclose(
        engine.features(nodes), np.hstack([node_features(levels, v) for v in nodes]), rtol=1e-13
    )


@pytest.mark.parametrize("constant", [(True, True, True), (False, True, False)])
def test_tail_sums_equal_enumeration(make, chunked, constant):
    engine, levels, _, grid = make(n=40, constant=constant)
    nodes = [v for v in all_nodes(grid) if v]
    alpha = np.random.default_rng(2).standard_normal(engine.n_rows)
    expected = [descendant_sum(grid, levels, t, alpha) for t in nodes]
    result = engine.tail_sums(nodes, alpha, grid.tail_scales())
    np.testing.assert_allclose(result, expected, rtol=1e-8)
    assert np.all(result >= np.array(expected) * (1 - 1e-14))


@pytest.mark.parametrize("max_order", [None, 1, 2])
def test_tail_sums_over_trees_equal_enumeration(make, chunked, max_order):
    widths = ((1, 1, 2, 1), (1, 1, 3), (1, 2), (1, 1, 1))
    parents = ((0, 1, 0), (0, 0), (0,), (0, 1))
    engine, levels, _, grid = make(n=30, widths=widths, constant=(True,) * 4, parents=parents)
    grid = replace(grid, max_order=max_order)
    nodes = [v for v in all_nodes(grid) if v]
    alpha = np.random.default_rng(2).standard_normal(engine.n_rows)
    expected = {t: descendant_sum(grid, levels, t, alpha) for t in nodes}
    result = engine.tail_sums(nodes, alpha, grid.tail_scales(), max_order)
    np.testing.assert_allclose(result, list(expected.values()), rtol=1e-8)
    # Of a set of variables: the sum over all choices of a child of the root in each of them.
    sets = [s for k in (1, 2) if k <= (max_order or 2) for s in combinations(range(4), k)]
    tops = [tuple((m, grid.any_level(m)) for m in s) for s in sets]
    assert [grid.any_level(m) for m in range(4)] == [4, 3, 1, 1]
    found = engine.tail_sums(tops, alpha, grid.tail_scales(), max_order)
    whole = [
        sum(expected[tuple(zip(s, c, strict=True))] for c in product(*map(grid.first_levels, s)))
        for s in sets
    ]
    np.testing.assert_allclose(found, whole, rtol=1e-8)
    assert np.all(found >= np.array(whole) * (1 - 1e-14))


def test_tail_sums_where_level_zero_sums_vanish(engine_type, monkeypatch):
    # A column of plus and minus two with weights 1: 1 + x x' / 4 is exactly zero for half of the
    # pairs, which must not be divided by.
    x = np.array([2.0, -2.0] * 10)[:, None]
    z = np.random.default_rng(0).standard_normal((20, 1))
    levels = [[np.ones((20, 1)), x], [np.ones((20, 1)), z]]
    grid = Grid(geometric_weights([1, 1], 1.0))
    engine = engine_type([(1, 1), (1, 1)], levels, np.ones(20), [True, True])
    alpha = np.random.default_rng(1).standard_normal(20)
    nodes = [v for v in all_nodes(grid) if v]
    expected = [descendant_sum(grid, levels, t, alpha) for t in nodes]
    undivided = []
    by_products = tails.TailPlan._by_products
    monkeypatch.setattr(
        tails.TailPlan,
        "_by_products",
        lambda plan, stack, weight: (
            undivided.append(len(weight)) or by_products(plan, stack, weight)
        ),
    )
    result = engine.tail_sums(nodes, alpha, grid.tail_scales())
    np.testing.assert_allclose(result, expected, rtol=1e-8)
    assert np.all(result >= np.array(expected) * (1 - 1e-14))
    if type(engine) is NumpyEngine:
        assert sum(undivided) == 200


def test_tail_sums_where_every_pair_vanishes(engine_type):
    x = np.array([2.0, -2.0])[:, None]
    levels = [[np.zeros((2, 1)), x]]
    grid = Grid(geometric_weights([1], 1.0))
    engine = engine_type([(1, 1)], levels, np.ones(2), [False])
    alpha = np.array([1.0, -1.0])
    expected = descendant_sum(grid, levels, ((0, 1),), alpha)
    result = engine.tail_sums([((0, 1),)], alpha, grid.tail_scales())
    np.testing.assert_allclose(result, [expected])


@pytest.mark.slow
def test_tail_sums_that_cancel_are_rounded_up(engine_type):
    # Two rows at one extreme point with opposite alpha: their terms are 1e20 times the sum.
    rng = np.random.default_rng(0)
    n, p = 30, 20
    X = rng.standard_normal((n, p))
    X[-2:] = 6.0
    levels = [[np.ones((n, 1)), X[:, [m]], X[:, [m]] ** 2] for m in range(p)]
    grid = Grid(geometric_weights([2] * p, 1.0))
    engine = engine_type([(1, 1, 1)] * p, levels, np.ones(n), [True] * p)
    alpha = rng.standard_normal(n)
    alpha[-1], alpha[-2] = 5.0, -5.0
    nodes = [((m, 1),) for m in range(4)]
    scales = grid.tail_scales()
    exact = [rational_tail_sum(X, alpha, scales, node) for node in nodes]
    result = engine.tail_sums(nodes, alpha, scales)
    assert np.all(result >= exact)
    # Without the twins nothing cancels and the allowance is negligible.
    calm_levels = [[block[:-2] for block in variable] for variable in levels]
    calm = engine_type([(1, 1, 1)] * p, calm_levels, np.ones(n - 2), [True] * p)
    calm_exact = [rational_tail_sum(X[:-2], alpha[:-2], scales, node) for node in nodes]
    np.testing.assert_allclose(calm.tail_sums(nodes, alpha[:-2], scales), calm_exact, rtol=1e-6)


def test_tail_sums_that_overflow_are_infinite(engine_type):
    p, n = 8, 6
    levels = [[np.ones((n, 1)), np.full((n, 1), 1e60)] for _ in range(p)]
    grid = Grid(geometric_weights([1] * p, 2.0))
    engine = engine_type([(1, 1)] * p, levels, np.ones(n), [True] * p)
    alpha = np.array([1.0, -1.0, 2.0, -2.0, 0.5, -0.5])
    assert np.all(np.isposinf(engine.tail_sums([((0, 1),)], alpha, grid.tail_scales())))


@pytest.mark.parametrize("max_order", [1, 2, 3])
def test_tail_sums_of_limited_order_equal_enumeration(make, chunked, max_order):
    widths = ((1, 1, 1), (1, 1, 3), (1, 2), (1,), (1, 1))
    engine, levels, _, _ = make(n=40, widths=widths, constant=(True,) * 5)
    grid = Grid(geometric_weights([2, 2, 1, 0, 1], 2.0), 1.0, max_order)
    nodes = [v for v in all_nodes(grid) if v]
    assert max(len(v) for v in nodes) == max_order
    alpha = np.random.default_rng(2).standard_normal(engine.n_rows)
    expected = np.array([descendant_sum(grid, levels, t, alpha) for t in nodes])
    result = engine.tail_sums(nodes, alpha, grid.tail_scales(), max_order)
    np.testing.assert_allclose(result, expected, rtol=1e-8)
    assert np.all(result >= expected * (1 - 1e-14))
    own = sum(
        float(np.sum((node_features(levels, v).T @ alpha) ** 2)) / (grid.weight(v) if v else 1) ** 2
        for v in all_nodes(grid)
    )
    total = engine.tail_sums([()], alpha, grid.own_scales(), max_order)
    np.testing.assert_allclose(total, [own], rtol=1e-8)


def test_variables_with_a_single_level_drop_out(engine_type):
    levels = [[np.ones((5, 1))], [np.ones((5, 1)), np.arange(5.0)[:, None]]]
    engine = engine_type([(1,), (1, 1)], levels, np.ones(5), [True, True])
    grid = Grid(geometric_weights([0, 1], 2.0))
    alpha = np.array([1.0, -1.0, 0.5, 0.5, -1.0])
    expected = (np.arange(5.0) @ alpha) ** 2 / 4.0
    np.testing.assert_allclose(engine.tail_sums([((1, 1),)], alpha, grid.tail_scales()), [expected])


def test_a_graph_of_constants_has_the_root_alone(engine_type):
    engine = engine_type([(1,)], [[np.ones((3, 1))]], np.ones(3), [True])
    grid = Grid(geometric_weights([0], 2.0))
    alpha = np.array([1.0, 2.0, -0.5])
    np.testing.assert_allclose(engine.tail_sums([()], alpha, grid.tail_scales()), [6.25])


def test_no_nodes_is_fine(make):
    engine, _, _, grid = make()
    alpha = np.zeros(engine.n_rows)
    assert engine.tail_sums([], alpha, grid.tail_scales()).shape == (0,)
    assert engine.correlate([], alpha).shape == (0,)


def test_memory_is_planned_before_it_is_taken():
    available = available_bytes()
    assert available is None or available > 2**20
    with pytest.raises(MemoryPlanError, match=r"A cube would take .* GiB.*Use less"):
        require_memory(2**60, "A cube", "Use less.")
    require_memory(1, "One number", "")


@pytest.mark.parametrize("engine_type", ENGINES.values(), ids=ENGINES)  # blocks keep no levels
def test_an_engine_too_large_for_memory_is_refused_at_once(engine_type):
    class Rows:
        """Pretends to be a long vector without being one."""

        def __len__(self):
            return 2**45

        def __array__(self, dtype=None, copy=None):
            return np.ones(1)

    with pytest.raises(MemoryPlanError, match="lower degree"):
        engine_type([(1, 1)], iter(()), Rows(), [True])
