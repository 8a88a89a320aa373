"""The product of one tree of levels per variable. It is never enumerated.

Variable m has levels 0..q_m, which form a tree with level 0, the constant, at the root. The tree is
a chain if every level j has the parent j - 1, as the powers of a variable have; smooth functions
and steps of one variable are two branches. A vertex picks one level per variable; each of its
parents has one of these levels replaced by its parent. A vertex is stored as a sparse tuple
((variable, level), ...) of the levels above 0. With product-form weights d_v = prod_m d_{m, v_m}
(and a separate weight for the root) all sums over descendants factor over the variables.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import ClassVar

import numpy as np

from hikernel.engines.protocol import FloatArray, GridEngine, Node
from hikernel.graphs.boxes import n_vertices
from hikernel.graphs.restriction import Restriction
from hikernel.graphs.weight_base import WEIGHT_RANGE

__all__ = [
    "ROOT",
    "Grid",
    "Node",
    "node_degree",
    "node_name",
    "node_order",
    "term_names",
    "unambiguous",
]

ROOT: Node = ()
"""The node in which every variable is absent."""


def node_order(node: Node) -> int:
    """Return the number of variables that interact in a node."""
    return len(node)


def node_degree(node: Node) -> int:
    """Return the sum of the levels of a node, its depth in a grid of chains.

    >>> node_degree(((0, 2), (4, 1)))
    3
    """
    return sum(level for _, level in node)


def node_name(node: Node, names: Sequence[str]) -> str:
    """Return the readable name of a node.

    >>> node_name(((0, 2), (1, 1)), ["age", "income"])
    'age^2 * income'
    """
    if not node:
        return "1"
    return " * ".join(names[m] if level == 1 else f"{names[m]}^{level}" for m, level in node)


def term_names(
    nodes: Collection[Node],
    names: Sequence[str],
    level_name: Callable[[int, int, str], str] | None = None,
) -> list[str]:
    """Return the names of the terms: all different, and none of them "intercept".

    ``level_name(m, level, name)`` names a level of variable m; like a power of it by default.

    >>> term_names([((0, 1), (1, 1)), ((2, 1),)], ["b", "c", "b * c"])
    ['b * c', "'b * c'"]
    """
    quoted = unambiguous(names, reserved=("intercept", "1") if () in nodes else ("intercept",))
    if level_name is None:
        return [node_name(node, quoted) for node in nodes]
    return [
        " * ".join(level_name(m, level, quoted[m]) for m, level in node) or "1" for node in nodes
    ]


def unambiguous(names: Sequence[str], reserved: Collection[str] = ("intercept",)) -> list[str]:
    """Return the names of columns, in quotes if they could be mistaken for something else.

    A name is quoted if it is a reserved word, looks like a product (" * "), a step (" > "), the
    rare categories ("rare ") or a power of another column, starts with a quote, or cannot be seen
    as it is: if it is empty, has spaces at its ends, or characters that cannot be printed.

    >>> unambiguous(["age", "age^2", "cost^2", "intercept"])
    ['age', "'age^2'", 'cost^2', "'intercept'"]
    """
    return list(_unambiguous(tuple(names), tuple(reserved)))


@lru_cache(maxsize=4)  # a sparse table has many names, and every effect asks for its own
def _unambiguous(names: tuple[str, ...], reserved: tuple[str, ...]) -> tuple[str, ...]:
    known = set(names)

    def doubtful(name: str) -> bool:
        power = re.fullmatch(r"(.*)\^\d+", name, re.DOTALL)
        return (
            name in reserved
            or " * " in f" {name} "
            or " > " in name
            or re.match(r"rare(r|\d+)? ", name) is not None
            or name[:1] in ("'", '"')
            or not (name and name.isprintable() and name == name.strip())
            or (power is not None and power[1] in known)
        )

    return tuple(repr(name) if doubtful(name) else name for name in names)


@dataclass(frozen=True)
class Grid:
    """A grid of prod_m (q_m + 1) vertices with product-form weights.

    Parameters
    ----------
    level_weights : tuple of tuple of float
        ``level_weights[m][j]`` is d_{m,j} > 0, with d_{m,0} = 1; its length is q_m + 1.
    root_weight : float
        Weight d of the root. It breaks the product form only at the root, which is in no
        descendant sum of another vertex.
    max_order : int or None
        Largest number of variables that may interact; None for no limit.
    level_parents : tuple of tuple of int, optional
        ``level_parents[m][j - 1]`` is the parent of level j >= 1 of variable m, a smaller level.
        By default every variable has a chain of levels.
    restriction : Restriction or None
        Which variables may interact; None for all.
    """

    searches: ClassVar[tuple[str, ...]] = ("lookahead", "paper")

    level_weights: tuple[tuple[float, ...], ...]
    root_weight: float = 1.0
    max_order: int | None = None
    level_parents: tuple[tuple[int, ...], ...] | None = None
    restriction: Restriction | None = None

    def __post_init__(self) -> None:
        self._check_parents()
        if self.max_order is not None and self.max_order < 1:
            raise ValueError(f"max_order must be at least 1 or None, got {self.max_order!r}.")
        low, high = WEIGHT_RANGE
        if not low <= self.root_weight <= high:
            raise ValueError(
                f"root_weight must lie between {low:g} and {high:g}, got {self.root_weight!r}."
            )
        for m, weights in enumerate(self.level_weights):
            if not weights or weights[0] != 1.0:
                raise ValueError(
                    f"Level 0 of variable {m} must have weight 1, got {weights[:1]!r}."
                )
            if not all(low <= d <= high for d in weights):
                raise ValueError(
                    f"The weights of variable {m} must lie between {low:g} and "
                    f"{high:g}, got {min(weights):g} to {max(weights):g}; lower the degree "
                    "or bring weight_base nearer to 1."
                )

    def _check_parents(self) -> None:
        if self.level_parents is None:
            return
        if [len(up) for up in self.level_parents] != [len(d) - 1 for d in self.level_weights]:
            raise ValueError("level_parents must have one entry per level above 0.")
        for m, parents in enumerate(self.level_parents):
            if not all(0 <= parent < j for j, parent in enumerate(parents, start=1)):
                raise ValueError(
                    f"The parent of a level must be a smaller level; variable {m} has {parents!r}."
                )

    @cached_property
    def _lineages(self) -> tuple[tuple[tuple[int, ...], ...], ...]:
        """For every variable and level j, the levels from the root to j, both included."""
        if self.level_parents is None:
            deepest = max(map(len, self.level_weights), default=0)
            chain = tuple(tuple(range(j + 1)) for j in range(deepest))
            return tuple(chain[: len(weights)] for weights in self.level_weights)
        out = []
        for parents in self.level_parents:
            lineages: list[tuple[int, ...]] = [(0,)]
            for j, parent in enumerate(parents, start=1):
                lineages.append((*lineages[parent], j))
            out.append(tuple(lineages))
        return tuple(out)

    def depth(self, variable: int, level: int) -> int:
        """Return the number of steps from the root of a variable's tree to a level."""
        return len(self._lineages[variable][level]) - 1

    def first_levels(self, variable: int) -> list[int]:
        """Return the levels of a variable whose parent is level 0."""
        return [j for j, up in enumerate(self._lineages[variable]) if len(up) == 2]

    def any_level(self, variable: int) -> int:
        """Return the row of ``tail_scales`` that sums over all levels of a variable above 0.

        It is level 1 itself if all other levels descend from it, as in a chain. Otherwise it is the
        row after those of the levels.
        """
        first = self.first_levels(variable)
        return first[0] if len(first) == 1 else len(self.level_weights[variable])

    def degree(self, node: Node) -> int:
        """Return the sum of the depths of the levels of a node: the length of its ways up."""
        return sum(self.depth(m, j) for m, j in node)

    @property
    def n_variables(self) -> int:
        """Number of variables p."""
        return len(self.level_weights)

    @property
    def n_vertices(self) -> int:
        """Number of vertices, a Python int: it exceeds 10^30 for p = 50 and q = 3."""
        return self.count[0]

    @cached_property
    def count(self) -> tuple[int, bool]:
        """``n_vertices``, and whether it is exact; otherwise it is an upper bound."""
        levels = tuple(self.max_level(m) for m in range(self.n_variables))
        if self.restriction is not None:
            return n_vertices(self.restriction, levels, self.max_order)
        if self.max_order is None or self.max_order >= self.n_variables:
            return math.prod(1 + q for q in levels), True
        # Coefficients of prod_m (1 + q_m z) up to z^max_order: numbers of vertices by order.
        by_order = [1] + [0] * min(self.max_order, self.n_variables)
        for q in levels:
            for k in range(len(by_order) - 1, 0, -1):
                by_order[k] += q * by_order[k - 1]
        return sum(by_order), True

    def max_level(self, variable: int) -> int:
        """Return q_m, the highest level of a variable."""
        return len(self.level_weights[variable]) - 1

    def __contains__(self, node: object) -> bool:
        if not isinstance(node, tuple):
            return False
        variables = [m for m, _ in node]
        if self.max_order is not None and len(variables) > self.max_order:
            return False
        known = sorted(set(variables)) == variables and all(
            0 <= m < self.n_variables and 1 <= j <= self.max_level(m) for m, j in node
        )
        return known and (not self.restriction or bool(self.restriction.permits([variables])[0]))

    def weight(self, node: Node) -> float:
        """Return d_v."""
        if not node:
            return self.root_weight
        return math.prod(self.level_weights[m][j] for m, j in node)

    def weights(self, nodes: Sequence[Node]) -> FloatArray:
        """Return d_v for several nodes, shape (len(nodes),)."""
        return np.array([self.weight(node) for node in nodes], dtype=np.float64)

    def parents(self, node: Node) -> list[Node]:
        """Return the nodes with one level replaced by its parent."""
        lineages = self._lineages
        return [_with_level(node, i, lineages[m][j][-2]) for i, (m, j) in enumerate(node)]

    def children(self, node: Node) -> list[Node]:
        """Return the nodes with one level replaced by one of its children."""
        present, rule = dict(node), self.restriction
        full = self.max_order is not None and len(present) >= self.max_order
        joins = None if rule is None else rule.partners([list(present)])[0]
        out = []
        for m in range(self.n_variables):
            j = present.get(m, 0)
            if j > 0 or not (full or (joins is not None and not joins[m])):
                out += [tuple(sorted({**present, m: child}.items())) for child in self._below[m][j]]
        return out

    @cached_property
    def _below(self) -> list[list[list[int]]]:
        """For every variable and level, its children."""
        out: list[list[list[int]]] = []
        for lineages in self._lineages:
            below: list[list[int]] = [[] for _ in lineages]
            for j, lineage in enumerate(lineages[1:], start=1):
                below[lineage[-2]].append(j)
            out.append(below)
        return out

    def ancestors(self, node: Node) -> list[Node]:
        """Return A(v), v included: prod (depth + 1) nodes."""
        ranges = [self._lineages[m][j] for m, j in node]
        return [
            tuple((m, j) for (m, _), j in zip(node, levels, strict=True) if j > 0)
            for levels in itertools.product(*ranges)
        ]

    def sort_key(self, node: Node) -> int:
        """Return the degree, which is the length of every path from the root."""
        return self.degree(node)

    def hull(self, nodes: Iterable[Node]) -> set[Node]:
        """Return the union of the ancestors of the nodes."""
        out: set[Node] = set()
        for node in sorted(nodes, key=len, reverse=True):
            if node not in out:
                out.update(self.ancestors(node))
        return out

    def is_hull(self, nodes: Iterable[Node]) -> bool:
        """Return whether a set contains the parents of all its members."""
        members = set(nodes)
        return all(parent in members for node in members for parent in self.parents(node))

    def extreme_points(self, nodes: Iterable[Node]) -> set[Node]:
        """Return the smallest set with the same hull: the nodes of the hull with no child in it."""
        hull = self.hull(nodes)
        inner = {parent for node in hull for parent in self.parents(node)}
        return hull - inner

    def sources_of_complement(self, hull: Iterable[Node]) -> list[Node]:
        """Return the nodes outside an ancestor-closed set whose parents all lie inside.

        For the empty set this is the root. The order follows that of ``hull``, so it is
        deterministic for a list.
        """
        inside = dict.fromkeys(hull)
        if not inside:
            return [ROOT]
        out: dict[Node, None] = {}
        for node in inside:
            for child in self.children(node):
                known = child in inside or child in out
                if not known and all(parent in inside for parent in self.parents(child)):
                    out[child] = None
        return list(out)

    def strongest(self, engine: GridEngine, dual_coef: FloatArray) -> Node | None:
        """Return the one-variable node with the largest |a_w| / (sum of d over its ancestors).

        None if no variable has a level above 0.
        """
        pairs = engine.level_pairs
        if not pairs:
            return None
        squares = engine.extension_squares([ROOT], dual_coef)[0]
        totals = np.array([np.sum(self.weights(self.ancestors((pair,)))) for pair in pairs])
        return (pairs[int(np.argmax(squares / totals**2))],)

    def n_scored(self, engine: GridEngine) -> int:
        """Return the number of (variable, level) pairs: a prefix is extended by all at once."""
        return len(engine.level_pairs)

    def tail_scales(self) -> list[FloatArray]:
        """Return the factors of the descendant sums, an array of q_m + 1 columns per variable.

        Entry [j, l] is 1 / (sum of d on the way from j to l)^2 if l is j or descends from it, and
        otherwise 0, so that

            S_{m,j} = sum_{l in D(j)} k_{m,l} / (sum_{j <= r <= l} d_{m,r})^2,

        and the product over m of S_{m,t_m} is the sum over the descendants w of t of
        K_w / (sum over u in A(w) and D(t) of d_u)^2, for every t but the root. A variable whose
        root has several children has one more row, the sum of their rows: see ``any_level``.
        """
        return self._scales(own=False)

    def own_scales(self) -> list[FloatArray]:
        """Return the factors for sums of |a_w|^2 / prod_m d_{m,w_m}^2, shapes as ``tail_scales``.

        Entry [j, l] is 1 / d_l^2 if l is j or descends from it, and otherwise 0. The sum of a node
        runs over its descendants w, so that of the root runs over the whole grid.
        """
        return self._scales(own=True)

    def _scales(self, *, own: bool) -> list[FloatArray]:
        out: list[FloatArray] = []
        for m, weights in enumerate(self.level_weights):
            scales = np.zeros((len(weights), len(weights)))
            for last, lineage in enumerate(self._lineages[m]):
                total = 0.0
                for j in reversed(lineage):
                    total = weights[last] if own else total + weights[j]
                    scales[j, last] = total**-2.0
            if self.any_level(m) == len(weights):
                scales = np.vstack([scales, np.sum(scales[self.first_levels(m)], axis=0)])
            out.append(scales)
        return out


def _with_level(node: Node, position: int, level: int) -> Node:
    """Return the node with the level at one position replaced, or dropped when it is 0."""
    variable = node[position][0]
    middle: Node = ((variable, level),) if level > 0 else ()
    return node[:position] + middle + node[position + 1 :]
