"""The reasons for one prediction: they add up, name the values of the row, and read as text."""

from __future__ import annotations

import json
import pickle
import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from oracles.graph_cases import NUMBERS, rows_of
from oracles.graph_cases import X as GRAPH_ROWS
from oracles.graph_cases import fitted as graph_model

import hikernel
from hikernel import HKLClassifier, HKLRegressor
from hikernel.graphs import SubstringGraph


def table(n=300):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "age": rng.integers(20, 60, n),
            "income": rng.lognormal(3, 0.5, n),
            "color": rng.choice(["red", "green", "it's"], n),
            "owner": rng.random(n) < 0.4,
        }
    )
    X.loc[X.index[::7], "income"] = np.nan
    gone = X["income"].isna()
    f = 0.1 * X["age"] + 2 * (X["color"] == "red") + X["owner"] * (X["age"] > 40) + gone
    f = f + 0.02 * X["age"] * X["income"].fillna(20) * (X["color"] == "green")
    return X, pd.Series(f + 0.1 * rng.standard_normal(n), name="cost")


@pytest.fixture(scope="module")
def model():
    return HKLRegressor(1e-4).fit(*table())


@pytest.fixture(scope="module")
def three():
    X, y = table()
    labels = np.array(["low", "mid", "high"])[np.digitize(y, y.quantile([0.3, 0.7]))]
    return HKLClassifier(0.003).fit(X, labels)


def numbers_of(text):
    """The signed summands of a text, and the total below the line."""
    parts, total = re.split(r"\n  -+\n", text.partition("\n\n")[2])
    return [float(line.split()[0]) for line in parts.splitlines()], float(total.split()[0])


@pytest.mark.parametrize("row", [0, 1, 7, 30])
def test_reasons_add_up_and_are_the_effects(model, row):
    X, _ = table()
    one = X.iloc[[row]]
    found = model.explain(one)
    f = model.predict(one)[0]
    assert found.prediction == pytest.approx(f)
    assert found.f == (pytest.approx(f),)
    assert found.probabilities is None
    assert found.classes is None
    assert found.target == "cost"
    assert found.intercept == (model.intercept_,)
    effects = model.effects(one).iloc[0]
    assert {reason.effect for reason in found.reasons} == set(effects.index) - {"intercept"}
    for reason in found.reasons:
        assert reason.contributions == (pytest.approx(effects[reason.effect], abs=1e-12),)
    sizes = [abs(reason.contributions[0]) for reason in found.reasons]
    assert sizes == sorted(sizes, reverse=True)
    frame = found.frame()
    assert list(frame.columns) == ["effect", "values", "contribution"]
    assert frame["effect"][0] == "intercept"
    assert frame["contribution"].sum() == pytest.approx(f)
    summands, total = numbers_of(str(found))
    assert total == pytest.approx(f, abs=0.006)
    assert sum(summands) == pytest.approx(total, abs=0.006 * len(summands))


def test_the_text_has_words_and_numbers(model):
    X, _ = table()
    text = str(model.explain(X.iloc[[3]]))
    assert text == repr(model.explain(X.iloc[[3]]))
    first, second = text.splitlines()[:2]
    assert re.fullmatch(r"Prediction of cost: [\d.]+", first)
    count = len(model.effects_)
    assert second == f"f is the sum of the intercept and {count} effects, the largest first:"
    for line in text.splitlines()[4:-3]:
        number = float(line.split()[0])
        assert ("raises f: " in line) == (number > 0 and "more effects" not in line)
        assert ("lowers f: " in line) == (number < 0 and "more effects" not in line)


def values_of(model, row):
    return {reason.effect: reason.values for reason in model.explain(row).reasons}


def test_the_values_of_a_row_are_told(model):
    X, _ = table()
    row = X.iloc[[1]].assign(age=35, income=12.5, color="it's", owner=True)
    values = values_of(model, row)
    assert values["age"] == "age = 35"
    assert values["color"] == """color = "it's\""""
    assert values["age * owner"] == "age = 35, owner = True"
    assert values["income is missing"] == "income is not missing"
    pair = next(name for name in values if set(name.split(" * ")) >= {"income", "color"})
    assert "income = 12.5" in values[pair]
    assert 'color = "it\'s"' in values[pair]


def test_values_that_are_missing_or_new_change_nothing(model):
    X, _ = table()
    row = X.iloc[[1]].assign(income=np.nan, color="blue")
    found = {reason.effect: reason for reason in model.explain(row).reasons}
    assert found["color"].values == "color = 'blue' (not seen in fit)"
    assert found["color"].contributions == (0.0,)
    assert found["income is missing"].values == "income is missing"
    assert found["income is missing"].contributions[0] > 0.0
    name = next(name for name in found if "income" in name.split(" * "))
    assert "income is missing" in found[name].values
    assert found[name].contributions == (0.0,)
    text = str(model.explain(row))
    assert "does not change f: " in text or len(found) > 15


