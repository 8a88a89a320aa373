"""HKLRegressor: hierarchical kernel learning for regression."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, Self, overload

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import r2_score

from hikernel.checks import check_flag, check_target
from hikernel.engines.protocol import FloatArray
from hikernel.estimators.one_alpha import OneAlphaEstimator
from hikernel.estimators.parameters import documented
from hikernel.estimators.typed_bases import RegressorMixin
from hikernel.estimators.uncertainty import (
    Uncertainty,
    function_and_std,
    mean_slope,
    observation_std,
)
from hikernel.losses import REGRESSION, Loss, make_loss

__all__ = ["HKLRegressor", "NumberPredictions"]


class NumberPredictions(RegressorMixin, Uncertainty):
    """Base of the regressors: predicts numbers."""

    loss: Any

    @overload
    def predict(
        self, X: Any, return_std: Literal[False] = False, offset: Any = None, exposure: Any = None
    ) -> FloatArray: ...
    @overload
    def predict(
        self, X: Any, return_std: Literal[True], offset: Any = None, exposure: Any = None
    ) -> tuple[FloatArray, FloatArray]: ...
    def predict(
        self, X: Any, return_std: bool = False, offset: Any = None, exposure: Any = None
    ) -> FloatArray | tuple[FloatArray, FloatArray]:
        """Return predictions for the rows of X: f(x), or exp f(x) with a logarithmic link.

        The Poisson, gamma and Tweedie losses have that link.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows with the columns of the training data.
        return_std : bool, default=False
            Whether to return the standard deviation of the predictions too, as the Gaussian
            processes of scikit-learn do; only after a refit. It is the error of the predicted
            mean, with the selected terms as given, and has no part for the noise of a new y:
            see ``predict_interval`` for that. With a logarithmic link it is that of f times the
            predicted mean (delta method).
        offset : array-like of shape (n_samples,), optional
            As in ``fit``, for these rows; zero if it is left out, also if ``fit`` had one.
        exposure : array-like of shape (n_samples,), optional
            As in ``fit``, for these rows; one if it is left out: the prediction is then a rate.

        Returns
        -------
        ndarray of shape (n_samples,), or two of them
        """
        check_flag("return_std", return_std)
        if not return_std:
            f = self._raw_predict(X, offset, exposure)
            return self.loss_.predict_mean(f)
        f, std = function_and_std(self, X, offset, exposure)
        return self.loss_.predict_mean(f), mean_slope(self.loss_, f) * std

    def calibrate(
        self,
        X: Any,
        y: Any,
        *,
        cv: Any = None,
        sample_weight: Any = None,
        scaled: bool = False,
        offset: Any = None,
        exposure: Any = None,
    ) -> Self:
        """Measure the errors of predictions, for ``predict_interval`` (conformal prediction).

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows that were not used in ``fit``; with ``cv``, the training rows.
        y : array-like of shape (n_samples,)
            Their target.
        cv : int, splitter, or pairs (train, test), optional
            None for split conformal prediction, with new rows. Otherwise the model is fitted again
            on the training rows of every fold, with the alpha and refit that it has, and the
            errors are those of the test rows.
        sample_weight : array-like of shape (n_samples,), optional
            Weights in the fits of ``cv``; errors of rows of weight zero are left out.
        scaled : bool, default=False
            Whether errors are relative to the standard deviation that the model expects of y at
            each row, noise and error of f together, so that intervals are wider where it knows
            less. Only after a refit.
        offset : array-like of shape (n_samples,), optional
            As in ``fit``, for these rows; zero if it is left out, also if ``fit`` had one.
        exposure : array-like of shape (n_samples,), optional
            As in ``fit``, for these rows; one if it is left out.

        Returns
        -------
        Self
            The estimator. ``fit`` drops the calibration; ``save`` keeps it, a number a row.
        """
        check_flag("scaled", scaled)
        return self._calibrate(X, y, cv, sample_weight, scaled, offset, exposure)

    def predict_interval(
        self, X: Any, confidence_level: float = 0.9, offset: Any = None, exposure: Any = None
    ) -> FloatArray:
        """Return intervals for the y of new rows, after ``calibrate``.

        After ``calibrate(X, y)`` on n rows that ``fit`` has not seen, an interval holds the y of a
        new row with probability ``confidence_level`` at least, and 1 / (n + 1) more at most where
        errors have no ties: whatever the model and the distribution, if all these rows are
        exchangeable. The probability is over calibration and new rows together, not for given x.
        After ``calibrate(X, y, cv=5)`` nothing is guaranteed, as the folds have other models than
        this one, and alpha was chosen on the same rows; coverage measured on real tables was close
        (``docs/uncertainty.md``).

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows with the columns of the training data.
        confidence_level : float, default=0.9
            The share of new rows to cover.
        offset : array-like of shape (n_samples,), optional
            As in ``fit``, for these rows; zero if it is left out, also if ``fit`` had one.
        exposure : array-like of shape (n_samples,), optional
            As in ``fit``, for these rows; one if it is left out.

        Returns
        -------
        ndarray of shape (n_samples, 2)
            Lower and upper ends; infinite, with a warning, if there are too few calibration rows
            for the level. With a logarithmic link the lower end is zero at least.
        """
        half: Any = self._quantile(confidence_level, "predict_interval")
        if self._calibration.scaled:
            f, std = function_and_std(self, X, offset, exposure)
            half = half * observation_std(self.loss_, f, std, self.posterior_.dispersion)
        else:
            f = self._raw_predict(X, offset, exposure)
        mean = self.loss_.predict_mean(f)
        least = self.loss_.predict_mean(np.array(-np.inf))
        return np.column_stack([np.maximum(mean - half, least), mean + half])

    def _scores(self, y: NDArray[Any], f: FloatArray, std: FloatArray | None) -> FloatArray:
        errors = np.abs(y - self.loss_.predict_mean(f))
        return np.asarray(errors if std is None else errors / std)

    def score(
        self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None, exposure: Any = None
    ) -> float:
        """Return R^2, the share of the variance of y that ``predict`` explains.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows with the columns of the training data.
        y : array-like of shape (n_samples,)
            Their targets.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows.
        offset : array-like of shape (n_samples,), optional
            As in ``fit``, for these rows; zero if it is left out, also if ``fit`` had one.
        exposure : array-like of shape (n_samples,), optional
            As in ``fit``, for these rows; one if it is left out: the prediction is then a rate.

        Returns
        -------
        float
        """
        predicted = self.predict(X, offset=offset, exposure=exposure)
        y = check_target(y, labels=False, remedy="use HKLClassifier")
        # In units of a power of two, which changes no digit and lets no square overflow.
        largest = max(np.max(np.abs(y), initial=0.0), np.max(np.abs(predicted)))
        unit = 2.0 ** (np.frexp(largest)[1] - 1)
        return float(r2_score(y / unit, predicted / unit, sample_weight=sample_weight))

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
        "poisson" (counts), "gamma" (positive numbers), "tweedie" (positive numbers and zeros);
        these three predict the mean, with a logarithmic link. To choose the parameter of a loss,
        pass an object from :mod:`hikernel.losses`: ``Quantile(0.9)``, ``Tweedie(1.7)``,
        ``Huber(0.5)``, ``EpsilonInsensitive(0.1)``; the parameters of the last two are in units of
        the spread of y. An object of your own class derived from :class:`~hikernel.losses.Loss` is
        a loss, too.
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
    path_ : Path
        The path on which "auto" has chosen alpha; only then.
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
    monotone: Any = field(default=None, kw_only=True)
    warm_start: bool = field(default=False, kw_only=True)

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None, exposure: Any = None
    ) -> HKLRegressor:
        """Fit the model.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            Numbers, booleans and categories, with or without missing values. No scaling is
            needed. A sparse X holds numbers, and is not filled in.
        y : array-like of shape (n_samples,)
            Target; zero or positive for the Poisson and Tweedie losses, positive for the gamma
            loss.
        sample_weight : array-like of shape (n_samples,), optional
            Weights, zero or positive. With a number for alpha, an integer weight is equivalent to
            repeating the row; alpha="auto" counts rows by how unequal their weights are.
        offset : array-like of shape (n_samples,), optional
            Known numbers on the scale of f, one per row: f(x) is the offset, plus the intercept,
            plus the terms. ``predict`` needs those of its own rows.
        exposure : array-like of shape (n_samples,), optional
            Positive numbers that means are proportional to, such as years insured, for the losses
            with a logarithmic link: log(exposure) is added to the offset.

        Returns
        -------
        HKLRegressor
            The fitted estimator.
        """
        self._fit(X, y, sample_weight, offset, exposure)
        return self
