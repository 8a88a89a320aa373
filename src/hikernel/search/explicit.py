"""The search of graphs whose nodes can be scored one and all: general DAGs, and strings.

A round solves on J and asks the graph for every node with |a_w|^2 / d_w^2 above the level that the
tolerance allows (``explore``: all nodes of a finite DAG, branch and bound where children are made
on demand). They bring their hulls. When none is left, kappa_ww = 1 bounds everything outside J: the
certificate is exact, and costs no more than the last round did.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from hikernel.engines.protocol import FloatArray, Vertex
from hikernel.graphs.exploration import Exploration
from hikernel.reduced import WarmStart
from hikernel.search.growth import HullSearch, TailBound
from hikernel.search.problem import Budget, HullProblem, SupportsHulls
from hikernel.search.state import SearchResult, SolvedHull, StepCallback

__all__ = ["SupportsExplore", "explicit_search"]


class SupportsExplore(SupportsHulls, Protocol):
    """A graph whose nodes can be scored one and all."""

    def explore(
        self, engine: Any, alpha: FloatArray, level: float, max_nodes: int | None
    ) -> Exploration:
        """Return the nodes with |a_w|^2 / d_w^2 above a level, and a bound on all others."""
        ...

    def strongest(self, engine: Any, alpha: FloatArray) -> Vertex:
        """Return the node with the largest |a_w| over the weight of its ancestors."""
        ...


def explicit_search(
    problem: HullProblem,
    *,
    tol: float,
    budget: Budget,
    callback: StepCallback | None = None,
    start: tuple[Sequence[Vertex], WarmStart] | None = None,
) -> SearchResult:
    """Search a graph whose nodes can be scored one and all.

    Parameters
    ----------
    problem : HullProblem
        Rows, target, lambda, and a graph that :class:`SupportsExplore`.
    tol : float
        Relative duality gap to reach.
    budget : Budget
        What it may cost.
    callback : callable, optional
        Called with every :class:`SearchStep`.
    start : tuple of (nodes, WarmStart), optional
        Hull and solution of a neighbouring problem.
    """
    return _Explicit(problem, tol, budget, callback).run(start)


class _Explicit(HullSearch[HullProblem]):
    def run(self, start: tuple[Sequence[Vertex], WarmStart] | None) -> SearchResult:
        """Grow J until nothing violates."""
        nodes, warm = (self._first(), None) if start is None else (list(start[0]), start[1])
        solved = self._solve(self._problem.reduced(nodes), warm)
        while True:
            bound = self._bound(solved)
            self._report(solved, bound)
            if not solved.solution.status.ok:
                return self._result(solved, bound, solved.solution.status.sentence)
            if not bound.violators:
                return self._result(solved, bound, "")
            reason = self._exhausted(solved)
            if reason:
                return self._result(solved, bound, reason)
            solved = self._grow(solved, bound.violators)

    def _first(self) -> list[Vertex]:
        """Return the hull of the node that the best constant's scores single out."""
        problem: Any = self._problem
        dual = problem.measure([], np.zeros((0, *problem.y.shape[1:]))).dual
        node = problem.graph.strongest(problem.engine, dual.alpha)
        nodes = sorted(problem.graph.hull([node]), key=problem.graph.depth)
        return nodes[: self._budget.max_kernels]

    def _bound(self, solved: SolvedHull) -> TailBound:
        """Bound everything outside J, and name what violates."""
        graph: Any = self._problem.graph
        most = self._budget.max_explored
        found = graph.explore(self._problem.engine, solved.dual.alpha, solved.level, most)
        inside = set(solved.problem.nodes)
        loud = {node: score for node, score in found.loud.items() if node not in inside}
        violators = self._unsettled(solved, loud)
        value = found.quiet
        if violators:
            # kappa_ww = 1 outside J: each node is bounded by its own score.
            value = max(value, *loud.values())
        elif loud:
            value = max(value, self._shared_bound(solved, self._outside(solved, list(loud))))
        return TailBound(
            value=value,
            kind="exact",
            reason=(
                "Every kernel outside the hull is bounded by its own score."
                if found.quiet <= solved.level
                else f"The proof may explore {most} kernels at most."
            ),
            n_explored=max(0, found.n_explored - len(inside)),
            violators=violators,
        )
