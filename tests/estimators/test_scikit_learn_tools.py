"""The tools of scikit-learn that users put around an estimator."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.ensemble import VotingRegressor
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.feature_selection import SelectFromModel
from sklearn.frozen import FrozenEstimator
from sklearn.inspection import partial_dependence, permutation_importance
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import HalvingGridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from hikernel import HKLClassifier, HKLRegressor


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(-1, 1, size=(200, 4)), columns=["size", "age", "rooms", "noise"])
    X["town"] = rng.choice(["Oslo", "Rome"], 200)
    y = 3 * X["size"] + X["age"] * X["rooms"] + (X["town"] == "Rome") + 0.05 * rng.normal(size=200)
    return X, y


@pytest.fixture(scope="module")
def model(data):
    return HKLRegressor(0.002, certify="none").fit(*data)


def test_importances_are_shares_of_columns(model):
    importances = model.feature_importances_
    assert_allclose(importances.sum(), 1.0)
    assert importances.shape == (5,)
    assert np.argmax(importances) == 0
    expected = np.zeros(5)
    for variables, share in zip(model.effects_["variables"], model.effects_["share"], strict=True):
        for name in variables:
            expected[list(model.feature_names_in_).index(name)] += share / len(variables)
    assert_allclose(importances, expected, atol=1e-12)
    assert_allclose(importances[1], importances[2], rtol=0.2)  # they act as a product


def test_a_constant_model_has_no_importances():
    empty = HKLRegressor(0.1).fit(np.eye(6), np.ones(6))
    assert empty.feature_importances_.tolist() == [0.0] * 6
    assert empty.transform(np.eye(6)).shape == (6, 0)


def test_importances_select_columns(model):
    chosen = SelectFromModel(
        model, threshold=1e-3, prefit=True, importance_getter="feature_importances_"
    )
    kept = chosen.get_support()
    assert kept.tolist() == [True, True, True, False, True]


def test_permutation_importance_ranks_alike(data, model):
    X, y = data
    found = permutation_importance(model, X, y, n_repeats=3, random_state=0)
    assert found.importances_mean[3] < 0.01 < found.importances_mean[1]
    assert np.argmax(found.importances_mean) == 0


def test_partial_dependence_is_the_mean_of_predictions(data, model):
    X, _ = data
    found = partial_dependence(model, X, ["size"], grid_resolution=5, method="brute")
    for value, mean in zip(found["grid_values"][0], found["average"][0], strict=True):
        assert_allclose(mean, np.mean(model.predict(X.assign(size=value))), rtol=1e-10)
    by_town = partial_dependence(model, X, ["town"], categorical_features=["town"])
    assert sorted(by_town["grid_values"][0]) == ["Oslo", "Rome"]
    assert_allclose(np.ptp(by_town["average"]), 1.0, atol=0.15)


def test_effects_are_columns_for_the_next_step(data, model):
    X, y = data
    effects = model.transform(X)
    assert_allclose(effects.sum(axis=1) + model.intercept_, model.predict(X), atol=1e-12)
    assert model.get_feature_names_out().tolist() == model.effects_["effect"].tolist()
    assert_allclose(effects, model.effects(X).drop(columns="intercept"), atol=1e-12)
    with pytest.raises(ValueError, match="input_features"):
        model.get_feature_names_out(["other"] * 5)
    linear = make_pipeline(HKLRegressor(0.002, certify="none"), LinearRegression()).fit(X, y)
    assert linear.score(X, y) > model.score(X, y)  # the next step undoes the shrinkage


def test_set_output_names_the_effects(data):
    X, y = data
    model = HKLRegressor(0.002, certify="none").set_output(transform="pandas").fit(X, y)
    frame = model.transform(X)
    assert frame.columns.tolist() == model.effects_["effect"].tolist()
    assert frame.index.equals(X.index)
    scaled = make_pipeline(StandardScaler(), HKLRegressor(0.01, certify="none"))
    scaled.set_output(transform="pandas").fit(X.drop(columns="town"), y)
    assert scaled[-1].feature_names_in_.tolist() == ["size", "age", "rooms", "noise"]


def test_several_classes_have_columns_each():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(90, 2))
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    model = HKLClassifier(0.01, certify="none").fit(X, y)
    names = model.get_feature_names_out().tolist()
    assert names[0] == f"0: {model.effects_['effect'][0]}"
    effects = model.transform(X)
    assert effects.shape == (90, len(names))
    by_class = effects.reshape(90, 3, -1).sum(axis=2) + model.intercept_
    assert_allclose(by_class, model.decision_function(X), atol=1e-12)
    final = make_pipeline(model, LogisticRegression()).fit(X, y)
    assert final.score(X, y) > 0.9


@pytest.mark.slow
def test_halving_search_chooses_alpha(data):
    X, y = data
    search = HalvingGridSearchCV(
        HKLRegressor(certify="none"), {"alpha": [1.0, 0.1, 0.01]}, cv=3, random_state=0
    )
    search.fit(X, y)
    assert search.best_params_ == {"alpha": 0.01}


def test_a_frozen_model_stays_as_it_is(data, model):
    X, y = data
    frozen = FrozenEstimator(model)
    both = VotingRegressor([("frozen", frozen)]).fit(X[:20], y[:20])
    assert_allclose(both.predict(X), model.predict(X))
    assert frozen.fit(X[:20], y[:20]).n_features_in_ == 5
