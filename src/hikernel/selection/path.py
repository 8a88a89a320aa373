"""The regularisation path: alpha from large to small, each solution the start of the next."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hikernel.engines.protocol import Engine, FloatArray, Vertex
from hikernel.reduced import WarmStart
from hikernel.selection.model import FittedDesign, TermModel
from hikernel.selection.training import SearchSettings, TrainingProblem, term_variances

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Path", "PathPoint", "alpha_grid", "compute_path"]

_FIRST_SHARE = 0.95
"""lambda delta over Omega* of the null model at the first alpha: just below one."""
_SATURATED = 0.999
_LEAST_PROGRESS = 1e-5
"""Gain in explained variance below which (and above which share) a path ends, as glmnet's does."""
_LEAST_POINTS = 5


@dataclass(frozen=True)
class PathPoint:
    """One alpha of a path.

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


def _as_matrix(X: Any) -> FloatArray:
    return np.asarray(X, dtype=np.float64)


@dataclass(frozen=True)
class Path:
    """Models for decreasing alpha.

    Attributes
    ----------
    points : list of PathPoint
        In the order of decreasing alpha.
    design : FittedDesign
        The fitted bases or kernels.
    names : list of str
        Names of the columns.
    reason : str
        Why the path ended where it did.
    respond : callable
        Turns f(x) into what is predicted.
    read : callable
        Turns the table of a user into the matrix that the bases were fitted to.
    """

    points: list[PathPoint]
    design: FittedDesign
    names: list[str]
    reason: str
    respond: Callable[[FloatArray], NDArray[Any]]
    read: Callable[[Any], Any] = _as_matrix

    @property
    def alphas(self) -> FloatArray:
        """The values of alpha, largest first."""
        return np.array([point.model.alpha for point in self.points])

    def __len__(self) -> int:
        return len(self.points)

    def at(self, alpha: float) -> PathPoint:
        """Return the point of an alpha of the path (to a relative precision of 1e-6).

        Raises
        ------
        ValueError
            With the nearest alpha of the path, if it is not one.
        """
        alphas = self.alphas
        nearest = int(np.argmin(np.abs(np.log(alphas / alpha))))
        if not np.isclose(alphas[nearest], alpha, rtol=1e-6, atol=0.0):
            raise ValueError(
                f"alpha={alpha!r} is not on the path; the nearest that is, is {alphas[nearest]!r}."
            )
        return self.points[nearest]

    def predict(self, X: Any, alpha: float | None = None) -> NDArray[Any]:
        """Return predictions: numbers for a regression loss, labels for a classification loss.

        Parameters
        ----------
        X : array-like or data frame of shape (n, p)
            Rows with the columns of the training data.
        alpha : float, optional
            One alpha of the path; without it all are predicted.

        Returns
        -------
        ndarray of shape (n,), or (n, n_alphas) without ``alpha``
        """
        if alpha is not None:
            return self.respond(self.decision_function(X, alpha))
        rows = self.read(X)
        values = [point.model.predict(self.design, rows) for point in self.points]
        return np.column_stack([self.respond(f) for f in values])

    def decision_function(self, X: Any, alpha: float) -> FloatArray:
        """Return f(x) at one alpha, shape (n,), or (n, n_classes) for more than two classes."""
        return self.at(alpha).model.predict(self.design, self.read(X))

    def hull(self, alpha: float) -> pd.DataFrame:
        """Return the terms at one alpha, a row each."""
        return self.at(alpha).model.frame(self.design, self.names)

    def table(self) -> pd.DataFrame:
        """Return a row per alpha: terms, objective, gap, explained variance, time."""
        import pandas as pd

        return pd.DataFrame(
            {
                "alpha": self.alphas,
                "terms": [point.model.n_terms for point in self.points],
                "kernels": [point.model.certificate.n_kernels for point in self.points],
                "objective": [point.model.certificate.objective for point in self.points],
                "relative_gap": [point.model.certificate.relative_gap for point in self.points],
                "certified": [point.model.certificate.certified for point in self.points],
                "explained": [point.explained for point in self.points],
                "seconds": [point.seconds for point in self.points],
            }
        )


def alpha_grid(problem: TrainingProblem, n_alphas: int, eps: float) -> FloatArray:
    """Return alphas from where the first term is about to enter down to ``eps`` times that.

    The penalty is squared, so no finite lambda empties the model. For a single node v with its
    ancestors, lambda delta / Omega* = l / (l + g) with l = lambda D^2, D = sum of d over A(v) and
    g the variance of its features along its scores, times the mean curvature of the loss (one for
    the squared error); the grid starts where that is 0.95 for the node (of one variable) that the
    null model's scores single out.
    """
    engine = problem.engine
    f = problem.null_prediction(1.0)
    residuals = problem.loss.residuals(problem.y, f, engine.row_weights, 1.0)
    weighted = (engine.row_weights * residuals.T).T
    found = problem.strongest(weighted)
    if found is None:
        return np.geomspace(1.0, eps, n_alphas)
    node, total = found
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
    if not first > 0.0:  # features that are constant say nothing at any alpha
        first = 1.0
    return np.geomspace(first, eps * first, n_alphas)


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
    alphas: Sequence[float],
    settings: SearchSettings,
    names: list[str],
    respond: Callable[[FloatArray], NDArray[Any]],
    callback: Callable[[PathPoint], None] | None = None,
) -> Path:
    """Solve for decreasing alphas, each started from the one before.

    Ends early when a hull reaches ``max_kernels``, when the fit saturates (as in glmnet: 99.9 % of
    the loss explained, or a gain below 1e-5 of it), or when the time budget is spent.
    """
    points: list[PathPoint] = []
    start: tuple[Sequence[Vertex], WarmStart] | None = None
    deadline = np.inf
    if settings.time_budget is not None:
        deadline = time.monotonic() + settings.time_budget
    total = problem.mean_loss(problem.null_prediction(1e-6))
    reason = "All alphas were solved."
    for alpha in sorted((float(a) for a in alphas), reverse=True):
        began = time.monotonic()
        if began > deadline:
            reason = "The time budget is spent."
            break
        left = None if deadline == np.inf else deadline - began
        model = problem.solve(alpha, replace(settings, time_budget=left), start=start)
        point = PathPoint(model, _explained(problem, model, total), time.monotonic() - began)
        points.append(point)
        if callback is not None:
            callback(point)
        start = (model.nodes, WarmStart(model.eta, model.coef / problem.scale))
        if len(model.nodes) >= settings.max_kernels or "max_kernels" in model.certificate.reason:
            reason = f"The hull reached max_kernels={settings.max_kernels}."
            break
        if _saturated(points):
            reason = "The fit saturated."
            break
    return Path(points, problem.design, names, reason, respond)


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
