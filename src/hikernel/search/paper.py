"""The search of the paper: look one step ahead, then certify by descendant sums.

Starting from the sources of the graph, solve on the hull J. While a source t of the complement
violates the necessary condition |a_t|^2 / d_t^2 <= delta^2, add the violators; otherwise, while
one violates the sufficient condition U(t) <= delta^2 + eps / lambda, add those; stop when the
duality gap is below eps or when J has ``max_kernels`` nodes.

Both conditions are tested against the same level, the largest Omega*^2 at which the duality gap
of the whole problem meets the tolerance: a necessary condition violated by less than that cannot
stand in the way of the certificate.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hikernel.engines.protocol import FloatArray, Node
from hikernel.reduced import Status, WarmStart
from hikernel.search.certificate import Certificate
from hikernel.search.problem import (
    NOT_BOUNDED,
    SOLVE_SHARE,
    Certify,
    SearchProblem,
    too_many_kernels,
)
from hikernel.search.prune import prune
from hikernel.search.state import (
    SearchResult,
    SearchStep,
    SolvedHull,
    StepCallback,
    solve_hull,
)

__all__ = ["paper_search"]


def paper_search(
    problem: SearchProblem,
    *,
    tol: float,
    max_kernels: int,
    certify: Certify = "auto",
    callback: StepCallback | None = None,
) -> SearchResult:
    """Search the graph by the paper's rule.

    Parameters
    ----------
    problem : SearchProblem
        Rows, graph, target and lambda.
    tol : float
        Relative duality gap to reach.
    max_kernels : int
        Largest hull that is solved.
    certify : {"auto", "exact", "none"}
        Whether kernels outside the hull are bounded exactly, at a cost quadratic in the number
        of rows; "auto" does so up to about 20,000 rows.
    callback : callable, optional
        Called with every :class:`SearchStep`.
    """
    return _PaperSearch(problem, tol, max_kernels, certify, callback).run()


class _PaperSearch:
    def __init__(
        self,
        problem: SearchProblem,
        tol: float,
        max_kernels: int,
        certify: Certify,
        callback: StepCallback | None,
    ) -> None:
        self._problem = problem
        self._tol = tol
        self._solve_tol = SOLVE_SHARE * tol
        self._max_kernels = max_kernels
        self._certify = problem.tail_mode(certify) == "exact"
        self._callback = callback
        self._history: list[Certificate] = []
        self._explored: set[Node] = set()

    def run(self) -> SearchResult:
        """Solve, look, grow; then prune what has no weight."""
        problem = self._problem
        reduced = problem.reduced(problem.graph.sources_of_complement([]))
        warm: WarmStart | None = None
        while True:
            solved = solve_hull(
                problem, reduced, tol=self._tol, solve_tol=self._solve_tol, warm=warm
            )
            step, violators = self._inspect(solved)
            self._history.append(step.certificate)
            if self._callback is not None:
                self._callback(step)
            if not violators:
                return self._finish(solved, step.certificate)
            reduced.extend(violators)
            warm = solved.solution.warm_start

    def _inspect(self, solved: SolvedHull) -> tuple[SearchStep, list[Node]]:
        """Return the step with its certificate, and the nodes to add (none: stop)."""
        problem, dual, level = self._problem, solved.dual, solved.level
        nodes = list(solved.problem.nodes)
        frontier = problem.graph.sources_of_complement(nodes)
        squares = problem.engine.score_squares(frontier, dual.alpha)
        scores = squares / problem.graph.weights(frontier) ** 2
        self._explored.update(nodes, frontier)

        room = self._max_kernels - len(nodes)
        kind, outside = "none", np.inf
        chosen = _above(frontier, scores, level)
        # The last step always bounds the tail, so that a bound stands even if it is a poor one.
        if not chosen or room <= 0 or solved.solution.status is Status.SINGULAR:
            if not frontier:
                kind, outside = "exact", 0.0
            elif self._certify:
                tails = problem.tail_sums(frontier, dual)
                kind, outside = "exact", float(np.max(tails))
                chosen = _above(frontier, tails, level)
        reason = self._stop_reason(solved.solution.status, bool(chosen), room, kind)
        if reason:
            chosen = []
        certificate = Certificate(
            objective=solved.objective,
            dual_bound=min(dual.value(max(solved.inside, outside)), solved.objective),
            tol=self._tol,
            kind=kind,
            reason=reason,
            n_vertices=problem.graph.n_vertices,
            n_explored=len(self._explored),
            n_kernels=len(nodes),
        )
        return SearchStep(nodes, frontier, solved.solution, dual, certificate), chosen[:room]

    def _stop_reason(self, status: Status, violated: bool, room: int, kind: str) -> str:
        """Return why the search ends here, or nothing while it goes on."""
        if status is Status.SINGULAR:
            return status.sentence
        if violated and room <= 0:
            return too_many_kernels(self._max_kernels)
        if violated:
            return ""
        if not status.ok:
            return status.sentence
        if kind == "none":
            return NOT_BOUNDED
        return "No kernel outside the hull violates the optimality conditions."

    def _finish(self, solved: SolvedHull, certificate: Certificate) -> SearchResult:
        """Drop what only the proof needed; a dual bound stays valid for every primal point."""
        if certificate.certified:
            allowed = certificate.dual_bound / (1.0 - self._tol)
        else:
            allowed = solved.objective * (1.0 + 0.1 * self._tol)
        final = prune(
            self._problem, solved, allowed=allowed, tol=self._tol, solve_tol=self._solve_tol
        )
        certificate = replace(
            certificate,
            objective=final.objective,
            dual_bound=min(certificate.dual_bound, final.objective),
        )
        return SearchResult.of(final, certificate, self._history)


def _above(nodes: list[Node], values: FloatArray, level: float) -> list[Node]:
    """Return the nodes whose value exceeds the level, largest first."""
    order = np.argsort(-values, kind="stable")
    return [nodes[i] for i in order if values[i] > level]
