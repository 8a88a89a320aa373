"""hikernel export: what it writes, and what it refuses before it writes."""

from __future__ import annotations

import json

import pytest

from hikernel import load


def test_a_file_has_the_format_of_its_name(models, run):
    model = load("price.hik")
    result = run("export", "price.hik", "--out", "price.py")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "Model: price.py\n")
    assert (models / "price.py").read_text() == model.export(format="python")
    words = ["--table", "houses", "--key", "id", "--key", "no", "--dialect", "duckdb", "-q"]
    assert run("export", "price.hik", "--out", "price.sql", *words).stderr == ""
    expected = model.export(format="sql", table="houses", keys=["id", "no"], dialect="duckdb")
    assert (models / "price.sql").read_text() == expected


def test_without_a_file_it_is_printed(models, run):
    result = run("export", "sold.hik", "--format", "json")
    assert json.loads(result.stdout)["classes"] == ["no", "yes"]
    assert result.stderr == ""


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["price.hik"], "Without a file, format must be one of"),
        (["price.hik", "--out", "model.txt"], "'model.txt' does not tell the format"),
        (["price.hik", "--out", "m.py", "--table", "t"], "only SQL takes options"),
        (["price.hik", "--out", "m.sql", "--key", "prediction"], "has the name of a result"),
        (["price.hik", "--out", "houses.csv", "--format", "sql"], "overwrite it with --force"),
        (["none.hik", "--out", "m.sql"], "There is no file 'none.hik'"),
    ],
)
def test_what_cannot_be_is_said(models, run, words, sentence):
    result = run("export", *words)
    assert result.exit_code == 2
    assert sentence in result.stderr
    assert result.stderr.count("\n") == 1
    assert not (models / "m.sql").exists()
