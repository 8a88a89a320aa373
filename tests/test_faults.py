"""Kills, Ctrl-C, lack of memory and full disks leave nothing that is half done."""

from __future__ import annotations

import errno
import os
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

from hikernel import HKLClassifierCV, HKLRegressor, HKLRegressorCV, hkl_path, load
from hikernel.errors import CertificateWarning, ConvergenceWarning
from hikernel.persistence import whole_file

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


def interrupted_after(seconds, work):
    """Press Ctrl-C during the work; return how long it went on after that."""
    pressed = []

    def press():
        pressed.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(seconds, press)
    timer.start()
    try:
        work()
    finally:
        timer.cancel()
        timer.join()
    return time.monotonic() - pressed[0]


LONG = {
    "fit": lambda **given: HKLRegressor(alpha=1e-7, tol=1e-6, **given),
    "auto": lambda **given: HKLRegressor(**given),
    "cv": lambda **given: HKLRegressorCV(**given),
    "cv in processes": lambda **given: HKLRegressorCV(n_jobs=2, **given),
    "classes": lambda **given: HKLClassifierCV(**given),
}
"""Fits that take much longer than the tests let them."""


def target(name, y):
    return np.digitize(y, [-0.5, 0.5]) if name == "classes" else y


@pytest.mark.slow
@pytest.mark.parametrize("name", LONG)
def test_ctrl_c_ends_a_fit_within_two_seconds_and_leaves_no_model(name):
    X, y = data(n=1500, p=12)
    small, few = data(n=60, p=4)
    model = LONG[name]()
    if name == "fit":  # a model that was there before
        model.set_params(alpha=0.1).fit(small, few).set_params(alpha=1e-7)
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        interrupted_after(0.5, lambda: model.fit(X, target(name, y)))
    assert time.monotonic() - began < 2.5
    with pytest.raises(NotFittedError):
        model.predict(X)
    assert [attribute for attribute in vars(model) if attribute.endswith("_")] == []
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.slow
@pytest.mark.parametrize("name", LONG)
def test_ctrl_c_can_keep_the_best_model_so_far(name):
    X, y = data(n=1500, p=12)
    model = LONG[name](on_interrupt="keep")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", CertificateWarning)
        took = interrupted_after(0.5, lambda: model.fit(X, target(name, y)))
    assert took < 2.0
    assert model.predict(X).shape == y.shape
    assert not model.certificate_.certified
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
