"""Data frames, categories and missing values, from the table to the prediction."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.model_selection import GridSearchCV, cross_val_score

from hikernel import HKLClassifier, HKLClassifierCV, HKLRegressor, HKLRegressorCV, hkl_path
from hikernel.bases import Categorical, OrthonormalPolynomial, Polynomial
from hikernel.columns import ColumnTable

pytestmark = pytest.mark.slow

TOWNS = np.array(["Bergen", "Oslo", "Tromsø"])
EFFECTS = np.array([-2.0, 0.0, 3.0])


def columns(n=300, seed=0, missing=True):
    """Town, a product with it, and whether the income is missing decide y."""
    rng = np.random.default_rng(seed)
    age, income, noise = rng.uniform(-1, 1, (3, n))
    town = rng.integers(0, 3, n)
    owner = rng.random(n) < 0.3
    gone = (rng.random(n) < 0.2) & missing
    y = EFFECTS[town] + 2.0 * age * (town == 2) + income * ~gone + 2.0 * gone + owner
    table = {
        "age": age,
        "income": np.where(gone, np.nan, income),
        "town": TOWNS[town],
        "owner": owner,
        "noise": noise,
    }
    return table, y + 0.1 * rng.standard_normal(n)


def as_pandas(table):
    return pd.DataFrame(table)


def as_polars(table):
    return pl.DataFrame(table)


def as_arrow(table):
    return pa.table({name: pa.array(values) for name, values in table.items()})


def as_array(table):
    return pd.DataFrame(table).to_numpy(dtype=object)


def as_lists(table):
    return as_array(table).tolist()


FORMS = [as_pandas, as_polars, as_arrow, as_array, as_lists]
ESTIMATORS = [
    HKLRegressor(0.001),
    HKLClassifier(0.001),
    HKLRegressorCV(n_alphas=5, cv=2),
    HKLClassifierCV(n_alphas=5, cv=2),
]
every_estimator = pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)


def target(estimator, y):
    return y if "Regressor" in type(estimator).__name__ else np.where(y > 0.5, "high", "low")


@every_estimator
def test_every_form_of_a_table_gives_the_same_model(estimator):
    table, y = columns(150)
    y = target(estimator, y)
    expected = estimator.fit(as_pandas(table), y).predict(as_pandas(table))
    for form in FORMS[1:]:
        model = pickle.loads(pickle.dumps(estimator)).fit(form(table), y)
        np.testing.assert_array_equal(model.predict(form(table)), expected)
        assert model.n_features_in_ == 5
        assert hasattr(model, "feature_names_in_") == (form in FORMS[:3])
        assert isinstance(model.columns_, ColumnTable)


def test_targets_and_weights_may_be_columns_of_frames():
    table, y = columns(100)
    weights = np.linspace(0.5, 1.0, 100)
    expected = HKLRegressor().fit(as_pandas(table), y, weights).coef_
    for series in (pd.Series, pl.Series, lambda v: pa.chunked_array([v])):
        model = HKLRegressor().fit(as_polars(table), series(y), series(weights))
        np.testing.assert_array_equal(model.coef_, expected)


def test_names_become_terms_and_the_result_is_certified():
    table, y = columns()
    model = HKLRegressor(0.001).fit(as_pandas(table), y)
    assert model.certificate_.certified
    assert {"town", "age * town", "income", "income is missing", "owner"} <= set(
        model.hull_["term"]
    )
    assert model.feature_names_in_.tolist() == list(table)
    assert model.columns_.names == (*table, "income is missing")
    assert model.score(as_pandas(table), y) > 0.98
    town = model.hull_.set_index("term").loc["town"]
    assert town["width"] == 2
    squares = HKLRegressor(0.0005).fit(
        pd.DataFrame({"age": table["age"], "income": table["noise"]}),
        table["age"] ** 2 * table["noise"],
    )
    assert "age^2 * income" in set(squares.hull_["term"])


def test_the_choices_are_shown_with_their_reasons():
    table, y = columns()
    table["one"] = np.ones(len(y))
    model = HKLRegressor().fit(as_pandas(table), y)
    choices = model.bases_
    assert list(choices.columns) == ["column", "kind", "basis", "levels", "why"]
    assert choices.to_numpy().tolist() == [
        ["age", "number", "orthonormal", 4, "number: polynomials"],
        ["income", "number", "orthonormal", 4, "number: polynomials"],
        ["town", "category", "categorical", 1, "text: one block of centred indicators"],
        ["owner", "boolean", "rank", 1, "0/1: one bounded level"],
        ["noise", "number", "orthonormal", 4, "number: polynomials"],
        ["one", "number", "rank", 0, "constant: left out"],
        ["income is missing", "boolean", "rank", 1, "marks missing values: one bounded level"],
    ]
    assert [basis.max_level for basis in model._design.bases] == choices["levels"].tolist()


def test_an_unseen_category_gets_the_average_effect():
    table, y = columns()
    model = HKLRegressor(0.001).fit(as_pandas(table), y)
    rows = pd.DataFrame({name: values[:4] for name, values in table.items()})
    rows["town"] = [*TOWNS, "Bodø"]
    rows.loc[:, ["age", "income", "owner", "noise"]] = [[0.0, 0.0, False, 0.0]] * 4
    predicted = model.predict(rows)
    shares = np.array([np.mean(table["town"] == town) for town in TOWNS])
    assert predicted[3] == pytest.approx(shares @ predicted[:3], abs=1e-9)
    missing = rows.iloc[3:].assign(town=[None])
    np.testing.assert_allclose(model.predict(missing), predicted[3:])


def test_a_value_missing_at_predict_only_contributes_nothing():
    table, y = columns(missing=False)
    model = HKLRegressor(0.001).fit(as_pandas(table), y)
    assert model.columns_.names == tuple(table)
    rows = pd.DataFrame({name: values[:1] for name, values in table.items()})
    rows["noise"] = 0.0
    without = model.predict(rows.assign(age=np.nan))
    kept = [i for i, node in enumerate(model.nodes_) if all(m != 0 for m, _ in node)]
    blocks = np.split(model.coef_, np.cumsum(model.hull_["width"])[:-1])
    matrix = model.columns_.transform(rows)
    levels = [basis.transform(matrix[:, m]) for m, basis in enumerate(model._design.bases)]
    expected = model.intercept_
    for i in kept:
        feature = np.ones(1)
        for m, j in model.nodes_[i]:
            feature = np.outer(feature, levels[m][j][0]).ravel()
        expected += feature @ blocks[i]
    np.testing.assert_allclose(without, expected)


def test_numbers_can_be_named_as_categories():
    table, y = columns()
    codes = np.searchsorted(TOWNS, table.pop("town"))
    frame = as_pandas({**table, "code": codes})
    model = HKLRegressor(0.001, categorical=["code"]).fit(frame, y)
    assert model.bases_.set_index("column").loc["code"].tolist()[:2] == [
        "category",
        "categorical",
    ]
    assert model.bases_["why"][4] == "category: one block of centred indicators"
    positions = HKLRegressor(0.001, categorical=(4,)).fit(frame, y)
    np.testing.assert_array_equal(positions.coef_, model.coef_)
    with pytest.raises(ValueError, match="categorical names the column 'town'"):
        HKLRegressor(categorical=["town"]).fit(frame, y)


def test_a_mapping_overrides_by_name_and_position():
    table, y = columns()
    spec = {
        "age": Polynomial(2),
        1: "spline",
        "town": Categorical(bound=1.0),
        "owner": "categorical",
        "noise": "auto",
        "income is missing": "orthonormal",
    }
    model = HKLRegressor(basis=spec, degree=3).fit(as_pandas(table), y)
    choices = model.bases_.set_index("column")
    assert choices["basis"].tolist() == [
        "polynomial",
        "spline",
        "categorical",
        "categorical",
        "orthonormal",
        "orthonormal",
    ]
    assert (choices["why"] == "given by basis=").tolist() == [True] * 4 + [False, True]
    assert choices["levels"]["noise"] == 3


@pytest.mark.parametrize("basis", ["spline", Polynomial(2)])
def test_a_basis_for_all_is_one_for_the_numbers(basis):
    table, y = columns()
    model = HKLRegressor(basis=basis).fit(as_pandas(table), y)
    name = basis if isinstance(basis, str) else basis.name
    expected = [name, name, "categorical", "rank", name, "rank"]
    assert model.bases_["basis"].tolist() == expected
    assert model.bases_["why"][0] == "given by basis="


@pytest.mark.parametrize("basis", ["spline", OrthonormalPolynomial(2)])
def test_a_basis_of_numbers_on_text_is_refused(basis):
    table, y = columns()
    with pytest.raises(ValueError, match=r"'town' holds categories \('Bergen'.*no meaning"):
        HKLRegressor(basis={"town": basis}).fit(as_pandas(table), y)


def test_very_many_categories_are_found_from_frequent_to_rare():
    rng = np.random.default_rng(0)
    shares = 1.0 / np.arange(1, 151)
    town = rng.choice(150, size=1500, p=shares / shares.sum())
    effect = rng.normal(size=150)
    frame = pd.DataFrame({"x": rng.normal(size=1500), "town": np.char.add("t", town.astype(str))})
    y = frame["x"] ** 2 + effect[town] + 0.3 * rng.normal(size=1500)
    model = HKLRegressor().fit(frame[:1000], y[:1000])
    assert set(model.effects_["effect"][:2]) == {"x", "town"}
    assert model._design.bases[1].widths[1:3] == (16, 32)
    assert "from frequent to rare" in model.bases_["why"][1]
    assert model.score(frame[1000:], y[1000:]) > 0.85
    coarse = HKLRegressor(0.3).fit(frame[:1000], y[:1000])
    assert coarse.terms_["term"].tolist().count("rare town") == 0


def test_rare_categories_and_a_column_of_that_name_are_told_apart():
    rng = np.random.default_rng(0)
    town = rng.integers(0, 40, size=400)
    frame = pd.DataFrame({"town": town.astype(str), "rare town": rng.normal(size=400)})
    y = rng.normal(size=40)[town] + frame["rare town"]
    model = HKLRegressor(1e-3, certify="none").fit(frame, y)
    names = model.effects(frame, by="term").columns
    assert names.is_unique
    assert {"'rare town'", "rare town"} <= set(names)


def test_rows_without_a_value_do_not_make_a_category_frequent():
    rng = np.random.default_rng(0)
    who = np.full(1000, None, dtype=object)
    who[:100] = [f"person {i}" for i in range(100)]
    frame = pd.DataFrame({"x": rng.normal(size=1000), "who": who})
    with pytest.warns(UserWarning, match="like an identifier"):
        HKLRegressor(0.1, certify="none").fit(frame, frame["x"] + rng.normal(size=1000))


def test_identifiers_are_left_out_and_said_to_be():
    rng = np.random.default_rng(0)
    names = np.array([f"person {i}" for i in range(101)])
    frame = pd.DataFrame({"x": rng.standard_normal(202), "who": np.tile(names, 2)})
    y = frame["x"] + rng.standard_normal(202)
    sentence = "Column who has 101 categories with one or two rows each"
    for call in (HKLRegressor().fit, hkl_path):
        with pytest.warns(UserWarning, match=sentence):
            call(frame, y)
    model = HKLRegressor(basis={"who": "categorical"}).fit(frame, y)
    assert model._design.bases[1].max_level == 3  # all of them, since they were asked for


@every_estimator
def test_what_is_still_refused(estimator):
    table, y = columns(60)
    frame, y = as_pandas(table), target(estimator, y)
    bad = y.astype(object if y.dtype.kind == "U" else float)
    bad[0] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        estimator.fit(frame, bad)
    with pytest.raises(ValueError, match="NaN"):
        estimator.fit(frame, y, np.full(60, np.nan))
    with pytest.raises(ValueError, match="dates"):
        estimator.fit(frame.assign(day=pd.Period("2024-01-01", "D")), y)
    with pytest.raises(ValueError, match="infinity"):
        estimator.fit(frame.assign(age=np.inf), y)


def test_other_columns_at_predict_are_refused():
    table, y = columns(60)
    frame = as_pandas(table)
    model = HKLRegressor().fit(frame, y)
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[frame.columns[::-1]])
    with pytest.warns(UserWarning, match="valid feature names, but HKLRegressor was fitted with"):
        model.predict(as_array(table))
    unnamed = HKLRegressor().fit(as_array(table), y)
    with pytest.warns(UserWarning, match="HKLRegressor was fitted without feature names"):
        unnamed.predict(frame)
    unnamed = model.fit(as_array(table), y)
    assert not hasattr(unnamed, "feature_names_in_")


def test_a_lost_column_with_missing_values_is_reported():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 2))
    y = X[:, 0] + 0.1 * rng.standard_normal(60)
    X[:, 1] += 1e15
    X[0, 1] = np.nan
    with pytest.warns(UserWarning, match="Column x1 varies by less than the rounding"):
        HKLRegressor(0.02).fit(X, y)
    X[:, 1] = np.nan
    constant = HKLRegressor(0.02).fit(X, y)
    assert constant.bases_["why"][1] == "constant: left out"
    np.testing.assert_array_equal(constant.predict(X), constant.predict(np.nan_to_num(X)))


def test_the_path_reads_tables():
    table, y = columns()
    path = hkl_path(as_polars(table), y, alphas=[0.1, 0.001], categorical=["town"])
    model = HKLRegressor(0.001).fit(as_pandas(table), y)
    np.testing.assert_allclose(
        path.predict(as_pandas(table), alpha=0.001), model.predict(as_pandas(table)), atol=0.1
    )
    assert path.predict(as_arrow(table)).shape == (300, 2)
    assert "income is missing" in set(path.hull(0.001)["term"])
    again = pickle.loads(pickle.dumps(path))
    np.testing.assert_array_equal(again.predict(as_arrow(table)), path.predict(as_arrow(table)))
    with pytest.warns(UserWarning, match="hkl_path was fitted with feature names"):
        path.predict(as_array(table))
    with pytest.raises(ValueError, match="requires y"):
        hkl_path(as_pandas(table), None)
    labels = hkl_path(as_pandas(table), y > 0.5, loss="log_loss", alphas=[0.001])
    assert np.mean(labels.predict(as_pandas(table), alpha=0.001) == (y > 0.5)) > 0.9


@pytest.mark.parametrize("form", FORMS)
def test_scorers_are_given_rows_of_the_table(form):
    table, y = columns(120)
    X = form(table)
    seen = []

    def scorer(estimator, rows, labels):
        seen.append(type(rows))
        return estimator.score(rows, labels)

    weights = np.ones(120)
    weights[::7] = 0.0
    model = HKLRegressorCV(n_alphas=3, cv=2, scoring=scorer).fit(X, y, weights)
    assert set(seen) == {type(X)}
    assert model.best_score_ > 0.5
    np.testing.assert_array_equal(model.path_.predict(X).shape, (120, len(model.path_)))


@pytest.mark.parametrize("form", [as_pandas, as_polars])
def test_searches_of_scikit_learn_take_frames(form):
    table, y = columns(120)
    assert np.min(cross_val_score(HKLRegressor(0.001), form(table), y, cv=2)) > 0.8
    search = GridSearchCV(HKLRegressor(), {"alpha": [0.1, 0.001]}, cv=2).fit(form(table), y)
    assert search.best_params_["alpha"] == 0.001
