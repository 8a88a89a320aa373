"""How a hull grows, shrinks and is certified: the common part of all searches.

J is the hull of the reduced problem. The dual norm is bounded with shares kappa_vw: of the square
of node w, the part that its ancestor v pays for; the parts of a node sum to one. A node violates if
its square exceeds the threshold when it pays for itself (kappa_ww = 1), and then enters J with its
hull. Some of these nodes do not need to: with better shares, paid for by their ancestors too, the
bound holds. They are settled, that is, proven without entering J. Nodes without weight leave J.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

import numpy as np

from hikernel.engines.machine import check_time, time_limit
from hikernel.engines.protocol import FloatArray, Vertex
from hikernel.errors import OutOfTime
from hikernel.graphs import Grid
from hikernel.reduced import ReducedProblem, ReducedSolution, Status, WarmStart
from hikernel.search.certificate import Certificate, DualPoint, StopReason
from hikernel.search.effort import MAX_EXPLORED, PROOF_WORK, solve_work
from hikernel.search.objective import RISK, Certify, Objective, SolvedHull

__all__ = [
    "IDLE_COST",
    "HullSearch",
    "SearchResult",
    "SearchSettings",
    "SearchStart",
    "SearchStep",
    "StepCallback",
    "TailBound",
]

_log = logging.getLogger(__name__)

_SETTLED = 2000
"""Largest number of nodes outside J on which a shared kappa is tried."""
_BATCH = 10
"""Violators that may enter per round; a quarter of the hull size where that is more."""
SEARCH_TOL = 1e-3
"""Relative gap up to which nodes are searched for, at most."""
IDLE_COST = 0.1
"""Share of the tolerance by which the objective may rise where nodes without weight are dropped."""
_SETTLE_ROUNDS = 100
"""Largest number of refinement rounds for a shared kappa."""


@dataclass(frozen=True)
class SearchSettings:
    """How to search, and at what cost.

    Attributes
    ----------
    search : str
        The name of the search, for graphs that support several: "lookahead" or "paper".
    tol : float
        Relative duality gap to prove. The search itself goes to ``SEARCH_TOL`` if that is less:
        precision costs a search little and a proof much.
    max_kernels : int
        Largest hull that is solved. Wide nodes also have to keep to ``effort.most_columns``.
    certify : {"auto", "exact", "statistical", "none"}
        How the tail (the nodes outside the hull) is bounded.
    seed : int
        Seed of the random draws of statistical bounds.
    max_explored : int
        Largest number of kernels that are scored for the proof.
    max_work : float
        Largest work of the proof (``effort``). It is counted, not timed, so that the same data
        give the same model and the same certificate on any machine.
    max_columns : float
        Feature columns of a hull for which there is memory.
    """

    search: str = "lookahead"
    tol: float = 1e-2
    max_kernels: int = 600
    certify: Certify = "auto"
    seed: int = 0
    max_explored: int = MAX_EXPLORED
    max_work: float = PROOF_WORK
    max_columns: float = np.inf


@dataclass(frozen=True)
class SearchStart:
    """Hull and solution of a neighbouring problem, to start from."""

    nodes: Sequence[Vertex]
    warm: WarmStart


@dataclass(frozen=True)
class SearchStep:
    """One step of a search: a solved hull.

    Attributes
    ----------
    nodes : list of nodes
        The hull J.
    frontier : list of nodes
        Sources of the complement of J; empty for searches that do not use them.
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
    """The model that a search returns.

    Attributes
    ----------
    nodes : list of nodes
        The selected hull, ancestor-closed. Nodes without weight are dropped if the objective
        allows it.
    problem : ReducedProblem
        The reduced problem on that hull.
    solution : ReducedSolution
        Its solution.
    intercept : ndarray of shape () or (k,)
        b.
    dual_coef : ndarray of shape (n,) or (n, k)
        Dual variables of the solution, beta_w = zeta_w Phi_w' alpha.
    certificate : Certificate
        What is proven about the model.
    history : list of Certificate
        The certificate of every step.
    work : float
        Work of the search without the proof (``effort``).
    """

    nodes: list[Vertex]
    problem: ReducedProblem
    solution: ReducedSolution
    intercept: FloatArray
    dual_coef: FloatArray
    certificate: Certificate
    history: list[Certificate]
    work: float = 0.0

    @classmethod
    def of(
        cls,
        solved: SolvedHull,
        certificate: Certificate,
        history: list[Certificate],
        work: float = 0.0,
    ) -> SearchResult:
        """Return the result whose model is a solved hull."""
        return cls(
            nodes=list(solved.problem.nodes),
            problem=solved.problem,
            solution=solved.solution,
            intercept=solved.intercept,
            dual_coef=solved.dual.dual_coef,
            certificate=certificate,
            history=history,
            work=work,
        )


