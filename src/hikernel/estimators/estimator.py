"""Base classes of the estimators: checks, the fit at one alpha, fitted attributes, warnings."""

from __future__ import annotations

import logging
import math
import time
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import (
    check_consistent_length,
    check_is_fitted,
    check_random_state,
)

from hikernel.checks import (
    check_choice,
    check_integer,
    check_number,
    check_target,
    check_weights,
    name_of,
    outside_level,
)
from hikernel.columns import ColumnGrid
from hikernel.engines.machine import time_limit
from hikernel.engines.protocol import FloatArray
from hikernel.errors import CertificateWarning, ConvergenceWarning, OutOfTime
from hikernel.estimators.explanations import Explanations
from hikernel.estimators.parameters import OF_COLUMNS, ModelParameters, check_graph
from hikernel.estimators.training_data import TrainingData
from hikernel.estimators.typed_bases import BaseEstimator
from hikernel.graphs import GraphSource, SearchGraph
from hikernel.losses import Loss
from hikernel.search import SearchSettings, StopReason
from hikernel.selection import (
    REFITS,
    FitRecord,
    Fitted,
    PathEnd,
    PathPoint,
    TermModel,
    TrainingProblem,
    compute_path,
    constant_model,
    lambda_grid,
    refit,
    refit_is_possible,
    too_many_kernel_rows,
    without_proof,
)

if TYPE_CHECKING:
    from hikernel.estimators.progress import FitProgress

__all__ = ["HKLEstimator", "OneAlphaEstimator"]

_log = logging.getLogger(__name__)

_FEW_ROWS = 20
"""Up to this many rows, a single row with most of the objective is no reason for a warning."""

_AUTO_ALPHAS = 40
"""Largest number of alphas that alpha="auto" tries: down to 10^-9.75 of the first."""

_DESIGN_ATTRIBUTES = ("columns_", "bases_", "n_features_in_", "feature_names_in_")
"""Fitted attributes that only some designs set; those of an earlier fit are removed."""


