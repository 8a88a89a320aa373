"""The directed grid of all products of one-variable levels. It is never enumerated.

Variable m has levels 0..q_m. A vertex picks one level per variable; each of its parents has one of
these levels lowered by one. A vertex is stored as a sparse tuple ((variable, level), ...) of the
levels above 0. With product-form weights d_v = prod_m d_{m, v_m} (and a separate weight for the
root) all sums over descendants factor over the variables.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from hikernel.engines.protocol import FloatArray, GridEngine, Node

__all__ = [
    "ROOT",
    "WEIGHT_RANGE",
    "Grid",
    "Node",
    "check_weight_base",
    "geometric_weights",
    "node_degree",
    "node_name",
    "node_order",
    "term_names",
    "unambiguous",
]

ROOT: Node = ()
"""The node in which every variable is absent."""

WEIGHT_RANGE = (1e-30, 1e30)
"""Range of the weights: products and squares of a few weights must not overflow or underflow."""


def node_order(node: Node) -> int:
    """Return the number of variables that interact in a node.

    >>> node_order(((0, 2), (4, 1)))
    2
    """
    return len(node)


def node_degree(node: Node) -> int:
    """Return the sum of the levels of a node, its depth in the grid.

    >>> node_degree(((0, 2), (4, 1)))
    3
    """
    return sum(level for _, level in node)


def node_name(node: Node, names: Sequence[str]) -> str:
    """Return the readable name of a node.

    >>> node_name(((0, 2), (1, 1)), ["age", "income"])
    'age^2 * income'
    >>> node_name((), ["age", "income"])
    '1'
    """
    if not node:
        return "1"
    return " * ".join(names[m] if level == 1 else f"{names[m]}^{level}" for m, level in node)


def term_names(nodes: Collection[Node], names: Sequence[str]) -> list[str]:
    """Return the names of the terms: all different, and none of them "intercept".

    >>> term_names([((0, 1), (1, 1)), ((2, 1),)], ["b", "c", "b * c"])
    ['b * c', "'b * c'"]
    """
    quoted = unambiguous(names, reserved=("intercept", "1") if () in nodes else ("intercept",))
    return [node_name(node, quoted) for node in nodes]


def unambiguous(names: Sequence[str], reserved: Collection[str] = ("intercept",)) -> list[str]:
    """Return the names of columns, in quotes if they could be mistaken for something else.

    A name is quoted if it is a reserved word, looks like a product (" * ") or like a power of
    another column, or starts with a quote.

    >>> unambiguous(["age", "age^2", "cost^2", "intercept"])
    ['age', "'age^2'", 'cost^2', "'intercept'"]
    """
    known = set(names)

    def doubtful(name: str) -> bool:
        power = re.fullmatch(r"(.*)\^\d+", name, re.DOTALL)
        return (
            name in reserved
            or " * " in f" {name} "
            or name[:1] in ("'", '"')
            or (power is not None and power[1] in known)
        )

    return [repr(name) if doubtful(name) else name for name in names]


def geometric_weights(max_levels: Sequence[int], base: float) -> tuple[tuple[float, ...], ...]:
    """Return the weights of the paper, d_{m,j} = base^j for every variable.

    >>> geometric_weights([2, 1], 2.0)
    ((1.0, 2.0, 4.0), (1.0, 2.0))
    """
    highest = max(max_levels, default=0)
    with np.errstate(over="ignore"):
        powers = tuple(np.power(float(base), np.arange(highest + 1.0)).tolist())
    return tuple(powers[: q + 1] for q in max_levels)


def check_weight_base(weight_base: Any, depth: int) -> float:
    """Return ``weight_base`` as a float; raise unless it is positive and its powers are in range.

    ``depth`` is the largest exponent.
    """
    number = isinstance(weight_base, Real) and not isinstance(weight_base, bool)
    if not (number and 0.0 < float(weight_base) < math.inf):
        raise ValueError(f"weight_base must be a number above 0, got {weight_base!r}.")
    low, high = WEIGHT_RANGE
    reach = depth * abs(math.log10(float(weight_base)))
    if reach > math.log10(high):
        raise ValueError(
            f"With weight_base={weight_base!r} the weights of depth {depth} leave the range from "
            f"{low:g} to {high:g}; bring it nearer to 1, or make the graph less deep."
        )
    return float(weight_base)


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
    """

    searches: ClassVar[tuple[str, ...]] = ("lookahead", "paper")

    level_weights: tuple[tuple[float, ...], ...]
    root_weight: float = 1.0
    max_order: int | None = None

    def __post_init__(self) -> None:
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

    @property
    def n_variables(self) -> int:
        """Number of variables p."""
        return len(self.level_weights)

    @property
    def n_vertices(self) -> int:
        """Number of vertices, a Python int: it exceeds 10^30 for p = 50 and q = 3."""
        if self.max_order is None or self.max_order >= self.n_variables:
            return math.prod(len(weights) for weights in self.level_weights)
        limit = self.max_order
        # Coefficients of prod_m (1 + q_m z) up to z^limit: numbers of vertices by order.
        by_order = [1] + [0] * min(limit, self.n_variables)
        for weights in self.level_weights:
            for k in range(len(by_order) - 1, 0, -1):
                by_order[k] += (len(weights) - 1) * by_order[k - 1]
        return sum(by_order)

    def max_level(self, variable: int) -> int:
        """Return q_m, the highest level of a variable."""
        return len(self.level_weights[variable]) - 1

    def __contains__(self, node: object) -> bool:
        if not isinstance(node, tuple):
            return False
        variables = [m for m, _ in node]
        if self.max_order is not None and len(variables) > self.max_order:
            return False
        return sorted(set(variables)) == variables and all(
            0 <= m < self.n_variables and 1 <= j <= self.max_level(m) for m, j in node
        )

    def weight(self, node: Node) -> float:
        """Return d_v."""
        if not node:
            return self.root_weight
        return math.prod(self.level_weights[m][j] for m, j in node)

    def weights(self, nodes: Sequence[Node]) -> FloatArray:
        """Return d_v for several nodes, shape (len(nodes),)."""
        return np.array([self.weight(node) for node in nodes], dtype=np.float64)

    def parents(self, node: Node) -> list[Node]:
        """Return the nodes with one level lowered by one."""
        return [_with_level(node, i, j - 1) for i, (_, j) in enumerate(node)]

    def children(self, node: Node) -> list[Node]:
        """Return the nodes with one level raised by one."""
        present = dict(node)
        full = self.max_order is not None and len(present) >= self.max_order
        out = []
        for m in range(self.n_variables):
            j = present.get(m, 0)
            if j < self.max_level(m) and (j > 0 or not full):
                out.append(tuple(sorted({**present, m: j + 1}.items())))
        return out

    def ancestors(self, node: Node) -> list[Node]:
        """Return A(v), v included: prod (level + 1) nodes."""
        ranges = [range(j + 1) for _, j in node]
        return [
            tuple((m, j) for (m, _), j in zip(node, levels, strict=True) if j > 0)
            for levels in itertools.product(*ranges)
        ]

    def sort_key(self, node: Node) -> int:
        """Return the sum of the levels, which is the length of every path from the root."""
        return node_degree(node)

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
                if (
                    child not in inside
                    and child not in out
                    and all(parent in inside for parent in self.parents(child))
                ):
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
        """Return the factors of the descendant sums, one (q_m + 1, q_m + 1) array per variable.

        Entry [j, l] is 1 / (d_j + ... + d_l)^2 for l >= j and 0 for l < j, so that

            S_{m,j} = sum_{l >= j} k_{m,l} / (sum_{j <= r <= l} d_{m,r})^2,

        and the product over m of S_{m,t_m} is the sum over the descendants w of t of
        K_w / (sum over u in A(w) and D(t) of d_u)^2, for every t but the root.
        """
        out: list[FloatArray] = []
        for weights in self.level_weights:
            d = np.array(weights)
            sums = np.zeros((len(d), len(d)))
            for j in range(len(d)):
                sums[j, j:] = np.cumsum(d[j:]) ** -2.0
            out.append(sums)
        return out

    def own_scales(self) -> list[FloatArray]:
        """Return the factors for sums of |a_w|^2 / prod_m d_{m,w_m}^2, shapes as ``tail_scales``.

        Entry [j, l] is 1 / d_l^2 for l >= j and 0 for l < j. The sum of a node runs over its
        descendants w, so that of the root runs over the whole grid.
        """
        return [
            np.triu(np.tile(np.array(weights) ** -2.0, (len(weights), 1)))
            for weights in self.level_weights
        ]


def _with_level(node: Node, position: int, level: int) -> Node:
    """Return the node with the level at one position replaced, or dropped when it is 0."""
    variable = node[position][0]
    middle: Node = ((variable, level),) if level > 0 else ()
    return node[:position] + middle + node[position + 1 :]
