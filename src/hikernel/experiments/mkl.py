"""The baseline "MKL": one kernel per variable, the sum of its levels, in a graph without edges."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from hikernel.bases import FittedBasis, make_basis
from hikernel.engines.protocol import FloatArray
from hikernel.estimators import hkl_path
from hikernel.experiments.baseline_checks import check_basis, check_positive
from hikernel.graphs import KernelGraph

__all__ = ["MKLRegressor"]


class MKLRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]  # untyped base
    """Multiple kernel learning with p kernels, one per variable.

    Solves min over f = b + sum_m f_m of (1/2n) sum_i (y_i - f(x_i))^2 + (alpha/2) (sum_m |f_m|)^2,
    f_m in the space of the kernel sum_{j >= 1} k_mj(x_m, z_m) / u_m, with u_m its mean diagonal on
    the training rows. There are no interactions: the model is additive.

    Parameters
    ----------
    alpha : float, default=0.01
        Regularisation strength.
    basis : str or Basis, default="polynomial"
        One-variable decomposition with a constant level, the same for all columns.

    Attributes
    ----------
    path_ : Path
        The models, by decreasing alpha.
    places_ : ndarray of shape (n_alphas,)
        Position on the path of the model of each alpha.
    variables_ : list of int
        The variables with a nonzero f_m in the model of the last alpha.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(200, 4))
    >>> MKLRegressor(0.05).fit(X, X[:, 1] ** 3 + X[:, 2]).variables_
    [1, 2]
    """

    def __init__(self, alpha: float = 0.01, *, basis: Any = "polynomial") -> None:
        self.alpha = alpha
        self.basis = basis

    def fit(self, X: Any, y: Any) -> MKLRegressor:
        """Fit the model.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Inputs.
        y : array-like of shape (n,)
            Target.
        """
        check_positive(self)
        return self.fit_path(X, y, np.array([self.alpha]))

    def fit_path(self, X: Any, y: Any, alphas: FloatArray) -> MKLRegressor:
        """Fit for several alphas, in any order; ``predict_path`` returns one column per alpha.

        Raises
        ------
        ValueError
            If the basis has no constant level: then no kernel depends on one variable only. Also
            if all columns of X are constant.
        """
        alphas = np.asarray(alphas, dtype=np.float64)
        check_positive(self, alphas=alphas)
        check_basis(self)
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True, ensure_min_samples=2)
        recipe = make_basis(self.basis)
        features: dict[int, Callable[[FloatArray], FloatArray]] = {}
        for m in range(X.shape[1]):
            fitted = recipe.fit(np.ascontiguousarray(X[:, m]))
            if not fitted.constant_level:
                raise ValueError(
                    f"MKL has one kernel per variable beside a constant, and {recipe!r} has no "
                    "constant level. Take a basis that has one."
                )
            if fitted.max_level:
                features[m] = _Block(fitted, m, X)
        if not features:
            raise ValueError("Every column of X is constant, so that MKL has no kernel.")
        graph = KernelGraph(features=features, weights=dict.fromkeys(features, 1.0))
        falling = np.argsort(-alphas, kind="stable")
        self.path_ = hkl_path(X, y, graph=graph, alphas=alphas[falling].tolist())
        # Position of each alpha on the path; an alpha that was not reached gets the last model.
        self.places_ = np.minimum(np.argsort(falling, kind="stable"), len(self.path_) - 1)
        last = self.path_.points[self.places_[-1]].model
        self.variables_ = sorted(v for v, size in zip(last.nodes, last.norms, strict=True) if size)
        return self

    def predict(self, X: Any) -> FloatArray:
        """Return predictions for the last alpha for the rows of X, shape (len(X),)."""
        return self.predict_path(X)[:, -1]

    def predict_path(self, X: Any) -> FloatArray:
        """Return predictions for every alpha, shape (len(X), n_alphas).

        If the path ended early, its last model is repeated.
        """
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        return np.asarray(np.asarray(self.path_.predict(X))[:, self.places_])


class _Block:
    """Features of one variable: all levels but the constant, scaled to unit mean square."""

    def __init__(self, fitted: FittedBasis, column: int, X: FloatArray) -> None:
        self.fitted = fitted
        self.column = column
        self.scale = 1.0
        self.scale = float(np.sqrt(np.mean(np.sum(self(X) ** 2, axis=1)))) or 1.0

    def __call__(self, X: FloatArray) -> FloatArray:
        levels = self.fitted.transform(np.ascontiguousarray(X[:, self.column]))[1:]
        return np.asarray(np.hstack(levels) / self.scale)
