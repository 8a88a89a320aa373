"""Small fitted models of every task, and rows to ask them about."""

from __future__ import annotations

import functools
import warnings

import numpy as np
import pandas as pd

from hikernel import HKLClassifier, HKLRegressor, HKLRegressorCV


def table(n=160, seed=0):
    """Numbers with and without tails and jumps, categories, a boolean, missing values."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "size": rng.uniform(10, 90, n),
            "income": rng.lognormal(sigma=1.5, size=n),
            "town": rng.choice(["Oslo", "Bergen", "Rome"], n, p=[0.5, 0.3, 0.2]),
            "new": rng.uniform(size=n) < 0.4,
            "rooms": np.where(rng.uniform(size=n) < 0.2, np.nan, rng.integers(1, 6, n)),
            "kind": rng.choice(["flat", "house", None], n, p=[0.5, 0.3, 0.2]),
        }
    )
    grades = ["poor", "fair", "good"]
    X["grade"] = pd.Categorical(rng.choice(grades, n), grades, ordered=True)
    y = 0.05 * X["size"] + np.log(X["income"]) * (X["town"] == "Oslo") + (X["size"] > 60)
    y = y + X["rooms"].fillna(0.0) + X["kind"].isna() + 0.5 * X["new"] + (X["grade"] != "poor")
    return X, (y + 0.1 * rng.standard_normal(n)).rename("price")


def rows_to_ask(n=30, seed=1):
    """Rows of the table, mixed, with further missing values, unseen categories and far numbers."""
    rng = np.random.default_rng(seed)
    X, _ = table(n, seed)
    X["size"] = np.where(rng.uniform(size=n) < 0.2, 1e3, X["size"])
    X["town"] = np.where(rng.uniform(size=n) < 0.2, "Paris", X["town"])
    X["grade"] = np.where(rng.uniform(size=n) < 0.2, "grand", X["grade"].astype(object))
    return X


@functools.cache
def regression():
    """Steps beside smooth functions; a path and cross-validated errors."""
    X, y = table()
    return _fit(
        HKLRegressorCV(cv=2, n_alphas=12, basis="auto+steps", degree=3, random_state=0), X, y
    )


@functools.cache
def two_classes():
    X, y = table()
    labels = pd.Series(np.where(y > y.median(), "dear", "cheap"), name="verdict")
    return _fit(HKLClassifier(3e-3), X, labels)


@functools.cache
def three_classes():
    X, y = table()
    labels = pd.Series(np.digitize(y, y.quantile([0.3, 0.7])), name="third")
    return _fit(HKLClassifier(4e-3, max_kernels=60), X, labels)


@functools.cache
def counts():
    X, y = table()
    visits = np.random.default_rng(3).poisson(np.exp(0.25 * (y - y.mean())))
    return _fit(HKLRegressor(1e-2, loss="poisson", max_kernels=40), X, visits)


MODELS = {
    "regression": regression,
    "two classes": two_classes,
    "three classes": three_classes,
    "counts": counts,
}


def answers(model, rows):
    """What the model says: predictions of numbers, probabilities of classes; one list per row."""
    said = model.predict_proba(rows) if hasattr(model, "classes_") else model.predict(rows)
    return np.atleast_2d(said.T).T.tolist()


def as_inputs(function, rows):
    """The rows as the page has them: numbers, positions of categories, None where missing."""
    return [
        [_entry(one, row[one["name"]]) for one in function["inputs"]] for _, row in rows.iterrows()
    ]


def _entry(one, value):
    if value is None or pd.isna(value):
        return None
    if one["kind"] == "category":
        return one["labels"].index(str(value)) if str(value) in one["labels"] else -1
    return float(value)


def _fit(model, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the models are small, not proven
        return model.fit(X, y)
