"""HKLRegressorCV and HKLClassifierCV: alpha and refit chosen by cross-validation."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import KFold, StratifiedKFold, check_cv

from hikernel.estimators.classifier import ClassPredictions
from hikernel.estimators.comparison import CrossValidatedEstimator
from hikernel.estimators.labels import keep_classes
from hikernel.estimators.parameters import ChoiceParameters, documented
from hikernel.estimators.regressor import NumberPredictions
from hikernel.estimators.training_data import TrainingData
from hikernel.selection import Fold

__all__ = ["HKLClassifierCV", "HKLRegressorCV", "split_rows"]


def split_rows(splitter: Any, X: Any, y: NDArray[Any], groups: Any) -> list[Fold]:
    """Return the folds of a splitter as a list; raise if it is not a valid splitter."""
    try:
        return list(splitter.split(X, y, groups))
    except TypeError:
        raise ValueError(
            "cv must be a number of folds, a splitter, or pairs (train, test) of row numbers, "
            f"got {splitter.cv if hasattr(splitter, 'cv') else splitter!r}."
        ) from None


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

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        groups: Any = None,
        offset: Any = None,
        exposure: Any = None,
    ) -> HKLRegressorCV:
        """Fit the model.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            Numbers, booleans and categories, with or without missing values. No scaling is
            needed. A sparse X holds numbers, and is not filled in.
        y : array-like of shape (n_samples,)
            Target.
        sample_weight : array-like of shape (n_samples,), optional
            Weights, zero or positive, in the fits and in the default score.
        groups : array-like of shape (n_samples,), optional
            Passed to the splitter.
        offset : array-like of shape (n_samples,), optional
            Known numbers on the scale of f, one per row: f(x) is the offset, plus the intercept,
            plus the terms. ``predict`` needs those of its own rows.
        exposure : array-like of shape (n_samples,), optional
            Positive numbers that means are proportional to, such as years insured, for the losses
            with a logarithmic link: log(exposure) is added to the offset.

        Returns
        -------
        HKLRegressorCV
            The fitted estimator.
        """
        self._fit(X, y, sample_weight, groups, offset, exposure)
        return self

    def _splits(self, X: Any, data: TrainingData, groups: Any) -> list[Fold]:
        cv = self.cv
        if isinstance(cv, (int, np.integer)):
            cv = KFold(int(cv), shuffle=True, random_state=self._seed())
        return split_rows(check_cv(cv), X, data.y, groups)


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

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None, offset: Any = None
    ) -> HKLClassifierCV:
        """Fit the model.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            Numbers, booleans and categories, with or without missing values. No scaling is
            needed. A sparse X holds numbers, and is not filled in.
        y : array-like of shape (n_samples,)
            Labels of any type.
        sample_weight : array-like of shape (n_samples,), optional
            Weights, zero or positive, in the fits and in the default score.
        groups : array-like of shape (n_samples,), optional
            Passed to the splitter.
        offset : array-like of shape (n_samples,), or (n_samples, n_classes), optional
            Known numbers on the scale of f, one per row: f(x) is the offset, plus the intercept,
            plus the terms. With more than two classes, one per class in the order of ``classes_``.

        Returns
        -------
        HKLClassifierCV
            The fitted estimator.
        """
        self._fit(X, y, sample_weight, groups, offset)
        return self

    def _splits(self, X: Any, data: TrainingData, groups: Any) -> list[Fold]:
        cv, y = self.cv, data.y
        if isinstance(cv, (int, np.integer)):
            cv = StratifiedKFold(int(cv), shuffle=True, random_state=self._seed())
        folds = split_rows(check_cv(cv, y, classifier=True), X, y, groups)
        if cv is not self.cv:
            folds = [keep_classes(train, test, y, data.weights) for train, test in folds]
        return folds
