"""Many jobs: side by side, saved one by one, with progress and an estimate."""

from __future__ import annotations

import sys
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path

import joblib

from hikernel.experiments.protocol import run_job
from hikernel.experiments.store import Job, Result, Store

__all__ = ["run_jobs"]


def run_jobs(
    jobs: Sequence[Job],
    store: Store,
    folder: Path | None,
    *,
    n_jobs: int = 1,
    openml: bool = False,
    say: Callable[[str], None] | None = None,
) -> int:
    """Compute what the store lacks of the jobs and return how many that were.

    Each result is written as soon as it is known, so that a run that is killed loses the jobs in
    flight and nothing else; the same call then goes on where it was.

    Parameters
    ----------
    jobs : sequence of Job
        In the order in which they are wanted.
    store : Store
        Where the results are and go.
    folder : Path or None
        Of the data.
    n_jobs : int
        Processes.
    openml : bool
        Whether missing data may be fetched.
    say : callable, optional
        Gets a line per result; by default it goes to the standard error stream.
    """
    say = say or _to_stderr
    missing = store.missing(jobs)
    total = len(dict.fromkeys(jobs))
    say(f"{total} jobs, {total - len(missing)} of them done before.")
    if not missing:
        return 0
    progress = _Progress(missing, list(store), n_jobs)
    parallel = joblib.Parallel(n_jobs, return_as="generator_unordered", pre_dispatch="n_jobs")
    for result in parallel(joblib.delayed(run_job)(job, folder, openml) for job in missing):
        store.add(result)
        say(progress.after(result))
    return len(missing)


def _to_stderr(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


class _Progress:
    """Counts, and estimates what is left from how long jobs of the same kind took."""

    def __init__(self, missing: Sequence[Job], known: Sequence[Result], n_jobs: int) -> None:
        self._left = list(missing)
        self._total = len(missing)
        self._n_jobs = joblib.effective_n_jobs(n_jobs)
        self._start = time.monotonic()
        self._times: dict[tuple[str, ...], list[float]] = defaultdict(list)
        for result in known:
            self._learn(result)

    def _learn(self, result: Result) -> None:
        job = result.job
        for kind in ((job.method, job.kernel, job.data), (job.method, job.kernel), ()):
            self._times[kind].append(result.seconds)

    def _guess(self, job: Job) -> float:
        for kind in ((job.method, job.kernel, job.data), (job.method, job.kernel), ()):
            times = self._times.get(kind)
            if times:
                return sum(times) / len(times)
        return 0.0

    def after(self, result: Result) -> str:
        """Return the line for a result."""
        self._left.remove(result.job)
        self._learn(result)
        left = sum(self._guess(job) for job in self._left) / self._n_jobs
        done = self._total - len(self._left)
        passed = time.monotonic() - self._start
        return (
            f"[{done}/{self._total}, {_clock(passed)} passed, about {_clock(left)} left] "
            f"{result.job}: {min(result.test):.2f} at best, {result.seconds:.1f} s"
        )


def _clock(seconds: float) -> str:
    minutes = round(seconds / 60.0)
    return f"{minutes // 60}:{minutes % 60:02d} h"
