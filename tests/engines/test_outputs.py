"""Several outputs at once, and weights given per call, against loops and enumeration."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from engines.cases import rational_tail_sum
from oracles.naive import all_nodes, descendant_sum, node_features

from hikernel.graphs import Grid, geometric_weights

pytestmark = pytest.mark.slow

N_OUTPUTS = 3
CONSTANT = [(True, True, True), (False, True, False)]


def normal(*shape, seed=1):
    return np.random.default_rng(seed).standard_normal(shape)


def limited_case(make, n, max_order):
    """Five variables, one of them constant, and descendants of limited order."""
    widths = ((1, 1, 1), (1, 1, 3), (1, 2), (1,), (1, 1))
    engine, levels, _, _ = make(n=n, widths=widths, constant=(True,) * 5)
    return engine, levels, Grid(geometric_weights([2, 2, 1, 0, 1], 2.0), 1.0, max_order)


@pytest.mark.parametrize("constant", CONSTANT)
def test_products_with_several_columns_equal_loops(make, chunked, constant):
    engine, levels, _, grid = make(n=150, constant=constant)
    nodes = all_nodes(grid)
    dense = np.hstack([node_features(levels, v) for v in nodes])
    vector = normal(150, N_OUTPUTS)
    coef = normal(dense.shape[1], N_OUTPUTS, seed=2)
    np.testing.assert_allclose(engine.correlate(nodes, vector), dense.T @ vector, atol=1e-10)
    np.testing.assert_allclose(
        engine.correlate(nodes, vector, absolute=True), np.abs(dense).T @ np.abs(vector), rtol=1e-12
    )
    np.testing.assert_allclose(engine.apply(nodes, coef), dense @ coef, atol=1e-10)
    assert engine.correlate(nodes, vector[:, :1]).shape == (dense.shape[1], 1)
    assert engine.apply(nodes, coef[:, :1]).shape == (150, 1)
    assert engine.correlate([], vector).shape == (0, N_OUTPUTS)


@pytest.mark.parametrize("constant", CONSTANT)
def test_weights_given_stand_in_for_those_of_the_engine(make, chunked, constant):
    engine, levels, _, grid = make(n=150, constant=constant)
    nodes = all_nodes(grid)
    half = nodes[::2]
    dense = np.hstack([node_features(levels, v) for v in nodes])
    part = np.hstack([node_features(levels, v) for v in half])
    weights = np.maximum(normal(150), 0.0)  # half of them zero, the sum far from one
    means = engine.means(nodes, weights)
    np.testing.assert_allclose(means, dense.T @ weights / weights.sum(), atol=1e-12)
    other = normal(part.shape[1], seed=3)
    expected = (part - other).T @ np.diag(weights) @ (dense - means)
    np.testing.assert_allclose(engine.gram(half, nodes, other, means, weights), expected, atol=1e-9)
    expected = (dense - means).T @ np.diag(weights) @ (dense - means)
    np.testing.assert_allclose(
        engine.gram(nodes, nodes, means, means, weights), expected, atol=1e-9
    )


def test_the_gram_of_equal_nodes_keeps_both_means(make):
    engine, levels, omega, grid = make()
    nodes = all_nodes(grid)
    dense = np.hstack([node_features(levels, v) for v in nodes])
    left, right = normal(dense.shape[1]), normal(dense.shape[1], seed=2)
    expected = (dense - left).T @ np.diag(omega) @ (dense - right)
    np.testing.assert_allclose(engine.gram(nodes, nodes, left, right), expected, atol=1e-12)


@pytest.mark.parametrize("constant", CONSTANT)
def test_extension_squares_are_added_over_the_outputs(make, chunked, constant):
    engine, levels, _, grid = make(n=150, constant=constant)
    vector = normal(150, N_OUTPUTS)
    prefixes = all_nodes(grid)[:12]
    expected = np.full((len(prefixes), len(engine.level_pairs)), np.nan)
    for i, prefix in enumerate(prefixes):
        for j, (m, level) in enumerate(engine.level_pairs):
            if m not in dict(prefix):
                node = tuple(sorted((*prefix, (m, level))))
                scores = node_features(levels, node).T @ vector
                expected[i, j] = np.sum(scores**2)
    for rounded_up in (False, True):
        found = engine.extension_squares(prefixes, vector, rounded_up=rounded_up)
        np.testing.assert_allclose(found, expected, rtol=1e-9, equal_nan=True)
    one = engine.extension_squares(prefixes, vector[:, 0])
    np.testing.assert_allclose(engine.extension_squares(prefixes, vector[:, :1]), one, rtol=1e-12)


@pytest.mark.parametrize("constant", [(True, True), (True, False)])
def test_extension_squares_rounded_up_are_never_below_the_exact_ones(engine_type, constant):
    # Twin rows with opposite entries: scores cancel almost entirely.
    rng = np.random.default_rng(0)
    half = rng.standard_normal((20, 4))
    rows = np.vstack([half, half + 1e-9 * rng.standard_normal(half.shape)])
    firsts = [np.ones((40, 1)) if flag else rows[:, [3]] for flag in constant]
    levels = [[firsts[0], rows[:, [0]], rows[:, [1]]], [firsts[1], rows[:, [2]]]]
    engine = engine_type([(1, 1, 1), (1, 1)], levels, np.ones(40), constant)
    signs = rng.standard_normal((20, 2))
    vector = np.vstack([signs, -signs])
    prefixes = [(), ((0, 1),), ((0, 2),)]
    plain = engine.extension_squares(prefixes, vector)
    upper = engine.extension_squares(prefixes, vector, rounded_up=True)
    below = 0
    for i, prefix in enumerate(prefixes):
        for j, (m, level) in enumerate(engine.level_pairs):
            if m in dict(prefix):
                continue
            present = dict((*prefix, (m, level)))
            factors = [levels[v][present.get(v, 0)][:, 0] for v in range(2)]
            exact = Fraction(0)
            for output in vector.T:
                terms = zip(*factors, output, strict=True)
                exact += sum(Fraction(a) * Fraction(b) * Fraction(c) for a, b, c in terms) ** 2
            assert Fraction(upper[i, j]) >= exact
            below += Fraction(plain[i, j]) < exact
    assert below > 0  # rounding matters here


@pytest.mark.parametrize("constant", CONSTANT)
def test_tail_sums_are_added_over_the_outputs(make, chunked, constant):
    engine, levels, _, grid = make(n=40, constant=constant)
    nodes = [v for v in all_nodes(grid) if v]
    alpha = normal(40, N_OUTPUTS)
    expected = np.array([sum(descendant_sum(grid, levels, t, a) for a in alpha.T) for t in nodes])
    scales = grid.tail_scales()
    found = engine.tail_sums(nodes, alpha, scales)
    np.testing.assert_allclose(found, expected, rtol=1e-8)
    assert np.all(found >= expected * (1 - 1e-14))
    np.testing.assert_array_equal(
        engine.tail_sums(nodes, alpha[:, :1], scales), engine.tail_sums(nodes, alpha[:, 0], scales)
    )


@pytest.mark.parametrize("max_order", [1, 2, 3])
def test_tail_sums_of_limited_order_are_added_over_the_outputs(make, chunked, max_order):
    engine, levels, grid = limited_case(make, 40, max_order)
    nodes = [v for v in all_nodes(grid) if v]
    alpha = normal(40, N_OUTPUTS)
    expected = np.array([sum(descendant_sum(grid, levels, t, a) for a in alpha.T) for t in nodes])
    scales = grid.tail_scales()
    found = engine.tail_sums(nodes, alpha, scales, max_order)
    np.testing.assert_allclose(found, expected, rtol=1e-8)
    assert np.all(found >= expected * (1 - 1e-14))
    np.testing.assert_array_equal(
        engine.tail_sums(nodes, alpha[:, :1], scales, max_order),
        engine.tail_sums(nodes, alpha[:, 0], scales, max_order),
    )


@pytest.mark.parametrize("max_order", [None, 2])
def test_tail_sums_that_cancel_over_rows_and_outputs_are_rounded_up(engine_type, max_order):
    # Rows that are alike, with entries that cancel within each output and across the outputs.
    rng = np.random.default_rng(0)
    n, p = 12, 8
    X = rng.standard_normal((n, p))
    X[-2:] = 40.0
    levels = [[np.ones((n, 1)), X[:, [m]], X[:, [m]] ** 2] for m in range(p)]
    grid = Grid(geometric_weights([2] * p, 1.0), 1.0, max_order)
    engine = engine_type([(1, 1, 1)] * p, levels, np.ones(n), [True] * p)
    alpha = rng.standard_normal((n, 2)) / 7.0
    alpha[-2:] = [[5.1, -5.1], [-5.1, 5.1]]
    nodes = [((m, 1),) for m in range(p)]
    scales = grid.tail_scales()
    if max_order is None:
        exact = [sum(rational_tail_sum(X, a, scales, node) for a in alpha.T) for node in nodes]
    else:
        calm = engine_type(
            [(1, 1, 1)] * p,
            [[block[:-2] for block in variable] for variable in levels],
            np.ones(n - 2),
            [True] * p,
        )
        # The twins cancel exactly: what is left is the sum over the others.
        exact = calm.tail_sums(nodes, alpha[:-2], scales, max_order) * (1 - 1e-6)
    assert np.all(engine.tail_sums(nodes, alpha, scales, max_order) >= exact)


@pytest.mark.parametrize("max_order", [None, 1, 2])
def test_the_diagonal_adds_the_outputs(make, chunked, max_order):
    engine, _, grid = limited_case(make, 30, max_order)
    nodes = [((0, 1),), ((1, 2),)]
    scales = grid.tail_scales()
    alpha = normal(30, N_OUTPUTS)
    single = [
        engine.tail_sums(nodes, a * (np.arange(30) == i), scales, max_order)
        for a in alpha.T
        for i in range(30)
    ]
    found = engine.tail_diagonal(nodes, alpha, scales, max_order)
    np.testing.assert_allclose(found, np.sum(single, axis=0), rtol=1e-8)
    column, vector = (
        engine.tail_diagonal(nodes, a, scales, max_order) for a in (alpha[:, :1], alpha[:, 0])
    )
    np.testing.assert_array_equal(column, vector)


@pytest.mark.parametrize("max_order", [None, 2, 3])
def test_squares_of_draws_are_unbiased_for_the_sum_over_the_outputs(make, max_order):
    engine, _, grid = limited_case(make, 60, max_order)
    nodes = [((0, 1),), ((1, 2),), ((0, 1), (2, 1))]
    scales = grid.tail_scales()
    # Outputs that are alike: without signs of their own, cross terms would double the squares.
    alpha = normal(60, 1) + 0.3 * normal(60, N_OUTPUTS, seed=2)
    exact = engine.tail_sums(nodes, alpha, scales, max_order)
    squares = engine.tail_draws(nodes, alpha, scales, max_order, 6000, 1) ** 2
    assert squares.shape == (6000, 3)
    error = squares.std(axis=0) / np.sqrt(len(squares))
    assert np.all(np.abs(squares.mean(axis=0) - exact) < 5 * error)
    assert np.all(error < 0.15 * exact)


@pytest.mark.parametrize("max_order", [None, 2])
def test_draws_of_one_output_do_not_depend_on_its_shape(make, max_order):
    engine, _, grid = limited_case(make, 60, max_order)
    nodes = [((0, 1),), ((0, 1), (2, 1))]
    scales = grid.tail_scales()
    alpha = normal(60, N_OUTPUTS)
    flat = engine.tail_draws(nodes, alpha[:, 0].copy(), scales, max_order, 50, 3)
    for column in (alpha[:, :1], alpha[:, :1].copy()):
        np.testing.assert_array_equal(
            engine.tail_draws(nodes, column, scales, max_order, 50, 3), flat
        )


@pytest.mark.parametrize("max_order", [None, 2])
def test_draws_do_not_depend_on_how_rows_are_cut(make, monkeypatch, max_order):
    engine, _, grid = limited_case(make, 600, max_order)
    nodes = [((0, 1),), ((0, 1), (2, 1))]
    alpha = normal(600, N_OUTPUTS)
    whole = engine.tail_draws(nodes, alpha, grid.tail_scales(), max_order, 20, 3)
    monkeypatch.setattr("hikernel.engines.sketch.TILE_NUMBERS", 1)
    cut = engine.tail_draws(nodes, alpha, grid.tail_scales(), max_order, 20, 3)
    np.testing.assert_allclose(cut, whole, rtol=1e-9, atol=1e-9)


def test_draws_of_one_output_are_sums_over_factor_signs_alone(engine_type):
    # The random stream is that of the factors' signs: one integer per column, in order.
    x = normal(10, 1)
    engine = engine_type([(1, 1)], [[np.ones((10, 1)), x]], np.ones(10), [True])
    alpha = normal(10, seed=2)
    scales = [np.array([[1.0, 0.25], [0.0, 1.0]])]
    draws = engine.tail_draws([((0, 1),)], alpha, scales, None, 30, 5)
    for number, draw in enumerate(draws[:, 0]):
        rng = np.random.default_rng([5, number])
        rng.integers(0, 2, size=2)  # S_{0,0} has two columns
        sign = rng.integers(0, 2, size=1)[0] * 2.0 - 1.0
        np.testing.assert_allclose(draw, sign * (x[:, 0] @ alpha), rtol=1e-10)


def test_a_graph_of_constants_adds_the_outputs(engine_type):
    engine = engine_type([(1,)], [[np.ones((3, 1))]], np.ones(3), [True])
    scales = [np.array([[4.0]])]
    alpha = np.array([[1.0, -1.0], [2.0, 0.5], [-0.5, 0.25]])
    expected = 4.0 * (2.5**2 + 0.25**2)
    np.testing.assert_allclose(engine.tail_sums([()], alpha, scales), [expected])
    diagonal = engine.tail_exact_parts([()], alpha, scales, None)
    np.testing.assert_allclose(diagonal, [4.0 * np.sum(alpha**2)])
    draws = engine.tail_draws([()], alpha, scales, None, 2000, 0)[:, 0]
    assert set(np.round(np.abs(draws), 10)) == {2.0 * 2.75, 2.0 * 2.25}
    np.testing.assert_allclose(np.mean(draws**2), expected, rtol=0.05)
    one = engine.tail_draws([()], alpha[:, 0], scales, None, 5, 0)
    np.testing.assert_allclose(one, 2.0 * 2.5)
