"""Cross-validation of lambda and refit together.

All folds use the same lambdas. Each fold solves the path on its training rows; bases and features
are shared, only rows are left out. It applies every refit that is compared to every model, and
scores the held-out rows. The folds and the path on all rows go on side by side, a few lambdas at a
time, until the error has turned or a path ends. Then a rule picks one pair of lambda and refit.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from joblib.parallel import get_active_backend
from numpy.typing import NDArray

from hikernel.engines.interrupts import Interrupt
from hikernel.engines.machine import (
    blas_limit,
    check_time,
    deadline,
    interrupt,
    is_interrupted,
    is_late,
    share_of_threads,
    time_limit,
)
from hikernel.errors import OutOfTime
from hikernel.search import SearchSettings
from hikernel.selection.lambda_path import (
    LambdaPath,
    PathEnd,
    PathPoint,
    PathSolver,
    has_turned,
    log_point,
)
from hikernel.selection.refit import Fitted, n_effects, refit, variables_key
from hikernel.selection.ridge import ridge_work
from hikernel.selection.scores import CrossValidation
from hikernel.selection.training import TermModel, TrainingProblem

__all__ = [
    "Fold",
    "FoldPath",
    "ModelScore",
    "all_turned",
    "check_folds",
    "cross_validate",
]

_log = logging.getLogger(__name__)

_EASY = 10
_TOGETHER = 5
"""The first ``_EASY`` lambdas are solved in parts of ``_TOGETHER``; then the error is looked at
after every lambda, as the last ones cost most."""

_STEPS_AHEAD = 6
"""A refit that is worse than the best, and would still be after so many steps, is given up."""

_SAME_FALL = 1.01
"""A step that is larger than the one before by more than this factor is a faster fall."""

_FEW_TERMS = 100
_MORE_PATIENCE = 4
"""Number of steps without a gain after which an error has turned while models have few terms."""

Fold = tuple[NDArray[np.intp], NDArray[np.intp]]

ModelScore = Callable[[Fitted, NDArray[np.intp]], float]
"""Scores a model on held-out rows, given as positions among the rows used; larger is better."""


def check_folds(problem: TrainingProblem, folds: Sequence[Fold]) -> None:
    """Raise a ValueError if a fold cannot be fitted or scored.

    That is the case if it has no training rows or no test rows, or if the loss does not accept its
    training target (for example a single class).
    """
    if not folds:
        raise ValueError("cv gives no folds; at least one is needed.")
    for k, (train, test) in enumerate(folds):
        for rows, part in ((train, "training"), (test, "test")):
            if len(rows) == 0:
                raise ValueError(f"Fold {k} of cv has no {part} rows of positive weight.")
        try:
            problem.loss.check_target(problem.y[train])
        except ValueError as error:
            raise ValueError(
                f"The training rows of fold {k} cannot be fitted: {error} Use fewer folds, or "
                "folds that are shuffled or stratified."
            ) from None


def cross_validate(
    problem: TrainingProblem,
    lams: Sequence[float],
    settings: SearchSettings,
    folds: Sequence[Fold],
    refits: Sequence[str | None],
    score: ModelScore,
    *,
    until_turned: bool = True,
    n_jobs: int | None = None,
    callback: Callable[[PathPoint], None] | None = None,
    count: Callable[[int], None] | None = None,
) -> tuple[CrossValidation, LambdaPath]:
    """Score every lambda and refit on every fold, and solve the path on all rows.

    Parameters
    ----------
    problem : TrainingProblem
        The problem with all rows.
    lams : sequence of float
        The values of lambda, decreasing.
    settings : SearchSettings
        How to search. Certificates are not kept, so pass ``certify="none"``.
    folds : sequence of (train, test)
        Positions of the training and the test rows among the rows used.
    refits : sequence of (str or None)
        Refits to compare; None is the model without a refit.
    score : callable
        Scores a fitted model on rows; see :data:`ModelScore`.
    until_turned : bool, default=True
        Whether to stop when the mean score of every refit has turned.
    n_jobs : int, optional
        Number of parallel jobs, through joblib.
    callback : callable, optional
        Called with every point of the path on all rows.
    count : callable, optional
        Called with the number of models that were fitted on a fold.

    Returns
    -------
    tuple of (CrossValidation, LambdaPath)
        Both have the same lambdas: those that the path and every fold reached. If the time of the
        user was up before that, there are no scores, and the path is as far as it came.
    """
    whole = PathSolver(problem, settings)
    paths = [FoldPath(fold, list(refits), score) for fold in folds]
    # Every process would get a copy of all Gram matrices; threads share them.
    # So they share files and connections to blocks of rows.
    shared = problem.engine.has_kernels or problem.engine.in_blocks
    prefer = "threads" if shared else None
    end = None
    n_lams = len(lams)
    cuts = [*range(0, min(_EASY, n_lams), _TOGETHER), *range(_EASY, n_lams), n_lams]
    for start, stop in itertools.pairwise(cuts):
        part = list(lams[start:stop])
        for lam in part:
            point = whole.advance(lam)
            if point is not None:
                log_point(point)
            if point is not None and callback is not None:
                callback(point)
            if whole.end is not None:
                break
        part = part[: len(whole.points) - start]
        limits = deadline(), interrupt()
        jobs = (delayed(_advanced)(path, problem, settings, part, *limits) for path in paths)
        before = [len(path.terms) for path in paths]
        advanced: list[FoldPath] = []
        with _shared_blas(n_jobs, prefer, len(paths)), _kept_if_interrupted(n_jobs):
            _check_interrupt(n_jobs)
            for path in _parallel(n_jobs, prefer, one_by_one=count is not None)(jobs):
                if count is not None:
                    count(len(path.terms) - before[len(advanced)])
                advanced.append(path)
        if len(advanced) < len(paths):
            end = PathEnd.INTERRUPT
            break
        paths = advanced
        _log_scores(paths, part, start)
        shortest = min(paths, key=lambda path: len(path.terms))
        end = shortest.end or whole.end
        if until_turned and all_turned(paths):
            end = PathEnd.TURNED
        if end is not None:
            break
    reached = min(len(path.terms) for path in paths)
    if until_turned and end is PathEnd.TURNED:
        # The result must not depend on how many lambdas are solved at a time.
        reached = next(k for k in range(1, reached + 1) if all_turned(paths, k))
    by_fold = (reached, len(refits))
    results = CrossValidation(
        lams=np.array(lams[:reached], dtype=float),
        refits=list(refits),
        scores=np.stack([np.reshape(p.scores[:reached], by_fold).T for p in paths], axis=2),
        terms=np.stack([np.array(p.terms[:reached], dtype=float) for p in paths], axis=1),
        effects=np.stack([np.reshape(p.effects[:reached], by_fold).T for p in paths], axis=2),
        end=end or PathEnd.ALL_SOLVED,
        work=sum(path.work for path in paths) + sum(point.model.work for point in whole.points),
    )
    return results, LambdaPath(whole.points[: reached or None], results.end)


class FoldPath:
    """The path of one fold, and the scores on its test rows.

    The problem of the fold is kept while it stays in one process, and made again in another one.

    Parameters
    ----------
    fold : (train, test)
        Positions among the rows used.
    refits : list of (str or None)
        Refits to compare.
    score : callable
        Scores a fitted model on rows.
    """

    def __init__(self, fold: Fold, refits: list[str | None], score: ModelScore) -> None:
        self._fold = fold
        self.refits = refits
        self._score = score
        self._solver: PathSolver | None = None
        self._points: list[PathPoint] = []
        self._ridge: Fitted | None = None
        self._known: dict[tuple[str | None, object], tuple[float, float]] = {}
        self._positions: dict[str | None, int] = {}
        self.scores: list[list[float]] = []
        self.effects: list[list[float]] = []
        self.terms: list[int] = []
        self.end: PathEnd | None = None
        self.work = 0.0

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_solver": None, "_ridge": None}

    def advance(
        self, problem: TrainingProblem, settings: SearchSettings, lams: Sequence[float]
    ) -> None:
        """Solve for the next lambdas, and score the models and their refits."""
        train, test = self._fold
        if is_late():
            self.end = PathEnd.of_cut_path()
            return
        if self._solver is None:
            self._solver = PathSolver(problem.subset(train), settings, self._points)
            self._points = self._solver.points
        solver, part = self._solver, self._solver.problem
        for lam in lams:
            point = solver.advance(lam)
            self.end = solver.end
            if point is None:
                return
            try:
                found = [self._scored(name, part, point.model, test) for name in self.refits]
            except OutOfTime:
                self.end = PathEnd.of_cut_path()
                return
            self.work += point.model.work
            self.scores.append([score for score, _ in found])
            self.effects.append([effects for _, effects in found])
            self.terms.append(point.model.n_terms)
            if self.end is not None:
                return

    def _scored(
        self, name: str | None, part: TrainingProblem, model: TermModel, test: NDArray[np.intp]
    ) -> tuple[float, float]:
        """Return the score of a refit and its number of effects, both NaN if it does not apply.

        Neighbouring lambdas often select the same variables. The refit "variables" is then computed
        once; the other refits are computed for every lambda.
        """
        check_time()
        alike = variables_key(model, part.design) if name == "variables" else len(self.terms)
        key = (name, alike)
        if key not in self._known:
            ridge = self._ridge if name == "sparse" else None
            fitted = refit(name, part, model, ridge, self._positions.get(name))
            self._ridge = fitted if name == "ridge" else None
            if fitted is not None and fitted.position is not None:
                self._positions[name] = fitted.position
            if fitted is not None and name is not None:
                n_columns = int(np.sum(fitted.model.widths))
                n_outputs = int(np.prod(part.y.shape[1:]))
                self.work += ridge_work(part.engine.n_rows, n_columns, n_outputs, part.loss)
            self._known[key] = (
                (np.nan, np.nan)
                if fitted is None
                else (self._score(fitted, test), float(n_effects(fitted)))
            )
        return self._known[key]


def _advanced(
    path: FoldPath,
    problem: TrainingProblem,
    settings: SearchSettings,
    lams: list[float],
    end: float,
    stop: Interrupt | None,
) -> FoldPath:
    """Advance a fold in this process; ``end`` and ``stop`` are the limits of who asks."""
    with time_limit(end, stop):
        path.advance(problem, settings, lams)
    return path


@contextmanager
def _kept_if_interrupted(n_jobs: int | None) -> Iterator[None]:
    """Leave the context early, without an exception, where Ctrl-C is to keep what there is.

    Folds in this thread end by themselves. Folds elsewhere are given up: other processes neither
    see what this one has heard, nor do all of them survive the same Ctrl-C.
    """
    stop = interrupt()
    if stop is None:
        yield
        return
    try:
        with stop.at_once(effective_n_jobs(n_jobs) > 1):
            yield
    except (KeyboardInterrupt, BrokenProcessPool):
        if not stop.asked:
            raise


def _check_interrupt(n_jobs: int | None) -> None:
    """Raise if Ctrl-C came before: processes would be started, for seconds, only to end."""
    if effective_n_jobs(n_jobs) > 1 and is_interrupted():
        raise KeyboardInterrupt


def _parallel(n_jobs: int | None, prefer: str | None, *, one_by_one: bool) -> Parallel:
    """Return what runs the folds; their results come one by one if that is asked for."""
    if one_by_one:
        try:
            return Parallel(n_jobs=n_jobs, prefer=prefer, return_as="generator")
        except ValueError:  # joblib's "multiprocessing" has all results at once only
            pass
    return Parallel(n_jobs=n_jobs, prefer=prefer)


@contextmanager
def _shared_blas(n_jobs: int | None, prefer: str | None, n_folds: int) -> Iterator[None]:
    """Divide the threads of BLAS among folds that run in threads of this process.

    To processes joblib gives their share by itself.
    """
    backend, default = get_active_backend(prefer=prefer)
    workers = min(backend.effective_n_jobs(default if n_jobs is None else n_jobs), n_folds)
    in_threads = workers > 1 and getattr(backend, "supports_sharedmem", False)
    with blas_limit(share_of_threads(workers)) if in_threads else nullcontext():
        yield


def _log_scores(paths: Sequence[FoldPath], lams: Sequence[float], start: int) -> None:
    """Log the scores of the next lambdas, of which the first has position ``start``."""
    if not _log.isEnabledFor(logging.INFO):
        return
    for position, lam in enumerate(lams, start):
        scores = [path.scores[position] for path in paths if len(path.scores) > position]
        if not scores:
            return
        names = [str(name) for name in paths[0].refits]
        means = zip(names, np.mean(scores, axis=0), strict=True)
        shown = ", ".join(f"{name} {mean:.6g}" for name, mean in means)
        _log.info("alpha %.4g: mean score of %d folds by refit: %s.", lam, len(scores), shown)
        for k, fold in enumerate(scores):
            shown = ", ".join(f"{n} {score:.6g}" for n, score in zip(names, fold, strict=True))
            _log.debug("alpha %.4g, fold %d: %s.", lam, k, shown)


def all_turned(paths: Sequence[FoldPath], reached: int | None = None) -> bool:
    """Return whether no refit is going to be better than the best so far, over the first lambdas.

    That is the case if its mean error has turned, if it does not apply to the later models, or if
    it falls no faster than before, and so slowly that six more steps like the last one would not
    reach the best error. (An error that falls faster and faster has not yet met what matters.)
    While models are small, and further steps cheap, an error turns after four steps without a gain.
    """
    reached = min(len(path.scores) for path in paths) if reached is None else reached
    means = np.mean([path.scores[:reached] for path in paths], axis=0)
    errors = np.where(np.isnan(means), np.inf, -means).T
    if reached < 3 or not np.any(np.isfinite(errors)):
        return has_turned([np.inf] * reached)
    with np.errstate(invalid="ignore"):
        slow = errors[:, -1] + _STEPS_AHEAD * (errors[:, -1] - errors[:, -2]) > np.min(errors)
        slow &= np.min(errors, axis=1) > np.min(errors)
        fall, before = -np.diff(errors[:, -3:], axis=1)[:, ::-1].T
        slow &= (fall >= 0.0) & (fall <= _SAME_FALL * before)
    long_enough = has_turned([np.inf] * reached)
    small = np.mean([path.terms[reached - 1] for path in paths]) < _FEW_TERMS
    patience = {"patience": _MORE_PATIENCE} if small else {}
    return all(
        has_turned(line.tolist(), **patience) or (long_enough and late)
        for line, late in zip(errors, slow, strict=True)
    )
