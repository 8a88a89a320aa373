"""Work is counted: it follows from the sizes alone, limits a proof, and no clock takes part."""

from __future__ import annotations

import numpy as np
import pytest
from losses.cases import CASES
from oracles.clocks import clock_times
from oracles.naive import all_nodes, dual_norm_squared, node_features
from oracles.problems import optimum_of, small_problem
from oracles.searches import grid_problem, lookahead
from search.test_lookahead import problem_with

from hikernel import HKLRegressor, HKLRegressorCV
from hikernel.bases import OrthonormalPolynomial
from hikernel.search import StopReason, objective
from hikernel.search.effort import GridEffort, solve_work

SUPPORTS = [(0, 1), (0, 2), (1, 2)]


def small(n, **more):
    return small_problem(OrthonormalPolynomial(2), 0, n=n, p=4, **more).search


def test_scores_and_statistical_bounds_are_linear_in_the_rows_and_exact_ones_quadratic():
    one, two = (small(n).effort("statistical") for n in (100, 200))
    none = one.extensions(0)
    assert two.extensions(7) - none == pytest.approx(2 * (one.extensions(7) - none))
    assert two.bounds(SUPPORTS) == pytest.approx(2 * one.bounds(SUPPORTS))
    one, two = (small(n).effort("exact") for n in (100, 200))
    pairs = 200 * 201 / (100 * 101)
    assert two.bounds(SUPPORTS) == pytest.approx(pairs * one.bounds(SUPPORTS))
    assert one.bounds([]) == 0.0
    assert one.bounds([()]) < one.bounds([(0,)]) < one.bounds([(0,), (1,)])


def test_scores_are_counted_by_hand():
    effort = GridEffort(
        score_work=50.0, bound_work=1275.0, n_columns=8, n_variables=4, n_outputs=3, n_orders=1
    )
    assert effort.extensions(5) - effort.extensions(0) == 3.0 * 50 * 3 * 5 * 8
    engine = small(50).engine
    assert GridEffort.of(engine, 4, 3, None, 0) == effort
    assert GridEffort.of(engine, 4, 3, 2, 0).n_orders == 3
    assert GridEffort.of(engine, 4, 3, None, 1000).bound_work == 50 * 1000


def test_work_of_a_solve_by_hand():
    nodes = [(), *(((m, 1),) for m in range(4))]
    for n in (3, 100):
        reduced = small(n).reduced(nodes)
        once, twice = (solve_work(reduced, n_iter) for n_iter in (1, 2))
        # Moments once, however many iterations; an iteration has a fixed part, and one for pairs.
        assert twice - once == 4e6 + 1600 * 5**2
        assert once - (twice - once) == n * 5 * min(5, n)
    case = CASES["multinomial"]
    several = small_problem(OrthonormalPolynomial(2), 0, n=100, p=4, case=case).search
    reduced = several.reduced(nodes)
    one = solve_work(reduced, 1)
    assert one > 3 * 100 * 5 * 5
    assert solve_work(reduced, 7) == pytest.approx(7 * one)  # moments in every iteration


def test_counts_are_the_same_every_time():
    problem = small(150, alpha=0.003)
    first = lookahead(problem, tol=1e-3, max_kernels=100, certify="exact")
    again = lookahead(
        grid_problem(problem.engine, problem.graph, problem.y, problem.lam),
        tol=1e-3,
        max_kernels=100,
        certify="exact",
    )
    assert first.work == again.work > 0.0
    # A proof is not counted as part of a search.
    unproven = lookahead(
        grid_problem(problem.engine, problem.graph, problem.y, problem.lam),
        tol=1e-3,
        max_kernels=100,
        certify="none",
    )
    assert unproven.work == first.work


def test_a_proof_that_may_do_nothing_proves_nothing():
    problem, grid = problem_with(0.01, 300, 8, ((1, 1), (3, 2)))
    free = lookahead(problem, tol=1e-3, max_kernels=200, certify="exact")
    for certify in ("exact", "statistical"):
        result = lookahead(problem, tol=1e-3, max_kernels=200, certify=certify, max_work=0.0)
        certificate = result.certificate
        assert certificate.reason is StopReason.MAX_WORK
        assert not certificate.certified
        assert 0.0 <= certificate.dual_bound <= free.certificate.objective
        # The model is that of the search.
        assert result.nodes == free.nodes
        np.testing.assert_array_equal(result.solution.coef, free.solution.coef)
        assert "counted and not timed" in certificate.explain()
    assert grid.n_vertices > 2000


