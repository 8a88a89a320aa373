"""How many threads BLAS may use."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import cache

from threadpoolctl import ThreadpoolController

__all__ = ["n_threads", "one_blas_thread"]


def one_blas_thread(when: bool = True) -> AbstractContextManager[object]:
    """Return a context in which BLAS uses one thread, if ``when``.

    For small problems one thread is as fast as two. Threads that wait for each other in every
    short product wait for the scheduler on a machine that has other work to do, and a
    product of 20 microseconds takes milliseconds.
    """
    return _controller().limit(limits=1, user_api="blas") if when else nullcontext()


def n_threads() -> int:
    """Return how many threads BLAS may use now, which is how many this process should.

    It follows OPENBLAS_NUM_THREADS and the like, and the limits that joblib sets in its workers.
    """
    pools = [pool["num_threads"] for pool in _controller().info() if pool["user_api"] == "blas"]
    return max(pools, default=1)


@cache
def _controller() -> ThreadpoolController:
    """Return the loaded thread pools; finding them takes milliseconds, so it is done once."""
    import scipy.linalg  # noqa: F401  # its BLAS must be loaded to be found

    return ThreadpoolController()
