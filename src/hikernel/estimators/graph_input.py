"""What changes in an estimator where ``graph=`` takes the place of columns and bases."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_consistent_length

from hikernel.engines.protocol import FloatArray
from hikernel.estimators.validation import check_target, check_weights
from hikernel.graphs import PrecomputedGrid
from hikernel.search.problem import NO_DRAWS

__all__ = ["as_it_is", "check_graph", "check_graph_data", "refuse_graph"]

_OF_COLUMNS = {
    "basis": "auto",
    "categorical": None,
    "degree": 4,
    "max_order": None,
    "weight_base": 2.0,
    "root_weight": 1.0,
    "search": "lookahead",
}
"""Parameters that speak of the columns of a table, and their defaults."""


def check_graph(graph: Any, parameters: dict[str, Any]) -> None:
    """Raise unless ``graph`` is a graph of kernels and no parameter of columns is set.

    Parameters
    ----------
    graph : Any
        What ``graph=`` was given.
    parameters : dict
        The other parameters of the estimator.
    """
    usable = callable(getattr(graph, "read", None)) and callable(getattr(graph, "fit", None))
    if not usable or isinstance(graph, type):
        got = f"the class {graph.__name__}" if isinstance(graph, type) else type(graph).__name__
        raise ValueError(
            f"graph must be a KernelGraph or another graph of hikernel.graphs, got {got}; "
            "KernelGraph(edges, kernels=...) makes one from edges, a mapping or a networkx graph."
        )
    if isinstance(graph, PrecomputedGrid) and parameters.get("certify") == "statistical":
        raise ValueError(NO_DRAWS)  # here, before a cross-validation has done its work
    for name, default in _OF_COLUMNS.items():
        value = parameters.get(name, default)
        if isinstance(value, np.ndarray) or value != default:
            raise ValueError(
                f"{name}={value!r} speaks of a grid of columns and has no meaning with graph=; "
                "leave it out (weights and depth belong to the graph itself)."
            )


def check_graph_data(
    graph: Any, X: Any, y: Any, sample_weight: Any, *, labels: bool, estimator: Any
) -> tuple[Any, NDArray[Any], FloatArray]:
    """Return the rows as the graph takes them, y and the weights, of one length."""
    name = "hkl_path" if estimator is None else type(estimator).__name__
    if y is None:
        raise ValueError(f"{name} requires y to be passed, but the target y is None.")
    rows = graph.read(X)
    target = check_target(y, labels, estimator)
    check_consistent_length(rows, target)
    if len(target) < 2:
        raise ValueError(f"X has {len(target)} row; a minimum of 2 is required by {name}.")
    return rows, target, check_weights(np.empty((len(target), 1)), sample_weight)


def refuse_graph(what: str) -> NoReturn:
    """Raise for what only a model of columns has."""
    raise ValueError(
        f"{what} speaks of columns, and this model was fitted on a graph of kernels, which has "
        "none; hull_, terms_ and effects(X) describe it by its nodes."
    )


def as_it_is(X: Any) -> Any:
    """Return what a graph reads for itself."""
    return X
