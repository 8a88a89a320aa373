"""Base class of the estimators: checks, reading of the data, fitted attributes, warnings."""

from __future__ import annotations

import logging
import math
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import (
    check_consistent_length,
    check_is_fitted,
)

from hikernel.checks import (
    check_choice,
    check_integer,
    check_number,
    check_target,
    check_weights,
    name_of,
    outside_level,
    random_generator,
)
from hikernel.columns import ColumnGrid
from hikernel.columns.reading import lies_in_blocks
from hikernel.engines.interrupts import Interrupt, listening
from hikernel.engines.machine import memory_limit, time_limit
from hikernel.engines.protocol import FloatArray
from hikernel.errors import CertificateWarning, ConvergenceWarning
from hikernel.estimators.attributions import Attributions
from hikernel.estimators.parameters import OF_COLUMNS, ModelParameters, check_graph
from hikernel.estimators.planned_memory import PlannedMemory
from hikernel.estimators.training_data import TrainingData
from hikernel.estimators.typed_bases import BaseEstimator
from hikernel.graphs import GraphSource, SearchGraph
from hikernel.losses import Loss
from hikernel.search import SearchSettings, StopReason
from hikernel.search.effort import MAX_EXPLORED, PROOF_WORK
from hikernel.selection import (
    REFITS,
    Fitted,
    PathEnd,
    TermModel,
    TrainingProblem,
    refit,
    refit_is_possible,
    too_many_kernel_rows,
)

if TYPE_CHECKING:
    from hikernel.estimators.memory_plan import MemoryPlanner
    from hikernel.estimators.offsets import RowOffset
    from hikernel.estimators.progress import FitProgress

__all__ = ["HKLEstimator", "check_refit_name", "row_offset"]

_log = logging.getLogger(__name__)

_OF_ONE_FIT = ("_model", "_posterior", "_calibration", "path_")
"""What not every fit sets, and the model, without which an estimator is not fitted."""

_PRIVATE = (*_OF_ONE_FIT, "_selected", "_design", "_labels", "_record", "_baseline", "_warm")
"""What a fit sets beside the attributes whose names end in an underscore."""


_DESIGN_ATTRIBUTES = ("columns_", "bases_", "n_features_in_", "feature_names_in_")
"""Fitted attributes that only some designs set; those of an earlier fit are removed."""


