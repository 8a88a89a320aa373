"""lasso-alpha: the l1 norm of the dual vector in place of the Hilbert norm."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import lasso_path
from sklearn.utils.validation import check_is_fitted, validate_data

from hikernel.engines.protocol import FloatArray
from hikernel.experiments.product_kernel import ProductKernel

__all__ = ["LassoAlphaRegressor"]


class LassoAlphaRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]  # untyped base
    """Least squares in the columns of the full kernel matrix with an l1 penalty on alpha.

    Solves min over a, b of (1/2n) |y - K a - b|^2 + alpha s |a|_1, s the largest |K_c' y| / n, so
    that a = 0 from alpha = 1 on. The kernel is that of :class:`L2Regressor`.

    Parameters
    ----------
    alpha : float, default=0.01
        Penalty, as a share of the smallest that leaves nothing.
    basis : str or Basis, default="polynomial"
        One-variable decomposition, the same for all columns.
    share, decay : float, default=0.1 and 1.0
        c and t of the kernel k_m0 + c sum_{j >= 1} t^(j-1) k_mj of a variable, the sum scaled to
        mean one; ``share=None`` is c = 1 without scaling.
    tol : float, default=1e-5
        Of coordinate descent: duality gap over |y|^2.
    max_iter : int, default=1000
        Passes of coordinate descent per alpha. Kernel columns are nearly collinear, so that small
        alphas need many; those that end here are not optimal to ``tol``, see ``n_iter_``.

    Attributes
    ----------
    dual_coef_ : ndarray of shape (n,)
        a.
    intercept_ : float
        b.
    n_used_ : ndarray of shape (n_alphas,)
        Rows with a coefficient, for every alpha that was fitted.
    n_iter_ : ndarray of shape (n_alphas,)
        Passes, for every alpha that was fitted.
    n_unconverged_ : int
        Alphas whose passes were used up before the gap was below ``tol``.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(100, 2))
    >>> model = LassoAlphaRegressor(1e-3).fit(X, X[:, 0])
    >>> bool(np.count_nonzero(model.dual_coef_) < 50), bool(model.score(X, X[:, 0]) > 0.95)
    (True, True)
    """

    def __init__(
        self,
        alpha: float = 0.01,
        *,
        basis: Any = "polynomial",
        share: float | None = 0.1,
        decay: float = 1.0,
        tol: float = 1e-5,
        max_iter: int = 1000,
    ) -> None:
        self.alpha = alpha
        self.basis = basis
        self.share = share
        self.decay = decay
        self.tol = tol
        self.max_iter = max_iter

    def fit(self, X: Any, y: Any) -> LassoAlphaRegressor:
        """Fit.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Numbers.
        y : array-like of shape (n,)
            Target.
        """
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        self._train(X, y, np.array([self.alpha]))
        self.dual_coef_, self.intercept_ = self._duals[:, 0], float(self._intercepts[0])
        return self

    def predict(self, X: Any) -> FloatArray:
        """Return K a + b for the rows of X, shape (n, p)."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        return np.asarray(self.kernel_.matrix(X, self._rows) @ self.dual_coef_ + self.intercept_)

    def fit_path(self, X: FloatArray, y: FloatArray, alphas: FloatArray) -> LassoAlphaRegressor:
        """Fit for many alphas, in any order; ``predict_path`` then has a column for each."""
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        self._train(X, y, np.asarray(alphas, dtype=np.float64))
        self.dual_coef_, self.intercept_ = self._duals[:, -1], float(self._intercepts[-1])
        return self

    def predict_path(self, X: Any) -> FloatArray:
        """Return predictions for the alphas of ``fit_path``, shape (len(X), len(alphas))."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        return np.asarray(self.kernel_.matrix(X, self._rows) @ self._duals + self._intercepts)

    def _train(self, X: FloatArray, y: FloatArray, alphas: FloatArray) -> None:
        self.kernel_ = ProductKernel.fit(X, self.basis, self.share, self.decay)
        self._rows = X
        K = self.kernel_.matrix(X, X)
        means = K.mean(axis=0)
        # Columns are centred (the intercept is free) and not scaled: the penalty is on a itself.
        C = np.asfortranarray(K - means)
        residual = y - y.mean()
        largest = float(np.max(np.abs(C.T @ residual))) / len(y)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            _, duals, _, passes = lasso_path(
                C,
                residual,
                alphas=alphas * largest,
                precompute=C.T @ C,
                tol=self.tol,
                max_iter=self.max_iter,
                return_n_iter=True,
            )
        order = np.argsort(np.argsort(-alphas, kind="stable"), kind="stable")
        self._duals = duals[:, order]
        self._intercepts = y.mean() - means @ self._duals
        self.n_iter_ = np.asarray(passes)[order]
        self.n_unconverged_ = int(np.sum(self.n_iter_ >= self.max_iter))
        self.n_used_ = np.count_nonzero(self._duals, axis=0)
