"""What fitted estimators say about themselves, from data frames on."""

from __future__ import annotations

import pickle
import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from explain.reader import evaluate_text
from sklearn.exceptions import NotFittedError

import hikernel
from hikernel import HKLClassifier, HKLRegressor


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "age": rng.uniform(20, 60, 300),
            "income": rng.lognormal(3, 0.5, 300),
            "color": rng.choice(["red", "green", "blue"], 300),
        },
        index=np.arange(1000, 1300),
    )
    X.loc[X.index[::7], "income"] = np.nan
    signal = 0.1 * X["age"] + 2 * (X["color"] == "red") + 0.02 * X["age"] * X["income"].fillna(20)
    return X, signal + rng.standard_normal(300)


def test_effects_add_up_and_keep_the_index(table):
    X, y = table
    model = HKLRegressor(0.003).fit(X, y)
    effects = model.effects(X)
    assert list(effects.index) == list(X.index)
    assert list(effects.columns) == ["intercept", *model.effects_["effect"]]
    np.testing.assert_allclose(effects.sum(axis=1), model.predict(X), rtol=1e-12)
    terms = model.effects(X, by="term")
    assert list(terms.columns) == ["intercept", *model.terms_["term"]]
    assert len(terms.columns) > len(effects.columns)
    np.testing.assert_allclose(terms.sum(axis=1), model.predict(X), rtol=1e-12)


def test_effects_of_several_classes_add_up(table):
    X, y = table
    labels = np.where(y < y.quantile(0.3), "low", np.where(y > y.quantile(0.7), "high", "mid"))
    model = HKLClassifier(0.01).fit(X, labels)
    effects = model.effects(X)
    for k, label in enumerate(model.classes_):
        np.testing.assert_allclose(
            effects[label].sum(axis=1), model.decision_function(X)[:, k], rtol=1e-9, atol=1e-12
        )
    assert model.formula().count("\n") > 3


def test_formula_names_columns_and_categories(table):
    X, y = table
    text = HKLRegressor(0.003).fit(X, y).formula()
    for part in ("z(age)", "z(age)*z(income)", "+ f(color) ", "f(color): 'red': ", "where"):
        assert part in text
    assert "  an effect is 0 where one of its variables is missing or a category that is" in text
    shares = [float(share) for share in re.findall(r" ([\d.]+) %", text)]
    assert shares == sorted(shares, reverse=True)
    assert " more effects, left out" in HKLRegressor(0.003).fit(X, y).formula(max_terms=2)


def test_the_formula_holds_where_values_are_missing(table):
    X, y = table
    model = HKLRegressor(0.003).fit(X, y)
    rows, names = model.columns_.transform(X), list(model.columns_.names)
    labels = {2: dict(enumerate(model.columns_.categories[2]))}
    values = evaluate_text(model.formula(digits=15), rows, names, labels)["f"]
    assert X["income"].isna().any()
    np.testing.assert_allclose(values, model.predict(X), rtol=1e-9)


def test_how_predictions_follow_from_the_formula(table):
    X, y = table
    X = X[["age", "color"]]
    counts = HKLRegressor(0.01, loss="poisson").fit(X, np.round(y - y.min()))
    assert last_line(counts) == "mean of y = exp(f)"
    f = counts.effects(X).sum(axis=1)
    np.testing.assert_allclose(np.exp(f), counts.predict(X), rtol=1e-9)
    assert " = exp" not in HKLRegressor(0.01, loss="huber").fit(X, y).formula()

    high = np.where(y > y.median(), "yes", "no")
    model = HKLClassifier(0.01).fit(X, high)
    assert last_line(model) == "P(y = 'yes') = 1 / (1 + exp(-f))"
    f = model.effects(X).sum(axis=1)
    np.testing.assert_allclose(1 / (1 + np.exp(-f)), model.predict_proba(X)[:, 1], rtol=1e-9)
    margin = HKLClassifier(0.01, loss="hinge").fit(X, high)
    assert last_line(margin) == "y = 'yes' where f > 0, 'no' elsewhere"
    f = margin.effects(X).sum(axis=1)
    np.testing.assert_array_equal(np.where(f > 0, "yes", "no"), margin.predict(X))

    three = np.digitize(y, y.quantile([0.3, 0.7]))
    model = HKLClassifier(0.01).fit(X, three)
    assert re.search(r"\n +share +0 +1 +2\n", model.formula())
    assert last_line(model) == "P(y = k) is proportional to exp(f[k])"
    model = HKLClassifier(0.01, loss="squared_hinge").fit(X, three)
    assert last_line(model) == "y = the class k with the largest f[k]"


