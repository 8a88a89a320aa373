"""HKLClassifier: hierarchical kernel learning for classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin

from hikernel.engines.protocol import FloatArray
from hikernel.estimators.base import HKLEstimator
from hikernel.estimators.labels import Labels, weigh_classes
from hikernel.losses import LogLoss

__all__ = ["ClassPredictions", "HKLClassifier"]


class ClassPredictions(ClassifierMixin, HKLEstimator):  # type: ignore[misc]  # untyped base
    """Labels, probabilities and decision values of a fitted estimator."""

    _labels: Labels

    def decision_function(self, X: Any) -> FloatArray:
        """Return f(x) for the rows of X.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows with the columns of the training data.

        Returns
        -------
        ndarray of shape (n_samples,), or (n_samples, n_classes) for more than two classes
        """
        return self._decide(X)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the labels that f(x) chooses.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows with the columns of the training data.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        f = self._decide(X)
        return self._labels.choose(f)

    @property
    def predict_proba(self) -> Callable[[Any], FloatArray]:
        """Function of X, shape (n_samples, n_features): probabilities, (n_samples, n_classes).

        In the order of ``classes_``; with the log loss only.
        """
        self._require_probabilities()
        return self._probabilities

    @property
    def predict_log_proba(self) -> Callable[[Any], FloatArray]:
        """Function of X: the logarithms of the probabilities, with the log loss only."""
        self._require_probabilities()
        return self._log_probabilities

    def _require_probabilities(self) -> None:
        """Raise an AttributeError, so that ``hasattr`` says no, for losses without any."""
        if getattr(self.loss, "name", self.loss) != LogLoss.name:
            raise AttributeError(
                f'The loss {self.loss!r} gives no probabilities; use loss="log_loss", or wrap the '
                "classifier in sklearn.calibration.CalibratedClassifierCV."
            )

    def _probabilities(self, X: Any) -> FloatArray:
        f = self._decide(X)
        return self._labels.probabilities(f)

    def _log_probabilities(self, X: Any) -> FloatArray:
        f = self._decide(X)
        if f.ndim == 1:
            f = np.column_stack([np.zeros_like(f), f])
        return np.asarray(f - np.logaddexp.reduce(f, axis=1)[:, None])


class HKLClassifier(ClassPredictions):
    """Sparse nonlinear classification over all products of one-variable functions.

    Solves the convex problem of :class:`~hikernel.HKLRegressor` with a classification loss. Two
    classes have one function f, whose sign decides. More classes have a function each with the
    terms in common: one hull, one norm over the coefficients of all classes, one certificate. The
    log loss is then multinomial, the hinge losses are one-vs-rest.

    Parameters
    ----------
    alpha : float, default=0.01
        Regularisation strength.
    loss : {"log_loss", "hinge", "squared_hinge"} or Loss, default="log_loss"
        log(1 + exp(-y f)) with probabilities, max(1 - y f, 0) as in support vector machines, or
        half the square of that.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, which multiply ``sample_weight``; "balanced" gives every class
        the same total.
    graph, basis, categorical, degree, max_order, weight_base, root_weight, search, max_kernels, \
tol, certify, refit, time_budget, random_state, verbose
        As for :class:`~hikernel.HKLRegressor`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    coef_ : ndarray of shape (n_columns,), or (n_columns, n_classes) for more than two classes
        Coefficients of the selected terms' features, blocks in the order of ``hull_``.
    intercept_ : float, or ndarray of shape (n_classes,)
        b.
    dual_coef_ : ndarray of shape (n_samples,) or (n_samples, n_classes)
        Dual variables.
    hull_, certificate_, nodes_, graph_, bases_, columns_, loss_, history_, \
n_iter_, n_features_in_, feature_names_in_
        As for :class:`~hikernel.HKLRegressor`.

    Examples
    --------
    >>> import numpy as np
    >>> from hikernel import HKLClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(400, 6))
    >>> y = np.where(X[:, 0] * X[:, 1] + 0.1 * rng.standard_normal(400) > 0, "yes", "no")
    >>> model = HKLClassifier(alpha=0.01).fit(X, y)
    >>> sorted(model.hull_["term"])
    ['1', 'x0', 'x0 * x1', 'x1']
    >>> model.predict([[0.5, 0.5, 0, 0, 0, 0], [0.5, -0.5, 0, 0, 0, 0]])
    array(['yes', 'no'], dtype='<U3')
    """

    def __init__(
        self,
        alpha: float = 0.01,
        *,
        loss: Any = "log_loss",
        class_weight: Any = None,
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
        refit: str | None = None,
        time_budget: float | None = None,
        random_state: Any = 0,
        verbose: int = 0,
    ) -> None:
        self.alpha = alpha
        self.loss = loss
        self.class_weight = class_weight
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
        self.refit = refit
        self.time_budget = time_budget
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> HKLClassifier:
        """Fit the model.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Numbers, booleans and categories, with or without missing values. No scaling is
            needed.
        y : array-like of shape (n_samples,)
            Labels of any type.
        sample_weight : array-like of shape (n_samples,), optional
            Weights, zero or positive; an integer weight equals a repeated row.

        Returns
        -------
        HKLClassifier
            The fitted estimator.
        """
        settings = self._check_parameters()
        X, y, weights = self._check_data(X, y, sample_weight, labels=True)
        labels, target = Labels.of(y, weights, self.loss)
        weights = weigh_classes(weights, y, self.class_weight)
        self._labels = labels
        self.classes_ = labels.classes
        self._fit_terms(X, target, weights, labels.loss, settings)
        if target.ndim == 1:
            self.intercept_ = float(self._model.intercept)
        return self
