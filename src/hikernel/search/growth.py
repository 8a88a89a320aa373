"""How a hull grows, shrinks and is certified: what the searches share.

Nodes that violate the optimality conditions bring their hull into J. Those that violate alone but
not together with their ancestors are settled by a better kappa on J and them. Idle nodes leave.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

import numpy as np

from hikernel.engines.protocol import FloatArray, Vertex
from hikernel.reduced import HullMap, ReducedProblem, ReducedSolution, Status, WarmStart
from hikernel.search.certificate import Certificate, DualPoint, StopReason
from hikernel.search.objective import RISK, Certify, Objective, SolvedHull

__all__ = [
    "HullSearch",
    "SearchResult",
    "SearchSettings",
    "SearchStart",
    "SearchStep",
    "StepCallback",
    "TailBound",
    "prune",
]

_SETTLED = 2000
"""Nodes that a shared kappa is tried on at most."""
_BATCH = 10
"""Violators let in per round, at least."""
_SETTLE_ROUNDS = 100
"""Rounds in which a shared kappa may settle what violates alone."""


@dataclass(frozen=True)
class SearchSettings:
    """How to search, and what it may cost.

    Attributes
    ----------
    search : str
        The rule, where the graph leaves a choice: "lookahead" or "paper".
    tol : float
        Relative duality gap to reach.
    max_kernels : int
        Largest hull that is solved.
    certify : {"auto", "exact", "statistical", "none"}
        How the tail is bounded.
    time_budget : float or None
        Seconds after which a search ends with what it has.
    seed : int
        Of the draws behind statistical bounds.
    max_explored : int
        Kernels that may be scored for the proof.
    """

    search: str = "lookahead"
    tol: float = 1e-3
    max_kernels: int = 600
    certify: Certify = "auto"
    time_budget: float | None = None
    seed: int = 0
    max_explored: int = 10**6


@dataclass(frozen=True)
class SearchStart:
    """Where a neighbouring problem ended: its hull and its solution."""

    nodes: Sequence[Vertex]
    warm: WarmStart


@dataclass(frozen=True)
class SearchStep:
    """One solved hull on the way.

    Attributes
    ----------
    nodes : list of nodes
        The hull J.
    frontier : list of nodes
        Sources of its complement, where the search looks at them.
    solution : ReducedSolution
        The solution on J.
    dual : DualPoint
        The dual point of that solution.
    certificate : Certificate
        What is proven at this step; kind "none" while the necessary condition is violated.
    """

    nodes: list[Vertex]
    frontier: list[Vertex]
    solution: ReducedSolution
    dual: DualPoint
    certificate: Certificate


StepCallback = Callable[[SearchStep], None]


@dataclass(frozen=True)
class SearchResult:
    """The model a search ends with.

    Attributes
    ----------
    nodes : list of nodes
        The selected hull, ancestor-closed: terms without weight are gone.
    problem : ReducedProblem
        The reduced problem on that hull.
    solution : ReducedSolution
        Its solution.
    intercept : ndarray of shape () or (k,)
        b.
    dual_coef : ndarray of shape (n,) or (n, k)
        Dual variables of the solution, beta_w = zeta_w Phi_w' alpha.
    certificate : Certificate
        What is proven about it.
    history : list of Certificate
        The certificate of every step.
    """

    nodes: list[Vertex]
    problem: ReducedProblem
    solution: ReducedSolution
    intercept: FloatArray
    dual_coef: FloatArray
    certificate: Certificate
    history: list[Certificate]

    @classmethod
    def of(
        cls, solved: SolvedHull, certificate: Certificate, history: list[Certificate]
    ) -> SearchResult:
        """Return the result that ends with a solved hull."""
        return cls(
            nodes=list(solved.problem.nodes),
            problem=solved.problem,
            solution=solved.solution,
            intercept=solved.intercept,
            dual_coef=solved.dual.dual_coef,
            certificate=certificate,
            history=history,
        )


@dataclass(frozen=True)
class TailBound:
    """What is known of the nodes outside the hull.

    Attributes
    ----------
    value : float
        Bound on Omega*^2 outside (together with the hull where kappa is shared).
    kind : {"exact", "statistical", "none"}
        How all of the graph is covered, if it is.
    reason : StopReason
        Why it is what it is.
    n_explored : int
        Nodes outside the hull that were scored.
    violators : list of nodes
        Explored nodes that violate the optimality conditions, worst first.
    """

    value: float
    kind: str
    reason: StopReason
    n_explored: int = 0
    violators: list[Vertex] = field(default_factory=list)

    @classmethod
    def unknown(cls, reason: StopReason = StopReason.NOT_BOUNDED) -> TailBound:
        """Return the bound of a search that has none."""
        return cls(np.inf, "none", reason)


def prune(objective: Objective, solved: SolvedHull, *, allowed: float, tol: float) -> SolvedHull:
    """Return the solution on the smallest hull whose objective is at most ``allowed``.

    Nodes are dropped by |beta_D(v)| / |beta|, which falls along the graph, so that what is kept
    is ancestor-closed; the rest is solved again. The cut starts at ``tol`` and is lowered until
    the objective fits.
    """
    reduced, solution = solved.problem, solved.solution
    norms = reduced.hull.descendant_norms(reduced.node_squares(solution.coef))
    largest = float(np.max(norms))
    cutoff = tol
    while cutoff > 1e-12:
        # Without any signal the first node, a source of the graph, is kept alone.
        index = np.flatnonzero(norms > cutoff * largest)
        index = index if len(index) else np.zeros(1, dtype=np.intp)
        if len(index) == len(reduced.nodes):
            break
        trial = objective.solve(
            reduced.restrict([reduced.nodes[i] for i in index]),
            solved.dual.lam,
            tol=tol,
            warm=WarmStart(solution.eta[index], solution.coef[reduced.blocks.columns(index)]),
        )
        if trial.solution.status.ok and trial.objective <= allowed:
            return trial
        cutoff /= 10.0
    return solved


O = TypeVar("O", bound=Objective)  # noqa: E741


class HullSearch(Generic[O]):
    """A search on its way.

    Parameters
    ----------
    objective : Objective
        Rows, graph, target and loss.
    lam : float
        lambda.
    settings : SearchSettings
        How to search, and what it may cost; time counts from now on.
    callback : callable, optional
        Called with every :class:`SearchStep`.
    """

    def __init__(
        self,
        objective: O,
        lam: float,
        settings: SearchSettings,
        callback: StepCallback | None = None,
    ) -> None:
        self._objective = objective
        self._lam = lam
        self._settings = settings
        self._tol = settings.tol
        self._callback = callback
        self._history: list[Certificate] = []
        seconds = settings.time_budget
        self._deadline = np.inf if seconds is None else time.monotonic() + seconds

    def _is_late(self) -> bool:
        """Whether the time budget is spent."""
        return time.monotonic() > self._deadline

    def _exhausted(self, solved: SolvedHull) -> StopReason | None:
        """Return why no further node may come in, or None if some may."""
        if len(solved.problem.nodes) >= self._settings.max_kernels:
            return StopReason.MAX_KERNELS
        return StopReason.SEARCH_TIME if self._is_late() else None

    def _solve(self, reduced: ReducedProblem, warm: WarmStart | None) -> SolvedHull:
        return self._objective.solve(reduced, self._lam, tol=self._tol, warm=warm)

    def _unsettled(self, solved: SolvedHull, found: Mapping[Vertex, float]) -> list[Vertex]:
        """Return the violators that a shared kappa does not settle, worst first."""
        if not found:
            return []
        worst = sorted(found, key=lambda node: -found[node])
        extra = self._outside(solved, worst)
        if len(extra) <= _SETTLED and self._shared_bound(solved, extra) <= solved.threshold:
            return []
        return worst

    def _outside(self, solved: SolvedHull, nodes: Sequence[Vertex]) -> list[Vertex]:
        """Return what the hull of some nodes adds to J, ancestors first."""
        graph = self._objective.graph
        fresh = graph.hull(nodes) - set(solved.problem.nodes)
        return sorted(fresh, key=graph.sort_key)

    def _shared_bound(self, solved: SolvedHull, extra: Sequence[Vertex]) -> float:
        """Return the dual norm bound over J and some explored nodes with the best kappa found."""
        if not extra:
            return solved.inside
        objective = self._objective
        nodes = [*solved.problem.nodes, *extra]
        dual_coef = solved.dual.dual_coef
        outside = objective.engine.score_squares(extra, dual_coef, rounded_up=True)
        squares = np.concatenate([solved.own_squares, outside])
        hull = HullMap(nodes, objective.graph)
        eta = 1e-9 / (hull.size * hull.weights**2)
        eta[: len(solved.problem.nodes)] += solved.solution.eta
        return hull.refine_dual_norm(
            squares, eta, rounds=_SETTLE_ROUNDS, enough=solved.threshold
        ).value

    def _grow(self, solved: SolvedHull, violators: Sequence[Vertex]) -> SolvedHull:
        """Let the worst violators in with their hulls, and solve."""
        reduced = solved.problem
        n_inside = len(reduced.nodes)
        room = self._settings.max_kernels - n_inside
        fresh: dict[Vertex, None] = {}
        for node in violators[: max(_BATCH, n_inside // 4)]:
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
        return prune(self._objective, solved, allowed=allowed, tol=self._tol)

    def _certificate(
        self, solved: SolvedHull, bound: TailBound, reason: StopReason | Status | None
    ) -> Certificate:
        norm = max(solved.inside, bound.value)
        return Certificate(
            objective=solved.objective,
            dual_bound=min(solved.dual.value(norm), solved.objective),
            tol=self._tol,
            kind=bound.kind,
            reason=reason or bound.reason,
            n_vertices=self._objective.graph.n_vertices,
            n_explored=len(solved.problem.nodes) + bound.n_explored,
            n_kernels=len(solved.problem.nodes),
            confidence=1.0 - RISK if bound.kind == "statistical" else 1.0,
        )

    def _report(
        self,
        solved: SolvedHull,
        bound: TailBound | None = None,
        frontier: Sequence[Vertex] = (),
        reason: StopReason | Status | None = None,
    ) -> None:
        """Take note of a step, and call back."""
        unfinished = TailBound.unknown(StopReason.UNFINISHED)
        certificate = self._certificate(solved, bound or unfinished, reason)
        self._history.append(certificate)
        if self._callback is not None:
            nodes = list(solved.problem.nodes)
            step = SearchStep(nodes, list(frontier), solved.solution, solved.dual, certificate)
            self._callback(step)

    def _result(
        self, solved: SolvedHull, bound: TailBound, reason: StopReason | Status | None
    ) -> SearchResult:
        certificate = self._certificate(solved, bound, reason)
        self._history.append(certificate)
        if certificate.certified:
            # A dual bound stays valid for every primal point: drop what only the proof needed.
            solved = self._drop_idle(solved, certificate.dual_bound / (1.0 - self._tol))
            certificate = replace(certificate, objective=solved.objective)
        return SearchResult.of(solved, certificate, self._history)
