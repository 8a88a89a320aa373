"""hikernel predict: predictions of Python, columns by name, and files that are no models."""

from __future__ import annotations

import io
import json
import os

import numpy as np
import pandas as pd
import pytest
from cli.houses import ROOMS, SIZE, TOWN

from hikernel import HKLClassifier, HKLRegressor, HKLSurvival


def table(text):
    return pd.read_csv(io.StringIO(text))


def test_predictions_are_those_of_python(models, houses, regressor, run):
    result = run("predict", "price.hik", "new.csv")
    assert (result.exit_code, result.stderr) == (0, "")
    found = table(result.stdout)
    assert list(found) == ["prediction"]
    want = regressor.predict(houses[[SIZE, TOWN, ROOMS]].head(5))
    np.testing.assert_allclose(found["prediction"], want, rtol=1e-12)


def test_error_bars_and_intervals(models, houses, run):
    X, y = houses[[SIZE, TOWN, ROOMS]], houses["price"]
    model = HKLRegressor(alpha=0.1, refit="ridge", certify="none").fit(X, y).calibrate(X, y)
    model.save("bars.hik")
    found = table(run("predict", "bars.hik", "new.csv", "--std", "--interval", "0.8").stdout)
    assert list(found) == ["prediction", "std", "low", "high"]
    np.testing.assert_allclose(found["std"], model.predict(X.head(5), return_std=True)[1])
    np.testing.assert_allclose(found[["low", "high"]], model.predict_interval(X.head(5), 0.8))
    model.calibrate(X.head(3), y.head(3)).save("few.hik")
    result = run("predict", "few.hik", "new.csv", "--interval", "0.8", "--json")
    assert "too few" in result.stderr
    assert json.loads(result.stdout)["columns"]["low"] == [None] * 5


def test_error_bars_and_intervals_know_the_exposure(models, houses, run):
    X, y, years = houses[[SIZE, TOWN, ROOMS]], houses["price"], 1.0 + houses[ROOMS] % 4
    years = years.rename("years")
    model = HKLRegressor(alpha=0.1, loss="gamma", refit="ridge", certify="none", max_order=1)
    model.fit(X, y, exposure=years).calibrate(X, y, exposure=years).save("rates.hik")
    X.assign(years=years).to_csv("exposed.csv", index=False)
    found = table(run("predict", "rates.hik", "exposed.csv", "--std", "--interval", "0.8").stdout)
    mean, std = model.predict(X, return_std=True, exposure=years)
    np.testing.assert_allclose(found["prediction"], mean)
    np.testing.assert_allclose(found["std"], std)
    want = model.predict_interval(X, 0.8, exposure=years)
    np.testing.assert_allclose(found[["low", "high"]], want)


def test_a_risk_has_no_error_bars(models, houses, run):
    y = pd.DataFrame({"time": houses["price"], "sold": houses["sold"] == houses["sold"].iloc[0]})
    HKLSurvival(alpha=0.1, certify="none", max_order=1).fit(houses[[SIZE]], y).save("risk.hik")
    result = run("predict", "risk.hik", "new.csv", "--std")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "this model predicts risks of censored times" in result.stderr


def test_columns_are_found_by_name(models, houses, regressor, run):
    houses[["sold", ROOMS, "price", TOWN, SIZE]].to_csv("other.csv", index=False)
    result = run("predict", "price.hik", "other.csv")
    assert result.stderr == "Not used by the model: 'sold', 'price'.\n"
    want = regressor.predict(houses[[SIZE, TOWN, ROOMS]])
    np.testing.assert_allclose(table(result.stdout)["prediction"], want, rtol=1e-12)
    assert run("predict", "price.hik", "other.csv", "-q").stderr == ""


def test_missing_columns_are_named(models, houses, run):
    houses[[ROOMS, "price"]].to_csv("less.csv", index=False)
    result = run("predict", "price.hik", "less.csv")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr == (
        f"hikernel predict: The table has no column {SIZE!r}, {TOWN!r}, which the model takes; its "
        f"columns are {ROOMS!r}, 'price'.\n"
    )


def test_probabilities(models, houses, classifier, run):
    result = run("predict", "sold.hik", "houses.csv", "--proba", "--keep", "price")
    found = table(result.stdout)
    assert list(found) == ["price", "prediction", "P(no)", "P(yes)"]
    X = houses[[SIZE, TOWN]]
    assert found["prediction"].tolist() == classifier.predict(X).tolist()
    shares = classifier.predict_proba(X)
    np.testing.assert_allclose(found[["P(no)", "P(yes)"]], shares, rtol=1e-12)
    assert found["price"].tolist() == houses["price"].tolist()


def test_json_has_the_columns(models, houses, classifier, run):
    result = run("predict", "sold.hik", "new.csv", "--proba", "--json", "--keep", ROOMS)
    document = json.loads(result.stdout)
    assert document["n_rows"] == 5
    assert list(document["columns"]) == [ROOMS, "prediction", "P(no)", "P(yes)"]
    want = classifier.predict_proba(houses[[SIZE, TOWN]].head(5))
    np.testing.assert_allclose(document["columns"]["P(yes)"], want[:, 1], rtol=1e-12)
    assert document["columns"][ROOMS] == houses[ROOMS].head(5).tolist()


