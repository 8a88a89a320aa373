"""HKLRegressorCV and HKLClassifierCV: alpha and refit by cross-validation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import KFold, StratifiedKFold, check_cv
from sklearn.utils.validation import check_random_state

from hikernel.engines.protocol import FloatArray
from hikernel.estimators.classifier import ClassPredictions
from hikernel.estimators.cross_validated import CrossValidatedEstimator
from hikernel.estimators.labels import Labels, keep_classes, weigh_classes
from hikernel.estimators.regressor import NumberPredictions
from hikernel.losses import REGRESSION, Loss, make_loss

__all__ = ["HKLClassifierCV", "HKLRegressorCV"]


class HKLRegressorCV(NumberPredictions, CrossValidatedEstimator):
    """Sparse nonlinear regression, alpha and refit chosen by cross-validation.

    The path of :func:`~hikernel.hkl_path` is solved on all rows and on the training rows of every
    fold; each of its models is scored as it is and refitted; the best pair is solved once more on
    all rows, with a proof, and refitted.

    Parameters
    ----------
    loss : str or Loss, default="squared_error"
        As for :class:`~hikernel.HKLRegressor`.
    alphas : sequence of float, optional
        Regularisation strengths; by default ``n_alphas`` values from the data.
    n_alphas : int, default=20
        Length of the automatic grid.
    eps : float, default=1e-5
        Last over first alpha of the automatic grid.
    cv : int, splitter or iterable, default=5
        Folds. A number means that many shuffled folds.
    scoring : str, callable or None, default=None
        What is maximised; None is minus the mean loss.
    rule : {"best", "one_se"}, default="best"
        Take the best mean score, or the largest alpha within one standard error of it.
    refit : {"auto", None, "ridge", "unpenalised", "variables"}, default="auto"
        How the selected terms are estimated: None keeps the coefficients of the convex problem,
        "ridge" fits the selected terms again with a penalty of its own (strength by
        leave-one-out), "unpenalised" without one, "variables" fits them and all products of the
        selected variables up to total degree 6, while these are a dozen at most. "auto" compares
        None, "ridge" and "variables" in the same cross-validation. The certificate speaks of
        the convex problem that selected the terms, and says so.
    graph, basis, categorical, degree, max_order, weight_base, root_weight, search, max_kernels, \
tol, certify, random_state, verbose
        As for :class:`~hikernel.HKLRegressor`; ``random_state`` also shuffles the folds.
    time_budget : float, optional
        Seconds for the proof at the end; by default a quarter of what everything before took,
        and five seconds at least. A model whose proof was cut short warns.
    n_jobs : int, optional
        Processes for the folds, through joblib.

    Attributes
    ----------
    alpha_ : float
        The chosen alpha.
    refit_ : str or None
        The chosen refit.
    path_ : Path
        The path over all rows.
    cv_results_ : dict of ndarray
        One entry per alpha and refit: alpha, refit, mean_terms, mean_test_score, std_test_score,
        rank_test_score, and the score of every fold.
    best_score_ : float
        Mean score of the chosen pair.
    hull_, certificate_, coef_, intercept_, nodes_, graph_, bases_, columns_, \
loss_, history_
        As for :class:`~hikernel.HKLRegressor`: ``hull_`` and ``coef_`` are those of the model that
        predicts, the certificate is that of the convex problem.

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

    def __init__(
        self,
        *,
        loss: Any = "squared_error",
        alphas: Any = None,
        n_alphas: int = 20,
        eps: float = 1e-5,
        cv: Any = 5,
        scoring: Any = None,
        rule: str = "best",
        refit: str | None = "auto",
        graph: Any = None,
        basis: Any = "auto",
        categorical: Any = None,
        degree: int = 4,
        max_order: int | None = None,
        weight_base: float = 2.0,
        root_weight: float = 1.0,
        search: str = "lookahead",
        max_kernels: int = 600,
        tol: float = 1e-3,
        certify: str = "auto",
        time_budget: float | None = None,
        n_jobs: int | None = None,
        random_state: Any = 0,
        verbose: int = 0,
    ) -> None:
        self.loss = loss
        self.alphas = alphas
        self.n_alphas = n_alphas
        self.eps = eps
        self.cv = cv
        self.scoring = scoring
        self.rule = rule
        self.refit = refit
        self.graph = graph
        self.basis = basis
        self.categorical = categorical
        self.degree = degree
        self.max_order = max_order
        self.weight_base = weight_base
        self.root_weight = root_weight
        self.search = search
        self.max_kernels = max_kernels
        self.tol = tol
        self.certify = certify
        self.time_budget = time_budget
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

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
            Given to the splitter.

        Returns
        -------
        HKLRegressorCV
            The fitted estimator.
        """
        settings = self._check_parameters()
        loss = make_loss(self.loss, REGRESSION)
        matrix, y, weights = self._check_data(X, y, sample_weight)
        cv = self.cv
        if isinstance(cv, (int, np.integer)):
            cv = KFold(int(cv), shuffle=True, random_state=self._seed())
        folds = self._folds(check_cv(cv), matrix, y, groups)
        self._fit_cv(X, matrix, y, y, weights, loss, settings, folds)
        self.intercept_ = float(self._model.intercept)
        return self

    def _seed(self) -> int:
        return int(check_random_state(self.random_state).randint(2**31 - 1))


class HKLClassifierCV(ClassPredictions, CrossValidatedEstimator):
    """Sparse nonlinear classification, alpha and refit chosen by cross-validation.

    Parameters
    ----------
    loss : {"log_loss", "hinge", "squared_hinge"} or Loss, default="log_loss"
        As for :class:`~hikernel.HKLClassifier`.
    class_weight : dict, "balanced" or None, default=None
        As for :class:`~hikernel.HKLClassifier`.
    alphas, n_alphas, eps, cv, scoring, rule, refit, graph, basis, categorical, degree, max_order, \
