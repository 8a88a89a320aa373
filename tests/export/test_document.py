"""The JSON document keeps its schema; what cannot be exported is said before it is written."""

import json
import sqlite3
import warnings

import numpy as np
import pandas as pd
import pytest
from explain.test_portable import Own
from export.tables import AGE, TOWN, assert_close, run_sqlite, table
from oracles.json_schema import errors
from oracles.portable_bases import BASES

from hikernel import HKLClassifier, HKLRegressor, load
from hikernel.explain.portable import NotPortableError
from hikernel.export import json_document, json_schema, python_source, sql_source
from hikernel.graphs import KernelGraph


@pytest.fixture(scope="module")
def model():
    X, y = table()
    return HKLRegressor(3e-3, certify="none").fit(X, y)


@pytest.fixture(scope="module")
def documents():
    X, y = table()
    labels = np.digitize(y, np.quantile(y, [0.33, 0.66]))
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in ("auto+steps", "polynomial", "hermite", "asinh", "bumps", "rough", "spline"):
            options = {"basis": BASES[name], "certify": "none", "max_kernels": 20}
            found.append(HKLRegressor(1e-2, **options).fit(X, y).export(format="json"))
    options = {"certify": "none", "categorical": ["count"]}
    found.append(HKLClassifier(1e-2, **options).fit(X, labels).export(format="json"))
    return [json.loads(text) for text in found]


def test_documents_have_their_schema(documents):
    for document in documents:
        assert errors(json_schema(), document) == []


def test_the_schema_is_one(documents):
    jsonschema = pytest.importorskip("jsonschema")
    validator = jsonschema.Draft202012Validator(json_schema())
    validator.check_schema(json_schema())
    for document in documents:
        validator.validate(document)
        assert not validator.is_valid(document | {"link": {"kind": "probit", "words": ""}})


def test_another_document_is_seen(documents):
    document = documents[0]
    wrong = [
        {key: value for key, value in document.items() if key != "classes"},
        document | {"more": 1},
        document | {"n_rows": -1},
        document | {"function": document["function"] | {"intercept": []}},
        document | {"function": document["function"] | {"terms": [{}]}},
        document | {"function": document["function"] | {"variables": [{"input": 0, "missing": 0}]}},
    ]
    for one in wrong:
        assert errors(json_schema(), one)


def test_a_model_from_a_file_is_exported_the_same(model, tmp_path):
    model.save(tmp_path / "model.hik")
    again = load(tmp_path / "model.hik")
    for format in ("python", "sql", "json"):
        assert again.export(format=format) == model.export(format=format)


def test_the_extension_tells_the_format(model, tmp_path):
    for name, format in (("m.py", "python"), ("m.SQL", "sql"), ("m.json", "json")):
        assert model.export(tmp_path / name) is None
        text = (tmp_path / name).read_text(encoding="utf-8")
        assert text == model.export(format=format)
        model.export(str(tmp_path / "other"), format=format)
        assert text == (tmp_path / "other").read_text(encoding="utf-8")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.SQL", "m.json", "m.py", "other"]


@pytest.mark.parametrize(
    ("words", "options", "sentence"),
    [
        ([], {}, "Without a file, format must be one of"),
        ([], {"format": "onnx"}, "format must be one of .* got 'onnx'"),
        (["model.txt"], {}, "'model.txt' does not tell the format; let it end in .py, .sql"),
        ([7], {}, "path must be the name of a file"),
        (["no/where/model.py"], {}, "There is no folder"),
        (["model.py"], {"table": "t"}, "table: only SQL takes options"),
        (["model.sql"], {"dialect": "oracle"}, "dialect must be one of .* got 'oracle'"),
        (["model.sql"], {"table": ""}, "table must be the name of a table"),
        (["model.sql"], {"keys": [3]}, "keys must be names of columns"),
        (["model.sql"], {"keys": ["id", "ID"]}, "names a column twice"),
        (["model.sql"], {"keys": ["Prediction"]}, "'Prediction' has the name of a result"),
        (["model.sql"], {"table": "a\0b"}, "holds a null character"),
        (["model.sql"], {"table": "\udc80"}, "no valid Unicode, which SQL cannot hold"),
    ],
)
def test_wrong_words_are_refused(model, tmp_path, monkeypatch, words, options, sentence):
    monkeypatch.chdir(tmp_path)
    with pytest.raises((ValueError, TypeError, OSError), match=sentence):
        model.export(*words, **options)
    assert list(tmp_path.iterdir()) == []


