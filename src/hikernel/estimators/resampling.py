"""The bootstrap: fit an estimator again and again to resampled rows, selection included."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from inspect import signature
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier

from hikernel.checks import (
    check_fraction,
    check_integer,
    check_weights,
    outside_level,
    random_generator,
)
from hikernel.engines.protocol import FloatArray
from hikernel.estimators.estimator import HKLEstimator

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Bootstrap", "bootstrap"]


@dataclass(frozen=True)
class Bootstrap:
    """Result of :func:`bootstrap`.

    Attributes
    ----------
    estimators : list of estimator
        The fitted estimators, one per sample.
    """

    estimators: list[Any]

    @cached_property
    def effects(self) -> pd.DataFrame:
        """Effects that any of the fits has, the most frequent first.

        Columns: effect, frequency (share of the fits that have it), mean_share, std_share (of the
        variance of all terms; zero in a fit without the effect).
        """
        import pandas as pd

        tables = [model.effects_.set_index("effect")["share"] for model in self.estimators]
        names = dict.fromkeys(name for table in tables for name in table.index)
        shares = np.array([[table.get(name, 0.0) for name in names] for table in tables])
        has = np.array([[name in table.index for name in names] for table in tables])
        shape = (len(tables), len(names))
        shares, has = shares.reshape(shape), has.reshape(shape)
        frame = pd.DataFrame(
            {
                "effect": list(names),
                "frequency": np.mean(has, axis=0),
                "mean_share": np.mean(shares, axis=0),
                "std_share": np.std(shares, axis=0),
            }
        )
        order = ["frequency", "mean_share"]
        return frame.sort_values(order, ascending=False, kind="stable", ignore_index=True)

    def std(self, X: Any, offset: Any = None, exposure: Any = None) -> FloatArray:
        """Return the standard deviation of the predictions over the fits.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows with the columns of the training data.
        offset, exposure : array-like of shape (n_samples,), optional
            As for ``predict``, for these rows.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            Of ``predict`` for regressors and censored times, of ``predict_proba`` for classifiers
            (with a hinge loss, of ``decision_function``).
        """
        return np.asarray(np.std(self._responses(X, offset, exposure), axis=0))

    def interval(
        self, X: Any, confidence_level: float = 0.9, offset: Any = None, exposure: Any = None
    ) -> FloatArray:
        """Return percentile intervals of the predictions over the fits.

        They are about the predicted mean or probability, not about the y of a new row. They show
        how a model varies from sample to sample, but not its bias, as by shrinkage.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows with the columns of the training data.
        confidence_level : float, default=0.9
            Share of the fits within the interval.
        offset, exposure : array-like of shape (n_samples,), optional
            As for ``predict``, for these rows.

        Returns
        -------
        ndarray of shape (n_samples, 2) or (n_samples, n_classes, 2)
            Lower and upper ends, of what ``std`` describes.
        """
        ends = _ends(confidence_level)
        values = self._responses(X, offset, exposure)
        return np.moveaxis(np.quantile(values, ends, axis=0), 0, -1)

    def effects_interval(
        self, X: Any, confidence_level: float = 0.9
    ) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Return percentile intervals of what each effect contributes to f(x).

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows with the columns of the training data.
        confidence_level : float, default=0.9
            Share of the fits within the interval.

        Returns
        -------
        tuple of two pandas.DataFrame
            Lower and upper ends: a column "intercept" and one per row of ``effects``, with pairs
            (class, effect) for more than two classes. An effect is zero in a fit without it.
        """
        import pandas as pd

        ends = _ends(confidence_level)
        frames = [model.effects(X) for model in self.estimators]
        names = ["intercept", *self.effects["effect"]]
        columns = pd.Index(names, name="effect")
        if isinstance(frames[0].columns, pd.MultiIndex):
            outputs = frames[0].columns.get_level_values(0).unique()
            columns = pd.MultiIndex.from_product([outputs, names], names=frames[0].columns.names)
        values = [frame.reindex(columns=columns, fill_value=0.0).to_numpy() for frame in frames]
        low, high = np.quantile(values, ends, axis=0)
        index = frames[0].index
        return (
            pd.DataFrame(low, index=index, columns=columns),
            pd.DataFrame(high, index=index, columns=columns),
        )

    def _responses(self, X: Any, offset: Any, exposure: Any) -> list[FloatArray]:
        """Return the means, the probabilities, or f of a hinge loss, of every fit."""
        known = _known(self.estimators[0], offset, exposure)
        return [_response(model)(X, **known) for model in self.estimators]


