"""hkl_path: models for a sequence of decreasing alphas."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from numpy.typing import NDArray

from hikernel.checks import check_integer, check_number, outside_level
from hikernel.engines.interrupts import listening
from hikernel.engines.machine import memory_limit
from hikernel.engines.protocol import FloatArray
from hikernel.estimators.censored import censored_target, read_censored
from hikernel.estimators.estimator import HKLEstimator
from hikernel.estimators.labels import Labels
from hikernel.estimators.parameters import ModelOptions, documented, same_parameters
from hikernel.estimators.solved_path import Path
from hikernel.losses import CLASSIFICATION, REGRESSION, SURVIVAL, Cox, Loss, make_loss
from hikernel.selection import (
    TrainingProblem,
    compute_path,
    lambda_grid,
)

if TYPE_CHECKING:
    pass

__all__ = ["check_alphas", "hkl_path", "path_lams"]


def check_alphas(alphas: Any, n_alphas: int, eps: float | None) -> None:
    """Raise unless ``alphas`` is None or positive numbers, and the grid parameters are valid."""
    check_integer("n_alphas", n_alphas, 1)
    if eps is not None:
        check_number("eps", eps, above=0.0, below=1.0)
    if alphas is None:
        return
    if isinstance(alphas, (str, bytes, dict)) or np.ndim(alphas) != 1:
        raise ValueError(
            f"alphas must be a list of numbers, or None for an automatic grid, got {alphas!r}."
        )
    if len(alphas) == 0:
        raise ValueError("alphas is empty; pass at least one, or None for an automatic grid.")
    for alpha in alphas:
        check_number("every alpha", alpha, above=1e-100)


def path_lams(
    problem: TrainingProblem, alphas: Sequence[float] | None, n_alphas: int, eps: float | None
) -> list[float]:
    """Return the lambdas of a path, decreasing: ``alphas``, or an automatic grid if it is None."""
    if alphas is None:
        return [float(lam) for lam in lambda_grid(problem, n_alphas, eps)]
    return sorted((float(alpha) for alpha in alphas), reverse=True)


@dataclass(eq=False, repr=False, kw_only=True)
class _PathParameters(HKLEstimator):
    """Parameters of ``hkl_path``, with the checks and the reading of data of the estimators."""

    loss: Any = "squared_error"
    alphas: Any = None
    n_alphas: int = 40
    eps: float | None = None
    certify: str = "none"

    @property
    def _owner(self) -> str:
        return "hkl_path"

    @property
    def _holds_labels(self) -> bool:  # type: ignore[override]
        if isinstance(self.loss, Loss):
            return self.loss.for_labels
        return isinstance(self.loss, str) and self.loss in CLASSIFICATION

    @property
    def _holds_times(self) -> bool:
        return self.loss == Cox.name or isinstance(self.loss, Cox)

    def _checked_target(self, y: Any) -> NDArray[Any]:
        return read_censored(y) if self._holds_times else super()._checked_target(y)

    def _read_target(
        self, y: NDArray[Any], weights: FloatArray
    ) -> tuple[FloatArray, FloatArray, Loss]:
        if self._holds_labels:
            self._labels, target = Labels.of(y, weights, self.loss)
            return target, weights, self._labels.loss
        if self._holds_times:
            return censored_target(y), weights, make_loss(self.loss, SURVIVAL)
        return y, weights, make_loss(self.loss, REGRESSION | CLASSIFICATION)

    def compute(self, X: Any, y: Any, sample_weight: Any, offset: Any, exposure: Any) -> Path:
        """Solve the path for the given data."""
        settings = self._check_parameters()
        check_alphas(self.alphas, self.n_alphas, self.eps)
        with (
            listening(self.on_interrupt == "keep") as stop,
            self._progress() as show,
            self._time_limit(stop),
            memory_limit(self._most_bytes()),
        ):
            if show:
                show.stage("read")
            data = self._read_data(X, y, sample_weight, offset, exposure)
            problem = self._training_problem(data, settings)
            lams = path_lams(problem, self.alphas, self.n_alphas, self.eps)
            turning = self.alphas is None and self.eps is None
            if show:
                show.stage("path", "alphas")
            each = show.point if show else None
            path = compute_path(problem, lams, settings, each, until_turned=turning)
        if path.end.is_cut:
            warnings.warn(path.end.sentence, UserWarning, stacklevel=outside_level())
        respond = self._labels.choose if self._holds_labels else data.loss.predict_mean
        return Path(path.points, path.end, problem.design, respond, data.loss)


class PathOptions(ModelOptions, total=False):
    """The types of ``_PathParameters``, for type checkers."""

    loss: Any
    alphas: Any
    n_alphas: int
    eps: float | None


@documented
@same_parameters(_PathParameters)
def hkl_path(
    X: Any,
    y: Any,
    *,
    sample_weight: Any = None,
    offset: Any = None,
    exposure: Any = None,
    **parameters: Unpack[PathOptions],
) -> Path:
    """Solve the convex problem of the estimators for a whole path of alphas.

    Parameters
    ----------
    X : array-like or data frame of shape (n_samples, n_features)
        Numbers, booleans and categories, with or without missing values. With ``graph=``, whatever
        the graph takes.
    y : array-like of shape (n_samples,)
        Target, labels for a classification loss, or times and events for the loss "cox".
    sample_weight : array-like of shape (n_samples,), optional
        Weights, zero or positive.
    offset, exposure : array-like of shape (n_samples,), optional
        As for ``fit`` of the estimators.
    loss : str or Loss, default="squared_error"
        A loss of :class:`~hikernel.HKLRegressor` or of :class:`~hikernel.HKLClassifier`, or "cox"
        for the loss of :class:`~hikernel.HKLSurvival`.
    certify : {"none", "auto", "exact", "statistical"}, default="none"
        As for the estimators, but by default the kernels outside the hull are not bounded: that
        takes seconds per alpha, and is best done only for the alpha that is finally chosen. On
        graphs other than grids all nodes are scored anyway, so that every model is certified.
    verbose : int or bool, default=0
        As for the estimators.
    {parameters}

    Returns
    -------
    Path
        ``table()`` has one row per alpha, ``predict(X, alpha=...)`` predicts, ``hull(alpha)`` lists
        the terms, and ``points`` holds the models. The path may end early; ``reason`` says why.

    Examples
    --------
    >>> import numpy as np
    >>> from hikernel import hkl_path
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(200, 6))
    >>> y = X[:, 0] + 2 * X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(200)
    >>> path = hkl_path(X, y, n_alphas=10)
    >>> table = path.table()
    >>> bool(table["explained"].is_monotonic_increasing)
    True
    """
    try:
        fit = _PathParameters(**parameters)
    except TypeError as error:
        message = str(error).replace("_PathParameters.__init__()", "hkl_path()")
        raise TypeError(message) from None
    return fit.compute(X, y, sample_weight, offset, exposure)
