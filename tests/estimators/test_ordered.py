"""Categories with an order: read from dtypes or named, with steps in their order."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from oracles.portable import evaluate

import hikernel
from hikernel import HKLRegressor
from hikernel.bases import Steps

ORDER = ["none", "low", "fair", "good", "very good", "top"]


def table(n=300, seed=0):
    rng = np.random.default_rng(seed)
    grade = rng.integers(0, 6, size=n)
    X = pd.DataFrame({"grade": np.array(ORDER)[grade], "x": rng.normal(size=n)})
    return X, 2.0 * (grade > 2) + 0.5 * X["x"] + 0.1 * rng.normal(size=n), grade


def ordered(X):
    return X.assign(grade=pd.Categorical(X["grade"], ORDER, ordered=True))


def as_polars(X):
    return pl.from_pandas(X).with_columns(pl.col("grade").cast(pl.Enum(ORDER)))


def as_arrow(X):
    return pa.Table.from_pandas(ordered(X), preserve_index=False)


@pytest.mark.parametrize("make", [ordered, as_polars, as_arrow])
def test_ordered_dtypes_are_read(make):
    X, y, _ = table()
    named = ["grade"] if make is as_polars else None  # an enumeration need not be an order
    model = HKLRegressor(ordered=named).fit(make(X), y)
    assert model.columns_.ordered == (0,)
    assert model.columns_.categories[0] == tuple(ORDER)
    assert model.bases_["basis"][0] == "categorical+steps"
    named = HKLRegressor(ordered={"grade": ORDER}).fit(X, y)
    np.testing.assert_array_equal(model.predict(make(X)), named.predict(X))


def test_a_step_in_the_order_is_one_term_with_a_readable_name():
    X, y, _ = table()
    model = HKLRegressor(0.05, ordered={"grade": ORDER}).fit(X, y)
    assert model.terms_["term"][0] == "grade > 'fair'"
    assert model.effects_["shape"][0] == "increasing"
    plain = HKLRegressor(0.05).fit(X, y)
    assert plain.effects_["shape"][0] == "by category"
    assert plain.columns_.ordered == ()


def test_the_order_helps_where_categories_are_rare():
    errors = {"ordered": [], "categorical": []}
    for seed in range(4):
        rng = np.random.default_rng(seed)
        grade = rng.integers(0, 20, size=100)
        X = pd.DataFrame({"grade": grade, "x": rng.normal(size=100)})
        y = 2.0 * (grade > 9) + rng.normal(size=100)
        new = pd.DataFrame({"grade": np.arange(20), "x": 0.0})
        for name, found in errors.items():
            f = HKLRegressor(refit="sparse", **{name: ["grade"]}).fit(X, y).predict(new)
            found.append(np.mean((f - 2.0 * (np.arange(20) > 9)) ** 2))
    assert np.mean(errors["ordered"]) < 0.5 * np.mean(errors["categorical"])


def test_texts_and_data_show_categories():
    X, y, _ = table()
    model = HKLRegressor(ordered={"grade": ORDER}).fit(X, y)
    text = model.formula()
    assert all(repr(label) in text for label in ORDER)
    assert "s(grade)" not in text
    summary = model.summary()
    axis = summary["effects"][0]["view"]["axes"][0]
    assert (axis["kind"], axis["values"]) == ("category", ORDER)
    for i in range(20):
        row = X.iloc[i].to_dict()
        np.testing.assert_allclose(
            evaluate(summary["function"], row), model.predict(X.iloc[[i]]), rtol=1e-9
        )


def test_unseen_and_missing_categories_have_no_place():
    X, y, _ = table()
    model = HKLRegressor(ordered={"grade": ORDER}).fit(
        X[X["grade"] != "none"], y[X["grade"] != "none"]
    )
    rows = pd.DataFrame({"grade": ["none", None], "x": [0.0, 0.0]})
    first, second = model.predict(rows)
    assert first == second


def test_numbers_have_their_own_order(tmp_path):
    X, y, grade = table()
    X["grade"] = grade
    model = HKLRegressor(ordered=["grade"]).fit(X, y)
    assert model.columns_.categories[0] == (0, 1, 2, 3, 4, 5)
    assert model.columns_.ordered == (0,)
    model.save(tmp_path / "model.hik")
    again = hikernel.load(tmp_path / "model.hik")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.ordered == ["grade"]
    assert again.columns_ == model.columns_


def test_a_file_keeps_the_order(tmp_path):
    X, y, _ = table()
    model = HKLRegressor(ordered={"grade": tuple(ORDER)}).fit(X, y)
    model.save(tmp_path / "model.hik")
    again = hikernel.load(tmp_path / "model.hik")
    assert list(again.ordered["grade"]) == ORDER
    assert again.terms_.equals(model.terms_)


def test_steps_alone_may_be_given():
    X, y, _ = table()
    model = HKLRegressor(ordered={"grade": ORDER}, basis={"grade": Steps(3)}).fit(X, y)
    assert model.bases_["basis"][0] == "steps"
    assert repr("fair") in model.formula()
    with pytest.raises(ValueError, match="no meaning"):
        HKLRegressor(basis={"grade": Steps(3)}).fit(X, y)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ("grade", "must be a mapping"),
        (["grade"], r"'grade', whose text .* has no order of its own"),
        ({"grade": ORDER[:-1]}, r"order of column 'grade' lacks 'top'"),
        ({"grade": [*ORDER, "low"]}, "has a value twice"),
        ({"grade": "low"}, "must list its categories"),
        ({"size": ORDER}, "ordered names the column 'size', which X does not have"),
        (3, "must be a mapping"),
    ],
)
def test_what_is_wrong_is_said(given, sentence):
    X, y, _ = table(50)
    with pytest.raises(ValueError, match=sentence):
        HKLRegressor(ordered=given).fit(X, y)


def test_reasons_tell_a_category_that_was_not_seen_from_none():
    X, y, _ = table()
    model = HKLRegressor(ordered={"grade": ORDER}).fit(X, y)
    rows = pd.DataFrame({"grade": ["superb", None], "x": [0.0, 0.0]})
    assert "grade = 'superb' (not seen in fit)" in str(model.explain(rows.iloc[[0]]))
    assert "grade is missing" in str(model.explain(rows.iloc[[1]]))
