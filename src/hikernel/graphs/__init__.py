"""Graphs of terms: vertices, edges, weights and kernels.

``interface`` defines what the rest of the package needs from a graph. ``grid`` is the directed grid
of all products of one-variable levels. ``dag`` is any finite graph, and ``kernel_graph`` is such a
graph with a kernel per node. ``precomputed`` is a grid with a Gram matrix per variable and level.
``substrings`` is the graph of substrings. ``chain`` has the graphs for point clouds and labelled
graphs.
"""

from hikernel.graphs.chain import ChainGraph, pyramid_match, weisfeiler_lehman
from hikernel.graphs.dag import Dag
from hikernel.graphs.grid import (
    ROOT,
    Grid,
    Node,
    node_degree,
    node_name,
    node_order,
    term_names,
    unambiguous,
)
from hikernel.graphs.interface import (
    Design,
    Direction,
    ExplicitGraph,
    Exploration,
    GraphSource,
    RicherDesign,
    SearchGraph,
    SupportsAncestors,
)
from hikernel.graphs.items import RowSet, TrainingRows, take
from hikernel.graphs.kernel_graph import KernelGraph
from hikernel.graphs.precomputed import PrecomputedGrid
from hikernel.graphs.substrings import SubstringGraph
from hikernel.graphs.weight_base import geometric_weights

__all__ = [
    "ROOT",
    "ChainGraph",
    "Dag",
    "Design",
    "Direction",
    "ExplicitGraph",
    "Exploration",
    "GraphSource",
    "Grid",
    "KernelGraph",
    "Node",
    "PrecomputedGrid",
    "RicherDesign",
    "RowSet",
    "SearchGraph",
    "SubstringGraph",
    "SupportsAncestors",
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
