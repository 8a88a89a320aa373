"""The command as a process: pipes that close, interrupts, and python -m hikernel."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

from hikernel._version import __version__

pytestmark = pytest.mark.slow

HIKERNEL = [sys.executable, "-m", "hikernel"]


def start(*words, **settings):
    # A test run in the background may ignore interrupts, and processes inherit that.
    def listen():
        signal.signal(signal.SIGINT, signal.default_int_handler)

    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([*HIKERNEL, *words], preexec_fn=listen, **(pipes | settings))


def test_the_module_is_the_command():
    done = subprocess.run([*HIKERNEL, "--version"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, f"hikernel {__version__}\n")
    done = subprocess.run([*HIKERNEL, "fit"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("hikernel fit: Missing argument 'DATA'.")


def test_a_reader_that_has_enough_is_no_error(models, houses):
    pd.concat([houses] * 2000).to_csv("many.csv", index=False)
    with start("predict", "price.hik", "many.csv", "-q") as process:
        assert process.stdout.readline() == b"prediction\n"
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0


def test_a_table_on_standard_input(models, houses):
    with start("predict", "price.hik", "-", "-q") as process:
        out, err = process.communicate((models / "new.csv").read_bytes(), timeout=60)
    assert (process.returncode, err) == (0, b"")
    assert len(out.splitlines()) == 6


def test_a_terminal_that_lacks_letters_shows_names_nevertheless(models):
    environment = os.environ | {"PYTHONIOENCODING": "iso8859-7"}
    words = [*HIKERNEL, "explain", "price.hik"]
    done = subprocess.run(words, capture_output=True, env=environment)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"gr\\xf6\\xdfe" in done.stdout


@pytest.mark.parametrize("n_jobs", [[], ["--n-jobs", "2"]])
def test_an_interrupt_ends_with_130_and_leaves_nothing(n_jobs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(-1, 1, size=(2000, 30))).add_prefix("x")
    X.assign(y=X.prod(axis=1) + X.sum(axis=1)).to_csv("data.csv", index=False)
    words = ["fit", "data.csv", "--target", "y", "--out", "m.hik", *n_jobs]
    with start(*words, text=True) as process:
        for line in process.stderr:
            if line.startswith("hikernel read"):
                break
        time.sleep(1.0)
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read()
        assert process.stdout.read() == ""
    assert process.returncode == 130
    assert rest.splitlines()[-1] == "hikernel fit: Stopped."
    assert "Traceback" not in rest
    assert os.listdir() == ["data.csv"]
