"""The parameter ``graph``: a graph of kernels in place of the columns of a table."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from hikernel.estimators.parameters import ModelParameters
from hikernel.graphs import GraphSource

__all__ = ["check_graph"]


def check_graph(graph: Any, chosen: dict[str, Any]) -> GraphSource:
    """Return ``graph``; raise if it is not a graph, or if a parameter of columns is not default."""
    usable = callable(getattr(graph, "read", None)) and callable(getattr(graph, "fit", None))
    if not usable or isinstance(graph, type):
        got = f"the class {graph.__name__}" if isinstance(graph, type) else type(graph).__name__
        raise ValueError(
            f"graph must be a KernelGraph or another graph of hikernel.graphs, got {got}; "
            "KernelGraph(edges, kernels=...) makes one from edges, a mapping or a networkx graph."
        )
    defaults = {field.name: field.default for field in dataclasses.fields(ModelParameters)}
    for name, value in chosen.items():
        if isinstance(value, np.ndarray) or value != defaults[name]:
            raise ValueError(
                f"{name}={value!r} applies to a grid of columns and has no meaning with graph=; "
                "leave it out (weights and depth belong to the graph itself)."
            )
    source: GraphSource = graph
    return source
