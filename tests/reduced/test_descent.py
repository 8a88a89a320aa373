"""Newton's method on any loss: both forms, any start, and the models that others fit."""

from __future__ import annotations

import numpy as np
import pytest
from losses.cases import CASES, every_loss, some_cases
from oracles.naive import all_nodes
from oracles.problems import small_problem
from sklearn.linear_model import LogisticRegression

from hikernel.bases import Anova, OrthonormalPolynomial, Polynomial, Spline
from hikernel.reduced import ReducedProblem, Status, WarmStart
from hikernel.reduced.descent import Descent

pytestmark = pytest.mark.slow


def tolerance(case):
    """Tight for smooth losses."""
    return 1e-9 if case.loss.smooth else 1e-4


def make(case, *, basis=None, seed=3, form="auto", **settings):
    settings = {"alpha": 0.01, "weighted": True, **settings}
    small = small_problem(basis or OrthonormalPolynomial(2), seed, form=form, case=case, **settings)
    nodes = sorted(all_nodes(small.grid), key=lambda v: (len(v), v))
    return small, nodes


def solve(small, nodes, case, **settings):
    return small.search.reduced(nodes).solve(small.search.lam, tol=tolerance(case), **settings)


def assert_same(a, b, case):
    """Two solutions of one problem: objectives within the tolerance."""
    assert a.status is Status.CONVERGED
    assert b.status is Status.CONVERGED
    assert a.objective == pytest.approx(b.objective, rel=2 * tolerance(case))


@every_loss
@pytest.mark.parametrize("basis", [OrthonormalPolynomial(2), Spline(tol=1e-1)])
def test_both_forms_have_one_solution(case, basis):
    solutions = []
    for form in ("primal", "dual"):
        small, nodes = make(case, basis=basis, form=form)
        reduced = small.search.reduced(nodes)
        assert reduced.uses_dual_form == (form == "dual")
        solutions.append(reduced.solve(0.01, tol=tolerance(case)))
    primal, dual = solutions
    assert_same(primal, dual, case)
    close = 1e-3 if case.loss.smooth else 0.2
    np.testing.assert_allclose(primal.coef, dual.coef, atol=close * np.abs(dual.coef).max())


@every_loss
def test_a_solution_keeps_its_promises(case):
    small, nodes = make(case)
    solution = solve(small, nodes, case)
    outputs = () if case.outputs is None else (case.outputs,)
    assert solution.coef.shape == solution.scores.shape == (len(nodes), *outputs)
    assert solution.gap <= tolerance(case) * solution.objective * 1.01
    assert small.grid.weights(nodes) ** 2 @ solution.eta == pytest.approx(1.0)
    if solution.residuals is not None:  # the squared error's are y - f
        omega = small.search.engine.row_weights
        np.testing.assert_allclose(omega @ solution.residuals, 0.0, atol=1e-15)
        conjugate = small.search.loss.conjugate(small.y, -solution.residuals)
        assert np.all(np.isfinite(conjugate))
    constant = nodes.index(())
    assert np.all(solution.coef[constant] == 0.0)


@pytest.mark.parametrize("form", ["primal", "dual"])
@pytest.mark.parametrize("alpha", [1.0, 0.01, 1e-4])
@pytest.mark.parametrize("basis", [OrthonormalPolynomial(2), Polynomial(2), Spline(tol=1e-1)])
def test_the_squared_error_as_any_loss_is_the_squared_error(basis, alpha, form):
    small, nodes = make(None, basis=basis, alpha=alpha, form=form)
    search = small.search
    reduced = search.reduced(nodes)
    a = reduced.solve(alpha, tol=1e-10)
    b = Descent(reduced, alpha, 1e-10, None).run()
    assert b.status is Status.CONVERGED
    assert b.objective == pytest.approx(a.objective, rel=1e-9)
    np.testing.assert_allclose(b.coef, a.coef, atol=1e-4 * np.abs(a.coef).max())


@pytest.mark.parametrize("name", ["squared_error", "log_loss", "huber", "squared_hinge"])
def test_copies_of_an_output_have_its_coefficients(name):
    # loss adds up over k copies and Omega^2 grows by k: the same problem, k times.
    case = CASES[name]
    small, nodes = make(case)
    search = small.search
    one = ReducedProblem(search.engine, search.graph, small.y, nodes, case.loss)
    target = np.stack([small.y] * 3, axis=1)
    three = ReducedProblem(search.engine, search.graph, target, nodes, case.loss)
    a, b = one.solve(0.01, tol=1e-9), three.solve(0.01, tol=1e-9)
    assert np.linalg.norm(a.coef) > 0.05
    assert b.objective == pytest.approx(3.0 * a.objective, rel=1e-8)
    np.testing.assert_allclose(b.coef, np.stack([a.coef] * 3, axis=1), atol=1e-4)


@every_loss
@pytest.mark.parametrize("factor", [2.0, 0.5])
def test_warm_starts_reach_the_same_optimum(case, factor):
    small, nodes = make(case)
    before = small.search.reduced(nodes).solve(factor * 0.01, tol=tolerance(case))
    cold = solve(small, nodes, case)
    warm = solve(small, nodes, case, warm=before.warm_start)
    assert_same(warm, cold, case)


