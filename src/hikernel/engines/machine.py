"""Memory, checked before it is allocated; threads, time and Ctrl-C, which follow the user."""

from __future__ import annotations

import math
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

from hikernel.errors import MemoryPlanError, OutOfTime

__all__ = [
    "TILE_NUMBERS",
    "Interrupt",
    "MemoryPlan",
    "available_bytes",
    "blas_limit",
    "check_time",
    "deadline",
    "in_threads",
    "interrupt",
    "is_interrupted",
    "is_late",
    "listening",
    "n_threads",
    "one_blas_thread",
    "require_memory",
    "share_of_threads",
    "time_limit",
]

TILE_NUMBERS = 2**20
"""Size of each large array of a thread, in float64 numbers (8 MiB)."""

_MIN_ROWS_FOR_THREADS = 500
"""With fewer rows than this, starting threads costs more time than it saves."""

Job = TypeVar("Job")
Result = TypeVar("Result")

_outer_threads: ContextVar[int | None] = ContextVar("outer_threads", default=None)
"""Number of threads that were allowed before ``one_blas_thread`` was entered."""

_limits_lock = threading.Lock()
_limits: dict[object, int] = {}
"""The limits of ``blas_limit`` that hold now, of all Python threads."""
_unlimited: list[int] = []
"""Number of threads of each BLAS library before the first of these limits; empty without any."""


class Interrupt:
    """Whether Ctrl-C was pressed, and what it does.

    Attributes
    ----------
    asked : bool
        Whether the user asked to stop.
    """

    def __init__(self) -> None:
        self.asked = False
        self._at_once = False

    @contextmanager
    def at_once(self, when: bool) -> Iterator[None]:
        """Let Ctrl-C also raise KeyboardInterrupt within the context, if ``when`` is true.

        For work that is done elsewhere: this process cannot look at ``asked`` while it waits.
        """
        self._at_once = when
        try:
            yield
        finally:
            self._at_once = False

    def _heard(self, number: int, frame: FrameType | None) -> None:
        again, self.asked = self.asked, True
        if again or self._at_once:
            raise KeyboardInterrupt


@contextmanager
def listening(when: bool) -> Iterator[Interrupt | None]:
    """Note the first Ctrl-C within the context, if ``when`` is true; the second one raises.

    Only the main thread hears signals. A program that deals with Ctrl-C in its own way, or ignores
    it, goes on doing so. In both cases, as without ``when``, the context gives None.
    """
    main = threading.current_thread() is threading.main_thread()
    if not when or not main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield None
        return
    interrupt = Interrupt()
    signal.signal(signal.SIGINT, interrupt._heard)
    try:
        yield interrupt
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


_deadline: ContextVar[float] = ContextVar("deadline", default=math.inf)
"""When the time of the user is up, on the monotonic clock; only ``time_limit`` sets it."""

_interrupt: ContextVar[Interrupt | None] = ContextVar("interrupt", default=None)
"""What notes that the user asked to stop; only ``time_limit`` sets it."""


@contextmanager
def time_limit(end: float, stop: Interrupt | None = None) -> Iterator[None]:
    """Let ``check_time`` raise within the context once the user wants an end.

    That is when the monotonic clock has passed ``end``, or when ``stop`` was asked for. Only a time
    budget that the user has set comes here: without one, no result depends on a clock.
    """
    before = _deadline.get(), _interrupt.get()
    try:  # already here: Ctrl-C may come between the two, and must leave none of them behind
        _deadline.set(end)
        _interrupt.set(stop)
        yield
    finally:
        _deadline.set(before[0])
        _interrupt.set(before[1])


def deadline() -> float:
    """Return when the time of the user is up, on the monotonic clock; infinity without a limit."""
    return _deadline.get()


def interrupt() -> Interrupt | None:
    """Return what notes Ctrl-C here; None if that raises an exception as ever."""
    return _interrupt.get()


def is_interrupted() -> bool:
    """Return whether the user asked to stop, and to keep what there is."""
    stop = _interrupt.get()
    return stop is not None and stop.asked


def is_late() -> bool:
    """Return whether the time of the user is up, or the user asked to stop."""
    if is_interrupted():
        return True
    end = _deadline.get()
    return end < math.inf and time.monotonic() > end


def check_time() -> None:
    """Raise :class:`OutOfTime` if the user wants an end; call it where work can stop."""
    if is_late():
        raise OutOfTime


def available_bytes() -> int | None:
    """Return the bytes that can be allocated without swapping, or None if that is unknown."""
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
    """Return the free bytes under the limit of a control group (version 2), or None if no limit."""
    folder = Path("/sys/fs/cgroup")
    try:
        limit = int((folder / "memory.max").read_text())
        return max(0, limit - int((folder / "memory.current").read_text()))
    except (OSError, ValueError):
        return None


