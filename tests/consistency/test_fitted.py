"""The diagnosis of a fitted model: as by hand, over the right nodes, or a clear refusal."""

from __future__ import annotations

import pickle
from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pytest
from oracles.naive import all_nodes
from sklearn.exceptions import NotFittedError

from hikernel import HKLClassifier, HKLRegressor, HKLRegressorCV
from hikernel.consistency import diagnose, estimate_conditions
from hikernel.graphs import KernelGraph, SubstringGraph, node_degree, node_order

CONDITIONS = ("necessary", "sufficient", "closed_form")


def table(n=150, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 4))
    X[:, 3] += 0.5 * X[:, 0]
    return X, X[:, 0] + X[:, 1] * X[:, 2] + 0.3 * rng.standard_normal(n)


def fitted(refit="ridge", **options):
    X, y = table()
    return HKLRegressor(0.01, degree=2, basis="orthonormal", refit=refit, **options).fit(X, y), X


def by_hand(model, X, nodes, weights=None):
    """The same written out: features of the design, blocks of coef_."""
    engine = model._design.engine(X, np.ones(len(X)))
    features = {node: engine.features([node]) for node in nodes}
    blocks = np.split(model.coef_, np.cumsum([engine.width(v) for v in model.nodes_])[:-1])
    beta = {v: block for v, block in zip(model.nodes_, blocks, strict=True) if np.any(block)}
    return estimate_conditions(model.graph_, features, beta, sample_weight=weights)


def assert_same(report, expected):
    for name in CONDITIONS:
        found, wanted = getattr(report, name), getattr(expected, name)
        assert found.value == pytest.approx(wanted.value, rel=1e-9)
        assert found.worst == wanted.worst
    assert (report.n_nodes, report.n_hull) == (expected.n_nodes, expected.n_hull)


@pytest.mark.parametrize("refit", [None, "ridge", "unpenalised"])
def test_the_whole_of_a_small_graph(refit):
    model, X = fitted(refit)
    weights = np.random.default_rng(1).integers(0, 3, size=len(X))
    report = diagnose(model, X, sample_weight=weights, max_degree=8)
    assert_same(report, by_hand(model, X, all_nodes(model.graph_), weights))
    assert report.n_nodes == report.n_graph == 81
    assert not report.is_partial
    assert "considered" not in report.explain()


def test_the_coefficients_are_those_of_the_refit():
    shrunken, X = fitted(None)
    again, _ = fitted("ridge")
    assert {n for n in shrunken.nodes_ if n} == set(again.nodes_)
    values = [diagnose(model, X).necessary.value for model in (shrunken, again)]
    assert values[0] != pytest.approx(values[1], rel=1e-3)


def test_by_default_the_hull_and_the_sources():
    model, X = fitted()
    hull = model.graph_.hull(model.nodes_)
    nodes = [*hull, *model.graph_.sources_of_complement(hull)]
    report = diagnose(model, X)
    assert_same(report, by_hand(model, X, nodes))
    assert report.is_partial
    # Whatever else is looked at, the necessary condition stays and the dual norm does not fall.
    everything = diagnose(model, X, max_degree=8)
    assert report.necessary.value == pytest.approx(everything.necessary.value, rel=1e-12)
    assert report.sufficient.value <= everything.sufficient.value * (1 + 1e-8)


@pytest.mark.parametrize(("order", "degree"), [(1, None), (2, 2), (None, 3), (3, None)])
def test_terms_up_to_an_order_and_a_degree(order, degree):
    model, X = fitted()
    hull = model.graph_.hull(model.nodes_)
    wanted = {*hull, *model.graph_.sources_of_complement(hull)}
    for levels in product(range(3), repeat=4):
        node = tuple((m, j) for m, j in enumerate(levels) if j)
        if node_order(node) <= (order or 4) and node_degree(node) <= (degree or 8):
            wanted.add(node)
    report = diagnose(model, X, max_order=order, max_degree=degree)
    assert report.n_nodes == len(wanted)
    assert_same(report, by_hand(model, X, wanted))


def test_a_table_with_categories_and_missing_values():
    # Blocks of several columns, a column of marks, and rows that are read as predict reads them.
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"size": rng.standard_normal(120), "kind": rng.choice(list("abc"), 120)})
    frame.loc[::9, "size"] = np.nan
    y = frame["size"].fillna(0.0) + (frame["kind"] == "a") + 0.1 * rng.standard_normal(120)
    model = HKLRegressor(0.003, degree=2, refit="ridge").fit(frame, y)
    report = diagnose(model, frame, max_order=3)
    matrix = model.columns_.transform(frame)
    assert_same(report, by_hand(model, matrix, all_nodes(model.graph_)))
    assert model.columns_.names[report.necessary.worst[0][0]] in report.explain()


