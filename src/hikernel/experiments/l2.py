"""The baseline "L2": the squared Hilbert norm of the full kernel, the sum over all vertices."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from hikernel.engines.protocol import FloatArray
from hikernel.experiments.baseline_checks import check_kernel, check_positive
from hikernel.experiments.logistic import TwoClasses, logistic_path
from hikernel.experiments.product_kernel import KernelMap, ProductKernel

__all__ = ["L2Classifier", "L2Regressor"]


class _FullKernel(BaseEstimator):  # type: ignore[misc]  # untyped base
    """Parameters and feature map common to ridge and logistic regression."""

    def __init__(
        self,
        alpha: float = 0.01,
        *,
        basis: Any = "polynomial",
        share: float | None = 0.1,
        decay: float = 1.0,
    ):
        self.alpha = alpha
        self.basis = basis
        self.share = share
        self.decay = decay

    def _map(self, X: FloatArray) -> KernelMap:
        return KernelMap.fit(ProductKernel.fit(X, self.basis, self.share, self.decay), X)

    def _raw_predict(self, X: Any) -> FloatArray:
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        return np.asarray(self.map_.transform(X) @ self.coef_ + self.intercept_)


class L2Regressor(RegressorMixin, _FullKernel):  # type: ignore[misc]  # untyped base
    """Kernel ridge regression with the sum of all basis kernels.

    Solves min over f, b of (1/2n) sum_i (y_i - f(x_i) - b)^2 + (alpha u / 2) |f|^2 with the kernel
    prod_m (k_m0 + c sum_{j >= 1} t^(j-1) k_mj). u is the mean diagonal of the centred kernel.

    Parameters
    ----------
    alpha : float, default=0.01
        Regularisation strength.
    basis : str or Basis, default="polynomial"
        One-variable decomposition, the same for all columns.
    share, decay : float, default=0.1 and 1.0
        c and t of the kernel k_m0 + c sum_{j >= 1} t^(j-1) k_mj of a variable. The sum is scaled
        to mean diagonal one; ``share=None`` means c = 1 without scaling.

    Attributes
    ----------
    map_ : KernelMap
        The feature map of the centred kernel.
    coef_ : ndarray of shape (r,)
        Coefficients of its features.
    intercept_ : float
        b.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(100, 3))
    >>> y = X[:, 0] * X[:, 1]
    >>> bool(L2Regressor(1e-6, share=1.0).fit(X, y).score(X, y) > 0.99)
    True
    """

    def fit(self, X: Any, y: Any) -> L2Regressor:
        """Decompose the kernel matrix and fit; the decomposition serves all alphas.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Inputs.
        y : array-like of shape (n,)
            Target.
        """
        check_positive(self)
        check_kernel(self)
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        self.map_ = self._map(X)
        self.intercept_ = float(np.mean(y))
        self._residual = y - self.intercept_
        self.coef_ = self._coefficients(np.array([self.alpha]))[:, 0]
        return self

    def predict(self, X: Any) -> FloatArray:
        """Return f(x) + b for the rows of X, shape (len(X),)."""
        return self._raw_predict(X)

    def predict_path(self, X: Any, alphas: FloatArray) -> FloatArray:
        """Return predictions for several alphas, shape (len(X), len(alphas))."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        return np.asarray(self.map_.transform(X) @ self._coefficients(alphas) + self.intercept_)

    def leave_one_out(self, alphas: FloatArray) -> FloatArray:
        """Return the leave-one-out residuals, shape (n, len(alphas)).

        Entry i is y_i minus the prediction of the model fitted without row i. It is exact:
        residual_i / (1 - h_ii) with h = 1/n + U (S / (S + n alpha u)) U'.
        """
        kept = self._shrinkage(alphas)
        U, n = self.map_.vectors, len(self._residual)
        residuals = self._residual[:, None] - U @ (kept * (U.T @ self._residual)[:, None])
        leverage = 1.0 / n + (U**2) @ kept
        return np.asarray(residuals / np.maximum(1.0 - leverage, 1e-12))

    def _shrinkage(self, alphas: FloatArray) -> FloatArray:
        """Return S / (S + n alpha u), shape (r, len(alphas))."""
        S, n = self.map_.values[:, None], len(self._residual)
        return np.asarray(S / (S + n * np.asarray(alphas) * self.map_.mean_square))

    def _coefficients(self, alphas: FloatArray) -> FloatArray:
        scores = self.map_.vectors.T @ self._residual / np.sqrt(self.map_.values)
        return np.asarray(self._shrinkage(alphas) * scores[:, None])


class L2Classifier(TwoClasses, _FullKernel):
    """Kernel logistic regression with the sum of all basis kernels, for two classes.

    Solves min over f, b of (1/n) sum_i log(1 + exp(-y_i (f(x_i) + b))) + (alpha u / 2) |f|^2 by
    Newton's method in the features of the kernel.

    Parameters
    ----------
    alpha, basis, share, decay
        As for :class:`L2Regressor`.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The labels.
    map_, coef_, intercept_
        As for :class:`L2Regressor`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(200, 3))
    >>> y = X[:, 0] * X[:, 1] > 0
    >>> bool(L2Classifier(1e-6, share=1.0).fit(X, y).score(X, y) > 0.95)
    True
    """

    def fit(self, X: Any, y: Any) -> L2Classifier:
        """Decompose the kernel matrix and fit.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Inputs.
        y : array-like of shape (n,)
            Labels of two classes.
        """
        check_positive(self)
        check_kernel(self)
        X, y = validate_data(self, X, y, dtype=np.float64)
        codes = self._encoded(y)
        self.map_ = self._map(X)
        self._signs = np.where(codes == 1, 1.0, -1.0)
        coef, intercept = self._path(np.array([self.alpha]))
        self.coef_, self.intercept_ = coef[:, 0], float(intercept[0])
        return self

    def decision_path(self, X: Any, alphas: FloatArray) -> FloatArray:
        """Return decision values for several alphas, shape (len(X), len(alphas))."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        coef, intercept = self._path(alphas)
        return np.asarray(self.map_.transform(X) @ coef + intercept)

    def _path(self, alphas: FloatArray) -> tuple[FloatArray, FloatArray]:
        penalties = np.asarray(alphas) * self.map_.mean_square
        return logistic_path(self.map_.features, self._signs, penalties)
