"""HKLRegressorCV and HKLClassifierCV: alpha and refit chosen by cross-validation."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import check_scoring
from sklearn.model_selection import KFold, StratifiedKFold, check_cv
from sklearn.utils.validation import check_random_state

from hikernel.checks import check_choice, outside_level
from hikernel.engines.protocol import FloatArray
from hikernel.errors import OutOfTime
from hikernel.estimators.classifier import ClassPredictions, keep_classes
from hikernel.estimators.estimator import HKLEstimator, TrainingData, check_refit_name
from hikernel.estimators.parameters import ChoiceParameters, documented
from hikernel.estimators.path import Path, check_alphas, path_lams
from hikernel.estimators.regressor import NumberPredictions
from hikernel.graphs import take
from hikernel.search import SearchSettings
from hikernel.selection import (
    Choice,
    CrossValidation,
    Fitted,
    Fold,
    TrainingProblem,
    check_folds,
    comparable_refits,
    cross_validate,
    refit,
    without_proof,
)

__all__ = ["CrossValidatedEstimator", "HKLClassifierCV", "HKLRegressorCV"]

_LEAST_PROOF_WORK = 5e10
_PROOF_SHARE = 2.0
"""Work that a proof may do, relative to the cross-validation; at least ``_LEAST_PROOF_WORK``, a few
seconds. Twice the count takes about the same time: bounds are large matrix products, searches are
many small ones."""

RULES: dict[str, Callable[[CrossValidation], Choice]] = {
    "sparse": CrossValidation.sparse,
    "best": CrossValidation.best,
    "one_se": CrossValidation.one_standard_error,
}
"""How one pair of alpha and refit is picked from the scores."""


@dataclass(frozen=True)
class LossScore:
    """Minus the mean loss of the held-out rows."""

    problem: TrainingProblem

    def __call__(self, fitted: Fitted, rows: NDArray[np.intp]) -> float:
        """Return the score of a fitted model on the given rows."""
        problem = self.problem
        f = fitted.model.predict(fitted.design, problem.rows[rows])
        weights = problem.engine.row_weights[rows]
        losses = problem.loss.value(problem.y[rows], (f - problem.center) / problem.scale)
        return -float(weights @ losses) / float(np.sum(weights))


@dataclass(frozen=True)
class ScorerScore:
    """Score from a scikit-learn scorer, called with a fitted copy of the estimator.

    The scorer gets rows of X as the user passed it, not of the encoded matrix. It gets sample
    weights only if it requests them (``set_score_request``).
    """

    estimator: CrossValidatedEstimator
    problem: TrainingProblem
    scorer: Callable[..., float]
    table: Any
    labels: NDArray[Any]
    weights: FloatArray | None

    def __call__(self, fitted: Fitted, rows: NDArray[np.intp]) -> float:
        """Return the score of a fitted model on the given rows."""
        model = copy.copy(self.estimator)
        model._set_fitted(fitted, self.problem.loss, self.problem.graph)
        where = np.flatnonzero(self.problem.used)[rows]
        more = {} if self.weights is None else {"sample_weight": self.weights[rows]}
        return float(self.scorer(model, take(self.table, where), self.labels[where], **more))


class CrossValidatedEstimator(HKLEstimator):
    """Base class of the estimators that choose alpha and refit by cross-validation."""

    alphas: Any
    n_alphas: int
    eps: float | None
    cv: Any
    scoring: Any
    rule: str
    refit: str | None
    n_jobs: int | None

    def _check_parameters(self) -> SearchSettings:
        settings = super()._check_parameters()
        check_alphas(self.alphas, self.n_alphas, self.eps)
        check_refit_name(self.refit)
        check_choice("rule", self.rule, list(RULES))
        if self.n_jobs == 0:
            raise ValueError("n_jobs must not be 0; pass None or 1 for one process, -1 for all.")
        return settings

    def _splits(self, X: Any, data: TrainingData, groups: Any) -> list[Fold]:
        """Return the folds as pairs (train, test) of row numbers."""
        raise NotImplementedError

    def _respond(self, problem: TrainingProblem) -> Callable[[FloatArray], NDArray[Any]]:
        """Return the function that turns f(x) into predictions."""
        return problem.loss.predict_mean

    def _fit(self, X: Any, y: Any, sample_weight: Any, groups: Any) -> None:
        """Choose alpha and refit, solve with a proof at that alpha, set the fitted attributes."""
        settings = self._start_fit()
        with self._time_limit():
            data = self._read_data(X, y, sample_weight)
            splits = self._splits(X, data, groups)
            problem = self._training_problem(data, settings)
            if self.refit != "auto":
                self._check_refit(self.refit, problem)
            folds = _used_folds(problem, splits)
            lams = path_lams(problem, self.alphas, self.n_alphas, self.eps)
            with self._path_progress(len(lams)) as progress:
                results, path = cross_validate(
                    problem,
                    lams,
                    replace(settings, certify="none"),
                    folds,
                    comparable_refits(problem) if self.refit == "auto" else [self.refit],
                    self._score(problem, X, data.y),
                    until_turned=self.alphas is None and self.eps is None,
                    n_jobs=self.n_jobs,
                    callback=progress,
                )
            if len(results.lams) > 0:
                choice = RULES[self.rule](results)
                last = results.best().position == len(path) - 1
                score = float(results.means[results.refits.index(choice.refit), choice.position])
            else:  # the time budget was spent before every fold had a model
                choice, last, score = Choice(path.least_error(), None), True, np.nan
            start = path.points[choice.position].model
            work = max(_LEAST_PROOF_WORK, _PROOF_SHARE * results.work)
            try:
                selected = problem.solve(start.lam, replace(settings, max_work=work), start=start)
            except OutOfTime:
                selected = without_proof(start)
        fitted = refit(choice.refit, problem, selected)
        if fitted is None:
            warnings.warn(
                f"refit={choice.refit!r} was chosen on the folds but has too many terms on all "
                "rows; the model keeps the coefficients of the convex problem.",
                UserWarning,
                stacklevel=outside_level(),
            )
            fitted = Fitted(selected, selected, problem.design)
        self._set_fitted(fitted, problem.loss, problem.graph)
        self._warn(selected)
        self._warn_of_end(results.end, len(lams) > 1 and last)
        self.path_ = Path(path.points, path.end, problem.design, self._respond(problem))
        self.cv_results_ = results.results()
        self.best_score_ = score
        self.n_splits_ = len(folds)

    def _seed(self) -> int:
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _score(self, problem: TrainingProblem, table: Any, labels: NDArray[Any]) -> Any:
        if self.scoring is None:
            return LossScore(problem)
        scorer = check_scoring(self, scoring=self.scoring)
        weights = problem.engine.row_weights if _asks_for_weights(scorer) else None
        return ScorerScore(self, problem, scorer, table, labels, weights)


def _asks_for_weights(scorer: Any) -> bool:
    """Return whether a scorer requests sample weights (``set_score_request``)."""
    if not hasattr(scorer, "get_metadata_routing"):
        return False
    return scorer.get_metadata_routing().score.requests.get("sample_weight") is True


def _split(splitter: Any, X: Any, y: NDArray[Any], groups: Any) -> list[Fold]:
    """Return the folds of a splitter as a list; raise if it is not a valid splitter."""
    try:
        return list(splitter.split(X, y, groups))
    except TypeError:
        raise ValueError(
            "cv must be a number of folds, a splitter, or pairs (train, test) of row numbers, "
            f"got {splitter.cv if hasattr(splitter, 'cv') else splitter!r}."
        ) from None


def _used_folds(problem: TrainingProblem, folds: list[Fold]) -> list[Fold]:
    """Check the folds, and convert row numbers to positions among the rows of positive weight.

    Rows of weight zero are dropped.
    """
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


@documented
@dataclass(eq=False, repr=False, kw_only=True)
class HKLRegressorCV(NumberPredictions, CrossValidatedEstimator, ChoiceParameters):
    """Sparse nonlinear regression, alpha and refit chosen by cross-validation.

    The path of :func:`~hikernel.hkl_path` is solved on all rows, and on the training rows of every
    fold. Each model of a fold is refitted in every way that ``refit`` allows, and scored on the
    test rows of the fold. The problem at the chosen alpha is then solved again on all rows, with a
    proof, and refitted in the chosen way.

    Parameters
    ----------
    loss : str or Loss, default="squared_error"
        As for :class:`~hikernel.HKLRegressor`.
    {parameters}

    Attributes
    ----------
    alpha_ : float
        The chosen alpha.
    refit_ : str or None
        The chosen refit; None also if the chosen refit has too many terms on all rows.
    path_ : Path
        The path on all rows.
    cv_results_ : dict of ndarray
        Arrays with one entry per pair of alpha and refit: alpha, refit, mean_terms,
        mean_test_score, std_test_score, rank_test_score, and the score of every fold.
    best_score_ : float
        Mean score of the chosen pair; NaN if a time budget ended before every fold had a model.
    n_splits_ : int
        Number of folds.
    hull_, terms_, certificate_, coef_, intercept_, dual_coef_, nodes_, graph_, bases_, columns_, \