def test_files_are_written_once(models, run):
    for name, mark in (("p.csv", ","), ("p.tsv", "\t"), ("p.json", ":")):
        words = ["predict", "sold.hik", "new.csv", "--proba", "--out", name]
        words += ["--json"] if name.endswith("json") else []
        result = run(*words)
        assert (result.exit_code, result.stdout) == (0, "")
        assert result.stderr.splitlines()[-1] == f"5 predictions: {name}"
        first = (models / name).read_text()
        assert mark in first
        again = run(*words)
        assert again.exit_code == 2
        assert f"'{name}' exists" in again.stderr
        assert run(*words, "--force").exit_code == 0
        assert (models / name).read_text() == first
    assert not [name for name in os.listdir() if name.startswith(".")]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["price.hik", "new.csv", "--proba"], "This model has no probabilities"),
        (["price.hik", "new.csv", "--std"], "This model has no refit"),
        (["price.hik", "new.csv", "--interval", "0.9"], "needs a calibrated model"),
        (["sold.hik", "new.csv", "--interval", "0.9"], "this model predicts classes"),
        (["price.hik", "new.csv", "--keep", "id"], "--keep names 'id', which is no column"),
        (["price.hik", "new.csv", "--out", "new.csv", "--force"], "'new.csv' is a file that this"),
        (["price.hik", "new.csv", "--out", "price.hik", "--force"], "'price.hik' is a file that"),
        (["price.hik", "new.csv", "--out", "p.parquet"], "Predictions are written as CSV or JSON"),
        (["no.hik", "new.csv"], "There is no file 'no.hik'."),
        ([".", "new.csv"], "'.' is a folder; name a model file."),
        (["new.csv", "price.hik"], "'new.csv' cannot be loaded: it is no hikernel model"),
        (["half.hik", "new.csv"], "'half.hik' cannot be loaded: it is damaged"),
        (["empty.hik", "new.csv"], "'empty.hik' cannot be loaded: it is empty."),
        (["price.hik", "no.csv"], "There is no file 'no.csv'."),
        (["price.hik", "text.csv"], "is a column of numbers, but holds the text 'large'"),
    ],
)
def test_mistakes_are_one_sentence(words, sentence, models, houses, run):
    (models / "half.hik").write_bytes((models / "price.hik").read_bytes()[:500])
    (models / "empty.hik").touch()
    houses.astype({SIZE: object}).replace({SIZE: {houses[SIZE][0]: "large"}}).to_csv("text.csv")
    before = {name: (models / name).read_bytes() for name in os.listdir()}
    result = run("predict", *words)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert sentence in result.stderr.splitlines()[-1]
    assert "Traceback" not in result.stderr
    assert {name: (models / name).read_bytes() for name in os.listdir()} == before


def test_text_that_looks_like_numbers_is_still_text(folder, run):
    rng = np.random.default_rng(0)
    codes = rng.choice(["1", "2", "x"], 60)
    model = HKLRegressor(0.01).fit(pd.DataFrame({"code": codes}), (codes == "1") + 0.0)
    model.save("codes.hik")
    (folder / "new.csv").write_text("code\n1\n2\n")
    found = table(run("predict", "codes.hik", "new.csv").stdout)["prediction"]
    assert found[0] > 0.5 > found[1]


def test_models_without_names_of_columns(folder, run):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(60, 2))
    model = HKLRegressor(0.01).fit(X, X[:, 0])
    model.save("plain.hik")
    pd.DataFrame(X[:5], columns=["u", "v"]).to_csv("uv.csv", index=False)
    result = run("predict", "plain.hik", "uv.csv")
    assert result.stderr == (
        "The model has no names of columns; the columns are taken in their order.\n"
    )
    np.testing.assert_allclose(table(result.stdout)["prediction"], model.predict(X[:5]))
    pd.DataFrame(X[:5, ::-1], columns=["x1", "x0"]).to_csv("named.csv", index=False)
    result = run("predict", "plain.hik", "named.csv")
    np.testing.assert_allclose(table(result.stdout)["prediction"], model.predict(X[:5]))
    pd.DataFrame(X[:5, :1], columns=["u"]).to_csv("u.csv", index=False)
    assert "The table has no column 'x0', 'x1'" in run("predict", "plain.hik", "u.csv").stderr


def test_labels_of_all_types(folder, run):
    x = np.linspace(-1, 1, 40)
    for labels, first in (([3, 7], "3"), ([False, True], "False"), (["ä, b", 'c"d'], '"ä, b"')):
        y = np.array(labels)[(x > 0).astype(int)]
        HKLClassifier(0.01).fit(pd.DataFrame({"x": x}), y).save("labels.hik")
        (folder / "new.csv").write_text("x\n-1\n1\n")
        shown = run("predict", "labels.hik", "new.csv", "--proba").stdout
        assert shown.splitlines()[1].startswith(f"{first},")
        assert table(shown)["prediction"].tolist() == labels