def test_every_form_of_a_row_is_explained_alike(model):
    X, _ = table()
    row = X.iloc[[5]]
    expected = str(model.explain(row))
    assert str(model.explain(pl.DataFrame(row.to_dict("list")))) == expected
    assert str(model.explain(pa.Table.from_pandas(row, preserve_index=False))) == expected


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (lambda X: X, r"exactly one row, as a table such as X.iloc\[\[0\]\].*X has 300 rows"),
        (lambda X: X.iloc[:2], "X has 2 rows; effects"),
        (lambda X: X.iloc[0], "X has one dimension"),
        (lambda X: X.iloc[0].tolist(), "X has one dimension"),
        (lambda X: X.iloc[:0], "0 sample"),
    ],
)
def test_one_row_is_needed(model, rows, message):
    with pytest.raises(ValueError, match=message):
        model.explain(rows(table()[0]))


def test_many_effects_are_cut_but_still_add_up():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 25))
    y = X @ np.linspace(0.5, 2.0, 25) + 0.1 * rng.standard_normal(400)
    model = HKLRegressor(1e-3, degree=1, max_order=1).fit(X, y)
    found = model.explain(X[:1])
    assert len(found.reasons) == 25
    text = str(found)
    assert "10 more effects" in text
    assert len(text.splitlines()) < 25
    summands, total = numbers_of(text)
    assert len(summands) == 17
    assert sum(summands) == pytest.approx(total, abs=0.05)
    assert total == pytest.approx(model.predict(X[:1])[0], abs=0.01)


def test_two_classes_have_one_f_and_probabilities():
    X, y = table()
    model = HKLClassifier(0.003).fit(X, np.where(y > y.median(), "yes", "no"))
    for row in (X.iloc[[0]], X.iloc[[1]], X.iloc[[2]]):
        found = model.explain(row)
        assert found.prediction == model.predict(row)[0]
        assert list(found.probabilities) == ["no", "yes"]
        np.testing.assert_allclose(list(found.probabilities.values()), model.predict_proba(row)[0])
        total = found.intercept[0] + sum(reason.contributions[0] for reason in found.reasons)
        assert total == pytest.approx(model.decision_function(row)[0])
        text = str(found)
        assert text.startswith(f"Prediction: '{found.prediction}', probability ")
        assert text.endswith("\nP(y = 'yes') = 1 / (1 + exp(-f))")
    with pytest.raises(ValueError, match="this model has a single f; leave it out"):
        model.explain(X.iloc[[0]], classes="yes")
    margin = HKLClassifier(0.003, loss="hinge").fit(X, np.where(y > y.median(), "yes", "no"))
    found = margin.explain(X.iloc[[0]])
    assert found.probabilities is None
    assert "probability" not in str(found)


def test_several_classes(three):
    X, _ = table()
    row = X.iloc[[4]]
    f = dict(zip(three.classes_, three.decision_function(row)[0], strict=True))
    found = three.explain(row)
    assert found.classes == (found.prediction,) == (three.predict(row)[0],)
    assert found.f == (pytest.approx(f[found.prediction]),)
    assert f"f['{found.prediction}'] is the sum of" in str(found)
    summands, total = numbers_of(str(found))
    assert sum(summands) == pytest.approx(total, abs=0.02)

    other = three.explain(row, classes="low")
    assert other.classes == ("low",)
    assert other.f == (pytest.approx(f["low"]),)
    every = three.explain(row, classes=three.classes_)
    assert every.classes == ("high", "low", "mid")
    frame = every.frame()
    assert list(frame.columns) == ["effect", "values", "high", "low", "mid"]
    for label in every.classes:
        assert frame[label].sum() == pytest.approx(f[label])
    lines = str(every).split("\n\n")[1].splitlines()
    assert lines[0].split() == ["'high'", "'low'", "'mid'"]
    assert [float(number) for number in lines[-1].split()[1:]] == pytest.approx(
        [f[label] for label in every.classes], abs=1e-2
    )
    with pytest.raises(ValueError, match=r"classes has 'lower', which is no class; the classes"):
        three.explain(row, classes=["low", "lower"])
    with pytest.raises(ValueError, match="classes is empty"):
        three.explain(row, classes=[])


