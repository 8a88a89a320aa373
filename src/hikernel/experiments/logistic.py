"""Binary classification: ridge-penalised logistic regression along a path, and class labels."""

from __future__ import annotations

from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets, type_of_target

from hikernel.engines.numerics import backtrack
from hikernel.engines.protocol import FloatArray

__all__ = ["TwoClasses", "logistic_path"]

_TOL = 1e-10
_STEPS = 100


def logistic_path(
    F: FloatArray, signs: FloatArray, penalties: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Minimise (1/n) sum_i log(1 + exp(-s_i (F_i w + b))) + (penalty/2) |w|^2 for each penalty.

    Parameters
    ----------
    F : ndarray of shape (n, r)
        Features.
    signs : ndarray of shape (n,)
        Labels s_i, -1 or 1.
    penalties : ndarray of shape (k,)
        Penalties in any order. They are solved from largest to smallest with warm starts.

    Returns
    -------
    coef : ndarray of shape (r, k)
        w.
    intercept : ndarray of shape (k,)
        b.
    """
    design = np.column_stack([F, np.ones(len(F))])
    w = np.zeros(design.shape[1])
    out = np.empty((design.shape[1], len(penalties)))
    for i in np.argsort(-np.asarray(penalties), kind="stable"):
        ridge = np.append(np.full(F.shape[1], float(penalties[i])), 0.0)
        w = _newton(design, signs, ridge, w)
        out[:, i] = w
    return out[:-1], out[-1]


def _newton(design: FloatArray, signs: FloatArray, ridge: FloatArray, w: FloatArray) -> FloatArray:
    """Return the minimiser, found by Newton's method with step halving from ``w``.

    It stops when the squared Newton decrement is at most ``_TOL`` times the objective.
    """
    n = len(signs)

    def stepped(w: FloatArray, step: FloatArray, length: float) -> tuple[FloatArray, float]:
        after = w - length * step
        return after, _value(design, signs, ridge, after)

    value = _value(design, signs, ridge, w)
    for _ in range(_STEPS):
        wrong = expit(-signs * (design @ w))
        gradient = ridge * w - design.T @ (signs * wrong) / n
        curvature = np.maximum(wrong * (1.0 - wrong), 1e-12) / n
        hessian = (design.T * curvature) @ design
        # The intercept is not penalised: without 1e-12 separable classes make the Hessian singular.
        hessian[np.diag_indices_from(hessian)] += ridge + 1e-12
        step = scipy.linalg.solve(hessian, gradient, assume_a="pos", check_finite=False)
        decrement = float(gradient @ step)
        if decrement <= _TOL * max(value, 1e-12):
            break
        found = backtrack(partial(stepped, w, step), itemgetter(1), value, -decrement)
        if found is None:
            break
        (w, value), _ = found
    return w


def _value(design: FloatArray, signs: FloatArray, ridge: FloatArray, w: FloatArray) -> float:
    loss = np.logaddexp(0.0, -signs * (design @ w)).mean()
    return float(loss + 0.5 * (ridge * w) @ w)


class TwoClasses(ClassifierMixin):  # type: ignore[misc]  # untyped base
    """Mixin for binary classifiers whose ``_raw_predict(X)`` is positive for the second class."""

    classes_: NDArray[Any]

    def _encoded(self, y: NDArray[Any]) -> FloatArray:
        """Store the two labels in ``classes_`` and return y as 0 and 1."""
        check_classification_targets(y)
        kind = type_of_target(y)
        if kind != "binary":
            raise ValueError(
                f"Only binary classification is supported. The type of the target is {kind}."
            )
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) != 2:
            raise ValueError(f"{type(self).__name__} needs two classes, got one class.")
        return codes.astype(np.float64)

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn that only two classes are supported."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def decision_function(self, X: Any) -> FloatArray:
        """Return f(x) for the rows of X, shape (len(X),)."""
        return np.asarray(self._raw_predict(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the labels for the rows of X, shape (len(X),)."""
        second = self.decision_function(X) > 0.0
        return np.asarray(self.classes_[second.astype(int)])

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probabilities of both classes, shape (len(X), 2).

        That of the second class is 1 / (1 + exp(-f)).
        """
        second = expit(self.decision_function(X))
        return np.column_stack([1.0 - second, second])
