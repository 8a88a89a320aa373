"""graph=: every estimator on features, kernels, Gram matrices and all of them mixed."""

from __future__ import annotations

import pickle
import warnings
from importlib import import_module

import numpy as np
import pandas as pd
import pytest
from joblib import parallel_config
from oracles.dags import dag_optimum, factor
from sklearn.base import clone
from sklearn.linear_model import Lasso
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict, cross_val_score

from hikernel import (
    HKLClassifier,
    HKLClassifierCV,
    HKLRegressor,
    HKLRegressorCV,
    hkl_path,
    stability_selection,
)
from hikernel.engines import memory
from hikernel.errors import CertificateWarning, MemoryPlanError
from hikernel.graphs import KernelGraph, SubstringGraph
from hikernel.losses import Quantile
from hikernel.selection.units import target_units

N = 40
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, 4))
NEW = RNG.standard_normal((7, 4))
SIGNAL = X[:, 0] + X[:, 1] * X[:, 2]
NUMBERS = SIGNAL + 0.1 * RNG.standard_normal(N)
COUNTS = np.round(np.exp(SIGNAL / 2))
SIGNS = np.where(SIGNAL + 0.3 * RNG.standard_normal(N) > 0, "yes", "no")
CLASSES = np.array(list("abc"))[np.digitize(SIGNAL, [-0.7, 0.7])]
EDGES = {"both": ["left", "right"], "cube": ["left"]}


def left(X):
    return X[:, :2]


def right(X):
    return X[:, 2:]


def both(X):
    return np.einsum("ni,nj->nij", X[:, :2], X[:, 2:]).reshape(len(X), -1)


def cube(X):
    return X[:, 0] ** 3


MAPS = {"left": left, "right": right, "both": both, "cube": cube}


class Kernel:
    """The kernel of a feature map; a class, for pickle."""

    def __init__(self, phi):
        self.phi = phi

    def __call__(self, A, B):
        return self.phi(A).reshape(len(A), -1) @ self.phi(B).reshape(len(B), -1).T


KERNELS = {node: Kernel(phi) for node, phi in MAPS.items()}


def make_graph(kind, dtype=None):
    """The same kernels, given in different ways; "blocks" and "grams" take row numbers."""
    if kind == "features":
        return KernelGraph(EDGES, features=MAPS)
    if kind == "kernels":
        return KernelGraph(EDGES, kernels=KERNELS, dtype=dtype)
    if kind == "mixed":
        some = {"left", "both"}
        return KernelGraph(
            EDGES,
            features={node: phi for node, phi in MAPS.items() if node in some},
            kernels={node: k for node, k in KERNELS.items() if node not in some},
        )
    every = np.vstack([X, NEW])
    if kind == "blocks":
        return KernelGraph(EDGES, features={node: phi(every) for node, phi in MAPS.items()})
    return KernelGraph(EDGES, grams={node: k(every, every) for node, k in KERNELS.items()})


def rows_of(kind):
    """Training and new rows, as the graph takes them."""
    if kind in ("blocks", "grams"):
        return np.arange(N), N + np.arange(len(NEW))
    return X, NEW


KINDS = ["features", "kernels", "mixed", "blocks", "grams"]
OTHER_KINDS = KINDS[1:]
ESTIMATORS = {
    "squared_error": (HKLRegressor(0.01), NUMBERS),
    "quantile": (HKLRegressor(0.01, loss=Quantile(0.7)), NUMBERS),
    "huber": (HKLRegressor(0.01, loss="huber"), NUMBERS),
    "poisson": (HKLRegressor(0.01, loss="poisson"), COUNTS),
    "log_loss": (HKLClassifier(0.01), SIGNS),
    "hinge": (HKLClassifier(0.01, loss="hinge"), SIGNS),
    "multinomial": (HKLClassifier(0.01), CLASSES),
    "one-vs-rest": (HKLClassifier(0.01, loss="squared_hinge"), CLASSES),
}


def fitted(kind, name="squared_error", sample_weight=None, **parameters):
    estimator, y = ESTIMATORS[name]
    model = clone(estimator).set_params(graph=make_graph(kind), **parameters)
    return model.fit(rows_of(kind)[0], y, sample_weight)


@pytest.fixture(scope="module", params=list(ESTIMATORS))
def reference(request):
    return request.param, fitted("features", request.param)


