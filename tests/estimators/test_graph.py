"""graph=: every estimator on features, kernels, Gram matrices and all of them mixed."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from oracles.dags import dag_optimum, factor
from oracles.graph_cases import (
    CLASSES,
    EDGES,
    ESTIMATORS,
    KERNELS,
    KINDS,
    MAPS,
    NEW,
    NUMBERS,
    OTHER_KINDS,
    SIGNS,
    N,
    X,
    fitted,
    make_graph,
    rows_of,
)
from sklearn.base import clone

from hikernel import (
    HKLRegressor,
)
from hikernel.graphs import KernelGraph
from hikernel.losses import Quantile
from hikernel.selection.target import target_units

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", params=list(ESTIMATORS))
def reference(request):
    return request.param, fitted("features", request.param)


@pytest.mark.parametrize("kind", OTHER_KINDS)
def test_all_ways_to_give_a_kernel_give_the_same_model(reference, kind):
    name, base = reference
    model = fitted(kind, name)
    for own, other in zip(rows_of("features"), rows_of(kind), strict=True):
        np.testing.assert_allclose(base._raw_predict(own), model._raw_predict(other), atol=1e-9)
        ours, theirs = base.predict(own), model.predict(other)
        assert ours.dtype == theirs.dtype
        assert np.mean(ours == theirs) == 1.0 or np.issubdtype(ours.dtype, np.floating)
    columns = ["eta", "zeta", "norm", "share"]
    ours, theirs = (m.hull_.set_index("term").sort_index() for m in (base, model))
    np.testing.assert_allclose(ours[columns], theirs[columns], atol=1e-9)
    np.testing.assert_allclose(base.dual_coef_, model.dual_coef_, atol=1e-9)
    np.testing.assert_allclose(base.intercept_, model.intercept_, atol=1e-9)
    a, b = base.certificate_, model.certificate_
    assert a.certified
    assert b.certified
    assert a.objective == pytest.approx(b.objective, rel=1e-9)
    assert a.dual_bound == pytest.approx(b.dual_bound, rel=1e-9)
    assert b.kind == "exact"
    assert b.n_vertices == 4


def test_the_hull_and_what_the_model_says():
    model = fitted("mixed")
    assert {"left", "right", "both"} <= set(model.hull_["term"])
    assert set(model.nodes_) == set(model.hull_["term"])
    assert dict(zip(model.hull_["term"], model.hull_["depth"], strict=True))["both"] == 1
    assert model.graph_ is model.graph.dag
    assert not hasattr(model, "n_features_in_")
    assert not hasattr(model, "columns_")
    assert "cycle" not in str(model.certificate_)
    assert model.score(X, NUMBERS) > 0.9
    assert model.dual_coef_.sum() == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("name", ["squared_error", "log_loss", "multinomial", "quantile"])
def test_the_objective_is_that_of_cvxpy(name):
    model = fitted("kernels", name, tol=1e-6)
    if name == "multinomial":
        y = (CLASSES[:, None] == np.array(list("abc"))).astype(float)
    elif name == "log_loss":
        y = np.where(SIGNS == "yes", 1.0, -1.0)
    else:
        y = NUMBERS
    parents = {node: EDGES.get(node, []) for node in MAPS}
    weights = {"left": 1.0, "right": 1.0, "both": 2.0, "cube": 2.0}
    blocks = {node: factor(k(X, X)) for node, k in KERNELS.items()}
    unit = target_units(y, np.ones(N), model.loss_)[1]  # of alpha, where y has one
    optimum, _, _ = dag_optimum(parents, weights, blocks, y / unit, np.ones(N), 0.01, model.loss_)
    optimum *= unit**model.loss_.degree
    assert model.certificate_.objective == pytest.approx(optimum, rel=1e-5)


@pytest.mark.parametrize("name", ["squared_error", "log_loss", "multinomial", "quantile"])
@pytest.mark.parametrize("kind", ["features", "mixed", "grams"])
def test_weights_equal_repetition_and_zeros_removal(kind, name):
    rng = np.random.default_rng(1)
    times = rng.integers(0, 3, N)
    times[:3] = [0, 1, 2]
    estimator, y = ESTIMATORS[name]
    tol = 1e-8 if estimator.loss != Quantile(0.7) else 1e-5
    training, new = rows_of(kind)
    repeated = np.repeat(np.arange(N), times)
    graph = make_graph(kind)
    weighted = clone(estimator).set_params(graph=graph, tol=tol).fit(training, y, times)
    copies = clone(estimator).set_params(graph=graph, tol=tol).fit(training[repeated], y[repeated])
    np.testing.assert_allclose(weighted._raw_predict(new), copies._raw_predict(new), atol=1e-3)
    assert weighted.certificate_.objective == pytest.approx(copies.certificate_.objective, rel=1e-7)
    kept = times > 0
    removed = clone(estimator).set_params(graph=graph, tol=tol)
    removed.fit(training[kept], y[kept], times[kept])
    np.testing.assert_allclose(weighted._raw_predict(new), removed._raw_predict(new), atol=1e-9)
    np.testing.assert_allclose(weighted.dual_coef_[kept], removed.dual_coef_, atol=1e-9)
    assert np.all(weighted.dual_coef_[~kept] == 0.0)


def test_predictions_from_cross_gram_matrices():
    base, model = fitted("features"), fitted("grams")
    cross = {node: KERNELS[node](NEW, X) for node in model.nodes_}
    np.testing.assert_allclose(model.predict(cross), base.predict(NEW), atol=1e-9)
    blocks = {node: np.atleast_2d(MAPS[node](NEW).T).T for node in base.nodes_}
    np.testing.assert_allclose(base.predict(blocks), base.predict(NEW), atol=1e-12)
    effects = model.effects(cross)
    np.testing.assert_allclose(effects.sum(axis=1), model.predict(cross), atol=1e-9)
    del cross["both"]
    with pytest.raises(ValueError, match="lacks 'both'"):
        model.predict(cross)


def test_cross_gram_matrices_are_of_the_rows_that_were_fitted():
    weights = np.ones(N)
    weights[[3, 8]] = 0.0
    model = fitted("grams", sample_weight=weights)
    used = weights > 0
    cross = {node: KERNELS[node](NEW, X[used]) for node in model.nodes_}
    np.testing.assert_allclose(model.predict(cross), model.predict(N + np.arange(7)), atol=1e-9)
    whole = {node: KERNELS[node](NEW, X) for node in model.nodes_}
    with pytest.raises(ValueError, match=r"the 38 training rows.*\(7, 38\), got \(7, 40\)"):
        model.predict(whole)


@pytest.mark.parametrize("name", ["squared_error", "log_loss", "multinomial"])
@pytest.mark.parametrize("kind", KINDS)
def test_effects_add_up(kind, name):
    model = fitted(kind, name)
    training, new = rows_of(kind)
    for rows in (training, new):
        effects = model.effects(rows)
        f = model._raw_predict(rows)
        if f.ndim == 1:
            np.testing.assert_allclose(effects.sum(axis=1), f, atol=1e-9)
            assert list(effects.columns) == ["intercept", *model.effects_["effect"]]
            assert list(effects.columns) == ["intercept", *model.terms_["term"]]
        else:
            for k, label in enumerate("abc"):
                np.testing.assert_allclose(effects[label].sum(axis=1), f[:, k], atol=1e-9)
    terms = model.terms_
    assert terms["share"].is_monotonic_decreasing
    assert set(terms["term"]) <= set(model.hull_["term"])


def test_effects_keep_the_index_of_a_frame():
    table = pd.DataFrame(X, columns=list("pqrs"), index=np.arange(N) + 100)
    graph = KernelGraph(features={"first": ["p", "q"], "rest": ["r", "s"]})
    model = HKLRegressor(0.01, graph=graph).fit(table, NUMBERS)
    assert list(model.effects(table.iloc[:3]).index) == [100, 101, 102]


@pytest.mark.parametrize("name", ["squared_error", "log_loss", "multinomial"])
@pytest.mark.parametrize("kind", OTHER_KINDS)
def test_the_ridge_refit_is_the_same_for_kernels_and_features(kind, name):
    base = fitted("features", name, refit="ridge")
    model = fitted(kind, name, refit="ridge")
    assert model.refit_ == "ridge"
    np.testing.assert_allclose(
        base._raw_predict(rows_of("features")[1]), model._raw_predict(rows_of(kind)[1]), atol=1e-6
    )
    ours, theirs = (m.hull_.set_index("term").sort_index() for m in (base, model))
    np.testing.assert_allclose(ours["norm"], theirs["norm"], atol=1e-6)
    np.testing.assert_allclose(ours["share"], theirs["share"], atol=1e-6)


def test_refits_that_need_columns():
    plain = fitted("features", refit="unpenalised")
    assert plain.score(X, NUMBERS) > fitted("features").score(X, NUMBERS)
    with pytest.raises(ValueError, match="not given by columns at all"):
        fitted("kernels", refit="unpenalised")
    with pytest.raises(ValueError, match="does not apply"):
        fitted("features", refit="variables")
    with pytest.raises(ValueError, match="smooth loss"):
        fitted("features", "quantile", refit="ridge")
