"""The regularisation path: lambda decreases, and each solution is the start of the next."""

from __future__ import annotations

import itertools
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from hikernel.engines.machine import is_interrupted, time_limit
from hikernel.engines.protocol import Engine, FloatArray, Vertex
from hikernel.errors import OutOfTime, Reason
from hikernel.search import SearchSettings, StopReason
from hikernel.selection.training import TermModel, TrainingProblem, term_variances

__all__ = [
    "ROUNDING",
    "LambdaPath",
    "PathEnd",
    "PathPoint",
    "PathSolver",
    "compute_path",
    "constant_model",
    "estimated_error",
    "has_turned",
    "lambda_grid",
    "log_point",
    "without_proof",
]

ROUNDING = 1e-9
"""Relative difference of two errors that may be rounding: they count as equal."""

_log = logging.getLogger(__name__)

_FIRST_SHARE = 0.95
"""lambda delta / Omega* of the null model at the first lambda (see ``lambda_grid``)."""
_SATURATED = 0.999
"""Explained share of the loss at which a path ends, as in glmnet."""
_LEAST_PROGRESS = 1e-5
"""Gain in the explained share between two points below which a path ends, as in glmnet."""
_LEAST_POINTS = 5
"""Number of points up to which a small gain does not end a path."""
_LEAST_GAIN = 2e-3
"""Relative decrease of an estimated error that counts as one."""
_CLEAR_RISE = 0.01
"""Relative rise of an estimated error above its best that ends a path at once."""
_PATIENCE = 2
"""Number of points without such a decrease after which an error has turned."""
_LEAST_TURN = 10
"""Number of points up to which an error has not turned."""
_STEP = 10.0**-0.25
"""Ratio of neighbouring lambdas of a path that is as long as it needs to be."""


