"""summary(): every part is computed again, from the rows or from other parts of the model."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from oracles.portable import evaluate
from sklearn.model_selection import KFold

import hikernel
from hikernel import HKLClassifierCV, HKLRegressor, HKLRegressorCV
from hikernel.datasets import make_motifs
from hikernel.estimators.saving import estimator_from_state, estimator_state
from hikernel.explain import portable
from hikernel.graphs import SubstringGraph
from hikernel.persistence.content import ContentError
from hikernel.selection.record import PathRecord

ROOT = Path(__file__).parents[2]


def table(n=200, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "size": rng.uniform(10, 90, size=n),
            "age": rng.exponential(20.0, size=n).round(),
            "town": rng.choice(["Oslo", "Bergen", "Rome"], n, p=[0.5, 0.3, 0.2]),
            "new": rng.uniform(size=n) < 0.3,
            "rooms": np.where(rng.uniform(size=n) < 0.1, np.nan, rng.integers(1, 6, size=n)),
            "idle": rng.normal(size=n),
        }
    )
    y = 0.1 * X["size"] + 2.0 * (X["town"] == "Oslo") * X["rooms"].fillna(3.0) + 3.0 * X["new"]
    return X, (y + 0.3 * rng.standard_normal(n)).rename("price")


@pytest.fixture(scope="module")
def fitted():
    X, y = table()
    return X, y, HKLRegressorCV(cv=3, random_state=0).fit(X, y)


@pytest.fixture(scope="module")
def summary(fitted):
    return json.loads(json.dumps(fitted[2].summary(), allow_nan=False))


def test_the_document_names_every_key(summary):
    text = (ROOT / "docs" / "summary.md").read_text()
    known = re.findall(r"^\| `(\w+)` \|", text, flags=re.MULTILINE)
    assert known == list(summary)


def test_what_was_fitted(fitted, summary):
    X, _, model = fitted
    assert summary["target"] == "price"
    assert summary["task"] == "regression"
    assert summary["outputs"] == ["price"]
    assert summary["settings"]["cv"] == 3
    assert summary["alpha"] == model.alpha_
    assert summary["data"]["n_rows"] == len(X)
    assert summary["data"]["n_columns"] == 6


def test_columns_are_counted(fitted, summary):
    X, _, model = fitted
    columns = {column["name"]: column for column in summary["data"]["columns"]}
    assert list(columns) == [*X.columns, "rooms is missing"]
    used = {name for variables in model.effects_["variables"] for name in variables}
    assert {name for name, column in columns.items() if column["used"]} == used
    assert columns["rooms"]["n_missing"] == X["rooms"].isna().sum()
    shares = {one["label"]: one["share"] for one in columns["town"]["categories"]}
    expected = X["town"].value_counts(normalize=True)
    assert shares == pytest.approx(expected.to_dict())
    histogram = columns["size"]["histogram"]
    counts, _ = np.histogram(X["size"], histogram["edges"])
    np.testing.assert_allclose(histogram["shares"], counts / len(X), atol=1.01 / len(X))
    assert sum(histogram["shares"]) == pytest.approx(1.0)
    assert columns["size"]["quantiles"]["0.5"] == pytest.approx(X["size"].median(), abs=1.0)
    assert columns["size"]["min"] == pytest.approx(X["size"].min(), abs=1e-4)
    values = columns["rooms"]["values"]
    expected = X["rooms"].value_counts(normalize=True).sort_index()
    np.testing.assert_allclose(values, list(expected.items()))


def test_views_are_the_effects(summary):
    """The values on a grid are those of the terms of the effect, evaluated one by one."""
    function = summary["function"]
    orders = set()
    for i, effect in enumerate(summary["effects"]):
        own = [term for term in function["terms"] if term["effect"] == i]
        part = function | {"intercept": [0.0], "terms": own}
        axes = effect["view"]["axes"]
        values = np.array(effect["view"]["values"])
        assert values.shape == (1, *(len(axis["values"]) for axis in axes))
        orders.add(len(axes))
        for index in np.ndindex(values.shape[1:]):
            row = {a["variable"]: a["values"][j] for a, j in zip(axes, index, strict=True)}
            row = {name: _back(summary, name, value) for name, value in row.items()}
            if "rooms is missing" in row:
                row["rooms"] = None if row.pop("rooms is missing") == "yes" else 3.0
            np.testing.assert_allclose(evaluate(part, row), values[(0, *index)], atol=1e-8)
    assert orders >= {1, 2}


def _back(summary, name, value):
    kinds = {column["name"]: column["kind"] for column in summary["data"]["columns"]}
    return value == "True" if kinds[name] == "boolean" and value in ("True", "False") else value


def test_shares_add_up(fitted, summary):
    model = fitted[2]
    effects = summary["effects"]
    assert [effect["name"] for effect in effects] == model.effects_["effect"].tolist()
    assert sum(effect["share"] for effect in effects) == pytest.approx(1.0)
    for effect in effects:
        terms = [summary["terms"][k] for k in effect["terms"]]
        assert len(terms) == effect["n_terms"]
        assert sum(term["share"] for term in terms) == pytest.approx(effect["share"])
    for variable in summary["variables"]:
        of = [effect for effect in effects if variable["name"] in effect["variables"]]
        assert variable["share"] == pytest.approx(sum(effect["share"] for effect in of))


def test_the_hull_knows_its_parents(fitted, summary):
    model = fitted[2]
    nodes = sorted(model._selected.nodes, key=model.graph_.sort_key)
    names = dict(zip(model._selected.nodes, model.hull_["term"], strict=True))
    for node, one in zip(nodes, summary["hull"], strict=True):
        assert one["term"] == names[node]
        assert {nodes[k] for k in one["parents"]} == set(model.graph_.parents(node))


def test_the_path_has_the_errors_of_cross_validation(fitted, summary):
    model = fitted[2]
    results = model.cv_results_
    assert [point["alpha"] for point in summary["path"]] == model.path_.alphas.tolist()
    assert [point["n_terms"] for point in summary["path"]] == model.path_.table()["terms"].tolist()
    (chosen,) = [point for point in summary["path"] if point["chosen"]]
    assert chosen["cv"][str(model.refit_)]["mean"] == pytest.approx(-model.best_score_)
    for point in summary["path"]:
        for name, error in point["cv"].items():
            (i,) = np.flatnonzero((results["alpha"] == point["alpha"]) & (results["refit"] == name))
            folds = [results[f"split{k}_test_score"][i] for k in range(3)]
            assert error["mean"] == pytest.approx(-np.mean(folds))
            assert error["se"] == pytest.approx(np.std(folds, ddof=1) / np.sqrt(3))


def test_simpler_models_are_scored_on_the_same_folds():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    y = 3.0 * X[:, 0] - X[:, 1] + rng.normal(size=120)
    cv = list(KFold(4, shuffle=True, random_state=1).split(X))
    quality = HKLRegressorCV(cv=cv).fit(X, y).summary()["quality"]
    variance = np.var(y)
    errors = {"constant": [], "linear": []}
    for train, test in cv:
        errors["constant"].append(np.mean((y[test] - y[train].mean()) ** 2))
        A = np.column_stack([np.ones(len(train)), X[train]])
        b = np.linalg.lstsq(A, y[train], rcond=None)[0]
        errors["linear"].append(np.mean((y[test] - b[0] - X[test] @ b[1:]) ** 2))
    expected = {name: np.mean(e) / variance / 2.0 for name, e in errors.items()}
    assert quality["constant"] == pytest.approx(expected["constant"], rel=1e-9)
    assert quality["linear"] == pytest.approx(expected["linear"], rel=0.02)  # a ridge penalty
    assert quality["explained"] == pytest.approx(1 - quality["model"] / quality["constant"])
    assert "a linear model" in quality["words"]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The chosen alpha is the smallest")
def test_classes_and_a_named_score():
    X, y = table(120)
    quick = {"cv": 2, "n_alphas": 6, "eps": 1e-2, "refit": None, "certify": "none"}
    labels = np.where(y > y.median(), "dear", "cheap")
    summary = HKLClassifierCV(scoring="accuracy", **quick).fit(X, labels).summary()
    assert summary["classes"] == ["cheap", "dear"]
    quality = summary["quality"]
    assert quality["metric"] == "accuracy"
    assert quality["larger_is_better"]
    assert quality["constant"] == pytest.approx(0.5, abs=0.02)
    assert quality["constant"] < quality["linear"] <= 1.0
    assert quality["explained"] is None
    thirds = np.digitize(y, np.quantile(y, [0.3, 0.7]))
    summary = HKLClassifierCV(**quick).fit(X, thirds).summary()
    assert summary["outputs"] == ["0", "1", "2"]
    assert np.shape(summary["effects"][0]["view"]["values"])[0] == 3


def test_without_cross_validation():
    X, y = table()
    model = HKLRegressor(0.01).fit(X, y)
    summary = model.summary()
    assert summary["path"] == []
    assert summary["quality"]["kind"] == "training"
    assert summary["quality"]["explained"] == pytest.approx(model.score(X, y))
    assert HKLRegressor().fit(X, y).summary()["path"]


def test_a_loaded_model_has_the_same_summary(fitted, tmp_path):
    model = fitted[2]
    model.save(tmp_path / "model.hik")
    again = hikernel.load(tmp_path / "model.hik")
    assert again.summary() == model.summary()


def test_a_graph_without_columns():
    data = make_motifs(60, 20, {"GATT": 1.0}, noise=0.1, seed=0)
    model = HKLRegressor(0.05, graph=SubstringGraph(4, weight_base=1.0)).fit(data.X, data.y)
    summary = json.loads(json.dumps(model.summary(), allow_nan=False))
    assert not summary["data"]["has_columns"]
    assert summary["function"] is None
    assert summary["effects"][0]["name"] == model.terms_["term"][0]
    assert [effect["view"] for effect in summary["effects"]] == [None] * len(summary["effects"])
    places = {one["term"]: i for i, one in enumerate(summary["hull"])}
    parents = summary["hull"][places["GATT"]]["parents"] if "GATT" in places else []
    assert {summary["hull"][k]["term"] for k in parents} <= {"GAT", "ATT"}


def test_gross_rows_do_not_stretch_the_axis():
    X, y = table(400)
    X.loc[7, "size"] = 1e6
    summary = HKLRegressor().fit(X, y).summary()
    (view,) = [e["view"] for e in summary["effects"] if e["variables"] == ["size"]]
    assert max(view["axes"][0]["values"]) < 100.0


def test_weights_count_as_repeated_rows():
    from hikernel.selection.record import column_statistics

    rng = np.random.default_rng(0)
    x = np.append(rng.normal(size=60), np.nan)
    w = rng.integers(0, 4, size=61)
    weighted = column_statistics(x, w.astype(float))
    repeated = column_statistics(np.repeat(x, w), np.ones(w.sum()))
    np.testing.assert_allclose(weighted.shares, repeated.shares)
    assert weighted.quantiles == repeated.quantiles
    assert weighted.edges == repeated.edges
    assert weighted.mean == pytest.approx(repeated.mean)
    assert column_statistics(np.array([np.nan]), np.ones(1)) is None


@pytest.mark.parametrize("scale", [1e-300, 1e300, 1e307])
def test_columns_of_any_size_have_statistics(scale):
    from hikernel.selection.record import column_statistics

    x = scale * np.linspace(-10.0, 10.0, 50)
    found = column_statistics(x, np.ones(50))
    assert np.all(np.isfinite([found.low, found.high, found.mean, *found.edges, *found.quantiles]))
    assert sum(found.shares) == pytest.approx(1.0)


def test_a_model_of_noise_is_called_one():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    quality = HKLRegressorCV(cv=3).fit(X, rng.normal(size=80)).summary()["quality"]
    assert quality["explained"] <= 0.01
    assert "hardly better than a constant" in quality["words"]
    signal = HKLRegressorCV(cv=3).fit(X, X[:, 0] + rng.normal(size=80)).summary()["quality"]
    assert "hardly" not in signal["words"]


@pytest.mark.filterwarnings("ignore:The chosen alpha is the smallest")
def test_a_score_that_refuses_a_simpler_model_leaves_the_fit_alone():
    X = np.random.default_rng(0).uniform(0.1, 2.1, size=(200, 2))
    y = X[:, 0] ** 4 + 0.05  # a line predicts negative means, which this score refuses
    name = "neg_mean_gamma_deviance"
    model = HKLRegressorCV(scoring=name, alphas=[1e-5, 1e-6], refit=None, certify="none").fit(X, y)
    quality = model.summary()["quality"]
    assert quality["linear"] is None
    assert quality["constant"] < quality["model"]


def test_the_linear_model_has_an_effect_for_every_category():
    rng = np.random.default_rng(0)
    town = rng.integers(0, 60, size=600)
    X = pd.DataFrame({"town": np.char.add("t", town.astype(str)), "x": rng.normal(size=600)})
    y = rng.normal(size=60)[town] + 0.3 * X["x"] + 0.2 * rng.normal(size=600)
    quality = HKLRegressorCV(cv=2, certify="none").fit(X, y).summary()["quality"]
    assert quality["linear_explained"] > 0.9


def test_slices_show_the_most_frequent_categories():
    rng = np.random.default_rng(0)
    shares = [0.01, 0.01, 0.01, 0.47, 0.5]
    u, v, c = *rng.normal(size=(2, 400)), rng.choice(list("abcyz"), 400, p=shares)
    X = pd.DataFrame({"u": u, "v": v, "c": c})
    summary = HKLRegressor(1e-3, certify="none").fit(X, 3 * u * v * (c == "z")).summary()
    (view,) = [effect["view"] for effect in summary["effects"] if effect["order"] == 3]
    assert {"y", "z"} <= set(view["axes"][2]["values"])


def test_settings_do_not_list_rows():
    X, y = table()
    folds = [(np.arange(100), np.arange(100, 200))]
    model = HKLRegressorCV(cv=folds, certify="none").fit(X, y)
    assert model.summary()["settings"]["cv"] == "list of 1"


def test_a_function_of_very_many_numbers_is_not_written_down(fitted, monkeypatch):
    monkeypatch.setattr(portable, "_MOST_NUMBERS", 5)
    summary = fitted[2].summary()
    assert summary["function"] is None
    assert "more than 5 numbers" in summary["function_note"]


@pytest.mark.parametrize(
    "change",
    [
        {"explained": 10**400},
        {"explained": float("nan")},
        {"n_rows": 10**5000},
        {"missing": (0,)},
        {"path": (PathRecord(10**400, 1, 1, 0.5, ()),)},
        {"path": (PathRecord(0.1, 10**5000, 1, 0.5, ()),)},
        {"path": (PathRecord(0.1, 1, 1, 0.5, (("x", float("inf")),)),)},
        {"statistics": {99: None}},
    ],
)
def test_an_impossible_record_is_refused(fitted, change):
    state = estimator_state(fitted[2])
    record = state["record"]
    if "statistics" in change:
        change = {"statistics": {99: next(iter(record.statistics.values()))}}
    state["record"] = replace(record, **change)
    with pytest.raises(ContentError, match=r"record|path|statistics"):
        estimator_from_state("HKLRegressorCV", state)
