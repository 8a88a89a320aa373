"""Warm starts: solve on a small working set, then prove the solution for the whole hull.

Most nodes of a hull have no weight at the optimum. Given the eta of a neighbouring problem, the
Newton method runs only on the few nodes that had weight there. One product with the moments gives
the scores of all other nodes. A dual norm bound over the whole hull then either proves the solution
or shows which nodes must enter the working set.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hikernel.engines.machine import one_blas_thread
from hikernel.engines.protocol import FloatArray
from hikernel.losses.dual_curve import QuadraticCurve
from hikernel.reduced.forms import Form
from hikernel.reduced.newton import solve_reduced
from hikernel.reduced.solution import ReducedSolution
from hikernel.reduced.variational import THETA_FLOOR, HullMap

__all__ = ["solve_form", "solve_from"]

_SUPPORT = 1e-4
"""Share of sum d_v^2 eta_v above which a node counts as having weight."""
_LARGEST_SHARE = 0.6
"""Share of the hull above which a working set saves nothing: the whole hull is solved."""
_NEAR = 0.9
"""A node enters the first working set if |a_w| / d_w exceeds this fraction of Omega(beta)."""
_ROUNDS = 6
_INNER = 0.3
"""Share of the tolerance that the solve on the working set may use up."""
_ONE_THREAD = 500
"""Number of columns R up to which one BLAS thread is as fast as two."""


def solve_form(
    form: Form, hull: HullMap, lam: float, *, tol: float, warm_eta: FloatArray | None
) -> ReducedSolution:
    """Solve a form, with or without a warm start, with one BLAS thread if the form is small."""
    with one_blas_thread(form.n_columns <= _ONE_THREAD):
        if warm_eta is None:
            return solve_reduced(form, hull, lam, tol=tol)
        return solve_from(form, hull, lam, tol=tol, warm_eta=warm_eta)


def solve_from(
    form: Form, hull: HullMap, lam: float, *, tol: float, warm_eta: FloatArray
) -> ReducedSolution:
    """Solve the reduced problem to relative gap ``tol``, from the eta of a neighbouring problem.

    Parameters
    ----------
    form, hull, lam, tol
        As in :func:`~hikernel.reduced.newton.solve_reduced`.
    warm_eta : ndarray of shape (m,)
        eta of a neighbouring problem, zero for nodes that it did not have.
    """
    theta = hull.weights**2 * warm_eta
    total = float(np.sum(theta))
    if not (np.isfinite(total) and total > 0.0):
        return solve_reduced(form, hull, lam, tol=tol)
    inside = _first_guess(form, hull, lam, warm_eta, hull.closure(theta > _SUPPORT * total))
    n_iter = 0
    for _ in range(_ROUNDS):
        if np.count_nonzero(inside) > _LARGEST_SHARE * hull.size:
            break
        solution = _solve_inside(form, hull, lam, tol, warm_eta, inside)
        n_iter += solution.n_iter
        if not solution.status.ok:
            break
        proven, violating = _extend_proof(form, hull, lam, tol, solution, inside)
        if proven.gap <= tol * proven.objective:
            return replace(proven, n_iter=n_iter)
        if not np.any(violating & ~inside):
            break
        inside = hull.closure(inside | violating)
        warm_eta = solution.eta
    full = solve_reduced(form, hull, lam, tol=tol, warm_eta=warm_eta)
    return replace(full, n_iter=n_iter + full.n_iter)


def _first_guess(
    form: Form,
    hull: HullMap,
    lam: float,
    warm_eta: FloatArray,
    support: NDArray[np.bool_],
) -> NDArray[np.bool_]:
    """Return the support plus the nodes that nearly violate the necessary condition.

    The condition |a_w| / d_w <= Omega(beta) is evaluated at the warm start. The result is a mask of
    shape (m,), ancestor-closed.
    """
    index = np.flatnonzero(support)
    eta = np.maximum(warm_eta[index], THETA_FLOOR / hull.weights[index] ** 2)
    part = hull.restrict(index)
    solved = form.restrict(index).evaluate(part.zeta(eta), lam)
    if solved is None:
        return support
    coef = np.zeros(form.n_columns)
    coef[form.columns(index)] = solved.coef
    squares = form.squares(form.scores(coef, lam))
    threshold = (_NEAR * part.norm(solved.coef_squares)) ** 2
    return hull.closure(support | (squares > threshold * hull.weights**2))


def _solve_inside(
    form: Form,
    hull: HullMap,
    lam: float,
    tol: float,
    warm_eta: FloatArray,
    inside: NDArray[np.bool_],
) -> ReducedSolution:
    """Solve on the working set, and extend the solution by zeros to the whole hull."""
    index = np.flatnonzero(inside)
    solution = solve_reduced(
        form.restrict(index),
        hull.restrict(index),
        lam,
        tol=_INNER * tol,
        warm_eta=warm_eta[index],
    )
    eta = THETA_FLOOR / hull.weights**2
    eta[index] = solution.eta
    coef = np.zeros(form.n_columns)
    coef[form.columns(index)] = solution.coef
    return replace(
        solution,
        eta=eta,
        zeta=hull.zeta(eta),
        coef=coef,
        scores=form.scores(coef, lam),
        dual_norm=replace(solution.dual_norm, eta=_spread(hull, solution.dual_norm.eta, index)),
    )


def _spread(hull: HullMap, eta: FloatArray, index: NDArray[np.intp]) -> FloatArray:
    """Return a positive eta on the whole hull, close to zero outside the working set."""
    out = 1e-9 / (hull.size * hull.weights**2)
    out[index] += eta
    return out


def _extend_proof(
    form: Form,
    hull: HullMap,
    lam: float,
    tol: float,
    solution: ReducedSolution,
    inside: NDArray[np.bool_],
) -> tuple[ReducedSolution, NDArray[np.bool_]]:
    """Return the solution with a dual bound for the whole hull, and a mask of the violators."""
    squares = form.squares(solution.scores)
    # loss and fit of the solution on the working set, from its objective, beta and a.
    penalty = form.inner(solution.coef, solution.scores)
    norm = hull.norm(form.squares(solution.coef))
    loss = solution.objective - 0.5 * lam * norm**2
    fit = 2.0 * loss + lam * penalty
    curve = QuadraticCurve(fit, 2.0 * loss)
    enough = curve.penalty_for((1.0 - tol) * solution.objective) / lam
    bound = hull.refine_dual_norm(squares, solution.dual_norm.eta, enough=enough)
    dual = curve.value(lam * bound.value)
    violating = squares > enough * hull.weights**2
    if not np.any(violating & ~inside):
        # No single node violates, but groups of nodes do.
        violating = hull.dual_norm_ratios(squares, bound.eta) ** 2 > enough
    proven = replace(solution, dual_bound=min(dual, solution.objective), dual_norm=bound)
    return proven, violating
