"""What the machine lends: memory, which is planned before it is taken, and threads."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeVar

from threadpoolctl import ThreadpoolController

from hikernel.errors import MemoryPlanError

__all__ = [
    "TILE_NUMBERS",
    "MemoryPlan",
    "available_bytes",
    "in_threads",
    "n_threads",
    "one_blas_thread",
    "require_memory",
]

TILE_NUMBERS = 2**20
"""Numbers that a thread holds in each of its large arrays (8 MiB)."""

_MIN_ROWS_FOR_THREADS = 500
"""Below this many rows starting threads costs more than it saves."""

Job = TypeVar("Job")
Result = TypeVar("Result")

_outer_threads: ContextVar[int | None] = ContextVar("outer_threads", default=None)
"""Threads that were allowed before ``one_blas_thread`` was entered."""


def available_bytes() -> int | None:
    """Return the memory that can be taken without swapping, or None where the system won't tell."""
    found = [free for free in (_free_in_container(), _free_on_machine()) if free is not None]
    return min(found, default=None)


def _free_on_machine() -> int | None:
    try:
        with open("/proc/meminfo") as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


def _free_in_container() -> int | None:
    """Return what a control group (version 2) leaves, or None without a limit."""
    folder = Path("/sys/fs/cgroup")
    try:
        limit = int((folder / "memory.max").read_text())
        return max(0, limit - int((folder / "memory.current").read_text()))
    except (OSError, ValueError):
        return None


@dataclass(frozen=True)
class MemoryPlan:
    """What a piece of work will take, before it is taken.

    Attributes
    ----------
    kept : int
        Bytes that stay in use, those of the user's own matrices included.
    working : int
        Bytes on top of these while it works.
    to_take : int
        Bytes that are not in use yet.
    """

    kept: int
    working: int
    to_take: int

    def __str__(self) -> str:
        available = available_bytes()
        free = "" if available is None else f"; {available / 2**30:.2f} GiB are available"
        return (
            f"{self.kept / 2**30:.2f} GiB of matrices and {self.working / 2**30:.2f} GiB to work "
            f"with, of which {self.to_take / 2**30:.2f} GiB are still to be taken{free}"
        )


def require_memory(n_numbers: int, what: str, remedy: str) -> None:
    """Raise :class:`MemoryPlanError` unless ``n_numbers`` doubles fit into memory.

    Parameters
    ----------
    n_numbers : int
        Float64 numbers about to be allocated.
    what, remedy : str
        What needs them, and what the user can do about it.
    """
    available = available_bytes()
    needed = 8 * n_numbers
    if available is not None and needed > available:
        raise MemoryPlanError(
            f"{what} would take {needed / 2**30:.1f} GiB and {available / 2**30:.1f} GiB are "
            f"available. {remedy}"
        )


@contextmanager
def one_blas_thread(when: bool = True) -> Iterator[None]:
    """Keep BLAS to one thread within the context, if ``when``.

    For small problems one thread is as fast as two. Threads that wait for each other in every
    short product wait for the scheduler on a machine that has other work to do, and a
    product of 20 microseconds takes milliseconds.
    """
    if not when:
        yield
        return
    token = _outer_threads.set(n_threads())
    try:
        with _controller().limit(limits=1, user_api="blas"):
            yield
    finally:
        _outer_threads.reset(token)


def n_threads() -> int:
    """Return how many threads this process should use: what the user allows BLAS to use.

    It follows OPENBLAS_NUM_THREADS and the like, ``threadpoolctl``, and the limits that joblib
    sets in its workers. ``one_blas_thread`` does not change it: it is about BLAS alone.
    """
    outer = _outer_threads.get()
    if outer is not None:
        return outer
    pools = [pool["num_threads"] for pool in _controller().info() if pool["user_api"] == "blas"]
    return max(pools, default=1)


def in_threads(
    work: Callable[[Job], Result], jobs: list[Job], n_rows: int | None = None
) -> Iterator[Result]:
    """Yield the results of all jobs, in their order, on as many threads as the user allows.

    Parameters
    ----------
    work : callable
        Does one job; its BLAS is kept to one thread.
    jobs : list
        The jobs.
    n_rows : int, optional
        Rows that a job works on; threads do not pay where they are few.
    """
    threads = min(n_threads(), len(jobs))
    if threads < 2 or (n_rows is not None and n_rows < _MIN_ROWS_FOR_THREADS):
        yield from map(work, jobs)
        return
    with one_blas_thread(), ThreadPoolExecutor(threads) as pool:
        # A window keeps the number of waiting results small.
        window = 4 * threads
        for start in range(0, len(jobs), window):
            yield from pool.map(work, jobs[start : start + window])


@cache
def _controller() -> ThreadpoolController:
    """Return the loaded thread pools; finding them takes milliseconds, so it is done once."""
    import scipy.linalg  # noqa: F401  # its BLAS must be loaded to be found

    return ThreadpoolController()
