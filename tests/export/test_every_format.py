"""Exported models predict what the model predicts, in every format and for every basis."""

import copy
import json
import math
import warnings

import numpy as np
import pandas as pd
import pytest
from export.tables import (
    AGE,
    FLAG,
    OSLO,
    TOWN,
    assert_close,
    assert_same_function,
    other_rows,
    plain,
    run_python,
    run_sqlite,
    table,
)
from oracles import portable
from oracles.portable_bases import BASES, UNBOUNDED

from hikernel import HKLClassifier, HKLRegressor
from hikernel.export import python_source, sql_source
from hikernel.export.sql_text import DIALECTS


def fitted(basis="auto", columns=None, **options):
    X, y = table()
    X = X if columns is None else X[columns]
    options = {"certify": "none", "max_kernels": 60} | options
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return HKLRegressor(3e-3, basis=basis, **options).fit(X, y), X


@pytest.mark.parametrize("name", BASES)
def test_every_basis_and_every_level(name):
    model, X = fitted(BASES[name])
    rows = other_rows(X, far=3.0 if name in UNBOUNDED else 1e4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert model.effects_["order"].max() >= 1
        summary = model.summary()
        assert_same_function(summary, rows, model.predict(rows))
        summary = with_every_level(summary)
        expected = [portable.evaluate(summary["function"], row)[0] for row in plain(rows)]
        assert_close(run_python(python_source(summary))["predict"](rows), expected)
        result = run_sqlite(sql_source(summary, keys=["key"]), rows)
        assert_close(result["prediction"], expected)


def with_every_level(summary):
    """A summary whose f has all levels of all variables: alone, and with the next variable."""
    rng = np.random.default_rng(0)
    summary = copy.deepcopy(summary)
    function = summary["function"]
    widths = []
    for one in function["variables"]:
        levels, inner = one["levels"], one["levels"].get("parts", [])
        starts = levels.get("starts", [])
        found = {
            start + i: len(width)
            for start, part in zip(starts, inner, strict=True)
            for i, width in enumerate(portable.KINDS[part["kind"]](part, 0.3)[1:])
        }
        if not inner:
            found = dict(enumerate(map(len, portable.KINDS[levels["kind"]](levels, 0.3))))
            found = found if "absent" in levels else {k: w for k, w in found.items() if k}
        widths.append(found)
    function["terms"] = []
    effects = {}
    for v, found in enumerate(widths):
        other = (v + 1) % len(widths)
        for level, width in found.items():
            factors = {v: level} | ({other: max(widths[other])} if len(widths) > 1 else {})
            for chosen in ({v: level}, factors):
                pairs = sorted(chosen.items())
                shape = [widths[m][one] for m, one in pairs]
                key = tuple(m for m, one in pairs if one)
                effects.setdefault(key, len(effects))
                coef = (rng.normal(size=math.prod(shape)) / width).tolist()
                one = {"factors": [[*p] for p in pairs], "shape": shape, "coef": [coef]}
                function["terms"].append(one | {"effect": effects[key]})
    empty = {"variables": [], "share": 0.0, "shape": ""}
    summary["effects"] = [{"name": f"effect {i}"} | empty for i in range(len(effects))]
    return summary


def test_steps_and_categories_meet_their_cuts():
    model, X = fitted("steps", ["count", AGE, TOWN])
    cuts = [v["levels"].get("cuts") for v in model.summary()["function"]["variables"]]
    assert any(cuts)
    rows = X.assign(count=np.resize([c for found in cuts if found for c in found], len(X)))
    assert_same_function(model, rows, model.predict(rows))


def test_categories_that_are_no_text():
    X, y = table()
    rng = np.random.default_rng(3)
    X = X[[AGE]].assign(
        code=rng.choice([1, 2, 10, 200], len(X)),
        half=rng.choice([0.5, 1.0, 7.25], len(X)),
        bit=rng.uniform(size=len(X)) < 0.5,
    )
    y = y + (X["code"] == 10) + 2.0 * (X["half"] == 0.5) * X["bit"]
    names = ["code", "half", "bit"]
    model = HKLRegressor(1e-3, categorical=names, certify="none").fit(X, y)
    used = {v for vs in model.effects_["variables"] for v in vs}
    assert set(names) <= used
    rows = X.copy()
    rows["code"] = rows["code"].astype(float)
    rows.loc[:5, "code"] = 99
    rows.loc[6:9, "code"] = np.nan
    rows.loc[9:12, "half"] = np.nan
    assert_same_function(model, rows, model.predict(rows))
    module = run_python(model.export(format="python"))
    with pytest.raises(ValueError, match="pass it as text, or as numbers"):
        module["predict"](rows.assign(code="1"))


def test_an_unknown_category_of_an_order_is_missing():
    X, y = table()
    order = ["small", "middle", "large", "huge"]
    rng = np.random.default_rng(2)
    places = rng.integers(0, 4, len(X))
    X["grade"] = pd.Categorical([order[i] for i in places], order, ordered=True)
    X.loc[rng.choice(len(X), 20, replace=False), "grade"] = None
    model = HKLRegressor(1e-3, certify="none").fit(X, y + places + 2.0 * X["grade"].isna())
    rows = other_rows(X)
    rows["grade"] = rows["grade"].astype(object)
    rows.loc[:9, "grade"] = "giant"
    assert {"grade", "grade is missing"} <= {v for vs in model.effects_["variables"] for v in vs}
    summary = model.summary()
    assert_same_function(summary, rows, model.predict(rows))
    # A category that the steps of an order know, and its indicators do not.
    summary = with_every_level(summary)
    tables = [
        part
        for one in summary["function"]["variables"]
        for part in one["levels"].get("parts", [])
        if "codes" in part
    ]
    assert tables
    for part in tables:
        part["codes"][1] = -1.0
    expected = [portable.evaluate(summary["function"], row)[0] for row in plain(rows)]
    assert_same_function(summary, rows, np.array(expected))


@pytest.mark.parametrize("labels", [["n'o", "-- yes"], [3, 7], [False, True], [1.0, 2.0]])
def test_two_classes(labels):
    X, y = table()
    truth = np.array(labels)[(y > np.median(y)).astype(int)]
    model = HKLClassifier(3e-3, certify="none").fit(X, truth)
    check_classes(model, other_rows(X))


@pytest.mark.parametrize("labels", [["low", "mid'dle", "high"], [30, 1, 2]])
def test_several_classes(labels):
    X, y = table()
    truth = np.array(labels)[np.digitize(y, np.quantile(y, [0.33, 0.66]))]
    model = HKLClassifier(1e-2, certify="none").fit(X, truth)
    check_classes(model, other_rows(X))


def check_classes(model, rows):
    result = assert_same_function(model, rows, model.decision_function(rows))
    assert (
        result["prediction"].astype(model.classes_.dtype).tolist() == model.predict(rows).tolist()
    )
    names = [f"probability_{label}" for label in model.classes_]
    assert_close(result[names].to_numpy(), model.predict_proba(rows))
    module = run_python(model.export(format="python"))
    assert_close(module["predict_proba"](rows), model.predict_proba(rows))
    labels = module["predict"](rows)
    assert labels.dtype.kind == model.classes_.dtype.kind
    assert labels.tolist() == model.predict(rows).tolist()
    assert json.loads(model.export(format="json"))["classes"] == model.classes_.tolist()


@pytest.mark.parametrize("n_classes", [2, 3])
def test_hinge_losses_have_no_probabilities(n_classes):
    X, y = table()
    cuts = np.quantile(y, np.arange(1, n_classes) / n_classes)
    model = HKLClassifier(1e-2, loss="squared_hinge", certify="none").fit(X, np.digitize(y, cuts))
    rows = other_rows(X)
    result = assert_same_function(model, rows, model.decision_function(rows))
    module = run_python(model.export(format="python"))
    assert "predict_proba" not in module
    assert not any(name.startswith("probability") for name in result)
    assert module["predict"](rows).tolist() == model.predict(rows).tolist()
    assert result["prediction"].tolist() == model.predict(rows).tolist()


def test_counts_have_a_link():
    X, y = table()
    counts = np.random.default_rng(0).poisson(np.exp(0.3 * y - 0.3 * y.mean()))
    model = HKLRegressor(1e-3, loss="poisson", certify="none").fit(X, counts)
    rows = other_rows(X)
    module = run_python(model.export(format="python"))
    assert_close(module["predict"](rows), model.predict(rows))
    result = run_sqlite(model.export(format="sql", keys=["key"]), rows)
    assert_close(result["prediction"], model.predict(rows))
    assert_close(np.exp(result["f"]), model.predict(rows))


def test_a_mean_that_overflows_is_refused():
    x = np.linspace(0, 1, 80)[:, None]
    model = HKLRegressor(1e-3, loss="poisson", basis="polynomial", certify="none")
    model.fit(x, np.round(np.exp(3 * x[:, 0])))
    far = [[0.5], [1e6]]
    with pytest.raises(ValueError, match="Row 1"):
        model.predict(far)
    with pytest.raises(ValueError, match="Row 1 lies far outside"):
        run_python(model.export(format="python"))["predict"](far)
    frame = pd.DataFrame(far, columns=["x0"])
    result = run_sqlite(model.export(format="sql", keys=["key"]), frame)
    assert result["prediction"].isna().tolist() == [False, True]


def test_after_a_refit_on_variables():
    X, y = table()
    X = X[[AGE, TOWN]]
    model = HKLRegressor(3e-2, refit="variables", certify="none").fit(X, y)
    assert model.refit_ == "variables"
    rows = other_rows(X)
    assert_same_function(model, rows, model.predict(rows))


def test_columns_without_names_and_with_numbers_as_names():
    X, y = table()
    numbers = X[[AGE, "heavy", "count"]].to_numpy(float)
    model = HKLRegressor(3e-3, certify="none").fit(numbers, y)
    expected = model.predict(numbers)
    module = run_python(model.export(format="python"))
    assert_close(module["predict"](numbers), expected)
    assert_close(module["predict"](numbers.tolist()), expected)
    frame = pd.DataFrame(numbers, columns=["x0", "x1", "x2"])
    assert_same_function(model, frame, expected)
    named = pd.DataFrame(numbers, columns=[5, 3, 1])
    model = HKLRegressor(3e-3, certify="none").fit(named, y)
    assert_same_function(model, named, model.predict(named))


def test_a_thousand_knots_and_thousands_of_cells():
    """As large as bases get, written by hand: SQLite reads it, and no expression is too deep."""
    rng = np.random.default_rng(0)
    labels = {"who": [f"n°{i}" for i in range(350)], "where": [f"at {i}" for i in range(30)]}
    common = {"kind": "category", "values": None, "ordered": False, "zone": None}
    inputs = [{"column": 0, "name": "x", "labels": None} | common | {"kind": "number"}]
    inputs += [
        {"column": 1 + i, "name": n, "labels": labels[n]} | common for i, n in enumerate(labels)
    ]
    line = {"kind": "interpolation", "center": 1.0, "scale": 2.0}
    line |= {"knots": np.sort(rng.normal(size=1024)).tolist()}
    line |= {"heights": rng.normal(size=(1024, 3)).tolist()}
    tables = [{"kind": "lookup", "table": "category", "codes": [*range(n)]} for n in (350, 30)]
    terms = [([[0, 1]], [1]), ([[0, 2]], [1]), ([[0, 3], [1, 1]], [1, 350])]
    terms += [([[1, 1], [2, 1]], [350, 30])]
    summary = fitted(columns=[AGE, "heavy", "count"])[0].summary()
    summary["effects"] = summary["effects"][:1] * 4
    summary["function"] = {
        "intercept": [0.5],
        "inputs": inputs,
        "variables": [
            {"input": i, "missing": False, "part": None, "levels": levels}
            for i, levels in enumerate([line, *tables])
        ],
        "terms": [
            {"factors": f, "shape": s, "coef": [rng.normal(size=math.prod(s)).tolist()]}
            | {"effect": max(0, i - 1)}
            for i, (f, s) in enumerate(terms)
        ],
    }
    rows = pd.DataFrame(
        {
            "x": [*(1.0 + 2.0 * rng.normal(size=25)), 99.0, -99.0, 1.0 + 2.0 * line["knots"][7]],
            "who": rng.choice(labels["who"], 28),
            "where": rng.choice(labels["where"], 28),
        }
    )
    rows.loc[[3, 4], "x"] = np.nan
    rows.loc[[4, 5], "who"] = None
    rows.loc[6, "where"] = "nowhere"
    expected = [portable.evaluate(summary["function"], row)[0] for row in plain(rows)]
    assert_same_function(summary, rows, np.array(expected))


def test_many_terms_are_no_deep_sum():
    """SQLite takes expressions up to a depth of 1,000, and a plain sum is as deep as it is long."""
    summary = fitted(columns=[AGE])[0].summary()
    (term,) = [t for t in summary["function"]["terms"] if t["factors"] == [[0, 1]]]
    rows = table()[0][[AGE]].head(5)
    level = np.array([portable.evaluate(summary["function"], row)[0] for row in plain(rows)])
    base = sum(summary["function"]["intercept"])
    once = summary["function"]["terms"]
    summary["function"]["terms"] = once * 3000
    assert term in once
    result = run_sqlite(sql_source(summary, keys=["key"]), rows)
    assert_close(result["prediction"] / 3000, (base + 3000 * (level - base)) / 3000)


def test_a_model_without_effects():
    X, y = table()
    model = HKLRegressor(1e3, certify="none").fit(X, y)
    assert len(model.effects_) == 0
    assert_same_function(model, X, model.predict(X))
    module = run_python(model.export(format="python"))
    assert_close(module["predict"]({AGE: [1.0, 2.0]}), model.predict(X)[:2])


def test_effects_sum_to_f():
    model, X = fitted()
    rows = other_rows(X)
    module = run_python(model.export(format="python"))
    found = pd.DataFrame(module["effects"](rows))
    expected = model.effects(rows)
    assert list(found) == list(expected)[1:]
    assert_close(found.to_numpy(), expected.to_numpy()[:, 1:])


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_dialect_in_duckdb(dialect):
    duckdb = pytest.importorskip("duckdb")
    X, y = table()
    labels = np.array(["a", "b", "c"])[np.digitize(y, np.quantile(y, [0.33, 0.66]))]
    model = HKLClassifier(1e-2, basis="auto+steps", certify="none").fit(X, labels)
    rows = other_rows(X).assign(key=np.arange(24))
    rows[FLAG] = rows[FLAG].astype("boolean")
    with duckdb.connect() as connection:
        connection.register("frame", rows)
        connection.execute("CREATE TABLE data AS SELECT * FROM frame")
        result = connection.execute(model.export(format="sql", keys=["key"], dialect=dialect)).df()
    result = result.sort_values("key")
    expected = model.predict_proba(rows.drop(columns="key"))
    assert_close(result[[f"probability_{c}" for c in "abc"]].to_numpy(), expected)
    assert result["prediction"].tolist() == model.predict(rows.drop(columns="key")).tolist()


def test_categories_are_compared_as_they_are():
    model, X = fitted(columns=[AGE, TOWN])
    rows = X.head(4).assign(**{TOWN: [OSLO, OSLO.upper(), OSLO + " ", ""]})
    result = assert_same_function(model, rows, model.predict(rows))
    assert len(result) == 4
