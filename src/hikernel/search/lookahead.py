"""The look-ahead search: find deep terms first, then prove optimality.

There are three sets of nodes: J (in the problem), E (explored: scores known, not in the problem)
and T (the tail). A round solves on J. It then scores, by matrix products, every node of J times any
level of any further variable, and every product of two levels that a bound does not rule out. Nodes
that violate enter J with their hull, however deep they lie. When no node violates, idle nodes leave
J, and the tail is bounded (``tail_proof``). Explored nodes that violate only as long as they pay
for themselves are settled (``growth``) by better shares kappa on J and E.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hikernel.engines.machine import check_time
from hikernel.engines.protocol import Node
from hikernel.graphs import ROOT
from hikernel.reduced import Status
from hikernel.search.certificate import StopReason
from hikernel.search.growth import (
    IDLE_COST,
    HullSearch,
    SearchResult,
    SearchSettings,
    SearchStart,
    StepCallback,
    TailBound,
)
from hikernel.search.objective import GridObjective, SolvedHull
from hikernel.search.tail_proof import TailProof

__all__ = ["lookahead_search"]

_TRIPLE_WORK = 10**10
"""Products of three levels, two of them first levels, are scored in rounds that find no other
violator, if that is at most this much work (``effort``), about a second on two cores."""
_LOOK_PREFIXES = 2048
"""Number of prefixes whose extensions are scored in one matrix product."""
_MOST_VIOLATORS = 5000
"""Largest number of violators kept; more than a shared kappa is tried on (``growth``)."""


def lookahead_search(
    objective: GridObjective,
    lam: float,
    settings: SearchSettings,
    *,
    callback: StepCallback | None = None,
    start: SearchStart | None = None,
) -> SearchResult:
    """Search a grid by looking ahead to deep terms.

    Parameters
    ----------
    objective : GridObjective
        Rows, graph, target and loss.
    lam : float
        lambda.
    settings : SearchSettings
        Tolerance, cost limits, and how the tail is bounded.
    callback : callable, optional
        Called with every :class:`SearchStep`.
    start : SearchStart, optional
        Hull and solution of a neighbouring problem, to start from.
    """
    return _Lookahead(objective, lam, settings, callback).run(start)


class _Lookahead(HullSearch[GridObjective]):
    def __init__(
        self,
        objective: GridObjective,
        lam: float,
        settings: SearchSettings,
        callback: StepCallback | None,
    ) -> None:
        super().__init__(objective, lam, settings, callback)
        self._mode = objective.tail_mode(settings.certify)
        if settings.certify == "auto" and objective.can_list_all:
            self._mode = "exact"  # all nodes are scored, at a cost linear in n
        self._effort = objective.effort(self._mode)
        self._proof_work = settings.max_work
        self._pairs = objective.engine.level_pairs
        self._pair_weights = np.array([objective.graph.weight((pair,)) for pair in self._pairs])
        # Products of two variables at first levels. Scoring their extensions finds products of
        # three variables that violate although none of their parents does.
        firsts = [(m, j) for m, j in self._pairs if objective.graph.depth(m, j) == 1]
        widths = np.array([objective.engine.width((pair,)) for pair in firsts], dtype=float)
        n_columns = 0.5 * float(np.sum(widths) ** 2 - np.sum(widths**2))
        self._level_one_pairs: list[Node] = []
        if self._effort.extensions(n_columns) <= _TRIPLE_WORK:
            pairs = itertools.combinations(firsts, 2)
            self._level_one_pairs = [pair for pair in pairs if pair[0][0] < pair[1][0]]

    def _run(self, start: SearchStart | None) -> SearchResult:
        """Grow J, prune it, and bound the tail; repeat while the bound finds violators."""
        nodes, warm = ([ROOT], None) if start is None else (start.nodes, start.warm)
        solved = self._solve(self._objective.reduced(nodes), warm)
        solved, reason = self._hunt(solved)
        # Idle nodes are dropped once, before the proof. Nodes that the proof adds later stay;
        # otherwise adding and dropping could alternate for ever.
        allowed = solved.objective * (1.0 + IDLE_COST * self._tol)
        solved = self._objective.prune(solved, allowed=allowed, tol=self._tol)
        self._last = solved
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

    def _hunt(self, solved: SolvedHull) -> tuple[SolvedHull, StopReason | Status | None]:
        """Grow J until no scored node violates.

        Returns the last solution, and why the growth ended early, or None if it did not.
        """
        while True:
            if not solved.solution.status.ok:
                return solved, solved.solution.status
            found = self._look(solved, [ROOT, *solved.problem.nodes])
            found |= self._look_at_pairs(solved)
            violators = self._unsettled(solved, found)
            if not violators:
                violators = self._unsettled(solved, self._look(solved, self._level_one_pairs))
            self._report(solved)
            if not violators:
                return solved, None
            reason = self._exhausted(solved)
            if reason:
                return solved, reason
            solved = self._grow(solved, violators)

    def _look_at_pairs(self, solved: SolvedHull) -> dict[Node, float]:
        """Return the violators among all products of two levels that ``PairScreen`` leaves open."""
        if self._objective.graph.max_order == 1:
            return {}
        screen, dual_coef = self._objective.screen, solved.dual.dual_coef
        largest: dict[Node, float] = {}
        prefixes = screen.open_prefixes(dual_coef, solved.threshold)
        found = self._look(solved, prefixes, largest)
        screen.update(dual_coef, prefixes, np.array([largest[prefix] for prefix in prefixes]))
        return found

    def _look(
        self,
        solved: SolvedHull,
        prefixes: Sequence[Node],
        largest: dict[Node, float] | None = None,
    ) -> dict[Node, float]:
        """Return the extensions of the prefixes that violate, with their scores |a_w|^2 / d_w^2.

        ``largest``, if given, is filled with the largest score over the extensions of each prefix.
        """
        limit = self._objective.graph.max_order
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
        """Add the violators among the extensions of some prefixes to ``found``.

        Returns the largest score over the extensions of each prefix.
        """
        check_time()
        objective, graph = self._objective, self._objective.graph
        self._work += self._effort.extensions(len(prefixes))
        squares = objective.engine.extension_squares(prefixes, solved.dual.dual_coef)
        weights = np.array([graph.weight(node) if node else 1.0 for node in prefixes])
        squares /= np.outer(weights, self._pair_weights) ** 2
        above = np.flatnonzero(squares.ravel() > solved.threshold)
        if len(above) > _MOST_VIOLATORS:
            # Far more than enter in one round: the worst of them are enough.
            values = squares.ravel()[above]
            above = above[np.argpartition(-values, _MOST_VIOLATORS)[:_MOST_VIOLATORS]]
        for i, j in zip(*np.unravel_index(above, squares.shape), strict=True):
            found[tuple(sorted((*prefixes[i], self._pairs[j])))] = float(squares[i, j])
        return [float(x) for x in np.fmax.reduce(squares, axis=1, initial=0.0)]

    def _bound(self, solved: SolvedHull, attempt: int) -> TailBound:
        """Bound all nodes outside J; ``attempt`` counts the calls from 1."""
        if self._mode == "none":
            return TailBound.unknown()
        goal = solved.dual.dual_norm_for((1.0 - self._settings.tol) * solved.objective)
        proof = TailProof(
            self._objective,
            replace(solved, threshold=max(goal, solved.inside)),
            mode=self._mode,
            shared_bound=self._shared_bound,
            max_explored=self._settings.max_explored,
            max_work=self._proof_work,
            seed=self._settings.seed,
            attempt=attempt,
        )
        bound = proof.run()
        self._proof_work -= proof.work
        return bound
