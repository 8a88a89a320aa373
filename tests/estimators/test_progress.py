"""What a fit shows while it runs: lines in a file, bars in a terminal, records of the stages."""

from __future__ import annotations

import io
import logging
import re
import sys
import threading

import numpy as np
import pytest

from hikernel import HKLClassifierCV, HKLRegressor, HKLRegressorCV, hkl_path
from hikernel.engines.watch import watcher, watching
from hikernel.errors import CertificateWarning
from hikernel.estimators import progress
from hikernel.estimators.progress import FitProgress
from hikernel.search import StopReason
from hikernel.selection import PathEnd

QUICK = {"n_alphas": 6, "cv": 2, "degree": 2}


def data(n=60):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(n, 3))
    return X, X[:, 0] + X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(n)


class Terminal(io.StringIO):
    """Standard error of a terminal."""

    def isatty(self):
        return True


def stages(text):
    return [line.split(" [")[0] for line in text.splitlines()]


@pytest.mark.filterwarnings("ignore:The chosen alpha is the smallest")
def test_a_file_gets_a_line_per_stage(capsys):
    HKLRegressorCV(verbose=1, **QUICK).fit(*data())
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "\r" not in shown.err
    lines = stages(shown.err)
    # Six alphas, on all rows and on two folds; the trial of steps is on one fold.
    assert [line.split(": ")[0] for line in lines] == [
        "hikernel read",
        "hikernel cross-validation",
        "hikernel trial of steps",
        "hikernel proof",
        "hikernel simpler models",
        "hikernel refit",
    ]
    assert re.match(r"hikernel cross-validation: 18 fits, alpha=\S+, terms=\d+, error=", lines[1])
    assert re.match(r"hikernel trial of steps: \d+ fits$", lines[2])
    assert re.match(r"hikernel proof: \d+ kernels, objective=", lines[3])
    assert all(re.search(r" \[\d+\.\d s\]$", line) for line in shown.err.splitlines())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The chosen alpha is the smallest")
def test_folds_in_processes_are_counted(capsys):
    HKLRegressorCV(verbose=1, n_jobs=2, basis={}, **QUICK).fit(*data())
    assert "cross-validation: 18 fits" in capsys.readouterr().err


def test_models_are_counted_when_they_are_fitted(monkeypatch, capsys):
    from hikernel.selection import folds

    original = folds.FoldPath.advance

    def late(self, problem, settings, lams):
        original(self, problem, settings, lams[:2])
        self.end = folds.PathEnd.TIME

    monkeypatch.setattr(folds.FoldPath, "advance", late)
    HKLRegressorCV(verbose=1, basis={}, **QUICK).fit(*data())
    # Five alphas on all rows, two on each fold.
    assert "cross-validation: 9 fits" in capsys.readouterr().err


@pytest.mark.filterwarnings("ignore:The chosen alpha is the smallest")
def test_joblib_without_generators_counts_too(capsys):
    import joblib

    with joblib.parallel_config(backend="multiprocessing", n_jobs=1):
        HKLRegressorCV(verbose=1, basis={}, **QUICK).fit(*data())
    assert "cross-validation: 18 fits" in capsys.readouterr().err


def test_other_fits_have_their_stages(capsys):
    X, y = data()
    HKLRegressor(verbose=1, refit="ridge").fit(X, y)
    names = [line.split(": ")[0] for line in stages(capsys.readouterr().err)]
    want = ["read", "path", "search and proof", "refit"]
    assert names == [f"hikernel {name}" for name in want]
    HKLRegressor(0.01, verbose=1).fit(X, y)
    names = [line.split(": ")[0] for line in stages(capsys.readouterr().err)]
    assert names == ["hikernel read", "hikernel search and proof"]
    hkl_path(X, y, n_alphas=4, verbose=True)
    assert "hikernel path: 4 alphas" in capsys.readouterr().err


def test_a_long_stage_writes_some_lines(monkeypatch, capsys):
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    with FitProgress(1) as show:
        show.stage("path", "alphas")
        for _ in range(4000):
            now[0] += 0.0625
            show.fits(1)
    assert capsys.readouterr().err.splitlines() == [
        "hikernel path: 80 alphas [5.0 s so far]",
        "hikernel path: 240 alphas [15.0 s so far]",
        "hikernel path: 560 alphas [35.0 s so far]",
        "hikernel path: 1200 alphas [75.0 s so far]",
        "hikernel path: 2160 alphas [135.0 s so far]",
        "hikernel path: 3120 alphas [195.0 s so far]",
        "hikernel path: 4000 alphas [250.0 s]",
    ]


