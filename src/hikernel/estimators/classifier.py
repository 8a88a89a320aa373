"""HKLClassifier: hierarchical kernel learning for classification."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import MethodType
from typing import Any, Literal, Self, overload

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import accuracy_score

from hikernel.checks import check_flag
from hikernel.engines.protocol import FloatArray
from hikernel.estimators.labels import Labels, log_probabilities, weigh_classes
from hikernel.estimators.one_alpha import OneAlphaEstimator
from hikernel.estimators.parameters import documented
from hikernel.estimators.typed_bases import ClassifierMixin
from hikernel.estimators.uncertainty import Uncertainty, function_and_std
from hikernel.losses import CLASSIFICATION, LogLoss, Loss, Multinomial, make_loss

__all__ = ["ClassPredictions", "HKLClassifier"]


class _WithProbabilities:
    """A method of classifiers that exists only with a loss that gives probabilities.

    On the class it is a function, so that scikit-learn finds the metadata in its signature.
    """

    def __init__(self, method: Callable[..., FloatArray]) -> None:
        self._method = method

    def __get__(self, estimator: Any, owner: type | None = None) -> Callable[..., FloatArray]:
        if estimator is None:
            return self._method
        estimator._require_probabilities()
        return MethodType(self._method, estimator)


class ClassPredictions(ClassifierMixin, Uncertainty):
    """Base of the classifiers: predicts labels, probabilities and decision values."""

    loss: Any
    class_weight: Any
    _holds_labels = True
    _labels: Labels

    @overload
    def decision_function(
        self, X: Any, return_std: Literal[False] = False, offset: Any = None
    ) -> FloatArray: ...
    @overload
    def decision_function(
        self, X: Any, return_std: Literal[True], offset: Any = None
    ) -> tuple[FloatArray, FloatArray]: ...
    def decision_function(
        self, X: Any, return_std: bool = False, offset: Any = None
    ) -> FloatArray | tuple[FloatArray, FloatArray]:
        """Return f(x) for the rows of X.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows with the columns of the training data.
        return_std : bool, default=False
            Whether to return the standard deviation of f too, with the selected terms as given;
            only after a refit, and with the log loss.
        offset : array-like of shape (n_samples,), or (n_samples, n_classes), optional
            As in ``fit``, for these rows; zero if it is left out, also if ``fit`` had one.

        Returns
        -------
        ndarray of shape (n_samples,), or (n_samples, n_classes) for more than two classes; or two
        """
        check_flag("return_std", return_std)
        if return_std:
            return function_and_std(self, X, offset)
        return self._raw_predict(X, offset)

    def calibrate(
        self, X: Any, y: Any, *, cv: Any = None, sample_weight: Any = None, offset: Any = None
    ) -> Self:
        """Measure the errors of predictions, for ``predict_set`` (conformal prediction).

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows that were not used in ``fit``; with ``cv``, the training rows.
        y : array-like of shape (n_samples,)
            Their labels.
        cv : int, splitter, or pairs (train, test), optional
            None for split conformal prediction, with new rows. Otherwise the model is fitted again
            on the training rows of every fold, with the alpha and refit that it has, and the
            errors are those of the test rows.
        sample_weight : array-like of shape (n_samples,), optional
            Weights in the fits of ``cv``; errors of rows of weight zero are left out.
        offset : array-like of shape (n_samples,), or (n_samples, n_classes), optional
            As in ``fit``, for these rows.

        Returns
        -------
        Self
            The estimator. ``fit`` drops the calibration; ``save`` keeps it, a number a row.
        """
        return self._calibrate(X, y, cv, sample_weight, False, offset)

    def predict_set(
        self, X: Any, confidence_level: float = 0.9, offset: Any = None
    ) -> NDArray[np.bool_]:
        """Return for every row the set of classes that are possible, after ``calibrate``.

        A class is in the set if its probability is at least a threshold, one for all rows (LAC, the
        least ambiguous sets; with a hinge loss, its f). After ``calibrate(X, y)`` on n rows that
        ``fit`` has not seen, the set holds the label of a new row with probability
        ``confidence_level`` at least, if all these rows are exchangeable: over all classes
        together, not within each. After ``calibrate(X, y, cv=5)`` nothing is guaranteed
        (``docs/uncertainty.md`` has measurements).

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows with the columns of the training data.
        confidence_level : float, default=0.9
            The share of new rows to cover.
        offset : array-like of shape (n_samples,), or (n_samples, n_classes), optional
            As in ``fit``, for these rows.

        Returns
        -------
        ndarray of bool of shape (n_samples, n_classes)
            Which of ``classes_`` are in the set. A row where no class is likely enough has an empty
            set; all classes, with a warning, if there are too few calibration rows for the level.
        """
        threshold = self._quantile(confidence_level, "predict_set")
        return np.asarray(-self._class_values(self._raw_predict(X, offset)) <= threshold)

    def _class_values(self, f: FloatArray) -> FloatArray:
        """Return what orders the classes of each row: log probabilities, or f with a hinge loss."""
        if isinstance(self.loss_, LogLoss | Multinomial):
            return log_probabilities(f)
        return np.column_stack([-f, f]) if f.ndim == 1 else f

    def _scores(self, y: NDArray[Any], f: FloatArray, std: FloatArray | None) -> FloatArray:
        unknown = ~np.isin(y, self.classes_)
        if np.any(unknown):
            raise ValueError(
                f"y has the label {y[unknown].tolist()[0]!r}, which the model does not know; "
                "leave its rows out, or fit with them."
            )
        index = np.searchsorted(self.classes_, y)
        return np.asarray(-self._class_values(f)[np.arange(len(y)), index])

    def predict(self, X: Any, offset: Any = None) -> NDArray[Any]:
        """Return the predicted label of every row of X.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows with the columns of the training data.
        offset : array-like of shape (n_samples,), or (n_samples, n_classes), optional
            As in ``fit``, for these rows; zero if it is left out, also if ``fit`` had one.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        f = self._raw_predict(X, offset)
        return self._labels.choose(f)

    def _respond(self, loss: Loss) -> Callable[[FloatArray], NDArray[Any]]:
        return self._labels.choose

    def score(self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None) -> float:
        """Return the accuracy, the share of the rows whose label ``predict`` gives.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows with the columns of the training data.
        y : array-like of shape (n_samples,)
            Their labels.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows.
        offset : array-like of shape (n_samples,), or (n_samples, n_classes), optional
            As in ``fit``, for these rows; zero if it is left out, also if ``fit`` had one.

        Returns
        -------
        float
        """
        return float(accuracy_score(y, self.predict(X, offset=offset), sample_weight=sample_weight))

    @_WithProbabilities
    def predict_proba(self, X: Any, offset: Any = None) -> FloatArray:
        """Return the probabilities of the classes, in the order of ``classes_``.

        Only the log loss has probabilities; with other losses this attribute does not exist.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows with the columns of the training data.
        offset : array-like of shape (n_samples,), or (n_samples, n_classes), optional
            As in ``fit``, for these rows; zero if it is left out, also if ``fit`` had one.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        f = self._raw_predict(X, offset)
        return self._labels.probabilities(f)

    @_WithProbabilities
    def predict_log_proba(self, X: Any, offset: Any = None) -> FloatArray:
        """Return the logarithms of ``predict_proba``; only with the log loss.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows with the columns of the training data.
        offset : array-like of shape (n_samples,), or (n_samples, n_classes), optional
            As for ``predict_proba``.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return log_probabilities(self._raw_predict(X, offset))

    def _require_probabilities(self) -> None:
        """Raise an AttributeError (``hasattr`` is then False) unless the loss is the log loss."""
        name = getattr(self.loss, "name", self.loss)
        if name != LogLoss.name:
            raise AttributeError(
                f'The loss {name!r} gives no probabilities; use loss="log_loss", or wrap the '
                "classifier in sklearn.calibration.CalibratedClassifierCV."
            )

    def _check_parameters(self) -> Any:
        make_loss(self.loss, CLASSIFICATION)
        return super()._check_parameters()

    def _read_target(
        self, y: NDArray[Any], weights: FloatArray
    ) -> tuple[FloatArray, FloatArray, Loss]:
        self._labels, target = Labels.of(y, weights, self.loss)
        self.classes_ = self._labels.classes
        return target, weigh_classes(weights, y, self.class_weight), self._labels.loss


