"""Fits in a row hold no more memory, files or threads; the tool that says so notices a leak."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

TOOLS = Path(__file__).resolve().parents[1] / "tools"
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

FEW = """
import soak
every = [soak.regression, soak.classes, soak.folds, soak.survival]
soak.soak(8, 8, every, print)  # imports and caches
notes = soak.soak(16, 2, every, print)
print(soak.verdict(notes))
"""


@pytest.fixture
def soak(monkeypatch):
    monkeypatch.syspath_prepend(str(TOOLS))
    import soak

    return soak


@pytest.mark.slow
def test_fits_in_a_row_hold_nothing():
    command = [sys.executable, "-c", FEW]
    done = subprocess.run(command, cwd=TOOLS, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "[]", done.stdout


def test_a_leak_of_memory_is_noticed(soak):
    kept = []
    notes = soak.soak(40, 5, [lambda rng, folder: kept.append(np.ones(2000))], str)
    assert [found.split()[0] for found in soak.verdict(notes)] == ["memory"]
    assert soak.growth(notes) == pytest.approx(16.0, rel=0.5)


def test_a_leak_of_files_and_threads_is_noticed(soak):
    kept, end = [], threading.Event()

    def leak(rng, folder):
        kept.append(open(__file__))  # noqa: SIM115
        kept.append(threading.Thread(target=end.wait))
        kept[-1].start()

    try:
        notes = soak.soak(5, 1, [leak], str)
    finally:
        end.set()
        for one in kept:
            one.join() if isinstance(one, threading.Thread) else one.close()
    assert {found.split()[0] for found in soak.verdict(notes)} >= {"files", "threads"}


def test_a_bump_is_no_leak(soak):
    sizes = [100.0, 900.0, 900.0, 900.0, 1400.0, 1400.0, 1400.0, 1400.0, 1400.0, 1400.0]
    notes = [soak.Note(25 * i, size, 5, 2) for i, size in enumerate(sizes, 1)]
    assert soak.verdict(notes) == []


def test_too_few_fits_are_refused_in_a_sentence(soak, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["soak.py", "--fits", "40"])
    with pytest.raises(SystemExit, match="2"):
        soak.main()
    assert "40 fits are too few to see growth; do at least 75" in capsys.readouterr().err
