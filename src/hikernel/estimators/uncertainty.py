"""Error bars of a fitted estimator, and its calibration by conformal prediction.

Error bars are about the function f, with the selected terms as given (``selection.posterior``).
Conformal intervals and sets are about the y of new rows, whatever the model
(``selection.conformal``).
"""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from hikernel.checks import check_choice, check_fraction, check_target, check_weights, outside_level
from hikernel.engines.protocol import FloatArray
from hikernel.estimators.estimator import HKLEstimator
from hikernel.losses import Loss

if TYPE_CHECKING:
    import pandas as pd

    from hikernel.selection.conformal import Calibration
    from hikernel.selection.posterior import Posterior

__all__ = ["Uncertainty", "function_and_std", "mean_slope", "observation_std"]

_STEP = 1e-5
"""Step of the difference quotient for the derivative of a link, relative to max(1, |f|)."""


_SMALLEST_STD = 1e-150
"""Standard deviation of y where a model leaves none."""


class Uncertainty(HKLEstimator):
    """Error bars and calibration; subclasses define the conformity scores."""

    _posterior: Posterior | None
    _calibration: Calibration

    @property
    def posterior_(self) -> Posterior:
        """What error bars are computed from, after a refit.

        ``covariance()`` is the covariance of the coefficients of the terms with nonzero
        coefficients, and of the intercept, with the selected terms as given. ``dispersion`` is the
        variance of the noise (for the log loss, one), ``edf`` the effective number of parameters.
        """
        check_is_fitted(self)
        found: Posterior | None = getattr(self, "_posterior", None)
        if found is None:
            raise AttributeError(_why_no_error_bars(self))
        return found

    def effects_std(self, X: Any, by: str = "effect") -> pd.DataFrame:
        """Return the standard deviations of the values of ``effects(X)``; only after a refit.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows with the columns of the training data.
        by : {"effect", "term"}, default="effect"
            As for ``effects``.

        Returns
        -------
        pandas.DataFrame of n_samples rows
            Rows and columns as in ``effects(X)``. They are about the function, with the selected
            terms as given. Effects are estimated together and correlated: the variance of f(x) is
            not the sum of theirs.
        """
        import pandas as pd

        from hikernel.explain.effect_bars import effect_stds_frame  # imported only when needed

        posterior = require_posterior(self)
        check_choice("by", by, ["effect", "term"])
        rows = self._design.read(X)
        n_rows = len(self._design.predict([], self._model.coef[:0], rows))
        index = X.index if isinstance(X, (pd.DataFrame, pd.Series)) else None
        model, design, outputs = self._model, self._design, self._outputs()
        return effect_stds_frame(posterior, model, design, rows, n_rows, outputs, index, by)

    def _scores(self, y: NDArray[Any], f: FloatArray, std: FloatArray | None) -> FloatArray:
        """Return the conformity score of every row, shape (n,); larger is worse.

        ``std`` is the standard deviation of an observation at each row if scores are scaled.
        """
        raise NotImplementedError

    def _calibrate(
        self,
        X: Any,
        y: Any,
        cv: Any,
        sample_weight: Any,
        scaled: bool,
        offset: Any = None,
        exposure: Any = None,
    ) -> Self:
        """Keep the conformity scores of rows: new ones, or with ``cv`` the training rows."""
        from hikernel.selection.conformal import Calibration  # imported only when needed

        check_is_fitted(self)
        target = check_target(y, labels=self._holds_labels, remedy="use HKLClassifier")
        if scaled:
            require_posterior(self)
        std: FloatArray | None = None
        if cv is None:
            if sample_weight is not None:
                raise ValueError(
                    "sample_weight is for the fits of cv, and calibration on new rows has none: "
                    "they must be drawn like the rows to predict; leave it out."
                )
            if scaled:
                f, bars = function_and_std(self, X, offset, exposure)
                std = observation_std(self.loss_, f, bars, self.posterior_.dispersion)
            else:
                f = self._raw_predict(X, offset, exposure)
            check_consistent_length(f, target)
        else:
            from hikernel.estimators.cross_fits import out_of_fold

            given = (sample_weight, offset, exposure)
            f, std = out_of_fold(self, X, y, *given, cv=cv, scaled=scaled)
        scores = self._scores(target, f, std)
        if sample_weight is not None:
            # Rows of weight zero are as if they were left out.
            scores = scores[check_weights(len(scores), sample_weight) > 0]
        self._calibration = Calibration(np.sort(scores), scaled, cv is not None)
        return self

    def _quantile(self, confidence_level: float, what: str) -> float:
        """Return the conformity score that new rows exceed with probability 1 - level at most."""
        check_is_fitted(self)
        check_fraction("confidence_level", confidence_level, "the share of new rows to cover")
        calibration: Calibration | None = getattr(self, "_calibration", None)
        if calibration is None:
            raise ValueError(
                f"{what}() needs a calibrated model: call calibrate(X, y) first, with rows that "
                "were not used in fit, or calibrate(X, y, cv=5) with the training rows."
            )
        quantile = calibration.quantile(confidence_level)
        if quantile == math.inf:
            from hikernel.selection.conformal import least_rows

            warnings.warn(
                f"{len(calibration.scores)} calibration rows are too few for "
                f"confidence_level={confidence_level!r}, which takes {least_rows(confidence_level)}"
                " or more: everything is predicted to be possible. Calibrate on more rows, or "
                "lower the level.",
                UserWarning,
                stacklevel=outside_level(),
            )
        return quantile


