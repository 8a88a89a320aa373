"""Base class of the estimators that fit at one alpha: given, or estimated along one path."""

from __future__ import annotations

import logging
import warnings
from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from hikernel.checks import check_number, outside_level
from hikernel.engines.interrupts import Interrupt
from hikernel.errors import OutOfTime
from hikernel.estimators.estimator import HKLEstimator, check_refit_name
from hikernel.estimators.solved_path import Path
from hikernel.estimators.warm_start import KeptProblem, fingerprint
from hikernel.search import SearchSettings
from hikernel.selection import (
    FitRecord,
    Fitted,
    LambdaPath,
    TermModel,
    TrainingProblem,
    compute_path,
    constant_model,
    lambda_grid,
    without_proof,
)

if TYPE_CHECKING:
    from hikernel.estimators.progress import FitProgress

__all__ = ["OneAlphaEstimator"]

_log = logging.getLogger(__name__)

_FEW_ROWS = 20
"""Up to this many rows, a single row with most of the objective is no reason for a warning."""

_AUTO_ALPHAS = 40
"""Largest number of alphas that alpha="auto" tries: down to 10^-9.75 of the first."""


class OneAlphaEstimator(HKLEstimator):
    """Base class of the estimators that fit at a given alpha."""

    alpha: float | Literal["auto"]
    refit: str | None
    warm_start: bool

    _warm: KeptProblem

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for pickles and copies, without the rows that a warm start keeps."""
        return {name: value for name, value in super().__getstate__().items() if name != "_warm"}

    def _check_parameters(self) -> SearchSettings:
        if not (isinstance(self.alpha, str) and self.alpha == "auto"):
            remedy = 'Without a penalty nothing is selected; alpha="auto" chooses one.'
            check_number("alpha", self.alpha, above=1e-100, remedy=remedy)
        if self.refit == "auto":
            raise ValueError(
                f'refit="auto" is a choice of cross-validation; use {self._owner}CV, or name the '
                "refit."
            )
        check_refit_name(self.refit)
        if not isinstance(self.warm_start, (bool, np.bool_)):
            raise ValueError(f"warm_start must be True or False, got {self.warm_start!r}.")
        return super()._check_parameters()

    def _fit_model(
        self,
        stop: Interrupt | None,
        X: Any,
        y: Any,
        sample_weight: Any,
        offset: Any = None,
        exposure: Any = None,
    ) -> None:
        """Search, refit, set the fitted attributes, and warn of problems."""
        settings = self._check_parameters()
        with self._progress() as show:
            if show:
                show.stage("read")
            with self._time_limit(stop):
                arguments = (X, y, sample_weight, offset, exposure)
                warm = self._warm_start(arguments, settings)
                problem, data = warm.problem, warm.data
                name = self._refit_name(self.refit, problem)
                self._check_refit(name, problem)
                selected, path = self._selected_model(warm, settings, show)
                problem.forget_bounds()
            fitted = Fitted(selected, selected, problem.design)
            if name is not None:
                if show:
                    show.stage("refit")
                fitted = self._refitted(name, problem, selected)
                _log.info("Refit %r: %d terms.", name, fitted.model.n_terms)
        self._set_fitted(fitted, data.loss, problem.graph)
        self._set_posterior(problem, fitted)
        self._finish(fitted, problem, data.y, np.arange(problem.engine.n_rows))
        points = [] if path is None else path.points
        record = FitRecord.of(problem, fitted, data.name, points)
        self._record = record if data.offset is None else data.offset.noted(record)
        if path is not None:
            respond = self._respond(data.loss)
            self.path_ = Path(path.points, path.end, problem.design, respond, data.loss)
        if self.warm_start:
            self._warm = warm.after_fit(self.get_params(deep=False))
        self._warn(selected)
        self._warn_of_outliers(problem, selected)

    def _warm_start(self, arguments: tuple[Any, ...], settings: SearchSettings) -> KeptProblem:
        """Return what is known of the problem of these arguments: nothing but itself if it is new.

        What an earlier fit kept is gone after a fit that fails.
        """
        known: KeptProblem | None = self.__dict__.pop("_warm", None)
        key = fingerprint(arguments, self.get_params(deep=False)) if self.warm_start else None
        if known is not None and key is not None and known.key == key:
            known.problem.objective.tail_mode(settings.certify)  # raises if not possible here
            _log.info("The data are those of the last fit, whose features are used again.")
            return known
        if key is not None:
            arguments = deepcopy(arguments)  # what is kept must not change if X is written to
        data = self._read_data(*arguments)
        return KeptProblem(key, self._training_problem(data, settings), data)

    def _selected_model(
        self, warm: KeptProblem, settings: SearchSettings, show: FitProgress | None
    ) -> tuple[TermModel, LambdaPath | None]:
        """Return the model at ``alpha``, or at the alpha with the least estimated error.

        Also the path on which that alpha was found.
        """
        problem, path = warm.problem, None
        if isinstance(self.alpha, str):
            path = self._path(warm, settings, show)
            chosen = path.least_error()
            start: TermModel | None = path.points[chosen].model
            self._warn_of_end(path.end, chosen == len(path) - 1)
            lam = path.points[chosen].model.lam
        else:
            lam = float(self.alpha)
            start = warm.nearest(lam, settings.max_kernels)
        try:
            if show:
                show.stage("search and proof", "kernels")
            selected = problem.solve(
                lam, settings, start=start, callback=show.step if show else None
            )
        except OutOfTime:
            if start is None or start.lam != lam:
                return constant_model(problem, lam, settings), path
            return without_proof(start), path
        _log.info("Solved at alpha %.4g. %s", lam, selected.certificate)
        warm.models[lam] = selected
        return selected, path

    def _path(
        self, warm: KeptProblem, settings: SearchSettings, show: FitProgress | None
    ) -> LambdaPath:
        """Return the path of alpha="auto", solved now unless it is known."""
        known = warm.path(settings)
        if known is not None:
            return known
        lams = lambda_grid(warm.problem, _AUTO_ALPHAS, None)
        if show:
            show.stage("path", "alphas")
        path = compute_path(
            warm.problem,
            lams.tolist(),
            replace(settings, certify="none"),
            show.point if show else None,
            until_turned=True,
        )
        if not path.end.is_cut:
            warm.keep_path(settings, path)
        return path

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
