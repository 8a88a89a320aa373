"""The search of Bach (2008): look one step ahead, then certify by descendant sums.

Starting from the sources of the graph, solve on the hull J. While a source t of the complement
violates the necessary condition |a_t|^2 / d_t^2 <= delta^2, add the violators; otherwise, while
one violates the sufficient condition U(t) <= delta^2 + eps / lambda, add those; stop when the
duality gap is below eps or when J has ``max_kernels`` nodes.

Both conditions are tested against one threshold, the largest Omega*^2 at which the duality gap of
the whole problem meets the tolerance. A node whose score exceeds delta^2 but not this threshold
does not prevent the certificate, so it is not added.
"""

from __future__ import annotations

from copy import copy

import numpy as np

from hikernel.engines.protocol import FloatArray, Node
from hikernel.reduced import Status
from hikernel.search.certificate import StopReason
from hikernel.search.growth import (
    HullSearch,
    SearchResult,
    SearchSettings,
    SearchStart,
    StepCallback,
    TailBound,
)
from hikernel.search.objective import GridObjective, SolvedHull

__all__ = ["paper_search"]


def paper_search(
    objective: GridObjective,
    lam: float,
    settings: SearchSettings,
    *,
    callback: StepCallback | None = None,
    start: SearchStart | None = None,
) -> SearchResult:
    """Search a grid by the rule of the paper.

    Parameters
    ----------
    objective : GridObjective
        Rows, graph, target and loss.
    lam : float
        lambda.
    settings : SearchSettings
        How to search. Kernels outside the hull are bounded exactly or not at all, depending on
        ``certify``.
    callback : callable, optional
        Called with every :class:`SearchStep`.
    start : SearchStart, optional
        Not used: the search always starts at the sources of the graph.
    """
    return _PaperSearch(objective, lam, settings, callback).run(start)


class _PaperSearch(HullSearch[GridObjective]):
    def __init__(
        self,
        objective: GridObjective,
        lam: float,
        settings: SearchSettings,
        callback: StepCallback | None,
    ) -> None:
        super().__init__(objective, lam, settings, callback)
        self._tol = settings.tol  # the rule of the paper searches as far as it proves
        self._certify = objective.tail_mode(settings.certify) == "exact"
        self._explored: set[Node] = set()

    def _run(self, start: SearchStart | None) -> SearchResult:
        """Solve, test and grow until no node is added; then prune nodes without weight."""
        reduced = self._objective.reduced(self._objective.graph.sources_of_complement([]))
        solved = self._solve(reduced, None)
        while True:
            violators = self._inspect(solved)
            if not violators:
                return self._finished(solved, self._history[-1])
            reduced = copy(reduced)  # the last solution must stay as it is if the time runs out
            reduced.extend(violators)
            solved = self._solve(reduced, solved.solution.warm_start)

    def _inspect(self, solved: SolvedHull) -> list[Node]:
        """Report a step with its certificate, and return the nodes to add; none ends the search."""
        objective, dual, threshold = self._objective, solved.dual, solved.threshold
        nodes = list(solved.problem.nodes)
        frontier = objective.graph.sources_of_complement(nodes)
        squares = objective.engine.score_squares(frontier, dual.dual_coef)
        scores = squares / objective.graph.weights(frontier) ** 2
        self._explored.update(nodes, frontier)

        room = self._settings.max_kernels - len(nodes)
        kind, outside = "none", np.inf
        chosen = _above(frontier, scores, threshold)
        # The last step always bounds the tail, so that the result has a bound, even if a poor one.
        if not chosen or room <= 0 or solved.solution.status is Status.SINGULAR:
            if not frontier:
                kind, outside = "exact", 0.0
            elif self._certify:
                tails = self._tails(frontier, solved)
                kind, outside = "exact", float(np.max(tails))
                chosen = _above(frontier, tails, threshold)
        fitting = self._fitting(solved, chosen[: max(room, 0)])
        reason = self._stop_reason(solved.solution.status, bool(chosen), room, kind)
        if reason is None and not fitting:
            reason = StopReason.MAX_MEMORY
        n_outside = len(self._explored) - len(nodes)
        bound = TailBound(outside, kind, StopReason.UNFINISHED, n_outside)
        self._report(solved, bound, frontier, reason)
        return [] if reason else fitting

    def _fitting(self, solved: SolvedHull, nodes: list[Node]) -> list[Node]:
        """Return the first of some nodes, as many as there is room for in memory."""
        room = self._settings.max_columns - solved.problem.n_columns
        widths = np.cumsum([self._objective.engine.width(node) for node in nodes])
        return nodes[: int(np.searchsorted(widths, room, side="right"))]

    def _tails(self, frontier: list[Node], solved: SolvedHull) -> FloatArray:
        """Return U(t) of the sources of the complement, or bounds on it in a restricted grid."""
        restricted = self._objective.restricted
        if restricted is None:
            return self._objective.tail_sums(frontier, solved.dual)
        return restricted.tail_bounds(frontier, solved.dual, enough=solved.threshold)[0]

    def _stop_reason(
        self, status: Status, violated: bool, room: int, kind: str
    ) -> StopReason | Status | None:
        """Return why the search ends here, or None if it continues."""
        if status is Status.SINGULAR:
            return status
        if violated:
            return StopReason.MAX_KERNELS if room <= 0 else None
        if not status.ok:
            return status
        return StopReason.NOT_BOUNDED if kind == "none" else StopReason.NO_VIOLATION


def _above(nodes: list[Node], values: FloatArray, threshold: float) -> list[Node]:
    """Return the nodes whose value exceeds the threshold, largest first."""
    order = np.argsort(-values, kind="stable")
    return [nodes[i] for i in order if values[i] > threshold]
