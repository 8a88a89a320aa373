"""Graphs of terms: what a vertex is, how they hang together, what they weigh."""

from hikernel.graphs.grid import Grid, geometric_weights
from hikernel.graphs.node import (
    ROOT,
    Node,
    node_degree,
    node_name,
    node_order,
    term_names,
    unambiguous,
)

__all__ = [
    "ROOT",
    "Grid",
    "Node",
    "geometric_weights",
    "node_degree",
    "node_name",
    "node_order",
    "term_names",
    "unambiguous",
]
