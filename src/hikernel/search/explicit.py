"""The search for graphs whose nodes can all be scored: general DAGs, and strings.

A round solves on J and asks the graph for every node with |a_w|^2 / d_w^2 above the threshold that
the tolerance allows. ``graph.explore`` scores all nodes of a finite DAG, and uses branch and bound
where children are made on demand. The violating nodes enter J with their hulls. When no node
violates, kappa_ww = 1 bounds everything outside J. The certificate is then exact, and costs no more
than the last round.
"""

from __future__ import annotations

from typing import cast

from hikernel.engines.protocol import Vertex
from hikernel.graphs import ExplicitGraph
from hikernel.search.certificate import StopReason
from hikernel.search.growth import (
    HullSearch,
    SearchResult,
    SearchSettings,
    SearchStart,
    StepCallback,
    TailBound,
)
from hikernel.search.objective import Objective, SolvedHull

__all__ = ["explicit_search"]


def explicit_search(
    objective: Objective,
    lam: float,
    settings: SearchSettings,
    *,
    callback: StepCallback | None = None,
    start: SearchStart | None = None,
) -> SearchResult:
    """Search a graph whose nodes can all be scored.

    Parameters
    ----------
    objective : Objective
        Rows, target and loss, and a graph that is an :class:`~hikernel.graphs.ExplicitGraph`.
    lam : float
        lambda.
    settings : SearchSettings
        Tolerance and cost limits; every node is bounded, regardless of ``certify``.
    callback : callable, optional
        Called with every :class:`SearchStep`.
    start : SearchStart, optional
        Hull and solution of a neighbouring problem, to start from.
    """
    return _ExplicitSearch(objective, lam, settings, callback).run(start)


class _ExplicitSearch(HullSearch[Objective]):
    def _run(self, start: SearchStart | None) -> SearchResult:
        """Grow J until no node violates, or a limit is reached."""
        nodes, warm = (self._first(), None) if start is None else (start.nodes, start.warm)
        solved = self._solve(self._objective.reduced(nodes), warm)
        while True:
            bound = self._bound(solved)
            self._report(solved, bound)
            if not solved.solution.status.ok:
                return self._result(solved, bound, solved.solution.status)
            if not bound.violators:
                return self._result(solved, bound, None)
            reason = self._exhausted(solved)
            if reason:
                return self._result(solved, bound, reason)
            solved = self._grow(solved, self._entering(solved, bound.violators))

    def _first(self) -> list[Vertex]:
        """Return the hull of the strongest node at the dual point of the best constant."""
        objective, graph = self._objective, self._objective.graph
        dual = objective.null_dual(self._lam)
        node = graph.strongest(objective.engine, dual.dual_coef)
        return sorted(graph.hull([node]), key=graph.sort_key)[: self._settings.max_kernels]

    def _bound(self, solved: SolvedHull) -> TailBound:
        """Bound all nodes outside J, and list those that violate."""
        graph = cast(ExplicitGraph, self._objective.graph)
        threshold = solved.threshold
        found = graph.explore(
            self._objective.engine, solved.dual.dual_coef, threshold, self._settings.max_explored
        )
        inside = set(solved.problem.nodes)
        outside = {node: score for node, score in found.violators.items() if node not in inside}
        violators = self._unsettled(solved, outside)
        value = found.rest
        if violators:
            # kappa_ww = 1 outside J: each node is bounded by its own score.
            value = max(value, *outside.values())
        elif outside:
            value = max(value, self._shared_bound(solved, self._outside(solved, list(outside))))
        all_known = found.rest <= threshold
        return TailBound(
            value=value,
            kind="exact",
            reason=StopReason.OWN_SCORES if all_known else StopReason.MAX_EXPLORED,
            n_explored=max(0, found.n_explored - len(inside)),
            violators=violators,
        )