weight_base, root_weight, search, max_kernels, tol, certify, time_budget, n_jobs, random_state, \
verbose
        As for :class:`~hikernel.HKLRegressorCV`. A number of folds means stratified ones, in
        which a class too rare for them is trained on in every fold. Refits need a smooth
        loss (not "hinge"); "auto" leaves them out elsewhere.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    alpha_, refit_, path_, cv_results_, best_score_, hull_, certificate_, coef_, intercept_, \
nodes_, graph_, bases_, columns_, loss_, history_
        As for :class:`~hikernel.HKLRegressorCV`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hikernel import HKLClassifierCV
    >>> X, y = load_iris(return_X_y=True)
    >>> HKLClassifierCV(n_alphas=8).fit(X, y).score(X, y) > 0.95
    True
    """

    def __init__(
        self,
        *,
        loss: Any = "log_loss",
        class_weight: Any = None,
        alphas: Any = None,
        n_alphas: int = 20,
        eps: float = 1e-5,
        cv: Any = 5,
        scoring: Any = None,
        rule: str = "best",
        refit: str | None = "auto",
        graph: Any = None,
        basis: Any = "auto",
        categorical: Any = None,
        degree: int = 4,
        max_order: int | None = None,
        weight_base: float = 2.0,
        root_weight: float = 1.0,
        search: str = "lookahead",
        max_kernels: int = 600,
        tol: float = 1e-3,
        certify: str = "auto",
        time_budget: float | None = None,
        n_jobs: int | None = None,
        random_state: Any = 0,
        verbose: int = 0,
    ) -> None:
        self.loss = loss
        self.class_weight = class_weight
        self.alphas = alphas
        self.n_alphas = n_alphas
        self.eps = eps
        self.cv = cv
        self.scoring = scoring
        self.rule = rule
        self.refit = refit
        self.graph = graph
        self.basis = basis
        self.categorical = categorical
        self.degree = degree
        self.max_order = max_order
        self.weight_base = weight_base
        self.root_weight = root_weight
        self.search = search
        self.max_kernels = max_kernels
        self.tol = tol
        self.certify = certify
        self.time_budget = time_budget
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

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
            Given to the splitter.

        Returns
        -------
        HKLClassifierCV
            The fitted estimator.
        """
        settings = self._check_parameters()
        matrix, y, weights = self._check_data(X, y, sample_weight, labels=True)
        self._labels, target = Labels.of(y, weights, self.loss)
        self.classes_ = self._labels.classes
        weights = weigh_classes(weights, y, self.class_weight)
        cv = self.cv
        if isinstance(cv, (int, np.integer)):
            seed = int(check_random_state(self.random_state).randint(2**31 - 1))
            cv = StratifiedKFold(int(cv), shuffle=True, random_state=seed)
        folds = self._folds(check_cv(cv, y, classifier=True), matrix, y, groups)
        if cv is not self.cv:
            folds = [keep_classes(train, test, y, weights) for train, test in folds]
        self._fit_cv(X, matrix, target, y, weights, self._labels.loss, settings, folds)
        if target.ndim == 1:
            self.intercept_ = float(self._model.intercept)
        return self

    def _respond(self, loss: Loss) -> Callable[[FloatArray], NDArray[Any]]:
        return self._labels.choose
