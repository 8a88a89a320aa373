"""Searches, bounds and proofs on restricted grids, against enumeration and cvxpy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from oracles.naive import all_nodes, descendant_sum, dual_norm_squared, node_features
from oracles.problems import optimum_of, small_problem
from oracles.restrictions import random_restriction
from oracles.searches import grid_problem, lookahead, paper

from hikernel.bases import Branches, OrthonormalPolynomial, Steps
from hikernel.graphs.restriction import Restriction
from hikernel.search import StopReason, objective, restricted_tails

TREES = Branches((OrthonormalPolynomial(1), Steps(1)))
BASES = [OrthonormalPolynomial(2), TREES]


def restricted_problem(rule, seed, basis, **options):
    """A small problem on the part of its grid that a rule leaves."""
    small = small_problem(basis, seed, p=len(rule.column_of), **options)
    grid = replace(small.grid, restriction=rule)
    search = grid_problem(small.search.engine, grid, small.y, small.search.lam)
    return replace(small, search=search, grid=grid)


@pytest.fixture
def never_listed(monkeypatch):
    """Small grids are bounded like large ones, not by scoring all their nodes."""
    monkeypatch.setattr(objective, "_LISTED", 0)


@pytest.mark.parametrize("search", [lookahead, paper])
@pytest.mark.parametrize("seed", range(5))
def test_the_optimum_is_that_of_the_restricted_graph(search, seed, never_listed):
    rule = random_restriction(np.random.default_rng(seed), 3, indicators=seed % 2)
    limit = 2 if seed % 4 == 0 else None
    small = restricted_problem(rule, seed, BASES[seed % 2], n=25, alpha=0.003, max_order=limit)
    optimum, _ = optimum_of(small)
    result = search(small.search, tol=1e-5, max_kernels=200, certify="exact")
    assert result.certificate.certified
    assert result.certificate.objective == pytest.approx(optimum, rel=2e-5)
    assert result.certificate.n_vertices == len(all_nodes(small.grid))
    assert set(result.nodes) <= set(all_nodes(small.grid))


@pytest.mark.parametrize("limit", [None, 2, 3])
@pytest.mark.parametrize("seed", range(4))
def test_bounds_are_above_the_descendant_sums_and_equal_for_boxes(seed, limit):
    rng = np.random.default_rng(seed)
    rule = random_restriction(rng, 4, indicators=0)
    small = restricted_problem(rule, seed, BASES[seed % 2], n=15, max_order=limit)
    nodes = all_nodes(small.grid)
    dual = small.search.null_dual(1.0)
    chosen = [v for v in nodes if v and rng.random() < 0.3]
    true = np.array([descendant_sum(small.grid, small.levels, t, dual.dual_coef) for t in chosen])
    whole = small.search.tail_sums(chosen, dual)
    tails = small.search.objective.restricted
    for enough in (None, np.inf):
        bounds, work = tails.tail_bounds(chosen, dual, enough=enough)
        assert np.all(bounds >= true * (1 - 1e-9))
        assert np.all(bounds <= whole * (1 + 1e-6))
        assert np.isfinite(work)
    covers = tails._boxes([tuple(m for m, _ in t) for t in chosen], refined=True)
    # Few columns always have few boxes, and these hold nothing else.
    assert all(found.exact for found in covers)
    np.testing.assert_allclose(tails.tail_bounds(chosen, dual)[0], true, rtol=1e-6)


@pytest.mark.parametrize("seed", range(6))
def test_the_bound_covers_the_dual_norm_of_the_restricted_graph(seed, never_listed, monkeypatch):
    """Whatever hull is solved, also where boxes are few and sums are over the whole grid first."""
    rng = np.random.default_rng(seed)
    rule = random_restriction(rng, 3, indicators=seed % 2)
    small = restricted_problem(rule, seed, BASES[seed % 2], n=20)
    nodes = all_nodes(small.grid)
    chosen = [nodes[i] for i in rng.integers(len(nodes), size=3)] + [()]
    hull = sorted(small.grid.hull(chosen), key=small.grid.sort_key)
    solved = small.search.solved(hull)
    scores = [node_features(small.levels, v).T @ solved.dual.dual_coef for v in nodes]
    squares = np.array([np.sum(score**2) for score in scores])
    attained = dual_norm_squared(small.grid, nodes, squares, rounds=1000)
    own = np.sum(squares / np.array([small.grid.weight(v) if v else 1.0 for v in nodes]) ** 2)
    for boxes, cheap in ((8, 2.0), (1, 2.0), (2, 0.0)):
        monkeypatch.setattr(restricted_tails, "_MOST_BOXES", boxes)
        monkeypatch.setattr(restricted_tails, "_CHEAP", cheap)
        small.search.objective.__dict__.pop("restricted", None)
        for most in (0, 10**6):
            bound = small.search.tail(solved, max_explored=most)
            assert max(solved.inside, bound.value) >= attained * (1 - 1e-9)
        total = small.search.objective.restricted.total_score(solved.dual)
        assert total >= own * (1 - 1e-9)


def test_statistical_bounds_cover_the_restricted_sums():
    rule = Restriction((0, 1, 2, 3), (((0, 1), 0), ((0, 2, 3), 0)))
    small = restricted_problem(rule, 3, OrthonormalPolynomial(1), n=300)
    dual = small.search.null_dual(1.0)
    nodes = [((m, 1),) for m in range(4)] + [((0, 1), (2, 1))]
    true = np.array([descendant_sum(small.grid, small.levels, t, dual.dual_coef) for t in nodes])
    tails = small.search.objective.restricted
    bounds, _ = tails.tail_bounds(nodes, dual, risk=0.05, seed=1)
    assert np.all(bounds >= true)
    assert np.all(bounds[[0, 1, 3]] <= 2.0 * true[[0, 1, 3]])  # the others are too small to tell
    assert tails.tail_bounds(nodes, dual, risk=0.01, seed=1)[0][0] > bounds[0]
    result = lookahead(small.search, tol=0.1, certify="statistical")
    assert result.certificate.kind in ("statistical", "exact")
    assert result.certificate.certified


def test_groups_close_where_the_whole_grid_does_not(never_listed):
    """The same tolerance and work, on the same rows: bounds over groups of four columns."""
    rng = np.random.default_rng(0)
    groups = tuple((tuple(range(i, i + 4)), 0) for i in range(0, 16, 4))
    small = small_problem(OrthonormalPolynomial(3), 1, n=80, p=16, alpha=0.01, weight_base=1.5)
    y = small.y + rng.standard_normal(80)
    free = grid_problem(small.search.engine, small.grid, y, 0.01)
    rule = replace(small.grid, restriction=Restriction(tuple(range(16)), groups))
    limited = grid_problem(small.search.engine, rule, y, 0.01)
    options = {"tol": 0.01, "max_work": 3e9, "max_explored": 20_000}
    open_end = lookahead(free, **options).certificate
    closed = lookahead(limited, **options).certificate
    assert not open_end.certified
    assert closed.certified
    assert closed.reason in (StopReason.BOUNDED, StopReason.WHOLE_TAIL)
    assert closed.n_explored < open_end.n_explored


def test_masks_of_a_thousand_columns_take_no_time():
    p = 1000
    chain = tuple(((i, i + 1), 0) for i in range(p - 1))
    rule = Restriction(tuple(range(p)), (((0,), 1), (tuple(range(50)), 0)), chain)
    joins = rule.partners([(m,) for m in range(p)])
    assert joins.shape == (p, p)
    assert joins[0].sum() == p - 2  # all but itself and its neighbour
    assert joins[700].tolist() == [m == 0 for m in range(p)]
    assert not joins[10, 11]
    assert joins[10, 12]


def test_draws_that_choose_a_bound_do_not_judge_it(monkeypatch):
    rule = Restriction((0, 1, 2, 3), (((0, 1), 0), ((0, 2, 3), 0)))
    small = restricted_problem(rule, 3, OrthonormalPolynomial(1), n=300)
    engine = type(small.search.objective.engine)
    drawn, draw = [], engine.tail_draws

    def noted(self, nodes, dual_coef, scales, limit, n_draws, seed):
        drawn.append(seed)
        return draw(self, nodes, dual_coef, scales, limit, n_draws, seed)

    monkeypatch.setattr(engine, "tail_draws", noted)
    tails = small.search.objective.restricted
    tails.tail_bounds([((0, 1),)], small.search.null_dual(1.0), risk=0.05, seed=1)
    assert len(drawn) > 1
    assert drawn.count(drawn[0]) == 1
