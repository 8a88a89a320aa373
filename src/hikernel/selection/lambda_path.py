"""The regularisation path: lambda from large to small, each solution the start of the next."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np

from hikernel.engines.protocol import Engine, FloatArray, Vertex
from hikernel.search import SearchSettings, StopReason
from hikernel.selection.training import TermModel, TrainingProblem, term_variances

__all__ = ["LambdaPath", "PathEnd", "PathPoint", "compute_path", "lambda_grid"]

_FIRST_SHARE = 0.95
"""lambda delta over Omega* of the null model at the first lambda: just below one."""
_SATURATED = 0.999
_LEAST_PROGRESS = 1e-5
"""Gain in explained variance below which (and above which share) a path ends, as glmnet's does."""
_LEAST_POINTS = 5


class PathEnd(Enum):
    """Why a path ended where it did; the value is a sentence."""

    ALL_SOLVED = "All alphas were solved."
    MAX_KERNELS = "A hull reached max_kernels; raise it for smaller alphas."
    SATURATED = "The fit saturated."
    TIME = "The time budget is spent."

    @property
    def sentence(self) -> str:
        """What happened."""
        return str(self.value)

    def __str__(self) -> str:
        return self.sentence


@dataclass(frozen=True)
class PathPoint:
    """One lambda of a path.

    Attributes
    ----------
    model : TermModel
        The model.
    explained : float
        Share of the loss of the best constant that it explains on the training rows (of the
        variance, for the squared error).
    seconds : float
        Time it took.
    """

    model: TermModel
    explained: float
    seconds: float


@dataclass(frozen=True)
class LambdaPath:
    """Models for decreasing lambda, and why there are no more."""

    points: list[PathPoint]
    end: PathEnd

    @property
    def lams(self) -> FloatArray:
        """The values of lambda, largest first."""
        return np.array([point.model.lam for point in self.points])


def lambda_grid(problem: TrainingProblem, n_points: int, eps: float) -> FloatArray:
    """Return lambdas from where the first term is about to enter down to ``eps`` times that.

    The penalty is squared, so no finite lambda empties the model. For a single node v with its
    ancestors, lambda delta / Omega* = l / (l + g) with l = lambda D^2, D = sum of d over A(v) and
    g the variance of its features along its scores, times the mean curvature of the loss (one for
    the squared error); the grid starts where that is 0.95 for the node (of one variable) that the
    null model's scores single out.
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
        # No node alone has a score: the size of its features stands in for the direction.
        along = largest
    else:
        along = float(term_variances(engine, [node], [scores])[0]) / size
    along *= float(np.mean(engine.row_weights @ problem.loss.curvature(problem.y, f, 1.0)))
    first = _FIRST_SHARE / (1.0 - _FIRST_SHARE) * along / total**2
    if not first > 0.0:  # features that are constant say nothing at any lambda
        first = 1.0
    return np.geomspace(first, eps * first, n_points)


def _variances(engine: Engine, node: Vertex) -> tuple[float, float]:
    """Return the largest variance of a feature column of a node, and the sum of all.

    For a Gram matrix, whose columns are no features, its mean diagonal, which bounds both.
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
    """Solve for decreasing lambdas, each started from the one before.

    Ends early when a hull reaches ``max_kernels``, when the fit saturates (as in glmnet: 99.9 % of
    the loss explained, or a gain below 1e-5 of it), or when the time budget is spent.
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
