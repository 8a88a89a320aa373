"""Estimators of Dask on a real cluster of processes: the models of the same rows in memory."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")

import dask.array as da  # noqa: E402
import dask.dataframe as dd  # noqa: E402

import hikernel  # noqa: E402
from hikernel import (  # noqa: E402
    HKLClassifier,
    HKLClassifierCV,
    HKLRegressor,
    HKLRegressorCV,
)
from hikernel.dask import (  # noqa: E402
    DaskHKLClassifier,
    DaskHKLClassifierCV,
    DaskHKLRegressor,
    DaskHKLRegressorCV,
)
from hikernel.engines.row_block_engine import RowBlockEngine  # noqa: E402

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore:Port .* is already in use"),
]


@pytest.fixture(scope="module")
def client():
    """Two processes with one thread each."""
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    n = 700
    X = pd.DataFrame(rng.uniform(-1, 1, size=(n, 3)), columns=list("abc"))
    X["town"] = pd.Categorical(rng.choice(["Oslo", "Bergen", "Rome"], n))
    X.loc[::9, "b"] = np.nan
    f = X["a"] + 2 * X["a"] * X["c"] + (X["town"] == "Oslo")
    X["y"] = f + 0.2 * rng.standard_normal(n)
    return X


def same(one, other, X):
    assert list(other.hull_["term"]) == list(one.hull_["term"])
    np.testing.assert_allclose(other.coef_, one.coef_, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(other._raw_predict(X), one._raw_predict(X), rtol=1e-9, atol=1e-9)


def test_frames_with_any_partitions(client, frame):
    X = frame[["a", "b", "c", "town"]]
    settings = {"alpha": 0.02, "refit": "ridge", "certify": "none"}
    one = HKLRegressor(**settings).fit(X, frame["y"])
    known = dd.from_pandas(frame, npartitions=2)
    # Partitions of any size, one of them empty, whose divisions and categories are not known.
    cuts = [0, 40, 40, 700]
    parts = [frame[a:b].reset_index(drop=True) for a, b in pairwise(cuts)]
    meta = frame[:0].assign(town=frame["town"][:0].astype(object))
    unknown = dd.from_delayed(
        [dask.delayed(part.assign(town=part["town"].astype(object))) for part in parts], meta=meta
    )
    assert not unknown.known_divisions
    for X_of in (known, unknown):
        other = DaskHKLRegressor(**settings).fit(X_of, "y")
        same(one, other, X)
        predicted = other.predict(X_of)
        assert isinstance(predicted, da.Array)
        np.testing.assert_allclose(predicted.compute(), one.predict(X), rtol=1e-9)
    assert other.client_ is distributed.default_client()


def test_arrays_labels_and_the_estimator_without_dask(client, frame, tmp_path):
    X = frame[["a", "b", "c"]].to_numpy()
    y = np.where(frame["y"] > 1, "much", np.where(frame["y"] > 0, "some", "none"))
    settings = {"alpha": 0.05, "certify": "none", "degree": 2}
    one = HKLClassifier(**settings).fit(X, y)
    table = da.from_array(X, chunks=(300, 2))
    model = DaskHKLClassifier(**settings, client=client)
    other = model.fit(table, da.from_array(y, chunks=150))
    same(one, other, X)
    assert other.client_ is client
    shares = other.predict_proba(table)
    assert shares.shape == (700, 3)
    np.testing.assert_allclose(shares.compute(), one.predict_proba(X), atol=1e-9)
    np.testing.assert_allclose(
        other.decision_function(table).compute(), one.decision_function(X), atol=1e-9
    )
    assert (other.predict(table).compute() == one.predict(X)).all()
    assert other.score(X, y) == one.score(X, y)
    plain = other.to_local()
    assert type(plain) is HKLClassifier
    assert plain.get_params() == one.get_params()
    assert (plain.predict(X) == one.predict(X)).all()
    other.save(tmp_path / "model.hik")
    again = hikernel.load(tmp_path / "model.hik")
    assert (again.predict(X) == one.predict(X)).all()
    assert clone(other).client is client
    copied = pickle.loads(pickle.dumps(other))
    assert copied.client is None
    assert (copied.predict(X) == one.predict(X)).all()
    with pytest.raises(ValueError, match="takes X alone"):
        other.decision_function(table, return_std=True)


def test_cross_validation(client, frame):
    X = frame[["a", "b", "c", "town"]]
    settings = {"alphas": [0.05], "cv": 2, "basis": "orthonormal", "certify": "none", "degree": 2}
    one = HKLRegressorCV(**settings, refit="sparse").fit(X, frame["y"])
    table = dd.from_pandas(frame, npartitions=2)
    other = DaskHKLRegressorCV(**settings, refit="sparse").fit(table, "y")
    same(one, other, X)
    np.testing.assert_allclose(other.best_score_, one.best_score_, rtol=1e-9)
    assert type(other.to_local()) is HKLRegressorCV
    labels = DaskHKLClassifierCV(**settings, refit=None)
    assert type(labels.to_local()) is HKLClassifierCV


def test_a_worker_is_killed_in_the_midst_of_a_fit(client, frame, monkeypatch):
    X = frame[["a", "b", "c", "town"]]
    one = HKLRegressor(alpha=0.01).fit(X, frame["y"])
    results, passes = RowBlockEngine.results, []

    def counted(engine, *arguments, **named):
        passes.append(arguments[0])
        if len(passes) == 6:
            os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)
        return results(engine, *arguments, **named)

    monkeypatch.setattr(RowBlockEngine, "results", counted)
    other = DaskHKLRegressor(alpha=0.01).fit(dd.from_pandas(frame, 3), "y")
    assert len(passes) > 20
    same(one, other, X)
    # Tasks have names that the dashboard shows.
    known = client.run_on_scheduler(lambda dask_scheduler: set(dask_scheduler.task_prefixes))
    assert {"hikernel-scan", "hikernel-encode", "hikernel-gram", "hikernel-extensions"} <= known


def test_what_is_not_a_table_of_dask_is_refused(client, frame):
    with pytest.raises(TypeError, match="X must be a dask array or data frame"):
        DaskHKLRegressor().fit(frame[["a"]], frame["y"])
    with pytest.raises(TypeError, match="X must be a dask array or data frame"):
        DaskHKLRegressor().fit(da.ones(5, chunks=5), np.ones(5))


def test_without_a_client_or_dask_one_sentence_says_what_to_do():
    code = """
import numpy as np, dask.array as da
from hikernel.dask import DaskHKLRegressor
try:
    DaskHKLRegressor().fit(da.ones((5, 2)), np.ones(5))
except ValueError as error:
    print(error)
"""
    assert "start one by distributed.Client()" in run(code)
    code = """
import sys
sys.modules["distributed"] = None
try:
    import hikernel.dask
except ImportError as error:
    print(error)
"""
    assert "pip install 'hikernel[dask]'" in run(code)


def run(code):
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