def last_line(model):
    return model.formula().splitlines()[-1]


def test_effects_of_lists_and_of_other_frames(table):
    X, y = table
    X = X[["age", "income"]].fillna(20.0)
    model = HKLRegressor(0.01).fit(X.to_numpy(), y)
    expected = model.effects(X.to_numpy())
    assert list(expected.index) == list(range(300))
    pd.testing.assert_frame_equal(model.effects(X.to_numpy().tolist()), expected)
    named = HKLRegressor(0.01).fit(X, y)
    pd.testing.assert_frame_equal(
        named.effects(pl.DataFrame(X.to_dict("list"))), named.effects(X).reset_index(drop=True)
    )


def test_columns_that_read_like_terms_keep_their_own_effects():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(-1, 1, (200, 4)), columns=["intercept", "b", "c", "b * c"])
    y = X["intercept"] + 2 * X["b"] * X["c"] + X["b * c"]
    model = HKLRegressor(0.01, degree=1).fit(X, y)
    effects = model.effects(X)
    assert effects.columns.is_unique
    assert list(effects.columns) == ["intercept", *model.effects_["effect"]]
    assert {"'intercept'", "b * c", "'b * c'"} <= set(effects.columns)
    assert np.corrcoef(effects["'b * c'"], X["b * c"])[0, 1] > 0.999
    centred = X - X.mean()
    assert np.corrcoef(effects["b * c"], centred["b"] * centred["c"])[0, 1] > 0.999


def test_shares_of_variables_add_up(table):
    X, y = table
    model = HKLRegressor(0.003).fit(X, y)
    found = model.anova(X)
    shares = found.variables_frame().set_index("variable")
    assert list(shares.index) == ["age", "income", "color", "income is missing"]
    assert found.frame()["share"].sum() == pytest.approx(1.0)
    assert ("age", "income") in set(found.frame()["variables"])
    assert shares.loc["income", "total_share"] > shares.loc["color", "total_share"] > 0.0


def test_the_anova_reads_the_tables_of_the_model(table):
    X, y = table
    model = HKLRegressor(0.003).fit(X, y)
    found = model.anova(X)
    expected = model.predict(X)
    model.fit(X[["color"]], y)  # no business of what was found before
    np.testing.assert_allclose(found.effects(X).sum(axis=1), expected, rtol=1e-9)
    assert list(found.effects(X).columns) == ["mean", *found.frame()["effect"]]
    assert list(found.effects(X).index) == list(X.index)
    again = pickle.loads(pickle.dumps(found))
    pd.testing.assert_frame_equal(again.effects(X), found.effects(X))
    with pytest.raises(ValueError, match="feature names"):
        found.effects(X.rename(columns={"age": "Age"}))


@pytest.mark.parametrize("loss", ["log_loss", "hinge"])
def test_models_survive_their_file_to_the_last_bit(table, tmp_path, loss):
    X, y = table
    model = HKLClassifier(0.01, loss=loss).fit(X, y > y.median())
    model.save(tmp_path / "model.hik")
    copy = hikernel.load(tmp_path / "model.hik")
    np.testing.assert_array_equal(copy.decision_function(X), model.decision_function(X))
    pd.testing.assert_frame_equal(copy.effects(X), model.effects(X))
    assert copy.formula() == model.formula()


def test_nothing_is_explained_before_the_fit():
    model = HKLRegressor()
    for ask in (model.formula, lambda: model.effects([[1.0]]), lambda: model.terms_):
        with pytest.raises(NotFittedError):
            ask()