def test_options_that_do_not_exist_are_refused(model):
    with pytest.raises(TypeError, match="tabel"):
        model.export(format="sql", tabel="x")


@pytest.mark.parametrize("format", ["python", "sql", "json"])
def test_models_that_are_not_plain_data(format):
    X, y = table()
    own = HKLRegressor(0.01, basis=Own(2), certify="none").fit(X[[AGE, "heavy"]], y)
    with pytest.raises(NotPortableError, match=r"cannot be exported\. The basis OwnFitted"):
        own.export(format=format)
    graph = KernelGraph(features={"first": [AGE], "second": ["heavy"]})
    kernels = HKLRegressor(0.01, graph=graph).fit(X, y)
    with pytest.raises(NotPortableError, match="fitted on a graph of kernels"):
        kernels.export(format=format)


@pytest.mark.parametrize("write", [json_document, python_source, sql_source])
def test_summaries_that_are_not_known(model, write):
    summary = model.summary()
    with pytest.raises(TypeError, match="from the dict that summary"):
        write(model)
    with pytest.raises(ValueError, match="export with the version that made the summary"):
        write(summary | {"schema": 99})
    with pytest.raises(NotPortableError, match="'probit'"):
        write(summary | {"link": {"kind": "probit", "words": ""}})
    function = summary["function"]
    inputs = [one | {"kind": "graph"} for one in function["inputs"]]
    with pytest.raises(NotPortableError, match="of the kind 'graph'"):
        write(summary | {"function": function | {"inputs": inputs}})


def test_too_many_columns_for_sql_are_said(model):
    summary = model.summary()
    function = summary["function"]
    levels = {"kind": "hermite", "center": 0.0, "scale": 1.0, "ratio": 0.5, "n": 2000}
    term = {"factors": [[0, 1999]], "shape": [1], "coef": [[1.0]], "effect": 0}
    variables = [{"input": 0, "missing": False, "part": None, "levels": levels}]
    function = function | {"variables": variables, "terms": [term]}
    with pytest.raises(NotPortableError, match="more than 1,500 columns"):
        sql_source(summary | {"function": function})


def test_a_column_that_is_not_there_is_an_error_and_no_text():
    X, y = table()
    model = HKLRegressor(3e-3, certify="none").fit(X[[AGE, TOWN]], y)
    with pytest.raises((sqlite3.OperationalError, pd.errors.DatabaseError), match="no such column"):
        run_sqlite(model.export(format="sql", keys=["key"]), X[[TOWN]])


@pytest.mark.parametrize("name", ["model_inputs", "MODEL_f", 'a "b"; --', "source", "select"])
def test_any_name_of_a_table(model, name):
    X, _ = table()
    rows = X.head(5)
    query = model.export(format="sql", keys=["key"], table=name)
    assert_close(run_sqlite(query, rows, name)["prediction"], model.predict(rows))


def test_a_table_in_a_schema_and_keys_named_like_columns_of_the_query(model):
    X, _ = table()
    rows = X.head(5).assign(f1=1, e1_1=2, key_1=3)
    query = model.export(
        format="sql", keys=["key", "x1", "f1", "e1_1", "key_1"], table=["main", "data"]
    )
    result = run_sqlite(query, rows)
    assert_close(result["prediction"], model.predict(X.head(5)))
    assert result[["f1", "e1_1", "key_1"]].to_numpy().tolist() == [[1, 2, 3]] * 5
