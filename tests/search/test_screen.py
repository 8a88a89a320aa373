"""Bounds on pairs: never below the truth, and the search is the same without them."""

from __future__ import annotations

import numpy as np
import pytest
from oracles.problems import small_problem
from oracles.searches import lookahead

from hikernel.bases import Anova, Gaussian, OrthonormalPolynomial, Polynomial
from hikernel.search import objective
from hikernel.search.objective import PairScreen


def largest_scores(problem, alpha):
    """The largest |a|^2 / d^2 over the pairs of each level, from all of them."""
    pairs = problem.engine.level_pairs
    prefixes = [(pair,) for pair in pairs]
    weights = np.array([problem.graph.weight(prefix) for prefix in prefixes])
    squares = problem.engine.extension_squares(prefixes, alpha) / np.outer(weights, weights) ** 2
    return prefixes, np.fmax.reduce(squares, axis=1)


@pytest.mark.parametrize(
    "basis",
    [OrthonormalPolynomial(3), Polynomial(3), Anova(), Gaussian(3, constant_level=True)],
    ids=lambda basis: type(basis).__name__,
)
@pytest.mark.parametrize("weighted", [False, True])
def test_no_level_is_closed_that_has_a_violating_pair(basis, weighted):
    problem = small_problem(basis, 0, n=60, p=4, weighted=weighted).search
    rng = np.random.default_rng(0)
    alpha = problem.engine.row_weights * rng.standard_normal(60)
    bounds = PairScreen(problem.engine, problem.graph)
    closed = 0
    for step in range(12):
        prefixes, true = largest_scores(problem, alpha)
        threshold = float(np.quantile(true, 0.9 if step % 2 else 1.0)) * (1.0 - 1e-9)
        opened = bounds.open_prefixes(alpha, threshold)
        assert {prefix for prefix, t in zip(prefixes, true, strict=True) if t > threshold} <= set(
            opened
        )
        assert np.all(bounds._bounds(alpha) ** 2 >= true * (1.0 - 1e-9))
        closed += len(prefixes) - len(opened)
        bounds.update(alpha, opened, np.array([true[prefixes.index(v)] for v in opened]))
        alpha = 1.3 * alpha + 0.02 * problem.engine.row_weights * rng.standard_normal(60)
    assert closed > 0


@pytest.mark.parametrize("constant", [True, False])
def test_the_search_is_the_same_without_bounds(monkeypatch, constant):
    basis = OrthonormalPolynomial(3) if constant else Gaussian(3, constant_level=False)
    problem = small_problem(basis, 3, n=150, p=5, alpha=1e-3).search
    with_bounds = lookahead(problem, tol=1e-4, max_kernels=300, certify="none")
    monkeypatch.setattr(objective, "_REFRESH", -1.0)  # every pair in every round
    vars(problem.objective).pop("screen")
    without = lookahead(problem, tol=1e-4, max_kernels=300, certify="none")
    assert with_bounds.nodes == without.nodes
    np.testing.assert_allclose(
        with_bounds.certificate.objective, without.certificate.objective, rtol=1e-12
    )


def test_with_a_limit_the_most_promising_levels_come_first(monkeypatch):
    problem = small_problem(OrthonormalPolynomial(3), 3, n=50, p=5).search
    alpha = problem.engine.row_weights * np.random.default_rng(0).standard_normal(50)
    bounds = PairScreen(problem.engine, problem.graph)
    monkeypatch.setattr(objective, "_MOST_SCORES", 3 * 50 * 15)
    opened = bounds.open_prefixes(alpha, 0.0)
    best = np.argsort(-bounds._bounds(alpha), kind="stable")[:3]
    assert opened == [(problem.engine.level_pairs[i],) for i in best]


def test_with_a_limit_every_level_gets_its_turn(monkeypatch):
    problem = small_problem(OrthonormalPolynomial(3), 3, n=50, p=5).search
    monkeypatch.setattr(objective, "_MOST_SCORES", 5 * 50 * 15)
    alpha = problem.engine.row_weights * np.random.default_rng(0).standard_normal(50)
    bounds = PairScreen(problem.engine, problem.graph)
    prefixes, true = largest_scores(problem, alpha)
    threshold = float(true.max()) * (1.0 + 1e-9)
    seen = set()
    for _ in range(4):
        opened = bounds.open_prefixes(alpha, threshold)
        assert len(opened) <= 5
        seen.update(opened)
        bounds.update(alpha, opened, np.array([true[prefixes.index(v)] for v in opened]))
    assert bounds.open_prefixes(alpha, threshold) == []  # all are settled, each looked at once
    assert len(seen) > 5


def test_old_references_are_forgotten_safely():
    problem = small_problem(OrthonormalPolynomial(3), 1, n=60, p=4).search
    bounds = PairScreen(problem.engine, problem.graph)
    rng = np.random.default_rng(0)
    for step in range(12):
        alpha = problem.engine.row_weights * rng.standard_normal(60)
        prefixes, true = largest_scores(problem, alpha)
        some = [v for i, v in enumerate(prefixes) if i % 3 == step % 3]
        bounds.update(alpha, some, np.array([true[prefixes.index(v)] for v in some]))
        alpha = alpha + 0.01 * problem.engine.row_weights * rng.standard_normal(60)
        assert np.all(bounds._bounds(alpha) ** 2 >= largest_scores(problem, alpha)[1] * (1 - 1e-9))
