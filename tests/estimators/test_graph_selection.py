"""graph=: cross-validation, paths, refits and what else chooses among models."""

from __future__ import annotations

import pickle
from importlib import import_module

import numpy as np
import pandas as pd
import pytest
from joblib import parallel_config
from oracles.graph_cases import (
    CLASSES,
    ESTIMATORS,
    KINDS,
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
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict, cross_val_score

from hikernel import (
    HKLClassifierCV,
    HKLRegressor,
    HKLRegressorCV,
    hkl_path,
)
from hikernel.graphs import KernelGraph, SubstringGraph

pytestmark = pytest.mark.slow

CV_SETTINGS = {"alphas": [0.1, 0.01, 1e-3, 1e-6], "cv": 3}

few_alphas = pytest.mark.filterwarnings("ignore:The chosen alpha is the smallest that was tried")
"""Signals with little noise, for which the best of a few alphas is the smallest."""


@pytest.mark.parametrize("kind", OTHER_KINDS)
@pytest.mark.parametrize("scoring", [None, "r2"], ids=["loss", "r2"])
def test_cross_validation_is_the_same_for_all(kind, scoring):
    base = HKLRegressorCV(graph=make_graph("features"), scoring=scoring, **CV_SETTINGS)
    base.fit(X, NUMBERS)
    model = HKLRegressorCV(graph=make_graph(kind), scoring=scoring, **CV_SETTINGS)
    model.fit(rows_of(kind)[0], NUMBERS)
    assert model.alpha_ == base.alpha_
    assert model.refit_ == base.refit_
    np.testing.assert_allclose(
        model.cv_results_["mean_test_score"], base.cv_results_["mean_test_score"], atol=1e-6
    )
    np.testing.assert_allclose(model.predict(rows_of(kind)[1]), base.predict(NEW), atol=1e-6)
    assert set(model.cv_results_["refit"]) == {"None", "ridge"}
    np.testing.assert_allclose(
        model.path_.predict(rows_of(kind)[1], alpha=0.01),
        base.path_.predict(NEW, alpha=0.01),
        atol=1e-8,
    )


@pytest.mark.parametrize("kind", ["features", "grams"])
def test_a_fold_sees_nothing_of_its_test_rows(kind):
    folds = list(KFold(3, shuffle=True, random_state=0).split(X))
    training, _ = rows_of(kind)
    model = HKLRegressorCV(
        graph=make_graph(kind),
        alphas=[0.01],
        cv=folds,
        refit=None,
        scoring="neg_mean_squared_error",
    ).fit(training, NUMBERS)
    by_hand = cross_val_score(
        HKLRegressor(0.01, graph=make_graph(kind)),
        training,
        NUMBERS,
        cv=folds,
        scoring="neg_mean_squared_error",
    )
    found = [model.cv_results_[f"split{k}_test_score"][0] for k in range(3)]
    # y has the units of all rows in a fold, which changes alpha a little.
    np.testing.assert_allclose(found, by_hand, rtol=0.05)


@pytest.mark.parametrize(
    ("y", "scoring"),
    [(SIGNS, None), (SIGNS, "neg_log_loss"), (CLASSES, "accuracy")],
    ids=["two", "two by log loss", "three by accuracy"],
)
def test_cross_validated_classes(y, scoring):
    base = HKLClassifierCV(graph=make_graph("features"), scoring=scoring, **CV_SETTINGS).fit(X, y)
    model = HKLClassifierCV(graph=make_graph("grams"), scoring=scoring, **CV_SETTINGS)
    model.fit(np.arange(N), y)
    assert model.alpha_ == base.alpha_
    np.testing.assert_allclose(
        model.predict_proba(N + np.arange(7)), base.predict_proba(NEW), atol=1e-6
    )
    assert list(model.predict(N + np.arange(7))) == list(base.predict(NEW))
    assert model.score(np.arange(N), y) > 0.7


@few_alphas
def test_rows_of_strings_and_lists():
    rng = np.random.default_rng(2)
    words = ["".join(rng.choice(list("AB"), 12)) for _ in range(50)]
    y = np.array([word.count("AB") for word in words]) + 0.1 * rng.standard_normal(50)

    def shared(A, B):
        letters = [[a.count("A"), a.count("AB")] for a in A]
        others = [[b.count("A"), b.count("AB")] for b in B]
        return np.array(letters, float) @ np.array(others, float).T

    for graph in (KernelGraph(kernels={"counts": shared}), SubstringGraph(2)):
        for rows in (words, np.array(words), np.array(words, dtype=object), pd.Series(words)):
            model = HKLRegressorCV(graph=graph, alphas=[0.1, 0.001, 1e-6], cv=3, scoring="r2")
            assert model.fit(rows, y).score(rows, y) > 0.9
        scores = cross_val_score(HKLRegressor(0.001, graph=graph), words, y, cv=3)
        assert np.all(scores > 0.9)
        labels = np.where(y > np.median(y), "many", "few")
        classes = HKLClassifierCV(graph=graph, alphas=[0.1, 0.01], cv=3).fit(words, labels)
        assert classes.score(words, labels) > 0.8
        found = cross_val_predict(HKLRegressor(0.001, graph=graph), words, y, cv=3)
        assert np.corrcoef(found, y)[0, 1] > 0.9


@pytest.mark.parametrize("kind", KINDS)
def test_scikit_learn_can_work_with_it(kind):
    training, _ = rows_of(kind)
    estimator = HKLRegressor(graph=make_graph(kind))
    assert clone(estimator).graph is estimator.graph
    search = GridSearchCV(estimator, {"alpha": [0.1, 0.01]}, cv=3).fit(training, NUMBERS)
    assert search.best_params_["alpha"] == 0.01
    assert np.all(cross_val_score(estimator, training, NUMBERS, cv=3) > 0.5)
    graphs = {"graph": [make_graph(kind), make_graph(kind)], "alpha": [0.01]}
    assert GridSearchCV(HKLRegressor(), graphs, cv=3).fit(training, NUMBERS).best_score_ > 0.5


def test_jobs_change_nothing():
    one = HKLRegressorCV(graph=make_graph("kernels"), **CV_SETTINGS).fit(X, NUMBERS)
    with parallel_config("threading"):
        two = HKLRegressorCV(graph=make_graph("kernels"), n_jobs=2, **CV_SETTINGS).fit(X, NUMBERS)
    np.testing.assert_array_equal(
        one.cv_results_["mean_test_score"], two.cv_results_["mean_test_score"]
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_pickled_model_predicts_the_same(kind):
    model = fitted(kind)
    again = pickle.loads(pickle.dumps(model))
    new = rows_of(kind)[1]
    np.testing.assert_array_equal(again.predict(new), model.predict(new))


@pytest.mark.parametrize("kind", OTHER_KINDS)
def test_paths_are_the_same_for_all(kind):
    base = hkl_path(X, NUMBERS, graph=make_graph("features"), n_alphas=8)
    path = hkl_path(rows_of(kind)[0], NUMBERS, graph=make_graph(kind), n_alphas=8)
    np.testing.assert_allclose(path.alphas, base.alphas, rtol=1e-9)
    np.testing.assert_allclose(path.predict(rows_of(kind)[1]), base.predict(NEW), atol=1e-8)
    table = path.table()
    assert table["certified"].all()  # every node is scored anyway
    assert table["explained"].is_monotonic_increasing
    assert list(path.hull(path.alphas[-1])["term"])
    lost = hkl_path(X, SIGNS, graph=make_graph("mixed"), loss="log_loss", alphas=[0.1, 0.01])
    assert set(lost.predict(NEW, alpha=0.01)) <= {"yes", "no"}


@pytest.mark.parametrize("kind", ["features", "kernels"])
@pytest.mark.parametrize("value", [0.0, 1.0], ids=["zero", "constant"])
def test_kernels_that_say_nothing(kind, value):
    phi = {"a": lambda X: np.full((len(X), 1), value)}
    if kind == "kernels":
        phi = {"a": lambda A, B: np.full((len(A), len(B)), value)}
    graph = KernelGraph(**{kind: phi})
    model = HKLRegressor(0.01, graph=graph).fit(X, NUMBERS)
    np.testing.assert_allclose(model.predict(NEW), NUMBERS.mean(), atol=1e-9)
    assert model.certificate_.certified
    path = hkl_path(X, NUMBERS, graph=graph, n_alphas=3)
    np.testing.assert_allclose(path.predict(NEW), NUMBERS.mean(), atol=1e-6)
    chosen = HKLRegressorCV(graph=graph, n_alphas=3, cv=3).fit(X, NUMBERS)
    np.testing.assert_allclose(chosen.predict(NEW), NUMBERS.mean(), atol=1e-6)


@pytest.mark.parametrize("refit", [None, "ridge"])
@pytest.mark.parametrize("name", ["squared_error", "multinomial"])
def test_a_node_that_only_groups_others_has_no_function(name, refit):
    edges = {"a": ["root"], "b": ["root"]}
    constant, columns = {"root": np.ones_like}, {"a": [0], "b": [1, 2]}
    kernel = {"root": lambda A, B: np.ones((len(A), len(B)))}
    more = {"a": lambda A, B: A[:, :1] @ B[:, :1].T, "b": lambda A, B: A[:, 1:3] @ B[:, 1:3].T}
    graphs = [
        KernelGraph(edges, features=constant | columns),
        KernelGraph(edges, features=constant, kernels=more),
        KernelGraph(edges, features=columns, kernels=kernel),
        KernelGraph(edges, kernels=kernel | more),
    ]
    estimator, y = ESTIMATORS[name]
    models = [clone(estimator).set_params(graph=g, refit=refit).fit(X, y) for g in graphs]
    for model in models:
        assert set(model.terms_["term"]) == {"a", "b"}
        assert set(model.hull_["term"]) == {"root", "a", "b"}
        np.testing.assert_allclose(model._raw_predict(NEW), models[0]._raw_predict(NEW), atol=1e-8)
        np.testing.assert_allclose(model.effects(NEW), models[0].effects(NEW), atol=1e-8)


@few_alphas
def test_a_ridge_refit_of_too_many_rows_is_not_tried_on_the_folds(monkeypatch):
    # Two thirds of the rows would have one, all rows do not.
    monkeypatch.setattr(import_module("hikernel.selection.refit"), "_MOST_HULL_FEATURES", N - 1)
    for kind, refits in (("grams", {"None"}), ("mixed", {"None"}), ("blocks", {"None", "ridge"})):
        training, _ = rows_of(kind)
        model = HKLRegressorCV(graph=make_graph(kind), **CV_SETTINGS).fit(training, NUMBERS)
        assert set(model.cv_results_["refit"]) == refits
    with pytest.raises(ValueError, match=r"Gram matrices of up to 1,000 rows.*use refit=None"):
        fitted("grams", refit="ridge")