class PathEnd(Reason):
    """Why a path ended; the value is a sentence."""

    ALL_SOLVED = "All alphas were solved."
    TURNED = "The estimated error has turned: it no longer falls with alpha."
    MAX_KERNELS = "A hull reached max_kernels; raise it for smaller alphas."
    MAX_COLUMNS = (
        "A hull reached the number of feature columns that is solved for; with products of many "
        "categories, limit max_order or interactions for smaller alphas."
    )
    MAX_MEMORY = (
        "A hull reached the number of feature columns that max_memory has room for; raise "
        "max_memory for smaller alphas."
    )
    SATURATED = "The fit saturated."
    TIME = "The time budget is spent; with a larger time_budget the path would go on."
    INTERRUPT = "An interrupt ended the path; without it the path would go on."

    @classmethod
    def of_cut_path(cls) -> PathEnd:
        """Return why a path is cut short now: by an interrupt, or by the time budget."""
        return cls.INTERRUPT if is_interrupted() else cls.TIME

    @property
    def is_cut(self) -> bool:
        """Whether the user ended the path."""
        return self in (PathEnd.TIME, PathEnd.INTERRUPT)


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
    error : float
        Estimated mean loss on new rows (:func:`estimated_error`), for the standardised target.
    seconds : float
        Time that the solve took.
    """

    model: TermModel
    explained: float
    error: float
    seconds: float


@dataclass(frozen=True)
class LambdaPath:
    """Models for decreasing lambda, and why the path ended."""

    points: list[PathPoint]
    end: PathEnd

    def __len__(self) -> int:
        return len(self.points)

    def least_error(self) -> int:
        """Return the position of the point with the least estimated error.

        Of errors that differ by rounding only, the one at the largest lambda counts as the least.
        """
        errors = np.array([point.error for point in self.points])
        least = float(np.min(errors))
        return int(np.argmax(errors <= least + ROUNDING * abs(least)))

    @property
    def lams(self) -> FloatArray:
        """The values of lambda, largest first."""
        return np.array([point.model.lam for point in self.points])


def lambda_grid(problem: TrainingProblem, n_points: int, eps: float | None) -> FloatArray:
    """Return a geometric grid of ``n_points`` lambdas, from the first to ``eps`` times the first.

    With ``eps`` None there are four lambdas to a power of ten.

    At the first lambda the model is still almost empty. The penalty is squared, so no finite lambda
    makes it exactly empty. For a single node v with its ancestors,

        lambda delta / Omega* = l / (l + g),    l = lambda D^2,    D = sum of d over A(v),

    where delta is the norm Omega of the solution and Omega* the dual norm of the weighted residuals
    of the null model. g is the variance of the features of v along its scores, times the mean
    curvature of the loss (one for the squared error). The first lambda is the one at which this
    ratio is 0.95 for ``graph.strongest`` at the null model (for a grid, a node of one variable).
    """
    eps = _STEP ** (n_points - 1) if eps is None else eps
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


class PathSolver:
    """Solves a path point by point, each started from the previous solution.

    A path ends when a hull reaches ``max_kernels`` or has too many columns, when the fit saturates,
    or when the time of the user is up. As in glmnet, the fit is saturated when 99.9 % of the loss
    is explained, or when the last step gained less than 1e-5 of it (not among the first five
    points, nor while 10 % or less is explained).

    Parameters
    ----------
    problem : TrainingProblem
        Rows, graph, target and loss.
    settings : SearchSettings
        How to search.
    points : sequence of PathPoint, optional
        Points of the path that were solved before, to go on from.

    Attributes
    ----------
    points : list of PathPoint
        The points solved so far.
    end : PathEnd or None
        Why the path ended; None if it can go on.
    """

    def __init__(
        self,
        problem: TrainingProblem,
        settings: SearchSettings,
        points: Sequence[PathPoint] = (),
    ) -> None:
        self.points = list(points)
        self.end: PathEnd | None = None
        self.problem = problem
        self._settings = settings
        self._null = problem.error(problem.null_prediction(1e-6))

    def advance(self, lam: float) -> PathPoint | None:
        """Solve for the next lambda; return None if the time is up before a solution."""
        began = time.monotonic()
        problem = self.problem
        start = self.points[-1].model if self.points else None
        try:
            model = problem.solve(lam, self._settings, start=start)
        except OutOfTime:
            self.end = PathEnd.of_cut_path()
            if self.points:
                return None
            model = constant_model(problem, lam, self._settings)
        loss = problem.mean_loss(problem.prediction(model))
        total = self._null
        explained = problem.loss.explained(problem.loss.error(loss), total) if total > 0.0 else 1.0
        error = estimated_error(problem, model, loss)
        if problem.engine.in_blocks:  # dual variables of every lambda would fill the memory
            model = replace(model, dual_coef=model.dual_coef[:0].copy())
        point = PathPoint(model, explained, error, time.monotonic() - began)
        self.points.append(point)
        reason = model.certificate.reason
        full = len(model.nodes) >= self._settings.max_kernels
        if isinstance(reason, StopReason) and reason.is_cut_search:
            self.end = PathEnd.of_cut_path()
        elif full or reason is StopReason.MAX_KERNELS:
            self.end = PathEnd.MAX_KERNELS
        elif reason is StopReason.MAX_COLUMNS:
            self.end = PathEnd.MAX_COLUMNS
        elif reason is StopReason.MAX_MEMORY:
            self.end = PathEnd.MAX_MEMORY
        elif _saturated(self.points):
            self.end = PathEnd.SATURATED
        return point


def compute_path(
    problem: TrainingProblem,
    lams: Sequence[float],
    settings: SearchSettings,
    callback: Callable[[PathPoint], None] | None = None,
    *,
    until_turned: bool = False,
) -> LambdaPath:
    """Solve for decreasing lambdas, until the path ends (``PathSolver``).

    Parameters
    ----------
    problem : TrainingProblem
        Rows, graph, target and loss.
    lams : sequence of float
        The values of lambda, in any order.
    settings : SearchSettings
        How to search.
    callback : callable, optional
        Called with every :class:`PathPoint`.
    until_turned : bool, default=False
        Whether the path also ends when the estimated error has turned.
    """
    solver = PathSolver(problem, settings)
    for lam in sorted((float(lam) for lam in lams), reverse=True):
        point = solver.advance(lam)
        if point is not None:
            log_point(point)
        if point is not None and callback is not None:
            callback(point)
        if solver.end is not None:
            return LambdaPath(solver.points, solver.end)
        if until_turned and has_turned([point.error for point in solver.points]):
            return LambdaPath(solver.points, PathEnd.TURNED)
    return LambdaPath(solver.points, PathEnd.ALL_SOLVED)


def log_point(point: PathPoint) -> None:
    """Log a point of the path on all rows."""
    _log.info(
        "alpha %.4g: %d terms explain %.4f of the training loss; %.2f s.",
        *(point.model.lam, point.model.n_terms, point.explained, point.seconds),
    )


def estimated_error(problem: TrainingProblem, model: TermModel, loss: float) -> float:
    """Return an estimate of the error of a model on new rows, from the training rows alone.

    The degrees of freedom of a sparse fit are its active columns, however many it was chosen from
    (Zou, Hastie and Tibshirani, 2007, for the lasso). With df of them, the intercept included, and
    n rows, the estimate is

        loss / (1 - df / n)^2      for losses in the units of y, and others whose dispersion is
                                   free (generalised cross-validation),
        loss + df / n              for the others (Akaike's criterion, for the log loss),

    on the scale of ``Loss.error``.

    Nodes given by Gram matrices have no columns. For them df is the trace of the ridge smoother
    with the kernel K = sum_w zeta_w K_w, the sum of s / (s + n lambda) over its eigenvalues s.
    """
    # Of the outputs of a multinomial model one is determined by the others.
    outputs = int(np.prod(problem.y.shape[1:])) - int(problem.loss.shift_invariant)
    kept = model.norms > 0.0
    nodes = list(itertools.compress(model.nodes, kept))
    operator = problem.engine.kernel_operator(nodes) if nodes else None
    if operator is None:
        columns = float(np.sum(model.widths[kept]))
    else:
        squares = np.linalg.eigvalsh(operator.weighted_sum(model.zeta[kept]))
        columns = float(np.sum(squares / (np.maximum(squares, 0.0) + len(squares) * model.lam)))
    # n is the number of equal weights that estimate as well as the given ones.
    share = (1.0 + columns) * outputs * float(np.sum(problem.engine.row_weights**2))
    if problem.loss.degree > 0 or problem.loss.free_dispersion:
        return loss / (1.0 - share) ** 2 if share < 1.0 else np.inf
    return problem.loss.error(loss + share)


def has_turned(errors: Sequence[float], patience: int = _PATIENCE) -> bool:
    """Return whether an error that was falling along a path has not improved for some points.

    An improvement counts if it is at least 1/500. One point is enough if the error has risen by 1 %
    above the best: the last points of a path cost most. Among the first ten points an error never
    turns: a term of many variables, whose weights are large, may still be on its way.
    """
    best, position = np.inf, 0
    for i, error in enumerate(errors):
        if error < best - (_LEAST_GAIN * abs(best) if best < np.inf else 0.0):
            best, position = error, i
    if len(errors) <= _LEAST_TURN:
        return False
    risen = errors[-1] > best + _CLEAR_RISE * abs(best) if best < np.inf else True
    return risen or len(errors) > position + patience


def without_proof(model: TermModel) -> TermModel:
    """Return a model whose proof was never begun, because the user wanted an end."""
    certificate = model.certificate
    if isinstance(certificate.reason, StopReason) and certificate.reason.is_cut_search:
        return model
    reason = StopReason.of_cut_proof()
    return replace(model, certificate=replace(certificate, reason=reason))


def constant_model(problem: TrainingProblem, lam: float, settings: SearchSettings) -> TermModel:
    """Return the model of the sources of the graph alone, for when there was no time for more."""
    with time_limit(np.inf):
        model = problem.solve(lam, replace(settings, max_kernels=1, certify="none"))
    certificate = replace(model.certificate, reason=StopReason.of_cut_search())
    return replace(model, certificate=certificate)


def _saturated(points: Sequence[PathPoint]) -> bool:
    if points[-1].explained >= _SATURATED:
        return True
    if len(points) <= _LEAST_POINTS:
        return False
    gain = points[-1].explained - points[-2].explained
    return points[-1].explained > 0.1 and gain < _LEAST_PROGRESS