@pytest.mark.filterwarnings("ignore:The chosen alpha is the smallest")
def test_a_terminal_gets_a_running_count(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    HKLRegressorCV(verbose=1, **QUICK).fit(*data())
    text = sys.stderr.getvalue()
    finished = [line.split("\r")[-1] for line in text.rstrip().split("\n")]
    assert len(finished) == 6
    assert re.match(r"cross-validation: 18 fits \[\d\d:\d\d, alpha=\S+, terms=", finished[1])
    assert "2000" not in text  # no bar towards max_kernels
    assert "%" not in text
    assert text.endswith("\n")


def test_a_terminal_without_a_size_gets_bars(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setattr(progress.shutil, "get_terminal_size", lambda: (30, 2))
    hkl_path(*data(), n_alphas=3, verbose=1)
    assert "path: 3 alphas" in sys.stderr.getvalue()
    assert max(map(len, re.split(r"[\r\n]", sys.stderr.getvalue()))) <= 30


def test_a_notebook_gets_the_bars_of_notebooks(monkeypatch):
    class OutStream(Terminal):
        """Standard error of a kernel, which is no terminal."""

        __module__ = "ipykernel.iostream"

        def isatty(self):
            return False

    monkeypatch.setattr(sys, "stderr", OutStream())
    hkl_path(*data(), n_alphas=3, verbose=1)
    assert "path: 3 alphas" in sys.stderr.getvalue()
    assert "\r" in sys.stderr.getvalue()


def test_nothing_is_shown_where_there_is_no_standard_error(monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    model = HKLRegressor(0.01, verbose=2).fit(*data())
    assert model.certificate_.certified


@pytest.mark.parametrize("stream", [io.StringIO, Terminal])
def test_an_error_closes_what_is_open(stream, monkeypatch):
    from tqdm import tqdm

    monkeypatch.setattr(sys, "stderr", stream())
    logger = logging.getLogger("hikernel")
    before = [*logger.handlers], logger.level

    def fails(*args, **settings):
        raise KeyboardInterrupt

    monkeypatch.setattr("hikernel.estimators.comparison.cross_validate", fails)
    with pytest.raises(KeyboardInterrupt):
        HKLRegressorCV(verbose=2, **QUICK).fit(*data())
    assert not tqdm._instances
    assert ([*logger.handlers], logger.level) == before
    text = sys.stderr.getvalue()
    assert text.endswith("\n")
    assert "fits]" not in text


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The chosen alpha is the smallest")
@pytest.mark.parametrize("stream", [io.StringIO, Terminal])
def test_nothing_of_it_changes_a_model(stream, monkeypatch):
    X, y = data()
    for make, target in ((HKLRegressorCV, y), (HKLClassifierCV, y > 0)):
        silent = make(**QUICK).fit(X, target)
        for verbose in (1, 2, 3):
            monkeypatch.setattr(sys, "stderr", stream())
            shown = make(verbose=verbose, **QUICK).fit(X, target)
            np.testing.assert_array_equal(shown.coef_, silent.coef_)
            assert vars(shown).keys() == vars(silent).keys()
            assert (shown.alpha_, shown.refit_) == (silent.alpha_, silent.refit_)
            assert shown.certificate_ == silent.certificate_
            assert shown.best_score_ == silent.best_score_
            for name, column in silent.cv_results_.items():
                np.testing.assert_array_equal(column, shown.cv_results_[name])


def test_a_proof_shows_how_long_it_may_go_on(monkeypatch, capsys):
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    with FitProgress(1) as show:
        show.stage("search and proof", "kernels")
        for share in (0.1, 0.2, 0.3, 0.1, 0.4):  # the fourth is that of another proof
            watcher()(share)
            now[0] += 30.0
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "hikernel search and proof: 0 kernels, proof=20 % of the most work, to go=at most 0:04:00"
        " [30.0 s so far]",
        "hikernel search and proof: 0 kernels, proof=30 % of the most work, to go=at most 0:03:30"
        " [60.0 s so far]",
        "hikernel search and proof: 0 kernels, proof=10 % of the most work [90.0 s so far]",
        "hikernel search and proof: 0 kernels, proof=40 % of the most work, to go=at most 0:01:00"
        " [150.0 s]",
    ]
    assert watcher() is None


@pytest.mark.parametrize("certify", ["exact", "statistical"])
def test_a_proof_tells_how_much_of_its_work_is_done(certify):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 8))
    y = X[:, 0] * X[:, 1] + X[:, 2] + rng.standard_normal(600)
    seen = []
    with watching(seen.append):
        model = HKLRegressor(0.01, certify=certify, tol=1e-3).fit(X, y)
    assert model.certificate_.kind == certify
    assert len(seen) > 3
    assert 0.0 < seen[0] < 1.0
    assert seen == sorted(seen)
    most = []
    with watching(most.append):
        HKLRegressor(0.01, certify=certify, tol=1e-3, proof_effort=10.0).fit(X, y)
    np.testing.assert_allclose(most, np.array(seen) / 10.0)


