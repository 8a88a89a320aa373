"""HKLSurvival and HKLSurvivalCV: hierarchical kernel learning for censored times."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import KFold, StratifiedKFold, check_cv
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from hikernel.checks import check_weights
from hikernel.engines.protocol import FloatArray
from hikernel.estimators.censored import (
    censored_target,
    event_and_time,
    read_censored,
    time_name,
)
from hikernel.estimators.comparison import CrossValidatedEstimator
from hikernel.estimators.concordance import concordance
from hikernel.estimators.cross_validated import split_rows
from hikernel.estimators.estimator import HKLEstimator
from hikernel.estimators.one_alpha import OneAlphaEstimator
from hikernel.estimators.parameters import ChoiceParameters, documented
from hikernel.estimators.training_data import TrainingData
from hikernel.graphs import SearchGraph
from hikernel.losses import Cox, Loss
from hikernel.losses.breslow import BreslowBaseline
from hikernel.losses.cox import CoxOnRows
from hikernel.search import SearchSettings
from hikernel.selection import Fitted, Fold, TrainingProblem

__all__ = ["HKLSurvival", "HKLSurvivalCV"]


def concordance_score(
    estimator: SurvivalPredictions, X: Any, y: Any, sample_weight: Any = None
) -> float:
    """Return the score of an estimator, as a scorer; what scoring="concordance" stands for."""
    return estimator.score(X, y, sample_weight)


class SurvivalPredictions(HKLEstimator):
    """Base of the estimators for censored times: risk scores and survival functions."""

    _task = "survival"
    _quantity = "log hazard"

    _baseline: BreslowBaseline

    @property
    def event_times_(self) -> FloatArray:
        """The distinct times of events in ``fit``, increasing."""
        check_is_fitted(self)
        return self._baseline.times

    @property
    def baseline_hazard_(self) -> FloatArray:
        """Breslow's cumulative baseline hazard at ``event_times_``: that of a row with f = 0."""
        check_is_fitted(self)
        return self._baseline.hazards

    def predict(self, X: Any) -> FloatArray:
        """Return the risk scores f(x): the logarithm of the hazard relative to the baseline.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows with the columns of the training data.

        Returns
        -------
        ndarray of shape (n_samples,)
            The larger, the earlier an event is expected; the mean over the training rows is zero
            (with weights, the weighted mean).
        """
        return self._raw_predict(X)

    def predict_cumulative_hazard_function(self, X: Any, times: Any = None) -> FloatArray:
        """Return the cumulative hazards H_0(t) exp(f(x)), with Breslow's baseline H_0.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows with the columns of the training data.
        times : array-like of shape (n_times,), optional
            Where to evaluate, from zero to the largest time in ``fit``; ``event_times_`` by
            default, between which the functions are constant.

        Returns
        -------
        ndarray of shape (n_samples, n_times)
        """
        check_is_fitted(self)
        at = self._times(times)
        return self._baseline.cumulative(self._raw_predict(X), at)

    def predict_survival_function(self, X: Any, times: Any = None) -> FloatArray:
        """Return the probabilities of no event up to some times, exp(-H_0(t) exp(f(x))).

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows with the columns of the training data.
        times : array-like of shape (n_times,), optional
            Where to evaluate, from zero to the largest time in ``fit``; ``event_times_`` by
            default, between which the functions are constant.

        Returns
        -------
        ndarray of shape (n_samples, n_times)
        """
        return np.asarray(np.exp(-self.predict_cumulative_hazard_function(X, times)))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return Harrell's concordance of the risk scores; 0.5 is no better than chance.

        Of two rows that can be compared (one has an event, the other was observed for longer), how
        often the one with the event has the larger risk score. Equal scores count one half.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows with the columns of the training data.
        y : structured array of shape (n_samples,), or two columns
            Times and events, as in ``fit``.
        sample_weight : array-like of shape (n_samples,), optional
            Weights, zero or positive; a pair has the product of both.

        Returns
        -------
        float
        """
        event, time = event_and_time(read_censored(y))
        risk = self.predict(X)
        check_consistent_length(risk, time)
        weights = np.ones(len(time))
        if sample_weight is not None:
            weights = check_weights(len(time), sample_weight)
        return concordance(event, time, risk, weights)

    def _times(self, times: Any) -> FloatArray:
        """Return the times to evaluate at; raise for times of which nothing is known."""
        if times is None:
            return self._baseline.times
        at = np.atleast_1d(np.asarray(times, dtype=np.float64))
        horizon = self._baseline.horizon
        if at.ndim != 1 or not np.all((at >= 0.0) & (at <= horizon)):
            raise ValueError(
                f"times must be numbers from 0 to {horizon:g}, the longest that a row of the "
                "training data was observed; nothing is known of what comes after."
            )
        return at

    def _checked_target(self, y: Any) -> NDArray[Any]:
        return read_censored(y)

    def _target_name(self, y: Any) -> str | None:
        return time_name(y)

    def _read_target(
        self, y: NDArray[Any], weights: FloatArray
    ) -> tuple[FloatArray, FloatArray, Loss]:
        return censored_target(y), weights, Cox()

    def _set_fitted(self, fitted: Fitted, loss: Loss, graph: SearchGraph) -> None:
        self.__dict__.pop("_baseline", None)
        super()._set_fitted(fitted, loss, graph)

    def _finish(
        self,
        fitted: Fitted,
        problem: TrainingProblem,
        y: Any,
        rows: NDArray[np.intp],
    ) -> None:
        """Set the baseline hazard, estimated from some of the rows used."""
        f = fitted.model.predict(fitted.design, problem.rows[rows])
        loss = problem.loss.subset(rows)
        assert isinstance(loss, CoxOnRows)
        times = event_and_time(read_censored(y))[1][np.flatnonzero(problem.used)[rows]]
        self._baseline = BreslowBaseline.of(loss, times, f)


@documented
@dataclass(eq=False, repr=False)
class HKLSurvival(SurvivalPredictions, OneAlphaEstimator):
    """Sparse nonlinear Cox regression over all products of one-variable functions.

    The hazard of a row is h(t | x) = h_0(t) exp(f(x)). Solves the convex problem of
    :class:`~hikernel.HKLRegressor` with minus the logarithm of Cox's partial likelihood,

        (1/n) sum over events i of log(sum of exp f(x_j) over rows at risk at time t_i) - f(x_i),

    as the loss (plus a constant that makes zero its infimum). Tied times are treated by Breslow's
    rule. A row is at risk up to its time, censored or not.

    Parameters
    ----------
    tol : float, default=0.001
        Duality gap to prove on the whole graph, relative to the objective. What a model can explain
        is a small part of this objective, which is why the default is smaller than elsewhere.
    {parameters}

    Attributes
    ----------
    event_times_ : ndarray of shape (n_times,)
        The distinct times of events.
    baseline_hazard_ : ndarray of shape (n_times,)
        Breslow's cumulative baseline hazard at these times.
    intercept_ : float
        Makes the mean of f over the training rows zero. The loss does not depend on it.
    hull_, terms_, certificate_, coef_, dual_coef_, nodes_, graph_, bases_, columns_, loss_, \
