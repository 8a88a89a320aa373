"""Bound the tail (all nodes outside J) by branch and bound over sets of variables.

The support of a node is its set of variables. For a set s of variables, let t_s be the node with
level 1 in each variable of s. If the levels of each variable form a chain, the descendants of t_s
are exactly the nodes whose support contains s. If they form a tree whose root has several children,
U(t_s) is the sum over all choices of a child in each variable of s, which is at least the largest
(``Grid.any_level``). If

    U(t_s) <= threshold

then all of them are bounded at once, and the set s is closed. Otherwise it stays open. Sets are
visited as in frequent itemset mining: a set is examined only if all its subsets with one variable
less are open. If the set itself stays open, all nodes with exactly that support (all levels) are
scored. A cheaper test comes first: it bounds the whole tail by one sum over all kernels, minus the
scores already known.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from hikernel.engines.machine import check_time
from hikernel.engines.protocol import FloatArray, Node
from hikernel.engines.watch import watcher, watching
from hikernel.errors import MemoryPlanError, OutOfTime
from hikernel.search.certificate import StopReason
from hikernel.search.growth import TailBound
from hikernel.search.objective import RISK, GridObjective, SolvedHull, TailMode

__all__ = ["TailProof"]

Support = tuple[int, ...]

IndexArray = NDArray[np.intp]

_EXPLORE_PREFIXES = 2000
"""Number of prefixes whose extensions are scored together."""
_EXPLORE_SCORES = 2**25
"""Largest number of scores of these prefixes (256 MiB), unless one of them has more."""
_MOST_PAIRS = 10**7
"""Largest number of pairs of open variables that are listed."""


class TailProof:
    """The search for a bound on all nodes outside the hull of a solution.

    Parameters
    ----------
    objective : GridObjective
        Rows, graph, target and loss.
    solved : SolvedHull
        The solution whose optimality is to be proven.
    mode : {"exact", "statistical"}
        Whether descendant sums are computed or estimated from random signs.
    shared_bound : callable
        Returns the dual norm bound over the hull and some explored nodes together.
    max_explored : int
        Largest number of kernels that may be scored.
    max_work : float
        Largest work of the bounds (``effort``).
    seed : int
        Seed of the random signs.
    attempt : int
        Number of this call within the search, from 1. The statistical bounds of all attempts share
        the risk.

    Attributes
    ----------
    work : float
        Work done so far.
    """

    def __init__(
        self,
        objective: GridObjective,
        solved: SolvedHull,
        *,
        mode: TailMode,
        shared_bound: Callable[[SolvedHull, Sequence[Node]], float],
        max_explored: int,
        max_work: float,
        seed: int,
        attempt: int,
    ) -> None:
        self._objective = objective
        self._solved = solved
        self._mode = mode
        self._shared_bound = shared_bound
        self._max_explored = max_explored
        self._max_work = max_work
        self._effort = objective.effort(mode)
        self.work = 0.0
        self._seed = seed
        self._attempt = attempt
        self._hull = set(solved.problem.nodes)
        self._forced = {
            subset
            for node in self._hull
            for size in range(1, len(node) + 1)
            for subset in itertools.combinations([m for m, _ in node], size)
        }
        self._hull_by_prefix: dict[Support, list[Node]] = {}
        for node in self._hull:
            if node:
                self._hull_by_prefix.setdefault(_support(node[:-1]), []).append(node)
        self._graph = objective.graph
        self._variables = [
            m for m in range(self._graph.n_variables) if self._graph.max_level(m) > 0
        ]
        self._pairs = objective.engine.level_pairs
        self._pair_variables = np.array([m for m, _ in self._pairs])
        self._pair_weights = np.array([self._graph.weight((pair,)) for pair in self._pairs])
        self._violators: dict[Node, float] = {}
        self._largest_rest = 0.0  # largest score of an explored node that does not violate
        self._closed = 0.0  # largest bound of a closed set
        self._explored_sum = 0.0
        self._n_explored = 0

    def run(self) -> TailBound:
        """Return the bound; without one if the time of the user, or memory, runs out."""
        try:
            return self._run()
        except OutOfTime:
            return TailBound.unknown(StopReason.of_cut_proof())
        except MemoryPlanError:
            return TailBound.unknown(StopReason.MAX_MEMORY)

    def _run(self) -> TailBound:
        """Visit sets of one, two, three, ... variables until none is open."""
        self._explore([(m,) for m in self._variables])
        if self._objective.can_list_all:
            return self._list_all()
        if self._mode == "exact" and not self._violators and self._afford([()]):
            with self._watched(self._effort.bounds([()])):
                whole = max(0.0, self._whole_tail())
            if whole <= self._solved.threshold:
                self._closed = whole
                return self._settle(StopReason.WHOLE_TAIL)
        open_sets: list[Support] = [(m,) for m in self._variables]
        known: dict[Support, float] = {}  # bounds of the open sets of one variable less
        size = 1
        reason = StopReason.BOUNDED
        limit = self._graph.max_order or self._graph.n_variables
        while open_sets:
            if not self._afford(open_sets):
                return self._give_up(known)
            with self._watched(self._effort.bounds(open_sets)):
                bounds = dict(zip(open_sets, self._bounds(open_sets, size), strict=True))
            opened = [
                s for s, u in bounds.items() if u > self._solved.threshold or s in self._forced
            ]
            if size > 1:
                cost = sum(self._n_nodes(s) for s in opened)
                if self._n_explored + cost > self._max_explored:
                    reason = StopReason.MAX_EXPLORED
                    opened = [s for s in opened if s in self._forced]
                self._explore(opened)
            known = {s: bounds[s] for s in opened}
            self._closed = max([self._closed, *[u for s, u in bounds.items() if s not in known]])
            size += 1
            if size > limit:
                break
            if size == 2 and math.comb(len(opened), 2) > _MOST_PAIRS:
                return self._give_up(known)
            open_sets = self._candidates(opened, size)
        return self._settle(reason)

    @contextmanager
    def _watched(self, cost: float) -> Iterator[None]:
        """Tell who is watching how much of the work that a proof may do is done.

        ``cost`` is the work of what is done within the context, which is counted already.
        """
        watch, before = watcher(), self.work - cost
        if watch is None:
            yield
            return
        most = max(1.0, self._max_work)
        with watching(lambda share: watch(min(1.0, (before + share * cost) / most))):
            yield

    def _afford(self, supports: Sequence[Support]) -> bool:
        """Return whether the work is enough to bound some sets, and count it if so."""
        cost = self._effort.bounds(supports)
        if self.work + cost > self._max_work:
            return False
        self.work += cost
        return True

    def _list_all(self) -> TailBound:
        """Score every node of the grid, which is exact whatever the mode."""
        self._mode = "exact"
        limit = self._graph.max_order or self._graph.n_variables
        supports: list[Support] = [(m,) for m in self._variables]
        for size in range(2, min(limit, len(self._variables)) + 1):
            supports = self._candidates(supports, size)
            self._explore(supports)
        return self._settle(StopReason.OWN_SCORES)

    def _give_up(self, known: Mapping[Support, float]) -> TailBound:
        """Return the bound of the last sets that were bounded, whose descendants are open."""
        if not known:
            return TailBound.unknown(StopReason.MAX_WORK)
        free = [u for s, u in known.items() if s not in self._forced]
        forced = [s for s in known if s in self._forced]
        self._closed = max([self._closed, *free, *self._own_sums(forced)])
        return self._settle(StopReason.MAX_WORK)

    def _own_sums(self, supports: list[Support]) -> list[float]:
        """Return, for each support, the sum of |a_w|^2 / d_w^2 over all nodes that contain it.

        These bounds hold whatever else is in the hull. The tighter descendant sums U(t) do not:
        their weights include ancestors, which must then lie outside the hull.
        """
        if not supports:
            return []
        if self._mode != "exact":
            return [np.inf]
        nodes = [self._top(s) for s in supports]
        sums = self._objective.restricted or self._objective
        return [float(u) for u in sums.own_sums(nodes, self._solved.dual)]

    def _whole_tail(self) -> float:
        """Return a bound on the sum of the scores of all nodes neither in J nor explored.

        Scores are nonnegative, so the sum also bounds each of them.
        """
        total = (self._objective.restricted or self._objective).total_score(self._solved.dual)
        nodes, dual_coef = self._solved.problem.nodes, self._solved.dual.dual_coef
        engine = self._objective.engine
        weights = np.array([self._product_weight(v) for v in nodes])
        # The amount subtracted must not be too large. If u is the computed and r the rounded-up
        # square of a score, 2 u - r is at most its exact value.
        hull = 2.0 * engine.score_squares(nodes, dual_coef) - self._solved.own_squares
        # The scores of nodes with more columns than rows are always rounded up.
        hull[[engine.width(v) > engine.n_rows for v in nodes]] = 0.0
        singles = engine.extension_squares([()], dual_coef)[0] / self._pair_weights**2
        outside = [(pair,) not in self._hull for pair in self._pairs]
        known = float(np.sum(hull / weights**2))
        known += 2.0 * float(np.sum(singles[outside])) - self._explored_sum
        return total - known + 1e-12 * total

    def _candidates(self, open_sets: list[Support], size: int) -> list[Support]:
        """Return the sets of ``size`` variables whose subsets of one variable less are all open.

        Sets of variables that may not interact are left out.
        """
        known = set(open_sets)
        by_prefix: dict[Support, list[int]] = {}
        for s in open_sets:
            by_prefix.setdefault(s[:-1], []).append(s[-1])
        out = []
        for prefix, lasts in by_prefix.items():
            for a, b in itertools.combinations(lasts, 2):
                joined = (*prefix, a, b)
                if size == 2 or all(
                    subset in known for subset in itertools.combinations(joined, size - 1)
                ):
                    out.append(joined)
        rule = self._graph.restriction
        return out if rule is None else list(itertools.compress(out, rule.permits(out)))

    def _bounds(self, supports: list[Support], size: int) -> FloatArray:
        nodes, dual = [self._top(s) for s in supports], self._solved.dual
        # Attempt k may use RISK / 2^k, of which sets of size s use the share 1 / 2^s.
        risk = RISK / 2 ** (size + self._attempt)
        seed = self._seed + self._attempt
        restricted = self._objective.restricted
        if restricted is not None:
            bounds, work = restricted.tail_bounds(
                nodes,
                dual,
                risk=None if self._mode == "exact" else risk,
                seed=seed,
                enough=self._solved.threshold,
                budget=self._max_work - self.work,
                wanted=[s not in self._forced for s in supports],
            )
            self.work += work
            return bounds
        if self._mode == "exact":
            return self._objective.tail_sums(nodes, dual)
        return self._objective.tail_bounds(nodes, dual, risk, seed)

    def _top(self, support: Support) -> Node:
        """Return t_s."""
        return tuple((m, self._graph.any_level(m)) for m in support)

    def _n_nodes(self, support: Support) -> int:
        return math.prod(self._graph.max_level(m) for m in support)

    def _nodes(self, support: Support) -> Iterable[Node]:
        ranges = [range(1, self._graph.max_level(m) + 1) for m in support]
        for levels in itertools.product(*ranges):
            yield tuple(zip(support, levels, strict=True))

    def _explore(self, supports: Sequence[Support]) -> None:
        """Score all nodes with these supports, and record those that violate by their own score.

        A support is a prefix plus a last variable. One matrix product scores all levels of the
        prefix times all levels of all variables; only the columns of the last variables are kept.
        """
        lasts_of: dict[Support, list[int]] = {}
        for support in supports:
            lasts_of.setdefault(support[:-1], []).append(support[-1])
        blocks = [(list(self._nodes(prefix)), lasts) for prefix, lasts in lasts_of.items()]
        most = max(1, min(_EXPLORE_PREFIXES, _EXPLORE_SCORES // max(1, len(self._pairs))))
        for part in _in_parts(blocks, most):
            check_time()
            prefixes = [prefix for nodes, _ in part for prefix in nodes]
            self.work += self._effort.extensions(len(prefixes))
            squares = self._objective.engine.extension_squares(
                prefixes, self._solved.dual.dual_coef, rounded_up=True
            )
            start = 0
            for nodes, lasts in part:
                columns = np.flatnonzero(np.isin(self._pair_variables, lasts))
                self._record(nodes, columns, squares[start : start + len(nodes), columns])
                start += len(nodes)

    def _record(self, prefixes: list[Node], columns: IndexArray, squares: FloatArray) -> None:
        """Record the scores of all prefixes times the (variable, level) pairs in ``columns``."""
        weights = np.array([self._product_weight(prefix) for prefix in prefixes])
        scores = squares / np.outer(weights, self._pair_weights[columns]) ** 2
        row_of = {prefix: i for i, prefix in enumerate(prefixes)}
        column_of = {self._pairs[column]: j for j, column in enumerate(columns)}
        for node in self._hull_by_prefix.get(_support(prefixes[0]), ()):
            if node[-1] in column_of:
                scores[row_of[node[:-1]], column_of[node[-1]]] = np.nan
        above = scores > self._solved.threshold
        self._n_explored += int(np.count_nonzero(~np.isnan(scores)))
        self._explored_sum += float(np.nansum(scores))
        below = np.where(above | np.isnan(scores), 0.0, scores)
        self._largest_rest = max(self._largest_rest, float(np.max(below, initial=0.0)))
        for i, j in zip(*np.nonzero(above), strict=True):
            self._violators[(*prefixes[i], self._pairs[columns[j]])] = float(scores[i, j])

    def _product_weight(self, node: Node) -> float:
        return self._graph.weight(node) if node else 1.0

    def _settle(self, reason: StopReason) -> TailBound:
        """Return the bound, with a shared kappa for the explored nodes that violate."""
        value = max(self._closed, self._largest_rest)
        if not self._violators:
            return TailBound(value, self._mode, reason, self._n_explored)
        worst = sorted(self._violators, key=lambda node: -self._violators[node])
        extra = sorted(self._graph.hull(worst) - self._hull, key=len)
        together = self._shared_bound(self._solved, extra)
        violators = worst if together > self._solved.threshold else []
        return TailBound(max(value, together), self._mode, reason, self._n_explored, violators)


def _support(node: Node) -> Support:
    return tuple(m for m, _ in node)


def _in_parts(
    blocks: list[tuple[list[Node], list[int]]], size: int
) -> Iterator[list[tuple[list[Node], list[int]]]]:
    """Cut a list of (prefixes, lasts) into parts of about ``size`` prefixes."""
    part: list[tuple[list[Node], list[int]]] = []
    total = 0
    for block in blocks:
        part.append(block)
        total += len(block[0])
        if total >= size:
            yield part
            part, total = [], 0
    if part:
        yield part
