"""Directions of columns: no violation anywhere, with any basis, refit, loss and table."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from threadpoolctl import threadpool_limits

import hikernel
from hikernel import (
    HKLClassifier,
    HKLClassifierCV,
    HKLRegressor,
    HKLRegressorCV,
    HKLSurvival,
    hkl_path,
)
from hikernel.bases import Gaussian
from hikernel.columns import ColumnGrid
from hikernel.estimators import comparison
from hikernel.explain.model_text import certificate_words
from hikernel.graphs import KernelGraph
from hikernel.losses import SquaredError
from hikernel.search import SearchSettings
from hikernel.selection import REFITS, TrainingProblem, refit

PLAIN = {"alpha": 1e-3, "certify": "none"}
ROUNDING = 1e-12


def waves(n=200, seed=0):
    """A target that rises and falls in x0, with an interaction of two other columns."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2.0, 2.0, (n, 4))
    y = 0.6 * X[:, 0] + np.sin(3.0 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.2 * rng.standard_normal(n)
    return X, y


def along(X, column, grid):
    """Rows that differ in one column only, around each of three rows."""
    out = []
    for row in X[:3]:
        rows = np.tile(row, (len(grid), 1))
        rows[:, column] = grid
        out.append(rows)
    return out


def everywhere(x):
    """Points inside, between, next to and far beyond the values of a column."""
    width = np.ptp(x)
    inside = np.linspace(x.min() - width, x.max() + width, 3001)
    near = np.concatenate([np.nextafter(x, -np.inf), x, np.nextafter(x, np.inf)])
    return np.unique(np.concatenate([inside, near, [-1e300, 1e300]]))


def check_direction(predict, X, column, sign=1):
    """Every prediction rises, up to rounding; returns by how much the largest one does."""
    moves = []
    for rows in along(X, column, everywhere(X[:, column])):
        f = sign * predict(rows)
        assert np.min(np.diff(f)) >= -ROUNDING * max(np.ptp(f), np.max(np.abs(f)))
        moves.append(np.ptp(f))
    return max(moves)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("basis", ["auto", "auto+steps", "asinh", "rank", "steps"])
def test_no_basis_and_no_refit_violates_a_direction(basis, sign):
    X, y = waves(120)
    source = ColumnGrid(basis=basis, monotone={0: sign})
    problem = TrainingProblem.make(source, source.read(X), y, np.ones(120), SquaredError())
    selected = problem.solve(1e-3, SearchSettings(certify="none"))
    grid = along(X, 0, np.linspace(-2.0, 2.0, 200))[0]
    shrunk = sign * selected.predict(problem.design, grid)
    assert np.min(np.diff(shrunk)) < -1e-3  # there is something to prevent
    applied = 0
    for name in REFITS:
        fitted = refit(name, problem, selected)
        if fitted is None:  # too many columns of steps
            continue
        moved = check_direction(partial(fitted.model.predict, fitted.design), X, 0, sign)
        assert moved > 0.5 if sign > 0 else moved < np.ptp(shrunk)
        assert (fitted.gap or 0.0) < 1e-8
        applied += 1
    assert applied >= 3


@pytest.mark.parametrize("seed", range(5))
def test_several_columns_of_all_kinds_in_random_problems(seed):
    rng = np.random.default_rng(seed)
    n = 150
    X = np.column_stack(
        [
            rng.standard_normal(n),
            rng.lognormal(sigma=1.2, size=n),
            np.where(rng.random(n) < 0.8, 0.0, rng.exponential(size=n)),
            rng.integers(0, 5, n),
            rng.random(n) < 0.5,
        ]
    ).astype(float)
    y = np.column_stack([np.sin(2.0 * X), X]) @ rng.standard_normal(10)
    signs = {m: int(sign) for m, sign in enumerate(rng.choice([-1, 1], 5))}
    refit = ["ridge", "sparse", "variables"][seed % 3]
    model = HKLRegressor(**PLAIN, monotone=signs, refit=refit).fit(X, y)
    for m, sign in signs.items():
        check_direction(model.predict, X, m, sign)
    assert all(len(node) <= 1 for node in model.nodes_)


def test_a_column_with_a_direction_acts_alone_and_the_others_do_not():
    X, y = waves()
    y = y + X[:, 0] * X[:, 3]
    assert "x0 * x3" in set(HKLRegressor(1e-3).fit(X, y).hull_["term"])
    model = HKLRegressor(1e-3, refit="variables", monotone={"x0": 1}).fit(X, y)
    assert not any(len(node) > 1 and 0 in dict(node) for node in model.nodes_)
    assert any(len(node) > 1 for node in model.nodes_)
    alone = HKLRegressor(1e-3, interactions={"forbid": [("x0", "*")]}).fit(X, y)
    assert model.graph_.n_vertices == alone.graph_.n_vertices
    assert model.certificate_.objective == pytest.approx(alone.certificate_.objective)
    assert model.certificate_.certified


def test_a_fit_that_already_rises_is_not_touched():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (200, 2))
    y = np.exp(X[:, 0]) + X[:, 1] ** 2 + 0.05 * rng.standard_normal(200)
    settings = {**PLAIN, "interactions": "none", "refit": "ridge"}
    free = HKLRegressor(**settings).fit(X, y)
    model = HKLRegressor(**settings, monotone={0: "increasing"}).fit(X, y)
    np.testing.assert_allclose(model.predict(X), free.predict(X), rtol=1e-8)
    assert model.certificate_.refit_gap < 1e-8


