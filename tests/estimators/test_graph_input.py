"""graph=: what is refused and checked, and what a fit may take."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from oracles.graph_cases import (
    NEW,
    NUMBERS,
    SIGNS,
    N,
    X,
    fitted,
    make_graph,
)

from hikernel import (
    HKLClassifier,
    HKLClassifierCV,
    HKLRegressor,
    HKLRegressorCV,
    hkl_path,
    stability_selection,
)
from hikernel.engines import machine
from hikernel.errors import CertificateWarning, ConvergenceWarning, MemoryPlanError
from hikernel.search import StopReason


def test_a_constant_target():
    for kind in ("features", "kernels"):
        model = HKLRegressor(graph=make_graph(kind)).fit(X, np.full(N, 3.0))
        np.testing.assert_allclose(model.predict(NEW), 3.0)
        assert len(hkl_path(X, np.full(N, 3.0), graph=make_graph(kind), n_alphas=3)) >= 1


def test_max_kernels_and_time_are_kept_to():
    with pytest.warns(CertificateWarning, match="stopped at max_kernels"):
        model = fitted("features", max_kernels=1, alpha=1e-4)
    assert len(model.hull_) == 1
    with pytest.warns(ConvergenceWarning, match="time budget cut the search short"):
        late = fitted("features", alpha=1e-4, time_budget=1e-9)
    assert len(late.hull_) == 1
    assert late.certificate_.reason is StopReason.SEARCH_TIME
    assert np.all(np.isfinite(late.predict(NEW)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted("features", max_kernels=1, alpha=1e-4, certify="none")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("basis", "spline"),
        ("categorical", [0]),
        ("degree", 3),
        ("max_order", 2),
        ("weight_base", 3.0),
        ("root_weight", 0.5),
        ("search", "paper"),
    ],
)
def test_parameters_of_columns_are_refused(name, value):
    graph = make_graph("features")
    for estimator in (HKLRegressor(), HKLRegressorCV()):
        with pytest.raises(ValueError, match=f"{name}=.*no meaning with graph="):
            estimator.set_params(graph=graph, **{name: value}).fit(X, NUMBERS)
    for estimator in (HKLClassifier(), HKLClassifierCV()):
        with pytest.raises(ValueError, match=f"{name}=.*no meaning with graph="):
            estimator.set_params(graph=graph, **{name: value}).fit(X, SIGNS)
    with pytest.raises(ValueError, match=f"{name}=.*no meaning with graph="):
        hkl_path(X, NUMBERS, graph=graph, **{name: value})


@pytest.mark.parametrize("graph", ["tree", 3, {"a": []}, [("a", "b")]], ids=repr)
def test_a_graph_that_is_none(graph):
    for fit in (HKLRegressor(graph=graph).fit, HKLRegressorCV(graph=graph).fit):
        with pytest.raises(ValueError, match="graph must be a KernelGraph"):
            fit(X, NUMBERS)
    with pytest.raises(ValueError, match="graph must be a KernelGraph"):
        hkl_path(X, NUMBERS, graph=graph)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((X, None), "requires y"),
        ((X[:5], NUMBERS), "inconsistent numbers of samples"),
        ((X[:1], NUMBERS[:1]), "minimum of 2"),
        (("text", NUMBERS), "sequence of rows"),
        ((X, NUMBERS, np.zeros(N)), "weight"),
        ((X, NUMBERS, -np.ones(N)), "weight"),
        ((X, NUMBERS, np.ones(3)), "weight"),
        ((X, np.full(N, np.nan)), "NaN|nan"),
    ],
    ids=["no y", "lengths", "one row", "text", "zeros", "negative", "short", "nan"],
)
def test_data_that_does_not_fit(arguments, message):
    for estimator in (HKLRegressor(), HKLRegressorCV()):
        with pytest.raises(ValueError, match=message):
            estimator.set_params(graph=make_graph("features")).fit(*arguments)
    x, y, *weights = arguments
    with pytest.raises(ValueError, match=message):
        hkl_path(x, y, graph=make_graph("features"), sample_weight=weights[0] if weights else None)


def test_a_failed_fit_leaves_no_model():
    model = fitted("features")
    with pytest.raises(ValueError, match="sequence of rows"):
        model.fit("text", NUMBERS)
    with pytest.raises(ValueError, match="not fitted"):
        model.predict(NEW)


def test_a_fit_on_a_graph_forgets_the_columns_of_another_and_back():
    model = HKLRegressor(0.01).fit(pd.DataFrame(X, columns=list("pqrs")), NUMBERS)
    model.set_params(graph=make_graph("features")).fit(X, NUMBERS)
    assert not hasattr(model, "feature_names_in_")
    assert not hasattr(model, "bases_")
    model.effects(X)
    model.set_params(graph=None).fit(X, NUMBERS)
    assert model.n_features_in_ == 4
    assert model.formula()


def test_what_only_columns_have_is_refused_in_a_sentence(tmp_path):
    model = fitted("kernels")
    for call in (model.formula, lambda: model.anova(X), lambda: model.save(tmp_path / "model.hik")):
        with pytest.raises(ValueError, match=r"graph of kernels|graph of its own .* use pickle"):
            call()
    assert not (tmp_path / "model.hik").exists()
    with pytest.raises(ValueError, match="graph"):
        stability_selection(HKLRegressor(graph=make_graph("features")), X, NUMBERS)


def test_new_rows_are_checked():
    model = fitted("features")
    for bad, message in (
        ("text", "sequence of rows"),
        (X[:, :3], "have 1 columns on new rows and had 2"),
    ):
        with pytest.raises(ValueError, match=message):
            model.predict(bad)
    with pytest.raises(ValueError, match="row numbers"):
        fitted("grams").predict(NEW)


def test_memory_is_planned_before_the_fit(monkeypatch):
    monkeypatch.setattr(machine, "available_bytes", lambda: 1000)
    for estimator in (HKLRegressor(), HKLRegressorCV()):
        with pytest.raises(MemoryPlanError, match=r"Gram matrices of 4 kernel functions.*float32"):
            estimator.set_params(graph=make_graph("kernels")).fit(X, NUMBERS)


def test_float32_storage_rounds_and_no_more():
    base = fitted("kernels")
    model = HKLRegressor(0.01, graph=make_graph("kernels", "float32")).fit(X, NUMBERS)
    np.testing.assert_allclose(model.predict(NEW), base.predict(NEW), atol=1e-5)
    assert model.certificate_.certified
