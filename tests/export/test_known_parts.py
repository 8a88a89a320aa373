"""What the rows of a fit had beside X, and the baseline hazard, are no part of an exported model:
the file says so, and what to do."""

import numpy as np
import pandas as pd
import pytest
from export.tables import assert_close, assert_same_function
from oracles.json_schema import errors

from hikernel import HKLClassifier, HKLRegressor, HKLSurvival
from hikernel.export import json_document, json_schema

YEARS = 'years\n*/ \'); DROP TABLE data; -- \\ """'


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"age": rng.uniform(20, 70, 80), "town": rng.choice(["Oslo", "Rome"], 80)})
    X.loc[:5, "age"] = np.nan
    return X, rng


def texts(model):
    """Return what each format says, without the breaks of its lines."""
    found = [model.export(format=name) for name in ("python", "sql", "json")]
    return [" ".join(text.replace("\n-- ", " ").split()) for text in found]


def test_an_exposure_is_named_and_left_to_the_reader(rows):
    X, rng = rows
    years = pd.Series(rng.uniform(0.1, 2.0, 80), name=YEARS)
    y = rng.gamma(3.0, 1.0 + (X["town"] == "Rome")) * years.to_numpy()
    model = HKLRegressor(0.01, loss="gamma", certify="none", max_order=1)
    summary = model.fit(X, y, exposure=years).summary()
    for text in texts(model):
        assert "predictions are for an exposure of 1, and are to be multiplied by that of" in text
    document = json_document(summary)
    assert (document["exposure"], document["offset"]) == (YEARS, None)
    assert errors(json_schema(), document) == []
    found = assert_same_function(model, X, np.log(model.predict(X)))
    assert_close(found["prediction"] * years, model.predict(X, exposure=years))


def test_an_offset_is_named_and_left_to_the_reader(rows):
    X, rng = rows
    known = rng.normal(size=80)
    y = rng.logistic(size=80) < known + (X["town"] == "Rome")
    model = HKLClassifier(0.01, certify="none", max_order=1).fit(X, y, offset=known)
    for text in texts(model):
        assert "the fit had an offset (offset), which is no part of this f" in text
    document = json_document(model.summary())
    assert (document["exposure"], document["offset"]) == (None, "offset")
    found = assert_same_function(model, X, model.decision_function(X))
    assert_close(found["f"] + known, model.decision_function(X, offset=known))


def test_without_them_nothing_is_said(rows):
    X, rng = rows
    model = HKLRegressor(0.01, certify="none", max_order=1).fit(X, rng.normal(size=80))
    assert not any("the fit had" in text for text in texts(model))


def test_a_risk_score_is_called_one(rows):
    X, rng = rows
    y = pd.DataFrame({"months": rng.exponential(size=80), "died": rng.random(80) < 0.7})
    model = HKLSurvival(0.01, certify="none", max_order=1).fit(X, y)
    assert model.export(format="python").startswith('"""The risk score of months: a model')
    for text in texts(model):
        assert "the hazard is exp(f) times the baseline hazard" in text
    assert_same_function(model, X, model.predict(X))
