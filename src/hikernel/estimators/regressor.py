"""HKLRegressor: hierarchical kernel learning with the squared error."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from hikernel.bases.design import Design
from hikernel.bases.parameters import check_integer
from hikernel.bases.scaling import Standardizer
from hikernel.engines.protocol import FloatArray
from hikernel.errors import CertificateWarning, ConvergenceWarning
from hikernel.estimators.progress import SearchProgress
from hikernel.estimators.validation import (
    check_choice,
    check_number,
    check_target_scale,
    check_training_data,
    resolve_bases,
    text_explained,
    warn_of_lost_columns,
)
from hikernel.graphs import Grid, geometric_weights, node_degree, node_name, node_order
from hikernel.search import SearchProblem, SearchResult, paper_search

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["HKLRegressor"]

_PREDICT_NUMBERS = 2**22
"""Numbers held at a time while predicting (32 MiB)."""


class HKLRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]  # untyped bases
    """Sparse nonlinear regression over all products of one-variable functions.

    Solves the convex problem

        min over beta, b of (1/n) sum_i (y_i - f(x_i))^2 / 2 + (alpha/2) Omega(beta)^2,
        f(x) = b + sum_v <beta_v, Phi_v(x)>,   Omega(beta) = sum_v d_v |beta_{D(v)}|,

    over the grid of all products of the levels of one-variable bases, and proves how far from its
    optimum the answer can be. A term is selected only together with all the terms it builds on.

    Parameters
    ----------
    alpha : float, default=0.01
        Regularisation strength. It does not depend on the scale of y.
    basis : str, Basis, or mapping, default="auto"
        One-variable decomposition: "auto" and "orthonormal" (orthonormal polynomials),
        "polynomial", "hermite", "gaussian", "kernel_pca", "anova", "spline", an object from
        :mod:`hikernel.bases`, or a mapping from column names or positions to these. By name,
        "gaussian" and "kernel_pca" have a constant level 0, so that an absent variable is
        absent; ``Gaussian()`` is the paper's kernel, in which level 0 is a bump and every term
        contains every variable.
    degree : int, default=4
        Highest level of a variable, for bases given by name that have one.
    weight_base : float, default=2.0
        Weight d_v of a term is the product over its variables of weight_base^level. Below 1
        deeper terms are cheaper, which large graphs make hard to search and to prove.
    root_weight : float, default=1.0
        Weight of the root, the term without variables.
    search : {"paper"}, default="paper"
        How the graph is searched: "paper" is the rule of Bach (2008).
    max_kernels : int, default=300
        Largest hull that is solved.
    tol : float, default=1e-3
        Duality gap to reach, relative to the objective, over the whole graph.
    certify : {"auto", "exact", "none"}, default="auto"
        Whether all kernels outside the hull are bounded, exactly, at a cost quadratic in the
        number of rows. "auto" does so while that takes some seconds: up to about 6,500 rows
        with 32 variables, 11,000 with 10. Without it nothing is proven, and a
        :class:`~hikernel.errors.CertificateWarning` says so unless ``certify="none"`` asked for
        it.
    verbose : int or bool, default=0
        1 or True shows a progress bar.

    Attributes
    ----------
    hull_ : pandas.DataFrame
        One row per selected term: term, order (variables), degree (sum of levels), width
        (feature columns), eta, zeta, norm (of its coefficients), share (its variance on the
        training rows over the sum of these).
    certificate_ : Certificate
        What is proven; ``print(model.certificate_)`` says it in words.
    coef_ : ndarray of shape (n_columns,)
        Coefficients of the selected terms' features, blocks in the order of ``hull_``.
    dual_coef_ : ndarray of shape (n_samples,)
        Dual variables: the coefficients of a term are zeta times Phi' dual_coef_.
    intercept_ : float
        b.
    nodes_ : list of tuple
        The terms as ((column, level), ...), in the order of ``hull_``.
    graph_ : Grid
        The grid that was searched.
    bases_ : list of FittedBasis
        The fitted one-variable bases.
    history_ : list of Certificate
        The certificate after every step of the search; of kind "none" where the step still saw
        violations of the necessary condition and did not bound the tail.
    n_iter_ : int
        Number of those steps.
    n_features_in_ : int
        Number of columns seen in ``fit``.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, where X had string column names.

    Examples
    --------
    >>> import numpy as np
    >>> from hikernel import HKLRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(200, 6))
    >>> y = X[:, 0] + 2 * X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(200)
    >>> model = HKLRegressor(alpha=0.003).fit(X, y)
    >>> sorted(model.hull_["term"])
    ['1', 'x0', 'x1', 'x1 * x2', 'x2']
    >>> model.certificate_.certified
    True
    """

    def __init__(
        self,
        alpha: float = 0.01,
        *,
        basis: Any = "auto",
        degree: int = 4,
        weight_base: float = 2.0,
        root_weight: float = 1.0,
        search: str = "paper",
        max_kernels: int = 300,
        tol: float = 1e-3,
        certify: str = "auto",
        verbose: int = 0,
    ) -> None:
        self.alpha = alpha
        self.basis = basis
        self.degree = degree
        self.weight_base = weight_base
        self.root_weight = root_weight
        self.search = search
        self.max_kernels = max_kernels
        self.tol = tol
        self.certify = certify
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> HKLRegressor:
        """Fit the model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Numbers, no missing values. No scaling is needed.
        y : array-like of shape (n_samples,)
            Target.
        sample_weight : array-like of shape (n_samples,), optional
            Weights, zero or positive; an integer weight equals a repeated row.

        Returns
        -------
        HKLRegressor
            The fitted estimator.
        """
        self._check_parameters()
        X, y, weights = check_training_data(self, X, y, sample_weight)
        names = self._feature_names()
        specs = resolve_bases(self.basis, self.degree, X.shape[1], names)
        used = weights > 0
        design = Design.fit(X, specs, weights)
        warn_of_lost_columns(X[used], design, names)
        X, y, used_weights = X[used], y[used], weights[used]
        levels = geometric_weights(design.max_levels, self.weight_base)
        graph = Grid(levels, self.root_weight)
        scaler = Standardizer.fit(y, used_weights / np.sum(used_weights))
        scale = 1.0 if scaler.constant else check_target_scale(scaler.scale)
        problem = SearchProblem(
            engine=design.engine(X, used_weights),
            graph=graph,
            y=np.zeros_like(y) if scaler.constant else scaler.transform(y),
            strength=float(self.alpha),
        )
        with SearchProgress(self.max_kernels, enabled=self.verbose > 0) as progress:
            result = paper_search(
                problem,
                tol=self.tol,
                max_kernels=self.max_kernels,
                certify=self.certify,  # type: ignore[arg-type]  # checked above
                callback=progress,
            )
        self._store(design, graph, problem, result, scaler.center, scale, names)
        self.dual_coef_ = np.zeros(len(weights))
        self.dual_coef_[used] = scale * result.alpha
        self._warn(result)
        return self

    def predict(self, X: Any) -> FloatArray:
        """Return f(x) for the rows of X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows with the columns of the training data.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        with text_explained():
            X = validate_data(self, X, dtype=np.float64, reset=False)
        active = [node for node, kept in zip(self.nodes_, self._nonzero, strict=True) if kept]
        variables = {m for node in active for m, _ in node}
        coef = self.coef_[np.repeat(self._nonzero, self.hull_["width"].to_numpy())]
        out = np.empty(len(X))
        per_row = sum(sum(self.bases_[m].widths) for m in variables) + len(coef) + 1
        step = max(64, _PREDICT_NUMBERS // per_row)
        with np.errstate(over="ignore", invalid="ignore"):
            for start in range(0, len(X), step):
                rows = slice(start, start + step)
                engine = self._design.engine(X[rows], np.ones(len(X[rows])), variables)
                out[rows] = engine.apply(active, coef) + self.intercept_
        if not np.all(np.isfinite(out)):
            row = int(np.flatnonzero(~np.isfinite(out))[0])
            raise ValueError(
                f"Row {row} of X lies so far outside the training data that its prediction "
                "overflows; check its units, or clip X to the range of the training data."
            )
        return out

    def _check_parameters(self) -> None:
        remedy = "Without a penalty nothing is selected."
        check_number("alpha", self.alpha, above=1e-100, remedy=remedy)
        check_integer("degree", self.degree, 1)
        check_number("weight_base", self.weight_base, above=0.0)
        check_number("root_weight", self.root_weight, above=0.0)
        check_choice("search", self.search, ["paper"])
        check_integer("max_kernels", self.max_kernels, 1)
        check_number("tol", self.tol, above=1e-13, below=1.0)
        check_choice("certify", self.certify, ["auto", "exact", "none"])
        check_integer("verbose", int(self.verbose), 0)

    def _feature_names(self) -> list[str]:
        names = getattr(self, "feature_names_in_", None)
        if names is None:
            return [f"x{m}" for m in range(self.n_features_in_)]
        return [str(name) for name in names]

    def _store(
        self,
        design: Design,
        graph: Grid,
        problem: SearchProblem,
        result: SearchResult,
        center: float,
        scale: float,
        names: list[str],
    ) -> None:
        """Set the fitted attributes, in the units of y."""
        coef = result.solution.coef
        self._design = design
        self.bases_ = list(design.bases)
        self.graph_ = graph
        self.nodes_ = result.nodes
        self.coef_ = scale * coef
        self.intercept_ = center + scale * result.problem.intercept(coef)
        self.certificate_ = result.certificate.scaled(scale**2)
        self.history_ = [certificate.scaled(scale**2) for certificate in result.history]
        self.n_iter_ = len(result.history)
        self.hull_ = self._hull_frame(problem, result, scale, names)
        self._nonzero = self.hull_["norm"].to_numpy() > 0.0

    def _hull_frame(
        self, problem: SearchProblem, result: SearchResult, scale: float, names: list[str]
    ) -> pd.DataFrame:
        import pandas as pd

        coef, starts = result.solution.coef, result.problem.starts
        widths = np.diff(np.append(starts, len(coef)))
        variances = []
        for node, block in zip(result.nodes, np.split(coef, starts[1:]), strict=True):
            values = problem.engine.apply([node], block)
            mean = float(problem.engine.row_weights @ values)
            variances.append(float(problem.engine.row_weights @ (values - mean) ** 2))
        total = sum(variances)
        return pd.DataFrame(
            {
                "term": [node_name(node, names) for node in result.nodes],
                "order": [node_order(node) for node in result.nodes],
                "degree": [node_degree(node) for node in result.nodes],
                "width": widths,
                "eta": result.solution.eta,
                "zeta": result.solution.zeta,
                "norm": scale * np.sqrt(np.add.reduceat(coef**2, starts)),
                "share": np.array(variances) / total if total > 0.0 else np.zeros(len(widths)),
            }
        )

    def _warn(self, result: SearchResult) -> None:
        """Say aloud what did not work out."""
        if not result.solution.status.ok:
            warnings.warn(result.solution.status.sentence, ConvergenceWarning, stacklevel=3)
        if not self.certificate_.certified and self.certify != "none":
            warnings.warn(self.certificate_.explain(), CertificateWarning, stacklevel=3)
