"""What the cross-validated estimators share: the path, the folds, the choice, the refit."""

from __future__ import annotations

import copy
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import check_scoring

from hikernel.bases.parameters import check_integer
from hikernel.engines.protocol import FloatArray
from hikernel.estimators.base import HKLEstimator
from hikernel.estimators.graph_input import as_it_is
from hikernel.estimators.progress import PathProgress
from hikernel.estimators.validation import (
    check_alphas,
    check_choice,
    check_number,
    outside_level,
)
from hikernel.frames import take_rows
from hikernel.graphs import take
from hikernel.losses import Loss
from hikernel.reduced import WarmStart
from hikernel.selection import (
    Fitted,
    SearchSettings,
    TrainingProblem,
    alpha_grid,
    check_folds,
    comparable_refits,
    compute_path,
    cross_validate,
    refit,
)

__all__ = ["CrossValidatedEstimator"]

_LEAST_PROOF_SECONDS = 5.0
_PROOF_SHARE = 0.25
"""Time for the proof, as a share of what path, folds and refits took."""


@dataclass(frozen=True)
class LossScore:
    """Minus the mean loss of the held-out rows."""

    problem: TrainingProblem

    def __call__(self, fitted: Fitted, rows: NDArray[np.intp]) -> float:
        """Return the score of a model on some rows."""
        problem = self.problem
        f = fitted.model.predict(fitted.design, problem.X[rows])
        weights = problem.engine.row_weights[rows]
        losses = problem.loss.value(problem.y[rows], (f - problem.center) / problem.scale)
        return -float(weights @ losses) / float(np.sum(weights))


@dataclass(frozen=True)
class ScorerScore:
    """A scikit-learn scorer, asked about a fitted copy of the estimator.

    It is given rows of the table of the user, not of its matrix, and weights where it asks for
    them (``set_score_request``).
    """

    estimator: CrossValidatedEstimator
    problem: TrainingProblem
    scorer: Callable[..., float]
    table: Any
    labels: NDArray[Any]
    weights: FloatArray | None

    def __call__(self, fitted: Fitted, rows: NDArray[np.intp]) -> float:
        """Return the score of a model on some rows."""
        model = self.estimator._with_model(self.problem, fitted)
        where = np.flatnonzero(self.problem.used)[rows]
        more = {} if self.weights is None else {"sample_weight": self.weights[rows]}
        some = take_rows if self.estimator.graph is None else take
        return float(self.scorer(model, some(self.table, where), self.labels[where], **more))


def _asks_for_weights(scorer: Any) -> bool:
    """Whether a scorer was told by ``set_score_request`` to take sample weights."""
    if not hasattr(scorer, "get_metadata_routing"):
        return False
    return scorer.get_metadata_routing().score.requests.get("sample_weight") is True


