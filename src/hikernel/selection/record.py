"""What a fit leaves behind beside its model: the data in numbers, its path, and simpler models.

A record is plain data of a few kilobytes. It is saved with the model, so that pictures and pages
can be drawn without the rows.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from hikernel.bases.column import distinct
from hikernel.engines.machine import time_limit
from hikernel.engines.protocol import FloatArray
from hikernel.errors import OutOfTime
from hikernel.graphs import Design
from hikernel.losses import SquaredError
from hikernel.selection.folds import Fold, ModelScore
from hikernel.selection.lambda_path import PathPoint
from hikernel.selection.refit import Fitted, refit
from hikernel.selection.training import TermModel, TrainingProblem

__all__ = [
    "QUANTILES",
    "ColumnStatistics",
    "FitRecord",
    "PathRecord",
    "SimplerModels",
    "column_statistics",
    "score_simpler_models",
]

QUANTILES = (0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)
"""Shares of the rows at which quantiles are kept."""

_FEW = 12
"""A column with at most so many distinct values keeps all of them."""

_BINS = 40

_SHOWN_EFFECTS = 40
"""Most effects of one point of a path that are kept, the largest ones."""

_MOST_WORK = 2e10
"""Rows times squared columns up to which a linear model is fitted for comparison, in one fold."""
_NEWTON = 30
"""The same for losses that take Newton's method, relative to squared errors."""


@dataclass(frozen=True)
class ColumnStatistics:
    """Where the values of a column lie on the training rows, weighted, without missing ones.

    Attributes
    ----------
    low, high, mean : float
        Smallest and largest value, and the mean.
    quantiles : tuple of float
        The quantiles at ``QUANTILES``: the smallest values with at least that share of the rows at
        or below them.
    values : tuple of float
        All distinct values in increasing order if they are few, otherwise empty. For categories,
        the positions of all that occur.
    edges : tuple of float
        Edges of the bins of a histogram, of equal width; empty if ``values`` are kept.
    shares : tuple of float
        Share of the rows in each bin, or at each of ``values``.
    """

    low: float
    high: float
    mean: float
    quantiles: tuple[float, ...]
    values: tuple[float, ...]
    edges: tuple[float, ...]
    shares: tuple[float, ...]


@dataclass(frozen=True)
class PathRecord:
    """One point of a path.

    Attributes
    ----------
    alpha : float
        The penalty.
    n_terms, n_effects : int
        Size of the model of the convex problem.
    explained : float
        Share of the loss of the best constant that it explains on the training rows.
    effects : tuple of (str, float)
        Its largest effects with their shares of the variance of all terms.
    """

    alpha: float
    n_terms: int
    n_effects: int
    explained: float
    effects: tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class SimplerModels:
    """Mean scores on the folds of models that need no search; None where there is none.

    Attributes
    ----------
    constant : float or None
        The best constant.
    linear : float or None
        A ridge model, linear in the columns of numbers, with an effect for every category.
    """

    constant: float | None = None
    linear: float | None = None


@dataclass(frozen=True)
class FitRecord:
    """What a fit leaves behind beside its model.

    Attributes
    ----------
    target : str or None
        Name of y.
    n_rows : int
        Number of rows of positive weight.
    weighted : bool
        Whether the rows have different weights.
    missing : tuple of int
        Number of missing values in every column of the matrix; empty for a graph.
    statistics : dict of int to ColumnStatistics
        Statistics of the columns of the matrix that the model uses.
    explained : float
        Share of the loss of the best constant that the model explains on the training rows.
    path : tuple of PathRecord
        The path on all rows; empty if alpha was given.
    simpler : SimplerModels
        What simpler models score in cross-validation.
    offset, exposure : str or None
        What the offset and the exposure of the rows were called; None if there were none.
    """

    target: str | None
    n_rows: int
    weighted: bool
    missing: tuple[int, ...] = ()
    statistics: dict[int, ColumnStatistics] = field(default_factory=dict)
    explained: float = 0.0
    path: tuple[PathRecord, ...] = ()
    simpler: SimplerModels = SimplerModels()
    offset: str | None = None
    exposure: str | None = None

    @classmethod
    def of(
        cls,
        problem: TrainingProblem,
        fitted: Fitted,
        target: str | None,
        points: Sequence[PathPoint],
    ) -> FitRecord:
        """Return the record of a fit, without the scores of simpler models."""
        weights = problem.engine.row_weights
        kinds = fitted.design.kinds()
        missing: tuple[int, ...] = ()
        statistics: dict[int, ColumnStatistics] = {}
        if kinds is not None:
            missing = fitted.design.n_missing(problem.rows)
            for m in sorted({m for node in fitted.model.kept().nodes for m, _ in node}):
                codes = kinds[m] != "number"
                rows, blocks = problem.rows, problem.engine.in_blocks
                known = rows.distribution(m, weights) if blocks else (rows[:, m], weights)
                found = column_statistics(*known, categories=codes)
                if found is not None:
                    statistics[m] = found
        return cls(
            target=target,
            n_rows=problem.engine.n_rows,
            weighted=bool(np.ptp(weights) > 1e-9 * np.max(weights)),
            missing=missing,
            statistics=statistics,
            explained=_explained(problem, fitted),
            path=_path_records(points, problem.design),
        )