class HKLEstimator(Explanations, ModelParameters, BaseEstimator):
    """Base class of the estimators; subclasses define how y is read."""

    _holds_labels = False
    """Whether y holds class labels."""

    _selected: TermModel
    """The model of the convex problem, which selected the terms."""

    def __sklearn_is_fitted__(self) -> bool:
        """Return whether there is a fitted model; a failed fit leaves none."""
        return hasattr(self, "_model")

    def __sklearn_tags__(self) -> Any:
        """Return the tags that tell scikit-learn which kinds of X are accepted."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags

    def save(self, path: str | PathLike[str], *, dual_coef: bool = True) -> None:
        """Write the fitted model to one file without pickle; ``hikernel.load`` reads it.

        Parameters
        ----------
        path : str or path-like
            File to write, with any name and extension.
        dual_coef : bool, default=True
            Whether to save ``dual_coef_``. It has one number per training row and output, and is
            not needed for predictions.

        Notes
        -----
        The file holds all that predictions and explanations need, but not the ``path_`` of a
        cross-validated model. A ``cv`` or ``scoring`` that is an object is not saved: there is a
        warning, and the loaded model has the default. Parameters that are arrays become lists.
        """
        from hikernel.estimators.saving import save  # imported only when needed

        save(self, path, dual_coef=dual_coef)

    @property
    def _owner(self) -> str:
        """Name of the estimator in messages."""
        return type(self).__name__

    def _start_fit(self) -> SearchSettings:
        """Drop the model of an earlier fit, check the parameters, return the settings.

        A fit that fails, for whatever reason, must not leave an old model.
        """
        self.__dict__.pop("_model", None)
        return self._check_parameters()

    def _check_parameters(self) -> SearchSettings:
        """Raise for invalid parameters, and return the settings of the search."""
        check_choice("search", self.search, ["lookahead", "paper"])
        check_integer("max_kernels", self.max_kernels, 1)
        check_number("tol", self.tol, above=1e-13, below=1.0)
        check_choice("certify", self.certify, ["auto", "exact", "statistical", "none"])
        if not isinstance(self.verbose, (bool, np.bool_)):
            check_integer("verbose", self.verbose, 0)
        if self.time_budget is not None:
            check_number("time_budget", self.time_budget, above=0.0)
        if self.certify == "statistical" and self.search == "paper":
            raise ValueError('certify="statistical" works with search="lookahead" only.')
        return SearchSettings(
            search=self.search,
            tol=self.tol,
            max_kernels=self.max_kernels,
            certify=self.certify,  # type: ignore[arg-type]
            seed=int(check_random_state(self.random_state).randint(2**31 - 1)),
        )

    @contextmanager
    def _time_limit(self) -> Iterator[None]:
        """Stop what is done within the context when the time budget of the user is spent."""
        seconds = np.inf if self.time_budget is None else float(self.time_budget)
        with time_limit(time.monotonic() + seconds):
            yield

    def _source(self) -> GraphSource:
        """Return the graph to fit: ``self.graph``, or the grid of the columns of X."""
        chosen = {name: getattr(self, name) for name in OF_COLUMNS}
        if self.graph is not None:
            return check_graph(self.graph, chosen)
        del chosen["search"]
        return ColumnGrid(**chosen, owner=self._owner)

    def _read_target(
        self, y: NDArray[Any], weights: FloatArray
    ) -> tuple[FloatArray, FloatArray, Loss]:
        """Return y encoded for the loss, the weights of the rows, and the loss."""
        raise NotImplementedError

    def _read_data(self, X: Any, y: Any, sample_weight: Any) -> TrainingData:
        """Read and check the arguments of ``fit``."""
        source, owner = self._source(), self._owner
        if y is None:
            raise ValueError(f"{owner} requires y to be passed, but the target y is None.")
        rows = source.read(X)
        name = name_of(y)
        remedy = 'choose loss="log_loss"' if owner == "hkl_path" else "use HKLClassifier"
        y = check_target(y, labels=self._holds_labels, remedy=remedy)
        check_consistent_length(rows, y)
        if len(y) < 2:
            raise ValueError(f"X has {len(y)} row; a minimum of 2 is required by {owner}.")
        target, weights, loss = self._read_target(y, check_weights(len(y), sample_weight))
        _log.info("Read %d rows of X and y; the loss is %s.", len(y), type(loss).__name__)
        return TrainingData(source, rows, y, target, weights, loss, name)

    def _training_problem(self, data: TrainingData, settings: SearchSettings) -> TrainingProblem:
        """Fit the graph to the rows, and return the problem to solve."""
        problem = TrainingProblem.make(data.source, data.rows, data.target, data.weights, data.loss)
        problem.objective.tail_mode(settings.certify)  # raises if not possible here
        _log.info("The graph has 10^%.1f kernels.", math.log10(problem.graph.n_vertices))
        return problem

    def _check_refit(self, name: str | None, problem: TrainingProblem) -> None:
        """Raise if this refit is not possible with the loss or the graph."""
        if name is not None and not refit_is_possible(problem):
            raise ValueError(f"refit={name!r} needs a smooth loss; use refit=None with this one.")
        if name is not None and too_many_kernel_rows(problem):
            raise ValueError(
                f"refit={name!r} takes Gram matrices of up to 1,000 rows (over the number of "
                f"outputs), and there are {problem.engine.n_rows}; use refit=None, or features."
            )

    def _refitted(self, name: str | None, problem: TrainingProblem, model: TermModel) -> Fitted:
        """Return the refitted model; raise if the refit does not apply to it."""
        fitted = refit(name, problem, model)
        if fitted is None:
            other = "" if name == "ridge" else '"ridge" or '
            raise ValueError(
                f"refit={name!r} does not apply: {model.n_terms} terms, or the products of their "
                f"variables, have too many columns for {problem.engine.n_rows} rows, or are not "
                f"given by columns at all; raise alpha, or use refit={other}None."
            )
        return fitted

    def _set_fitted(self, fitted: Fitted, loss: Loss, graph: SearchGraph) -> None:
        """Set the fitted attributes.

        Parameters
        ----------
        fitted : Fitted
            The model of the convex problem, and the model that predicts, with its design.
        loss : Loss
            The loss.
        graph : SearchGraph
            The graph that was searched.
        """
        selected, model = fitted.selected, fitted.model
        self._selected, self._model, self._design = selected, model, fitted.design
        for name in _DESIGN_ATTRIBUTES:
            self.__dict__.pop(name, None)
        for name, value in fitted.design.attributes().items():
            setattr(self, name, value)
        self.loss_, self.graph_ = loss, graph
        self.alpha_ = fitted.selected.lam
        self.hull_ = selected.frame(fitted.design)
        self.nodes_ = model.nodes
        self.coef_ = model.coef
        self.intercept_: Any = model.intercept if model.intercept.ndim else float(model.intercept)
        self.dual_coef_ = model.dual_coef
        self.refit_ = fitted.refit
        self.certificate_ = model.certificate
        self.history_ = model.history
        self.n_iter_ = len(model.history)

    def _warn(self, selected: TermModel) -> None:
        """Warn if a model is cut short, did not converge, or lacks the proof that was asked for."""
        if not selected.status.ok:
            warnings.warn(selected.status.sentence, ConvergenceWarning, stacklevel=outside_level())
        reason = selected.certificate.reason
        if reason is StopReason.SEARCH_TIME:
            warnings.warn(reason.sentence, ConvergenceWarning, stacklevel=outside_level())
        elif not selected.certificate.certified and self.certify != "none":
            warnings.warn(
                selected.certificate.explain(), CertificateWarning, stacklevel=outside_level()
            )

    def _warn_of_end(self, end: PathEnd, last: bool) -> None:
        """Warn if the chosen alpha is the last of a path that was cut off."""
        if last and end not in (PathEnd.TURNED, PathEnd.SATURATED):
            warnings.warn(
                "The chosen alpha is the smallest that was tried, and a smaller one may be better. "
                + end.sentence,
                ConvergenceWarning,
                stacklevel=outside_level(),
            )

    def _progress(self) -> AbstractContextManager[FitProgress | None]:
        """Return a context for a whole fit that gives what shows its stages, None if silent."""
        if not self.verbose:
            return nullcontext()
        from hikernel.estimators.progress import FitProgress  # imported only when needed

        return FitProgress(int(self.verbose))

    def _raw_predict(self, X: Any) -> FloatArray:
        """Return f(x) for the rows of X, shape (n,) or (n, k)."""
        check_is_fitted(self)
        return self._model.predict(self._design, self._design.read(X))


class OneAlphaEstimator(HKLEstimator):
    """Base class of the estimators that fit at a given alpha."""

    alpha: float | Literal["auto"]
    refit: str | None

    def _check_parameters(self) -> SearchSettings:
        if not (isinstance(self.alpha, str) and self.alpha == "auto"):
            remedy = 'Without a penalty nothing is selected; alpha="auto" chooses one.'
            check_number("alpha", self.alpha, above=1e-100, remedy=remedy)
        if self.refit == "auto":
            raise ValueError(
                'refit="auto" is a choice of cross-validation; use HKLRegressorCV or '
                "HKLClassifierCV, or name the refit."
            )
        check_refit_name(self.refit)
        return super()._check_parameters()

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> None:
        """Search, refit, set the fitted attributes, and warn of problems."""
        settings = self._start_fit()
        with self._progress() as show:
            if show:
                show.stage("read")
            with self._time_limit():
                data = self._read_data(X, y, sample_weight)
                problem = self._training_problem(data, settings)
                self._check_refit(self.refit, problem)
                selected, points = self._selected_model(problem, settings, show)
            fitted = Fitted(selected, selected, problem.design)
            if self.refit is not None:
                if show:
                    show.stage("refit")
                fitted = self._refitted(self.refit, problem, selected)
                _log.info("Refit %r: %d terms.", self.refit, fitted.model.n_terms)
        self._set_fitted(fitted, problem.loss, problem.graph)
        self._record = FitRecord.of(problem, fitted, data.name, points)
        self._warn(selected)
        self._warn_of_outliers(problem, selected)

    def _selected_model(
        self, problem: TrainingProblem, settings: SearchSettings, show: FitProgress | None
    ) -> tuple[TermModel, list[PathPoint]]:
        """Return the model at ``alpha``, or at the alpha with the least estimated error.

        Also the path on which that alpha was found.
        """
        start, points = None, []
        if isinstance(self.alpha, str):
            lams = lambda_grid(problem, _AUTO_ALPHAS, None)
            unproven = replace(settings, certify="none")
            if show:
                show.stage("path", "alphas")
            each = show.point if show else None
            path = compute_path(problem, lams.tolist(), unproven, each, until_turned=True)
            chosen = path.least_error()
            start, points = path.points[chosen].model, path.points
            self._warn_of_end(path.end, chosen == len(path) - 1)
        lam = float(self.alpha) if start is None else start.lam
        try:
            if show:
                show.stage("search and proof", "kernels")
            selected = problem.solve(
                lam, settings, start=start, callback=show.step if show else None
            )
        except OutOfTime:
            if start is None:
                return constant_model(problem, lam, settings), points
            return without_proof(start), points
        _log.info("Solved at alpha %.4g. %s", lam, selected.certificate)
        return selected, points

    def _warn_of_outliers(self, problem: TrainingProblem, model: TermModel) -> None:
        """Warn if one row has over half of the training loss: tol is relative to the objective."""
        losses = problem.row_losses(problem.prediction(model))
        scaled = problem.loss.degree > 0 and len(losses) > _FEW_ROWS
        if scaled and np.max(losses) > 0.5 * np.sum(losses) > 0.0:
            row = int(np.flatnonzero(problem.used)[np.argmax(losses)])
            warnings.warn(
                f"Row {row} carries more than half of the objective, to which tol is relative, so "
                "that the fit to all other rows may be poor; check that row, or lower tol.",
                UserWarning,
                stacklevel=outside_level(),
            )


def check_refit_name(name: str | None) -> None:
    """Raise unless ``name`` is a refit, "auto" or None."""
    if name not in (None, "auto", *REFITS):
        listed = ", ".join(repr(known) for known in (None, *REFITS))
        raise ValueError(f"refit must be one of {listed}, got {name!r}.")