@dataclass(frozen=True)
class TailBound:
    """What is known about the nodes outside the hull.

    Attributes
    ----------
    value : float
        Bound on Omega*^2 outside the hull (including the hull if kappa is shared).
    kind : {"exact", "statistical", "none"}
        How the bound covers the whole graph; "none" if it does not.
    reason : StopReason
        Why the bounding ended.
    n_explored : int
        Number of nodes outside the hull that were scored.
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
        """Return the infinite bound, for when the nodes outside were not bounded."""
        return cls(np.inf, "none", reason)


O = TypeVar("O", bound=Objective)  # noqa: E741


class HullSearch(Generic[O]):
    """Base class of the searches: the state of one search and the steps they share.

    Parameters
    ----------
    objective : Objective
        Rows, graph, target and loss.
    lam : float
        lambda.
    settings : SearchSettings
        How to search, and at what cost.
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
        self._tol = min(settings.tol, SEARCH_TOL)
        self._callback = callback
        self._history: list[Certificate] = []
        self._work = 0.0
        self._last: SolvedHull | None = None

    def run(self, start: SearchStart | None) -> SearchResult:
        """Search; if the user wants an end, return the last hull that was solved.

        Raises
        ------
        OutOfTime
            If not even the first hull was solved.
        """
        try:
            return self._run(start)
        except OutOfTime:
            if self._last is None:
                raise
        reason = StopReason.of_cut_search()
        with time_limit(np.inf):
            return self._result(self._last, TailBound.unknown(reason), reason)

    def _run(self, start: SearchStart | None) -> SearchResult:
        raise NotImplementedError

    def _exhausted(self, solved: SolvedHull) -> StopReason | None:
        """Return why no further node may enter the hull, or None if one may."""
        full = len(solved.problem.nodes) >= self._settings.max_kernels
        return StopReason.MAX_KERNELS if full else None

    def _most_columns(self) -> float:
        """Return the number of feature columns that a hull may have; no limit unless overridden."""
        return np.inf

    def _solve(self, reduced: ReducedProblem, warm: WarmStart | None) -> SolvedHull:
        check_time()
        solved = self._objective.solve(reduced, self._lam, tol=self._tol, warm=warm)
        self._work += solve_work(reduced, solved.solution.n_iter)
        self._last = solved
        return solved

    def _unsettled(self, solved: SolvedHull, found: Mapping[Vertex, float]) -> list[Vertex]:
        """Return the violators in ``found``, worst first; none if a shared kappa settles all.

        ``found`` maps nodes to their scores |a_w|^2 / d_w^2.
        """
        if not found:
            return []
        worst = sorted(found, key=lambda node: -found[node])
        extra = self._outside(solved, worst)
        if len(extra) <= _SETTLED and self._shared_bound(solved, extra) <= solved.threshold:
            return []
        return worst

    def _outside(self, solved: SolvedHull, nodes: Sequence[Vertex]) -> list[Vertex]:
        """Return the nodes of the hull of ``nodes`` that are not in J, ancestors first."""
        graph = self._objective.graph
        fresh = graph.hull(nodes) - set(solved.problem.nodes)
        return sorted(fresh, key=graph.sort_key)

    def _shared_bound(self, solved: SolvedHull, extra: Sequence[Vertex]) -> float:
        """Return a bound on Omega*^2 over J and the nodes ``extra``, with the best kappa found."""
        if not extra:
            return solved.inside
        objective = self._objective
        dual_coef = solved.dual.dual_coef
        outside = objective.engine.score_squares(extra, dual_coef, rounded_up=True)
        squares = np.concatenate([solved.own_squares, outside])
        hull = solved.problem.hull.extended(extra, objective.graph)
        eta = 1e-9 / (hull.size * hull.weights**2)
        eta[: len(solved.problem.nodes)] += solved.solution.eta
        return hull.refine_dual_norm(
            squares, eta, rounds=_SETTLE_ROUNDS, enough=solved.threshold
        ).value

    def _entering(self, solved: SolvedHull, violators: Sequence[Vertex]) -> list[Vertex]:
        """Return the worst violators and their hulls, as many as fit; none if too wide."""
        n_inside = len(solved.problem.nodes)
        room, most = self._settings.max_kernels - n_inside, self._most_columns()
        width = solved.problem.n_columns
        fresh: dict[Vertex, None] = {}
        for node in violators[: max(_BATCH, n_inside // 4)]:
            new = [v for v in self._outside(solved, [node]) if v not in fresh]
            if len(fresh) + len(new) > room:
                continue
            width += sum(self._objective.engine.width(v) for v in new)
            if width > most:
                return list(fresh)
            fresh.update(dict.fromkeys(new))
        if not fresh:
            # Not even one hull fits: fill the room that is left with its topmost nodes.
            fresh.update(dict.fromkeys(self._outside(solved, violators[:1])[:room]))
        return list(fresh)

    def _grow(self, solved: SolvedHull, fresh: Sequence[Vertex]) -> SolvedHull:
        """Add nodes to J, and solve."""
        reduced = copy(solved.problem)  # ``solved`` must stay as it is if the time runs out
        reduced.extend(fresh)
        return self._solve(reduced, solved.solution.warm_start)

    def _certificate(
        self, solved: SolvedHull, bound: TailBound, reason: StopReason | Status | None
    ) -> Certificate:
        norm = max(solved.inside, bound.value)
        graph = self._objective.graph
        return Certificate(
            objective=solved.objective,
            dual_bound=min(solved.dual.value(norm), solved.objective),
            tol=self._settings.tol,
            kind=bound.kind,
            reason=reason or bound.reason,
            n_vertices=graph.n_vertices,
            n_explored=len(solved.problem.nodes) + bound.n_explored,
            n_kernels=len(solved.problem.nodes),
            confidence=1.0 - RISK if bound.kind == "statistical" else 1.0,
            restricted=isinstance(graph, Grid) and graph.restriction is not None,
            counted=not isinstance(graph, Grid) or graph.count[1],
        )

    def _report(
        self,
        solved: SolvedHull,
        bound: TailBound | None = None,
        frontier: Sequence[Vertex] = (),
        reason: StopReason | Status | None = None,
    ) -> None:
        """Append the certificate of a step to the history, and call the callback."""
        bound = bound or TailBound.unknown(StopReason.UNFINISHED)
        certificate = self._certificate(solved, bound, reason)
        self._history.append(certificate)
        _log.debug(
            "Step %d at alpha %.4g: %d kernels, objective %.6g, dual bound %.6g.",
            *(len(self._history), self._lam, certificate.n_kernels),
            *(certificate.objective, certificate.dual_bound),
        )
        if self._callback is not None:
            nodes = list(solved.problem.nodes)
            step = SearchStep(nodes, list(frontier), solved.solution, solved.dual, certificate)
            self._callback(step)

    def _result(
        self, solved: SolvedHull, bound: TailBound, reason: StopReason | Status | None
    ) -> SearchResult:
        certificate = self._certificate(solved, bound, reason)
        self._history.append(certificate)
        return self._finished(solved, certificate)

    def _finished(self, solved: SolvedHull, certificate: Certificate) -> SearchResult:
        """Drop the nodes without weight, and return the result."""
        # A dual bound is valid for every primal point: drop the nodes that only the proof needed.
        allowed = solved.objective * (1.0 + IDLE_COST * self._tol)
        if certificate.certified:
            allowed = min(allowed, certificate.dual_bound / (1.0 - self._settings.tol))
        solved = self._objective.prune(solved, allowed=allowed, tol=self._tol)
        certificate = replace(
            certificate,
            objective=solved.objective,
            dual_bound=min(certificate.dual_bound, solved.objective),
        )
        return SearchResult.of(solved, certificate, self._history, self._work)
