"""Kills, Ctrl-C, lack of memory and full disks leave nothing that is half done."""

from __future__ import annotations

import errno
import io
import os
import resource
import signal
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from hikernel import HKLClassifierCV, HKLRegressor, HKLRegressorCV
from hikernel.engines import machine
from hikernel.errors import CertificateWarning, ConvergenceWarning
from hikernel.experiments import store
from hikernel.experiments.store import Job, Result, Store
from hikernel.persistence import whole_file
from hikernel.selection import folds

TOOL = Path(__file__).resolve().parents[1] / "tools" / "faults.py"


def data(n=300, p=8, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, size=(n, p))
    return X, X[:, 0] + X[:, 1] * X[:, 2] + np.sin(3 * X[:, 3]) + 0.1 * rng.standard_normal(n)


# -- kill -9; tools/faults.py says what is checked ------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("work", ["fit", "save"])
def test_what_is_killed_leaves_no_part_of_a_file(work):
    command = [sys.executable, str(TOOL), "--only", work, "--kills", "2"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{work}: 2 kills" in done.stdout


# -- Ctrl-C ---------------------------------------------------------------------------------------


@pytest.fixture
def ctrl_c():
    """Let Ctrl-C raise: a shell that starts the tests in the background has it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupted(work):
    """Press Ctrl-C a quarter of a second into the work; return how long it went on after that.

    The clock runs from the press, so that a busy machine may begin late.
    """
    pressed = []

    def press():
        pressed.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(0.25, press)
    timer.start()
    try:
        work()
    except KeyboardInterrupt:
        return time.monotonic() - pressed[0], True
    finally:
        timer.cancel()
        timer.join()
    return time.monotonic() - pressed[0], False


LONG = {
    "fit": lambda **given: HKLRegressor(alpha=1e-7, tol=1e-6, **given),
    "auto": lambda **given: HKLRegressor(**given),
    "cv": lambda **given: HKLRegressorCV(**given),
    "cv in processes": lambda **given: HKLRegressorCV(n_jobs=2, **given),
    "classes": lambda **given: HKLClassifierCV(**given),
}
"""Fits that take two seconds and more."""


def target(name, y):
    return np.digitize(y, [-0.5, 0.5]) if name == "classes" else y


@pytest.mark.slow
@pytest.mark.usefixtures("ctrl_c")
@pytest.mark.parametrize("name", LONG)
def test_ctrl_c_ends_a_fit_within_two_seconds_and_leaves_no_model(name):
    X, y = data(n=3000, p=20)
    small, few = data(n=60, p=4)
    model = LONG[name]()
    if name == "fit":  # a model that was there before
        model.set_params(alpha=0.1).fit(small, few).set_params(alpha=1e-7)
    took, raised = interrupted(lambda: model.fit(X, target(name, y)))
    assert raised
    assert took < 2.0
    with pytest.raises(NotFittedError):
        model.predict(X)
    assert fitted_attributes(model) == []
    assert machine._limits == {}
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def fitted_attributes(model):
    return [name for name in vars(model) if name.endswith("_") and not name.startswith("_")]


@pytest.mark.slow
@pytest.mark.usefixtures("ctrl_c")
@pytest.mark.parametrize("name", LONG)
def test_ctrl_c_can_keep_the_best_model_so_far(name):
    X, y = data(n=3000, p=20)
    model = LONG[name](on_interrupt="keep")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", CertificateWarning)
        took, raised = interrupted(lambda: model.fit(X, target(name, y)))
    assert not raised
    assert took < 2.0
    assert model.predict(X).shape == y.shape
    assert not model.certificate_.certified
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_before_the_folds_starts_no_process(monkeypatch):
    X, y = data(n=60, p=4)
    model = HKLRegressorCV(n_jobs=2, on_interrupt="keep")
    read = model._read_data

    def press_and_read(*arguments):
        os.kill(os.getpid(), signal.SIGINT)
        return read(*arguments)

    def no_process(*arguments, **given):
        raise AssertionError("processes are started")

    monkeypatch.setattr(model, "_read_data", press_and_read)
    monkeypatch.setattr(folds, "_parallel", no_process)
    with pytest.warns((ConvergenceWarning, CertificateWarning)):
        model.fit(X, y)
    assert model.predict(X).shape == y.shape
    assert not model.certificate_.certified


# -- lack of memory -------------------------------------------------------------------------------


def failing_call(work, number):
    """Let the function of hikernel that is called as number so-and-so have no memory.

    Returns how many calls there were, and whether the lack of memory was told.
    """
    calls = 0

    def count(frame, event, argument):
        nonlocal calls
        if event == "call" and f"{os.sep}hikernel{os.sep}" in frame.f_code.co_filename:
            calls += 1
            if calls == number:
                raise MemoryError("planted")

    sys.setprofile(count)
    try:
        work()
    except MemoryError:
        return calls, True
    finally:
        sys.setprofile(None)
    return calls, False


KINDS = {
    "regression": lambda: HKLRegressor(0.01, max_order=2),
    "cv": lambda: HKLRegressorCV(cv=2, n_alphas=3, max_order=1, basis="polynomial"),
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_a_lack_of_memory_anywhere_in_a_fit_leaves_no_model_and_no_harm(kind):
    X, y = data(n=60, p=4)
    expected = KINDS[kind]().fit(X, y).predict(X)
    model = KINDS[kind]()
    n_calls, _ = failing_call(lambda: model.fit(X, y), -1)
    rng = np.random.default_rng(0)
    for number in rng.integers(1, n_calls + 1, size=10):
        _, told = failing_call(lambda: model.fit(X, y), number)
        assert told, number
        assert fitted_attributes(model) == [], number
        assert machine._limits == {}
    np.testing.assert_array_equal(model.fit(X, y).predict(X), expected)


USES = {
    "predict": lambda model, X, path: model.predict(X),
    "effects": lambda model, X, path: model.effects(X),
    "save": lambda model, X, path: model.save(path),
    "export": lambda model, X, path: model.export(path, format="json"),
    "report": lambda model, X, path: model.report(path),
}


@pytest.mark.slow
@pytest.mark.parametrize("use", USES)
def test_a_lack_of_memory_while_a_model_is_used_leaves_it_as_it_is(use, tmp_path):
    X, y = data(n=60, p=4)
    model = HKLRegressor(0.01, max_order=2).fit(X, y)
    path = tmp_path / "file"
    path.write_text("older")
    expected = HKLRegressor(0.01, max_order=2).fit(X, y).predict(X)
    n_calls, _ = failing_call(lambda: USES[use](model, X, tmp_path / "other"), -1)
    (tmp_path / "other").unlink(missing_ok=True)
    rng = np.random.default_rng(0)
    for number in rng.integers(1, max(2, n_calls // 2), size=8):
        # What is kept from the first time makes later calls fewer: each is a new model.
        fresh = HKLRegressor(0.01, max_order=2).fit(X, y)
        _, told = failing_call(lambda model=fresh: USES[use](model, X, path), number)
        assert told, number
        assert [file.name for file in tmp_path.iterdir()] == ["file"]
        assert path.read_text() == "older"
        np.testing.assert_array_equal(fresh.predict(X), expected)


def without_memory():
    """What the next test runs: a fit with 10 MB left, and one with enough."""
    X, y = data(n=30_000, p=10)
    model = HKLRegressor(0.01, max_order=2)
    expected = HKLRegressor(0.1, certify="none").fit(X[:200], y[:200]).predict(X[:9])
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + 10 * 2**20, resource.RLIM_INFINITY))
    try:
        model.fit(X, y)
    except MemoryError as error:
        print(error)
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    again = HKLRegressor(0.1, certify="none").fit(X[:200], y[:200]).predict(X[:9])
    print(fitted_attributes(model), np.array_equal(again, expected))


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the limit is one of Linux")
def test_a_fit_that_the_system_gives_no_memory_says_so():
    code = "import test_faults; test_faults.without_memory()"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=Path(__file__).parent,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Unable to allocate" in done.stdout
    assert "[] True" in done.stdout


# -- a full disk ----------------------------------------------------------------------------------


class FullDisk(io.FileIO):
    """A file on a disk that has room for a few bytes."""

    room = 0

    def write(self, content):
        if self.tell() + len(content) > self.room:
            super().write(bytes(content)[: max(0, self.room - self.tell())])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return super().write(content)


WRITERS = {name: USES[name] for name in ("save", "export", "report")}


@pytest.mark.parametrize("room", [0, 500])
@pytest.mark.parametrize("use", WRITERS)
def test_a_full_disk_leaves_the_older_file_and_is_told_in_a_sentence(
    use, room, tmp_path, monkeypatch
):
    X, y = data(n=60, p=4)
    model = HKLRegressor(0.1, max_order=1, certify="none").fit(X, y)
    path = tmp_path / "older"
    path.write_text("older")
    monkeypatch.setattr(FullDisk, "room", room)
    monkeypatch.setattr(whole_file, "open", FullDisk, raising=False)
    with pytest.raises(OSError, match="No space left on device") as caught:
        WRITERS[use](model, X, path)
    assert str(path) in str(caught.value)
    assert caught.value.errno == errno.ENOSPC
    assert [file.name for file in tmp_path.iterdir()] == ["older"]
    assert path.read_text() == "older"
    monkeypatch.undo()
    WRITERS[use](model, X, path)
    assert path.stat().st_size > 500


def test_a_full_disk_costs_a_reproduction_no_earlier_result(tmp_path, monkeypatch):
    job = Job("abalone", "polynomial", "L2", 0)
    results = [Result(job, n, 2, [1.0], [2.0], [3.0], [], 0.5) for n in (10, 20, 30)]
    saved = Store(tmp_path / "results.jsonl")
    saved.add(results[0])

    def no_room(number):
        os.ftruncate(number, os.fstat(number).st_size - 20)  # so much did not fit
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(store.os, "fsync", no_room)
    with pytest.raises(OSError, match="No space left on device; what was done before is saved"):
        saved.add(results[1])
    monkeypatch.undo()
    assert list(saved) == [results[0]]
    saved.add(results[2])
    assert list(saved) == [results[0], results[2]]
