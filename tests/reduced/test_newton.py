"""The Newton method: optimal against cvxpy, honest about its gap, fast from a warm start."""

from __future__ import annotations

import numpy as np
import pytest
from oracles.naive import all_nodes
from oracles.problems import small_problem
from oracles.twin import twin_optimum

from hikernel.bases import OrthonormalPolynomial, Polynomial, Spline
from hikernel.engines.features import Blocks
from hikernel.graphs import Grid, geometric_weights
from hikernel.reduced import HullMap, Status, solve_reduced
from hikernel.reduced.forms import PrimalForm


@pytest.mark.parametrize("form", ["primal", "dual"])
@pytest.mark.parametrize("alpha", [1e-4, 1e-2, 1.0])
@pytest.mark.parametrize("basis", [Polynomial(2), OrthonormalPolynomial(3), Spline()])
def test_reduced_optimum_equals_the_twin(basis, alpha, form):
    small = small_problem(basis, seed=3, alpha=alpha, form=form, weighted=True)
    nodes = all_nodes(small.grid)
    solution = small.search.reduced(nodes).solve(alpha, tol=1e-9)
    assert solution.status is Status.CONVERGED
    optimum, _ = twin_optimum(small.grid, small.levels, nodes, small.y, small.weights, alpha)
    assert solution.objective == pytest.approx(optimum, rel=1e-6)
    assert solution.dual_bound <= optimum * (1 + 1e-7)
    assert solution.gap <= 1e-9 * solution.objective * 1.01
    weights = small.grid.weights(nodes)
    assert np.all(solution.eta > 0)
    assert weights**2 @ solution.eta == pytest.approx(1.0, rel=1e-12)


def test_warm_starts_reach_the_same_optimum_in_fewer_steps():
    small = small_problem(OrthonormalPolynomial(3), seed=0, n=200, p=3)
    reduced = small.search.reduced(all_nodes(small.grid))
    before = reduced.solve(0.02, tol=1e-7)
    cold = reduced.solve(0.014, tol=1e-7)
    warm = reduced.solve(0.014, tol=1e-7, warm=before.warm_start)
    assert warm.objective == pytest.approx(cold.objective, rel=1e-6)
    assert warm.n_iter < cold.n_iter


def test_growing_restricting_and_starting_afresh_agree():
    small = small_problem(Spline(), seed=1, n=30)
    problem = small.search
    nodes = sorted(all_nodes(small.grid), key=lambda v: (len(v), v))
    grown = problem.reduced(nodes[:1])
    for node in nodes[1:]:
        grown.extend([node])
    fresh = problem.reduced(nodes)
    a, b = grown.solve(0.02, tol=1e-8), fresh.solve(0.02, tol=1e-8)
    assert a.objective == pytest.approx(b.objective, rel=1e-7)
    hull = [node for node in nodes if all(m == 0 for m, _ in node)]
    small_hull = fresh.restrict(hull)
    direct = problem.reduced(small_hull.nodes)
    assert small_hull.solve(0.02, tol=1e-8).objective == pytest.approx(
        direct.solve(0.02, tol=1e-8).objective, rel=1e-7
    )
    np.testing.assert_allclose(small_hull.means, direct.means, atol=1e-12)


def test_the_form_follows_the_sizes_and_switches_on_the_way():
    small = small_problem(Spline(), seed=2, n=20)
    nodes = sorted(all_nodes(small.grid), key=lambda v: (len(v), v))
    reduced = small.search.reduced(nodes[:2])
    assert not reduced.uses_dual_form
    reduced.extend(nodes[2:])
    assert reduced.n_columns > 20
    assert reduced.uses_dual_form
    back = reduced.restrict(nodes[:2])
    assert not back.uses_dual_form
    direct = small.search.reduced(nodes[:2]).solve(0.02, tol=1e-8)
    assert back.solve(0.02, tol=1e-8).objective == pytest.approx(direct.objective, rel=1e-7)


def test_appending_a_node_twice_is_refused():
    small = small_problem(Polynomial(1), seed=0)
    reduced = small.search.reduced([()])
    with pytest.raises(ValueError, match="distinct"):
        reduced.extend([()])
    with pytest.raises(ValueError, match="distinct"):
        reduced.extend([((0, 1),), ((0, 1),)])


def chain_problem(cross, gram=None):
    grid = Grid(geometric_weights([len(cross) - 1], 2.0))
    gram = np.eye(len(cross)) if gram is None else gram
    blocks = Blocks([1] * len(cross))
    return PrimalForm(gram, np.array(cross), 1.0, blocks), HullMap(all_nodes(grid), grid)


def test_a_target_without_signal_gives_the_zero_model():
    form, hull = chain_problem([0.0, 0.0, 0.0])
    solution = solve_reduced(form, hull, 0.1, tol=1e-9)
    assert solution.status.ok
    np.testing.assert_array_equal(solution.coef, 0.0)
    assert solution.gap == 0.0


def test_running_out_of_steps_is_a_status_with_a_valid_bound():
    form, hull = chain_problem([0.5, 0.3, 0.2])
    best = solve_reduced(form, hull, 0.01, tol=1e-10)
    short = solve_reduced(form, hull, 0.01, tol=1e-10, max_iter=1)
    assert short.status is Status.ITERATIONS
    assert not short.status.ok
    assert "raise tol" in short.status.value
    assert short.dual_bound <= best.objective <= short.objective


def test_rounding_does_not_stop_a_solve_far_above_it():
    for seed in range(40):
        rng = np.random.default_rng(seed)
        features = rng.standard_normal((20, rng.integers(2, 5)))
        features /= np.linalg.norm(features, axis=0)
        y = features[:, 0] + 0.2 * rng.standard_normal(20)
        form, hull = chain_problem(features.T @ (y / np.linalg.norm(y)), features.T @ features)
        near = solve_reduced(form, hull, 0.02, tol=1e-6).eta
        for start in (None, near):
            solution = solve_reduced(form, hull, 0.02, tol=1e-11, warm_eta=start)
            assert solution.status is Status.CONVERGED
            assert solution.gap <= 1e-11 * solution.objective


def test_a_singular_system_is_a_status_not_a_traceback():
    form, hull = chain_problem([1e9, 1e9], gram=np.full((2, 2), 1e18))
    solution = solve_reduced(form, hull, 1e-30, tol=1e-6, warm_eta=np.array([1.0, 0.0]))
    assert solution.status is Status.SINGULAR
    assert "raise alpha" in solution.status.value
    assert solution.dual_bound == 0.0
    np.testing.assert_array_equal(solution.coef, 0.0)


def test_a_useless_warm_start_is_ignored():
    form, hull = chain_problem([0.5, 0.3, 0.2])
    cold = solve_reduced(form, hull, 0.01, tol=1e-8)
    for eta in (np.zeros(3), np.full(3, np.nan)):
        warm = solve_reduced(form, hull, 0.01, tol=1e-8, warm_eta=eta)
        np.testing.assert_allclose(warm.eta, cold.eta)


def test_moments_do_not_store_rows():
    small = small_problem(OrthonormalPolynomial(2), seed=0, n=500)
    reduced = small.search.reduced(all_nodes(small.grid))
    form = reduced.squared_form()
    assert isinstance(form, PrimalForm)
    assert form.gram.shape == (reduced.n_columns, reduced.n_columns)
