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

import numpy as np

from hikernel.engines.protocol import Node
from hikernel.graphs import ROOT
from hikernel.reduced import WarmStart
from hikernel.search.bound import bound_tail
from hikernel.search.growth import HullSearch, TailBound
from hikernel.search.problem import Budget, Certify, SearchProblem
from hikernel.search.screen import PairScreen
from hikernel.search.state import SearchResult, SolvedHull, StepCallback

__all__ = ["lookahead_search"]

_TRIPLE_SCORES = 10**10
"""Products of three, two of them at level 1, are scored once no pair violates, while n times their
number (pairs of rows times it, from Gram matrices) stays below this."""
_LOOK_PREFIXES = 2048
"""Prefixes whose extensions are held at a time."""
_MOST_VIOLATORS = 5000
"""Violators of one product that are remembered; more than are settled together."""


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


class _Lookahead(HullSearch[SearchProblem]):
    def __init__(
        self,
        problem: SearchProblem,
        tol: float,
        budget: Budget,
        certify: Certify,
        callback: StepCallback | None,
    ) -> None:
        super().__init__(problem, tol, budget, callback)
        self._mode = problem.tail_mode(certify)
        self._pairs = problem.engine.level_pairs
        self._pair_weights = np.array([problem.graph.weight((pair,)) for pair in self._pairs])
        work, n_levels = problem.engine.score_work, len(self._pairs)
        self._screen = problem.screen or PairScreen(problem.engine, problem.graph)
        # Pairs at level 1, from which products of three without any strong parent are seen.
        firsts = [pair for pair in self._pairs if pair[1] == 1]
        n_triples = work * n_levels * len(firsts) * (len(firsts) - 1) // 2
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

    def _bound(self, solved: SolvedHull, attempt: int) -> TailBound:
        """Bound everything outside J."""
        if self._mode == "none":
            return TailBound.unknown()
        return bound_tail(
            self._problem, solved, self._budget, self._shared_bound, self._mode, attempt
        )
