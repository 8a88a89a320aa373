"""Shapley values against their definition and against the package shap."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from hikernel import HKLClassifier, HKLRegressor
from hikernel.bases import Gaussian
from hikernel.engines import machine
from hikernel.errors import MemoryPlanError
from hikernel.graphs import KernelGraph


def table(n=150, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 3)), columns=list("abc"))
    X["town"] = rng.choice(["Oslo", "Rome", "Lima"], n)
    y = X["a"] + X["b"] ** 2 + X["a"] * X["c"] * (X["town"] == "Oslo") + X["b"] * X["c"]
    X.loc[rng.random(n) < 0.2, "b"] = np.nan
    return X, y + 0.1 * rng.standard_normal(n)


def by_definition(f, row, background):
    """The mean over all orders of the columns, from all subsets."""
    p = row.shape[1]
    value = {}
    for size in range(p + 1):
        for inside in itertools.combinations(range(p), size):
            mixed = background.copy()
            for c in inside:
                mixed.isetitem(c, [row.iloc[0, c]] * len(mixed))
            value[inside] = np.mean(f(mixed), axis=0)
    out = []
    for c in range(p):
        total = 0.0
        for inside, before in value.items():
            if c not in inside:
                ways = math.factorial(len(inside)) * math.factorial(p - len(inside) - 1)
                after = value[tuple(sorted({*inside, c}))]
                total = total + ways / math.factorial(p) * (after - before)
        out.append(total)
    return np.array(out)


@pytest.fixture(scope="module")
def fitted():
    X, y = table()
    model = HKLRegressor(1e-4, max_kernels=300, certify="none").fit(X, y)
    orders = {len(variables) for variables in model.effects_["variables"]}
    assert orders >= {1, 2, 3}, "the model must have what is tested"
    assert any("is missing" in name for name in model.effects_["effect"])
    return model, X


def test_values_are_those_of_the_definition(fitted):
    model, X = fitted
    background = X[5:17]
    values = model.shap_values(X[:4], background)
    for i in range(4):
        expected = by_definition(model.predict, X[i : i + 1], background)
        assert_allclose(values[i], expected, atol=1e-12)
    total = values.sum(axis=1) + np.mean(model.predict(background))
    assert_allclose(total, model.predict(X[:4]), atol=1e-12)


def test_effects_are_split_evenly_where_absent_means_zero(fitted):
    model, X = fitted
    values = model.shap_values(X)
    assert_allclose(values.sum(axis=1) + model.intercept_, model.predict(X), atol=1e-12)
    expected = np.zeros_like(values)
    effects = model.effects(X)
    for name, variables in zip(model.effects_["effect"], model.effects_["variables"], strict=True):
        columns = {X.columns.get_loc(one.removesuffix(" is missing")) for one in variables}
        for c in columns:
            expected[:, c] += effects[name] / len(columns)
    assert_allclose(values, expected, atol=1e-12)


def test_chunks_change_nothing(fitted, monkeypatch):
    model, X = fitted
    whole = model.shap_values(X[:20], X[20:60])
    monkeypatch.setattr("hikernel.explain.shapley._CHUNK_NUMBERS", 300)
    assert_allclose(model.shap_values(X[:20], X[20:60]), whole, atol=1e-13)


def test_classes_have_values_each():
    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.normal(size=(120, 3)), columns=list("abc"))
    y = np.digitize(X["a"] + X["b"] * X["c"], [-0.6, 0.6])
    model = HKLClassifier(1e-3, certify="none").fit(X, y)
    values = model.shap_values(X[:2], X[2:9])
    assert values.shape == (2, 3, 3)
    expected = by_definition(model.decision_function, X[:1], X[2:9])
    assert_allclose(values[0], expected, atol=1e-12)


@pytest.mark.slow
def test_the_package_shap_agrees():
    shap = pytest.importorskip("shap")
    rng = np.random.default_rng(2)
    X = rng.normal(size=(200, 5))
    y = X[:, 0] + X[:, 1] * X[:, 2] + X[:, 3] ** 2 + 0.1 * rng.standard_normal(200)
    model = HKLRegressor(1e-3, certify="none").fit(X, y)
    background = X[:30]
    explainer = shap.explainers.Exact(model.predict, shap.maskers.Independent(background, 30))
    theirs = explainer(X[40:50])
    assert_allclose(model.shap_values(X[40:50], background), theirs.values, atol=1e-9)
    # With an absent column at zero: a background of one row whose values are all missing.
    nothing = np.full((1, 5), np.nan)
    explainer = shap.explainers.Exact(model.predict, shap.maskers.Independent(nothing, 1))
    theirs = explainer(X[40:50])
    assert_allclose(model.shap_values(X[40:50]), theirs.values, atol=1e-9)
    assert_allclose(theirs.base_values, model.intercept_)


def test_all_parts_of_a_date_are_its_column():
    X, y = table()
    X = X[["a", "b"]].assign(when=pd.date_range("2020-01-01", periods=150, freq="5D"))
    y = y + np.sin(np.arange(150) / 12.0) * X["a"]
    model = HKLRegressor(1e-3, max_kernels=200, certify="none").fit(X, y)
    assert len({name for name in model.effects_["effect"] if name.startswith("when")}) > 1
    for i in (0, 70):
        found = model.shap_values(X[i : i + 1], background=X[20:40])[0]
        wanted = by_definition(model.predict, X[i : i + 1], X[20:40])
        assert_allclose(found, wanted, atol=1e-12)
    assert model.feature_importances_.shape == (3,)
    assert model.feature_importances_.sum() == pytest.approx(1.0)


def test_a_sparse_x_has_the_values_of_a_dense_one_if_they_fit_into_memory(monkeypatch):
    rng = np.random.default_rng(4)
    X = np.where(rng.random((120, 6)) < 0.3, rng.normal(size=(120, 6)), 0.0)
    y = X[:, 0] + X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(120)
    model = HKLRegressor(0.01, max_order=2, certify="none")
    dense = model.fit(X, y).shap_values(X, X[:9])
    S = sparse.csr_array(X)
    assert_allclose(model.fit(S, y).shap_values(S, S[:9]), dense, atol=1e-7)
    monkeypatch.setattr(machine, "available_bytes", lambda: 8 * X.size - 1)
    with pytest.raises(MemoryPlanError, match=r"values of 120 rows and 6 columns .* fewer rows"):
        model.shap_values(S)


def test_what_cannot_be_attributed_is_said(fitted):
    model, X = fitted
    with pytest.raises(ValueError, match="0 sample"):
        model.shap_values(X, X[:0])
    rng = np.random.default_rng(3)
    numbers, y = rng.normal(size=(40, 2)), rng.normal(size=40)
    bumps = HKLRegressor(0.1, basis=Gaussian(), certify="none").fit(numbers, y)
    with pytest.raises(ValueError, match="need bases with a constant level 0"):
        bumps.shap_values(numbers)
    graph = KernelGraph({"x": []}, features={"x": [0, 1]})
    on_graph = HKLRegressor(0.1, graph=graph).fit(numbers, y)
    with pytest.raises(ValueError, match=r"shap_values\(\) needs columns"):
        on_graph.shap_values(numbers)
    with pytest.raises(AttributeError, match="feature_importances_ needs columns"):
        _ = on_graph.feature_importances_
    assert not hasattr(on_graph, "feature_importances_")
    assert on_graph.transform(numbers).shape == (40, len(on_graph.effects_))
