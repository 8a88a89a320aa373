"""The score of a fitted model on held-out rows: minus the mean loss, or a scorer of the user."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import check_scoring

from hikernel.engines.protocol import FloatArray
from hikernel.estimators.estimator import HKLEstimator
from hikernel.estimators.training_data import TrainingData
from hikernel.graphs import take
from hikernel.losses import Loss
from hikernel.selection import Fitted, TrainingProblem
from hikernel.selection.folds import ModelScore

__all__ = ["LossScore", "ScorerScore", "make_score"]


@dataclass(frozen=True)
class LossScore:
    """Minus the mean loss of the held-out rows, for a joint loss given the other rows."""

    problem: TrainingProblem

    def __call__(self, fitted: Fitted, rows: NDArray[np.intp]) -> float:
        """Return the score of a fitted model on the given rows."""
        problem = self.problem
        if problem.loss.joint:
            f = fitted.model.predict(fitted.design, problem.rows)
            return -problem.loss.held_out_error((f - problem.center) / problem.scale, rows)
        f = fitted.model.predict(fitted.design, problem.rows[rows])
        weights = problem.engine.row_weights[rows]
        loss = problem.loss.subset(rows)
        losses = loss.value(problem.y[rows], (f - problem.center) / problem.scale)
        return -float(weights @ losses) / float(np.sum(weights))


@dataclass(frozen=True)
class ScorerScore:
    """Score from a scikit-learn scorer, called with a fitted copy of the estimator.

    The scorer gets rows of X as the user passed it, not of the encoded matrix. It gets sample
    weights only if it requests them (``set_score_request``). If rows have an offset, the copy
    predicts the held-out rows with theirs.
    """

    estimator: HKLEstimator
    problem: TrainingProblem
    scorer: Callable[..., float]
    table: Any
    labels: NDArray[Any]
    loss: Loss
    offset: FloatArray | None
    weights: FloatArray | None

    def __call__(self, fitted: Fitted, rows: NDArray[np.intp]) -> float:
        """Return the score of a fitted model on the given rows."""
        model = copy.copy(self.estimator)
        model._set_fitted(fitted, self.loss, self.problem.graph)
        others = np.setdiff1d(np.arange(self.problem.engine.n_rows), rows)
        model._finish(fitted, self.problem, self.labels, others)
        where = np.flatnonzero(self.problem.used)[rows]
        if self.offset is not None:
            model._fold_offset = self.offset[where]
        more = {} if self.weights is None else {"sample_weight": self.weights[rows]}
        return float(self.scorer(model, take(self.table, where), self.labels[where], **more))


def make_score(
    scoring: Any,
    estimator: HKLEstimator,
    problem: TrainingProblem,
    table: Any,
    data: TrainingData,
) -> ModelScore:
    """Return the score that the user asked for, minus the mean loss by default."""
    if scoring is None:
        return LossScore(problem)
    scorer = check_scoring(estimator, scoring=scoring)
    weights = problem.engine.row_weights if _asks_for_weights(scorer) else None
    offset = None if data.offset is None else data.offset.values
    return ScorerScore(estimator, problem, scorer, table, data.y, data.loss, offset, weights)


def _asks_for_weights(scorer: Any) -> bool:
    """Return whether a scorer requests sample weights (``set_score_request``)."""
    if not hasattr(scorer, "get_metadata_routing"):
        return False
    return scorer.get_metadata_routing().score.requests.get("sample_weight") is True
