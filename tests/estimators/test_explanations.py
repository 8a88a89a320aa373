"""What fitted estimators say about themselves, from data frames on."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
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
    assert set(effects.columns) == {"intercept", *model.terms_["term"]}
    np.testing.assert_allclose(effects.sum(axis=1), model.predict(X), rtol=1e-12)


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
    for part in ("z(age)", "z(age)*z(income)", "for red", "where"):
        assert part in text


def test_shares_of_variables_add_up(table):
    X, y = table
    model = HKLRegressor(0.003).fit(X, y)
    found = model.anova(X)
    shares = found.variables_frame(model.columns_.names).set_index("variable")
    assert found.frame(model.columns_.names)["share"].sum() == pytest.approx(1.0)
    assert shares.loc["income", "total_share"] > shares.loc["color", "total_share"] > 0.0


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
