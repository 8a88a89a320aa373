"""Warm starts on a working set: the same optimum and a proof for the whole hull, from anywhere."""

from __future__ import annotations

import numpy as np
import pytest
from oracles.naive import all_nodes
from oracles.problems import small_problem

from hikernel.bases import OrthonormalPolynomial, Spline
from hikernel.reduced import Status, working_set
from hikernel.reduced.newton import solve_reduced
from hikernel.reduced.working_set import solve_from

TOL = 1e-7


def make(form="auto", basis=None, n=120, alpha=0.02):
    small = small_problem(basis or OrthonormalPolynomial(2), 0, n=n, p=4, form=form, alpha=alpha)
    reduced = small.search.reduced(all_nodes(small.grid))
    return reduced.squared_form(), reduced.hull


def on(hull, chosen):
    """eta with all its weight on some nodes."""
    theta = np.zeros(hull.size)
    theta[chosen] = 1.0 / len(chosen)
    return hull.eta(theta)


@pytest.mark.parametrize("form", ["primal", "dual"])
@pytest.mark.parametrize("alpha", [0.3, 0.02, 0.001])
@pytest.mark.parametrize("chosen", [[0], [0, 3, 60], [80], list(range(81))])
def test_any_start_reaches_the_optimum_of_the_whole_hull(chosen, alpha, form):
    form, hull = make(form)
    cold = solve_reduced(form, hull, alpha, tol=TOL)
    warm = solve_from(form, hull, alpha, tol=TOL, warm_eta=on(hull, chosen))
    assert warm.status is Status.CONVERGED
    assert warm.objective == pytest.approx(cold.objective, rel=2 * TOL)
    assert warm.gap <= TOL * warm.objective
    assert warm.dual_bound <= cold.objective * (1 + 1e-12)
    assert hull.weights**2 @ warm.eta == pytest.approx(1.0)
    np.testing.assert_allclose(warm.zeta, hull.zeta(warm.eta))
    squares = form.squares(warm.scores)
    assert hull.refine_dual_norm(squares, warm.dual_norm.eta, rounds=0).value == pytest.approx(
        warm.dual_norm.value
    )


def test_wide_nodes_and_more_columns_than_rows():
    form, hull = make("dual", basis=Spline(tol=1e-2), n=25)
    assert form.n_columns > 25
    before = solve_reduced(form, hull, 0.03, tol=TOL)
    cold = solve_reduced(form, hull, 0.02, tol=TOL)
    warm = solve_from(form, hull, 0.02, tol=TOL, warm_eta=before.eta)
    assert warm.objective == pytest.approx(cold.objective, rel=2 * TOL)


def test_a_proof_that_fails_falls_back_on_the_whole_hull(monkeypatch):
    form, hull = make()
    cold = solve_reduced(form, hull, 0.02, tol=TOL)
    nothing = np.zeros(hull.size, dtype=bool)

    def no_proof(form, hull, alpha, tol, solution, inside):
        return working_set.replace(solution, dual_bound=0.0), nothing

    monkeypatch.setattr(working_set, "_extend_proof", no_proof)
    warm = solve_from(form, hull, 0.02, tol=TOL, warm_eta=on(hull, [0]))
    assert warm.objective == pytest.approx(cold.objective, rel=2 * TOL)
    assert warm.gap <= TOL * warm.objective


def test_a_singular_working_set_is_reported():
    form, hull = make()
    form.gram[...] = 1e18
    form.cross[...] = 1e9
    warm = solve_from(form, hull, 1e-30, tol=TOL, warm_eta=on(hull, [0, 1]))
    assert warm.status is Status.SINGULAR
