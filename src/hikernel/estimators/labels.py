"""The labels of a classifier: their encoding as numbers, their weights, their probabilities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets

from hikernel.engines.protocol import FloatArray
from hikernel.losses import CLASSIFICATION, LogLoss, Loss, Multinomial, make_loss

__all__ = ["Labels", "keep_classes", "log_probabilities", "weigh_classes"]


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
    if not np.all(np.isfinite(factors)) or np.min(factors) < 1e-100 * np.max(factors):
        raise ValueError(
            "class_weight must be finite, and no class may have less than 1e-100 of the weight of "
            f"another, got {class_weight!r}; leave the rows of a class out instead."
        )
    # A power of two changes no digit, and keeps sums of weights finite.
    return np.asarray(weights * (factors / 2.0 ** (np.frexp(np.max(factors))[1] - 1)))


def log_probabilities(f: FloatArray) -> FloatArray:
    """Return the logarithms of the probabilities of the classes, shape (n, n_classes)."""
    if f.ndim == 1:
        f = np.column_stack([np.zeros_like(f), f])
    return np.asarray(f - np.logaddexp.reduce(f, axis=1)[:, None])


def keep_classes(
    train: NDArray[np.intp], test: NDArray[np.intp], y: NDArray[Any], weights: FloatArray
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return a fold (train, test) in which every class has training rows.

    Test rows of a class without training rows of positive weight are moved to the training rows.
    """
    lost = ~np.isin(y[test], y[train[weights[train] > 0.0]])
    return np.sort(np.concatenate([train, test[lost]])), test[~lost]
