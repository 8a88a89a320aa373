"""Runs jobs in parallel, saves each result at once and reports progress and time left."""

from __future__ import annotations

import math
import sys
import time
import traceback
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import joblib

from hikernel.experiments.evaluation import run_job
from hikernel.experiments.paper_data import source_of
from hikernel.experiments.store import Job, Result, Store

__all__ = ["Failure", "Outcome", "run_jobs"]


@dataclass(frozen=True)
class Failure:
    """A job that raised an exception, and a one-line description of the exception."""

    job: Job
    error: str


@dataclass(frozen=True)
class Outcome:
    """Summary of a run.

    Attributes
    ----------
    computed : int
        Number of jobs that were computed and saved.
    failures : list of Failure
        Jobs that raised an exception. They are not saved, so that the same call retries them.
    """

    computed: int = 0
    failures: list[Failure] = field(default_factory=list)


def run_jobs(
    jobs: Sequence[Job],
    store: Store,
    folder: Path | None,
    *,
    n_jobs: int = 1,
    openml: bool = False,
    say: Callable[[str], None] | None = None,
) -> Outcome:
    """Compute the jobs that have no result in the store yet.

    Each result is saved as soon as it is known. A run that is killed loses only the jobs in
    progress, and the same call resumes it. A job that fails does not stop the run; failures are
    listed at the end.

    Parameters
    ----------
    jobs : sequence of Job
        The jobs, in the order in which to compute them.
    store : Store
        Holds earlier results and receives the new ones.
    folder : Path or None
        Folder of the data sets.
    n_jobs : int
        Number of processes.
    openml : bool
        Whether missing data may be fetched from OpenML.
    say : callable, optional
        Called with each line of the progress report; prints to standard error by default.

    Raises
    ------
    MemoryError
        If a process was killed from outside, as where memory runs out. What was done is saved.
    """
    say = say or _to_stderr
    wanted = list(dict.fromkeys(jobs))
    sources = {name: source_of(name, folder, openml=openml) for name in {j.data for j in wanted}}
    missing = store.missing(wanted, sources)
    say(f"{len(wanted)} jobs, {len(wanted) - len(missing)} of them done before.")
    aside = set(store.outdated(sources)) & set(wanted)
    if aside:
        say(
            f"{len(aside)} results in {store.file} have other settings or other data. They are "
            "set aside and computed again."
        )
    for number in store.unreadable():
        say(f"Line {number} of {store.file} cannot be read and is left out.")
    if not missing:
        return Outcome()
    progress = _Progress(missing, list(store), n_jobs)
    say(progress.before())
    failures = []
    parallel = joblib.Parallel(n_jobs, return_as="generator_unordered", pre_dispatch="n_jobs")
    with _words_for_killed_workers():
        for result in parallel(joblib.delayed(_attempt)(job, folder, openml) for job in missing):
            if isinstance(result, Failure):
                failures.append(result)
            else:
                store.add(result)
            say(progress.after(result))
    if failures:
        say(f"{len(failures)} jobs failed; the same command tries them again:")
        for failure in failures:
            say(f"  {failure.job}: {failure.error}")
    return Outcome(len(missing) - len(failures), failures)


@contextmanager
def _words_for_killed_workers() -> Iterator[None]:
    try:
        yield
    except BrokenProcessPool as error:
        raise MemoryError(
            "One of the processes was killed from outside, as systems do where memory runs out. "
            "What was done is saved: the same command goes on, and a smaller --n-jobs takes less "
            "memory."
        ) from error


def _attempt(job: Job, folder: Path | None, openml: bool) -> Result | Failure:
    """Run a job; an exception is returned as a Failure, so that the other jobs go on."""
    try:
        return run_job(job, folder, openml)
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(place.filename).name}, line {place.lineno}"
        return Failure(job, f"{type(error).__name__}: {error} ({where})")


def _to_stderr(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


class _Progress:
    """Counts finished jobs and estimates the time left from the times of similar jobs."""

    def __init__(self, missing: Sequence[Job], known: Sequence[Result], n_jobs: int) -> None:
        self._left = list(missing)
        self._total = len(missing)
        self._n_jobs = joblib.effective_n_jobs(n_jobs)
        self._start = time.monotonic()
        self._times: dict[tuple[str, ...], list[float]] = defaultdict(list)
        for result in known:
            self._learn(result)

    def _learn(self, result: Result) -> None:
        for kind in _kinds(result.job):
            self._times[kind].append(result.seconds)

    def _guess(self, job: Job) -> float:
        for kind in _kinds(job):
            times = self._times.get(kind)
            if times:
                return sum(times) / len(times)
        return math.nan

    def _left_over(self) -> str:
        seconds = sum(self._guess(job) for job in self._left) / self._n_jobs
        return "time unknown" if math.isnan(seconds) else f"about {_clock(seconds)} left"

    def before(self) -> str:
        """Return the line to print before the first job."""
        return f"[0/{self._total}, {self._left_over()}] {self._n_jobs} at a time"

    def after(self, result: Result | Failure) -> str:
        """Record a result or failure and return the line to print for it."""
        self._left.remove(result.job)
        if isinstance(result, Result):
            self._learn(result)
            text = f"{min(result.test):.2f} at best, {result.seconds:.1f} s"
        else:
            text = f"failed. {result.error}"
        done = self._total - len(self._left)
        passed = _clock(time.monotonic() - self._start)
        return f"[{done}/{self._total}, {passed} passed, {self._left_over()}] {result.job}: {text}"


def _kinds(job: Job) -> tuple[tuple[str, ...], ...]:
    """Return groups that a job belongs to, from most to least specific, for time estimates."""
    return (job.method, job.kernel, job.data), (job.method, job.kernel), (job.method,), ()


def _clock(seconds: float) -> str:
    if seconds < 59.5:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60.0)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60}:{minutes % 60:02d} h"
