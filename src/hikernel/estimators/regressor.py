"""HKLRegressor: hierarchical kernel learning for regression."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from numpy.typing import NDArray

from hikernel.engines.protocol import FloatArray
from hikernel.estimators.estimator import HKLEstimator, OneAlphaEstimator
from hikernel.estimators.parameters import documented
from hikernel.estimators.typed_bases import RegressorMixin
from hikernel.losses import REGRESSION, Loss, make_loss

__all__ = ["HKLRegressor", "NumberPredictions"]


class NumberPredictions(RegressorMixin, HKLEstimator):
    """Base of the regressors: predicts numbers."""

    loss: Any

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
        f = self._raw_predict(X)
        return self.loss_.predict_mean(f)

    def _check_parameters(self) -> Any:
        make_loss(self.loss, REGRESSION)
        return super()._check_parameters()

    def _read_target(
        self, y: NDArray[Any], weights: FloatArray
    ) -> tuple[FloatArray, FloatArray, Loss]:
        return y, weights, make_loss(self.loss, REGRESSION)


@documented
@dataclass(eq=False, repr=False)
class HKLRegressor(NumberPredictions, OneAlphaEstimator):
    """Sparse nonlinear regression over all products of one-variable functions.

    Solves the convex problem

        min over beta, b of (1/n) sum_i loss(y_i, f(x_i)) + (alpha/2) Omega(beta)^2,
        f(x) = b + sum_v <beta_v, Phi_v(x)>,   Omega(beta) = sum_v d_v |beta_{D(v)}|,

    over the grid of all products of levels of one-variable bases. The certificate proves how far
    the solution can be from the optimum. A term is selected only together with all its ancestors,
    the terms of lower levels that it builds on.

    Parameters
    ----------
    loss : str or Loss, default="squared_error"
        "squared_error" (half the squared error; predicts the mean), "huber" and
        "epsilon_insensitive" (less sensitive to outliers), "quantile" (predicts the median),
        "poisson" (counts, with a logarithmic link). To choose the parameter of a loss, pass an
        object from :mod:`hikernel.losses`: ``Quantile(0.9)``, ``Huber(0.5)``,
        ``EpsilonInsensitive(0.1)``; the parameters of the last two are in units of the spread of y.
    {parameters}

    Attributes
    ----------
    hull_ : pandas.DataFrame
        The hull that the convex problem selected, one row per node, including the root and all
        ancestors. Columns: term, order (number of variables), degree (sum of levels), width
        (number of feature columns), eta, zeta, norm (of the coefficients), share (variance of the
        term on the training rows, divided by the sum over all terms). All of it is about the
        convex problem, also after a refit.
    terms_ : pandas.DataFrame
        Terms of the model that predicts (after a refit, the refitted model), the largest share
        first. Columns: term, variables, order, degree, width, norm, share.
    certificate_ : Certificate
        What is proven about the model; ``print(model.certificate_)`` explains it.
    nodes_ : list of tuple
        Nodes of the model that predicts, each as ((column, level), ...). Without a refit these are
        the nodes of ``hull_``, in the same order.
    coef_ : ndarray of shape (n_columns,)
        Coefficients of the features of ``nodes_``, one block per node.
    dual_coef_ : ndarray of shape (n_samples,)
        Dual variables of the convex problem. Without a refit, the coefficients of a term are zeta
        times Phi' dual_coef_.
    intercept_ : float
        The intercept b.
    loss_ : Loss
        The loss.
    refit_ : str or None
        How the terms were estimated after selection.
    alpha_ : float
        alpha, or the value that "auto" has chosen.
    graph_ : Grid
        The graph that was searched.
    bases_ : pandas.DataFrame
        One row per column: column, kind, basis, levels, and why (the reason for this basis).
    columns_ : ColumnTable
        How X is encoded as a numeric matrix. The matrix has the columns of X, then an indicator
        "<name> is missing" for every column that had some missing values in ``fit``.
    history_ : list of Certificate
        The certificate after every step of the search. Its kind is "none" if kernels outside the
        hull still violated the necessary condition, so that the step computed no bound on them.
    n_iter_ : int
        Number of steps of the search.
    n_features_in_ : int
        Number of columns seen in ``fit``.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, if X had string column names.

    Notes
    -----
    A missing value contributes zero to every term that contains its variable. In addition, the
    indicator "<name> is missing" has an effect of its own. There is no such indicator in
    ``predict`` for a missing value in a column without missing values in ``fit``, or for a
    category that was not seen in ``fit``. These only contribute zero, which is the average effect
    of the variable.

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

    alpha: float | Literal["auto"] = "auto"
    loss: Any = field(default="squared_error", kw_only=True)
    refit: str | None = field(default=None, kw_only=True)

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
            Weights, zero or positive. With a number for alpha, an integer weight is equivalent to
            repeating the row; alpha="auto" counts rows by how unequal their weights are.

        Returns
        -------
        HKLRegressor
            The fitted estimator.
        """
        self._fit(X, y, sample_weight)
        return self