loss_, history_, n_iter_, n_features_in_, feature_names_in_
        As for :class:`~hikernel.HKLRegressor`.

    Examples
    --------
    >>> import numpy as np
    >>> from hikernel import HKLRegressorCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(200, 6))
    >>> y = X[:, 0] + 2 * X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(200)
    >>> model = HKLRegressorCV(rule="one_se").fit(X, y)
    >>> model.score(X, y) > 0.98
    True
    """

    loss: Any = field(default="squared_error")

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> HKLRegressorCV:
        """Fit the model.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Numbers, booleans and categories, with or without missing values. No scaling is
            needed.
        y : array-like of shape (n_samples,)
            Target.
        sample_weight : array-like of shape (n_samples,), optional
            Weights, zero or positive, in the fits and in the default score.
        groups : array-like of shape (n_samples,), optional
            Passed to the splitter.

        Returns
        -------
        HKLRegressorCV
            The fitted estimator.
        """
        self._fit(X, y, sample_weight, groups)
        return self

    def _splits(self, X: Any, data: TrainingData, groups: Any) -> list[Fold]:
        cv = self.cv
        if isinstance(cv, (int, np.integer)):
            cv = KFold(int(cv), shuffle=True, random_state=self._seed())
        return _split(check_cv(cv), X, data.y, groups)


@documented
@dataclass(eq=False, repr=False, kw_only=True)
class HKLClassifierCV(ClassPredictions, CrossValidatedEstimator, ChoiceParameters):
    """Sparse nonlinear classification, alpha and refit chosen by cross-validation.

    The procedure is that of :class:`~hikernel.HKLRegressorCV`, for the problem of
    :class:`~hikernel.HKLClassifier`.

    Parameters
    ----------
    loss : {"log_loss", "hinge", "squared_hinge"} or Loss, default="log_loss"
        As for :class:`~hikernel.HKLClassifier`.
    {parameters}

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    alpha_, refit_, path_, cv_results_, best_score_, n_splits_
        As for :class:`~hikernel.HKLRegressorCV`.
    hull_, terms_, certificate_, coef_, intercept_, dual_coef_, nodes_, graph_, bases_, columns_, \
