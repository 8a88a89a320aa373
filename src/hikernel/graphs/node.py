"""Nodes of a grid as sparse tuples ((variable, level), ...), and what can be said of one alone."""

from __future__ import annotations

from collections.abc import Sequence

from hikernel.engines.protocol import Node

__all__ = ["ROOT", "Node", "node_degree", "node_name", "node_order"]

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