def test_a_truth_against_the_direction_becomes_flat():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (200, 2))
    y = -2.0 * X[:, 0] + X[:, 1] + 0.05 * rng.standard_normal(200)
    model = HKLRegressor(**PLAIN, monotone={0: 1}).fit(X, y)
    rows = along(X, 0, np.linspace(-3.0, 3.0, 50))[0]
    assert np.ptp(model.predict(rows)) == 0.0
    assert "x0" not in set(model.terms_["term"])


@pytest.mark.parametrize("loss", ["poisson", "huber"])
def test_other_losses_of_numbers(loss):
    X, y = waves()
    if loss == "poisson":
        y = np.random.default_rng(0).poisson(np.exp(0.3 * y)).astype(float)
    model = HKLRegressor(**PLAIN, loss=loss, monotone={0: 1, 3: -1}).fit(X, y)
    assert check_direction(model.predict, X, 0) > 0.1
    check_direction(model.predict, X, 3, -1)
    assert model.certificate_.refit_gap < 1e-6


@pytest.mark.parametrize("loss", ["log_loss", "squared_hinge"])
def test_two_classes_have_monotone_scores_and_probabilities(loss):
    X, y = waves()
    model = HKLClassifier(**PLAIN, loss=loss, monotone={0: 1}).fit(X, y > 0.0)
    assert check_direction(model.decision_function, X, 0) > 0.5
    if loss == "log_loss":
        check_direction(lambda rows: model.predict_proba(rows)[:, 1], X, 0)


@pytest.mark.parametrize("name", ["ridge", "variables"])
def test_ordered_categories_with_one_that_has_no_rows(name):
    rng = np.random.default_rng(0)
    order = ["poor", "fair", "typical", "good", "excellent"]
    grades = np.append(rng.choice([0, 1, 3, 4], 300), 2)
    X = pd.DataFrame({"grade": np.array(order)[grades], "size": rng.uniform(1.0, 2.0, 301)})
    y = np.array([0.0, 2.0, 9.0, 1.0, 3.0])[grades] + X["size"] + 0.1 * rng.standard_normal(301)
    weights = np.append(np.ones(300), 0.0)  # the only typical one does not count
    every = pd.DataFrame({"grade": order, "size": 1.5})
    settings = {**PLAIN, "ordered": {"grade": order}, "refit": name}
    free = HKLRegressor(**settings).fit(X, y, weights)
    assert np.min(np.diff(free.predict(every))) < -0.5
    model = HKLRegressor(**settings, monotone={"grade": "increasing"}).fit(X, y, weights)
    f = model.predict(every)
    assert np.min(np.diff(f)) >= -ROUNDING
    assert f[-1] - f[0] > 1.0


def test_what_a_missing_value_contributes_is_free():
    X, y = waves()
    X[:60, 0] = np.nan
    y[:60] = -20.0
    model = HKLRegressor(**PLAIN, monotone={0: 1}).fit(X, y)
    check_direction(model.predict, X[60:], 0)
    missing = X[60:61].copy()
    missing[:, 0] = np.nan
    assert model.predict(missing) < model.predict(X[60:61]) - 5.0


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The chosen alpha is the smallest")
def test_cross_validation_compares_refits_only_and_keeps_directions(tmp_path):
    X, y = waves(120)
    X, few = X[:, :3], {"cv": 2, "alphas": [0.01, 0.001], "certify": "none"}
    for model in (
        HKLRegressorCV(monotone={0: 1}, **few).fit(X, y),
        HKLRegressorCV(monotone={0: 1}, refit=None, basis={}, **few).fit(X, y),
        HKLClassifierCV(monotone={0: 1}, refit="sparse", basis={}, **few).fit(X, y > 0.0),
    ):
        assert "None" not in set(map(str, model.cv_results_["refit"]))
        predict = getattr(model, "decision_function", model.predict)
        assert check_direction(predict, X, 0) > 0.5
        model.save(tmp_path / "model.hik")
        copy = hikernel.load(tmp_path / "model.hik")
        assert copy.monotone == {0: 1}
        assert copy.certificate_ == model.certificate_
        assert copy.certificate_.monotone == (("x0", 1),)
        again = getattr(copy, "decision_function", copy.predict)
        np.testing.assert_array_equal(again(X), predict(X))


