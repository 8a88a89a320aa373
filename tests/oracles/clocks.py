"""Clocks to test time budgets with: time is up at a chosen moment, or runs at another speed."""

from __future__ import annotations

import time
from contextlib import contextmanager
from unittest import mock

from hikernel.engines import machine
from hikernel.errors import OutOfTime


class Looks:
    """A clock that counts the looks at it, and stands at zero for the first of them."""

    def __init__(self, most):
        self.most = most
        self.seen = 0

    def monotonic(self):
        self.seen += 1
        return 2.0 if self.is_up else 0.0

    @property
    def is_up(self):
        return self.seen > self.most


@contextmanager
def stopped_after(n_looks):
    """Let the time be up after so many looks at the clock; what is done before takes no time."""
    clock = Looks(n_looks)
    with mock.patch.object(machine, "time", clock), machine.time_limit(1.0):
        yield clock


@contextmanager
def clock_times(factor):
    """Let every clock of the process run ``factor`` times as fast."""
    began, true_clock = time.monotonic(), time.monotonic

    def monotonic():
        return began + factor * (true_clock() - began)

    with mock.patch.object(time, "monotonic", monotonic):
        yield


def at_every_moment(run, most=400):
    """Return the results of ``run`` with the time up after 1, 2, ... looks at the clock.

    The last one is the first that was not cut short. Runs that end with ``OutOfTime``, which have
    no model, come first and are left out.
    """
    results = []
    for n_looks in range(most):
        try:
            with stopped_after(n_looks) as clock:
                results.append(run())
                if not clock.is_up:
                    return results
        except OutOfTime:
            assert not results, "there was a model already, and more time took it away"
    raise AssertionError("the run never ends by itself")