def _rounded(values: FloatArray) -> FloatArray:
    """Return increasing values, rounded to a millionth of their range or less."""
    width = 0.5 * float(values[-1]) - 0.5 * float(values[0])
    digits = 6 - math.floor(math.log10(width))
    return np.asarray(np.round(values, digits)) if abs(digits) < 300 else values


def _explained(problem: TrainingProblem, fitted: Fitted) -> float:
    """Return the share of the loss of the best constant that a model explains, on its rows."""
    with time_limit(np.inf):  # there is a model, and a budget of the user is for finding it
        f = fitted.model.predict(fitted.design, problem.rows)
    total = problem.error(problem.null_prediction(1e-6))
    left = problem.error((f - problem.center) / problem.scale)
    return problem.loss.explained(left, total) if total > 0.0 else 0.0


def _path_records(points: Sequence[PathPoint], design: Design) -> tuple[PathRecord, ...]:
    """Return the points of a path as plain data."""
    out = []
    for point in points:
        shares = _effect_shares(point.model, design)
        largest = sorted(shares.items(), key=lambda item: -item[1])[:_SHOWN_EFFECTS]
        out.append(
            PathRecord(
                alpha=float(point.model.lam),
                n_terms=point.model.n_terms,
                n_effects=len(shares),
                explained=float(point.explained),
                effects=tuple(largest),
            )
        )
    return tuple(out)


def _effect_shares(model: TermModel, design: Design) -> dict[str, float]:
    """Return the share of every effect, the sum over the terms of one set of variables."""
    kept = model.kept()
    variables = design.variables(kept.nodes)
    if variables is None:
        names = design.terms(kept.nodes)["term"]
    else:
        known: dict[tuple[str, ...], str] = {(): ""}
        for node, of in zip(kept.nodes, variables, strict=True):
            if of not in known:
                known[of] = design.effect_name(node)
        names = [known[of] for of in variables]
    out: dict[str, float] = {}
    for name, share in zip(names, model.shares[kept.positions], strict=True):
        if name:
            out[name] = out.get(name, 0.0) + float(share)
    return out


def score_simpler_models(
    problem: TrainingProblem,
    linear: TrainingProblem | None,
    folds: Sequence[Fold],
    score: ModelScore,
    model: TermModel,
) -> SimplerModels:
    """Return the mean scores of the best constant and of a linear model on the folds.

    Parameters
    ----------
    problem : TrainingProblem
        The rows.
    linear : TrainingProblem or None
        The same rows with one level per column, a linear one for numbers; None without columns.
    folds : sequence of (train, test)
        Positions among the rows used.
    score : callable
        Scores a fitted model on rows.
    model : TermModel
        Any model of the problem, for its shapes.
    """
    empties = [_constant(problem, train, model) for train, _ in folds]
    constants: list[float] = []
    lines: list[float] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they would be about models that the user did not ask for
        # A score need not accept what a simpler model predicts, for example a negative mean.
        with time_limit(np.inf), suppress(ValueError):  # takes no time
            for empty, (_, test) in zip(empties, folds, strict=True):
                constants.append(score(Fitted(empty, empty, problem.design), test))
        with suppress(ValueError, OutOfTime):
            for empty, (train, test) in zip(empties, folds, strict=True):
                fitted = None if linear is None else _line(linear.subset(train), empty)
                if fitted is None:
                    break
                lines.append(score(fitted, test))
    return SimplerModels(_mean(constants, len(folds)), _mean(lines, len(folds)))


