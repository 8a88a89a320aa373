"""The conditions for a fitted model.

A grid is too large to consider all its nodes. Considered are the hull, all sources of its
complement and, on request, all terms up to an order or a degree. For a general graph all nodes
are considered. The protocol ``FittedTerms`` lists what is needed of an estimator.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from hikernel.checks import check_integer, check_optional_integer
from hikernel.consistency.plugin import estimate_conditions
from hikernel.consistency.report import ConsistencyReport
from hikernel.engines.protocol import FloatArray, Node, Vertex
from hikernel.graphs import Dag, Design, Grid, node_order
from hikernel.losses import Loss, SquaredError
from hikernel.selection import TermModel

__all__ = ["FittedTerms", "diagnose"]


class FittedTerms(Protocol):
    """What ``diagnose`` needs of a fitted estimator; the HKL regressors provide it."""

    loss_: Loss
    refit_: str | None
    _model: TermModel
    _design: Design


def diagnose(
    model: FittedTerms,
    X: Any,
    *,
    sample_weight: ArrayLike | None = None,
    max_order: int | None = None,
    max_degree: int | None = None,
    max_nodes: int = 2000,
    tol: float = 1e-9,
) -> ConsistencyReport:
    """Estimate whether the hull of a fitted model would be recovered if the model were the truth.

    This is the plug-in estimate of :func:`estimate_conditions`. It takes the covariances of the
    terms over the rows of X and the coefficients of the model (of its refit, if it has one) as the
    true ones.

    On a grid, the terms considered are the hull, all sources of its complement (the terms that
    could enter next) and, with ``max_order`` or ``max_degree``, all terms up to these limits. The
    necessary condition involves only the sources, so its value is that of the whole graph. The
    dual norm over a part of the graph is at most that over the whole graph. Above 1 it shows that
    the hull is not recovered. Below 1 it shows only that none of the terms considered prevents
    recovery. For a ``KernelGraph`` all nodes are considered; it must be given by features.

    Parameters
    ----------
    model : HKLRegressor or HKLRegressorCV
        Fitted with the squared error. ``refit="ridge"`` is recommended: without a refit the
        penalty shrinks the coefficients, and not all in the same proportion.
        ``refit="variables"`` raises an error, because it adds terms that no penalty selected.
    X : array-like or data frame of shape (n_samples, n_features)
        Rows to estimate the covariances from, usually the training data.
    sample_weight : array-like of shape (n_samples,), optional
        Nonnegative weights of the rows.
    max_order : int, optional
        Consider all terms of at most this many variables. No limit if only ``max_degree`` is
        given.
    max_degree : int, optional
        Consider all terms whose levels add up to at most this. No limit if only ``max_order`` is
        given.
    max_nodes : int, default=2000
        Maximum number of terms considered; with more, an error is raised. The covariance of all
        of them is held in memory.
    tol : float
        Relative precision of the dual norm.

    Returns
    -------
    ConsistencyReport
        ``n_nodes`` is the number of terms considered, ``n_graph`` that in the whole graph.
        ``explain()`` states the conclusion, with terms named after the columns of X.

    Examples
    --------
    >>> import numpy as np
    >>> from hikernel import HKLRegressor
    >>> from hikernel.consistency import diagnose
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(200, 6))
    >>> y = X[:, 0] + 2 * X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(200)
    >>> model = HKLRegressor(alpha=0.003, refit="ridge").fit(X, y)
    >>> report = diagnose(model, X, max_order=2, max_degree=3)
    >>> report.verdict, report.n_hull, report.n_nodes, report.n_graph
    ('recovered', 5, 64, 15625)
    """
    check_is_fitted(model)
    _check_model(model)
    design, graph = model._design, model._design.graph
    check_optional_integer("max_order", max_order, 1, "the sources alone")
    check_optional_integer("max_degree", max_degree, 1, "the sources alone")
    check_integer("max_nodes", max_nodes, 1)
    blocks = _coefficients(model._model)
    if isinstance(graph, Grid):
        nodes = _terms_to_look_at(graph, list(blocks), max_order, max_degree, max_nodes)
    elif isinstance(graph, Dag):
        nodes = _all_nodes(graph, max_order, max_degree, max_nodes)
    else:
        raise ValueError(
            "diagnose works on grids of one-variable bases and on KernelGraph with features; for "
            "another graph pass the features of its nodes to "
            "hikernel.consistency.estimate_conditions."
        )
    features = design.features(nodes, design.read(X))
    report = estimate_conditions(graph, features, blocks, sample_weight=sample_weight, tol=tol)
    words = dict(zip(nodes, design.terms(nodes)["term"], strict=True))
    return replace(report, n_graph=graph.n_vertices, name=words.__getitem__)


def _check_model(model: FittedTerms) -> None:
    """Raise ValueError for a model that the theory does not cover."""
    if not isinstance(model.loss_, SquaredError):
        raise ValueError(
            "The conditions are known for the squared error only, and this model was fitted with "
            f"loss={model.loss_.name!r}."
        )
    if model._model.coef.ndim > 1:
        raise ValueError(
            f"The conditions are known for one output only, and this model has "
            f"{model._model.coef.shape[1]}."
        )
    if model.refit_ == "variables":
        raise ValueError(
            'This model was refitted with refit="variables", which has terms that no penalty '
            'selected; fit HKLRegressor with the same alpha and refit="ridge", and diagnose that.'
        )


def _coefficients(model: TermModel) -> dict[Vertex, FloatArray]:
    """Return the coefficients by node, for the terms with a nonzero coefficient."""
    kept = model.kept()
    found = dict(zip(kept.nodes, kept.blocks, strict=True))
    if not found:
        raise ValueError(
            "No term of the model has a coefficient, so that there is nothing to be recovered; "
            "lower alpha."
        )
    return found


def _all_nodes(
    graph: Dag, max_order: int | None, max_degree: int | None, max_nodes: int
) -> list[Vertex]:
    """Return all nodes of a general graph; raise where a limit is given or exceeded."""
    if max_order is not None or max_degree is not None:
        raise ValueError(
            "max_order and max_degree apply to a grid of columns only; leave them out, all nodes "
            "of a general graph are looked at."
        )
    if graph.n_vertices > max_nodes:
        raise ValueError(
            f"The graph has {graph.n_vertices} nodes, more than max_nodes={max_nodes}; raise it."
        )
    return graph.nodes


def _terms_to_look_at(
    graph: Grid,
    active: Sequence[Node],
    max_order: int | None,
    max_degree: int | None,
    max_nodes: int,
) -> list[Node]:
    """Return the hull, the sources of its complement and all terms within the limits.

    Ancestors come before their descendants.
    """
    hull = graph.hull(active)
    sources = graph.sources_of_complement(hull)
    found = dict.fromkeys([*hull, *sources])
    if len(found) > max_nodes:
        raise ValueError(
            f"The hull has {len(hull)} terms and its complement {len(sources)} sources, more than "
            f"max_nodes={max_nodes}; raise it, or fit a sparser model."
        )
    wanted: list[Node] = [] if max_order is None and max_degree is None else [()]
    seen = set(wanted)
    for node in wanted:  # the list grows during the loop: breadth-first search
        found[node] = None
        if len(found) > max_nodes:
            raise ValueError(
                f"There are more than max_nodes={max_nodes} terms up to max_order={max_order} and "
                f"max_degree={max_degree}; lower one of these, or raise max_nodes."
            )
        if max_degree is not None and graph.degree(node) == max_degree:
            continue
        for child in graph.children(node):
            if child not in seen and (max_order is None or node_order(child) <= max_order):
                seen.add(child)
                wanted.append(child)
    return sorted(found, key=lambda node: (graph.degree(node), node))
