"""Tables with dates through the estimators: readable effects, explanations, files, plain data."""

import functools
import json
import shutil
import subprocess
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from oracles.portable import evaluate

import hikernel.report
from hikernel import HKLClassifier, HKLRegressor, load

SCRIPT = Path(hikernel.report.__file__).parent / "evaluate.js"


def hires(n=500, seed=0):
    """Trend, season, weekend and hour; some times are missing, which costs two."""
    rng = np.random.default_rng(seed)
    hours = np.append(0, np.sort(rng.choice(np.arange(1, 3 * 365 * 24), n - 1, replace=False)))
    when = pd.Series(pd.Timestamp("2010-01-04") + pd.to_timedelta(hours, unit="h"))
    X = pd.DataFrame({"when": when, "temp": rng.normal(size=n)})
    X["rented"] = pd.to_timedelta(rng.uniform(1, 40, n), unit="h")
    truth = {
        "when (days since 2010-01-04)": hours / 24 / 400,
        "when (day of year)": 2 * np.sin(2 * np.pi * when.dt.day_of_year / 365.25),
        "when (weekday)": 1.5 * (when.dt.day_of_week >= 5),
        "when (hour)": np.cos(2 * np.pi * (when.dt.hour - 8) / 12),
        "rented (days)": X["rented"] / pd.Timedelta(days=1),
    }
    y = sum(truth.values()) + 0.1 * rng.normal(size=n)
    gone = (rng.uniform(size=n) < 0.1) & (hours > 0)
    X.loc[gone, "when"] = pd.NaT
    y = np.where(gone, 2.0 + X["rented"] / pd.Timedelta(days=1), y)
    return X, pd.Series(y, name="hires"), truth


@functools.cache
def fitted():
    X, y, _ = hires()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return HKLRegressor(1e-3, max_order=2, refit="ridge").fit(X, y)


def test_a_known_truth_is_found_and_named():
    X, _, truth = hires()
    model = fitted()
    shares = model.effects_.set_index("effect")["share"]
    assert set(truth) | {"when is missing"} <= set(shares.index)
    known = X["when"].notna()
    parts = model.effects(X)
    for name, values in truth.items():
        found = np.asarray(parts[name])[known]
        expected = np.asarray(values, dtype=float)[known]
        assert np.corrcoef(found, expected)[0, 1] > 0.97, name
    assert model.n_features_in_ == 3
    assert list(model.feature_names_in_) == list(X)


def test_an_explanation_shows_the_date_and_the_part():
    X, _, _ = hires()
    row = X[X["when"].notna()].iloc[[100]]
    when = row["when"].iloc[0]
    values = "\n".join(model_reason.values for model_reason in fitted().explain(row).reasons)
    shown = when.strftime("%Y-%m-%d %H:%M").removesuffix(" 00:00")
    assert f"when = {shown} ({when.day_name()})" in values
    assert f"when = {shown} (day of year {when.day_of_year})" in values
    assert " days since 2010-01-04)" in values
    assert "rented = " in values
    gone = fitted().explain(X[X["when"].isna()].iloc[[0]])
    assert any(reason.values == "when is missing" for reason in gone.reasons)


def new_rows():
    X, _, _ = hires(40, seed=3)
    X.loc[3, "when"] = pd.Timestamp("2031-12-31 23:59:59.5")
    X.loc[4, "when"] = pd.Timestamp("1968-02-29 06:00")
    X.loc[5, "rented"] = pd.NaT
    return X


def plain(rows):
    """Rows as numbers: days since 1970, lengths in days, None where missing."""
    out = pd.DataFrame(
        {
            "when": (rows["when"] - pd.Timestamp(0)) / pd.Timedelta(days=1),
            "temp": rows["temp"],
            "rented": rows["rented"] / pd.Timedelta(days=1),
        }
    ).astype(object)
    return out.where(rows.notna(), None).to_dict("records")


@functools.cache
def models():
    X, y, _ = hires(200)
    settings = {"max_order": 1, "certify": "none"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return (
            fitted(),
            HKLRegressor(3e-3, basis="auto+steps", **settings).fit(X, y),
            HKLRegressor(3e-3, basis={"when (hour)": "orthonormal", "when": "spline"}).fit(X, y),
            HKLRegressor(3e-3, categorical=["when (year)", "when (hour)"], **settings).fit(X, y),
        )


def test_plain_data_give_the_predictions():
    rows = new_rows()
    node = shutil.which("node")
    for model in models():
        summary = json.loads(json.dumps(model.summary(), allow_nan=False))
        expected = model.predict(rows)
        found = [evaluate(summary["function"], row)[0] for row in plain(rows)]
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
        kinds = {one["name"]: one["kind"] for one in summary["function"]["inputs"]}
        assert kinds["when"] == "date"
        if node is None:
            continue
        names = [one["name"] for one in summary["function"]["inputs"]]
        asked = {"summary": summary, "rows": [[row[n] for n in names] for row in plain(rows)]}
        code = f"""require({json.dumps(str(SCRIPT))});
        const {{ summary, rows }} = JSON.parse(require("fs").readFileSync(0, "utf8"));
        console.log(JSON.stringify(rows.map((r) => HK.evaluate.evaluate(
          summary.function, r, summary.effects.length).f[0])));"""
        done = subprocess.run(
            [node, "-e", code], input=json.dumps(asked), capture_output=True, text=True, check=True
        )
        np.testing.assert_allclose(json.loads(done.stdout), expected, rtol=1e-9, atol=1e-9)


def test_files_keep_dates(tmp_path):
    rows = new_rows()
    for i, model in enumerate(models()):
        path = tmp_path / f"{i}.hik"
        model.save(path)
        loaded = load(path)
        np.testing.assert_array_equal(loaded.predict(rows), model.predict(rows))
        assert loaded.columns_ == model.columns_
        assert loaded.formula() == model.formula()


def test_the_input_of_the_page_has_the_range_of_the_dates():
    inputs = {one["name"]: one for one in fitted().summary()["function"]["inputs"]}
    when = inputs["when"]
    assert (when["min"], when["missing_allowed"], when["zone"]) == (14613.0, True, None)
    assert when["min"] < when["default"] < when["max"] < 14613 + 3 * 365.25
    assert 0.0 < inputs["rented"]["default"] < 2.0


def test_classes():
    X, y, _ = hires(200)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = HKLClassifier(1e-2, max_order=1, certify="none").fit(X, y > y.median())
    assert model.score(X, y > y.median()) > 0.8