def bootstrap(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    sample_weight: Any = None,
    offset: Any = None,
    exposure: Any = None,
    n_bootstraps: int = 50,
    n_jobs: int | None = None,
    random_state: Any = 0,
) -> Bootstrap:
    """Fit an estimator to bootstrap samples of the rows, with the whole selection in each fit.

    A sample has as many rows as the data, drawn with replacement, for a classifier within each
    class. A row that is drawn twice counts by its weight and stays in one piece, so that no fold
    of a cross-validated estimator tests a row that it was fitted to. For folds by groups pass its
    ``cv`` as pairs, ``list(GroupKFold(5).split(X, y, groups))``.

    Parameters
    ----------
    estimator : HKLRegressor, HKLClassifier, HKLSurvival, or a cross-validated form
        The estimator. Clones of it are fitted, with ``certify="none"``.
    X : array-like or data frame of shape (n_samples, n_features)
        As for ``estimator.fit``.
    y : array-like of shape (n_samples,)
        Target, as for ``estimator.fit``.
    sample_weight : array-like of shape (n_samples,), optional
        Weights, zero or positive; rows of weight zero are not drawn.
    offset, exposure : array-like of shape (n_samples,), optional
        As for ``estimator.fit``; a row that is drawn keeps its own.
    n_bootstraps : int, default=50
        Number of samples. 50 are enough for standard deviations; intervals take some hundreds.
    n_jobs : int, optional
        Number of joblib workers for the fits.
    random_state : int, RandomState or None, default=0
        Seed of the draws.

    Returns
    -------
    Bootstrap
        Intervals of predictions and effects, and how often each effect is selected.

    Raises
    ------
    TypeError
        If the estimator is not one of this package.
    ValueError
        If a parameter is out of range.

    Examples
    --------
    >>> import numpy as np
    >>> from hikernel import HKLRegressor, bootstrap
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(200, 6))
    >>> y = X[:, 0] + 2 * X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(200)
    >>> found = bootstrap(HKLRegressor(alpha=0.01, refit="ridge"), X, y, n_bootstraps=10)
    >>> found.effects.query("frequency == 1")["effect"].tolist()
    ['x1 * x2', 'x0', 'x1', 'x2']
    >>> found.interval(X[:2]).shape
    (2, 2)
    """
    if not isinstance(estimator, HKLEstimator):
        raise TypeError(
            "bootstrap needs an estimator of hikernel, such as HKLRegressor(), whose effects it "
            f"compares; got {estimator!r}."
        )
    check_integer("n_bootstraps", n_bootstraps, 2)
    plain = clone(estimator).set_params(certify="none", verbose=0)
    plain._check_parameters()
    known = _known(plain, offset, exposure)
    data = clone(plain)._read_data(X, y, sample_weight, **known)
    weights = check_weights(len(data.y), sample_weight)  # without class weights
    labels = data.y if is_classifier(estimator) else None
    rng = random_generator(random_state)
    draws = [_counts(labels, weights, rng) * weights for _ in range(n_bootstraps)]
    fits = Parallel(n_jobs=n_jobs)(delayed(_fit)(plain, X, y, drawn, known) for drawn in draws)
    said = [words for _, words in fits if words]
    if said:
        warnings.warn(
            f"{len(said)} of {n_bootstraps} fits warned, the first: {said[0]}",
            UserWarning,
            stacklevel=outside_level(),
        )
    return Bootstrap([model for model, _ in fits])


def _counts(labels: NDArray[Any] | None, weights: FloatArray, rng: Any) -> FloatArray:
    """Return how often each row is drawn; each class keeps its number of rows."""
    used = np.flatnonzero(weights > 0)
    parts = [used]
    if labels is not None:
        parts = [used[labels[used] == label] for label in np.unique(labels[used])]
    out = np.zeros(len(weights))
    for part in parts:
        np.add.at(out, part[rng.randint(len(part), size=len(part))], 1.0)
    return out


def _fit(
    estimator: Any, X: Any, y: Any, weights: FloatArray, known: dict[str, Any]
) -> tuple[Any, str]:
    """Return a fitted clone and the first warning of its fit.

    The clone is without its path and what a warm start keeps, which are large.
    """
    model = clone(estimator)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y, sample_weight=weights, **known)
    for name in ("path_", "_warm"):
        model.__dict__.pop(name, None)
    return model, str(caught[0].message) if caught else ""


def _known(estimator: Any, offset: Any, exposure: Any) -> dict[str, Any]:
    """Return what is known of rows as arguments; raise if the estimator does not take it."""
    given = {"offset": offset, "exposure": exposure}
    known = {name: value for name, value in given.items() if value is not None}
    for name in known:
        if name not in signature(estimator.fit).parameters:
            raise ValueError(f"{estimator._owner} takes no {name}; leave it out.")
    return known


def _response(model: Any) -> Callable[..., FloatArray]:
    """Return the function that gives the mean, the probabilities, or f of a hinge loss."""
    if not is_classifier(model):
        return model.predict  # type: ignore[no-any-return]
    return getattr(model, "predict_proba", model.decision_function)  # type: ignore[no-any-return]


def _ends(confidence_level: float) -> list[float]:
    """Return the two quantiles of an interval."""
    check_fraction("confidence_level", confidence_level, "the share of the fits to cover")
    return [0.5 - 0.5 * confidence_level, 0.5 + 0.5 * confidence_level]
