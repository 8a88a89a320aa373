"""f as plain data gives the predictions of the model, for every basis, with a naive evaluator."""

import json
import warnings
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from oracles.portable import evaluate
from oracles.portable_bases import BASES, UNBOUNDED

from hikernel import HKLClassifier, HKLRegressor, HKLRegressorCV
from hikernel.bases import OrthonormalPolynomial


def table(n=150, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "a": rng.normal(size=n),
            "heavy": rng.lognormal(sigma=1.5, size=n),
            "mostly": np.where(rng.uniform(size=n) < 0.8, 0.0, rng.uniform(size=n)),
            "town": rng.choice(["Oslo", "Bergen", "Rome"], n),
            "flag": rng.uniform(size=n) < 0.4,
            "some": np.where(rng.uniform(size=n) < 0.2, np.nan, rng.uniform(2000, 2020, size=n)),
        }
    )
    y = X["a"] + np.log(X["heavy"]) * (X["town"] == "Oslo") + (X["a"] > 0.3) + X["flag"]
    y = y + X["some"].isna() + 0.1 * X["some"].fillna(2000) + X["mostly"] * X["a"]
    return X, y + 0.1 * rng.standard_normal(n)


def other_rows(X, seed=1):
    """Rows of the table and beyond: mixed, missing, unseen, far out."""
    rng = np.random.default_rng(seed)
    rows = X.apply(lambda column: column.sample(frac=1.0, random_state=seed).to_numpy()).copy()
    rows = rows.iloc[:40].reset_index(drop=True)
    numbers = [name for name in ("a", "heavy", "mostly", "some") if name in rows]
    for name in numbers:
        rows.loc[rng.choice(40, 4, replace=False), name] = np.nan
        rows.loc[rng.choice(40, 4, replace=False), name] = 1e4
    if "town" in rows:
        rows.loc[:3, "town"] = "Paris"
        rows.loc[4:6, "town"] = None
    return rows


def agrees(model, rows, raw=None):
    function = json.loads(json.dumps(model.summary()["function"], allow_nan=False))
    names = list(rows.columns)
    expected = (model.predict if raw is None else raw)(rows)
    for row, f in zip(rows.itertuples(index=False), np.atleast_1d(expected), strict=True):
        plain = {n: None if pd.isna(v) else v for n, v in zip(names, row, strict=True)}
        np.testing.assert_allclose(evaluate(function, plain), np.atleast_1d(f), rtol=1e-9)


@pytest.mark.parametrize("name", BASES)
def test_predictions_follow_from_plain_data(name):
    X, y = table()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = HKLRegressor(3e-3, basis=BASES[name], certify="none", max_kernels=60).fit(X, y)
        assert model.terms_["order"].max() >= 1
        rows = other_rows(X)
        if name in UNBOUNDED:
            rows = rows.replace(1e4, 3.0)
        agrees(model, rows)


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
    agrees(model, rows)


@pytest.mark.slow
def test_after_a_refit_on_variables():
    X, y = table()
    model = HKLRegressorCV(refit="variables", cv=2, certify="none").fit(X, y)
    agrees(model, other_rows(X))


def test_classes_and_links():
    X, y = table()
    labels = np.where(y > np.median(y), "high", "low")
    model = HKLClassifier(3e-3, certify="none").fit(X, labels)
    agrees(model, other_rows(X), model.decision_function)
    assert model.summary()["link"]["kind"] == "logistic"
    thirds = np.digitize(y, np.quantile(y, [0.33, 0.66]))
    model = HKLClassifier(1e-2, certify="none").fit(X, thirds)
    agrees(model, other_rows(X), model.decision_function)
    assert model.summary()["link"]["kind"] == "softmax"


def test_all_steps_of_a_variable_are_one_lookup():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.uniform(size=300), "z": rng.uniform(size=300)})
    y = np.floor(4 * X["x"]) % 3 + 0.01 * rng.standard_normal(300)
    model = HKLRegressor(1e-3, basis="steps").fit(X, y)
    assert len(model.terms_) > 2
    function = model.summary()["function"]
    (term,) = [t for t in function["terms"] if len(t["factors"]) == 1 and t["effect"] == 0]
    cuts = function["variables"][term["factors"][0][0]]["levels"]["cuts"]
    assert term["shape"] == [len(cuts) + 1]


@dataclass(frozen=True)
class Own(OrthonormalPolynomial):
    """A basis that is not one of the package."""

    def _fit(self, column, scaler):
        fitted = super()._fit(column, scaler)
        return OwnFitted(
            *(getattr(fitted, name) for name in fitted.__dataclass_fields__ if name != "absent")
        )


class OwnFitted(type(OrthonormalPolynomial(1).fit([0.0, 1.0]))):
    pass


def test_a_basis_of_the_user_is_said_not_to_be_portable():
    X, y = table()
    model = HKLRegressor(0.01, basis=Own(2), certify="none").fit(X[["a", "heavy"]], y)
    summary = model.summary()
    assert summary["function"] is None
    assert "Own" in summary["function_note"]
    assert summary["effects"][0]["view"] is not None