refit_, alpha_, history_, n_iter_, n_features_in_, feature_names_in_
        As for :class:`~hikernel.HKLRegressor`. ``dual_coef_`` times n times alpha are the
        martingale residuals of the convex problem.

    Examples
    --------
    >>> import numpy as np
    >>> from hikernel import HKLSurvival
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(300, 5))
    >>> time = rng.exponential(np.exp(-2 * X[:, 0] - 2 * X[:, 1] * X[:, 2]))
    >>> event = time < 2.0
    >>> y = np.column_stack([np.minimum(time, 2.0), event])
    >>> model = HKLSurvival(alpha=0.01).fit(X, y)
    >>> sorted(model.terms_["term"][:2])
    ['x0', 'x1 * x2']
    >>> model.predict_survival_function(X[:2], times=[0.5, 1.0]).shape
    (2, 2)
    """

    alpha: float | Literal["auto"] = "auto"
    refit: str | None = field(default=None, kw_only=True)
    monotone: Any = field(default=None, kw_only=True)
    warm_start: bool = field(default=False, kw_only=True)
    tol: float = field(default=1e-3, kw_only=True)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> HKLSurvival:
        """Fit the model.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Numbers, booleans and categories, with or without missing values. No scaling is
            needed.
        y : structured array of shape (n_samples,), or two columns
            Times and events: a structured array with a boolean field (the event) and a field of
            numbers (the time) in any order, or an array or data frame with the columns time and
            event. An event is True or 1 if it happened at that time, and False or 0 if the row was
            observed without an event up to that time. In a data frame, the only boolean column is
            the event wherever it stands.
        sample_weight : array-like of shape (n_samples,), optional
            Weights, zero or positive. With a number for alpha, an integer weight is equivalent to
            repeating the row; alpha="auto" counts rows by how unequal their weights are.

        Returns
        -------
        HKLSurvival
            The fitted estimator.
        """
        self._fit(X, y, sample_weight)
        return self


@documented
@dataclass(eq=False, repr=False, kw_only=True)
class HKLSurvivalCV(SurvivalPredictions, CrossValidatedEstimator, ChoiceParameters):
    """Sparse nonlinear Cox regression, alpha and refit chosen by cross-validation.

    The procedure is that of :class:`~hikernel.HKLRegressorCV`, for the problem of
    :class:`~hikernel.HKLSurvival`.

    Parameters
    ----------
    tol : float, default=0.001
        As for :class:`~hikernel.HKLSurvival`.
    cv : int, splitter or iterable, default=5
        Folds. An integer gives that many shuffled folds with equally many events. A splitter that
        is stratified is so by the events.
    scoring : "concordance", callable or None, default=None
        The score to maximise. None is gain - 1, where the gain is that of the cross-validated
        partial log-likelihood of Verweij and van Houwelingen over no model, per event: that of all
        rows minus that of the rows outside the fold, both with the model of the fold. A callable is
        called with the estimator, X and y as a structured array.
    {parameters}

    Attributes
    ----------
    alpha_, refit_, path_, cv_results_, best_score_, n_splits_
        As for :class:`~hikernel.HKLRegressorCV`.
    event_times_, baseline_hazard_, intercept_
        As for :class:`~hikernel.HKLSurvival`.
    hull_, terms_, certificate_, coef_, dual_coef_, nodes_, graph_, bases_, columns_, loss_, \
