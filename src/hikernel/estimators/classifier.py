"""HKLClassifier: hierarchical kernel learning for classification."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets

from hikernel.engines.protocol import FloatArray
from hikernel.estimators.estimator import HKLEstimator, OneAlphaEstimator
from hikernel.estimators.parameters import documented
from hikernel.estimators.typed_bases import ClassifierMixin
from hikernel.losses import CLASSIFICATION, LogLoss, Loss, Multinomial, make_loss

__all__ = ["ClassPredictions", "HKLClassifier", "Labels", "keep_classes"]


@dataclass(frozen=True)
class Labels:
    """The classes of y, and the rules that turn f(x) into labels and probabilities.

    With two classes there is one output, positive for the second class. With more classes there
    is one output per class: the log loss becomes multinomial, the other losses one-vs-rest.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,)
        Sorted labels, of any type.
    loss : Loss
        The loss of the outputs.
    """

    classes: NDArray[Any]
    loss: Loss

    @classmethod
    def of(cls, y: NDArray[Any], weights: FloatArray, spec: object) -> tuple[Labels, FloatArray]:
        """Return the labels of a training set, and y encoded as the target of the loss.

        Parameters
        ----------
        y : ndarray of shape (n,)
            Labels of any type.
        weights : ndarray of shape (n,)
            Sample weights.
        spec : str or Loss
            A loss, or its name.

        Returns
        -------
        tuple of (Labels, ndarray of shape (n,) or (n, n_classes))
            The target is -1 or 1 for two classes. For more, it has one column per class.

        Raises
        ------
        ValueError
            If the loss is unknown, or y holds continuous numbers, labels that cannot be sorted, a
            single class, or a class without a row of positive weight.
        """
        loss = make_loss(spec, CLASSIFICATION)
        check_classification_targets(y)
        try:
            classes, index = np.unique(y, return_inverse=True)
        except TypeError as error:
            raise ValueError(
                "y mixes labels that cannot be sorted, such as text and numbers; use one type."
            ) from error
        if len(classes) < 2:
            raise ValueError(
                f"y has one class only ({classes.tolist()[0]!r}); a classifier needs at least two "
                "classes."
            )
        present = np.bincount(index[weights > 0], minlength=len(classes)) > 0
        if not np.all(present):
            raise ValueError(
                f"The class {classes[~present].tolist()[0]!r} has no row of positive weight; "
                "leave its rows out."
            )
        if len(classes) == 2:
            return cls(classes, loss), np.where(index == 1, 1.0, -1.0)
        marks = (index[:, None] == np.arange(len(classes))).astype(np.float64)
        if isinstance(loss, LogLoss):
            return cls(classes, Multinomial()), marks
        return cls(classes, loss), 2.0 * marks - 1.0

    def choose(self, f: FloatArray) -> NDArray[Any]:
        """Return the predicted label of every row, shape (n,)."""
        if f.ndim == 1:
            return np.asarray(self.classes[(f > 0.0).astype(np.intp)])
        return np.asarray(self.classes[np.argmax(f, axis=1)])

    def probabilities(self, f: FloatArray) -> FloatArray:
        """Return the probabilities of the classes, shape (n, n_classes)."""
        if f.ndim == 1:
            return np.column_stack([expit(-f), expit(f)])
        return np.asarray(softmax(f, axis=1))


def weigh_classes(weights: FloatArray, y: NDArray[Any], class_weight: object) -> FloatArray:
    """Return sample weights times the weights of the classes.

    "balanced" gives every class the same total weight.

    Raises
    ------
    ValueError
        If the weight of a class is not positive.
    """
    if class_weight is None:
        return weights
    classes, index = np.unique(y, return_inverse=True)
    if isinstance(class_weight, str) and class_weight == "balanced":
        totals = np.bincount(index, weights, minlength=len(classes))
        factors = np.divide(np.sum(totals) / len(classes), totals, where=totals > 0.0, out=totals)
        return np.asarray(weights * factors[index])
    factors = np.asarray(compute_sample_weight(class_weight, y), dtype=float)
    if not np.all(factors > 0.0):
        raise ValueError(
            f"class_weight must give every class a positive weight, got {class_weight!r}; leave "
            "the rows of a class out instead."
        )
    return np.asarray(weights * factors)


def keep_classes(
    train: NDArray[np.intp], test: NDArray[np.intp], y: NDArray[Any], weights: FloatArray
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return a fold (train, test) in which every class has training rows.

    Test rows of a class without training rows of positive weight are moved to the training rows.
    """
    lost = ~np.isin(y[test], y[train[weights[train] > 0.0]])
    return np.sort(np.concatenate([train, test[lost]])), test[~lost]


class ClassPredictions(ClassifierMixin, HKLEstimator):
    """Base of the classifiers: predicts labels, probabilities and decision values."""

    loss: Any
    class_weight: Any
    _holds_labels = True
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
        return self._raw_predict(X)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the predicted label of every row of X.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows with the columns of the training data.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        f = self._raw_predict(X)
        return self._labels.choose(f)

    @property
    def predict_proba(self) -> Callable[[Any], FloatArray]:
        """Function that returns class probabilities of X, shape (n_samples, n_classes).

        Columns are in the order of ``classes_``. Only the log loss has probabilities; with other
        losses this attribute does not exist.
        """
        self._require_probabilities()
        return self._probabilities

    @property
    def predict_log_proba(self) -> Callable[[Any], FloatArray]:
        """Function that returns the logarithms of ``predict_proba``; only with the log loss."""
        self._require_probabilities()
        return self._log_probabilities

    def _require_probabilities(self) -> None:
        """Raise an AttributeError (``hasattr`` is then False) unless the loss is the log loss."""
        if getattr(self.loss, "name", self.loss) != LogLoss.name:
            raise AttributeError(
                f'The loss {self.loss!r} gives no probabilities; use loss="log_loss", or wrap the '
                "classifier in sklearn.calibration.CalibratedClassifierCV."
            )

    def _probabilities(self, X: Any) -> FloatArray:
        f = self._raw_predict(X)
        return self._labels.probabilities(f)

    def _log_probabilities(self, X: Any) -> FloatArray:
        f = self._raw_predict(X)
        if f.ndim == 1:
            f = np.column_stack([np.zeros_like(f), f])
        return np.asarray(f - np.logaddexp.reduce(f, axis=1)[:, None])

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
            Weights, zero or positive. With a number for alpha, an integer weight is equivalent to
            repeating the row; alpha="auto" counts rows by how unequal their weights are.

        Returns
        -------
        HKLClassifier
            The fitted estimator.
        """
        self._fit(X, y, sample_weight)
        return self