@dataclass(frozen=True)
class MemoryPlan:
    """Memory that a computation will need, estimated before it is allocated.

    Attributes
    ----------
    kept : int
        Bytes that stay in use, including those of the user's own matrices.
    working : int
        Additional bytes during the computation.
    to_take : int
        Bytes of the two that are not allocated yet.
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
        Number of float64 numbers that are about to be allocated.
    what, remedy : str
        What needs the memory, and what the user can do about it.
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
    """Limit BLAS to one thread within the context, if ``when`` is true.

    For small problems one thread is as fast as two. Several threads must synchronise in every short
    product. On a busy machine they then wait for the scheduler, and a product of 20 microseconds
    takes milliseconds.
    """
    if not when:
        yield
        return
    before = _outer_threads.get()
    try:
        _outer_threads.set(n_threads())
        with blas_limit(1):
            yield
    finally:
        _outer_threads.set(before)


@contextmanager
def blas_limit(most: int) -> Iterator[None]:
    """Limit BLAS to at most ``most`` threads within the context.

    OpenBLAS has one number of threads for the whole process. If every Python thread saved it and
    set it back by itself, one could save the limit of another and leave it behind for good. So the
    number is the least of all limits that hold, and the last to leave restores what was before.

    Fits enter and leave hundreds of times a second, so Ctrl-C does come in the midst of that.
    """
    limit = object()
    try:
        try:
            with _limits_lock:
                if not _unlimited:
                    _unlimited[:] = [library.num_threads for library in _blas_libraries()]
                _limits[limit] = most
                _apply_limits()
            yield
        finally:
            _leave(limit)
    except BaseException:
        _leave(limit)  # Ctrl-C may have cut the first one short; twice does no harm
        raise


def _leave(limit: object) -> None:
    with _limits_lock:
        _limits.pop(limit, None)
        if _unlimited:
            _apply_limits()
        if not _limits:
            _unlimited.clear()


def _apply_limits() -> None:
    """Set the threads of every library to the least limit, or to what was before all limits."""
    for library, before in zip(_blas_libraries(), _unlimited, strict=True):
        threads = min([before, *_limits.values()])
        if library.num_threads == threads:
            continue
        library.set_num_threads(threads)
        # Newer versions of threadpoolctl let only the Python thread that was first set the number.
        # Here the lock sees to that; another thread must be able to restore it.
        if hasattr(library, "clear_controlling_thread"):
            library.clear_controlling_thread()


def n_threads() -> int:
    """Return how many threads this process should use: as many as the user allows BLAS to use.

    The number follows OPENBLAS_NUM_THREADS and similar variables, ``threadpoolctl``, and the limits
    that joblib sets in its workers. ``one_blas_thread`` limits only BLAS and does not change it.
    """
    outer = _outer_threads.get()
    if outer is not None:
        return outer
    return max((library.num_threads for library in _blas_libraries()), default=1)


def share_of_threads(n_jobs: int) -> int:
    """Return how many threads each of ``n_jobs`` jobs of this process may use."""
    return max(1, n_threads() // max(1, n_jobs))


def in_threads(
    work: Callable[[Job], Result],
    jobs: list[Job],
    n_rows: int | None = None,
    *,
    timed: bool = True,
) -> Iterator[Result]:
    """Run all jobs on as many threads as the user allows, and yield their results in order.

    Between jobs it checks the time, if ``timed``.

    Parameters
    ----------
    work : callable
        Computes the result of one job; BLAS is limited to one thread if there are several threads.
    jobs : list
        Arguments of ``work``, one per job.
    n_rows : int, optional
        Number of rows of the problem; if it is small, no threads are started.
    """
    threads = min(n_threads(), len(jobs))
    if threads < 2 or (n_rows is not None and n_rows < _MIN_ROWS_FOR_THREADS):
        for job in jobs:
            if timed:
                check_time()
            yield work(job)
        return
    with one_blas_thread(), ThreadPoolExecutor(threads) as pool:
        # Submit jobs in batches, so that few results wait in memory.
        window = 4 * threads
        for start in range(0, len(jobs), window):
            if timed:
                check_time()
            yield from pool.map(work, jobs[start : start + window])


@cache
def _blas_libraries() -> list[Any]:
    """Return the BLAS libraries in use; cached, because finding them takes milliseconds."""
    import scipy.linalg  # noqa: F401  # its BLAS must be loaded to be found

    found = ThreadpoolController().lib_controllers
    return [library for library in found if library.user_api == "blas"]
