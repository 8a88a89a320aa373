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
from numpy.typing import NDArray

from hikernel.engines.machine import check_time
from hikernel.engines.protocol import Node
from hikernel.graphs import ROOT
from hikernel.reduced import Status
from hikernel.search.certificate import StopReason
from hikernel.search.effort import most_columns
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
_LOOK_SCORES = 2**25
"""Largest number of scores of one such product (256 MiB), unless a single prefix has more."""
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
        rule = objective.graph.restriction
        self._pair_variables = np.array([m for m, _ in self._pairs], dtype=np.intp)
        self._level_one_pairs: list[Node] = []
        if self._effort.extensions(n_columns) <= _TRIPLE_WORK:
            pairs = itertools.combinations(firsts, 2)
            self._level_one_pairs = [pair for pair in pairs if pair[0][0] < pair[1][0]]
            if rule is not None:
                inside = rule.permits([(a, b) for (a, _), (b, _) in self._level_one_pairs])
                self._level_one_pairs = list(itertools.compress(self._level_one_pairs, inside))

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
            fresh = self._entering(solved, bound.violators)
            if not fresh:
                reason = self._too_wide
                break
            solved, reason = self._hunt(self._grow(solved, fresh))
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
            fresh = self._entering(solved, violators)
            if not fresh:
                return solved, self._too_wide
            solved = self._grow(solved, fresh)

    def _most_columns(self) -> float:
        """Return the number of feature columns that a hull may have: any for Gram matrices."""
        return min(self._most_solved, self._settings.max_columns)

    @property
    def _most_solved(self) -> float:
        """The number of feature columns that can be solved for in reasonable time."""
        engine = self._objective.engine
        if engine.has_kernels:
            return np.inf
        return most_columns(engine.n_rows, self._settings.max_kernels)

    @property
    def _too_wide(self) -> StopReason:
        """Why a hull may have no more feature columns."""
        by_memory = self._settings.max_columns < self._most_solved
        return StopReason.MAX_MEMORY if by_memory else StopReason.MAX_COLUMNS

    def _look_at_pairs(self, solved: SolvedHull) -> dict[Node, float]:
        """Return the violators among all products of two levels that ``PairScreen`` leaves open."""
        if self._objective.graph.max_order == 1:
            return {}
        screen, dual_coef = self._objective.screen, solved.dual.dual_coef
        largest: dict[Node, float] = {}
        prefixes = screen.open_prefixes(dual_coef, solved.threshold)
        found = self._look(solved, prefixes, largest)
        found_largest = np.array([largest.get(prefix, 0.0) for prefix in prefixes])
        screen.update(dual_coef, prefixes, found_largest)
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
        step = max(1, min(_LOOK_PREFIXES, _LOOK_SCORES // max(1, len(self._pairs))))
        for start in range(0, len(listed), step):
            part, barred = self._extendable(listed[start : start + step])
            rows = self._look_from(solved, part, barred, found)
            if largest is not None:
                largest.update(zip(part, rows, strict=True))
        for node in solved.problem.nodes:
            found.pop(node, None)
        if len(found) > _MOST_VIOLATORS:
            worst = heapq.nlargest(_MOST_VIOLATORS, found, key=found.__getitem__)
            found = {node: found[node] for node in worst}
        return found

    def _extendable(self, prefixes: list[Node]) -> tuple[list[Node], NDArray[np.bool_] | None]:
        """Return the prefixes that some variable may join, and which levels may not join them."""
        rule = self._objective.graph.restriction
        if rule is None:
            return prefixes, None
        joins = rule.partners([[m for m, _ in node] for node in prefixes])
        some = np.asarray(np.any(joins, axis=1))
        barred = ~joins[np.ix_(some, self._pair_variables)]
        return list(itertools.compress(prefixes, some)), barred

    def _look_from(
        self,
        solved: SolvedHull,
        prefixes: Sequence[Node],
        barred: NDArray[np.bool_] | None,
        found: dict[Node, float],
    ) -> list[float]:
        """Add the violators among the extensions of some prefixes to ``found``.

        Returns the largest score over the extensions of each prefix.
        """
        if not prefixes:
            return []
        check_time()
        objective, graph = self._objective, self._objective.graph
        self._work += self._effort.extensions(len(prefixes))
        squares = objective.engine.extension_squares(prefixes, solved.dual.dual_coef)
        weights = np.array([graph.weight(node) if node else 1.0 for node in prefixes])
        squares /= np.outer(weights, self._pair_weights) ** 2
        if barred is not None:
            squares[barred] = np.nan
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
