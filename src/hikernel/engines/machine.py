"""Memory, checked before it is allocated; threads, time and Ctrl-C, which follow the user."""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

from hikernel.engines.interrupts import Interrupt
from hikernel.errors import MemoryPlanError, OutOfTime

__all__ = [
    "TILE_NUMBERS",
    "available_bytes",
    "blas_limit",
    "check_time",
    "deadline",
    "in_threads",
    "interrupt",
    "is_interrupted",
    "is_late",
    "memory_limit",
    "n_threads",
    "one_blas_thread",
    "readable_bytes",
    "require_memory",
    "share_of_threads",
    "time_limit",
    "trust_plan",
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


_deadline: ContextVar[float] = ContextVar("deadline", default=math.inf)
"""When the time of the user is up, on the monotonic clock; only ``time_limit`` sets it."""

_interrupt: ContextVar[Interrupt | None] = ContextVar("interrupt", default=None)
"""What notes that the user asked to stop; only ``time_limit`` sets it."""

_abandoned: ContextVar[threading.Event | None] = ContextVar("abandoned", default=None)
"""Set once nobody waits for the jobs of a pool any more; only ``in_threads`` sets it."""


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
    abandoned = _abandoned.get()
    if is_interrupted() or (abandoned is not None and abandoned.is_set()):
        return True
    end = _deadline.get()
    return end < math.inf and time.monotonic() > end


def check_time() -> None:
    """Raise :class:`OutOfTime` if the user wants an end; call it where work can stop."""
    if is_late():
        raise OutOfTime


_memory: ContextVar[tuple[int, int] | None] = ContextVar("memory", default=None)
"""Bytes that may be taken, and those in use when that was said; only ``memory_limit`` sets it."""


@contextmanager
def memory_limit(most: int | None) -> Iterator[None]:
    """Let what is done within the context take at most so many bytes; None for no limit."""
    before = _memory.get()
    try:
        _memory.set(None if most is None else (most, _resident_bytes()))
        yield
    except MemoryError as error:
        if most is None or isinstance(error, MemoryPlanError):
            raise
        raise MemoryPlanError(
            f"max_memory ({readable_bytes(most)}) is too little for these data ({error}); use "
            "fewer rows or columns, or more memory."
        ) from error
    finally:
        _memory.set(before)


def trust_plan() -> None:
    """Let the limit of memory rest: a plan keeps to it, whatever else the process uses."""
    _memory.set(None)


def available_bytes(*, limited: bool = True) -> int | None:
    """Return the bytes that can be taken without swapping and within the limit, if known."""
    limit = _memory.get() if limited else None
    left = None if limit is None else max(0, limit[0] + limit[1] - _resident_bytes())
    found = [free for free in (left, _free_in_container(), _free_on_machine()) if free is not None]
    return min(found, default=None)


def _resident_bytes() -> int:
    """Return the memory of this process that is in use."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return 0  # unknown: of the limit, only what is planned counts


def readable_bytes(number: float) -> str:
    """Return a number of bytes with a unit, such as "1.2 GiB" or "350 MiB"."""
    unit, name = (2**30, "GiB") if number >= 2**30 else (2**20, "MiB")
    return f"{number / unit:.{0 if unit * 10 <= number < 2**30 else 1}f} {name}"


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
            f"{what} would take {readable_bytes(needed)} and {readable_bytes(available)} are "
            f"available{'' if _memory.get() is None else ' under max_memory'}. {remedy}"
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

    Between jobs it checks the time, if ``timed``, and so may a job: it has the limits of the thread
    that waits. If that thread goes on without them, because of Ctrl-C for example, they end at
    their next look.

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
    abandoned = threading.Event()

    def limited(job: Job) -> Result:
        _abandoned.set(abandoned)
        _outer_threads.set(None)  # a job starts no threads of its own
        return work(job)

    with one_blas_thread(), ThreadPoolExecutor(threads) as pool:
        # Submit jobs in batches, so that few results wait in memory.
        window = 4 * threads
        try:
            for start in range(0, len(jobs), window):
                if timed:
                    check_time()
                some = jobs[start : start + window]
                contexts = [copy_context() for _ in some]
                yield from pool.map(lambda c, job: c.run(limited, job), contexts, some)
        except BaseException:
            abandoned.set()
            raise


@cache
def _blas_libraries() -> list[Any]:
    """Return the BLAS libraries in use; cached, because finding them takes milliseconds."""
    import scipy.linalg  # noqa: F401  # its BLAS must be loaded to be found

    found = ThreadpoolController().lib_controllers
    return [library for library in found if library.user_api == "blas"]
