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

import numpy as np

from hikernel.engines.protocol import FloatArray, Node
from hikernel.reduced import ReducedProblem, ReducedSolution
from hikernel.search.certificate import Certificate, DualPoint
from hikernel.search.problem import (
    Certify,
    SearchProblem,
    SearchResult,
    SearchStep,
    StepCallback,
)
from hikernel.search.prune import prune

__all__ = ["paper_search"]

_REDUCED_SHARE = 0.1
"""Share of the tolerance that the reduced solves may use up."""

AUTO_PAIRS = 2 * 10**8
"""certify="auto" bounds the tail exactly up to this many pairs of rows (n = 20,000)."""


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
        self._max_kernels = max_kernels
        pairs = problem.engine.n_rows * (problem.engine.n_rows + 1) // 2
        self._certify = certify == "exact" or (certify == "auto" and pairs <= AUTO_PAIRS)
        self._callback = callback
        self._history: list[Certificate] = []
        self._explored: set[Node] = set()

    def run(self) -> SearchResult:
        """Solve, look, grow; then prune what has no weight."""
        problem = self._problem
        reduced = problem.reduced(problem.graph.sources_of_complement([]))
        warm: FloatArray | None = None
        while True:
            solution = reduced.solve(
                problem.strength, tol=_REDUCED_SHARE * self._tol, warm_eta=warm
            )
            step, violators = self._inspect(reduced, solution)
            self._history.append(step.certificate)
            if self._callback is not None:
                self._callback(step)
            if not violators:
                return prune(problem, reduced, step, self._history)
            reduced.extend(violators)
            warm = solution.eta

    def _inspect(
        self, reduced: ReducedProblem, solution: ReducedSolution
    ) -> tuple[SearchStep, list[Node]]:
        """Return the step with its certificate, and the nodes to add (none: stop)."""
        problem = self._problem
        nodes = list(reduced.nodes)
        frontier = problem.graph.sources_of_complement(nodes)
        residuals = problem.residuals(nodes, solution.coef)
        dual = problem.dual_point(residuals)
        squares = _node_squares(reduced, solution.coef)
        objective = problem.primal(residuals, reduced.hull, squares)
        scores = self._scores(frontier, dual)
        # Recomputed from the rows: the certificate does not lean on the solver's own numbers.
        own = _node_squares(reduced, problem.engine.correlate(nodes, dual.alpha))
        inside = reduced.hull.refine_dual_norm(own, solution.dual_norm.eta).value
        level = max(dual.dual_norm_for((1.0 - self._tol) * objective), inside)
        self._explored.update(nodes, frontier)

        room = self._max_kernels - len(nodes)
        kind, outside = "none", np.inf
        chosen = _above(frontier, scores, level)
        # The last step always bounds the tail, so that a bound stands even if it is a poor one.
        if not chosen or room <= 0 or not solution.status.ok:
            if not frontier:
                kind, outside = "exact", 0.0
            elif self._certify:
                tails = problem.tail_sums(frontier, dual)
                kind, outside = "exact", float(np.max(tails))
                chosen = _above(frontier, tails, level)
        reason = self._stop_reason(solution, bool(chosen), room, kind)
        if reason:
            chosen = []
        certificate = Certificate(
            objective=objective,
            dual_bound=min(dual.value(max(inside, outside)), objective),
            tol=self._tol,
            kind=kind,
            reason=reason,
            n_vertices=problem.graph.n_vertices,
            n_explored=len(self._explored),
            n_kernels=len(nodes),
        )
        return SearchStep(nodes, frontier, solution, dual, certificate), chosen[:room]

    def _stop_reason(self, solution: ReducedSolution, violated: bool, room: int, kind: str) -> str:
        """Return why the search ends here, or nothing while it goes on."""
        if not solution.status.ok:
            return solution.status.value
        if violated and room <= 0:
            return f"The search stopped at max_kernels={self._max_kernels}; raise it or alpha."
        if violated:
            return ""
        if kind == "none":
            return (
                "Exact bounds were not computed: their cost grows with the square of the number "
                'of rows; ask for them with certify="exact".'
            )
        return "No kernel outside the hull violates the optimality conditions."

    def _scores(self, frontier: list[Node], dual: DualPoint) -> FloatArray:
        """Return |a_t|^2 / d_t^2 of the frontier."""
        if not frontier:
            return np.empty(0)
        engine = self._problem.engine
        widths = [engine.width(node) for node in frontier]
        starts = np.concatenate([[0], np.cumsum(widths)[:-1]]).astype(np.intp)
        scores = engine.correlate(frontier, dual.alpha)
        squares = np.add.reduceat(scores**2, starts)
        return np.asarray(squares / self._problem.graph.weights(frontier) ** 2)


def _node_squares(reduced: ReducedProblem, columns: FloatArray) -> FloatArray:
    """Return the squared norm of each node's block."""
    return np.asarray(np.add.reduceat(columns**2, reduced.starts))


def _above(nodes: list[Node], values: FloatArray, level: float) -> list[Node]:
    """Return the nodes whose value exceeds the level, largest first."""
    order = np.argsort(-values, kind="stable")
    return [nodes[i] for i in order if values[i] > level]