def test_what_it_says():
    model, X = fitted()
    report = diagnose(model, X, max_order=2)
    text = report.explain()
    assert f"These {report.n_nodes} of the graph's 81 nodes were considered" in text
    assert "as far as the nodes considered show" in text
    assert "worst node: x3" in text
    assert pickle.loads(pickle.dumps(report)) == report


def test_cross_validated_models():
    X, y = table()
    model = HKLRegressorCV(degree=2, refit="ridge", n_alphas=8, eps=1e-4, cv=3).fit(X, y)
    assert diagnose(model, X).n_graph == 81


def test_what_it_refuses():
    X, y = table()
    with pytest.raises(NotFittedError):
        diagnose(HKLRegressor(), X)
    with pytest.raises(ValueError, match="fitted with loss='huber'"):
        diagnose(fitted(loss="huber")[0], X)
    with pytest.raises(ValueError, match="fitted with loss='log_loss'"):
        diagnose(HKLClassifier(0.1, degree=1).fit(X, y > 0), X)
    with pytest.raises(ValueError, match=r"same alpha and refit=\"ridge\""):
        diagnose(fitted("variables")[0], X)
    model, _ = fitted()
    for name in ("max_order", "max_degree", "max_nodes"):
        with pytest.raises(ValueError, match=f"{name} must be an integer >= 1"):
            diagnose(model, X, **{name: 0})
    with pytest.raises(ValueError, match="sources, more than max_nodes=5"):
        diagnose(model, X, max_nodes=5)
    with pytest.raises(ValueError, match="more than max_nodes=30 terms up to max_order=2"):
        diagnose(model, X, max_order=2, max_nodes=30)
    with pytest.raises(ValueError, match="X has 3 features"):
        diagnose(model, X[:, :3])


def test_models_of_which_the_theory_does_not_speak():
    model, X = fitted()
    found = model._model
    model._model = replace(found, coef=np.column_stack([found.coef, found.coef]))
    with pytest.raises(ValueError, match="one output only, and this model has 2"):
        diagnose(model, X)
    model._model = replace(found, norms=np.zeros(len(found.norms)))
    with pytest.raises(ValueError, match="lower alpha"):
        diagnose(model, X)
    strings = ["ab", "ba", "aab", "bba"] * 5
    model = HKLRegressor(0.1, graph=SubstringGraph(2)).fit(strings, np.arange(20.0) % 4)
    with pytest.raises(ValueError, match="estimate_conditions"):
        diagnose(model, strings)


def test_a_large_grid_is_never_enumerated():
    rng = np.random.default_rng(4)
    X = rng.standard_normal((200, 40))
    y = X[:, 0] * X[:, 1] + X[:, 2] + 0.1 * rng.standard_normal(200)
    model = HKLRegressor(0.02, certify="none").fit(X, y)
    report = diagnose(model, X)
    assert report.n_graph == 5**40
    assert report.n_nodes < 200
    with pytest.raises(ValueError, match="more than max_nodes"):
        diagnose(model, X, max_order=40)


def test_a_general_graph_is_looked_at_whole():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 3))
    graph = KernelGraph(
        {"a": [], "b": [], "c": [], "a b": ["a", "b"]},
        features={"a": [0], "b": [1], "c": [2], "a b": lambda X: X[:, 0] * X[:, 1]},
    )
    y = X[:, 0] + X[:, 1] + 0.5 * X[:, 0] * X[:, 1] + 0.1 * rng.standard_normal(300)
    model = HKLRegressor(0.003, graph=graph, refit="ridge").fit(X, y)
    assert set(model.hull_["term"]) == {"a", "b", "a b"}
    report = diagnose(model, X)
    columns = {"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "a b": X[:, 0] * X[:, 1]}
    by_hand = estimate_conditions(
        graph.dag, columns, dict(zip(model.nodes_, model.coef_, strict=True))
    )
    assert report.sufficient.value == pytest.approx(by_hand.sufficient.value, rel=1e-9)
    assert report.n_nodes == report.n_graph == 4
    assert not report.is_partial
    assert report.verdict == "recovered"
    with pytest.raises(ValueError, match="max_nodes=3"):
        diagnose(model, X, max_nodes=3)
    with pytest.raises(ValueError, match="max_order and max_degree apply to a grid"):
        diagnose(model, X, max_order=1)


def test_kernels_have_no_columns():
    X = np.random.default_rng(0).standard_normal((30, 2))
    graph = KernelGraph(kernels={"smooth": lambda A, B: A @ B.T})
    model = HKLRegressor(0.1, graph=graph).fit(X, X[:, 0])
    with pytest.raises(ValueError, match="'smooth' is given by a kernel"):
        diagnose(model, X)
