"""The estimators for collections of Dask: fitted on the workers, and predicting there.

They are the estimators of the same name without Dask, with its parameters and fitted attributes.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Any, ClassVar, Self

import dask
import dask.array as da
import numpy as np
from distributed import default_client

from hikernel.dask.dask_blocks import DaskTable, holds_dask, partitions_of, to_client
from hikernel.estimators import HKLClassifier, HKLClassifierCV, HKLRegressor, HKLRegressorCV
from hikernel.estimators.estimator import HKLEstimator

__all__ = [
    "DaskHKLClassifier",
    "DaskHKLClassifierCV",
    "DaskHKLRegressor",
    "DaskHKLRegressorCV",
]


class DaskEstimator(HKLEstimator):
    """What the estimators for Dask have in common."""

    client: Any
    _local: ClassVar[type[Any]]

    @property
    def client_(self) -> Any:
        """The client of the workers: ``client``, or the one that is active.

        Raises
        ------
        ValueError
            If there is none.
        """
        if self.client is not None:
            return self.client
        try:
            return default_client()
        except ValueError:
            raise ValueError(
                "There is no client of Dask: start one by distributed.Client(), or pass client=."
            ) from None

    def to_local(self) -> Any:
        """Return the estimator without Dask, fitted if this one is; nothing is fitted again."""
        plain = self._local(**self._plain_parameters())
        names = set(self.get_params(deep=False))
        state = {name: value for name, value in vars(self).items() if name not in names}
        if "_design" in state:
            state["_design"] = replace(state["_design"], owner=self._local.__name__)
        vars(plain).update(copy.copy(state))
        return plain

    def save(
        self, path: str | PathLike[str], *, dual_coef: bool = True, error_bars: bool = True
    ) -> None:
        """Write the fitted model to a file, as the estimator without Dask that it then is."""
        self.to_local().save(path, dual_coef=dual_coef, error_bars=error_bars)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for pickles and copies, without the connection of a client."""
        return super().__getstate__() | {"client": None}

    def __sklearn_clone__(self) -> Self:
        """Return an estimator with the same parameters, and the same client."""
        return type(self)(**self._plain_parameters(), client=self.client)  # type: ignore[call-arg]

    def _plain_parameters(self) -> dict[str, Any]:
        parameters = self.get_params(deep=False)
        return {k: copy.deepcopy(v) for k, v in parameters.items() if k != "client"}

    def _fit(self, *arguments: Any) -> None:
        X, *vectors = arguments
        client = self.client_
        super()._fit(DaskTable(X, client), *(to_client(given, client) for given in vectors))

    def _of_rows(self, method: str, X: Any, *arguments: Any, **more: Any) -> Any:
        """Return what a method gives for the rows of X: lazily for a collection of Dask."""
        if not holds_dask(X):
            return getattr(super(), method)(X, *arguments, **more)
        if any(given is not None and given is not False for given in (*arguments, *more.values())):
            raise ValueError(
                f"{method} of a collection of Dask takes X alone; for error bars and offsets pass "
                "rows in memory to to_local()."
            )
        model = self.to_local()
        model.__dict__.pop("path_", None)
        names = self.__dict__.get("feature_names_in_")
        if names is not None and set(names) <= set(getattr(X, "columns", ())):
            X = X[list(names)]
        return predicted(model, method, X)

    def predict(self, X: Any, *arguments: Any, **more: Any) -> Any:
        """Return the predictions of the rows of X: of a collection of Dask, a lazy Dask array.

        Parameters
        ----------
        X : dask array or data frame, or rows in memory
            Rows with the columns of the training data.
        *arguments, **more
            For rows in memory, as for the estimator without Dask.

        Returns
        -------
        dask.array.Array or ndarray of shape (n_samples,)
        """
        return self._of_rows("predict", X, *arguments, **more)


