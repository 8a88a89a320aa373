"""Graphs of terms: what a vertex is, how they hang together, what they weigh, and their kernels.

``grid`` is the directed grid of all products of one-variable levels, ``dag`` any finite graph,
``kernel_graph`` one with a kernel per node, ``precomputed`` a grid with a Gram matrix per variable
and level, ``substrings`` that of strings, ``chain`` those of point clouds and labelled graphs.
"""

from hikernel.graphs.chain import ChainGraph, pyramid_match, weisfeiler_lehman
from hikernel.graphs.dag import Dag
from hikernel.graphs.grid import Grid, geometric_weights
from hikernel.graphs.kernel_graph import KernelGraph
from hikernel.graphs.node import (
    ROOT,
    Node,
    node_degree,
    node_name,
    node_order,
    term_names,
    unambiguous,
)
from hikernel.graphs.precomputed import PrecomputedGrid
from hikernel.graphs.rows import TrainingRows, take
from hikernel.graphs.substrings import SubstringGraph

__all__ = [
    "ROOT",
    "ChainGraph",
    "Dag",
    "Grid",
    "KernelGraph",
    "Node",
    "PrecomputedGrid",
    "SubstringGraph",
    "TrainingRows",
    "geometric_weights",
    "node_degree",
    "node_name",
    "node_order",
    "pyramid_match",
    "take",
    "term_names",
    "unambiguous",
    "weisfeiler_lehman",
]