class CrossValidatedEstimator(HKLEstimator):
    """Base of the estimators that choose alpha and refit by cross-validation."""

    def _check_parameters(self) -> SearchSettings:
        settings = super()._check_parameters()
        check_integer("n_alphas", self.n_alphas, 1)
        check_number("eps", self.eps, above=0.0, below=1.0)
        check_choice("rule", self.rule, ["best", "one_se"])
        if self.n_jobs == 0:
            raise ValueError("n_jobs must not be 0; pass None or 1 for one process, -1 for all.")
        check_alphas(self.alphas)
        return settings

    def _refits(self, problem: TrainingProblem) -> list[str | None]:
        if self.refit == "auto":
            return comparable_refits(problem)
        return [self.refit]

    def _fit_cv(
        self,
        table: Any,
        X: Any,
        y: FloatArray,
        labels: NDArray[Any],
        weights: FloatArray,
        loss: Loss,
        settings: SearchSettings,
        folds: list[tuple[NDArray[np.intp], NDArray[np.intp]]],
    ) -> None:
        """Choose alpha and refit, solve there with a proof, and set the fitted attributes."""
        began = time.monotonic()
        problem = self._training_problem(X, y, weights, loss)
        self._check_refit(problem)
        kept = self._used_folds(problem, folds)
        score = self._score(problem, table, labels)
        names = list(self._names)
        unproven = replace(settings, certify="none", time_budget=None)
        grid = alpha_grid(problem, self.n_alphas, self.eps) if self.alphas is None else self.alphas
        alphas = sorted((float(a) for a in grid), reverse=True)
        with PathProgress(len(alphas), enabled=self.verbose > 0) as progress:
            path = compute_path(problem, alphas, unproven, names, self._respond(loss), progress)
        results = cross_validate(
            problem,
            [point.model.alpha for point in path.points],
            unproven,
            kept,
            self._refits(problem),
            score,
            self.n_jobs,
        )
        choice = results.one_standard_error() if self.rule == "one_se" else results.best()
        start = path.points[choice.position].model
        spent = time.monotonic() - began
        seconds = self.time_budget or max(_LEAST_PROOF_SECONDS, _PROOF_SHARE * spent)
        model = problem.solve(
            start.alpha,
            replace(settings, time_budget=seconds),
            start=(start.nodes, WarmStart(start.eta, start.coef / problem.scale)),
        )
        fitted = refit(choice.refit, problem, model)
        if fitted is None:
            warnings.warn(
                f"refit={choice.refit!r} was chosen on the folds but has too many terms on all "
                "rows; the model keeps the coefficients of the convex problem.",
                UserWarning,
                stacklevel=outside_level(),
            )
            fitted = Fitted(model, problem.design)
        self._store(problem, fitted)
        self._warn(model)
        self.path_ = replace(path, read=self._reader())
        self.alpha_ = start.alpha
        self.refit_ = fitted.refit
        self.cv_results_ = results.results()
        self.best_score_ = float(results.means[results.refits.index(choice.refit), choice.position])
        self.n_splits_ = len(kept)

    @staticmethod
    def _folds(
        splitter: Any, X: Any, y: NDArray[Any], groups: Any
    ) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        """Return what a splitter gives."""
        try:
            return list(splitter.split(X, y, groups))
        except TypeError:
            raise ValueError(
                "cv must be a number of folds, a splitter, or pairs (train, test) of row numbers, "
                f"got {splitter.cv if hasattr(splitter, 'cv') else splitter!r}."
            ) from None

    @staticmethod
    def _used_folds(
        problem: TrainingProblem, folds: list[tuple[NDArray[np.intp], NDArray[np.intp]]]
    ) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        """Return the folds as positions among the rows of positive weight, checked."""
        position = np.full(len(problem.used), -1, dtype=np.intp)
        position[problem.used] = np.arange(int(np.sum(problem.used)))
        kept = []
        for k, fold in enumerate(folds):
            try:
                train, test = (position[np.asarray(rows)] for rows in fold)
            except (IndexError, TypeError, ValueError):
                raise ValueError(
                    f"Fold {k} of cv must be a pair (train, test) of row numbers from 0 to "
                    f"{len(position) - 1} or of boolean masks."
                ) from None
            kept.append((train[train >= 0], test[test >= 0]))
        check_folds(problem, kept)
        return kept

    def _reader(self) -> Callable[[Any], Any]:
        """Return what turns new rows into what the design takes."""
        return self.columns_.transform if self.graph is None else as_it_is

    def _respond(self, loss: Loss) -> Callable[[FloatArray], NDArray[Any]]:
        """Return what turns f(x) into predictions."""
        return loss.predict_mean

    def _score(self, problem: TrainingProblem, table: Any, labels: NDArray[Any]) -> Any:
        if self.scoring is None:
            return LossScore(problem)
        scorer = check_scoring(self, scoring=self.scoring)
        weights = problem.engine.row_weights if _asks_for_weights(scorer) else None
        return ScorerScore(self, problem, scorer, table, labels, weights)

    def _with_model(self, problem: TrainingProblem, fitted: Fitted) -> CrossValidatedEstimator:
        """Return a copy that predicts with a model, for a scorer."""
        out = copy.copy(self)
        out._store(problem, fitted)
        return out
