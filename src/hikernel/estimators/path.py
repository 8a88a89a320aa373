"""hkl_path: arrays in, one Path out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from numpy.typing import NDArray

from hikernel.bases.design import Design
from hikernel.bases.parameters import check_integer, check_optional_integer
from hikernel.engines.protocol import FloatArray
from hikernel.estimators.choices import choose_bases
from hikernel.estimators.graph_input import as_it_is, check_graph, check_graph_data
from hikernel.estimators.labels import Labels
from hikernel.estimators.progress import PathProgress
from hikernel.estimators.validation import (
    check_alphas,
    check_number,
    check_search,
    check_target_scale,
    check_training_data,
    check_verbose,
    warn_of_lost_columns,
)
from hikernel.losses import CLASSIFICATION, REGRESSION, make_loss
from hikernel.selection import Path, TrainingProblem, alpha_grid, compute_path

__all__ = ["hkl_path"]


def hkl_path(
    X: Any,
    y: Any,
    *,
    loss: Any = "squared_error",
    alphas: Sequence[float] | None = None,
    n_alphas: int = 30,
    eps: float = 1e-5,
    sample_weight: Any = None,
    graph: Any = None,
    basis: Any = "auto",
    categorical: Any = None,
    degree: int = 4,
    max_order: int | None = None,
    weight_base: float = 2.0,
    root_weight: float = 1.0,
    search: str = "lookahead",
    max_kernels: int = 600,
    tol: float = 1e-3,
    certify: str = "none",
    time_budget: float | None = None,
    random_state: Any = 0,
    verbose: int = 0,
) -> Path:
    """Solve the problem of the estimators for a whole path of alphas.

    Parameters
    ----------
    X : array-like or data frame of shape (n_samples, n_features)
        Numbers, booleans and categories, with or without missing values; rows of the graph, where
        there is one.
    y : array-like of shape (n_samples,)
        Target, or labels for a classification loss.
    loss : str or Loss, default="squared_error"
        A loss of :class:`~hikernel.HKLRegressor` or of :class:`~hikernel.HKLClassifier`.
    alphas : sequence of float, optional
        Regularisation strengths, in any order. By default ``n_alphas`` values, evenly spaced in
        the logarithm from where the first term is about to enter down to ``eps`` times that.
    n_alphas : int, default=30
        Length of the automatic grid.
    eps : float, default=1e-5
        Last over first alpha of the automatic grid.
    sample_weight : array-like of shape (n_samples,), optional
        Weights, zero or positive.
    certify : {"none", "auto", "exact", "statistical"}, default="none"
        As for the estimator, but a path does not bound the tail unless asked: that costs seconds
        per alpha, and is best done for the alpha one keeps. Where all nodes of a graph are
        scored anyway (all but grids), every model is certified.
    graph, basis, categorical, degree, max_order, weight_base, root_weight, search, max_kernels, \
tol, time_budget
        As for the estimator; ``time_budget`` is for the whole path.
    random_state : int, RandomState or None, default=0
        Seed of the draws behind statistical bounds. The model does not depend on it.
    verbose : int or bool, default=0
        1 or True shows a progress bar with alpha, terms, explained share of the loss and gap.

    Returns
    -------
    Path
        ``table()`` has a row per alpha, ``predict(X, alpha=...)`` predicts, ``hull(alpha)`` lists
        the terms, ``points`` has everything. It may end early; ``reason`` says why.

    Examples
    --------
    >>> import numpy as np
    >>> from hikernel import hkl_path
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(200, 6))
    >>> y = X[:, 0] + 2 * X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(200)
    >>> path = hkl_path(X, y, n_alphas=10)
    >>> table = path.table()
    >>> bool(table["explained"].is_monotonic_increasing)
    True
    """
    settings = check_search(search, tol, max_kernels, certify, time_budget, random_state)
    check_integer("degree", degree, 1)
    check_optional_integer("max_order", max_order, 1, "any number of variables")
    check_integer("n_alphas", n_alphas, 1)
    check_verbose(verbose)
    check_number("eps", eps, above=0.0, below=1.0)
    check_number("weight_base", weight_base, above=0.0)
    check_number("root_weight", root_weight, above=0.0)
    check_alphas(alphas)
    if graph is not None:
        given = {"basis": basis, "categorical": categorical, "degree": degree}
        given |= {"max_order": max_order, "weight_base": weight_base, "root_weight": root_weight}
        check_graph(graph, {**given, "search": search, "certify": certify})
    respond: Callable[[FloatArray], NDArray[Any]]
    read: Callable[[Any], Any]
    names: list[str]
    labelled = any(loss == name or isinstance(loss, kind) for name, kind in CLASSIFICATION.items())
    if graph is not None:
        rows, y, weights = check_graph_data(
            graph, X, y, sample_weight, labels=labelled, estimator=None
        )
        names, read = [], as_it_is
    else:
        data = check_training_data(X, y, sample_weight, categorical, labels=labelled)
        rows, y, weights = data.X, data.y, data.weights
        names, read = list(data.columns.names), data.columns.transform
    if labelled:
        labels, target = Labels.of(y, weights, loss)
        rule, respond = labels.loss, labels.choose
    else:
        rule = make_loss(loss, REGRESSION | CLASSIFICATION)
        target, respond = y, rule.predict_mean
    if graph is not None:
        problem = TrainingProblem.of_graph(graph, rows, target, weights, rule)
    else:
        problem = TrainingProblem.make(
            rows,
            target,
            weights,
            [c.basis for c in choose_bases(basis, degree, data.columns, rows, weights)],
            rule,
            max_order=max_order,
            weight_base=weight_base,
            root_weight=root_weight,
        )
        assert isinstance(problem.design, Design)
        warn_of_lost_columns(problem.X, problem.design, names)
    check_target_scale(problem.scale)
    grid = alpha_grid(problem, n_alphas, eps).tolist() if alphas is None else list(alphas)
    with PathProgress(len(grid), enabled=verbose > 0) as progress:
        path = compute_path(problem, grid, settings, names, respond, progress)
    return replace(path, read=read)