def test_pipelines_clones_and_names():
    X, y = waves()
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = HKLRegressor(**PLAIN, monotone={"a": 1})
    assert clone(model).monotone == {"a": 1}
    pipe = make_pipeline(FunctionTransformer(), model).fit(frame, y)
    by_position = HKLRegressor(**PLAIN, monotone={0: "increasing"}).fit(frame, y)
    np.testing.assert_array_equal(pipe.predict(frame), by_position.predict(frame))


def test_the_words_say_which_problem_is_proven():
    X, y = waves()
    model = HKLRegressor(1e-3, monotone={0: 1, 3: -1}).fit(X, y)
    words = model.certificate_.explain()
    assert "on a graph without interactions of x0 and x3" in words
    assert "in which f rises with x0 and falls with x3, everywhere" in words
    assert (
        "optimal under these constraints, for its penalty, to a proven relative gap of at most"
        in words
    )
    assert "nothing is proven" not in words
    shown = " ".join(str(model).split())
    assert "f rises with x0 and falls with x3 in the refit (ridge)" in shown
    assert "which is optimal under these constraints." in shown
    data = model.summary()
    assert data["certificate"]["monotone"] == {"x0": 1, "x3": -1}
    assert 0.0 <= data["certificate"]["refit_gap"] < 1e-8
    unused = HKLRegressor(1.0, monotone={3: 1}).fit(X, X[:, 1])
    assert "it has no term of these columns" in unused.certificate_.explain()
    assert "f rises" not in str(unused)
    far = certificate_words(replace(model.certificate_, refit_gap=0.02))
    assert far.endswith("optimal under these constraints to a relative gap of 0.02.")
    assert unused.certificate_.refit_gap is None


def test_the_same_direction_as_gradient_boosting():
    """Both rise where the truth falls in between; ours is smooth and no worse."""
    X, y = waves(300)
    new, truth = waves(600, seed=1)
    model = HKLRegressor(1e-3, certify="none", monotone={0: 1}, refit="variables").fit(X, y)
    trees = HistGradientBoostingRegressor(monotonic_cst=[1, 0, 0, 0], max_iter=60, random_state=0)
    with threadpool_limits(1):
        trees.fit(X, y)
        for predict in (model.predict, trees.predict):
            check_direction(predict, X, 0)
        ours, theirs = (np.mean((m.predict(new) - truth) ** 2) for m in (model, trees))
    assert ours < theirs


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"monotone": {"weight": 1}}, "monotone names the column 'weight', which X does not have"),
        ({"monotone": {7: 1}}, "monotone names the column 7"),
        ({"monotone": {"age is missing": 1}}, "which X does not have"),
        ({"monotone": {"age": 0}}, r"monotone\['age'\] must be 1 or \"increasing\".*leave out"),
        ({"monotone": {"age": 2}}, "got 2"),
        ({"monotone": {"age": True}}, "got True"),
        ({"monotone": {"age": "up"}}, "got 'up'"),
        ({"monotone": [1, 0]}, "must be a mapping"),
        ({"monotone": "age"}, "must be a mapping"),
        ({"monotone": {"age": 1, 0: 1}}, "names the column 'age' twice"),
        ({"monotone": {"town": 1}}, r"'town', whose categories have no order.*ordered="),
        ({"monotone": {"age": 1}, "basis": "spline"}, "its basis 'spline'.*\"orthonormal\""),
        ({"monotone": {"age": 1}, "basis": {"age": "polynomial"}}, "its basis 'polynomial'"),
        ({"monotone": {"age": 1}, "basis": {"age": "categorical"}}, "its basis 'categorical'"),
        ({"monotone": {"age": 1}, "basis": {"size": Gaussian()}}, "monotone needs bases with"),
        ({"monotone": {"age": 1}, "loss": "quantile"}, "smooth loss, and 'quantile' has kinks"),
        (
            {"monotone": {"age": 1}, "interactions": [("age", "size")]},
            r"allows the group \('age', 'size'\), but 'age' has a direction",
        ),
        ({"monotone": {"age": 1}, "refit": "auto"}, "HKLRegressorCV"),
    ],
)
def test_bad_directions_are_refused_with_a_sentence(settings, sentence):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {"age": rng.uniform(20, 60, 40), "size": rng.normal(size=40), "town": list("abcd") * 10}
    )
    X.loc[3, "age"] = np.nan
    with pytest.raises(ValueError, match=sentence):
        HKLRegressor(**{**PLAIN, **settings}).fit(X, rng.normal(size=40))