def require_posterior(estimator: Any) -> Posterior:
    """Return the posterior of a fitted estimator; raise a ValueError that says why it has none."""
    check_is_fitted(estimator)
    found: Posterior | None = getattr(estimator, "_posterior", None)
    if found is None:
        raise ValueError(_why_no_error_bars(estimator))
    return found


def _why_no_error_bars(estimator: Any) -> str:
    from hikernel.selection.posterior import has_posterior

    other = "bootstrap() has error bars for any model, and calibrate() intervals for new rows."
    if not has_posterior(estimator.loss_):
        return f"The loss {estimator.loss_!r} gives no error bars, as it is no likelihood; {other}"
    if getattr(estimator, "monotone", None):
        return f"A refit with monotone effects is no normal posterior: it has edges; {other}"
    if estimator.refit_ is None:
        return (
            "This model has no refit: its coefficients are shrunken by the penalty that selected "
            'them, an error that error bars do not show. Fit with refit="ridge" (the CV estimators '
            f"choose a refit themselves); {other}"
        )
    return (
        "This model has no error bars: its file was saved without them, its nodes are Gram "
        f"matrices, its rows lay in blocks, or it has as many parameters as rows; {other}"
    )


def function_and_std(
    estimator: Any, X: Any, offset: Any = None, exposure: Any = None
) -> tuple[FloatArray, FloatArray]:
    """Return f(x) and its standard deviation, each of shape (n,) or (n, k).

    An offset is known, and adds nothing to the standard deviation.
    """
    posterior = require_posterior(estimator)
    model, design = estimator._model, estimator._design
    rows = design.read(X)
    f = estimator._with_offset(model.predict(design, rows), offset, exposure)
    return f, posterior.std(model, design, rows, len(f))


def mean_slope(loss: Loss, f: FloatArray) -> FloatArray:
    """Return the derivative of the predicted mean with respect to f, which is 1 without a link."""
    mean = loss.predict_mean(f)
    if mean is f:
        return np.ones_like(f)
    step = _STEP * np.maximum(1.0, np.abs(f))
    return np.asarray((loss.predict_mean(f + step) - loss.predict_mean(f - step)) / (2.0 * step))


def observation_std(loss: Loss, f: FloatArray, std: FloatArray, dispersion: float) -> FloatArray:
    """Return the standard deviation of y at rows, given f: noise and the error of f together.

    With m the derivative of the mean and W the second derivative of the loss at y = mean, the
    noise of a quasi-likelihood has variance phi m^2 / W: phi for the squared error, phi times the
    mean for counts. It is positive, for errors to be divided by, even if y is a constant.
    """
    slope = mean_slope(loss, f)
    curvature = np.maximum(loss.curvature(loss.predict_mean(f), f), np.finfo(float).tiny)
    found = slope * np.sqrt(dispersion / curvature + std**2)
    return np.asarray(np.maximum(found, _SMALLEST_STD))
