"""The exported module on its own: without hikernel, with columns of all forms, with bad ones."""

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from export.tables import AGE, FLAG, TOWN, assert_close, other_rows, run_python, run_sqlite, table

from hikernel import HKLClassifier, HKLRegressor

ALONE = """
import json, sys, runpy
sys.modules["hikernel"] = sys.modules["pandas"] = sys.modules["scipy"] = None
model = runpy.run_path(sys.argv[1])
loaded = {name.split(".")[0] for name in sys.modules if sys.modules[name]}
assert not loaded & {"hikernel", "pandas", "scipy", "sklearn"}
with open(sys.argv[2], encoding="utf-8") as stream:
    columns = json.load(stream)
print(json.dumps(model["predict"](columns).tolist()))
"""


@pytest.fixture(scope="module")
def model():
    X, y = table()
    return HKLRegressor(3e-3, certify="none").fit(X, y)


@pytest.fixture(scope="module")
def module(model):
    return run_python(model.export(format="python"))


@pytest.fixture(scope="module")
def rows():
    return other_rows(table()[0])


def test_it_runs_where_there_is_no_hikernel(model, rows, tmp_path):
    model.export(tmp_path / "model.py")
    columns = {
        name: [None if pd.isna(v) else v for v in rows[name].tolist()] for name in rows.columns
    }
    (tmp_path / "columns.json").write_text(json.dumps(columns), encoding="utf-8")
    words = [sys.executable, "-I", "-W", "error", "-c", ALONE]
    done = subprocess.run(
        [*words, str(tmp_path / "model.py"), str(tmp_path / "columns.json")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    assert_close(json.loads(done.stdout), model.predict(rows))


def test_columns_come_in_many_forms(model, module, rows):
    expected = model.predict(rows)
    polars = pytest.importorskip("polars")
    plain = {
        name: [None if pd.isna(v) else v for v in rows[name].tolist()] for name in rows.columns
    }
    for form in (
        rows,
        rows.convert_dtypes(),
        rows.astype({TOWN: "category"}),
        {name: rows[name] for name in reversed(rows.columns)},
        plain,
        polars.DataFrame(plain),
        rows.to_numpy(),
        rows.to_numpy().tolist(),
        [tuple(row) for row in zip(*plain.values(), strict=True)],
    ):
        assert_close(module["predict"](form), expected)


def test_one_row_and_none(model, module, rows):
    whole = rows.dropna().iloc[[0]]
    assert_close(module["predict"](whole.iloc[0].to_dict()), model.predict(whole))
    assert module["predict"](rows.head(0)).shape == (0,)


def test_the_text_is_the_same_each_time(model, rows):
    text = model.export(format="python")
    X, y = table()
    assert text == HKLRegressor(3e-3, certify="none").fit(X, y).export(format="python")
    assert "import hikernel" not in text
    assert max(map(len, text.splitlines())) < 140


def test_only_what_is_needed_is_there(model, module):
    assert {"levels_interpolation", "read_categories"} <= module.keys()
    assert not {"levels_kernel", "levels_hermite"} & module.keys()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda X: X.drop(columns="heavy"), "X has no column 'heavy'"),
        (lambda X: X.assign(heavy="much"), "'heavy' holds 'much', and must hold numbers"),
        (lambda X: X.assign(heavy=np.inf), "'heavy' contains infinity"),
        (lambda X: X.assign(**{FLAG: 2}), "must hold True and False"),
        (lambda X: X.assign(**{TOWN: 7}), "pass it as text, or as numbers, as these are"),
        (lambda X: X.to_numpy()[:, :3], "rows of 7 values in the order of COLUMNS"),
        (lambda X: X.to_numpy()[0], "rows of 7 values in the order of COLUMNS"),
        (lambda X: {n: X[n][: 3 + (n == AGE)] for n in X}, "different numbers of rows"),
    ],
)
def test_what_cannot_be_read_is_said(module, rows, change, sentence):
    with pytest.raises(ValueError, match=sentence):
        module["predict"](change(rows))


def test_names_that_would_end_a_text():
    quotes = ['"""', "'''", "\\", "\\n", "\n#", "{x}", "\u202e"]
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(120, len(quotes))), columns=quotes)
    X["c"] = rng.choice(quotes, len(X))
    y = np.where(X[quotes].sum(axis=1) + (X["c"] == "\\") > 0, *rng.permutation(quotes)[:2])
    y = pd.Series(y, name='"""\nimport os')
    model = HKLClassifier(1e-2, certify="none").fit(X, y)
    text = model.export(format="python")
    text.encode("utf-8")
    assert "\u202e" not in text
    module = run_python(text)
    assert_close(module["predict_proba"](X), model.predict_proba(X))
    assert module["predict"](X).tolist() == model.predict(X).tolist()
    assert json.loads(model.export(format="json"))["columns"] == [*quotes, "c"]
    result = run_sqlite(model.export(format="sql", keys=["key"]), X)
    assert result["prediction"].tolist() == model.predict(X).tolist()