def test_classes_graphs_and_paths_are_refused_with_a_sentence():
    X, y = waves(60)
    with pytest.raises(ValueError, match=r"more than two classes.*OneVsRestClassifier"):
        HKLClassifier(**PLAIN, monotone={0: 1}).fit(X, np.arange(60) % 3)
    with pytest.raises(ValueError, match="'quantile' has kinks"):
        HKLRegressorCV(monotone={0: 1}, loss="quantile").fit(X, y)
    graph = KernelGraph({"a": []}, features={"a": lambda rows: rows[:, 0]})
    with pytest.raises(ValueError, match="monotone names columns, which a graph= does not have"):
        HKLRegressor(**PLAIN, graph=graph, monotone={0: 1}).fit(X, y)
    with pytest.raises(TypeError, match="monotone"):
        hkl_path(X, y, monotone={0: 1})
    model = HKLRegressor(1e-12, certify="none", monotone={0: 1}, refit="unpenalised")
    with pytest.raises(ValueError, match=r"use refit=\"ridge\" or no monotone=\."):
        model.fit(X[:20], y[:20])


def test_an_empty_mapping_is_no_direction():
    X, y = waves()
    model = HKLRegressor(**PLAIN, monotone={}).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), HKLRegressor(**PLAIN).fit(X, y).predict(X))
    assert model.refit_ is None


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_no_way_out_of_cross_validation_loses_a_direction(monkeypatch):
    X, y = waves(120)
    late = HKLRegressorCV(monotone={0: 1}, time_budget=1e-9).fit(X, y)
    assert late.refit_ == "ridge"
    monkeypatch.setattr(comparison, "refit", lambda name, problem, model: None)
    settings = {"cv": 2, "alphas": [0.01], "basis": {}, "certify": "none"}
    with pytest.warns(UserWarning, match="chosen on the folds.*; the model has the refit 'ridge'"):
        model = HKLRegressorCV(**settings, monotone={0: 1}).fit(X, y)
    assert model.refit_ == "ridge"
    check_direction(model.predict, X, 0)
    with pytest.warns(UserWarning, match="keeps the coefficients of the convex problem"):
        assert HKLRegressorCV(**settings).fit(X, y).refit_ is None


@pytest.mark.parametrize("sign", [1, -1])
def test_the_risk_of_survival_models_has_directions(sign, tmp_path):
    X, y = waves(150)
    time = np.round(np.exp(-y), 1) + 0.1
    target = np.column_stack([np.minimum(time, 2.0), time < 2.0])
    model = HKLSurvival(**PLAIN, monotone={0: sign}).fit(X, target)
    moved = check_direction(model.predict, X, 0, sign)
    assert moved > 0.0 if sign == 1 else moved >= 0.0  # against its direction a column may be flat
    assert 0.0 <= model.certificate_.refit_gap < 1e-8
    assert model.certificate_.monotone == (("x0", sign),)
    model.save(tmp_path / "model.hik")
    assert hikernel.load(tmp_path / "model.hik").monotone == {0: sign}
    # One column alone, whose constraints all bind: its score is that of a constant.
    flat = HKLSurvival(**PLAIN, monotone={0: sign}).fit(X[:, :1], _against(X[:, 0], sign))
    assert np.ptp(flat.predict(X[:, :1])) == 0.0


def _against(x, sign):
    """Times at which the risk goes against a direction."""
    return np.column_stack([np.exp(sign * x), np.ones(len(x))])


@pytest.mark.parametrize("sign", [1, -1])
def test_a_hazard_rises_or_falls(sign):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (150, 2))
    time = rng.exponential(np.exp(-3.0 * X[:, 0] ** 2 - X[:, 0]))
    y = np.column_stack([np.minimum(time, 2.0), time < 2.0])
    model = HKLSurvival(0.001, degree=3, monotone={0: sign}).fit(X, y)
    free = HKLSurvival(0.001, degree=3, max_order=1, refit="ridge").fit(X, y)
    rows = np.column_stack([np.linspace(-1.5, 1.5, 201), np.zeros(201)])
    assert np.min(sign * np.diff(free.predict(rows))) < -1e-3
    assert np.min(sign * np.diff(model.predict(rows))) >= -1e-12
    assert model.refit_ == "ridge"
    assert model.certificate_.refit_gap < 1e-10
