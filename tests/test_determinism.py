"""The same data, the same model: over threads, BLAS kernels, chunks, orders of rows and columns."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest

from hikernel import HKLClassifier, HKLRegressor, HKLRegressorCV
from hikernel.engines import machine, numpy_engine
from hikernel.graphs import KernelGraph

SETTINGS = {"degree": 3}


def table(n=150, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.standard_normal((n, 4)), columns=["low", "high", "width", "depth"])
    frame["kind"] = rng.choice(["oak", "elm", "ash"], n)
    y = frame["low"] * frame["high"] + frame["width"] ** 2 + (frame["kind"] == "elm")
    return frame, (y + 0.3 * rng.standard_normal(n)).to_numpy()


MODELS = {
    "squared": lambda X, y: HKLRegressor(1e-3, **SETTINGS).fit(X, y),
    "auto": lambda X, y: HKLRegressor("auto", **SETTINGS).fit(X, y),
    "log": lambda X, y: HKLClassifier(1e-2, **SETTINGS).fit(X, y > np.median(y)),
    "cv": lambda X, y: HKLRegressorCV(cv=3, random_state=0, **SETTINGS).fit(X, y),
}


def outcome(model, X):
    """What must not change; factors of a term are in the order of the columns."""
    terms = sorted("*".join(sorted(term.split(" * "))) for term in model.hull_["term"])
    f = model.decision_function(X) if hasattr(model, "decision_function") else model.predict(X)
    return {
        "terms": terms,
        "objective": model.certificate_.objective,
        "alpha": float(model.alpha_),
        "f": (f / np.std(f)).tolist(),
    }


def assert_same(ours, theirs):
    assert ours["terms"] == theirs["terms"]
    assert ours["objective"] == pytest.approx(theirs["objective"], rel=1e-9)
    assert ours["alpha"] == pytest.approx(theirs["alpha"], rel=1e-9)
    np.testing.assert_allclose(ours["f"], theirs["f"], rtol=0, atol=1e-9)


@pytest.fixture(scope="module")
def expected():
    X, y = table()
    return {name: outcome(fit(X, y), X) for name, fit in MODELS.items()}


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_sizes_of_chunks_change_nothing(expected, name, monkeypatch):
    monkeypatch.setattr(numpy_engine, "_CHUNK_NUMBERS", 2**9)
    X, y = table()
    assert_same(outcome(MODELS[name](X, y), X), expected[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_the_order_of_columns_changes_nothing(expected, name):
    X, y = table()
    order = X.columns[[3, 1, 4, 0, 2]]
    assert_same(outcome(MODELS[name](X[order], y), X[order]), expected[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in MODELS if name != "cv"])
def test_the_order_of_rows_changes_nothing(expected, name):
    X, y = table()
    order = np.random.default_rng(1).permutation(len(y))
    assert_same(outcome(MODELS[name](X.iloc[order], y[order]), X), expected[name])


def in_other_process(**variables):
    """The same fits in a new process with some variables of the environment."""
    environment = {**os.environ, **variables}
    here = Path(__file__).resolve()
    code = (
        "import json, test_determinism as t\n"
        "X, y = t.table()\n"
        "print(json.dumps({name: t.outcome(fit(X, y), X) for name, fit in t.MODELS.items()}))"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env=environment,
        cwd=here.parent,
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


@pytest.mark.slow
@pytest.mark.parametrize(
    "variables",
    [
        {"OPENBLAS_CORETYPE": "Prescott", "OPENBLAS_NUM_THREADS": "1"},
        {"OPENBLAS_CORETYPE": "Haswell", "OPENBLAS_NUM_THREADS": "2"},
    ],
    ids=lambda variables: variables["OPENBLAS_CORETYPE"],
)
def test_blas_kernels_and_threads_change_nothing(expected, variables):
    # Where the processor lacks the instructions, OpenBLAS falls back to what it has.
    found = in_other_process(**variables)
    for name in MODELS:
        assert_same(found[name], expected[name])


class CountThreads:
    """A score that writes down how many threads BLAS may use in the jobs where it is computed."""

    def __init__(self, path):
        self.path = path
        self.pid = os.getpid()

    def __call__(self, estimator, X, y):
        other = os.getpid() != self.pid
        if other or threading.current_thread() is not threading.main_thread():
            with self.path.open("a") as stream:
                stream.write(f"{'process' if other else 'thread'} {machine.n_threads()}\n")
        return estimator.score(X, y)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.usefixtures("two_blas_threads")
@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_jobs_share_the_cores(tmp_path, backend):
    X, y = table()
    count = CountThreads(tmp_path / "threads")
    with joblib.parallel_config(backend=backend, n_jobs=2):
        HKLRegressorCV(cv=2, alphas=[1.0, 0.1], scoring=count, rule="best", degree=2).fit(X, y)
    found = [line.split() for line in count.path.read_text().splitlines()]
    assert {where for where, _ in found} == {"thread" if backend == "threading" else "process"}
    cores = 2 if backend == "threading" else joblib.cpu_count()
    assert max(int(threads) for _, threads in found) <= max(1, cores // 2)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.usefixtures("two_blas_threads")
def test_gram_matrices_in_threads_share_the_cores(tmp_path):
    X, y = table()
    numbers = X.to_numpy()[:, :2].astype(float)
    count = CountThreads(tmp_path / "threads")
    graph = KernelGraph(kernels={"k": lambda a, b: a @ b.T})
    model = HKLRegressorCV(graph=graph, cv=2, n_alphas=3, scoring=count, n_jobs=2)
    model.fit(numbers, y)
    assert {line.split()[1] for line in count.path.read_text().splitlines()} == {"1"}
    assert machine.n_threads() == 2