def test_more_work_never_gives_a_worse_bound(monkeypatch):
    monkeypatch.setattr(objective, "_LISTED", 0)
    reasons = set()
    for seed in range(3):
        given = small_problem(OrthonormalPolynomial(2), seed, p=4, n=40, alpha=1e-3)
        problem = given.search
        optimum, _ = optimum_of(given)
        hull = sorted(given.grid.hull([((0, 1), (1, 1))]), key=len)
        solved = problem.solved(hull)
        bounds = [
            problem.tail(solved, max_work=work) for work in [0.0, *np.geomspace(1e5, 1e9, 25)]
        ]
        values = [bound.value for bound in bounds]
        assert values == sorted(values, reverse=True)
        assert bounds[0].reason is StopReason.MAX_WORK
        assert bounds[-1].reason is not StopReason.MAX_WORK
        assert np.isfinite(values[-1])
        reasons |= {(bound.reason, bound.kind) for bound in bounds}
        for value in values:
            assert solved.dual.value(max(solved.inside, value)) <= optimum * (1 + 1e-7)
    # Both ends of a proof without enough work were met: no bound, and one that is not enough.
    assert {(StopReason.MAX_WORK, "none"), (StopReason.MAX_WORK, "exact")} <= reasons


@pytest.mark.parametrize("n", [30, 9000])
def test_small_grids_are_proven_by_their_own_scores_for_any_number_of_rows(n):
    given = small_problem(OrthonormalPolynomial(2), 1, p=3, n=n, alpha=0.003)
    problem = given.search
    assert problem.can_list_all
    assert problem.tail_mode("auto") == "exact"
    result = lookahead(problem, tol=1e-3, max_kernels=100, certify="auto", max_work=0.0)
    certificate = result.certificate
    assert certificate.certified
    assert certificate.kind == "exact"
    assert certificate.reason is StopReason.OWN_SCORES
    nodes = all_nodes(given.grid)
    assert certificate.n_explored == len(nodes) == 27
    # Every score by enumeration: the dual norm that it attains is covered by the bound.
    hull = sorted(given.grid.hull([((0, 1),)]), key=len)
    for solved in (problem.solved(hull), problem.solved(result.nodes)):
        squares = np.array(
            [np.sum((node_features(given.levels, v).T @ solved.dual.dual_coef) ** 2) for v in nodes]
        )
        bound = problem.tail(solved)
        attained = dual_norm_squared(given.grid, nodes, squares, rounds=2000)
        assert max(solved.inside, bound.value) >= attained * (1 - 1e-9)
        outside = [i for i, v in enumerate(nodes) if v not in set(solved.problem.nodes)]
        scores = squares[outside] / np.array([given.grid.weight(nodes[i]) for i in outside]) ** 2
        # Without violators the bound is the largest score itself; with them it is no larger.
        if np.max(scores) <= solved.threshold:
            assert bound.value == pytest.approx(np.max(scores), rel=1e-6)
        else:
            assert bound.value <= np.max(scores) * (1 + 1e-9)


def test_the_limit_of_small_grids(monkeypatch):
    problem, grid = problem_with(0.03, 300, 4, ((0, 1),))
    assert grid.n_vertices == 81
    for limit, listed in ((80, False), (81, True)):
        monkeypatch.setattr(objective, "_LISTED", limit)
        assert problem.can_list_all is listed
        reason = lookahead(problem, tol=1e-3, certify="exact").certificate.reason
        assert (reason is StopReason.OWN_SCORES) is listed


def table(n=120, p=6):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (n, p))
    return X, X[:, 0] + 2.0 * X[:, 1] * X[:, 2] + 0.5 * rng.standard_normal(n)


@pytest.mark.parametrize(
    "make",
    [
        lambda: HKLRegressor(),
        lambda: HKLRegressor(0.002),
        lambda: HKLRegressorCV(cv=3, refit="ridge"),
    ],
    ids=["auto", "one alpha", "CV"],
)
@pytest.mark.parametrize("factor", [1000.0, 0.001])
def test_no_clock_takes_part_without_a_time_budget(make, factor):
    X, y = table()
    base = make().fit(X, y)
    with clock_times(factor):
        other = make().fit(X, y)
    assert other.alpha_ == base.alpha_
    assert other.nodes_ == base.nodes_
    assert other.hull_.equals(base.hull_)
    np.testing.assert_array_equal(other.coef_, base.coef_)
    np.testing.assert_array_equal(other.dual_coef_, base.dual_coef_)
    assert other.certificate_ == base.certificate_
    assert other.history_ == base.history_


def test_a_clock_takes_part_with_one():
    """The clock of the test above is one that a fit would notice."""
    X, y = table(40, 3)
    HKLRegressor(0.05, time_budget=60.0).fit(X, y)
    with clock_times(1e9), pytest.warns(match="time budget"):
        HKLRegressor(0.05, time_budget=60.0).fit(X, y)