@pytest.mark.parametrize("kind", OTHER_KINDS)
def test_all_ways_to_give_a_kernel_give_the_same_model(reference, kind):
    name, base = reference
    model = fitted(kind, name)
    for own, other in zip(rows_of("features"), rows_of(kind), strict=True):
        np.testing.assert_allclose(base._decide(own), model._decide(other), atol=1e-9)
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
    np.testing.assert_allclose(weighted._decide(new), copies._decide(new), atol=1e-3)
    assert weighted.certificate_.objective == pytest.approx(copies.certificate_.objective, rel=1e-7)
    kept = times > 0
    removed = clone(estimator).set_params(graph=graph, tol=tol)
    removed.fit(training[kept], y[kept], times[kept])
    np.testing.assert_allclose(weighted._decide(new), removed._decide(new), atol=1e-9)
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
        f = model._decide(rows)
        if f.ndim == 1:
            np.testing.assert_allclose(effects.sum(axis=1), f, atol=1e-9)
            assert list(effects.columns) == ["intercept", *model.hull_["term"]]
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
        base._decide(rows_of("features")[1]), model._decide(rows_of(kind)[1]), atol=1e-6
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


CV_SETTINGS = {"alphas": [0.1, 0.01, 0.001], "cv": 3}


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
            model = HKLRegressorCV(graph=graph, alphas=[0.1, 0.001], cv=3, scoring="r2")
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
        assert ("root" in list(model.hull_["term"])) == (refit is None)
        np.testing.assert_allclose(model._decide(NEW), models[0]._decide(NEW), atol=1e-8)
        np.testing.assert_allclose(model.effects(NEW), models[0].effects(NEW), atol=1e-8)


def test_a_ridge_refit_of_too_many_rows_is_not_tried_on_the_folds(monkeypatch):
    # Two thirds of the rows would have one, all rows do not.
    monkeypatch.setattr(import_module("hikernel.selection.refit"), "_MOST_HULL_FEATURES", N - 1)
    for kind, refits in (("grams", {"None"}), ("mixed", {"None"}), ("blocks", {"None", "ridge"})):
        training, _ = rows_of(kind)
        model = HKLRegressorCV(graph=make_graph(kind), **CV_SETTINGS).fit(training, NUMBERS)
        assert set(model.cv_results_["refit"]) == refits
    with pytest.raises(ValueError, match=r"Gram matrices of up to 1,000 rows.*use refit=None"):
        fitted("grams", refit="ridge")


def test_a_constant_target():
    for kind in ("features", "kernels"):
        model = HKLRegressor(graph=make_graph(kind)).fit(X, np.full(N, 3.0))
        np.testing.assert_allclose(model.predict(NEW), 3.0)
        assert len(hkl_path(X, np.full(N, 3.0), graph=make_graph(kind), n_alphas=3)) >= 1


def test_max_kernels_and_time_are_kept_to():
    with pytest.warns(CertificateWarning, match="max_kernels=1"):
        model = fitted("features", max_kernels=1, alpha=1e-4)
    assert len(model.hull_) == 1
    with pytest.warns(CertificateWarning, match="time budget"):
        fitted("features", alpha=1e-4, time_budget=1e-9)
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
        with pytest.raises(ValueError, match="graph of kernels"):
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
    monkeypatch.setattr(memory, "available_bytes", lambda: 1000)
    for estimator in (HKLRegressor(), HKLRegressorCV()):
        with pytest.raises(MemoryPlanError, match=r"Gram matrices of 4 kernel functions.*float32"):
            estimator.set_params(graph=make_graph("kernels")).fit(X, NUMBERS)


def test_float32_storage_rounds_and_no_more():
    base = fitted("kernels")
    model = HKLRegressor(0.01, graph=make_graph("kernels", "float32")).fit(X, NUMBERS)
    np.testing.assert_allclose(model.predict(NEW), base.predict(NEW), atol=1e-5)
    assert model.certificate_.certified


def squared_penalty_as_lasso(model):
    """lambda Omega(beta): with it the penalty of norms has the same minimiser as the squared."""
    return model.alpha * float(np.sum(model.hull_["norm"]))


