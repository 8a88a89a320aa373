"""hikernel explain and hikernel report: what they ask a model, and what they print and write."""

from __future__ import annotations

import json
import os

import pytest
from cli.houses import ROOMS, SIZE, TOWN

from hikernel import load
from hikernel.cli import report_command


def test_a_model_in_words(models, run):
    result = run("explain", "price.hik")
    assert (result.exit_code, result.stderr) == (0, "")
    model = load("price.hik")
    assert result.stdout == f"{model}\n\n{model.formula()}\n"
    short = run("explain", "price.hik", "--max-terms", 1)
    assert short.stdout == f"{model}\n\n{model.formula(max_terms=1)}\n"


def test_a_model_as_json(models, run):
    document = json.loads(run("explain", "sold.hik", "--json").stdout)
    model = load("sold.hik")
    assert document == {
        "model": "sold.hik",
        "summary": json.loads(json.dumps(model.summary())),
        "formula": model.formula(),
    }


def test_the_reasons_for_a_row(models, houses, run):
    model = load("price.hik")
    X = houses[[SIZE, TOWN, ROOMS]]
    result = run("explain", "price.hik", "houses.csv", "--row", 3)
    assert result.exit_code == 0
    assert result.stdout == f"Row 3 of houses.csv\n{model.explain(X.iloc[[2]])}\n"
    assert result.stderr == "Not used by the model: 'price', 'sold'.\n"
    first = run("explain", "price.hik", "houses.csv", "-q")
    assert first.stdout == f"Row 1 of houses.csv\n{model.explain(X.iloc[[0]])}\n"


def test_the_reasons_for_several_rows_as_json(models, houses, run):
    words = ["explain", "price.hik", "houses.csv", "--row", 60, "--row", 2, "--json"]
    document = json.loads(run(*words).stdout)
    assert [row.pop("row") for row in document["rows"]] == [60, 2]
    X = houses[[SIZE, TOWN, ROOMS]]
    want = [load("price.hik").explain(X.iloc[[i]]).to_dict() for i in (59, 1)]
    assert document["rows"] == json.loads(json.dumps(want))


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["price.hik", "--row", "1"], "--row needs the table of that row"),
        (["price.hik", "--decimal", ","], "--decimal needs the table of that row"),
        (["price.hik", "new.csv", "--row", "6"], "There is no row 6; 'new.csv' has 5 rows."),
        (["price.hik", "new.csv", "--max-terms", "2"], "--max-terms is about the formula"),
        (["no.hik"], "There is no file 'no.hik'."),
        (["new.csv"], "'new.csv' cannot be loaded: it is no hikernel model"),
    ],
)
def test_mistakes_are_one_sentence(words, sentence, models, run):
    result = run("explain", *words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert sentence in result.stderr
    assert result.stderr.count("\n") == 1


# -- the report ---------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_report_is_named_after_its_model(models, run):
    pytest.importorskip("bokeh")
    result = run("report", "price.hik")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "Report: price.html\n"
    assert "<html" in (models / "price.html").read_text()
    assert not [name for name in os.listdir() if name.startswith(".")]
    again = run("report", "price.hik")
    assert again.exit_code == 2
    assert "'price.html' exists" in again.stderr
    assert run("report", "price.hik", "--force").exit_code == 0
    assert run("report", "price.hik", "--out", "other.html", "-q").stderr == ""
    assert "<html" in (models / "other.html").read_text()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["no.hik"], "There is no file 'no.hik'."),
        (["price.hik", "--out", "price.hik", "--force"], "'price.hik' is a file that this command"),
        (["price.hik", "--out", "no/r.html"], "There is no folder"),
    ],
)
def test_a_report_that_cannot_be(words, sentence, models, run):
    pytest.importorskip("bokeh")
    result = run("report", *words)
    assert result.exit_code == 2
    assert sentence in result.stderr


def test_a_report_needs_bokeh(models, run, monkeypatch):
    monkeypatch.setattr(report_command, "find_spec", lambda name: None)
    result = run("report", "price.hik")
    assert result.exit_code == 2
    assert "A report needs bokeh: pip install 'hikernel[report]'." in result.stderr
