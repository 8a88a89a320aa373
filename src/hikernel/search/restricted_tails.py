"""Descendant sums over a restricted grid: only the variables that may still join take part.

For a node t with the columns s, the sum over its descendants in the restricted grid is

    U(t) = sum_{i,k} alpha_i alpha_k prod_{m in t} S_{m,t_m} sum_{r} prod_{m in r} rho_m,

where r runs over the sets of variables with s + r in the family, and rho_m is S_{m,0} without level
0. These sets are a union of boxes (``graphs/boxes.py``). The sum over a box is one of an ordinary
grid: the variables outside the box keep level 0 only, and required ones have rho_m in place of
S_{m,0}. All terms are nonnegative for the whole sum over i and k, so boxes that hold more than the
family still give an upper bound; where two boxes share a set, its part is subtracted once. Nodes
whose boxes have the same columns are summed together, so that few passes over the rows are needed
where the rules are simple.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from hikernel.engines.protocol import FloatArray, Node
from hikernel.engines.sketch import sketched_bounds
from hikernel.graphs import ROOT
from hikernel.graphs.boxes import Box, Cover, cover
from hikernel.search.certificate import DualPoint
from hikernel.search.effort import GridEffort
from hikernel.search.objective import N_DRAWS, GridObjective

__all__ = ["RestrictedTails"]

_MOST_BOXES = 8
"""Largest number of boxes for one node."""
_MOST_COVERS = 64
"""Largest number of sets of columns in one call for which several boxes are looked for. The others
have one box of all columns that may join them."""
_MOST_REPEATED = 20_000
"""Largest number of terms that are scored for what boxes share; the rest is not subtracted."""
_MOST_ORDERS = 8
"""Largest limit on the order that is kept in sums where the grid itself has none."""
_PROMISING = 1.5
"""Boxes are summed over if a bound is expected to fall below this multiple of what is needed."""
_CHEAP = 1.5
"""Work of the sums over boxes, relative to those over the whole grid, up to which only the former
are computed."""

_FRESH = 2**32
"""Added to the seed where draws have decided which bounds are tightened: these draws must not
judge what they have chosen, or the union bound over the chosen nodes would not hold."""

Evaluate = Callable[[Sequence[Node], Sequence[FloatArray], int | None, float], FloatArray]
"""Returns sums for some nodes, scales and limit on the order. The last argument is the share of the
risk that a statistical bound may use."""


@dataclass
class BoxSum:
    """The nodes whose sums run over the same columns.

    Attributes
    ----------
    columns : tuple of int
        The columns that take part.
    limit : int
        Largest number of variables of a descendant.
    index : list of int
        Positions of the nodes in the list that was asked for.
    nodes : list of Node
        The nodes with the required variables of their boxes.
    """

    columns: tuple[int, ...]
    limit: int
    index: list[int] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)


@dataclass
class Parts:
    """Sums over boxes that together bound those of some nodes.

    Attributes
    ----------
    sums : list of BoxSum
        The sums, one for each set of columns.
    repeated : list of (int, Node)
        Position of a node, and the node with the variables of a set that two of its boxes share.
    """

    sums: list[BoxSum]
    repeated: list[tuple[int, Node]]


class RestrictedTails:
    """Upper bounds on the descendant sums of nodes in a restricted grid.

    Parameters
    ----------
    objective : GridObjective
        Rows, and a grid with a restriction.
    """

    def __init__(self, objective: GridObjective) -> None:
        graph, rule = objective.graph, objective.graph.restriction
        assert rule is not None
        self._objective = objective
        self._graph, self._rule = graph, rule
        self._variables: list[list[int]] = [[] for _ in range(rule.n_columns)]
        for m, column in enumerate(rule.column_of):
            if graph.max_level(m) > 0:
                self._variables[column].append(m)
        self._covers: dict[tuple[int, ...], Cover] = {}

    def tail_bounds(
        self,
        nodes: Sequence[Node],
        dual: DualPoint,
        *,
        risk: float | None = None,
        seed: int = 0,
        enough: float | None = None,
        budget: float = np.inf,
        wanted: Sequence[bool] | None = None,
    ) -> tuple[FloatArray, float]:
        """Return bounds on U(t), and the work beyond that of the sums over the whole grid.

        Parameters
        ----------
        nodes : sequence of Node
            The nodes t.
        dual : DualPoint
            The dual point.
        risk : float or None
            None for exact sums over boxes; otherwise statistical bounds, which hold for all nodes
            at once with probability 1 - risk.
        seed : int
            Seed of statistical bounds.
        enough : float or None
            Only bounds above this are tightened, and only where that may bring them below; all if
            it is None.
        budget : float
            Work that may be spent on tightening (``effort``).
        wanted : sequence of bool, optional
            Which bounds may be tightened; all by default.
        """
        effort = self._objective.effort("exact" if risk is None else "statistical")
        evaluate = self._exact(dual) if risk is None else self._sketched(dual, risk, seed)
        scales = self._graph.tail_scales()
        everything = range(len(nodes))
        parts = self._sums(nodes, scales, everything, refined=False)
        work = self._work(parts, effort) - _plain_work(nodes, effort)
        boxed = work <= min(budget, (_CHEAP - 1.0) * _plain_work(nodes, effort))
        if boxed:
            out = self._total(nodes, parts, scales, evaluate, dual, 0.5)
        else:
            out, work = evaluate(nodes, scales, self._graph.max_order, 0.5), 0.0
        # More boxes, and tighter ones, are for the nodes that this leaves open.
        above = out > (0.0 if enough is None else enough)
        if wanted is not None:
            above &= np.asarray(wanted)
        chosen = [int(i) for i in np.argsort(out, kind="stable") if above[i]]
        if enough is not None:
            gains = self._gains([_support(nodes[i]) for i in chosen], scales, boxed=boxed)
            promising = out[chosen] * gains <= _PROMISING * enough
            chosen = list(itertools.compress(chosen, promising))
        parts = self._sums(nodes, scales, chosen, refined=True)
        more = self._work(parts, effort)
        if not chosen or work + more > budget:
            return out, work
        if risk is not None:
            evaluate = self._sketched(dual, risk, seed + _FRESH)
        total = self._total(nodes, parts, scales, evaluate, dual, 0.5)
        out[chosen] = np.minimum(out[chosen], total[chosen])
        return out, work + more

    def own_sums(self, nodes: Sequence[Node], dual: DualPoint) -> FloatArray:
        """Return bounds on the sums of |a_w|^2 / prod_m d_{m,w_m}^2 over the descendants w."""
        scales = self._graph.own_scales()
        parts = self._sums(nodes, scales, range(len(nodes)), refined=len(nodes) == 1)
        return self._total(nodes, parts, scales, self._exact(dual), dual, 1.0)

    def total_score(self, dual: DualPoint) -> float:
        """Return a bound on the sum over all terms that may enter of |a_w|^2 / prod_m d^2."""
        return float(self.own_sums([ROOT], dual)[0])

    def _exact(self, dual: DualPoint) -> Evaluate:
        engine = self._objective.engine

        def evaluate(
            nodes: Sequence[Node], scales: Sequence[FloatArray], limit: int | None, share: float
        ) -> FloatArray:
            return engine.tail_sums(nodes, dual.dual_coef, scales, limit)

        return evaluate

    def _sketched(self, dual: DualPoint, risk: float, seed: int) -> Evaluate:
        engine = self._objective.engine

        def evaluate(
            nodes: Sequence[Node], scales: Sequence[FloatArray], limit: int | None, share: float
        ) -> FloatArray:
            found = engine.tail_draws(nodes, dual.dual_coef, scales, limit, N_DRAWS, seed)
            parts = engine.tail_exact_parts(nodes, dual.dual_coef, scales, limit)
            return sketched_bounds(found, share * risk, parts)

        return evaluate

    def _sums(
        self,
        nodes: Sequence[Node],
        scales: Sequence[FloatArray],
        index: Sequence[int],
        *,
        refined: bool,
    ) -> Parts:
        """Return sums over boxes that bound those of the nodes, one for each set of columns.

        Unless ``refined``, a node has one box, with all columns that may join it.
        """
        supports = list(dict.fromkeys(_support(nodes[i]) for i in index))
        covers = dict(zip(supports, self._boxes(supports, refined=refined), strict=True))
        found: dict[tuple[tuple[int, ...], int], BoxSum] = {}
        repeated: list[tuple[int, Node]] = []
        for i in index:
            here = covers[_support(nodes[i])]
            for box in here.boxes:
                columns = tuple(sorted({*box.required, *box.free}))
                one = found.setdefault((columns, box.limit), BoxSum(columns, box.limit))
                more = self._with_columns(nodes[i], box.required, scales)
                one.nodes += more
                one.index += [i] * len(more)
            for required in here.repeated:
                repeated += [(i, v) for v in self._with_columns(nodes[i], required, scales)]
        return Parts([one for one in found.values() if one.nodes], repeated)

    def _with_columns(
        self, node: Node, columns: Sequence[int], scales: Sequence[FloatArray]
    ) -> list[Node]:
        """Return a node with one variable of each further column, at rho_m.

        The row of rho_m is the one after those of the scales: see ``_scales``.
        """
        known = {self._rule.column_of[m] for m, _ in node}
        choices = [self._variables[c] for c in columns if c not in known]
        return [
            tuple(sorted([*node, *((m, len(scales[m])) for m in more)]))
            for more in itertools.product(*choices)
        ]

    def _boxes(self, supports: list[tuple[int, ...]], *, refined: bool) -> list[Cover]:
        """Return boxes for the sets of columns that contain the columns of each support."""
        rule = self._rule
        sets = [tuple(sorted(rule.column_of[m] for m in support)) for support in supports]
        joined = rule.column_partners(sets)
        limits = rule.largest_sets(sets)
        if self._graph.max_order is not None:
            limits = np.minimum(limits, self._graph.max_order)
        out = []
        n_covers = 0
        for columns, row, largest in zip(sets, joined, limits, strict=True):
            free = tuple(np.flatnonzero(row).tolist())
            limit = min(int(largest), len(columns) + len(free))
            whole = Cover([Box(columns, free, limit)], [], False)
            if refined and columns not in self._covers and n_covers < _MOST_COVERS:
                n_covers += 1
                self._covers[columns] = cover(rule, columns, self._graph.max_order, _MOST_BOXES)
            out.append(self._covers.get(columns, whole) if refined else whole)
        return out

    def _gains(
        self, supports: list[tuple[int, ...]], scales: Sequence[FloatArray], *, boxed: bool
    ) -> FloatArray:
        """Return by which factors the sums of some nodes are expected to change with more boxes.

        In place of rho_m there is its mean over the rows if all levels have variance one. Without
        ``boxed`` the sums so far are over the whole grid. The factor is 1 where nothing changes.
        """
        sizes = [sum(float(np.sum(scales[m][0, 1:])) for m in some) for some in self._variables]
        limit = self._graph.max_order or len(sizes)
        covers = self._boxes(supports, refined=True)
        before = self._boxes(supports, refined=False)
        out = np.ones(len(supports))
        for i, (first, found) in enumerate(zip(before, covers, strict=True)):
            required = first.boxes[0].required
            others = tuple(c for c in range(len(sizes)) if c not in required)
            whole = first.boxes[0] if boxed else Box(required, others, limit)
            if not boxed or len(found.boxes) > 1:
                out[i] = found.total(sizes) / whole.total(sizes)
        return np.where(out < 1.0, out, np.inf)

    def _work(self, parts: Parts, effort: GridEffort) -> float:
        """Return the work of sums over boxes."""
        total = 0.0
        for one in parts.sums:
            p = sum(len(self._variables[c]) for c in one.columns)
            share = p / max(1, self._graph.n_variables)
            here = replace(
                effort,
                n_variables=p,
                n_columns=int(np.ceil(share * effort.n_columns)),
                n_orders=self._n_orders(one, p),
            )
            total += _plain_work(one.nodes, here)
        return total

    def _n_orders(self, one: BoxSum, n_variables: int) -> int:
        """Return one more than the limit on the order, or 1 for none.

        A limit of many variables brings less than it costs. Without it the sum is larger.
        """
        useful = one.limit <= (self._graph.max_order or _MOST_ORDERS)
        return one.limit + 1 if one.limit < n_variables and useful else 1

    def _total(
        self,
        nodes: Sequence[Node],
        parts: Parts,
        scales: Sequence[FloatArray],
        evaluate: Evaluate,
        dual: DualPoint,
        share: float,
    ) -> FloatArray:
        """Return for each node the total of its sums over boxes."""
        out = np.zeros(len(nodes))
        n_sums = sum(len(one.nodes) for one in parts.sums)
        for one in parts.sums:
            p = sum(len(self._variables[c]) for c in one.columns)
            limit = None if self._n_orders(one, p) == 1 else one.limit
            risk = share * len(one.nodes) / n_sums
            values = evaluate(one.nodes, self._scales(scales, one.columns), limit, risk)
            np.add.at(out, one.index, values)
        return self._less_repeated(out, parts.repeated, scales, dual)

    def _less_repeated(
        self,
        totals: FloatArray,
        repeated: Sequence[tuple[int, Node]],
        scales: Sequence[FloatArray],
        dual: DualPoint,
    ) -> FloatArray:
        """Return the totals without what two boxes share: the terms with the same variables."""
        rows = self._scales(scales, range(self._rule.n_columns))
        index: list[int] = []
        terms: list[Node] = []
        factors: list[float] = []
        for i, node in repeated:
            levels = [np.flatnonzero(rows[m][j]).tolist() for m, j in node]
            if len(terms) + np.prod([len(some) for some in levels]) > _MOST_REPEATED:
                break
            for chosen in itertools.product(*levels):
                index.append(i)
                terms.append(tuple((m, k) for (m, _), k in zip(node, chosen, strict=True)))
                pairs = zip(node, chosen, strict=True)
                factors.append(float(np.prod([rows[m][j, k] for (m, j), k in pairs])))
        if terms:
            engine = self._objective.engine
            squares = engine.score_squares(terms, dual.dual_coef)
            # What is subtracted must not be too large. If u is the computed and r the rounded-up
            # square of a score, 2 u - r is at most its exact value; scores of terms with more
            # columns than rows are always rounded up.
            exact = 2.0 * squares - engine.score_squares(terms, dual.dual_coef, rounded_up=True)
            exact[[engine.width(v) > engine.n_rows for v in terms]] = 0.0
            totals = (1.0 + 1e-12) * totals  # the subtraction itself rounds
            np.subtract.at(totals, index, np.array(factors) * np.maximum(exact, 0.0))
        return np.maximum(totals, 0.0)

    def _scales(self, scales: Sequence[FloatArray], columns: Sequence[int]) -> list[FloatArray]:
        """Return the scales with one row more, rho_m, and only level 0 outside some columns."""
        present = {m for c in columns for m in self._variables[c]}
        out = []
        for m, scale in enumerate(scales):
            rho = scale[:1].copy()
            rho[0, 0] = 0.0
            out.append(np.vstack([scale, rho]) if m in present else scale[:1] - rho)
        return out


def _plain_work(nodes: Sequence[Node], effort: GridEffort) -> float:
    """Return the work of sums over a whole grid."""
    by_size: dict[int, list[tuple[int, ...]]] = {}
    for node in nodes:
        by_size.setdefault(len(node), []).append(_support(node))
    return sum(effort.bounds(supports) for supports in by_size.values())


def _support(node: Node) -> tuple[int, ...]:
    return tuple(m for m, _ in node)
