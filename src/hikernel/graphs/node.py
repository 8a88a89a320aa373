"""Nodes of a grid as sparse tuples ((variable, level), ...), and what can be said of one alone."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from hikernel.engines.protocol import Node

__all__ = ["ROOT", "Node", "node_degree", "node_name", "node_order", "term_names", "unambiguous"]

ROOT: Node = ()
"""The node in which every variable is absent."""


def node_order(node: Node) -> int:
    """Return how many variables interact in a node.

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
    """Return a node in words.

    >>> node_name(((0, 2), (1, 1)), ["age", "income"])
    'age^2 * income'
    >>> node_name((), ["age", "income"])
    '1'
    """
    if not node:
        return "1"
    return " * ".join(names[m] if level == 1 else f"{names[m]}^{level}" for m, level in node)


def term_names(nodes: Collection[Node], names: Sequence[str]) -> list[str]:
    """Return the terms in words, a different one for every node and none of them "intercept".

    >>> term_names([((0, 1), (1, 1)), ((2, 1),)], ["b", "c", "b * c"])
    ['b * c', "'b * c'"]
    """
    quoted = unambiguous(names, reserved=("intercept", "1") if () in nodes else ("intercept",))
    return [node_name(node, quoted) for node in nodes]


def unambiguous(names: Sequence[str], reserved: Collection[str] = ("intercept",)) -> list[str]:
    """Return the names of columns, in quotes where they may be taken for something else.

    That is: a reserved word, a product (" * "), a power of another column, or quotes.

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
