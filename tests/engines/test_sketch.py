"""Statistical descendant sums: unbiased, and bounds that cover."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from oracles.designs import design_of

from hikernel.bases import OrthonormalPolynomial, Spline
from hikernel.engines import NumpyEngine
from hikernel.engines.sketch import sketched_bounds
from hikernel.graphs import Grid, geometric_weights

pytestmark = pytest.mark.slow


def make(n, p, basis, max_order=None, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    design = design_of(X, [basis] * p)
    grid = replace(design.grid, max_order=max_order)
    alpha = rng.standard_normal(n)
    return design.engine(X, np.ones(n)), grid, alpha - alpha.mean()


CASES = [
    (OrthonormalPolynomial(3), None),
    (OrthonormalPolynomial(3), 2),
    (OrthonormalPolynomial(3), 3),
    (Spline(tol=1e-2), None),
    (Spline(tol=1e-2), 2),
]


@pytest.mark.parametrize(("basis", "max_order"), CASES)
def test_squares_of_draws_are_unbiased(basis, max_order):
    engine, grid, alpha = make(60, 4, basis, max_order)
    nodes = [((0, 1),), ((1, 2),), ((0, 1), (2, 1)), ((1, 1), (3, 2))]
    scales = grid.tail_scales()
    exact = engine.tail_sums(nodes, alpha, scales, max_order)
    draws = engine.tail_draws(nodes, alpha, scales, max_order, 6000, 1)
    assert draws.shape == (6000, 4)
    squares = draws**2
    error = squares.std(axis=0) / np.sqrt(len(draws))
    assert np.all(np.abs(squares.mean(axis=0) - exact) < 5 * error)
    assert np.all(error < 0.15 * exact)


def test_draws_follow_the_seed_and_nothing_else(monkeypatch):
    engine, grid, alpha = make(700, 5, OrthonormalPolynomial(2))
    nodes = [((0, 1),), ((1, 1), (2, 1))]
    scales = grid.tail_scales()
    first = engine.tail_draws(nodes, alpha, scales, None, 20, 3)
    np.testing.assert_array_equal(first, engine.tail_draws(nodes, alpha, scales, None, 20, 3))
    assert not np.allclose(first, engine.tail_draws(nodes, alpha, scales, None, 20, 4))
    monkeypatch.setattr("hikernel.engines.machine.n_threads", lambda: 2)
    monkeypatch.setattr("hikernel.engines.sketch.TILE_NUMBERS", 100)
    np.testing.assert_allclose(first, engine.tail_draws(nodes, alpha, scales, None, 20, 3))


@pytest.mark.parametrize(("p", "heavier_than"), [(6, 3), (16, 6)])
def test_bounds_cover_all_nodes_at_once_as_often_as_they_say(p, heavier_than):
    # Kurtosis of the draws grows with p; 40 repetitions at a risk of 5 %.
    engine, grid, alpha = make(60, p, OrthonormalPolynomial(4))
    nodes = [tuple((m, 1) for m in s) for s in itertools.combinations(range(p), 2)]
    scales = grid.tail_scales()
    exact = engine.tail_sums(nodes, alpha, scales, None)
    draws = engine.tail_draws(nodes, alpha, scales, None, 40 * 400, 7)
    kurtosis = np.mean(draws**4, axis=0) / np.mean(draws**2, axis=0) ** 2
    assert np.max(kurtosis) > heavier_than  # a Gaussian has 3
    failures = 0
    for repetition in range(40):
        bounds = sketched_bounds(draws[400 * repetition : 400 * (repetition + 1)], 0.05)
        failures += bool(np.any(bounds < exact))
    assert failures <= 2


def test_bounds_shrink_towards_the_mean_with_more_draws():
    y = np.random.default_rng(0).standard_normal((100_000, 3))
    few, many = sketched_bounds(y[:500], 0.05), sketched_bounds(y, 0.05)
    assert np.all(few > many)
    np.testing.assert_allclose(many, 1.0, atol=0.06)


def test_too_few_draws_bound_nothing():
    y = np.random.default_rng(0).standard_normal((5, 2))
    assert np.all(np.isinf(sketched_bounds(y, 0.05)))
    assert np.all(sketched_bounds(np.zeros((5, 2)), 0.05) == 0.0)
    # Draws that all vanish prove nothing where some row has a part in the sum.
    zeros, diagonal = np.zeros((1000, 2)), np.array([0.0, 1.0])
    np.testing.assert_array_equal(sketched_bounds(zeros, 0.05, diagonal), [0.0, np.inf])
    assert np.all(np.isinf(sketched_bounds(np.full((5, 2), np.nan), 0.05)))


def test_a_row_that_the_draws_cannot_see_is_noticed():
    # z of a row at (3, ..., 3) is 2^p with probability 2^-p and zero otherwise.
    rng = np.random.default_rng(0)
    n, p = 200, 16
    X = rng.choice([-0.5, 0.5], size=(n, p))
    X[0] = 3.0
    levels = [[np.ones((n, 1)), X[:, [m]]] for m in range(p)]
    grid = Grid(geometric_weights([1] * p, 2.0))
    engine = NumpyEngine([(1, 1)] * p, levels, np.ones(n), [True] * p)
    alpha = 0.01 * rng.standard_normal(n)
    alpha[0] = 0.3
    nodes = [((m, 1),) for m in range(p)]
    scales = grid.tail_scales()
    exact = engine.tail_sums(nodes, alpha, scales)
    draws = engine.tail_draws(nodes, alpha, scales, None, 500, 0)
    assert np.any(sketched_bounds(draws, 0.05) < exact)
    parts = engine.tail_exact_parts(nodes, alpha, scales, None)
    assert np.all(parts > 0.5 * exact)
    assert np.all(sketched_bounds(draws, 0.05, parts) >= exact)


def test_rows_that_hide_in_a_group_are_noticed():
    # Twenty rows at (3, ..., 3), each with so small a dual variable that their diagonal is small.
    rng = np.random.default_rng(0)
    n, p = 700, 16
    X = rng.choice([-0.5, 0.5], size=(n, p))
    X[:20] = 3.0
    levels = [[np.ones((n, 1)), X[:, [m]]] for m in range(p)]
    grid = Grid(geometric_weights([1] * p, 2.0))
    engine = NumpyEngine([(1, 1)] * p, levels, np.ones(n), [True] * p)
    alpha = X[:, 0] / n
    alpha[:20] = 0.03 / n
    nodes = [((0, 1),)]
    where = (nodes, alpha, grid.tail_scales())
    exact = engine.tail_sums(*where)
    draws = engine.tail_draws(*where, None, 500, 0)
    diagonal = engine._summer(grid.tail_scales(), None).diagonal(nodes, alpha)
    assert np.all(sketched_bounds(draws, 0.05, diagonal) < exact)
    parts = engine.tail_exact_parts(*where, None)
    assert np.all(sketched_bounds(draws, 0.05, parts) >= exact)


@pytest.mark.parametrize("max_order", [None, 2])
def test_the_part_of_the_heaviest_rows_is_that_of_the_sums(max_order, monkeypatch):
    engine, grid, alpha = make(60, 4, OrthonormalPolynomial(2), max_order)
    nodes, scales = [((0, 1),), ((1, 2), (3, 1))], grid.tail_scales()
    where = nodes, alpha, scales, max_order
    both = engine.tail_diagonal(*where), engine.tail_sums(*where)
    np.testing.assert_allclose(engine.tail_exact_parts(*where), np.maximum(*both))
    monkeypatch.setattr("hikernel.engines.sketch._HEAVIEST", 7)
    tiny = np.abs(alpha) * np.geomspace(1.0, 1e-6, 60)
    summer = engine._summer(scales, None)
    kernel = np.prod([np.sum(summer._factor(m, 0, 60) ** 2, axis=1) for m in range(4)], axis=0)
    np.testing.assert_allclose(engine.log_kernels(scales), np.log(kernel))
    masked = np.where(np.argsort(np.argsort(-(tiny**2) * kernel)) < 7, tiny, 0.0)
    parts = engine.tail_exact_parts(nodes, tiny, scales, max_order)
    diagonal = engine.tail_diagonal(nodes, tiny, scales, max_order)
    among = engine.tail_sums(nodes, masked, scales, max_order)
    np.testing.assert_allclose(parts, np.maximum(diagonal, among))
    assert np.any(among > diagonal)


@pytest.mark.parametrize("max_order", [None, 2])
def test_the_diagonal_is_that_of_the_sums(max_order):
    engine, grid, _ = make(30, 4, OrthonormalPolynomial(2), max_order)
    nodes = [((0, 1),), ((1, 2), (3, 1))]
    scales = grid.tail_scales()
    alpha = np.random.default_rng(1).standard_normal(30)
    single = [
        engine.tail_sums(nodes, alpha * (np.arange(30) == i), scales, max_order) for i in range(30)
    ]
    np.testing.assert_allclose(
        engine._summer(scales, max_order).diagonal(nodes, alpha), np.sum(single, axis=0), rtol=1e-8
    )
