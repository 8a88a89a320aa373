"""Drop the terms that got next to no weight, as long as the objective stays where it may be."""

from __future__ import annotations

import numpy as np

from hikernel.reduced import WarmStart
from hikernel.search.problem import HullProblem
from hikernel.search.state import SolvedHull, solve_hull

__all__ = ["prune"]


def prune(
    problem: HullProblem, solved: SolvedHull, *, allowed: float, tol: float, solve_tol: float
) -> SolvedHull:
    """Return the solution on the smallest hull whose objective is at most ``allowed``.

    Nodes are dropped by |beta_D(v)| / |beta|, which falls along the graph, so that what is kept
    is ancestor-closed; the rest is solved again. The cut starts at ``tol`` and is lowered until
    the objective fits.
    """
    reduced = solved.problem
    norms = reduced.hull.descendant_norms(reduced.node_squares(solved.solution.coef))
    largest = float(np.max(norms))
    cutoff = tol
    while cutoff > 1e-12:
        keep = [
            node for node, norm in zip(reduced.nodes, norms, strict=True) if norm > cutoff * largest
        ]
        # Without any signal the first node, a source of the graph, is kept alone.
        keep = keep or reduced.nodes[:1]
        if len(keep) == len(reduced.nodes):
            break
        smaller = reduced.restrict(keep)
        index = [i for i, node in enumerate(reduced.nodes) if node in set(keep)]
        trial = solve_hull(
            problem,
            smaller,
            tol=tol,
            solve_tol=solve_tol,
            warm=WarmStart(
                solved.solution.eta[index], solved.solution.coef[reduced.columns_of(index)]
            ),
        )
        if trial.solution.status.ok and trial.objective <= allowed:
            return trial
        cutoff /= 10.0
    return solved
