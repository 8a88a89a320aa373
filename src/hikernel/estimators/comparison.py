"""Cross-validation of an estimator: alphas and refits, compared by the score that was asked for."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import effective_n_jobs

from hikernel.checks import check_choice, outside_level, random_generator
from hikernel.columns.reading import lies_in_blocks
from hikernel.engines.interrupts import Interrupt
from hikernel.engines.machine import is_late, time_limit
from hikernel.errors import MemoryPlanError, OutOfTime
from hikernel.estimators.estimator import HKLEstimator, check_refit_name
from hikernel.estimators.fold_scores import make_score
from hikernel.estimators.path import check_alphas, path_lams
from hikernel.estimators.solved_path import Path
from hikernel.estimators.training_data import TrainingData
from hikernel.search import SearchSettings
from hikernel.selection import (
    Choice,
    CrossValidation,
    FitRecord,
    Fold,
    LambdaPath,
    SimplerModels,
    TermModel,
    TrainingProblem,
    check_folds,
    comparable_refits,
    cross_validate,
    refit,
    refit_is_possible,
    relative_gain,
    score_simpler_models,
    trial_gain,
    without_proof,
)

if TYPE_CHECKING:
    from hikernel.estimators.progress import FitProgress

__all__ = ["CrossValidatedEstimator"]

_log = logging.getLogger(__name__)

_LEAST_PROOF_WORK = 5e10
_PROOF_SHARE = 2.0
"""Work that a proof may do, relative to the cross-validation; at least ``_LEAST_PROOF_WORK``, a few
seconds. Twice the count takes about the same time: bounds are large matrix products, searches are
many small ones."""

_TRIAL_GAIN = 0.03
"""Share by which steps must lower the error on the first fold, before all folds are tried."""
_CLEAR_GAIN = 0.05
"""Share by which steps must lower the least cross-validated error, as they make a model larger."""

RULES: dict[str, Callable[[CrossValidation], Choice]] = {
    "sparse": CrossValidation.sparse,
    "best": CrossValidation.best,
    "one_se": CrossValidation.one_standard_error,
}
"""How one pair of alpha and refit is picked from the scores."""


class CrossValidatedEstimator(HKLEstimator):
    """Base class of the estimators that choose alpha and refit by cross-validation."""

    alphas: Any
    n_alphas: int
    eps: float | None
    cv: Any
    scoring: Any
    rule: str
    refit: str | None
    n_jobs: int | None

    def _check_parameters(self) -> SearchSettings:
        settings = super()._check_parameters()
        check_alphas(self.alphas, self.n_alphas, self.eps)
        check_refit_name(self.refit)
        check_choice("rule", self.rule, list(RULES))
        if self.n_jobs == 0:
            raise ValueError("n_jobs must not be 0; pass None or 1 for one process, -1 for all.")
        return settings

    def _splits(self, X: Any, data: TrainingData, groups: Any) -> list[Fold]:
        """Return the folds as pairs (train, test) of row numbers."""
        raise NotImplementedError

    def _scorer(self, scoring: Any) -> Any:
        """Return a name or function that scikit-learn knows, for a score that the user named."""
        return scoring

    def _of_folds(self, folds: list[Fold]) -> dict[str, Any]:
        """Return what the plan of the memory needs to know of the folds."""
        # Folds that are not pairs of rows are refused later, with a better message.
        train = [np.asarray(fold[0]) for fold in folds if len(fold) == 2]
        rows = tuple(int(np.sum(t)) if t.dtype == bool else t.size for t in train)
        return {"fold_rows": rows, "n_jobs": effective_n_jobs(self.n_jobs)}

    def _fit_model(
        self,
        stop: Interrupt | None,
        X: Any,
        y: Any,
        sample_weight: Any,
        groups: Any,
        offset: Any = None,
        exposure: Any = None,
    ) -> None:
        """Choose alpha and refit, solve with a proof at that alpha, set the fitted attributes."""
        settings = self._check_parameters()
        with self._progress() as show:
            if show:
                show.stage("read")
            with self._time_limit(stop):
                data = self._read_data(X, y, sample_weight, offset, exposure)
                X = data.rows if lies_in_blocks(data.rows) else X
                splits = self._splits(X, data, groups)
                problem = self._training_problem(data, settings, **self._of_folds(splits))
                tried = Comparison(self, problem, settings, X, data)
                tried.check(splits)
                results, path = tried.run(show, "cross-validation")
                stepped = self._with_steps(data, settings, tried, results, show)
                if stepped is not None:
                    tried, results, path = stepped
                problem, folds, lams = tried.problem, tried.folds, tried.lams
                plain = "ridge" if problem.design.monotone_columns() else None
                if len(results.lams) > 0:
                    choice = RULES[self.rule](results)
                    last = results.best().position == len(path) - 1
                    score = results.mean_score(choice)
                else:  # the user wanted an end before every fold had a model
                    choice, last, score = Choice(path.least_error(), plain), True, np.nan
                start = path.points[choice.position].model
                _log.info(
                    "Chosen by the rule %r: alpha %.4g with refit %r, mean score %.6g.",
                    *(self.rule, start.lam, choice.refit, score),
                )
                if show:
                    show.stage("proof", "kernels")
                most = max(_LEAST_PROOF_WORK, _PROOF_SHARE * results.work) * self.proof_effort
                selected = _proven(problem, start, replace(settings, max_work=most), show)
                problem.forget_bounds()
                if show:
                    show.stage("simpler models")
                simpler = tried.simpler(start)
            if show:
                show.stage("refit")
            with time_limit(np.inf):  # a model that was chosen is had as it was chosen
                fitted = refit(choice.refit, problem, selected)
            chosen = fitted is not None
            if fitted is None:
                fitted = self._refitted(plain, problem, selected)
            _log.info("The model has %d terms.", fitted.model.n_terms)
        if not chosen:
            kept = "keeps the coefficients of the convex problem"
            instead = f"has the refit {plain!r}" if plain else kept
            warnings.warn(
                f"refit={choice.refit!r} was chosen on the folds but has too many terms on all "
                f"rows; the model {instead}.",
                UserWarning,
                stacklevel=outside_level(),
            )
        self._set_fitted(fitted, data.loss, problem.graph)
        self._set_posterior(problem, fitted)
        self._finish(fitted, problem, data.y, np.arange(problem.engine.n_rows))
        record = FitRecord.of(problem, fitted, data.name, path.points)
        record = record if data.offset is None else data.offset.noted(record)
        self._record = replace(record, simpler=simpler)
        self._warn(selected)
        self._warn_of_end(results.end, len(lams) > 1 and last)
        respond = self._respond(data.loss)
        self.path_ = Path(path.points, path.end, problem.design, respond, data.loss)
        self.cv_results_ = results.results()
        self.best_score_ = score
        self.n_splits_ = len(folds)

    def _with_steps(
        self,
        data: TrainingData,
        settings: SearchSettings,
        known: Comparison,
        results: CrossValidation,
        show: FitProgress | None,
    ) -> tuple[Comparison, CrossValidation, LambdaPath] | None:
        """Return the comparison with steps beside smooth functions, if they are clearly better.

        There are two forms, of which the one with the lower error on the first fold is compared.
        None if there are no steps to add, or neither time nor memory to try them.
        """
        if is_late() or len(results.lams) == 0:
            return None
        tried: list[tuple[float, Comparison]] = []
        try:
            for source in known.problem.design.with_steps():
                richer = self._richer(replace(data, source=source), settings, known)
                if richer is not None:
                    if show and not tried:
                        show.stage("trial of steps", "fits")
                    tried.append((richer.trial_gain(results, show), richer))
            gain, richer = max(tried, key=lambda trial: trial[0], default=(-np.inf, known))
            if not gain >= _TRIAL_GAIN:
                return None
            found, path = richer.run(show, "cross-validation with steps")
        except MemoryPlanError as error:
            warnings.warn(
                f"Steps beside the smooth functions were not tried. {error}",
                UserWarning,
                stacklevel=outside_level(),
            )
            return None
        best = [float(np.max(scores.means, initial=-np.inf)) for scores in (results, found)]
        _log.info("Best mean score without steps %.6g, with steps %.6g.", *best)
        if not relative_gain(*best) >= _CLEAR_GAIN:
            return None
        return richer, replace(found, work=results.work + found.work), path

    def _richer(
        self, data: TrainingData, settings: SearchSettings, known: Comparison
    ) -> Comparison | None:
        """Return the comparison on another graph, with the same folds; None if it has no more."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # these columns have been warned of
            more = self._of_folds(known.folds) | {"beside": known.problem.design}
            problem = self._training_problem(data, settings, **more)
        if problem.graph.n_vertices <= known.problem.graph.n_vertices:
            return None
        richer = Comparison(self, problem, settings, known.table, data)
        richer.folds = known.folds
        return richer

    def _seed(self) -> int:
        return int(random_generator(self.random_state).randint(2**31 - 1))