@pytest.mark.parametrize("classes", [None, ["low", "mid"]])
def test_it_is_plain_data(three, classes):
    X, _ = table()
    found = three.explain(X.iloc[[4]], classes=classes)
    data = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert data["prediction"] == found.prediction
    assert sum(data["probabilities"].values()) == pytest.approx(1.0)
    for label in found.classes:
        total = data["intercept"][label] + sum(e["contribution"][label] for e in data["effects"])
        assert total == pytest.approx(data["f"][label])
    assert [effect["effect"] for effect in data["effects"]] == [r.effect for r in found.reasons]
    assert pickle.loads(pickle.dumps(found)) == found


def test_labels_that_are_numbers_are_no_predicted_numbers():
    X, y = table()
    model = HKLClassifier(0.003).fit(X, np.where(y > y.median(), 1.0, 0.0))
    found = model.explain(X.iloc[[0]])
    assert re.match(r"Prediction: [01]\.0, probability ", str(found))
    assert json.loads(json.dumps(found.to_dict()))["prediction"] == found.prediction
    model = HKLClassifier(0.003).fit(X, y > y.median())
    assert model.explain(X.iloc[[0]]).to_dict()["prediction"] in (True, False)


def test_counts_are_predicted_by_the_exponential():
    X, y = table()
    model = HKLRegressor(0.003, loss="poisson").fit(X, np.round(y - y.min()))
    found = model.explain(X.iloc[[0]])
    assert found.prediction == pytest.approx(model.predict(X.iloc[[0]])[0])
    assert np.exp(found.f[0]) == pytest.approx(found.prediction)
    assert str(found).endswith("\nmean of y = exp(f)")


def test_models_from_files_explain_the_same(model, three, tmp_path):
    X, _ = table()
    for fitted in (model, three):
        fitted.save(tmp_path / "model.hik")
        again = hikernel.load(tmp_path / "model.hik")
        for row in (X.iloc[[0]], X.iloc[[8]]):
            assert again.explain(row).reasons == fitted.explain(row).reasons
            assert again.explain(row).prediction == fitted.explain(row).prediction


def test_refits_are_what_is_explained():
    X, y = table()
    model = HKLRegressor(0.01, refit="ridge").fit(X, y)
    assert model.explain(X.iloc[[0]]).f == (pytest.approx(model.predict(X.iloc[[0]])[0]),)


@pytest.mark.parametrize("name", ["squared_error", "log_loss", "multinomial"])
@pytest.mark.parametrize("kind", ["features", "kernels", "grams"])
def test_graphs_are_explained_by_their_nodes(kind, name):
    model = graph_model(kind, name)
    _, new = rows_of(kind)
    one = new[:1]
    found = model.explain(one)
    assert {reason.effect for reason in found.reasons} == set(model.terms_["term"])
    assert {reason.values for reason in found.reasons} == {""}
    f = np.ravel(model._raw_predict(one))
    total = found.intercept[0] + sum(reason.contributions[0] for reason in found.reasons)
    assert any(total == pytest.approx(value) for value in f)
    assert found.f == (pytest.approx(total),)
    assert str(found).count("\n") > 3
    with pytest.raises(ValueError, match="exactly one row"):
        model.explain(new)


def test_strings_are_explained_by_substrings():
    words = ["abba", "baab", "aaab", "bbba"] * 10
    model = HKLRegressor(0.01, graph=SubstringGraph(2)).fit(words, [w.count("bb") for w in words])
    found = model.explain(["abba"])
    assert found.prediction == pytest.approx(model.predict(["abba"])[0])
    assert "bb" in {reason.effect for reason in found.reasons}
    with pytest.raises(ValueError, match="X has 2 rows"):
        model.explain(["abba", "b"])


def test_mappings_of_matrices_are_rows_too():
    model = graph_model("features")
    data = model._design.source
    rows = {node: np.asarray(data.block(node, GRAPH_ROWS[:1])) for node in model.nodes_}
    assert model.explain(rows).f == (pytest.approx(model.predict(GRAPH_ROWS[:1])[0]),)
    assert len(NUMBERS) == len(GRAPH_ROWS)


def test_a_model_without_effects_has_its_intercept_as_reason():
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(60, 3)), rng.normal(size=60)
    model = HKLRegressor(1e3).fit(X, y)
    assert len(model.effects_) == 0
    found = model.explain(X[:1])
    assert found.reasons == ()
    assert found.prediction == pytest.approx(float(model.intercept_))
    assert "intercept" in str(found)
    classes = HKLClassifier(1e3).fit(X, np.arange(60) % 3)
    assert classes.explain(X[:1]).reasons == ()
