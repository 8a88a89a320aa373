"""The look-ahead search: find deep terms first, then prove without adding to the model.

Three sets: J (in the problem), E (explored: scores known, not in the problem), T (the tail). A
round solves on J and scores, by matrix products, all products of a node around J with any level
of any further variable; nodes that violate bring their hull into J, however deep they lie. When
none is left, idle nodes leave J, and the tail is bounded (``bound``). Explored nodes that
violate alone but not together with their ancestors are settled by a better kappa on J and E.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hikernel.engines.protocol import Node
from hikernel.graphs import ROOT, node_degree
from hikernel.reduced import HullMap, ReducedProblem, WarmStart
from hikernel.search.bound import TailBound, bound_tail
from hikernel.search.certificate import Certificate
from hikernel.search.problem import (
    RISK,
    SOLVE_SHARE,
    Budget,
    Certify,
    SearchProblem,
    too_many_kernels,
)
from hikernel.search.prune import prune
from hikernel.search.screen import PairScreen
from hikernel.search.state import (
    SearchResult,
    SearchStep,
    SolvedHull,
    StepCallback,
    score_squares,
    solve_hull,
)

__all__ = ["lookahead_search"]

_TRIPLE_SCORES = 10**10
"""Products of three, two of them at level 1, are scored once no pair violates, while n times their
number stays below this."""
_LOOK_PREFIXES = 2048
"""Prefixes whose extensions are held at a time."""
_MOST_VIOLATORS = 5000
"""Violators of one product that are remembered; more than are settled together."""
_SETTLED = 2000
"""Nodes that a shared kappa is tried on at most."""
_BATCH = 10
"""Violators let in per round, at least."""
_SETTLE_ROUNDS = 100
"""Rounds in which a shared kappa may settle what violates alone."""


def lookahead_search(
    problem: SearchProblem,
    *,
    tol: float,
    budget: Budget,
    certify: Certify = "auto",
    callback: StepCallback | None = None,
    start: tuple[Sequence[Node], WarmStart] | None = None,
) -> SearchResult:
    """Search the graph, looking ahead.

    Parameters
    ----------
    problem : SearchProblem
        Rows, graph, target and lambda.
    tol : float
        Relative duality gap to reach.
    budget : Budget
        What it may cost.
    certify : {"auto", "exact", "statistical", "none"}
        How the tail is bounded.
    callback : callable, optional
        Called with every :class:`SearchStep`.
    start : tuple of (nodes, WarmStart), optional
        Hull and solution of a neighbouring problem.
    """
    return _Lookahead(problem, tol, budget, certify, callback).run(start)


class _Lookahead:
    def __init__(
        self,
        problem: SearchProblem,
        tol: float,
        budget: Budget,
        certify: Certify,
        callback: StepCallback | None,
    ) -> None:
        self._problem = problem
        self._tol = tol
        self._budget = budget
        self._mode = problem.tail_mode(certify)
        self._callback = callback
        self._history: list[Certificate] = []
        self._pairs = problem.engine.level_pairs
        self._pair_weights = np.array([problem.graph.weight((pair,)) for pair in self._pairs])
        n, n_levels = problem.engine.n_rows, len(self._pairs)
        self._screen = problem.screen or PairScreen(problem.engine, problem.graph)
        # Pairs at level 1, from which products of three without any strong parent are seen.
        firsts = [pair for pair in self._pairs if pair[1] == 1]
        n_triples = n * n_levels * len(firsts) * (len(firsts) - 1) // 2
        self._level_one_pairs: list[Node] = []
        if n_triples <= _TRIPLE_SCORES:
            self._level_one_pairs = list(itertools.combinations(firsts, 2))

    def run(self, start: tuple[Sequence[Node], WarmStart] | None) -> SearchResult:
        """Hunt, prune, prove; begin again where the proof finds violators."""
        problem = self._problem
        nodes, warm = ([ROOT], None) if start is None else (list(start[0]), start[1])
        reduced = problem.reduced(nodes)
        solved = self._solve(reduced, warm)
        solved, reason = self._hunt(solved)
        # Idle nodes leave once, before the proof: what the proof lets in afterwards stays, or the
        # two would take turns for ever.
        solved = self._drop_idle(solved, solved.objective * (1.0 + 0.1 * self._tol))
        attempt = 1
        bound = self._bound(solved, attempt)
        while bound.violators and not reason:
            reason = self._exhausted(solved)
            if reason:
                break
            solved, reason = self._hunt(self._grow(solved, bound.violators))
            attempt += 1
            bound = self._bound(solved, attempt)
        return self._result(solved, bound, reason)

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

    def _hunt(self, solved: SolvedHull) -> tuple[SolvedHull, str]:
        """Grow J until nothing that is scored violates; return why it ended early, if it did."""
        while True:
            if not solved.solution.status.ok:
                return solved, solved.solution.status.sentence
            found = self._look(solved, [ROOT, *solved.problem.nodes])
            found |= self._look_at_pairs(solved)
            violators = self._unsettled(solved, found)
            if not violators:
                violators = self._unsettled(solved, self._look(solved, self._level_one_pairs))
            self._report(solved)
            if not violators:
                return solved, ""
            reason = self._exhausted(solved)
            if reason:
                return solved, reason
            solved = self._grow(solved, violators)

    def _look_at_pairs(self, solved: SolvedHull) -> dict[Node, float]:
        """Return the violators among all products of two levels, where bounds leave any."""
        if self._problem.graph.max_order == 1:
            return {}
        alpha = solved.dual.alpha
        largest: dict[Node, float] = {}
        prefixes = self._screen.open_prefixes(alpha, solved.level)
        found = self._look(solved, prefixes, largest)
        self._screen.update(alpha, prefixes, np.array([largest[prefix] for prefix in prefixes]))
        return found

    def _look(
        self,
        solved: SolvedHull,
        prefixes: Sequence[Node],
        largest: dict[Node, float] | None = None,
    ) -> dict[Node, float]:
        """Return the extensions of prefixes whose own score violates, with |a_w|^2 / d_w^2.

        ``largest`` is filled with the largest score over the extensions of each prefix.
        """
        limit = self._problem.graph.max_order
        listed = [node for node in prefixes if limit is None or len(node) < limit]
        found: dict[Node, float] = {}
        for start in range(0, len(listed), _LOOK_PREFIXES):
            part = listed[start : start + _LOOK_PREFIXES]
            rows = self._look_from(solved, part, found)
            if largest is not None:
                largest.update(zip(part, rows, strict=True))
        for node in solved.problem.nodes:
            found.pop(node, None)
        if len(found) > _MOST_VIOLATORS:
            worst = heapq.nlargest(_MOST_VIOLATORS, found, key=found.__getitem__)
            found = {node: found[node] for node in worst}
        return found

    def _look_from(
        self, solved: SolvedHull, prefixes: Sequence[Node], found: dict[Node, float]
    ) -> list[float]:
        """Add the violators among the extensions of some prefixes; return each one's largest."""
        graph = self._problem.graph
        squares = self._problem.engine.extension_squares(prefixes, solved.dual.alpha)
        weights = np.array([graph.weight(node) if node else 1.0 for node in prefixes])
        squares /= np.outer(weights, self._pair_weights) ** 2
        loud = np.flatnonzero(squares.ravel() > solved.level)
        if len(loud) > _MOST_VIOLATORS:
            # Far more than a round lets in: the worst of them are enough.
            values = squares.ravel()[loud]
            loud = loud[np.argpartition(-values, _MOST_VIOLATORS)[:_MOST_VIOLATORS]]
        for i, j in zip(*np.unravel_index(loud, squares.shape), strict=True):
            found[tuple(sorted((*prefixes[i], self._pairs[j])))] = float(squares[i, j])
        return [float(x) for x in np.fmax.reduce(squares, axis=1, initial=0.0)]

    def _unsettled(self, solved: SolvedHull, found: dict[Node, float]) -> list[Node]:
        """Return the violators that a shared kappa does not settle, worst first."""
        if not found:
            return []
        worst = sorted(found, key=lambda node: -found[node])
        hull = solved.problem.nodes
        inside = set(hull)
        extra = sorted(self._problem.graph.hull(worst) - inside, key=node_degree)
        if len(extra) <= _SETTLED:
            bound = self._shared_bound(solved, extra)
            if bound <= solved.level:
                return []
        return worst

    def _shared_bound(self, solved: SolvedHull, extra: Sequence[Node]) -> float:
        """Return the dual norm bound over J and some explored nodes with the best kappa found."""
        if not extra:
            return solved.inside
        problem = self._problem
        nodes = [*solved.problem.nodes, *extra]
        squares = np.concatenate(
            [
                solved.own_squares,
                score_squares(problem, extra, solved.dual.alpha, rounded_up=True),
            ]
        )
        hull = HullMap(nodes, problem.graph)
        eta = 1e-9 / (hull.size * hull.weights**2)
        eta[: len(solved.problem.nodes)] += solved.solution.eta
        return hull.refine_dual_norm(squares, eta, rounds=_SETTLE_ROUNDS, enough=solved.level).value

    def _grow(self, solved: SolvedHull, violators: Sequence[Node]) -> SolvedHull:
        """Let the worst violators in with their hulls, and solve."""
        reduced = solved.problem
        inside = set(reduced.nodes)
        room = self._budget.max_kernels - len(inside)
        batch = max(_BATCH, len(inside) // 4)
        fresh: dict[Node, None] = {}
        for node in violators[:batch]:
            wanted = [v for v in self._problem.graph.hull([node]) if v not in inside]
            new = [v for v in wanted if v not in fresh]
            if len(fresh) + len(new) > room:
                continue
            fresh.update(dict.fromkeys(sorted(new, key=node_degree)))
        if not fresh:
            # Not even one hull fits: fill what room there is from its top.
            top = sorted(self._problem.graph.hull(violators[:1]) - inside, key=node_degree)
            fresh.update(dict.fromkeys(top[:room]))
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

    def _bound(self, solved: SolvedHull, attempt: int) -> TailBound:
        """Bound everything outside J."""
        if self._mode == "none":
            return TailBound.unknown()
        return bound_tail(
            self._problem, solved, self._budget, self._shared_bound, self._mode, attempt
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

    def _report(self, solved: SolvedHull) -> None:
        certificate = self._certificate(solved, TailBound.unknown(), "")
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