class HKLEstimator(PlannedMemory, Attributions, ModelParameters, BaseEstimator):
    """Base class of the estimators; subclasses define how y is read."""

    _holds_labels = False
    """Whether y holds class labels."""

    _fold_offset: FloatArray | None = None
    """Offset of held-out rows, for a scorer that predicts them and knows of no offset."""

    monotone: Any = None
    """Directions of columns; without a refit, as in ``hkl_path``, there are none."""

    _selected: TermModel
    """The model of the convex problem, which selected the terms."""

    def __sklearn_is_fitted__(self) -> bool:
        """Return whether there is a fitted model; a failed fit leaves none."""
        return hasattr(self, "_model")

    @property
    def _owner(self) -> str:
        """Name of the estimator in messages."""
        return type(self).__name__

    def _fit(self, *arguments: Any) -> None:
        """Fit the model; afterwards there is a whole one, or none if the fit was not completed.

        A fit that fails, for whatever reason, must leave neither an old model nor a part of a new
        one: errors, Ctrl-C and a lack of memory may come at any line of it.
        """
        for name in _OF_ONE_FIT:
            self.__dict__.pop(name, None)
        try:
            with listening(self.on_interrupt == "keep") as stop, memory_limit(self._most_bytes()):
                self._fit_model(stop, *arguments)
        except BaseException:
            self._forget()
            raise

    def _fit_model(self, stop: Interrupt | None, *arguments: Any) -> None:
        """Fit the model; if ``stop`` is asked for, end soon with the model so far."""
        raise NotImplementedError

    def _forget(self) -> None:
        """Drop all that this fit, or one before it, has set."""
        for name in list(self.__dict__):
            if name in _PRIVATE or (name.endswith("_") and not name.startswith("_")):
                del self.__dict__[name]

    def _check_parameters(self) -> SearchSettings:
        """Raise for invalid parameters, and return the settings of the search."""
        check_choice("search", self.search, ["lookahead", "paper"])
        check_integer("max_kernels", self.max_kernels, 1)
        check_number("tol", self.tol, above=1e-13, below=1.0)
        check_choice("certify", self.certify, ["auto", "exact", "statistical", "none"])
        if not isinstance(self.verbose, (bool, np.bool_)):
            check_integer("verbose", self.verbose, 0)
        check_number("proof_effort", self.proof_effort, above=0.0, below=1e12)
        check_choice("on_interrupt", self.on_interrupt, ["raise", "keep"])
        if self.time_budget is not None:
            check_number("time_budget", self.time_budget, above=0.0)
        if self.certify == "statistical" and self.search == "paper":
            raise ValueError('certify="statistical" works with search="lookahead" only.')
        return SearchSettings(
            search=self.search,
            tol=self.tol,
            max_kernels=self.max_kernels,
            certify=self.certify,  # type: ignore[arg-type]
            seed=int(random_generator(self.random_state).randint(2**31 - 1)),
            max_explored=int(self.proof_effort * MAX_EXPLORED),
            max_work=float(self.proof_effort) * PROOF_WORK,
        )

    @contextmanager
    def _time_limit(self, stop: Interrupt | None) -> Iterator[None]:
        """Stop what is done within the context when the time budget is spent, or if asked to."""
        with time_limit(time.monotonic() + float(self.time_budget or np.inf), stop):
            yield

    def _source(self, X: Any) -> GraphSource:
        """Return the graph to fit: ``self.graph``, or the grid of the columns of X."""
        chosen = {name: getattr(self, name) for name in OF_COLUMNS}
        if self.graph is not None:
            if self.monotone is not None:
                raise ValueError(
                    "monotone names columns, which a graph= does not have; leave it out."
                )
            if lies_in_blocks(X):
                raise ValueError("X lies in blocks, which a graph= does not read; leave out graph.")
            return check_graph(self.graph, chosen)
        del chosen["search"]
        grid = ColumnGrid(**chosen, monotone=self.monotone, owner=self._owner)
        return grid.suited_to(X)

    def _checked_target(self, y: Any) -> NDArray[Any]:
        """Return y as an array with one entry per row; raise if it is not a valid target."""
        remedy = 'choose loss="log_loss"' if self._owner == "hkl_path" else "use HKLClassifier"
        return check_target(y, labels=self._holds_labels, remedy=remedy)

    def _target_name(self, y: Any) -> str | None:
        """Return the name of y; None if it has none."""
        return name_of(y)

    def _read_target(
        self, y: NDArray[Any], weights: FloatArray
    ) -> tuple[FloatArray, FloatArray, Loss]:
        """Return y encoded for the loss, the weights of the rows, and the loss."""
        raise NotImplementedError

    def _read_data(
        self, X: Any, y: Any, sample_weight: Any, offset: Any = None, exposure: Any = None
    ) -> TrainingData:
        """Read and check the arguments of ``fit``."""
        if lies_in_blocks(X):
            from hikernel.estimators.block_data import split_columns  # imported only when needed

            given = X, y, sample_weight, offset, exposure
            X, y, sample_weight, offset, exposure = split_columns(self, *given)
        source, owner = self._source(X), self._owner
        if self._plans_memory(X):
            from hikernel.estimators.memory_plan import check_table  # imported only when needed

            check_table(X, self._most_bytes())
        if y is None:
            raise ValueError(f"{owner} requires y to be passed, but the target y is None.")
        rows = source.read(X)
        name = self._target_name(y)
        y = self._checked_target(y)
        check_consistent_length(rows, y)
        if len(y) < 2:
            raise ValueError(f"X has {len(y)} row; a minimum of 2 is required by {owner}.")
        target, weights, loss = self._read_target(y, check_weights(len(y), sample_weight))
        _log.info("Read %d rows of X and y; the loss is %s.", len(y), type(loss).__name__)
        shift = row_offset(offset, exposure, loss, target.shape)
        return TrainingData(source, rows, y, target, weights, loss, name, shift)

    def _training_problem(
        self, data: TrainingData, settings: SearchSettings, **folds: Any
    ) -> TrainingProblem:
        """Fit the graph to the rows, and return the problem to solve; ``folds`` need memory too."""
        plan = self._memory_plan(data.rows, settings, **folds)
        problem = self._problem_on(data.source, data, plan)
        problem.objective.tail_mode(settings.certify)  # raises if not possible here
        _log.info("The graph has 10^%.1f kernels.", math.log10(problem.graph.n_vertices))
        return problem

    @staticmethod
    def _problem_on(
        source: GraphSource, data: TrainingData, plan: MemoryPlanner | None = None
    ) -> TrainingProblem:
        """Return the problem of the data on a graph, if there is the memory that it plans."""
        shift = None if data.offset is None else data.offset.values
        rows, y, weights, loss = data.rows, data.target, data.weights, data.loss
        return TrainingProblem.make(source, rows, y, weights, loss, shift, plan)

    def _check_refit(self, name: str | None, problem: TrainingProblem) -> None:
        """Raise if this refit is not possible with the loss or the graph."""
        if name is not None and not refit_is_possible(problem):
            raise ValueError(f"refit={name!r} needs a smooth loss; use refit=None with this one.")
        if name is not None and too_many_kernel_rows(problem):
            raise ValueError(
                f"refit={name!r} takes Gram matrices of up to 1,000 rows (over the number of "
                f"outputs), and there are {problem.engine.n_rows}; use refit=None, or features."
            )

    def _refit_name(self, name: str | None, problem: TrainingProblem) -> str | None:
        """Return the refit to use: if columns have directions, "ridge" in place of None.

        Raises
        ------
        ValueError
            If columns have directions, and the loss has no refits or several outputs.
        """
        if not problem.design.monotone_columns():
            return name
        if not refit_is_possible(problem):
            raise ValueError(
                "monotone constrains the refit, which needs a smooth loss, and "
                f"{problem.loss.name!r} has kinks; use another loss, or leave monotone out."
            )
        if problem.y.ndim > 1:
            raise ValueError(
                "monotone needs a single function f, and more than two classes have one each; "
                "leave it out, or fit the classes one by one "
                "(sklearn.multiclass.OneVsRestClassifier)."
            )
        return name or "ridge"

    def _refitted(self, name: str | None, problem: TrainingProblem, model: TermModel) -> Fitted:
        """Return the refitted model, however late it is; raise if the refit does not apply."""
        with time_limit(math.inf):
            fitted = refit(name, problem, model)
        if fitted is None:
            other = "" if name == "ridge" else 'refit="ridge" or '
            none = "no monotone=" if problem.design.monotone_columns() else "refit=None"
            raise ValueError(
                f"refit={name!r} does not apply: {model.n_terms} terms, or the products of their "
                f"variables, have too many columns for {problem.engine.n_rows} rows, or are not "
                f"given by columns at all; raise alpha, or use {other}{none}."
            )
        return fitted

    def _set_posterior(self, problem: TrainingProblem, fitted: Fitted) -> None:
        """Keep what error bars need; a refit has it, the convex problem alone has not."""
        if fitted.refit is not None:
            from hikernel.selection.posterior import posterior_of  # imported only when needed

            with time_limit(math.inf):
                self._posterior = posterior_of(problem, fitted)

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
        self.loss_, self.graph_ = loss.for_any_rows(), graph
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

    def _finish(
        self, fitted: Fitted, problem: TrainingProblem, y: Any, rows: NDArray[np.intp]
    ) -> None:
        """Set what some predictions need beside f, from rows given by position among those used."""
        return

    def _warn(self, selected: TermModel) -> None:
        """Warn if a model is cut short, did not converge, or lacks the proof that was asked for."""
        if not selected.status.ok:
            warnings.warn(selected.status.sentence, ConvergenceWarning, stacklevel=outside_level())
        reason = selected.certificate.reason
        if reason is StopReason.MAX_MEMORY or getattr(reason, "is_cut_search", False):
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

    def _respond(self, loss: Loss) -> Callable[[FloatArray], NDArray[Any]]:
        """Return the function that turns f(x) into predictions."""
        return loss.predict_mean

    def _raw_predict(self, X: Any, offset: Any = None, exposure: Any = None) -> FloatArray:
        """Return f(x) for the rows of X, with their offset, shape (n,) or (n, k)."""
        check_is_fitted(self)
        f = self._model.predict(self._design, self._design.read(X))
        return self._with_offset(f, offset, exposure)

    def _with_offset(self, f: FloatArray, offset: Any, exposure: Any) -> FloatArray:
        """Return f with the offset of its rows, if there is one."""
        if self._fold_offset is not None and offset is None and exposure is None:
            offset = self._fold_offset
        shift = row_offset(offset, exposure, self.loss_, f.shape)
        return f if shift is None else f + shift.values


def row_offset(offset: Any, exposure: Any, loss: Loss, shape: tuple[int, ...]) -> RowOffset | None:
    """Return the offset of rows, None for none."""
    if offset is None and exposure is None:
        return None
    from hikernel.estimators.offsets import read_offset  # imported only when needed

    return read_offset(offset, exposure, loss, shape)


def check_refit_name(name: str | None) -> None:
    """Raise unless ``name`` is a refit, "auto" or None."""
    if name not in (None, "auto", *REFITS):
        listed = ", ".join(repr(known) for known in (None, *REFITS))
        raise ValueError(f"refit must be one of {listed}, got {name!r}.")
