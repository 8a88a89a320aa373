"""HKLRegressor: hierarchical kernel learning for numbers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray
from sklearn.base import RegressorMixin

from hikernel.engines.protocol import FloatArray
from hikernel.estimators.estimator import HKLEstimator, OneAlphaEstimator
from hikernel.estimators.parameters import documented
from hikernel.losses import REGRESSION, Loss, make_loss

__all__ = ["HKLRegressor", "NumberPredictions"]


class NumberPredictions(RegressorMixin, HKLEstimator):  # type: ignore[misc]  # untyped base
    """Targets that are numbers, and their predictions."""

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
        f = self._decide(X)
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

    over the grid of all products of the levels of one-variable bases, and proves how far from its
    optimum the answer can be. A term is selected only together with all the terms it builds on.

    Parameters
    ----------
    loss : str or Loss, default="squared_error"
        "squared_error" (half of it, for the mean), "huber" and "epsilon_insensitive" (outliers
        count less), "quantile" (the median), "poisson" (counts, with a logarithmic link), or an
        object with its parameter from :mod:`hikernel.losses`: ``Quantile(0.9)``, ``Huber(0.5)``,
        ``EpsilonInsensitive(0.1)``, the last two in units of the spread of y.
    {parameters}

    Attributes
    ----------
    hull_ : pandas.DataFrame
        The hull that the convex problem selected, one row per node, the root and all ancestors
        included: term, order (variables), degree (sum of levels), width (feature columns), eta,
        zeta, norm (of its coefficients), share (its variance on the training rows over the sum
        of these). After a refit, too, all of it speaks of the convex problem.
    terms_ : pandas.DataFrame
        The terms that predictions are made of, those of the refit where there is one: term,
        variables, order, degree, width, norm, share, the largest share first.
    certificate_ : Certificate
        What is proven; ``print(model.certificate_)`` says it in words.
    nodes_ : list of tuple
        The nodes of the model that predicts, as ((column, level), ...); those of ``hull_`` in its
        order, without a refit.
    coef_ : ndarray of shape (n_columns,)
        Coefficients of the features of ``nodes_``, one block per node.
    dual_coef_ : ndarray of shape (n_samples,)
        Dual variables of the convex problem: without a refit the coefficients of a term are zeta
        times Phi' dual_coef_.
    intercept_ : float
        b.
    loss_ : Loss
        The loss.
    refit_ : str or None
        How the terms were estimated after selection.
    graph_ : Grid
        The graph that was searched.
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

    alpha: float = 0.01
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
            Weights, zero or positive; an integer weight equals a repeated row.

        Returns
        -------
        HKLRegressor
            The fitted estimator.
        """
        self._fit(X, y, sample_weight)
        return self