history_, n_iter_, n_features_in_, feature_names_in_
        As for :class:`~hikernel.HKLRegressor`.

    Examples
    --------
    >>> import numpy as np
    >>> from hikernel import HKLSurvivalCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(200, 3))
    >>> time = rng.exponential(np.exp(-3 * X[:, 0]))
    >>> y = np.column_stack([np.minimum(time, 2.0), time < 2.0])
    >>> HKLSurvivalCV(degree=2, cv=3).fit(X, y).score(X, y) > 0.7
    True
    """

    tol: float = field(default=1e-3)

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> HKLSurvivalCV:
        """Fit the model.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Numbers, booleans and categories, with or without missing values. No scaling is
            needed.
        y : structured array of shape (n_samples,), or two columns
            Times and events, as for :class:`~hikernel.HKLSurvival`.
        sample_weight : array-like of shape (n_samples,), optional
            Weights, zero or positive, in the fits and in the default score.
        groups : array-like of shape (n_samples,), optional
            Passed to the splitter.

        Returns
        -------
        HKLSurvivalCV
            The fitted estimator.
        """
        self._fit(X, y, sample_weight, groups)
        return self

    def _check_parameters(self) -> SearchSettings:
        if isinstance(self.scoring, str) and self.scoring != "concordance":
            raise ValueError(
                f'scoring must be None, "concordance", or a function of (estimator, X, y), got '
                f"{self.scoring!r}; other scores do not know censored times."
            )
        return super()._check_parameters()

    def _splits(self, X: Any, data: TrainingData, groups: Any) -> list[Fold]:
        cv, event = self.cv, event_and_time(data.y)[0]
        if isinstance(cv, (int, np.integer)):
            rare = min(np.sum(event), np.sum(~event))
            folds = KFold if rare < cv else StratifiedKFold
            cv = folds(int(cv), shuffle=True, random_state=self._seed())
        return split_rows(check_cv(cv, event, classifier=False), X, event, groups)

    def _scorer(self, scoring: Any) -> Any:
        return concordance_score if scoring == "concordance" else scoring
