"""The look-ahead search: optimal, honest at every step, deeper than the paper's."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.clocks import at_every_moment
from oracles.designs import design_of
from oracles.naive import all_nodes, dual_norm_squared, node_features
from oracles.problems import optimum_of, prediction_of, small_problem
from oracles.searches import grid_problem, lookahead, paper

from hikernel.bases import (
    Anova,
    Branches,
    Gaussian,
    Hermite,
    KernelPCA,
    OrthonormalPolynomial,
    Polynomial,
    Spline,
    Steps,
)
from hikernel.engines import machine, numpy_engine, tails
from hikernel.search import StopReason, objective, tail_proof
from hikernel.search.growth import TailBound

BASES = [
    Polynomial(2),
    OrthonormalPolynomial(2),
    Hermite(2),
    Gaussian(2, remainder=False),
    Branches((OrthonormalPolynomial(2), Steps(2))),
    Gaussian(2, b=0.2, constant_level=True, tol=1e-3),
    KernelPCA(degree=2, b=0.2, tol=1e-3),
    Anova(b=0.2, tol=1e-3),
    Spline(tol=1e-1),
]


@pytest.mark.parametrize("alpha", [0.1, 0.01, 0.001])
@pytest.mark.parametrize("basis", BASES, ids=lambda basis: basis.name)
def test_objective_equals_the_twin_on_the_whole_graph(basis, alpha):
    small = small_problem(basis, 11, alpha=alpha, weighted=True)
    optimum, _ = optimum_of(small)
    result = lookahead(small.search, tol=1e-7, max_kernels=1000, certify="exact")
    assert result.certificate.certified
    assert result.certificate.objective == pytest.approx(optimum, rel=1e-6)
    assert small.grid.is_hull(result.nodes)


@pytest.mark.parametrize("max_order", [1, 2, 3])
@pytest.mark.parametrize("search", ["lookahead", "paper"])
def test_the_optimum_of_limited_order(max_order, search):
    small = small_problem(OrthonormalPolynomial(2), 5, p=4, n=40, alpha=0.003, max_order=max_order)
    optimum, _ = optimum_of(small)
    if search == "paper":
        result = paper(small.search, tol=1e-6, max_kernels=200, certify="exact")
    else:
        result = lookahead(small.search, tol=1e-6, max_kernels=200, certify="exact")
    assert result.certificate.certified
    assert result.certificate.objective == pytest.approx(optimum, rel=1e-6)
    assert max(len(node) for node in result.nodes) <= max_order


def test_both_searches_reach_the_same_objective():
    for seed in range(6):
        small = small_problem(OrthonormalPolynomial(2), seed, p=4, n=60, alpha=0.01)
        a = lookahead(small.search, tol=1e-4, max_kernels=200, certify="exact")
        b = paper(small.search, tol=1e-4, max_kernels=200, certify="exact")
        assert a.certificate.certified
        assert b.certificate.certified
        slack = a.certificate.gap + b.certificate.gap
        assert abs(a.certificate.objective - b.certificate.objective) <= slack


@pytest.mark.slow
@given(
    seed=st.integers(0, 10**6),
    basis=st.sampled_from(BASES[:6]),
    alpha=st.floats(1e-4, 0.3),
    p=st.integers(2, 4),
    weighted=st.booleans(),
    form=st.sampled_from(["primal", "dual"]),
    start=st.integers(0, 3),
)
@settings(max_examples=25, deadline=None, derandomize=True)
def test_the_bound_is_valid_for_any_hull(seed, basis, alpha, p, weighted, form, start):
    # Not only at the end: for the hull of random nodes, solved to any precision.
    if basis.name != "orthonormal" and p == 4:
        p = 3
    small = small_problem(basis, seed, p=p, alpha=alpha, weighted=weighted, form=form, n=20)
    optimum, _ = optimum_of(small)
    rng = np.random.default_rng(seed)
    nodes = all_nodes(small.grid)
    chosen = [nodes[i] for i in rng.integers(len(nodes), size=start)] + [()]
    hull = sorted(small.grid.hull(chosen), key=small.grid.sort_key)
    for solve_tol in (1e-1, 1e-6):
        solved = small.search.solved(hull, solve_tol=solve_tol)
        assert solved.objective >= optimum * (1 - 1e-7)
        for most in (0, 10**6):
            bound = small.search.tail(solved, max_explored=most)
            assert bound.kind == "exact"
            value = solved.dual.value(max(solved.inside, bound.value))
            assert value <= optimum * (1 + 1e-7)


@given(
    seed=st.integers(0, 10**6),
    p=st.integers(2, 3),
    hull_size=st.integers(0, 3),
    basis=st.sampled_from(
        [OrthonormalPolynomial(2), Branches((OrthonormalPolynomial(1), Steps(1)))]
    ),
)
@settings(max_examples=30, deadline=None, derandomize=True)
def test_the_bound_covers_the_dual_norm_of_the_whole_graph(seed, p, hull_size, basis):
    small = small_problem(basis, seed, p=p, n=20)
    rng = np.random.default_rng(seed)
    nodes = all_nodes(small.grid)
    chosen = [nodes[i] for i in rng.integers(len(nodes), size=hull_size)] + [()]
    hull = sorted(small.grid.hull(chosen), key=small.grid.sort_key)
    solved = small.search.solved(hull)
    squares = np.array(
        [np.sum((node_features(small.levels, v).T @ solved.dual.dual_coef) ** 2) for v in nodes]
    )
    attained = dual_norm_squared(small.grid, nodes, squares, rounds=2000)
    bound = small.search.tail(solved)
    assert max(solved.inside, bound.value) >= attained * (1 - 1e-9)


def problem_with(alpha, n, p, term, noise=0.3):
    """A problem whose target is one product and noise; none of its ancestors is in it."""
    rng = np.random.default_rng(0)
    small = small_problem(OrthonormalPolynomial(2), 0, n=n, p=p, alpha=alpha)
    y = np.prod([small.levels[m][j][:, 0] for m, j in term], axis=0)
    y = y + noise * rng.standard_normal(n)
    y = (y - y.mean()) / y.std()
    return grid_problem(small.search.engine, small.grid, y, alpha), small.grid


def test_pairs_without_parents_are_found_where_the_paper_sees_nothing():
    term = ((2, 2), (4, 1))
    problem, _ = problem_with(0.03, 20000, 6, term)
    found = lookahead(problem, tol=1e-2, max_kernels=100, certify="none")
    assert set(found.nodes) == problem.graph.hull([term])
    blind = paper(problem, tol=1e-2, max_kernels=100, certify="none")
    assert term not in blind.nodes
    assert found.certificate.objective < 0.95 * blind.certificate.objective


def test_the_proof_finds_what_looking_ahead_missed(monkeypatch):
    # On a full factorial design the ancestors of the term have scores of exactly zero, and with
    # thousands of variables pairs are scored around the hull only.
    monkeypatch.setattr(objective, "_MOST_SCORES", 0)
    axis = np.linspace(-1.0, 1.0, 5)
    X = np.stack(np.meshgrid(*[axis] * 4, indexing="ij"), axis=-1).reshape(-1, 4)
    design = design_of(X, [OrthonormalPolynomial(2)] * 4)
    grid = design.grid
    levels = [fitted.transform(X[:, m]) for m, fitted in enumerate(design.bases)]
    y = levels[1][2][:, 0] * levels[3][1][:, 0]
    problem = grid_problem(design.engine(X, np.ones(len(X))), grid, y, 1e-3)
    unproven = lookahead(problem, tol=1e-2, max_kernels=200, certify="none")
    assert unproven.nodes == [()]
    proven = lookahead(problem, tol=1e-2, max_kernels=200, certify="exact")
    assert set(proven.nodes) == grid.hull([((1, 2), (3, 1))])
    assert proven.certificate.certified


def test_the_model_stays_small():
    small = small_problem(OrthonormalPolynomial(2), 4, p=4, n=300, alpha=0.02)
    ahead = lookahead(small.search, tol=1e-3, max_kernels=100, certify="exact")
    slow = paper(small.search, tol=1e-3, max_kernels=100, certify="exact")
    assert ahead.certificate.certified
    assert ahead.certificate.n_kernels <= slow.certificate.n_kernels
    assert ahead.certificate.n_kernels <= 2 * len(ahead.nodes)


def test_results_do_not_depend_on_chunks_or_threads(monkeypatch):
    small = small_problem(OrthonormalPolynomial(2), 1, p=3, n=600, alpha=0.005)
    base = lookahead(small.search, tol=1e-4, max_kernels=100, certify="exact")
    monkeypatch.setattr(numpy_engine, "_CHUNK_NUMBERS", 500)
    monkeypatch.setattr(numpy_engine, "_BLOCK_COLUMNS", 3)
    monkeypatch.setattr(tails, "TILE_NUMBERS", 2000)
    monkeypatch.setattr(machine, "n_threads", lambda: 2)
    monkeypatch.setattr(tail_proof, "_EXPLORE_PREFIXES", 2)
    cut = lookahead(small.search, tol=1e-4, max_kernels=100, certify="exact")
    assert cut.nodes == base.nodes
    np.testing.assert_allclose(
        prediction_of(small.search, cut), prediction_of(small.search, base), atol=1e-8
    )
    assert cut.certificate.dual_bound == pytest.approx(base.certificate.dual_bound, rel=1e-9)


def test_a_hull_without_room_is_reported():
    problem, grid = problem_with(1e-4, 300, 8, ((1, 1), (3, 2)))
    result = lookahead(problem, tol=1e-3, max_kernels=4, certify="none")
    assert len(result.nodes) <= 4
    assert result.certificate.reason is StopReason.MAX_KERNELS
    assert grid.is_hull(result.nodes)


@pytest.mark.parametrize("search", [lookahead, paper], ids=["lookahead", "paper"])
def test_time_may_be_up_at_any_moment(search):
    problem, grid = problem_with(1e-3, 300, 8, ((1, 1), (3, 2)))
    settings_ = {"tol": 1e-3, "max_kernels": 200, "certify": "exact"}
    free = search(problem, **settings_)
    results = at_every_moment(lambda: search(problem, **settings_))
    for cut in results:
        assert grid.is_hull(cut.nodes)
        assert len(cut.solution.eta) == len(cut.nodes)
        assert cut.certificate.objective >= free.certificate.dual_bound
        measured = problem.solve(problem.reduced(cut.nodes), problem.lam, tol=1e-3)
        assert cut.certificate.objective == pytest.approx(measured.objective, rel=1e-3)
    for cut in results[:-1]:
        # Nothing is proven, and no bound is claimed that was not finished.
        assert cut.certificate.kind == "none"
        assert not cut.certificate.certified
        assert cut.certificate.dual_bound == 0.0
        if cut.certificate.reason is StopReason.PROOF_TIME:
            assert cut.nodes == free.nodes
            assert cut.certificate.objective == pytest.approx(free.certificate.objective, rel=1e-3)
    expected = [StopReason.SEARCH_TIME, StopReason.PROOF_TIME, free.certificate.reason]
    if search is paper:
        expected.remove(StopReason.PROOF_TIME)  # its last step is its proof
    assert list(dict.fromkeys(cut.certificate.reason for cut in results)) == expected
    assert results[-1].certificate == free.certificate


def test_few_explored_kernels_leave_the_bound_that_stands(monkeypatch):
    monkeypatch.setattr(objective, "_LISTED", 0)
    problem, _ = problem_with(0.01, 300, 8, ((1, 1), (3, 2)))
    free = lookahead(problem, tol=1e-3, max_kernels=200, certify="exact")
    few = lookahead(problem, tol=1e-3, max_kernels=200, max_explored=50, certify="exact")
    assert few.certificate.kind == "exact"
    assert 0.0 < few.certificate.dual_bound <= free.certificate.objective


def test_a_start_from_a_neighbour_changes_nothing_but_time():
    small = small_problem(OrthonormalPolynomial(2), 1, p=4, n=200, alpha=0.02)
    first = lookahead(small.search, tol=1e-5, max_kernels=100, certify="none")
    nearby = grid_problem(small.search.engine, small.grid, small.y, 0.014)
    cold = lookahead(nearby, tol=1e-5, max_kernels=100, certify="none")
    warm = lookahead(
        nearby,
        tol=1e-5,
        max_kernels=100,
        certify="none",
        start=(first.nodes, first.solution.warm_start),
    )
    assert warm.certificate.objective == pytest.approx(cold.certificate.objective, rel=2e-5)


def test_an_unknown_tail_proves_nothing():
    unknown = TailBound.unknown()
    assert unknown.value == np.inf
    assert unknown.kind == "none"


def test_statistical_bounds_certify_what_exact_bounds_do():
    term = ((2, 2), (4, 1))
    problem, _ = problem_with(0.03, 3000, 8, term)
    exact = lookahead(problem, tol=1e-2, max_kernels=100, certify="exact")
    chance = lookahead(problem, tol=1e-2, max_kernels=100, certify="statistical")
    assert exact.certificate.kind == "exact"
    assert exact.certificate.confidence == 1.0
    assert chance.certificate.kind == "statistical"
    assert chance.certificate.confidence == pytest.approx(0.95)
    assert chance.certificate.certified
    assert "95 % confidence" in chance.certificate.explain()
    assert chance.nodes == exact.nodes
    assert chance.certificate.dual_bound <= exact.certificate.objective


def test_auto_chooses_by_size(monkeypatch):
    problem, _ = problem_with(0.03, 300, 4, ((0, 1),))
    assert problem.tail_mode("auto") == "exact"
    monkeypatch.setattr(objective, "AUTO_WORK", 10)
    assert problem.tail_mode("auto") == "statistical"
    # 81 nodes: the look-ahead search scores all of them, whatever the number of rows.
    for certify in ("auto", "statistical"):
        certificate = lookahead(problem, tol=1e-2, certify=certify).certificate
        assert (certificate.kind, certificate.confidence) == ("exact", 1.0)
        assert certificate.reason is StopReason.OWN_SCORES
    monkeypatch.setattr(objective, "_LISTED", 80)
    assert lookahead(problem, tol=1e-2).certificate.kind == "statistical"
    monkeypatch.setattr(objective, "AUTO_SKETCH_WORK", 10)
    assert problem.tail_mode("auto") == "none"
    assert problem.tail_mode("statistical") == "statistical"
    assert problem.tail_mode("exact") == "exact"


def factorial_problem(n_variables, alpha, make_y, repeats=1):
    """All combinations of plus and minus one, in which all products are orthogonal."""
    X = np.array(list(itertools.product([-1.0, 1.0], repeat=n_variables)) * repeats)
    design = design_of(X, [OrthonormalPolynomial(1)] * n_variables, weight_base=2.0)
    y = make_y(X)
    return grid_problem(design.engine(X, np.ones(len(X))), design.grid, y / y.std(), alpha), X


@pytest.mark.parametrize("max_kernels", [1, 3, 10, 20])
def test_a_full_hull_ends_the_search_when_only_the_proof_sees_the_term(max_kernels):
    problem, _ = factorial_problem(5, 1e-3, lambda X: np.prod(X, axis=1))
    result = lookahead(problem, tol=1e-3, max_kernels=max_kernels, certify="exact")
    assert len(result.nodes) <= max_kernels
    assert not result.certificate.certified
    assert result.certificate.reason is StopReason.MAX_KERNELS


def test_the_bound_on_the_whole_tail_covers_the_tail(monkeypatch):
    monkeypatch.setattr(objective, "_LISTED", 0)

    # Replicates with noise that no term explains, and a weak pair outside the hull.
    def target(X):
        noise = np.where(np.arange(len(X)) < len(X) // 2, 3.0, -3.0)
        return noise + X[:, 0] + 0.5 * X[:, 1] * X[:, 2]

    problem, _ = factorial_problem(3, 0.03, target, repeats=2)
    solved = problem.solved([(), ((0, 1),)], tol=0.1)
    bound = problem.tail(solved, tol=0.1)
    assert bound.reason is StopReason.WHOLE_TAIL
    pair = ((1, 1), (2, 1))
    score = float(problem.engine.correlate([pair], solved.dual.dual_coef)[0] ** 2)
    assert bound.value >= score / problem.graph.weight(pair) ** 2 > 0.0


@pytest.mark.parametrize("listed", [0, 2000])
def test_a_proof_that_ends_early_is_still_a_proof(monkeypatch, listed):
    monkeypatch.setattr(objective, "_LISTED", listed)
    cut_short = 0
    for seed in range(6):
        small = small_problem(OrthonormalPolynomial(2), seed, p=3, n=25, alpha=1e-3)
        optimum, _ = optimum_of(small)
        hull = sorted(small.grid.hull([((0, 1), (1, 1))]), key=len)
        solved = small.search.solved(hull)
        effort = small.search.effort("exact")
        one_each = effort.extensions(1) + effort.bounds([()]) + effort.bounds([(0,), (1,), (2,)])
        for max_work in (0.0, 1.01 * one_each, 1e12):
            bound = small.search.tail(solved, max_work=max_work)
            assert solved.dual.value(max(solved.inside, bound.value)) <= optimum * (1 + 1e-7)
            cut_short += bound.reason is StopReason.MAX_WORK and bound.kind == "exact"
    assert cut_short >= 3 if listed == 0 else cut_short == 0
