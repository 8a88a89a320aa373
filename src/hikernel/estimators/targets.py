"""The target y and the weights of the rows, as a loss takes them; class labels and back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, _check_y

from hikernel.engines.protocol import FloatArray
from hikernel.losses import CLASSIFICATION, LogLoss, Loss, Multinomial, make_loss

__all__ = ["Labels", "check_target", "check_weights", "keep_classes", "weigh_classes"]


def check_target(y: Any, *, labels: bool, remedy: str, owner: str) -> NDArray[Any]:
    """Return y as float64, or as labels of any type, shape (n,).

    Parameters
    ----------
    y : array-like of shape (n,)
        Numbers, or labels of any type.
    labels : bool
        Whether y holds labels.
    remedy : str
        What to do where y holds text and numbers are needed.
    owner : str
        The estimator, for messages.
    """
    if y is None:
        raise ValueError(f"{owner} requires y to be passed, but the target y is None.")
    _refuse_missing(y, "label" if labels else "value")
    with _text_explained("y", f"a regressor needs numbers; for labels {remedy}"):
        target = _check_y(y, multi_output=False, y_numeric=not labels)
        return target if labels else np.asarray(target, dtype=np.float64)


def check_weights(n_rows: int, sample_weight: Any) -> FloatArray:
    """Return the weights of n rows, zero or positive, the largest one."""
    with _text_explained("sample_weight", "weights are numbers, one for each row"):
        weights = np.asarray(
            _check_sample_weight(sample_weight, np.empty((n_rows, 1)), dtype=np.float64)
        )
    if np.any(weights < 0):
        raise ValueError("sample_weight has negative entries; weights must be zero or positive.")
    positive = int(np.count_nonzero(weights))
    if positive < 2:
        raise ValueError(
            f"Only {positive} row(s) have a positive sample_weight; at least 2 are needed."
        )
    return np.asarray(weights / np.max(weights))


@contextmanager
def _text_explained(name: str, advice: str) -> Iterator[None]:
    """Say what to do about text where numbers are needed."""
    try:
        yield
    except ValueError as error:
        if "could not convert string" in str(error):
            raise ValueError(f"{name} holds text ({error}), but {advice}.") from error
        raise


def _refuse_missing(y: Any, what: str) -> None:
    """Raise where y has missing entries, which NumPy may take for text or not sort at all."""
    import pandas as pd

    # NumPy would make the text "nan" of a NaN in a list of texts.
    values = np.asarray(y, dtype=object) if isinstance(y, (list, tuple)) else np.asarray(y)
    if values.dtype.kind not in "fOmM" or values.size != len(np.atleast_1d(values)):
        return
    rows = np.flatnonzero(pd.isna(values.ravel()))
    if rows.size:
        raise ValueError(
            f"y contains NaN or None: it has {rows.size} missing {what}(s), the first in row "
            f"{rows[0]}, counted from 0; drop these rows of X and y."
        )


@dataclass(frozen=True)
class Labels:
    """The classes of y and how f(x) chooses among them.

    Two classes have one output, positive for the second class. More have one output each: the
    log loss becomes multinomial, the others one-vs-rest.

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
        """Return the labels of a training set and its target for the loss.

        Raises
        ------
        ValueError
            For numbers that are not classes, a single class, and classes without weight.
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
        """Return the label of the largest output, shape (n,)."""
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
        Where a class gets a weight that is not positive.
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
    """Return a fold whose training rows have every class, moved there from the test if need be."""
    lost = ~np.isin(y[test], y[train[weights[train] > 0.0]])
    return np.sort(np.concatenate([train, test[lost]])), test[~lost]