def predicted(model: Any, method: str, X: Any) -> Any:
    """Return a Dask array of what a method of a local model gives for the partitions of X."""
    shared = dask.delayed(model)
    call = dask.delayed(_predict, name=f"hikernel-{method.replace('_', '-')}")
    parts = partitions_of(X)
    counts = X.chunks[0] if isinstance(X, da.Array) else (np.nan,) * len(parts)
    example = _example(model, method)
    arrays = [
        da.from_delayed(
            call(shared, method, part),
            shape=(count, *example.shape[1:]),
            dtype=example.dtype,
        )
        for part, count in zip(parts, counts, strict=True)
    ]
    return da.concatenate(arrays, allow_unknown_chunksizes=True)


def _example(model: Any, method: str) -> Any:
    """Return what a method gives for no rows."""
    f = np.empty((0, *np.shape(model.intercept_)))
    if method == "predict":
        return model._respond(model.loss_)(f)
    if method == "decision_function":
        return f
    return np.empty((0, len(model.classes_)))


def _predict(model: Any, method: str, part: Any) -> Any:
    if not len(part):
        return _example(model, method)
    return getattr(model, method)(part)


class _Classifier(DaskEstimator):
    """What the classifiers have beside ``predict``."""

    def decision_function(self, X: Any, *arguments: Any, **more: Any) -> Any:
        """Return f(x) for the rows of X, as ``predict`` returns labels."""
        return self._of_rows("decision_function", X, *arguments, **more)

    def predict_proba(self, X: Any, *arguments: Any, **more: Any) -> Any:
        """Return the probabilities of the classes, as ``predict`` returns labels."""
        return self._of_rows("predict_proba", X, *arguments, **more)

    def predict_log_proba(self, X: Any, *arguments: Any, **more: Any) -> Any:
        """Return the logarithms of ``predict_proba``."""
        return self._of_rows("predict_log_proba", X, *arguments, **more)


@dataclass(eq=False, repr=False)
class DaskHKLRegressor(DaskEstimator, HKLRegressor):
    """:class:`~hikernel.HKLRegressor` for collections of Dask.

    ``fit(X, y)`` takes a Dask array or data frame with any partitions, and y as one of Dask, an
    array, or the name of a column of X. ``predict`` returns a Dask array, ``to_local()`` the
    estimator without Dask. The rows stay on the workers; one number per row of y, of the weights
    and of a few other vectors is here.

    Parameters
    ----------
    alpha, loss, refit, ...
        As for :class:`~hikernel.HKLRegressor`.
    client : distributed.Client, optional
        The client of the workers; by default the active one.

    Attributes
    ----------
    client_ : distributed.Client
        The client.
    hull_, terms_, certificate_, coef_, ...
        As for :class:`~hikernel.HKLRegressor`.
    """

    client: Any = field(default=None, kw_only=True)
    _local = HKLRegressor


@dataclass(eq=False, repr=False)
class DaskHKLClassifier(_Classifier, HKLClassifier):
    """:class:`~hikernel.HKLClassifier` for collections of Dask.

    See :class:`DaskHKLRegressor` for what is different.

    Parameters
    ----------
    alpha, loss, refit, ...
        As for :class:`~hikernel.HKLClassifier`.
    client : distributed.Client, optional
        The client of the workers; by default the active one.
    """

    client: Any = field(default=None, kw_only=True)
    _local = HKLClassifier


@dataclass(eq=False, repr=False, kw_only=True)
class DaskHKLRegressorCV(DaskEstimator, HKLRegressorCV):
    """:class:`~hikernel.HKLRegressorCV` for collections of Dask.

    See :class:`DaskHKLRegressor` for what is different. Folds share the rows on the workers.

    Parameters
    ----------
    loss, alphas, refit, ...
        As for :class:`~hikernel.HKLRegressorCV`.
    client : distributed.Client, optional
        The client of the workers; by default the active one.
    """

    client: Any = None
    _local = HKLRegressorCV


@dataclass(eq=False, repr=False, kw_only=True)
class DaskHKLClassifierCV(_Classifier, HKLClassifierCV):
    """:class:`~hikernel.HKLClassifierCV` for collections of Dask.

    See :class:`DaskHKLRegressor` for what is different. Folds share the rows on the workers.

    Parameters
    ----------
    loss, alphas, refit, ...
        As for :class:`~hikernel.HKLClassifierCV`.
    client : distributed.Client, optional
        The client of the workers; by default the active one.
    """

    client: Any = None
    _local = HKLClassifierCV