loss_, history_, n_iter_, n_features_in_, feature_names_in_
        As for :class:`~hikernel.HKLClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hikernel import HKLClassifierCV
    >>> X, y = load_iris(return_X_y=True)
    >>> HKLClassifierCV(refit="ridge").fit(X, y).score(X, y) > 0.95
    True
    """

    loss: Any = field(default="log_loss")
    class_weight: Any = field(default=None)

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> HKLClassifierCV:
        """Fit the model.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Numbers, booleans and categories, with or without missing values. No scaling is
            needed.
        y : array-like of shape (n_samples,)
            Labels of any type.
        sample_weight : array-like of shape (n_samples,), optional
            Weights, zero or positive, in the fits and in the default score.
        groups : array-like of shape (n_samples,), optional
            Passed to the splitter.

        Returns
        -------
        HKLClassifierCV
            The fitted estimator.
        """
        self._fit(X, y, sample_weight, groups)
        return self

    def _splits(self, X: Any, data: TrainingData, groups: Any) -> list[Fold]:
        cv, y = self.cv, data.y
        if isinstance(cv, (int, np.integer)):
            cv = StratifiedKFold(int(cv), shuffle=True, random_state=self._seed())
        folds = _split(check_cv(cv, y, classifier=True), X, y, groups)
        if cv is not self.cv:
            folds = [keep_classes(train, test, y, data.weights) for train, test in folds]
        return folds

    def _respond(self, problem: TrainingProblem) -> Callable[[FloatArray], NDArray[Any]]:
        return self._labels.choose
