"""The baseline "greedy": forward selection of basis kernels, with a refit after each."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg
from scipy.special import expit
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from hikernel.bases import FittedBasis, make_basis
from hikernel.engines.protocol import FloatArray, Node
from hikernel.experiments.baseline_checks import check_basis, check_count, check_positive
from hikernel.experiments.logistic import TwoClasses, logistic_path

__all__ = ["GreedyClassifier", "GreedyRegressor"]


class _Features:
    """Features of the nodes of a grid: row-wise Kronecker products of one-variable levels."""

    def __init__(self, bases: tuple[FittedBasis, ...], X: FloatArray) -> None:
        self.levels = [
            basis.transform(np.ascontiguousarray(X[:, m])) for m, basis in enumerate(bases)
        ]
        self.n_rows = len(X)

    def block(self, node: Node) -> FloatArray:
        """Return the features of a node, shape (n, r)."""
        out = np.ones((self.n_rows, 1))
        chosen = dict(node)
        for m, levels in enumerate(self.levels):
            level = chosen.get(m, 0)
            if level == 0 and bool(np.all(levels[0] == 1.0)):
                continue
            out = (out[:, :, None] * levels[level][:, None, :]).reshape(self.n_rows, -1)
        return out


class _Greedy(BaseEstimator):  # type: ignore[misc]  # untyped base
    """Forward selection in a grid.

    The hull starts at the root. Candidates are the nodes whose parents are all selected. Their
    features F_w are centred and scaled, so that the mean of |F_w(x)|^2 over the rows is one. Each
    step selects the candidate with the largest |F_w' r|, r the residual of the current fit, and
    refits all selected features with a small ridge penalty. The number of kernels is the
    regularisation parameter.
    """

    def __init__(
        self, n_kernels: int = 30, *, basis: Any = "polynomial", ridge: float = 1e-4
    ) -> None:
        self.n_kernels = n_kernels
        self.basis = basis
        self.ridge = ridge

    def _refit(self, F: FloatArray, y: FloatArray) -> tuple[FloatArray, float]:
        raise NotImplementedError

    def _residual(self, y: FloatArray, f: FloatArray) -> FloatArray:
        raise NotImplementedError

    def _select(self, X: FloatArray, y: FloatArray) -> None:
        """Add kernels to the hull one at a time and store the fit after each."""
        check_count(self, "n_kernels")
        check_positive(self, "ridge")
        check_basis(self)
        recipe = make_basis(self.basis)
        self.bases_ = tuple(recipe.fit(np.ascontiguousarray(x)) for x in X.T)
        features = _Features(self.bases_, X)
        # Without a constant level the root has features and is itself a candidate.
        constant = all(basis.constant_level for basis in self.bases_)
        self.nodes_: list[Node] = []
        self.scalers_: list[tuple[FloatArray, float]] = []
        self.fits_: list[tuple[FloatArray, float]] = []
        blocks: list[FloatArray] = []
        candidates: dict[Node, tuple[FloatArray, FloatArray, float]] = {}
        selected: set[Node] = {()}
        if constant:
            self._open((), selected, candidates, features)
        else:
            self._candidate((), candidates, features)
        f = np.zeros(len(y))
        coef, intercept = self._refit(np.empty((len(y), 0)), y)
        self.fits_.append((coef, intercept))
        f += intercept
        while len(self.nodes_) < self.n_kernels and candidates:
            residual = self._residual(y, f)
            node = max(candidates, key=lambda w: float(np.sum((residual @ candidates[w][0]) ** 2)))
            block, mean, scale = candidates.pop(node)
            self.nodes_.append(node)
            self.scalers_.append((mean, scale))
            blocks.append(block)
            selected.add(node)
            self._open(node, selected, candidates, features)
            F = np.hstack(blocks)
            coef, intercept = self._refit(F, y)
            self.fits_.append((coef, intercept))
            f = F @ coef + intercept

    def _open(
        self,
        node: Node,
        selected: set[Node],
        candidates: dict[Node, tuple[FloatArray, FloatArray, float]],
        features: _Features,
    ) -> None:
        """Add to the candidates the children of a node whose parents are all selected."""
        levels = dict(node)
        for m, basis in enumerate(self.bases_):
            level = levels.get(m, 0) + 1
            if level > basis.max_level:
                continue
            child: Node = tuple(sorted({**levels, m: level}.items()))
            if child not in selected and all(parent in selected for parent in _parents(child)):
                self._candidate(child, candidates, features)

    def _candidate(
        self,
        node: Node,
        candidates: dict[Node, tuple[FloatArray, FloatArray, float]],
        features: _Features,
    ) -> None:
        block = features.block(node)
        mean = block.mean(axis=0)
        block = block - mean
        scale = float(np.sqrt(np.mean(np.sum(block**2, axis=1))))
        if scale > 0.0:
            candidates[node] = block / scale, mean, scale

    def _decide_path(self, X: FloatArray) -> FloatArray:
        """Return f with 0, 1, ... kernels, shape (n, len(nodes_) + 1)."""
        features = _Features(self.bases_, X)
        blocks = [
            (features.block(node) - mean) / scale
            for node, (mean, scale) in zip(self.nodes_, self.scalers_, strict=True)
        ]
        F = np.hstack([np.empty((len(X), 0)), *blocks])
        return np.column_stack([F[:, : len(coef)] @ coef + b for coef, b in self.fits_])

    def _raw_predict(self, X: Any) -> FloatArray:
        return self.predict_path(X)[:, -1]

    def predict_path(self, X: Any) -> FloatArray:
        """Return f with 0, 1, 2, ... kernels, shape (len(X), n_selected + 1)."""
        check_is_fitted(self)
        return self._decide_path(validate_data(self, X, reset=False, dtype=np.float64))


def _parents(node: Node) -> list[Node]:
    """Return the parents of a node: one level lower in one variable."""
    return [
        node[:i] + (((m, level - 1),) if level > 1 else ()) + node[i + 1 :]
        for i, (m, level) in enumerate(node)
    ]


class GreedyRegressor(RegressorMixin, _Greedy):  # type: ignore[misc]  # untyped base
    """Forward selection of basis kernels with least squares.

    Each step adds one kernel w among the children of the hull: the one with the largest
    r' K_w r / trace(K_w), where r is the residual and K_w the centred kernel matrix. It then
    minimises (1/n) |y - F beta - b|^2 + ridge |beta|^2 with the features F of all selected kernels.

    Parameters
    ----------
    n_kernels : int, default=30
        Maximum number of kernels to select.
    basis : str or Basis, default="polynomial"
        One-variable decomposition, the same for all columns.
    ridge : float, default=1e-4
        Penalty of the refit; the features of each kernel are scaled to unit mean square.

    Attributes
    ----------
    nodes_ : list of tuple
        The selected kernels, in the order of selection.
    fits_ : list of (ndarray, float)
        Coefficients and intercept with 0, 1, ... kernels.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(200, 4))
    >>> GreedyRegressor(2).fit(X, X[:, 1] + 2 * X[:, 3]).nodes_
    [((3, 1),), ((1, 1),)]
    """

    def fit(self, X: Any, y: Any) -> GreedyRegressor:
        """Select the kernels and fit.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Inputs.
        y : array-like of shape (n,)
            Target.
        """
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        self._select(X, y)
        return self

    def predict(self, X: Any) -> FloatArray:
        """Return predictions with all selected kernels for the rows of X, shape (len(X),)."""
        return self._raw_predict(X)

    def _refit(self, F: FloatArray, y: FloatArray) -> tuple[FloatArray, float]:
        mean = float(np.mean(y))
        if F.shape[1] == 0:
            return np.empty(0), mean
        gram = F.T @ F / len(y)
        gram[np.diag_indices_from(gram)] += self.ridge
        score = F.T @ (y - mean) / len(y)
        return scipy.linalg.solve(gram, score, assume_a="pos"), mean

    def _residual(self, y: FloatArray, f: FloatArray) -> FloatArray:
        return np.asarray(y - f)


class GreedyClassifier(TwoClasses, _Greedy):
    """Forward selection of basis kernels with logistic regression, for two classes.

    Like :class:`GreedyRegressor`, with the log loss: the residual is y - P(y = 1), and the refit
    is logistic regression with a ridge penalty.

    Parameters
    ----------
    n_kernels, basis, ridge
        As for :class:`GreedyRegressor`.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The labels.
    nodes_, fits_
        As for :class:`GreedyRegressor`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(200, 4))
    >>> GreedyClassifier(1).fit(X, X[:, 3] > 0).nodes_
    [((3, 1),)]
    """

    def fit(self, X: Any, y: Any) -> GreedyClassifier:
        """Select the kernels and fit.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Inputs.
        y : array-like of shape (n,)
            Labels of two classes.
        """
        X, y = validate_data(self, X, y, dtype=np.float64)
        codes = self._encoded(y)
        self._select(X, codes)
        return self

    def _refit(self, F: FloatArray, y: FloatArray) -> tuple[FloatArray, float]:
        coef, intercept = logistic_path(F, 2.0 * y - 1.0, np.array([self.ridge]))
        return coef[:, 0], float(intercept[0])

    def _residual(self, y: FloatArray, f: FloatArray) -> FloatArray:
        return np.asarray(y - expit(f))
