"""Threads: as many as the user allows, in the order of the jobs, and never more."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import scipy.linalg  # noqa: F401  # its BLAS must be there to be limited
from threadpoolctl import threadpool_info, threadpool_limits

from hikernel.engines import machine


def blas_threads():
    return max(pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas")


@pytest.mark.parametrize("allowed", [1, 2])
def test_threads_follow_the_setting_of_the_user(allowed):
    with threadpool_limits(allowed, user_api="blas"):
        assert machine.n_threads() == allowed


def test_one_thread_for_blas_is_not_one_thread_for_the_work():
    with threadpool_limits(2, user_api="blas"):
        with machine.one_blas_thread():
            assert blas_threads() == 1
            assert machine.n_threads() == 2
            with machine.one_blas_thread():
                assert machine.n_threads() == 2
        assert blas_threads() == 2
        with machine.one_blas_thread(False):
            assert blas_threads() == 2


def test_a_limit_is_lifted_after_an_error():
    with threadpool_limits(2, user_api="blas"):
        with pytest.raises(RuntimeError), machine.one_blas_thread():
            raise RuntimeError
        assert blas_threads() == machine.n_threads() == 2


@pytest.mark.usefixtures("two_blas_threads")
def test_limits_of_several_threads_leave_nothing_behind():
    first, second, left = (threading.Event() for _ in range(3))
    inside = []

    def enters_first():
        with machine.one_blas_thread():
            first.set()
            assert second.wait(10)
        left.set()

    def leaves_last():
        assert first.wait(10)
        with machine.one_blas_thread():
            second.set()
            assert left.wait(10)
            inside.append(blas_threads())

    threads = [threading.Thread(target=run) for run in (enters_first, leaves_last)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert inside == [1]
    assert blas_threads() == 2


def test_a_limit_never_raises_the_number_of_threads():
    with threadpool_limits(1, user_api="blas"), machine.blas_limit(2):
        assert blas_threads() == 1
    with threadpool_limits(2, user_api="blas"), machine.blas_limit(2):
        assert [machine.share_of_threads(n) for n in (1, 2, 3)] == [2, 1, 1]


@pytest.mark.parametrize("allowed", [1, 2, 3])
def test_results_come_in_order_from_as_many_threads_as_allowed(monkeypatch, allowed):
    monkeypatch.setattr(machine, "n_threads", lambda: allowed)
    seen = set()
    together = threading.Barrier(allowed, timeout=10)

    def work(job):
        if job < allowed:
            together.wait()  # the first jobs run at the same time
        seen.add(threading.get_ident())
        return job**2

    assert list(machine.in_threads(work, list(range(40)))) == [job**2 for job in range(40)]
    assert len(seen) == allowed


def test_few_rows_are_not_worth_a_thread(monkeypatch):
    monkeypatch.setattr(machine, "n_threads", lambda: 2)
    here = threading.get_ident()
    idents = list(machine.in_threads(lambda _: threading.get_ident(), [0, 1, 2], n_rows=10))
    assert set(idents) == {here}
    assert list(machine.in_threads(np.sqrt, [])) == []


class Interrupted:
    """A BLAS library during whose k-th call Ctrl-C is pressed."""

    def __init__(self, presses_at):
        self.threads, self.calls, self.presses_at = 2, 0, presses_at

    def _call(self):
        self.calls += 1
        if self.calls == self.presses_at:
            raise KeyboardInterrupt

    @property
    def num_threads(self):
        self._call()
        return self.threads

    def set_num_threads(self, threads):
        self._call()
        self.threads = threads


@pytest.mark.parametrize("presses_at", range(1, 7))
def test_ctrl_c_in_the_midst_of_a_limit_leaves_no_limit_behind(monkeypatch, presses_at):
    library = Interrupted(presses_at)
    monkeypatch.setattr(machine, "_blas_libraries", lambda: [library])
    with pytest.raises(KeyboardInterrupt), machine.one_blas_thread():
        assert library.threads == 1
    assert library.threads == 2
    assert machine.n_threads() == 2
    with machine.one_blas_thread():
        assert library.threads == 1
    assert library.threads == 2