@some_cases(lambda case: case.loss.smooth and case.name != "squared_error")
def test_a_start_that_is_the_solution_is_left_at_once(case):
    small, nodes = make(case)
    cold = solve(small, nodes, case)
    again = solve(small, nodes, case, warm=cold.warm_start)
    assert_same(again, cold, case)
    assert again.n_iter <= 2 < cold.n_iter


@every_loss
def test_a_bad_start_does_no_harm(case):
    small, nodes = make(case)
    cold = solve(small, nodes, case)
    rng = np.random.default_rng(0)
    bad = WarmStart(cold.eta[::-1].copy(), 3.0 * rng.standard_normal(cold.coef.shape))
    bad.coef[0] = 0.0
    assert_same(solve(small, nodes, case, warm=bad), cold, case)


@every_loss
def test_growing_restricting_and_starting_afresh_agree(case):
    small, nodes = make(case, basis=Spline(tol=1e-1))
    grown = small.search.reduced(nodes[:2])
    first = grown.solve(0.01, tol=tolerance(case))
    grown.extend(nodes[2:])
    # The start lacks the nodes that were appended since.
    warm = grown.solve(0.01, tol=tolerance(case), warm=first.warm_start)
    assert_same(warm, solve(small, nodes, case), case)
    assert warm.objective < first.objective
    hull = [node for node in nodes if all(m == 0 for m, _ in node)]
    smaller = grown.restrict(hull)
    assert type(smaller) is type(grown)
    assert smaller.nodes == hull
    index = [nodes.index(node) for node in hull]
    start = WarmStart(warm.eta[index], warm.coef[grown.blocks.columns(index)])
    restricted = smaller.solve(0.01, tol=tolerance(case), warm=start)
    assert_same(restricted, solve(small, hull, case), case)
    assert len(grown.nodes) == len(nodes)


@every_loss
def test_a_target_without_signal_in_the_hull_leaves_the_best_constant(case):
    small, _ = make(case)
    search = small.search
    solution = solve(small, [()], case)
    omega = search.engine.row_weights
    zero = np.zeros_like(small.y)
    loss = small.search.loss
    b = loss.intercept(small.y, zero, omega, case.smoothing(1e-12))
    null = float(omega @ loss.value(small.y, zero + b))
    assert solution.status is Status.CONVERGED
    assert solution.objective == pytest.approx(null, rel=2 * tolerance(case))
    assert np.all(solution.coef == 0.0)


@every_loss
@pytest.mark.parametrize("alpha", [1e4, 1e-5])
def test_strong_and_weak_penalties_are_solved(case, alpha):
    small, nodes = make(case, alpha=alpha, n=60)
    solution = small.search.reduced(nodes).solve(alpha, tol=1e-4 if case.loss.smooth else 1e-2)
    assert solution.status is Status.CONVERGED
    if alpha > 1.0:
        assert np.abs(solution.coef).max() < 1e-3


@pytest.mark.parametrize("basis", [OrthonormalPolynomial(1), Polynomial(1), Anova(b=0.5, tol=1e-2)])
@pytest.mark.parametrize("form", ["primal", "dual"])
@pytest.mark.parametrize("root_weight", [1.0, 0.3])
@pytest.mark.parametrize("name", ["log_loss", "multinomial"])
def test_with_one_kernel_the_log_loss_is_logistic_regression(name, root_weight, form, basis):
    # One node w below a constant root: Omega = (d_root + d_w) |beta_w|, a ridge penalty.
    alpha = 0.02
    small = small_problem(
        basis,
        1,
        n=80,
        p=2,
        alpha=alpha,
        weighted=True,
        root_weight=root_weight,
        form=form,
        case=CASES[name],
    )
    node = ((0, 1),)
    reduced = small.search.reduced([(), node])
    ours = reduced.solve(alpha, tol=1e-10)
    features = small.levels[0][1]
    assert features.shape[1] == reduced.n_columns - 1
    total = small.grid.weight(()) + small.grid.weight(node)
    labels = small.y if name == "log_loss" else np.argmax(small.y, axis=1)
    theirs = LogisticRegression(C=1.0 / (alpha * total**2), tol=1e-10, max_iter=10_000)
    theirs.fit(features, labels, sample_weight=small.weights / small.weights.sum())
    expected = theirs.coef_[0] if name == "log_loss" else theirs.coef_.T
    # Strong convexity: a gap of g moves beta by sqrt(2 g / (alpha total^2)).
    moved = np.sqrt(2e-10 * ours.objective / (alpha * total**2)) + 1e-6
    assert moved < 1e-4
    np.testing.assert_allclose(ours.coef[1:], expected, atol=moved)
    intercept, _, _ = small.search._measure([(), node], ours.coef, alpha, None)
    b = theirs.intercept_ - theirs.intercept_.mean() * (name == "multinomial")
    np.testing.assert_allclose(np.atleast_1d(intercept), b, atol=1e-4)
