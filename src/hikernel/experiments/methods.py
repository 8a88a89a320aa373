"""The methods of the tables with a common interface: each fits a path of models over a grid."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from hikernel.engines.protocol import FloatArray
from hikernel.estimators import hkl_path
from hikernel.experiments.greedy import GreedyClassifier, GreedyRegressor
from hikernel.experiments.l2 import L2Classifier, L2Regressor
from hikernel.experiments.lasso_alpha import LassoAlphaRegressor
from hikernel.experiments.mkl import MKLRegressor
from hikernel.experiments.settings import (
    GREEDY_KERNELS,
    GREEDY_RIDGE,
    L2_GRID,
    LASSO_GRID,
    LASSO_STEPS,
    MAX_KERNELS,
    MKL_GRID,
    KernelChoice,
)

__all__ = ["METHODS", "FittedPath"]


@dataclass(frozen=True)
class FittedPath:
    """A path of models, one for every point of a grid of regularisation parameters.

    Attributes
    ----------
    grid : ndarray of shape (k,)
        Regularisation parameters, from most to least regularisation.
    decide : callable
        Returns the decision values or predictions for new rows, shape (n, k).
    terms : list of int
        Number of kernels in use at each point; for lasso-alpha, of nonzero dual coefficients.
        Empty for L2.
    held_out : ndarray of shape (k,) or None
        Exact mean squared leave-one-out errors, where they come at no extra cost. If None,
        cross-validation is needed.
    note : str
        How the path ended, as text; empty for L2 and greedy.
    end : str
        How the path ended, as a name of :class:`~hikernel.selection.PathEnd`; empty for methods
        other than HKL and MKL.
    reached : int
        Number of points of the grid with a model of their own. The remaining points repeat the
        last model. 0 means all points.
    n_vertices : int
        Number of kernels in the graph; 0 if not counted.
    """

    grid: FloatArray
    decide: Callable[[Any], FloatArray]
    terms: list[int]
    held_out: FloatArray | None = None
    note: str = ""
    end: str = ""
    reached: int = 0
    n_vertices: int = 0


Method = Callable[[Any, FloatArray, str, KernelChoice], FittedPath]


def _hkl(X: Any, y: FloatArray, task: str, kernel: KernelChoice) -> FittedPath:
    """HKL: if the path ends early, its last model is used for the rest of the grid."""
    path = hkl_path(
        X,
        y,
        loss="squared_error" if task == "regression" else "log_loss",
        alphas=kernel.alphas.tolist(),
        basis=kernel.make_basis(),
        weight_base=kernel.weight_base,
        max_kernels=MAX_KERNELS,
        certify="none",
    )
    last = len(path) - 1
    reached = [min(i, last) for i in range(len(kernel.alphas))]

    def decide(new: Any) -> FloatArray:
        values = [path.decision_function(new, alpha) for alpha in path.alphas]
        return np.column_stack([values[i] for i in reached])

    terms = [path.points[i].model.n_terms for i in reached]
    return FittedPath(
        kernel.alphas,
        decide,
        terms,
        note=f"{len(path)} alphas: {path.reason.sentence}",
        end=path.reason.name,
        reached=len(path),
        n_vertices=path.points[0].model.certificate.n_vertices,
    )


def _l2(X: Any, y: FloatArray, task: str, kernel: KernelChoice) -> FittedPath:
    """L2 with the full kernel: one eigendecomposition for all lambdas."""
    settings = {"basis": kernel.make_basis(), "share": kernel.share, "decay": kernel.decay}
    if task == "regression":
        model = L2Regressor(**settings).fit(X, y)
        errors = np.mean(model.leave_one_out(L2_GRID) ** 2, axis=0)
        return FittedPath(L2_GRID, lambda new: model.predict_path(new, L2_GRID), [], errors)
    classifier = L2Classifier(**settings).fit(X, y)
    return FittedPath(L2_GRID, lambda new: classifier.decision_path(new, L2_GRID), [])


def _greedy(X: Any, y: FloatArray, task: str, kernel: KernelChoice) -> FittedPath:
    """Forward selection: the number of kernels is the parameter."""
    maker = GreedyRegressor if task == "regression" else GreedyClassifier
    model = maker(GREEDY_KERNELS, basis=kernel.make_basis(), ridge=GREEDY_RIDGE).fit(X, y)
    reached = np.minimum(np.arange(GREEDY_KERNELS + 1), len(model.nodes_))
    return FittedPath(
        np.arange(GREEDY_KERNELS + 1.0),
        lambda new: model.predict_path(new)[:, reached],
        reached.tolist(),
        reached=len(model.nodes_) + 1,
    )


def _lasso_alpha(X: Any, y: FloatArray, task: str, kernel: KernelChoice) -> FittedPath:
    """The lasso-alpha path: l1 penalty on the coefficients of the columns of the kernel matrix."""
    if task != "regression":
        raise ValueError("lasso-alpha is in the table of regressions only.")
    model = LassoAlphaRegressor(
        basis=kernel.make_basis(),
        share=kernel.share,
        decay=kernel.decay,
        max_steps=LASSO_STEPS,
    )
    model.fit_path(X, y, LASSO_GRID)
    terms = model.n_used_.tolist()
    return FittedPath(
        LASSO_GRID,
        model.predict_path,
        terms,
        note=f"{model.n_steps_} steps; {model.n_unsolved_} penalties unsolved.",
        reached=max(1, int(np.sum(model.reached_))),
    )


def _mkl(X: Any, y: FloatArray, task: str, kernel: KernelChoice) -> FittedPath:
    """MKL: one kernel per variable, fitted by the solver for general graphs."""
    if task != "regression":
        raise ValueError("MKL is in the table of regressions only.")
    model = MKLRegressor(basis=kernel.make_basis()).fit_path(X, y, MKL_GRID)
    terms = [model.path_.points[i].model.n_terms for i in model.places_]
    return FittedPath(
        MKL_GRID,
        model.predict_path,
        terms,
        note=model.path_.reason.sentence,
        end=model.path_.reason.name,
        reached=len(model.path_),
    )


METHODS: Final[dict[str, Method]] = {
    "HKL": _hkl,
    "L2": _l2,
    "greedy": _greedy,
    "lasso-alpha": _lasso_alpha,
    "MKL": _mkl,
}
"""The methods by their names in the tables."""
