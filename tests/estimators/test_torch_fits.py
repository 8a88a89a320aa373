"""Fits with the torch engine are those of the NumPy engine: hull, objective, proof, predictions."""

from __future__ import annotations

import sys

import joblib
import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from hikernel import HKLClassifier, HKLRegressor, HKLRegressorCV, engines, hkl_path, load
from hikernel.engines import torch_device
from hikernel.engines.torch_device import TorchType

RNG = np.random.default_rng(0)
N = 160
X = pd.DataFrame(RNG.uniform(-1.0, 1.0, (N, 4)), columns=list("abcd"))
X["town"] = RNG.choice(["Oslo", "Bergen", "Rome"], N)
Y = X["a"] + 2.0 * X["b"] * X["c"] + (X["town"] == "Oslo") + 0.1 * RNG.standard_normal(N)
WEIGHTS = RNG.uniform(0.5, 2.0, N)
CPU = "torch:cpu"

CASES = {
    "squares": (HKLRegressor, {}, Y, None),
    "weights": (HKLRegressor, {}, Y, WEIGHTS),
    "max_order": (HKLRegressor, {"max_order": 2, "certify": "exact"}, Y, None),
    "statistical": (HKLRegressor, {"certify": "statistical"}, Y, None),
    "both": (HKLRegressor, {"certify": "statistical", "max_order": 2}, Y, None),
    "steps": (HKLRegressor, {"basis": dict.fromkeys("abcd", "steps")}, Y, None),
    "bumps": (HKLRegressor, {"basis": dict.fromkeys("abcd", "gaussian")}, Y, None),
    "huber": (HKLRegressor, {"loss": "huber"}, Y, WEIGHTS),
    "log loss": (HKLClassifier, {}, (Y > 0).to_numpy(), WEIGHTS),
    "outputs": (HKLClassifier, {"max_order": 3}, np.digitize(Y, [-0.5, 0.5]), None),
    "paper": (HKLRegressor, {"search": "paper"}, Y, None),
    "interactions": (HKLRegressor, {"interactions": [("a", "b", "c")]}, Y, None),
    "ridge": (HKLRegressor, {"refit": "ridge"}, Y, None),
    "variables": (HKLRegressor, {"refit": "variables"}, Y, None),
}


def predicted(model):
    return model.predict_proba(X) if hasattr(model, "classes_") else model.predict(X)


@pytest.mark.parametrize("case", CASES)
def test_a_fit_is_that_of_the_numpy_engine(case):
    cls, settings, y, weights = CASES[case]
    ours, theirs = (
        cls(0.02, engine=engine, **settings).fit(X, y, sample_weight=weights)
        for engine in ("numpy", CPU)
    )
    assert len(ours.hull_) > 1
    assert list(ours.hull_["term"]) == list(theirs.hull_["term"])
    a, b = ours.certificate_, theirs.certificate_
    assert b.objective == pytest.approx(a.objective, rel=1e-9)
    assert (a.certified, a.kind, a.reason) == (b.certified, b.kind, b.reason)
    assert b.relative_gap == pytest.approx(a.relative_gap, rel=1e-3, abs=1e-9)
    np.testing.assert_allclose(predicted(theirs), predicted(ours), rtol=1e-8, atol=1e-8)


@pytest.mark.slow
def test_a_cross_validated_fit_is_that_of_the_numpy_engine():
    rows, y = X[["a", "b", "c"]][:90], (Y + 0.5 * RNG.standard_normal(N))[:90]
    settings = {"cv": 3, "alphas": np.geomspace(0.3, 1e-3, 7), "random_state": 0}
    ours = HKLRegressorCV(engine="numpy", **settings).fit(rows, y)
    for n_jobs in (1, 2):
        with joblib.parallel_config("threading"):
            theirs = HKLRegressorCV(engine=CPU, n_jobs=n_jobs, **settings).fit(rows, y)
        assert theirs.alpha_ == ours.alpha_
        assert list(ours.hull_["term"]) == list(theirs.hull_["term"])
        np.testing.assert_allclose(theirs.predict(rows), ours.predict(rows), rtol=1e-8, atol=1e-8)


def test_a_path_is_that_of_the_numpy_engine():
    ours, theirs = (hkl_path(X, Y, n_alphas=5, engine=engine) for engine in ("numpy", CPU))
    for a, b in zip(ours.points, theirs.points, strict=True):
        assert a.model.nodes == b.model.nodes
        np.testing.assert_allclose(b.model.coef, a.model.coef, rtol=1e-7, atol=1e-9)


def test_auto_asks_for_a_gpu_where_many_rows_are_fitted(monkeypatch):
    asked = []
    monkeypatch.setattr(engines, "LEAST_NUMBERS", 1000)
    monkeypatch.setattr(engines, "gpu_pays", lambda numbers: asked.append(numbers) or True)
    monkeypatch.setitem(engines.ENGINES, "torch", TorchType(CPU))
    made = []
    device = TorchType.device
    monkeypatch.setattr(TorchType, "device", lambda self: made.append(self) or device(self))
    rows = X[["a", "b"]].to_numpy()
    model = HKLRegressor(0.02, degree=4).fit(rows, Y)
    assert set(asked) == {N * 8}  # levels that are constant are not stored
    assert made == [TorchType(CPU)]
    model.predict(rows)
    HKLRegressor(0.02, degree=2).fit(rows, Y)  # fewer numbers
    assert len(made) == len(asked) == 1


def test_a_model_of_torch_loads_where_torch_is_missing(tmp_path, monkeypatch):
    model = HKLRegressor(0.02, engine="torch:cuda:3")
    with pytest.raises(ValueError, match="does not see here"):
        model.fit(X, Y)
    model = HKLRegressor(0.02, engine=CPU).fit(X, Y)
    model.save(tmp_path / "model.hik")
    expected = model.predict(X)
    monkeypatch.setitem(sys.modules, "torch", None)  # an import of it would raise
    monkeypatch.setattr(torch_device.importlib.util, "find_spec", lambda name: None)
    loaded = load(tmp_path / "model.hik")
    assert loaded.engine == CPU
    np.testing.assert_allclose(loaded.predict(X), expected, rtol=1e-9)
    np.testing.assert_allclose(model.predict(X), expected, rtol=1e-9)
    with pytest.raises(ImportError, match=r"needs torch: pip install 'hikernel\[gpu\]'"):
        loaded.fit(X, Y)


def test_sparse_columns_have_an_engine_of_their_own():
    rows = sparse.random_array((40, 5), density=0.3, rng=np.random.default_rng(0), format="csr")
    y = rows.toarray()[:, 0]
    with pytest.raises(ValueError, match="engine='torch' computes with dense columns"):
        HKLRegressor(0.1, engine="torch").fit(rows, y)