class Comparison:
    """The comparison of alphas and refits on one graph.

    Parameters
    ----------
    estimator : CrossValidatedEstimator
        For its parameters.
    problem : TrainingProblem
        The rows, with the graph.
    settings : SearchSettings
        How to search.
    table : Any
        X as the user passed it.
    data : TrainingData
        All arguments of ``fit``.
    """

    def __init__(
        self,
        estimator: CrossValidatedEstimator,
        problem: TrainingProblem,
        settings: SearchSettings,
        table: Any,
        data: TrainingData,
    ) -> None:
        self.problem = problem
        self.table, self._data = table, data
        self.folds: list[Fold] = []
        self.lams = path_lams(problem, estimator.alphas, estimator.n_alphas, estimator.eps)
        self._estimator = estimator
        self._settings = replace(settings, certify="none")
        scoring = estimator._scorer(estimator.scoring)
        self._score = make_score(scoring, estimator, problem, table, data)

    def check(self, splits: list[Fold]) -> None:
        """Raise for a refit that is not possible, and for folds that cannot be fitted."""
        name = self._estimator._refit_name(self._estimator.refit, self.problem)
        if name != "auto":
            self._estimator._check_refit(name, self.problem)
        self.folds = _used_folds(self.problem, splits)

    def run(self, show: FitProgress | None, stage: str) -> tuple[CrossValidation, LambdaPath]:
        """Score all alphas and refits, and solve the path on all rows."""
        estimator = self._estimator
        name = estimator._refit_name(estimator.refit, self.problem)
        if show:
            show.stage(stage, "fits")
        return cross_validate(
            self.problem,
            self.lams,
            self._settings,
            self.folds,
            comparable_refits(self.problem) if name == "auto" else [name],
            self._score,
            until_turned=estimator.alphas is None and estimator.eps is None,
            n_jobs=estimator.n_jobs,
            callback=show.point if show else None,
            count=show.fits if show else None,
        )

    def simpler(self, model: TermModel) -> SimplerModels:
        """Return what a constant and, if there is time, a linear model score on the folds.

        A scorer of the user may look at more than predictions, and is not asked.
        """
        if not isinstance(self._estimator.scoring, str | None):
            return SimplerModels()
        source = self.problem.design.linear()
        linear = None
        if source is not None and refit_is_possible(self.problem) and not is_late():
            with suppress(MemoryPlanError, OutOfTime), warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # of columns, already given
                linear = self._estimator._problem_on(source, self._data)
        return score_simpler_models(self.problem, linear, self.folds, self._score, model)

    def trial_gain(self, known: CrossValidation, show: FitProgress | None) -> float:
        """Return the share by which the error on the first fold is below that of a known graph."""
        settings, count = self._settings, show.fits if show else None
        return trial_gain(
            self.problem, self.lams, settings, self.folds[0], self._score, known, count
        )


def _proven(
    problem: TrainingProblem, start: TermModel, settings: SearchSettings, show: FitProgress | None
) -> TermModel:
    """Solve again at the alpha of a model, with a proof; without one if the time is up."""
    try:
        callback = show.step if show else None
        selected = problem.solve(start.lam, settings, start=start, callback=callback)
    except OutOfTime:
        return without_proof(start)
    _log.info("Solved at alpha %.4g. %s", start.lam, selected.certificate)
    return selected


def _used_folds(problem: TrainingProblem, folds: list[Fold]) -> list[Fold]:
    """Check the folds, and convert row numbers to positions among the rows of positive weight.

    Rows of weight zero are dropped.
    """
    position = np.full(len(problem.used), -1, dtype=np.intp)
    position[problem.used] = np.arange(int(np.sum(problem.used)))
    kept = []
    for k, fold in enumerate(folds):
        try:
            train, test = (position[np.asarray(rows)] for rows in fold)
        except (IndexError, TypeError, ValueError):
            raise ValueError(
                f"Fold {k} of cv must be a pair (train, test) of row numbers from 0 to "
                f"{len(position) - 1} or of boolean masks."
            ) from None
        kept.append((train[train >= 0], test[test >= 0]))
    check_folds(problem, kept)
    return kept
