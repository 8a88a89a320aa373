"""After the search: drop the terms that only the proof needed.

Certifying adds nodes that get next to no weight. They are dropped as long as the model that is
solved again without them stays within the tolerance of the bound already proven; a dual bound
stays valid for every primal point.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hikernel.engines.protocol import FloatArray
from hikernel.reduced import ReducedProblem
from hikernel.search.certificate import Certificate
from hikernel.search.problem import SearchProblem, SearchResult, SearchStep

__all__ = ["prune"]


def prune(
    problem: SearchProblem,
    reduced: ReducedProblem,
    step: SearchStep,
    history: list[Certificate],
) -> SearchResult:
    """Return the final model on the smallest hull that keeps what is proven.

    Parameters
    ----------
    problem : SearchProblem
        The problem.
    reduced : ReducedProblem
        The reduced problem on the last hull.
    step : SearchStep
        The last step.
    history : list of Certificate
        Certificates of all steps.
    """
    certificate = step.certificate
    # What the objective may become: the tolerance above the bound, or a whisker when unproven.
    if certificate.certified:
        allowed = certificate.dual_bound / (1.0 - certificate.tol)
    else:
        allowed = certificate.objective * (1.0 + 0.1 * certificate.tol)
    shares = _norm_shares(reduced, step.solution.coef)
    best = reduced, step.solution, certificate.objective
    cutoff = certificate.tol
    while cutoff > 1e-12:
        # |beta_D(v)| falls along the graph, so a cut on it keeps an ancestor-closed set.
        keep = [node for node, share in zip(reduced.nodes, shares, strict=True) if share > cutoff]
        if not keep:
            keep = reduced.nodes[:1]
        if len(keep) == len(reduced.nodes):
            break
        smaller = reduced.restrict(keep)
        solution = smaller.solve(problem.strength, tol=0.1 * certificate.tol)
        objective = _objective(problem, smaller, solution.coef)
        if solution.status.ok and objective <= allowed:
            best = smaller, solution, objective
            break
        cutoff /= 10.0
    final, solution, objective = best
    residuals = problem.residuals(final.nodes, solution.coef)
    return SearchResult(
        nodes=list(final.nodes),
        problem=final,
        solution=solution,
        residuals=residuals,
        alpha=problem.dual_point(residuals).alpha,
        certificate=replace(
            certificate,
            objective=objective,
            dual_bound=min(certificate.dual_bound, objective),
        ),
        history=history,
    )


def _norm_shares(reduced: ReducedProblem, coef: FloatArray) -> FloatArray:
    """Return |beta_D(v)| / |beta|, one number per node, falling along the graph."""
    norms = reduced.hull.descendant_norms(np.add.reduceat(coef**2, reduced.starts))
    largest = float(np.max(norms))
    return norms / largest if largest > 0.0 else norms


def _objective(problem: SearchProblem, reduced: ReducedProblem, coef: FloatArray) -> float:
    residuals = problem.residuals(reduced.nodes, coef)
    squares = np.add.reduceat(coef**2, reduced.starts)
    return problem.primal(residuals, reduced.hull, squares)