@documented
@dataclass(eq=False, repr=False)
class HKLClassifier(ClassPredictions, OneAlphaEstimator):
    """Sparse nonlinear classification over all products of one-variable functions.

    Solves the convex problem of :class:`~hikernel.HKLRegressor` with a classification loss. With
    two classes there is one function f, and its sign decides. With more classes there is one
    function per class, and all functions share the same terms: one hull, one norm over the
    coefficients of all classes, one certificate. The log loss is then multinomial, the hinge
    losses are one-vs-rest.

    Parameters
    ----------
    loss : {"log_loss", "hinge", "squared_hinge"} or Loss, default="log_loss"
        "log_loss" is log(1 + exp(-y f)) and gives probabilities. "hinge" is max(1 - y f, 0), as in
        support vector machines. "squared_hinge" is half the square of the hinge loss.
    {parameters}

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    coef_ : ndarray of shape (n_columns,), or (n_columns, n_classes) for more than two classes
        Coefficients of the features of ``nodes_``, one block per node.
    intercept_ : float, or ndarray of shape (n_classes,)
        The intercept b.
    dual_coef_ : ndarray of shape (n_samples,) or (n_samples, n_classes)
        Dual variables.
    hull_, terms_, certificate_, nodes_, graph_, bases_, columns_, loss_, refit_, history_, \
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

    alpha: float | Literal["auto"] = "auto"
    loss: Any = field(default="log_loss", kw_only=True)
    class_weight: Any = field(default=None, kw_only=True)
    refit: str | None = field(default=None, kw_only=True)
    monotone: Any = field(default=None, kw_only=True)
    warm_start: bool = field(default=False, kw_only=True)

    def fit(self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None) -> HKLClassifier:
        """Fit the model.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            Numbers, booleans and categories, with or without missing values. No scaling is
            needed. A sparse X holds numbers, and is not filled in.
        y : array-like of shape (n_samples,)
            Labels of any type.
        sample_weight : array-like of shape (n_samples,), optional
            Weights, zero or positive. With a number for alpha, an integer weight is equivalent to
            repeating the row; alpha="auto" counts rows by how unequal their weights are.
        offset : array-like of shape (n_samples,), or (n_samples, n_classes), optional
            Known numbers on the scale of f, one per row: f(x) is the offset, plus the intercept,
            plus the terms. With more than two classes, one per class in the order of ``classes_``.

        Returns
        -------
        HKLClassifier
            The fitted estimator.
        """
        self._fit(X, y, sample_weight, offset)
        return self
