"""Dense kernel methods: Gaussian kernel ridge, and a Gaussian process with relevance weights."""

from __future__ import annotations

import numpy as np
import pandas as pd
from encoding import Fitted, Numbers
from scipy import linalg, optimize
from scipy.spatial.distance import cdist
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold

__all__ = ["GaussianProcess", "KernelRidge", "gaussian_process", "kernel_ridge"]

GP_ROWS = 1000
GP_CLASS_ROWS = 500
RIDGE_ROWS = 4096
"""Rows that the methods draw, where there are more: they take n x n matrices."""
KERNEL_RIDGE_WIDTHS = np.geomspace(0.25, 16.0, 5)
"""Squared length scales of the Gaussian kernel, in units of the number of columns."""
KERNEL_RIDGE_ALPHAS = np.geomspace(1e-3, 1.0, 5)
_PUT_BACK = np.log(0.003)


def drawn(n: int, most: int, seed: int) -> np.ndarray:
    """Return ``most`` rows at random, or all."""
    return np.random.default_rng(seed).permutation(n)[:most]


class KernelRidge:
    """Gaussian kernel ridge for one or more targets, width and strength by 3-fold cross-validation.

    ``held`` are the predictions of each row by the folds without it, at the settings chosen.
    """

    def fit(self, X: np.ndarray, y: np.ndarray, seed: int) -> KernelRidge:
        self.rows, self.center = X, np.mean(y, axis=0)
        squares = cdist(X, X, "sqeuclidean") / X.shape[1]
        target = y - self.center
        folds = list(KFold(3, shuffle=True, random_state=seed).split(squares))
        best = np.inf
        for width in KERNEL_RIDGE_WIDTHS:
            kernel = np.exp(squares / (-2.0 * width))
            for alpha in KERNEL_RIDGE_ALPHAS:
                held = np.empty_like(target)
                for fit, out in folds:
                    dual = self._solve(kernel[np.ix_(fit, fit)], target[fit], alpha)
                    held[out] = kernel[np.ix_(out, fit)] @ dual
                error = float(np.sum((held - target) ** 2))
                if error < best:
                    best, self.width, self.alpha = error, width, alpha
                    self.held = held + self.center
        self.dual = self._solve(np.exp(squares / (-2.0 * self.width)), target, self.alpha)
        return self

    @staticmethod
    def _solve(kernel: np.ndarray, target: np.ndarray, alpha: float) -> np.ndarray:
        kernel.flat[:: len(kernel) + 1] += alpha
        return linalg.solve(kernel, target, assume_a="pos", overwrite_a=True)

    def predict(self, X: np.ndarray) -> np.ndarray:
        squares = cdist(X, self.rows, "sqeuclidean") / X.shape[1]
        return np.exp(squares / (-2.0 * self.width)) @ self.dual + self.center


def kernel_ridge(X: pd.DataFrame, y: np.ndarray, classes: bool, seed: int) -> Fitted:
    """Fit Gaussian kernel ridge; classes by indicators.

    Shares of the classes come from a logistic regression on the predictions of held-out rows.
    """
    numbers = Numbers().fit(X)
    rows = drawn(len(y), RIDGE_ROWS, seed)
    Z, target = numbers.transform(X)[rows], y[rows]
    if not classes:
        model = KernelRidge().fit(Z, target, seed)
        return Fitted(lambda frame: model.predict(numbers.transform(frame)), X.shape[1])
    labels = np.unique(y)
    model = KernelRidge().fit(Z, (target[:, None] == labels).astype(float), seed)
    shares = LogisticRegression(max_iter=1000).fit(model.held, target)
    return Fitted(
        lambda frame: shares.predict_proba(model.predict(numbers.transform(frame))), X.shape[1]
    )


class GaussianProcess:
    """Gaussian process with one length scale per column, by marginal likelihood.

    k(x, x') = s exp(-sum_m w_m (x_m - x'_m)^2 / 2) + t [x = x']. The gradient in all w_m at once
    needs one product with the columns, where scikit-learn holds an n x n x p array:
    sum_ij M_ij (x_im - x_jm)^2 = 2 sum_i r_i x_im^2 - 2 x_m' M x_m with r the row sums of M.
    """

    def fit(self, X: np.ndarray, y: np.ndarray) -> GaussianProcess:
        self.rows, self.center, self.unit = X, np.mean(y), np.std(y)
        self.target = (y - self.center) / self.unit
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
        return self.center + self.unit * (self._kernel(self.parameters, X) @ self.dual)


def gaussian_process(X: pd.DataFrame, y: np.ndarray, classes: bool, seed: int) -> Fitted:
    """Fit a Gaussian process with relevance weights on some rows; classes: scikit-learn's."""
    numbers = Numbers().fit(X)
    rows = drawn(len(y), GP_CLASS_ROWS if classes else GP_ROWS, seed)
    Z, target = numbers.transform(X)[rows], y[rows]
    if not classes:
        model = GaussianProcess().fit(Z, target)
        return Fitted(lambda frame: model.predict(numbers.transform(frame)), X.shape[1])
    kernel = ConstantKernel(1.0) * RBF(np.full(Z.shape[1], np.sqrt(Z.shape[1])), (0.1, 1e3))
    machine = GaussianProcessClassifier(kernel, random_state=seed).fit(Z, target)
    return Fitted(lambda frame: machine.predict_proba(numbers.transform(frame)), X.shape[1])
