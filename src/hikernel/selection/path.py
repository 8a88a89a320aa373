"""The regularisation path: alpha from large to small, each solution the start of the next."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from hikernel.bases.design import Design
from hikernel.engines.protocol import FloatArray, Node
from hikernel.graphs import ROOT
from hikernel.selection.model import TermModel
from hikernel.selection.training import SearchSettings, TrainingProblem

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
        Share of the training variance that it explains.
    seconds : float
        Time it took.
    """

    model: TermModel
    explained: float
    seconds: float


@dataclass(frozen=True)
class Path:
    """Models for decreasing alpha.

    Attributes
    ----------
    points : list of PathPoint
        In the order of decreasing alpha.
    design : Design
        The fitted bases.
    names : list of str
        Names of the columns.
    reason : str
        Why the path ended where it did.
    """

    points: list[PathPoint]
    design: Design
    names: list[str]
    reason: str

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

    def predict(self, X: FloatArray, alpha: float | None = None) -> FloatArray:
        """Return predictions.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows.
        alpha : float, optional
            One alpha of the path; without it all are predicted.

        Returns
        -------
        ndarray of shape (n,), or (n, n_alphas) without ``alpha``
        """
        rows = np.asarray(X, dtype=np.float64)
        if alpha is not None:
            return self.at(alpha).model.predict(self.design, rows)
        return np.column_stack([point.model.predict(self.design, rows) for point in self.points])

    def hull(self, alpha: float) -> pd.DataFrame:
        """Return the terms at one alpha, a row each."""
        return self.at(alpha).model.frame(self.names)

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
    g the variance of its features along its scores; the grid starts where that is 0.95 for
    the node (of one variable) that the null model's scores single out.
    """
    engine, graph = problem.engine, problem.graph
    pairs = engine.level_pairs
    weighted = engine.row_weights * problem.y
    if not pairs or not np.any(weighted):
        return np.geomspace(1.0, eps, n_alphas)
    squares = engine.extension_squares([ROOT], weighted)[0]
    totals = np.array([np.sum(graph.weights(graph.ancestors((pair,)))) for pair in pairs])
    best = int(np.argmax(squares / totals**2))
    nodes: list[Node] = [(pairs[best],)]
    means = engine.means(nodes)
    scores = engine.correlate(nodes, weighted)
    gram = engine.gram(nodes, nodes, means, means)
    if float(scores @ scores) <= 1e-20 * float(np.trace(gram)):
        # No variable alone has a score: the size of its features stands in for the direction.
        along = float(np.max(np.diag(gram)))
    else:
        along = float(scores @ gram @ scores) / float(scores @ scores)
    first = _FIRST_SHARE / (1.0 - _FIRST_SHARE) * along / totals[best] ** 2
    return np.geomspace(first, eps * first, n_alphas)


def compute_path(
    problem: TrainingProblem,
    alphas: Sequence[float],
    settings: SearchSettings,
    names: list[str],
    callback: Callable[[PathPoint], None] | None = None,
) -> Path:
    """Solve for decreasing alphas, each started from the one before.

    Ends early when a hull reaches ``max_kernels``, when the fit saturates (as in glmnet: 99.9 % of
    the variance explained, or a gain below 1e-5 of it), or when the time budget is spent.
    """
    points: list[PathPoint] = []
    start: tuple[Sequence[Node], FloatArray] | None = None
    deadline = np.inf
    if settings.time_budget is not None:
        deadline = time.monotonic() + settings.time_budget
    total = float(problem.engine.row_weights @ problem.y**2)
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
        start = (model.nodes, model.eta)
        if len(model.nodes) >= settings.max_kernels or "max_kernels" in model.certificate.reason:
            reason = f"The hull reached max_kernels={settings.max_kernels}."
            break
        if _saturated(points):
            reason = "The fit saturated."
            break
    return Path(points, problem.design, names, reason)


def _explained(problem: TrainingProblem, model: TermModel, total: float) -> float:
    """Return the share of the training variance that a model explains."""
    if total <= 0.0:
        return 1.0
    fitted = problem.engine.apply(model.nodes, model.coef / problem.scale)
    residual = problem.y - fitted
    omega = problem.engine.row_weights
    residual = residual - float(omega @ residual)
    return 1.0 - float(omega @ residual**2) / total


def _saturated(points: Sequence[PathPoint]) -> bool:
    if points[-1].explained >= _SATURATED:
        return True
    if len(points) <= _LEAST_POINTS:
        return False
    gain = points[-1].explained - points[-2].explained
    return points[-1].explained > 0.1 and gain < _LEAST_PROGRESS
