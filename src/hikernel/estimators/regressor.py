"""HKLRegressor: hierarchical kernel learning for numbers."""

from __future__ import annotations

from typing import Any

from sklearn.base import RegressorMixin

from hikernel.engines.protocol import FloatArray
from hikernel.estimators.base import HKLEstimator
from hikernel.losses import REGRESSION, make_loss

__all__ = ["HKLRegressor", "NumberPredictions"]


class NumberPredictions(RegressorMixin, HKLEstimator):  # type: ignore[misc]  # untyped base
    """Predictions of a fitted estimator for numbers."""

    def predict(self, X: Any) -> FloatArray:
        """Return predictions for the rows of X: f(x), or exp f(x) with the Poisson loss.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows with the columns of the training data.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        f = self._decide(X)
        return self.loss_.predict_mean(f)


class HKLRegressor(NumberPredictions):
    """Sparse nonlinear regression over all products of one-variable functions.

    Solves the convex problem

        min over beta, b of (1/n) sum_i loss(y_i, f(x_i)) + (alpha/2) Omega(beta)^2,
        f(x) = b + sum_v <beta_v, Phi_v(x)>,   Omega(beta) = sum_v d_v |beta_{D(v)}|,

    over the grid of all products of the levels of one-variable bases, and proves how far from its
    optimum the answer can be. A term is selected only together with all the terms it builds on.

    Parameters
    ----------
    alpha : float, default=0.01
        Regularisation strength. It does not depend on the scale of y, except with the Poisson
        loss.
    loss : str or Loss, default="squared_error"
        "squared_error" (half of it, for the mean), "huber" and "epsilon_insensitive" (outliers
        count less), "quantile" (the median), "poisson" (counts, with a logarithmic link), or an
        object with its parameter from :mod:`hikernel.losses`: ``Quantile(0.9)``, ``Huber(0.5)``,
        ``EpsilonInsensitive(0.1)``, the last two in units of the spread of y.
    graph : KernelGraph or another graph of :mod:`hikernel.graphs`, optional
        A directed acyclic graph of kernels in place of the columns and their bases: flat multiple
        kernel learning, trees, strings, point clouds, anything with kernels. ``X`` is then what
        the graph takes, every node can be scored and the certificate is exact; ``basis`` to
        ``search`` below are left at their defaults.
    basis : str, Basis, or mapping, default="auto"
        One-variable decomposition of the columns of numbers. "auto" looks at each of them:
        "orthonormal" (orthonormal polynomials), "asinh" (the same of asinh x) where it is skewed
        or heavy-tailed, "rank" (bounded polynomials of the rank) where it is mostly one value
        or has two of them. These three stay constant outside the range of the training data.
        Also "polynomial", "hermite", "gaussian", "kernel_pca", "anova",
        "spline", "categorical" (one block of centred indicators), an object from
        :mod:`hikernel.bases`, or a mapping from column names or positions to these. Columns of
        categories get "categorical", and booleans and the marks of missing values one bounded
        level, unless a mapping names them; ``bases_`` shows what each column got and why. By
        name, "gaussian" and "kernel_pca" have a constant level 0, so that an absent variable is
        absent; ``Gaussian()`` is the paper's kernel, in which level 0 is a bump and every term
        contains every variable.
    categorical : list of str or int, optional
        Names or positions of columns whose numbers are categories, or a mask of booleans, one
        per column. Text, and columns of the category types of pandas and polars, are categories
        anyway.
    degree : int, default=4
        Highest level of a variable, for bases given by name that have one.
    max_order : int, optional
        How many variables may interact in a term; any number by default. With it the proof works
        for thousands of variables.
    weight_base : float, default=2.0
        Weight d_v of a term is the product over its variables of weight_base^level. Below 1
        deeper terms are cheaper, which large graphs make hard to search and to prove.
    root_weight : float, default=1.0
        Weight of the root, the term without variables.
    search : {"lookahead", "paper"}, default="lookahead"
        How the graph is searched. "lookahead" scores whole levels around the hull and lets deep
        terms in with their ancestors, then proves the result by branch and bound without adding
        to the model; "paper" is the rule of Bach (2008), which looks one step ahead and adds
        to the hull whatever its proof needs.
    max_kernels : int, default=600
        Largest hull that is solved.
    tol : float, default=1e-3
        Duality gap to reach, relative to the objective, over the whole graph.
    certify : {"auto", "exact", "statistical", "none"}, default="auto"
        How all kernels outside the hull are bounded. "exact" costs time quadratic in the number of
        rows. "statistical" is linear: random signs estimate the sums, and the bound holds with 95 %
        confidence over these draws; it is looser, and needs the look-ahead search. "auto" is exact
        up to about 6,500 rows with 32 variables (11,000 with 10), statistical above. With "none"
        nothing is proven. A :class:`~hikernel.errors.CertificateWarning` says when a proof was
        wanted and not reached.
    refit : {None, "ridge", "unpenalised", "variables"}, default=None
        How the selected terms are estimated: None keeps the (shrunken) coefficients of the convex
        problem, "ridge" fits the selected terms again with a penalty of its own (strength by
        leave-one-out), "unpenalised" without one, "variables" fits them and all products of the
        selected variables up to total degree 6, while these are a dozen at most. ``hull_`` and
        ``coef_`` are those of the refit, which predicts; the certificate, eta, zeta and
        ``dual_coef_`` speak of the convex problem (terms that it did not select have eta = zeta
        = 0). Leave-one-out leaves a row out with all its weight, so that with a refit a row of
        weight two is not quite two rows.
    time_budget : float, optional
        Seconds after which the look-ahead search ends with the model and the bound it has.
    random_state : int, RandomState or None, default=0
        Seed of the draws behind statistical bounds. The model does not depend on it.
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
        Dual variables of the convex problem: without a refit the coefficients of a term are zeta
        times Phi' dual_coef_.
    intercept_ : float
        b.
    loss_ : Loss
        The loss.
    nodes_ : list of tuple
        The terms as ((column, level), ...), in the order of ``hull_``.
    graph_ : Grid
        The grid that was searched.
    bases_ : pandas.DataFrame
        One row per column: column, kind, basis, levels, and why it has this basis.
    columns_ : ColumnTable
        How X becomes the matrix of the bases. After the columns of X it has "<name> is missing"
        for every column with missing values in ``fit``.
    history_ : list of Certificate
        The certificate after every step of the search; of kind "none" where the step still saw
        violations of the necessary condition and did not bound the tail.
    n_iter_ : int
        Number of those steps.
    n_features_in_ : int
        Number of columns seen in ``fit``.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, where X had string column names.

    Notes
    -----
    A missing value contributes zero to every term with its variable, and the mark "<name> is
    missing" has an effect of its own. At predict, a value missing in a column that had none
    missing in ``fit``, and a category that was not there in ``fit``, contribute zero alone: the
    average effect of that variable.

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
        loss: Any = "squared_error",
        graph: Any = None,
        basis: Any = "auto",
        categorical: Any = None,
        degree: int = 4,
        max_order: int | None = None,
        weight_base: float = 2.0,
        root_weight: float = 1.0,
        search: str = "lookahead",
        max_kernels: int = 600,
        tol: float = 1e-3,
        certify: str = "auto",
        refit: str | None = None,
        time_budget: float | None = None,
        random_state: Any = 0,
        verbose: int = 0,
    ) -> None:
        self.alpha = alpha
        self.loss = loss
        self.graph = graph
        self.basis = basis
        self.categorical = categorical
        self.degree = degree
        self.max_order = max_order
        self.weight_base = weight_base
        self.root_weight = root_weight
        self.search = search
        self.max_kernels = max_kernels
        self.tol = tol
        self.certify = certify
        self.refit = refit
        self.time_budget = time_budget
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> HKLRegressor:
        """Fit the model.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Numbers, booleans and categories, with or without missing values. No scaling is
            needed.
        y : array-like of shape (n_samples,)
            Target; zero or positive for the Poisson loss.
        sample_weight : array-like of shape (n_samples,), optional
            Weights, zero or positive; an integer weight equals a repeated row.

        Returns
        -------
        HKLRegressor
            The fitted estimator.
        """
        settings = self._check_parameters()
        loss = make_loss(self.loss, REGRESSION)
        X, y, weights = self._check_data(X, y, sample_weight)
        self._fit_terms(X, y, weights, loss, settings)
        self.intercept_ = float(self._model.intercept)
        return self