def test_the_limits_that_a_warning_names_are_parameters():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 6))
    y = X[:, 0] * X[:, 1] + rng.standard_normal(300)
    with pytest.warns(CertificateWarning, match=r"limit max_order \(max_order=2\), or raise alpha"):
        short = HKLRegressor(0.01, tol=1e-3, proof_effort=1e-6).fit(X, y)
    assert short.certificate_.reason is StopReason.MAX_WORK
    assert "proof_effort" in short.certificate_.reason.sentence
    parameters = {*HKLRegressorCV().get_params(), *HKLRegressor().get_params()}
    named = set()
    for reason in [*StopReason, *PathEnd]:
        named |= set(re.findall(r"\b[a-z]+_[a-z_]+\b|\balpha\b|\bcertify\b", reason.sentence))
    assert named <= parameters
    assert {"proof_effort", "max_order", "max_kernels", "max_memory", "time_budget"} <= named


# -- log records -----------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:The chosen alpha is the smallest")
def test_the_second_level_writes_the_records(capsys):
    HKLRegressorCV(verbose=2, **QUICK).fit(*data())
    lines = capsys.readouterr().err.splitlines()
    assert all(re.match(r"\d\d:\d\d:\d\d hikernel: ", line) for line in lines)
    text = "\n".join(lines)
    assert "Read 60 rows" in text
    assert "Bases: 3 orthonormal." in text
    assert len(re.findall(r"alpha \S+: \d+ terms explain", text)) == 6
    assert len(re.findall(r"mean score of 2 folds by refit: None -\d", text)) == 6
    assert "Best score on the first fold without steps" in text
    assert "Chosen by the rule 'sparse': alpha" in text
    assert "Proven: no choice among all of them" in text
    assert re.search(r"The model has \d terms\.$", text)
    assert "fold 1" not in text


@pytest.mark.filterwarnings("ignore:The chosen alpha is the smallest")
def test_the_third_level_writes_all_records(capsys):
    HKLRegressorCV(verbose=3, **QUICK).fit(*data())
    text = capsys.readouterr().err
    assert len(re.findall(r"alpha \S+, fold 1: None -\d", text)) == 6
    assert "Column 'x0' (number): basis orthonormal, number: polynomials." in text
    assert re.search(r"Step 1 at alpha \S+: \d+ kernels, objective", text)


def test_records_of_a_user_are_not_written_twice(capsys):
    handler = logging.StreamHandler(sys.stderr)
    root = logging.getLogger()
    root.addHandler(handler)
    try:
        HKLRegressor(0.01, verbose=2).fit(*data())
    finally:
        root.removeHandler(handler)
    assert capsys.readouterr().err.count("Read 60 rows") == 1


def test_fits_side_by_side_write_each_record_once(capsys):
    inside, leave = threading.Event(), threading.Event()

    def other():
        with FitProgress(2):
            inside.set()
            leave.wait(10)

    thread = threading.Thread(target=other)
    thread.start()
    inside.wait(10)
    HKLRegressor(0.01, verbose=2).fit(*data())
    leave.set()
    thread.join()
    assert capsys.readouterr().err.count("Read 60 rows") == 1
    assert logging.getLogger("hikernel").level == logging.NOTSET
