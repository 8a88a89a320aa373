"""What the searches that look ahead have in common: how a hull grows, shrinks and is certified.

Nodes that violate the optimality conditions bring their hull into J. Those that violate alone but
not together with their ancestors are settled by a better kappa on J and them. Idle nodes leave.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

import numpy as np

from hikernel.engines.protocol import Vertex
from hikernel.reduced import HullMap, ReducedProblem, WarmStart
from hikernel.search.certificate import Certificate
from hikernel.search.problem import (
    NOT_BOUNDED,
    RISK,
    SOLVE_SHARE,
    Budget,
    HullProblem,
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

__all__ = ["HullSearch", "TailBound"]

_SETTLED = 2000
"""Nodes that a shared kappa is tried on at most."""
_BATCH = 10
"""Violators let in per round, at least."""
_SETTLE_ROUNDS = 100
"""Rounds in which a shared kappa may settle what violates alone."""


@dataclass(frozen=True)
class TailBound:
    """What is known of the nodes outside the hull.

    Attributes
    ----------
    value : float
        Bound on Omega*^2 outside (together with the hull where kappa is shared).
    kind : {"exact", "statistical", "none"}
        How all of the graph is covered, if it is.
    reason : str
        Why it is what it is.
    n_explored : int
        Nodes outside the hull that were scored.
    violators : list of nodes
        Explored nodes that violate the optimality conditions, worst first.
    """

    value: float
    kind: str
    reason: str
    n_explored: int
    violators: list[Vertex] = field(default_factory=list)

    @classmethod
    def unknown(cls) -> TailBound:
        """Return the bound of a search that was not asked for one."""
        return cls(np.inf, "none", NOT_BOUNDED, 0)


P = TypeVar("P", bound=HullProblem)


class HullSearch(Generic[P]):
    """A search on its way.

    Parameters
    ----------
    problem : HullProblem
        Rows, graph, target and lambda.
    tol : float
        Relative duality gap to reach.
    budget : Budget
        What it may cost.
    callback : callable, optional
        Called with every :class:`SearchStep`.
    """

    def __init__(
        self, problem: P, tol: float, budget: Budget, callback: StepCallback | None
    ) -> None:
        self._problem = problem
        self._tol = tol
        self._budget = budget
        self._callback = callback
        self._history: list[Certificate] = []

    def _exhausted(self, solved: SolvedHull) -> str:
        """Return why no further node may come in, or nothing if some may."""
        if len(solved.problem.nodes) >= self._budget.max_kernels:
            return too_many_kernels(self._budget.max_kernels)
        return "The search ran out of its time budget." if self._budget.is_spent() else ""

    def _solve(self, reduced: ReducedProblem, warm: WarmStart | None) -> SolvedHull:
        return solve_hull(
            self._problem,
            reduced,
            tol=self._tol,
            solve_tol=SOLVE_SHARE * self._tol,
            warm=warm,
        )

    def _unsettled(self, solved: SolvedHull, found: Mapping[Vertex, float]) -> list[Vertex]:
        """Return the violators that a shared kappa does not settle, worst first."""
        if not found:
            return []
        worst = sorted(found, key=lambda node: -found[node])
        extra = self._outside(solved, worst)
        if len(extra) <= _SETTLED and self._shared_bound(solved, extra) <= solved.level:
            return []
        return worst

    def _outside(self, solved: SolvedHull, nodes: Sequence[Vertex]) -> list[Vertex]:
        """Return what the hull of some nodes adds to J, ancestors first."""
        fresh = self._problem.graph.hull(nodes) - set(solved.problem.nodes)
        return sorted(fresh, key=self._problem.graph.depth)

    def _shared_bound(self, solved: SolvedHull, extra: Sequence[Vertex]) -> float:
        """Return the dual norm bound over J and some explored nodes with the best kappa found."""
        if not extra:
            return solved.inside
        problem = self._problem
        nodes = [*solved.problem.nodes, *extra]
        outside = problem.engine.score_squares(extra, solved.dual.alpha, rounded_up=True)
        squares = np.concatenate([solved.own_squares, outside])
        hull = HullMap(nodes, problem.graph)
        eta = 1e-9 / (hull.size * hull.weights**2)
        eta[: len(solved.problem.nodes)] += solved.solution.eta
        return hull.refine_dual_norm(squares, eta, rounds=_SETTLE_ROUNDS, enough=solved.level).value

    def _grow(self, solved: SolvedHull, violators: Sequence[Vertex]) -> SolvedHull:
        """Let the worst violators in with their hulls, and solve."""
        reduced = solved.problem
        inside = set(reduced.nodes)
        room = self._budget.max_kernels - len(inside)
        batch = max(_BATCH, len(inside) // 4)
        fresh: dict[Vertex, None] = {}
        for node in violators[:batch]:
            new = [v for v in self._outside(solved, [node]) if v not in fresh]
            if len(fresh) + len(new) > room:
                continue
            fresh.update(dict.fromkeys(new))
        if not fresh:
            # Not even one hull fits: fill what room there is from its top.
            fresh.update(dict.fromkeys(self._outside(solved, violators[:1])[:room]))
        reduced.extend(list(fresh))
        return self._solve(reduced, solved.solution.warm_start)

    def _drop_idle(self, solved: SolvedHull, allowed: float) -> SolvedHull:
        return prune(
            self._problem,
            solved,
            allowed=allowed,
            tol=self._tol,
            solve_tol=SOLVE_SHARE * self._tol,
        )

    def _certificate(self, solved: SolvedHull, bound: TailBound, reason: str) -> Certificate:
        norm = max(solved.inside, bound.value)
        return Certificate(
            objective=solved.objective,
            dual_bound=min(solved.dual.value(norm), solved.objective),
            tol=self._tol,
            kind=bound.kind,
            reason=reason or bound.reason,
            n_vertices=self._problem.graph.n_vertices,
            n_explored=len(solved.problem.nodes) + bound.n_explored,
            n_kernels=len(solved.problem.nodes),
            confidence=1.0 - RISK if bound.kind == "statistical" else 1.0,
        )

    def _report(self, solved: SolvedHull, bound: TailBound | None = None) -> None:
        certificate = self._certificate(solved, bound or TailBound.unknown(), "")
        self._history.append(certificate)
        if self._callback is not None:
            nodes = list(solved.problem.nodes)
            self._callback(SearchStep(nodes, [], solved.solution, solved.dual, certificate))

    def _result(self, solved: SolvedHull, bound: TailBound, reason: str) -> SearchResult:
        certificate = self._certificate(solved, bound, reason)
        self._history.append(certificate)
        if certificate.certified:
            # A dual bound stays valid for every primal point: drop what only the proof needed.
            solved = self._drop_idle(solved, certificate.dual_bound / (1.0 - self._tol))
            certificate = replace(certificate, objective=solved.objective)
        return SearchResult.of(solved, certificate, self._history)