def _mean(scores: list[float], n_folds: int) -> float | None:
    """Return the mean score, or None if a fold has none."""
    mean = float(np.mean(scores)) if len(scores) == n_folds else np.nan
    return mean if np.isfinite(mean) else None


def _constant(problem: TrainingProblem, rows: NDArray[np.intp], model: TermModel) -> TermModel:
    """Return the best constant for some rows as a model."""
    y, weights = problem.y[rows], problem.engine.row_weights[rows]
    loss = problem.loss.subset(rows)
    level = loss.intercept(y, np.zeros_like(y), weights / np.sum(weights), 1e-6)
    intercept = np.asarray(problem.center + problem.scale * level)
    none = np.empty(0)
    return replace(
        model,
        nodes=[],
        widths=np.empty(0, dtype=np.intp),
        coef=model.coef[:0],
        intercept=intercept,
        eta=none,
        zeta=none,
        norms=none,
        shares=none,
    )


def _line(problem: TrainingProblem, empty: TermModel) -> Fitted | None:
    """Return the ridge model on all terms of order one; None if that would take too long."""
    nodes = list(problem.design.main_effects())
    widths = np.array([problem.engine.width(node) for node in nodes], dtype=np.intp)
    columns = int(np.sum(widths)) * int(np.prod(problem.y.shape[1:]))
    passes = 1 if isinstance(problem.loss, SquaredError) else _NEWTON
    if not nodes or passes * problem.engine.n_rows * columns**2 > _MOST_WORK:
        return None
    ones = np.ones(len(nodes))
    coef = np.zeros((int(np.sum(widths)), *empty.coef.shape[1:]))
    start = replace(
        empty, nodes=nodes, widths=widths, coef=coef, eta=ones, zeta=ones, norms=ones, shares=ones
    )
    return refit("ridge", problem, start)


def column_statistics(
    x: FloatArray, weights: FloatArray, *, categories: bool = False
) -> ColumnStatistics | None:
    """Return the statistics of a column; None if all of its values are missing.

    Parameters
    ----------
    x : ndarray of shape (n,)
        Numbers or codes of categories, NaN where missing.
    weights : ndarray of shape (n,)
        Weights of the rows, zero or positive.
    categories : bool, default=False
        Whether these are codes, all of which are kept.

    Examples
    --------
    >>> column_statistics(np.array([1.0, 2.0, 2.0, np.nan]), np.ones(4)).values
    (1.0, 2.0)
    """
    known = ~np.isnan(x) & (weights > 0.0)
    if not np.any(known):
        return None
    values, _, shares = distinct(x[known], weights[known])
    below = np.cumsum(shares)
    places = np.minimum(np.searchsorted(below, np.array(QUANTILES) - 1e-12), len(values) - 1)
    edges: list[float] = []
    kept = values
    if len(values) > _FEW and not categories:
        low, high = _rounded(values)[[0, -1]]
        # The halves keep the width finite where the range itself is not.
        bins = 2.0 * np.linspace(0.5 * low, 0.5 * high, _BINS + 1)
        counted = np.searchsorted(bins[1:-1], values, side="left")
        edges, kept = bins.tolist(), values[:0]
        shares = np.bincount(counted, shares, minlength=_BINS).astype(np.float64)
    mean = float(np.sum((below - np.append(0.0, below[:-1])) * values))
    # Values that are few are what they are; of many, ends and quantiles are rounded.
    about = np.asarray if len(kept) else _rounded
    return ColumnStatistics(
        low=float(about(values)[0]),
        high=float(about(values)[-1]),
        mean=mean,
        quantiles=tuple(about(values)[places].tolist()),
        values=tuple(kept.tolist()),
        edges=tuple(edges),
        shares=tuple(shares.tolist()),
    )
