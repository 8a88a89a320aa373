"""The methods that the regression table shows beside HKL, each with a choice of its own settings.

Every peer is a function of a training frame, its target and a seed, and returns something with
``predict``. Columns of text become indicators for those that need numbers; everything that is
not a tree is given standardised columns. Settings are chosen within the training rows alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import linalg, optimize
from scipy.spatial.distance import cdist
from sklearn.linear_model import LassoCV, RidgeCV
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

__all__ = ["PEERS", "GaussianProcess"]

GP_ROWS = 1000
_PUT_BACK = np.log(0.003)
KERNEL_RIDGE_WIDTHS = np.geomspace(0.25, 16.0, 5)
"""Squared length scales of the Gaussian kernel, in units of the number of columns."""
KERNEL_RIDGE_ALPHAS = np.geomspace(1e-3, 1.0, 5)
LEAVES = (4, 8, 16, 31)
ROWS_IN_A_LEAF = (10, 40)


def as_numbers(frame: pd.DataFrame) -> np.ndarray:
    """Return the columns as numbers, text as indicators (the columns of both halves agree)."""
    return pd.get_dummies(frame, dtype=float).to_numpy(float)


@dataclass
class OnNumbers:
    """A fitted model of numbers, asked about a frame."""

    model: Any

    def predict(self, X: pd.DataFrame) -> np.ndarray:
        return np.asarray(self.model.predict(as_numbers(X)))


def ridge(X: pd.DataFrame, y: np.ndarray, seed: int) -> Any:
    """Fit ridge regression, strength by leave-one-out."""
    model = make_pipeline(StandardScaler(), RidgeCV(np.geomspace(1e-4, 1e5, 28)))
    return OnNumbers(model.fit(as_numbers(X), y))


def lasso(X: pd.DataFrame, y: np.ndarray, seed: int) -> Any:
    """Fit the lasso on all products of degree 2, strength by 5-fold cross-validation."""
    folds = KFold(5, shuffle=True, random_state=seed)
    model = make_pipeline(
        StandardScaler(),
        PolynomialFeatures(2, include_bias=False),
        StandardScaler(),
        LassoCV(cv=folds, max_iter=5000),
    )
    return OnNumbers(model.fit(as_numbers(X), y))


class KernelRidge:
    """Gaussian kernel ridge, width and strength by 3-fold cross-validation."""

    def fit(self, X: np.ndarray, y: np.ndarray, seed: int) -> KernelRidge:
        self.scaler = StandardScaler().fit(X)
        self.rows, self.center = self.scaler.transform(X), float(np.mean(y))
        squares = cdist(self.rows, self.rows, "sqeuclidean") / self.rows.shape[1]
        target = y - self.center
        folds = list(KFold(3, shuffle=True, random_state=seed).split(squares))
        best = (np.inf, 0.0, 0.0)
        for width in KERNEL_RIDGE_WIDTHS:
            kernel = np.exp(squares / (-2.0 * width))
            for alpha in KERNEL_RIDGE_ALPHAS:
                error = 0.0
                for fit, held in folds:
                    dual = self._solve(kernel[np.ix_(fit, fit)], target[fit], alpha)
                    error += np.sum((kernel[np.ix_(held, fit)] @ dual - target[held]) ** 2)
                best = min(best, (error, width, alpha))
        _, self.width, self.alpha = best
        self.dual = self._solve(np.exp(squares / (-2.0 * self.width)), target, self.alpha)
        return self

    @staticmethod
    def _solve(kernel: np.ndarray, target: np.ndarray, alpha: float) -> np.ndarray:
        kernel.flat[:: len(kernel) + 1] += alpha
        return linalg.solve(kernel, target, assume_a="pos", overwrite_a=True)

    def predict(self, X: np.ndarray) -> np.ndarray:
        rows = self.scaler.transform(X)
        squares = cdist(rows, self.rows, "sqeuclidean") / rows.shape[1]
        return np.exp(squares / (-2.0 * self.width)) @ self.dual + self.center


def kernel_ridge(X: pd.DataFrame, y: np.ndarray, seed: int) -> Any:
    """Fit Gaussian kernel ridge."""
    return OnNumbers(KernelRidge().fit(as_numbers(X), y, seed))


class GaussianProcess:
    """Gaussian process with one length scale per column, by marginal likelihood on some rows.

    k(x, x') = s exp(-sum_m w_m (x_m - x'_m)^2 / 2) + t [x = x']. The gradient in all w_m at once
    needs one product with the columns, where scikit-learn holds an n x n x p array:
    sum_ij M_ij (x_im - x_jm)^2 = 2 sum_i r_i x_im^2 - 2 x_m' M x_m with r the row sums of M.
    """

    def fit(self, X: np.ndarray, y: np.ndarray, seed: int) -> GaussianProcess:
        self.scaler = StandardScaler().fit(X)
        drawn = np.random.default_rng(seed).permutation(len(y))[:GP_ROWS]
        self.rows, self.center, spread = self.scaler.transform(X)[drawn], np.mean(y), np.std(y)
        self.target, self.unit = (y[drawn] - self.center) / spread, spread
        p = X.shape[1]
        start = np.concatenate([np.full(p, np.log(3.0 / p)), [0.0, np.log(0.5)]])
        first = self._maximised(start)
        # Columns that were dropped too early have no slope left: put them back and try again.
        second = self._maximised(np.maximum(first.x, [_PUT_BACK] * p + [-np.inf] * 2))
        self.parameters = min(first, second, key=lambda fit: fit.fun).x
        kernel = self._kernel(self.parameters, self.rows)
        kernel.flat[:: len(kernel) + 1] += np.exp(self.parameters[-1])
        self.dual = linalg.solve(kernel, self.target, assume_a="pos")
        return self

    def _maximised(self, start: np.ndarray) -> optimize.OptimizeResult:
        bounds = [(-10.0, 3.0)] * (len(start) - 2) + [(-6.0, 6.0), (-10.0, 2.0)]
        return optimize.minimize(
            self.negative_likelihood, start, jac=True, bounds=bounds, options={"maxiter": 100}
        )

    def _kernel(self, parameters: np.ndarray, rows: np.ndarray) -> np.ndarray:
        root = np.exp(0.5 * parameters[:-2])
        squares = cdist(rows * root, self.rows * root, "sqeuclidean")
        return np.exp(parameters[-2] - 0.5 * squares)

    def negative_likelihood(self, parameters: np.ndarray) -> tuple[float, np.ndarray]:
        """Return minus the log marginal likelihood, and its gradient in the logarithms."""
        kernel, noise = self._kernel(parameters, self.rows), np.exp(parameters[-1])
        n = len(kernel)
        total = kernel.copy()
        total.flat[:: n + 1] += noise + 1e-8
        factor = linalg.cho_factor(total, lower=True, overwrite_a=True, check_finite=False)
        dual = linalg.cho_solve(factor, self.target, check_finite=False)
        value = 0.5 * self.target @ dual + np.sum(np.log(np.diag(factor[0])))
        value += 0.5 * n * np.log(2.0 * np.pi)
        inverse = linalg.cho_solve(factor, np.eye(n), overwrite_b=True, check_finite=False)
        outer = np.outer(dual, dual) - inverse
        weighted = outer * kernel
        spread = 2.0 * weighted.sum(axis=1) @ self.rows**2
        spread -= 2.0 * np.sum(self.rows * (weighted @ self.rows), axis=0)
        in_weights = 0.25 * np.exp(parameters[:-2]) * spread
        in_scales = [-0.5 * np.sum(weighted), -0.5 * noise * np.trace(outer)]
        return float(value), np.concatenate([in_weights, in_scales])

    def predict(self, X: np.ndarray) -> np.ndarray:
        kernel = self._kernel(self.parameters, self.scaler.transform(X))
        return self.center + self.unit * (kernel @ self.dual)


def gaussian_process(X: pd.DataFrame, y: np.ndarray, seed: int) -> Any:
    """Fit a Gaussian process with relevance weights on 1,000 rows."""
    return OnNumbers(GaussianProcess().fit(as_numbers(X), y, seed))


def lightgbm(X: pd.DataFrame, y: np.ndarray, seed: int) -> Any:
    """Fit LightGBM, leaves, rows in a leaf and rounds by 5-fold cross-validation."""
    import lightgbm as lgb

    data = lgb.Dataset(as_numbers(X), y, free_raw_data=False)
    fixed = {
        "objective": "regression",
        "learning_rate": 0.05,
        "feature_fraction": 0.8,
        "bagging_fraction": 0.8,
        "bagging_freq": 1,
        "verbosity": -1,
        "num_threads": 1,
        "seed": seed,
        "feature_pre_filter": False,
    }
    folds = list(KFold(5, shuffle=True, random_state=seed).split(y))
    found = []
    for leaves in LEAVES:
        for rows in ROWS_IN_A_LEAF:
            params = fixed | {"num_leaves": leaves, "min_data_in_leaf": rows}
            stop = lgb.early_stopping(50, verbose=False)
            curve = lgb.cv(params, data, 1500, folds=folds, callbacks=[stop])["valid l2-mean"]
            found.append((min(curve), int(np.argmin(curve)) + 1, leaves, rows))
    _, rounds, leaves, rows = min(found)
    params = fixed | {"num_leaves": leaves, "min_data_in_leaf": rows}
    return OnNumbers(lgb.train(params, data, rounds))


def ebm(X: pd.DataFrame, y: np.ndarray, seed: int, n_jobs: int = 1) -> Any:
    """Fit an explainable boosting machine with all defaults."""
    from interpret.glassbox import ExplainableBoostingRegressor

    return ExplainableBoostingRegressor(random_state=seed, n_jobs=n_jobs).fit(X, y)


PEERS: dict[str, Callable[[pd.DataFrame, np.ndarray, int], Any]] = {
    "LightGBM": lightgbm,
    "EBM": ebm,
    "lasso, degree 2": lasso,
    "GP, relevance": gaussian_process,
    "kernel ridge": kernel_ridge,
    "ridge": ridge,
}
