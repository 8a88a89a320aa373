"""Stages that take long can be interrupted in their midst, in the main thread and in others."""

from __future__ import annotations

import contextvars
import itertools
import os
import signal
import threading
import time

import numpy as np
import pytest
from oracles.clocks import stopped_after

from hikernel.engines import NumpyEngine, interrupts, machine, numerics
from hikernel.errors import OutOfTime
from hikernel.losses import CLASSIFICATION, SquaredError, make_loss
from hikernel.selection.ridge import fit_ridge

MODES = ["raise", "keep"]


def make_engine(n, p, levels=4):
    rng = np.random.default_rng(0)
    rows = ([np.ones((n, 1)), *rng.standard_normal((levels, n, 1))] for _ in range(p))
    engine = NumpyEngine([(1,) * (levels + 1)] * p, rows, np.ones(n), [True] * p)
    return engine, rng.standard_normal(n) / n


def tail_sums(max_order):
    engine, alpha = make_engine(4096, 24)
    sets = itertools.islice(itertools.combinations(range(24), 3), 1500)
    nodes = [tuple((m, 1) for m in some) for some in sets]
    scales = [np.tril(np.ones((5, 5))).T * 0.1 ** np.arange(5)] * 24
    return lambda: engine.tail_sums(nodes, alpha, scales, max_order)


def draws():
    engine, alpha = make_engine(10**5, 12)
    nodes = [tuple((m, 1) for m in some) for some in itertools.combinations(range(12), 3)]
    scales = [np.tril(np.ones((5, 5))).T * 0.1 ** np.arange(5)] * 12
    return lambda: engine.tail_draws(nodes, alpha, scales, None, 500, 0)


def gram():
    engine, _ = make_engine(10**5, 20)
    pairs = itertools.combinations(engine.level_pairs, 2)
    nodes = [pair for pair in pairs if pair[0][0] < pair[1][0]][:800]
    means = np.zeros(800)
    return lambda: engine.gram(nodes, nodes, means, means)


def extensions():
    engine, alpha = make_engine(2000, 1500)
    prefixes = [(pair,) for pair in engine.level_pairs[:2048]]
    return lambda: engine.extension_squares(prefixes, alpha)


def ridge(loss, y):
    features = np.random.default_rng(0).standard_normal((len(y), 400))
    return lambda: fit_ridge(features, y, np.full(len(y), 1.0 / len(y)), loss)


def numbers(n=30_000):
    return np.random.default_rng(1).standard_normal(n)


STAGES = {
    "tail sums": lambda: tail_sums(None),
    "tail sums of limited order": lambda: tail_sums(4),
    "draws": draws,
    "gram": gram,
    "extensions": extensions,
    "ridge": lambda: ridge(SquaredError(), numbers()),
    "ridge of classes": lambda: ridge(make_loss("log_loss", CLASSIFICATION), np.sign(numbers())),
}


def done_in(mode, work):
    """Do some work as a fit does it, whose on_interrupt is ``mode``."""
    with interrupts.listening(mode == "keep") as stop, machine.time_limit(np.inf, stop):
        work()


@pytest.fixture
def ctrl_c():
    """Let Ctrl-C raise: a shell that starts the tests in the background has it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.slow
@pytest.mark.usefixtures("ctrl_c")
@pytest.mark.parametrize("name", STAGES)
def test_ctrl_c_in_the_midst_of_a_stage_ends_it_within_two_seconds(name):
    work = STAGES[name]()
    for mode in MODES:
        pressed = []

        def press(pressed=pressed):
            pressed.append(time.monotonic())
            os.kill(os.getpid(), signal.SIGINT)

        timer = threading.Timer(0.15, press)
        timer.start()
        try:
            with pytest.raises((KeyboardInterrupt, OutOfTime)) as caught:
                done_in(mode, work)
        finally:
            timer.cancel()
            timer.join()
        assert time.monotonic() - pressed[0] < 2.0
        assert caught.type is (KeyboardInterrupt if mode == "raise" else OutOfTime)
    assert machine._limits == {}


# -- jobs in threads ------------------------------------------------------------------------------


def busy(started):
    """A job that ends only when it is told to."""
    started.set()
    while True:
        machine.check_time()


def test_jobs_in_threads_end_when_nobody_waits_for_them(monkeypatch):
    monkeypatch.setattr(machine, "n_threads", lambda: 2)
    started = threading.Event()

    def work(job):
        if job == 0:
            started.wait(10.0)
            raise KeyboardInterrupt
        busy(started)

    with pytest.raises(KeyboardInterrupt):
        list(machine.in_threads(work, [0, 1]))
    # A generator that is closed, because its caller failed, ends them too.
    started.clear()
    results = machine.in_threads(lambda job: job and busy(started), [0, 1])
    assert next(results) == 0
    started.wait(10.0)
    results.close()
    assert not machine.is_late()


def test_jobs_in_threads_have_the_limits_of_their_caller(monkeypatch):
    monkeypatch.setattr(machine, "n_threads", lambda: 2)
    end = time.monotonic() + 60.0
    with machine.time_limit(end):
        assert list(machine.in_threads(lambda job: machine.deadline(), [0, 1])) == [end, end]
    with machine.memory_limit(2**40):
        seen = list(machine.in_threads(lambda job: machine.available_bytes(), [0, 1]))
    assert max(seen) <= 2**40


def test_a_job_starts_no_threads_of_its_own(monkeypatch):
    monkeypatch.setattr(machine, "_blas_libraries", lambda: [])
    context = contextvars.copy_context()
    context.run(machine._outer_threads.set, 2)
    inside = context.run(lambda: list(machine.in_threads(lambda job: machine.n_threads(), [0, 1])))
    assert inside == [1, 1]


# -- products in parts ----------------------------------------------------------------------------


@pytest.mark.parametrize("work", [1.0, 500.0, 1e9])
@pytest.mark.parametrize(("n", "size", "width"), [(7, 5, 3), (40, 9, 9), (3, 0, 2), (0, 4, 4)])
def test_products_in_parts_are_products(n, size, width, work, monkeypatch):
    monkeypatch.setattr(numerics, "_PART_WORK", work)
    rng = np.random.default_rng(0)
    left, right = rng.standard_normal((n, size)), rng.standard_normal((size, width))
    product = numerics.product_in_parts(left, right)
    np.testing.assert_allclose(product, left @ right, rtol=1e-13, atol=1e-13)
    gram = numerics.gram_in_parts(left)
    np.testing.assert_allclose(gram, left.T @ left, rtol=1e-13, atol=1e-13)
    np.testing.assert_array_equal(gram, gram.T)


def test_products_in_parts_look_at_the_time(monkeypatch):
    matrix = np.ones((10, 10))
    for work in (numerics.gram_in_parts, lambda x: numerics.product_in_parts(x, x)):
        with stopped_after(0):
            work(matrix)  # in one part, which takes no time
        monkeypatch.setattr(numerics, "_PART_WORK", 100.0)
        with stopped_after(1), pytest.raises(OutOfTime):
            work(matrix)
        monkeypatch.undo()