def test_one_column_per_node_without_edges_is_the_lasso():
    rng = np.random.default_rng(4)
    Z = rng.standard_normal((80, 15))
    y = Z[:, 0] - 0.5 * Z[:, 7] + 0.3 * rng.standard_normal(80)
    y = (y - y.mean()) / y.std()
    graph = KernelGraph(features={k: [k] for k in range(15)})
    for alpha in (0.3, 0.03, 0.003):
        model = HKLRegressor(alpha, graph=graph, tol=1e-9).fit(Z, y)
        strength = squared_penalty_as_lasso(model)
        lasso = Lasso(strength, tol=1e-12, max_iter=100_000).fit(Z, y)
        ours = np.zeros(15)
        ours[model.nodes_] = model.coef_
        np.testing.assert_allclose(ours, lasso.coef_, atol=1e-4)
        np.testing.assert_allclose(model.predict(Z), lasso.predict(Z), atol=1e-3)


def test_blocks_without_edges_are_the_group_lasso():
    cp = pytest.importorskip("cvxpy")
    from oracles.dags import solve

    rng = np.random.default_rng(5)
    Z = rng.standard_normal((80, 18))
    groups = {k: list(range(3 * k, 3 * k + 3)) for k in range(6)}
    weights = {k: 0.7 + 0.1 * k for k in groups}
    y = Z[:, :3] @ [1.0, -1.0, 0.5] + 0.5 * Z[:, 10] + 0.3 * rng.standard_normal(80)
    y = (y - y.mean()) / y.std()
    graph = KernelGraph(features=groups, weights=weights)
    for alpha in (0.1, 0.01):
        model = HKLRegressor(alpha, graph=graph, tol=1e-9).fit(Z, y)
        total = sum(
            weights[v] * norm for v, norm in zip(model.nodes_, model.hull_["norm"], strict=True)
        )
        beta, b = cp.Variable(18), cp.Variable()
        penalty = sum(weights[k] * cp.norm(beta[columns]) for k, columns in groups.items())
        loss = 0.5 * cp.sum_squares(y - Z @ beta - b) / 80
        solve(cp.Problem(cp.Minimize(loss + alpha * total * penalty)))
        ours = np.zeros(18)
        columns = [c for v in model.nodes_ for c in groups[v]]
        ours[columns] = model.coef_
        np.testing.assert_allclose(ours, beta.value, atol=2e-4)
        selected = {k for k, c in groups.items() if np.linalg.norm(beta.value[c]) > 1e-4}
        assert set(model.nodes_) == selected


# From skglm 0.5, which is too heavy to install for a test (it compiles itself with numba):
#   GroupLasso(groups=2, alpha=strength, weights=d, tol=1e-13, fit_intercept=True).fit(Z, y)
GROUP_LASSO = {
    0.3: [0.691988548, -0.770838623, 0, 0, -0.050504948, 0.410719631, 0, 0, 0, 0, -0.102393889],
    0.05: [
        *[0.917227199, -0.923798969, -0.029937838, -0.04785644, 0.026826058, 0.704873193],
        *[0, 0, 0, 0, -0.053668077],
    ],
}


@pytest.mark.parametrize("strength", list(GROUP_LASSO))
def test_the_group_lasso_of_another_library(strength):
    rng = np.random.default_rng(9)
    Z = rng.standard_normal((40, 10))
    y = Z[:, 0] - Z[:, 1] + 0.8 * Z[:, 5] + 0.3 * rng.standard_normal(40)
    *coef, intercept = GROUP_LASSO[strength]
    blocks = np.reshape(coef, (5, 2))
    d = np.array([1.0, 1.1, 1.2, 1.3, 1.4])
    # Squared penalties have the same minimiser at strength / Omega(beta).
    alpha = strength / float(d @ np.linalg.norm(blocks, axis=1))
    graph = KernelGraph(
        features={k: [2 * k, 2 * k + 1] for k in range(5)}, weights=dict(enumerate(d))
    )
    model = HKLRegressor(alpha, graph=graph, tol=1e-9).fit(Z, y)
    ours = np.zeros((5, 2))
    ours[model.nodes_] = model.coef_.reshape(-1, 2)
    np.testing.assert_allclose(ours, blocks, atol=1e-4)
    assert set(model.nodes_) == set(np.flatnonzero(np.any(blocks, axis=1)).tolist())
    assert model.intercept_ == pytest.approx(intercept, abs=1e-4)
