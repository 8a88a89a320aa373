"""The regularisation path: lambda decreases, and each solution is the start of the next."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from hikernel.engines.protocol import Engine, FloatArray, Vertex
from hikernel.errors import Reason
from hikernel.search import SearchSettings, StopReason
from hikernel.selection.training import TermModel, TrainingProblem, term_variances

__all__ = ["LambdaPath", "PathEnd", "PathPoint", "compute_path", "lambda_grid"]

_FIRST_SHARE = 0.95
"""lambda delta / Omega* of the null model at the first lambda (see ``lambda_grid``)."""
_SATURATED = 0.999
"""Explained share of the loss at which a path ends, as in glmnet."""
_LEAST_PROGRESS = 1e-5
"""Gain in the explained share between two points below which a path ends, as in glmnet."""
_LEAST_POINTS = 5
"""Number of points up to which a small gain does not end a path."""


class PathEnd(Reason):
    """Why a path ended; the value is a sentence."""

    ALL_SOLVED = "All alphas were solved."
    MAX_KERNELS = "A hull reached max_kernels; raise it for smaller alphas."
    SATURATED = "The fit saturated."
    TIME = "The time budget is spent."


@dataclass(frozen=True)
class PathPoint:
    """One lambda of a path.

    Attributes
    ----------
    model : TermModel
        The model.
    explained : float
        1 - loss of the model / loss of the best constant, on the training rows. For the squared
        error, the share of the variance explained.
    seconds : float
        Time that the solve took.
    """

    model: TermModel
    explained: float
    seconds: float


@dataclass(frozen=True)
class LambdaPath:
    """Models for decreasing lambda, and why the path ended."""

    points: list[PathPoint]
    end: PathEnd

    @property
    def lams(self) -> FloatArray:
        """The values of lambda, largest first."""
        return np.array([point.model.lam for point in self.points])


def lambda_grid(problem: TrainingProblem, n_points: int, eps: float) -> FloatArray:
    """Return a geometric grid of ``n_points`` lambdas, from the first to ``eps`` times the first.

    At the first lambda the model is still almost empty. The penalty is squared, so no finite lambda
    makes it exactly empty. For a single node v with its ancestors,

        lambda delta / Omega* = l / (l + g),    l = lambda D^2,    D = sum of d over A(v),

    where delta is the norm Omega of the solution and Omega* the dual norm of the weighted residuals
    of the null model. g is the variance of the features of v along its scores, times the mean
    curvature of the loss (one for the squared error). The first lambda is the one at which this
    ratio is 0.95 for ``graph.strongest`` at the null model (for a grid, a node of one variable).
    """
    engine, graph = problem.engine, problem.graph
    f = problem.null_prediction(1.0)
    residuals = problem.loss.residuals(problem.y, f, engine.row_weights, 1.0)
    weighted = (engine.row_weights * residuals.T).T
    node = graph.strongest(engine, weighted) if np.any(weighted) else None
    if node is None:
        return np.geomspace(1.0, eps, n_points)
    total = float(np.sum(graph.weights(graph.ancestors(node))))
    scores = engine.correlate([node], weighted)
    size = float(engine.score_squares([node], weighted)[0])
    largest, spread = _variances(engine, node)
    if size <= 1e-20 * spread:
        # The scores are numerically zero and give no direction: use the largest variance of a
        # column instead.
        along = largest
    else:
        along = float(term_variances(engine, [node], [scores])[0]) / size
    along *= float(np.mean(engine.row_weights @ problem.loss.curvature(problem.y, f, 1.0)))
    first = _FIRST_SHARE / (1.0 - _FIRST_SHARE) * along / total**2
    if not first > 0.0:  # constant features do not determine a lambda
        first = 1.0
    return np.geomspace(first, eps * first, n_points)


def _variances(engine: Engine, node: Vertex) -> tuple[float, float]:
    """Return the largest variance of a feature column of a node, and the sum of the variances.

    The columns of a Gram matrix are not features. For it, both values are its mean diagonal, which
    bounds both variances.
    """
    operator = engine.kernel_operator([node])
    if operator is not None:
        mean = operator.mean_diagonal(engine.row_weights)
        return mean, mean
    variances = engine.gram_diagonal([node], engine.means([node]))
    return float(np.max(variances)), float(np.sum(variances))


def compute_path(
    problem: TrainingProblem,
    lams: Sequence[float],
    settings: SearchSettings,
    callback: Callable[[PathPoint], None] | None = None,
) -> LambdaPath:
    """Solve for decreasing lambdas, each started from the previous solution.

    The path ends early when a hull reaches ``max_kernels``, when the fit saturates, or when the
    time budget is used up. As in glmnet, the fit is saturated when 99.9 % of the loss is explained,
    or when the last step gained less than 1e-5 of it (not among the first five points, nor while
    10 % or less is explained).

    Parameters
    ----------
    problem : TrainingProblem
        Rows, graph, target and loss.
    lams : sequence of float
        The values of lambda, in any order.
    settings : SearchSettings
        How to search; ``time_budget`` is that of the whole path.
    callback : callable, optional
        Called with every :class:`PathPoint`.
    """
    points: list[PathPoint] = []
    deadline = np.inf
    if settings.time_budget is not None:
        deadline = time.monotonic() + settings.time_budget
    total = problem.mean_loss(problem.null_prediction(1e-6))
    for lam in sorted((float(lam) for lam in lams), reverse=True):
        began = time.monotonic()
        if began > deadline:
            return LambdaPath(points, PathEnd.TIME)
        left = None if deadline == np.inf else deadline - began
        start = points[-1].model if points else None
        model = problem.solve(lam, replace(settings, time_budget=left), start=start)
        point = PathPoint(model, _explained(problem, model, total), time.monotonic() - began)
        points.append(point)
        if callback is not None:
            callback(point)
        full = len(model.nodes) >= settings.max_kernels
        if full or model.certificate.reason is StopReason.MAX_KERNELS:
            return LambdaPath(points, PathEnd.MAX_KERNELS)
        if _saturated(points):
            return LambdaPath(points, PathEnd.SATURATED)
    return LambdaPath(points, PathEnd.ALL_SOLVED)


def _explained(problem: TrainingProblem, model: TermModel, total: float) -> float:
    """Return the share of the loss of the best constant that a model explains."""
    if total <= 0.0:
        return 1.0
    return 1.0 - problem.mean_loss(problem.prediction(model)) / total


def _saturated(points: Sequence[PathPoint]) -> bool:
    if points[-1].explained >= _SATURATED:
        return True
    if len(points) <= _LEAST_POINTS:
        return False
    gain = points[-1].explained - points[-2].explained
    return points[-1].explained > 0.1 and gain < _LEAST_PROGRESS
