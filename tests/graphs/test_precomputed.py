"""PrecomputedGrid: the model of explicit features, of all products listed, and what goes wrong."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pytest
from oracles.designs import design_of
from oracles.naive import all_nodes
from oracles.searches import grid_problem
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

from hikernel import HKLClassifier, HKLRegressor, HKLRegressorCV, hkl_path
from hikernel.bases import OrthonormalPolynomial
from hikernel.engines.gram_grid_engine import GramGridEngine
from hikernel.engines.machine import available_bytes
from hikernel.errors import MemoryPlanError
from hikernel.graphs import KernelGraph, PrecomputedGrid, precomputed
from hikernel.losses import SquaredError
from hikernel.search import SearchSettings, objective
from hikernel.selection import TrainingProblem

N, P, Q = 60, 4, 2


def table(n=N, p=P, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (n, p))
    return X, X[:, 0] + 2.0 * X[:, 1] * X[:, 2] + 0.2 * rng.standard_normal(n)


def fitted_design(X, weights=None):
    bases = [OrthonormalPolynomial(degree=Q)] * X.shape[1]
    return design_of(X, bases, weights)


def polynomial_levels(design, X):
    """Gram matrices of orthonormal polynomials."""
    levels = [basis.transform(x.copy())[1:] for basis, x in zip(design.bases, X.T, strict=True)]
    return [[block @ block.T for block in blocks] for blocks in levels]


def gaussian_levels(X, widths):
    """Centred Gaussian kernels of full rank, finer from level to level."""
    H = np.eye(len(X)) - 1.0 / len(X)
    return [[H @ np.exp(-(((x[:, None] - x) / w) ** 2)) @ H for w in widths] for x in X.T]


@pytest.mark.parametrize(
    "given", [{}, {"max_order": 2, "weight_base": 1.5, "root_weight": 0.5}], ids=["plain", "limits"]
)
def test_the_model_is_that_of_the_features(given):
    X, y = table()
    weights = np.random.default_rng(1).integers(0, 3, N).astype(float)
    graph = PrecomputedGrid(polynomial_levels(fitted_design(X, weights), X), **given)
    rows = np.arange(N)
    ours = HKLRegressor(alpha=0.003, graph=graph, tol=1e-8).fit(rows, y, weights)
    theirs = HKLRegressor(
        alpha=0.003,
        basis="orthonormal",
        degree=Q,
        tol=1e-8,
        certify="exact",
        **({"weight_base": 2.0} | given),
    ).fit(X, y, weights)
    assert sorted(ours.nodes_) == sorted(theirs.nodes_)
    assert any(len(node) == 2 for node in ours.nodes_)
    for name in ("objective", "dual_bound"):
        expected = getattr(theirs.certificate_, name)
        assert getattr(ours.certificate_, name) == pytest.approx(expected, rel=1e-7)
    assert ours.certificate_.certified
    assert ours.certificate_.kind == "exact"
    assert ours.certificate_.n_vertices == theirs.certificate_.n_vertices
    np.testing.assert_allclose(ours.predict(rows), theirs.predict(X), atol=1e-6)
    frames = [m.hull_.sort_values("term").reset_index(drop=True) for m in (ours, theirs)]
    for column in ("term", "order", "degree"):
        assert list(frames[0][column]) == list(frames[1][column])
    for column in ("norm", "share"):
        np.testing.assert_allclose(frames[0][column], frames[1][column], atol=1e-4)
    effects = ours.effects(rows)
    np.testing.assert_allclose(effects.sum(axis=1), ours.predict(rows), atol=1e-10)


def test_full_rank_kernels_against_the_list_of_all_products():
    X, y = table(n=40, p=3)
    levels = gaussian_levels(X, [1.0, 0.3])
    graph = PrecomputedGrid(levels)
    nodes = all_nodes(graph.grid)
    assert len(nodes) == 27
    products = {
        v: np.prod([levels[m][j - 1] for m, j in v] or [np.ones((40, 40))], axis=0) for v in nodes
    }
    listed = KernelGraph(
        {v: graph.grid.parents(v) for v in nodes},
        grams=products,
        weights={v: graph.grid.weight(v) for v in nodes},
    )
    rows = np.arange(40)
    for alpha in (1e-2, 1e-4):
        ours = HKLRegressor(alpha=alpha, graph=graph, tol=1e-7).fit(rows, y)
        theirs = HKLRegressor(alpha=alpha, graph=listed, tol=1e-7).fit(rows, y)
        assert ours.certificate_.certified
        assert ours.certificate_.objective == pytest.approx(
            theirs.certificate_.objective, rel=2e-7, abs=0.0
        )
        np.testing.assert_allclose(ours.predict(rows), theirs.predict(rows), atol=1e-3)
    assert len(ours.nodes_) > 4


def test_new_items_by_row_number_and_by_cross_gram_matrices():
    X, y = table(n=90)
    graph = PrecomputedGrid(polynomial_levels(fitted_design(X[:60]), X), names=list("abcd"))
    fit, new = np.random.default_rng(2).permutation(90)[:60], np.arange(90)[::7]
    weights = np.ones(60)
    weights[:5] = 0.0
    model = HKLRegressor(alpha=0.003, graph=graph).fit(fit, y[fit], weights)
    expected = model.predict(new)
    used = fit[5:]
    cross = [
        [graph.gram((m, j)).restricted(new, used).chunk(slice(None)) for j in (1, 2)]
        for m in range(4)
    ]
    np.testing.assert_allclose(model.predict(cross), expected, rtol=1e-12, atol=1e-12)
    kept = model.hull_["norm"].to_numpy() > 0.0
    active = {pair for v, keep in zip(model.nodes_, kept, strict=True) if keep for pair in v}
    needed = [[cross[m][j - 1] if (m, j) in active else None for j in (1, 2)] for m in range(4)]
    needed = [None if all(K is None for K in pair) else pair for pair in needed]
    assert len(active) < 8
    np.testing.assert_allclose(model.predict(tuple(needed)), expected, atol=1e-12)
    np.testing.assert_allclose(model.predict(new[:, None].tolist()), expected, atol=1e-12)
    frame = model.effects(cross)
    np.testing.assert_allclose(frame.sum(axis=1), expected, atol=1e-10)

    wide = graph.gram((1, 2)).restricted(new, fit).chunk(slice(None))
    with pytest.raises(ValueError, match=r"X has no matrix for 'a level 1'"):
        model.predict([[None, None], *cross[1:]])
    with pytest.raises(ValueError, match=r"'b level 2' in X has shape \(13, 60\).*\(13, 55\)"):
        model.predict([cross[0], [cross[1][0], wide], *cross[2:]])
    with pytest.raises(ValueError, match="matrices for 3 variables and the grid has 4"):
        model.predict(cross[:3])
    with pytest.raises(ValueError, match="X has 1 matrices for 'c', which has 2 levels"):
        model.predict([*cross[:2], cross[2][:1], cross[3]])
    with pytest.raises(ValueError, match="X has no matrices"):
        model.predict([None] * 4)
    with pytest.raises(ValueError, match="'a level 1' in X has entries that are not finite"):
        model.predict([[np.full((13, 55), np.nan), None], *cross[1:]])
    with pytest.raises(ValueError, match="'a level 1' in X must be numbers"):
        model.predict([[[["one"]], None], *cross[1:]])
    with pytest.raises(ValueError, match="row numbers of the matrices of the grid"):
        model.predict(X)


def test_a_model_of_the_constant_alone():
    X, _ = table()
    graph = PrecomputedGrid(polynomial_levels(fitted_design(X), X))
    model = HKLRegressor(graph=graph).fit(np.arange(N), np.full(N, 3.0))
    np.testing.assert_allclose(model.predict([[np.ones((2, N)), None], None, None, None]), 3.0)


def test_the_search_of_the_paper_finds_the_same():
    X, y = table()
    graph = PrecomputedGrid(polynomial_levels(fitted_design(X), X))
    rows = graph.read(np.arange(N))
    training = TrainingProblem.make(graph, rows, y, np.ones(N), SquaredError())
    found = [
        training.solve(0.01, SearchSettings(search=name, tol=1e-6))
        for name in ("lookahead", "paper")
    ]
    assert all(model.certificate.certified for model in found)
    assert found[1].certificate.objective == pytest.approx(found[0].certificate.objective, rel=1e-6)


def test_a_grid_that_nobody_could_list_is_certified():
    X, y = table(n=80, p=12)
    graph = PrecomputedGrid(gaussian_levels(X, [2.0, 0.7, 0.2]), names=[f"v{m}" for m in range(12)])
    model = HKLRegressor(alpha=0.003, graph=graph).fit(np.arange(80), y)
    certificate = model.certificate_
    assert certificate.certified
    assert certificate.kind == "exact"
    assert certificate.n_vertices == 4**12
    assert certificate.n_explored < 10_000
    assert {"v0", "v1 * v2"} <= set(model.hull_["term"])


@pytest.mark.parametrize("n_classes", [2, 3])
def test_classification(n_classes):
    X, f = table()
    labels = np.digitize(f, np.quantile(f, np.linspace(0, 1, n_classes + 1)[1:-1]))
    graph = PrecomputedGrid(polynomial_levels(fitted_design(X), X))
    rows = np.arange(N)
    ours = HKLClassifier(alpha=0.01, graph=graph, tol=1e-6).fit(rows, labels)
    theirs = HKLClassifier(
        alpha=0.01, basis="orthonormal", degree=Q, weight_base=2.0, tol=1e-6
    ).fit(X, labels)
    assert ours.certificate_.certified
    assert ours.certificate_.objective == pytest.approx(theirs.certificate_.objective, rel=2e-6)
    np.testing.assert_allclose(ours.predict_proba(rows), theirs.predict_proba(X), atol=1e-3)


def test_cross_validation_and_refits():
    X, y = table(n=80)
    graph = PrecomputedGrid(polynomial_levels(fitted_design(X), X))
    rows = np.arange(80)
    model = HKLRegressorCV(graph=graph, n_alphas=6, eps=1e-3, cv=3).fit(rows, y)
    assert model.score(rows, y) > 0.9
    assert model.certificate_.certified
    assert set(model.cv_results_["refit"]) == {"None", "ridge"}
    # Bases are fitted once, on all rows, so that the folds score the same models.
    given = {"alphas": [0.01, 0.001, 1e-5], "refit": None, "cv": 3, "tol": 1e-6}
    ours = HKLRegressorCV(graph=graph, **given).fit(rows, y)
    theirs = HKLRegressorCV(basis="orthonormal", degree=Q, weight_base=2.0, **given).fit(X, y)
    for k in range(3):
        name = f"split{k}_test_score"
        np.testing.assert_allclose(ours.cv_results_[name], theirs.cv_results_[name], rtol=1e-3)
    single = HKLRegressor(alpha=0.01, graph=graph)
    scores = cross_val_score(single, rows, y, cv=4)
    # A fold is a fit on its rows, whose Gram matrices are parts of those of all.
    train = np.arange(20, 80)
    by_hand = clone(single).fit(train, y[train]).score(rows[:20], y[:20])
    assert scores[0] == pytest.approx(by_hand, rel=1e-12)
    ridge = HKLRegressor(alpha=0.01, graph=graph, refit="ridge").fit(rows, y)
    assert ridge.score(rows, y) > single.fit(rows, y).score(rows, y)
    with pytest.raises(ValueError, match="does not apply"):
        HKLRegressor(alpha=0.01, graph=graph, refit="variables").fit(rows, y)


def test_statistical_bounds_are_refused_before_work_starts(monkeypatch):
    X, y = table()
    graph = PrecomputedGrid(polynomial_levels(fitted_design(X), X))
    rows = np.arange(N)
    for verb in ("extension_squares", "score_squares", "kernel_operator"):
        monkeypatch.setattr(GramGridEngine, verb, lambda *_: pytest.fail("work has started"))
    for fit in (
        HKLRegressor(graph=graph, certify="statistical").fit,
        HKLRegressorCV(graph=graph, certify="statistical").fit,
        lambda rows, y: hkl_path(rows, y, graph=graph, certify="statistical"),
    ):
        with pytest.raises(ValueError, match=r'certify="statistical" draws random signs.*"exact"'):
            fit(rows, y)


def test_auto_never_means_statistical(monkeypatch):
    X, y = table()
    graph = PrecomputedGrid(polynomial_levels(fitted_design(X), X))
    design = graph.fit(np.arange(N), np.ones(N))
    search = grid_problem(design.engine(None, np.ones(N)), design.graph, y, 0.01)
    monkeypatch.setattr(objective, "AUTO_WORK", 0)
    assert search.tail_mode("auto") == "exact"
    assert search.tail_mode("none") == "none"
    with pytest.raises(ValueError, match="Gram matrices have none"):
        search.tail_mode("statistical")


def test_float32_halves_the_memory_and_hardly_changes_the_model():
    X, y = table()
    levels = polynomial_levels(fitted_design(X), X)
    single, double = (PrecomputedGrid(levels, dtype=name) for name in ("float32", "float64"))
    assert 2 * single.gram((0, 1)).nbytes == double.gram((0, 1)).nbytes == levels[0][0].nbytes
    assert np.shares_memory(double.gram((0, 1)).chunk(slice(None)), levels[0][0])
    rows = np.arange(N)
    models = [HKLRegressor(alpha=0.01, graph=g, tol=1e-5).fit(rows, y) for g in (single, double)]
    assert all(model.certificate_.certified for model in models)
    np.testing.assert_allclose(models[0].predict(rows), models[1].predict(rows), atol=1e-2)
    objectives = [model.certificate_.objective for model in models]
    assert objectives[0] == pytest.approx(objectives[1], rel=2e-5)


def test_names_words_and_clones():
    X, _ = table()
    graph = PrecomputedGrid(polynomial_levels(fitted_design(X), X))
    assert graph.names == ("x0", "x1", "x2", "x3")
    assert repr(graph) == "PrecomputedGrid(4 variables, 8 matrices of 60 items, 81 nodes)"
    assert clone(HKLRegressor(graph=graph)).graph is graph
    design = graph.fit(np.arange(N), np.ones(N))
    assert design.terms([((0, 2), (3, 1))]) == {
        "term": ["x0^2 * x3"],
        "order": [2],
        "degree": [3],
    }


def test_what_rounding_left_unsymmetric_is_made_symmetric():
    X, _ = table()
    levels = polynomial_levels(fitted_design(X), X)
    levels[0][0] = levels[0][0].copy()
    levels[0][0][0, 1] += 1e-12
    graph = PrecomputedGrid(levels)
    found = graph.gram((0, 1)).chunk(slice(None))
    np.testing.assert_array_equal(found, found.T)
    assert np.shares_memory(graph.gram((0, 2)).chunk(slice(None)), levels[0][1])


ONE = np.eye(3)
BAD_INPUT = [
    ((), {}, "one variable at least, got nothing"),
    (ONE, {}, r"levels\[0\] must be a list of Gram matrices"),
    ([ONE], {}, r"levels\[0\] must be a list of Gram matrices.*got \(3, 3\)"),
    (5, {}, "got int"),
    ({"a": [ONE]}, {}, "got dict"),
    ([[ONE], []], {}, "'x1' has no levels"),
    (
        [[ONE, np.ones((3, 2))]],
        {"names": ["a"]},
        r"'a level 2' must have shape .3, 3., got \(3, 2\)",
    ),
    ([[ONE], [np.eye(4)]], {}, "'x1 level 1' has 4 rows and that of 'x0 level 1' 3"),
    ([[np.empty((0, 0))]], {}, "have no rows"),
    ([[[["one"]]]], {}, "'x0 level 1' must be numbers"),
    ([[ONE]], {"dtype": "int"}, "dtype must be"),
    ([[ONE]], {"names": ["a", "b"]}, "names must be 1 different ones"),
    ([[ONE], [ONE]], {"names": ["a", "a"]}, "names must be 2 different ones"),
    ([[ONE]], {"names": "a"}, "names must be a list of strings"),
    ([[ONE]], {"max_order": 0}, "max_order must be an integer from 1 on"),
    ([[ONE]], {"max_order": 1.5}, "max_order must be an integer from 1 on"),
    ([[ONE]], {"weight_base": 0.0}, "weight_base must be a number above 0"),
    ([[ONE]], {"weight_base": "two"}, "weight_base must be a number above 0"),
    ([[ONE]], {"root_weight": True}, "root_weight must be a number above 0"),
]


@pytest.mark.parametrize(("levels", "given", "message"), BAD_INPUT)
def test_what_is_wrong_is_said_and_named(levels, given, message):
    with pytest.raises(ValueError, match=message):
        PrecomputedGrid(levels, **given)


@pytest.mark.parametrize(
    ("gram", "message"),
    [
        (np.array([[1.0, 2.0], [2.0, 1.0]]), "'b level 2' is indefinite"),
        (np.array([[1.0, 0.5], [0.1, 1.0]]), "'b level 2' is not symmetric"),
        (np.array([[1.0, np.nan], [np.nan, 1.0]]), "'b level 2' has entries that are not finite"),
    ],
)
def test_matrices_that_are_no_kernels_are_refused(gram, message):
    with pytest.raises(ValueError, match=message):
        PrecomputedGrid([[np.eye(2)], [np.eye(2), gram]], names=["a", "b"])


@pytest.mark.skipif(available_bytes() is None, reason="the system does not tell its free memory")
def test_memory_is_planned(monkeypatch):
    huge = np.lib.stride_tricks.as_strided(np.ones(1), (2**22, 2**22), (0, 0))
    with pytest.raises(MemoryPlanError, match="1 Gram matrices in another type"):
        PrecomputedGrid([[huge]], dtype="float32")
    X, y = table()
    levels = polynomial_levels(fitted_design(X), X)
    graph = PrecomputedGrid(levels)
    monkeypatch.setattr(precomputed, "WORKING_COPIES", 10**15)
    with pytest.raises(MemoryPlanError, match="Solving on 60 rows of Gram matrices"):
        HKLRegressor(graph=graph).fit(np.arange(N), y)


def test_a_plan_before_it_starts():
    X, _ = table()
    graph = PrecomputedGrid(polynomial_levels(fitted_design(X), X))
    plan = graph.plan(N)
    assert plan.kept == 8 * 8 * N**2
    assert plan.to_take == plan.working > 0


def test_no_refit_is_chosen_that_all_rows_have_not_got(monkeypatch):
    X, y = table()
    monkeypatch.setattr(import_module("hikernel.selection.refit"), "_MOST_HULL_FEATURES", N - 1)
    graph = PrecomputedGrid(polynomial_levels(fitted_design(X), X))
    model = HKLRegressorCV(graph=graph, n_alphas=4, eps=1e-5, cv=3).fit(np.arange(N), y)
    assert set(model.cv_results_["refit"]) == {"None"}
    with pytest.raises(ValueError, match="Gram matrices of up to 1,000 rows"):
        HKLRegressorCV(graph=graph, n_alphas=4, refit="ridge").fit(np.arange(N), y)
