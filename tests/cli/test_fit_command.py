"""hikernel fit: the same model as in Python, where things go, and what is refused beforehand."""

from __future__ import annotations

import json
import os
import re

import numpy as np
import pandas as pd
import pytest
from cli.houses import QUICK, ROOMS, SIZE, TOWN

import hikernel
from hikernel.cli import fit_command, report_command
from hikernel.losses import REGRESSION

pytestmark = pytest.mark.usefixtures("quick")


@pytest.fixture
def no_fit(monkeypatch):
    """Fail if a fit starts."""
    monkeypatch.setattr(fit_command, "_fitted", lambda *args: pytest.fail("a fit was started"))


def test_a_table_becomes_the_model_of_python(folder, houses, run):
    result = run("fit", "houses.csv", "--target", "price", "--drop", "sold", "--out", "m.hik")
    assert result.exit_code == 0
    X = houses[[SIZE, TOWN, ROOMS]]
    again = hikernel.HKLRegressorCV(**QUICK).fit(X, houses["price"])
    model = hikernel.load("m.hik")
    assert type(model) is hikernel.HKLRegressorCV
    np.testing.assert_array_equal(model.predict(X), again.predict(X))
    assert model.get_params() == again.get_params()
    # Results on standard output, and nothing else there.
    assert result.stdout == f"{again}\n"
    lines = result.stderr.splitlines()
    assert lines[0] == (
        "Target 'price': numbers, 59 different values. The task is regression; "
        "--task classification makes it classification."
    )
    assert lines[1] == "60 rows, 3 columns."
    assert any(line.startswith("hikernel cross-validation: ") for line in lines)
    assert lines[-1] == "Model: m.hik"
    assert sorted(os.listdir()) == ["houses.csv", "m.hik", "new.csv"]


def test_json_is_one_document(folder, run):
    words = ["fit", "houses.csv", "--target", "sold", "--drop", "price", "--max-order", 1]
    result = run(*words, "--refit", "ridge", "--json", "-q")
    assert (result.exit_code, result.stderr) == (0, "")
    document = json.loads(result.stdout)
    assert document["task"] == document["summary"]["task"] == "classification"
    assert document["target"] == document["summary"]["target"] == "sold"
    assert document["summary"]["classes"] == ["no", "yes"]
    assert document["notes"][0].startswith("Target 'sold': 2 different categories.")
    assert (document["model"], document["report"]) == (None, None)
    assert result.stdout.isascii()


def test_an_unsaved_model_is_mentioned(folder, run):
    result = run("fit", "houses.csv", "--target", "price", "--drop", "sold", "--max-order", 1)
    assert "The model was not saved; --out model.hik saves it." in result.stderr
    assert sorted(os.listdir()) == ["houses.csv", "new.csv"]


def test_every_option_arrives(folder, houses, run, monkeypatch):
    houses.assign(w=np.arange(60) % 3, code=np.arange(60) % 4).to_csv("houses.csv", index=False)
    got = {}

    def fitted(training, settings, console):
        got.update(settings, training=training)
        raise KeyboardInterrupt

    monkeypatch.setattr(fit_command, "_fitted", fitted)
    words = ["fit", "houses.csv", "--target", "price", "--task", "regression", "--loss", "huber"]
    words += ["--max-order", 2, "--basis", f"{SIZE}=spline", "--basis", f"{ROOMS}=steps"]
    words += ["--categorical", "code", "--drop", "sold", "--weight", "w", "--rule", "one_se"]
    words += ["--refit", "none", "--certify", "statistical", "--time-budget", "7.5"]
    words += ["--n-jobs", "2", "--seed", "5", "-vv"]
    assert run(*words).exit_code == 130
    training = got.pop("training")
    assert got == {
        "loss": "huber",
        "max_order": 2,
        "rule": "one_se",
        "refit": None,
        "certify": "statistical",
        "time_budget": 7.5,
        "n_jobs": 2,
        "random_state": 5,
        "verbose": 3,
    }
    assert list(training.X) == [SIZE, TOWN, ROOMS, "code"]
    assert training.basis == {SIZE: "spline", ROOMS: "steps"}
    assert training.categorical == ["code"]
    assert training.sample_weight.tolist() == [float(i % 3) for i in range(60)]
    assert training.task == "regression"


@pytest.mark.parametrize("loss", ["poisson", "squared_hinge"])
def test_the_loss_tells_the_task(loss, folder, houses, run):
    counts = houses.assign(n=np.arange(60) % 2).drop(columns=["price", "sold"])
    counts.to_csv("counts.csv", index=False)
    result = run(
        *("fit", "counts.csv", "--target", "n", "--loss", loss, "--json"),
        *("--max-order", 1, "--refit", "none", "--certify", "none"),
    )
    assert result.exit_code == 0
    document = json.loads(result.stdout)
    assert document["task"] == {"poisson": "regression", "squared_hinge": "classification"}[loss]
    assert not any(note.startswith("Target") for note in document["notes"])


def test_warnings_of_the_library_are_lines(folder, houses, run):
    words = ["fit", "houses.csv", "--target", "price", "--drop", "sold"]
    result = run(*words, "--time-budget", "1e-9", "--json")
    assert result.exit_code == 0
    warned = [line for line in result.stderr.splitlines() if line.startswith("Warning: ")]
    assert any("time budget" in line for line in warned)
    assert [f"Warning: {line}" for line in json.loads(result.stdout)["warnings"]] == warned
    assert ".py" not in result.stderr
    assert run(*words, "--time-budget", "1e-9", "-q").stderr == ""


def test_verbose_writes_the_records(folder, run):
    words = ["fit", "houses.csv", "--target", "price", "--drop", "sold", "--max-order", 1]
    result = run(*words, "-v")
    assert re.search(r"^\d\d:\d\d:\d\d hikernel: Chosen by the rule", result.stderr, re.MULTILINE)
    both = run(*words, "-v", "-q")
    assert both.exit_code == 2
    assert "-q and -v contradict each other" in both.stderr


def test_the_table_may_come_from_standard_input(folder, run):
    content = (folder / "houses.csv").read_bytes()
    words = ["--target", "price", "--drop", "sold", "--max-order", 1, "-q"]
    piped = run("fit", "-", *words, stdin=content)
    assert piped.exit_code == 0
    assert piped.stdout == run("fit", "houses.csv", *words).stdout


def test_rows_without_target_and_missing_marks(folder, houses, run):
    houses["price"] = houses["price"].astype(object)
    houses.loc[3, "price"] = "?"
    houses.to_csv("holes.csv", index=False)
    words = ["fit", "holes.csv", "--target", "price", "--drop", "sold", "--max-order", 1]
    first = run(*words)
    assert first.exit_code == 2
    assert "add --missing '?' --drop-missing-target" in first.stderr
    second = run(*words, "--missing", "?")
    assert second.exit_code == 2
    assert "1 row has no value of the target 'price' (the first is row 4 below" in second.stderr
    third = run(*words, "--missing", "?", "--drop-missing-target")
    assert third.exit_code == 0
    assert "59 rows, 3 columns." in third.stderr


def test_dates_can_be_dropped_as_it_says(folder, houses, run, no_fit):
    days = pd.date_range("2020-01-01", periods=60).strftime("%d.%m.%Y")
    houses.assign(**{"the day": days}).to_csv("days.csv", index=False)
    result = run("fit", "days.csv", "--target", "price")
    assert result.exit_code == 2
    assert result.stderr.splitlines()[-1] == (
        "hikernel fit: Dates with the day or the month first can be read in two ways, and are in "
        "'the day': write them year first, as in 2011-03-04, or leave them out: --drop 'the day'"
    )


def test_an_identifier_is_left_out_of_the_model(folder, houses, run):
    names = [f"house {i}" for i in range(60)]
    houses.assign(name=names, no=range(60)).to_csv("named.csv", index=False)
    words = ["fit", "named.csv", "--target", "price", "--drop", "sold", "--max-order", 1]
    result = run(*words, "--drop", "no", "--out", "m.hik")
    assert result.exit_code == 0
    assert "Left out, as nearly every row has its own text: 'name'." in result.stderr
    assert run("predict", "m.hik", "new.csv", "-q").exit_code == 0


def test_very_few_rows(folder, houses, run, no_fit):
    houses.head(4).to_csv("few.csv", index=False)
    result = run("fit", "few.csv", "--target", "price")
    assert result.exit_code == 2
    assert "4 rows are too few: cross-validation takes at least 5." in result.stderr


# -- where things go ----------------------------------------------------------------------------


def test_nothing_is_overwritten_without_force(folder, run, monkeypatch):
    words = ["fit", "houses.csv", "--target", "price", "--drop", "sold", "--out", "m.hik", "-q"]
    (folder / "m.hik").write_text("precious")
    with monkeypatch.context() as patch:
        patch.setattr(fit_command, "_fitted", lambda *args: pytest.fail("a fit was started"))
        result = run(*words)
    assert result.exit_code == 2
    assert result.stderr == (
        "hikernel fit: 'm.hik' exists; name another file, or overwrite it with --force.\n"
    )
    assert (folder / "m.hik").read_text() == "precious"
    assert run(*words, "--force").exit_code == 0
    assert hikernel.load("m.hik").n_features_in_ == 3


@pytest.mark.usefixtures("no_fit")
@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--out", "."], "'.' is a folder; name a file in it."),
        (["--out", "no/m.hik"], "There is no folder '{folder}/no' for 'no/m.hik'; create it first"),
        (["--out", "houses.csv", "--force"], "'houses.csv' is a file that this command reads"),
        (["--out", "/dev/null", "--force"], "'/dev/null' is no regular file"),
        (["--out", "a", "--report", "./a"], "--out and --report both name 'a'."),
        (["--report", "no/r.html"], "There is no folder '{folder}/no' for 'no/r.html'"),
        (["--task", "regression", "--loss", "hinge"], "--loss hinge is for classification, not"),
        (["--basis", "splines"], "--basis splines names no basis; there are auto,"),
        (["--basis", "x=spline"], "--basis names 'x', which is no column."),
        (["--basis", "rank", "--basis", "asinh"], "--basis takes one name for all columns, or"),
        (["--basis", "rank", "--basis", f"{SIZE}=asinh"], "--basis takes one name for all"),
        (["--drop", "price"], "--target and --drop both name the column 'price'."),
        (["--weight", "sold", "--drop", "sold"], "--weight and --drop both name the column 'sold'"),
        (["--categorical", "price"], "--target and --categorical both name the column 'price'."),
        (["--weight", "sold"], "Weights are numbers from 0 on, and column 'sold' has"),
        (["--n-jobs", "0"], "--n-jobs takes a number of processes"),
        (["--drop", SIZE, "--drop", TOWN, "--drop", ROOMS, "--drop", "sold"], "no column beside"),
    ],
)
def test_what_cannot_work_is_known_before_the_fit(words, sentence, folder, run):
    result = run("fit", "houses.csv", "--target", "price", *words)
    assert result.exit_code == 2
    line = result.stderr.splitlines()[-1]
    assert line.startswith("hikernel fit: ")
    assert sentence.format(folder=folder) in line
    assert sorted(os.listdir()) == ["houses.csv", "new.csv"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_to(folder, run, no_fit):
    (folder / "closed").mkdir(mode=0o500)
    result = run("fit", "houses.csv", "--target", "price", "--out", "closed/m.hik")
    assert result.exit_code == 2
    assert "cannot be written to" in result.stderr


def test_a_report_without_bokeh_is_refused_first(folder, run, no_fit, monkeypatch):
    monkeypatch.setattr(report_command, "find_spec", lambda name: None)
    result = run("fit", "houses.csv", "--target", "price", "--report", "r.html")
    assert result.exit_code == 2
    assert "A report needs bokeh: pip install 'hikernel[report]'." in result.stderr


def test_a_file_that_came_meanwhile_is_kept(folder, run, monkeypatch):
    original = fit_command._fitted

    def slow(*args):
        (folder / "m.hik").write_text("of somebody else")
        return original(*args)

    monkeypatch.setattr(fit_command, "_fitted", slow)
    result = run("fit", "houses.csv", "--target", "price", "--drop", "sold", "--out", "m.hik")
    assert result.exit_code == 1
    assert "was written by somebody else meanwhile, and is kept" in result.stderr
    assert (folder / "m.hik").read_text() == "of somebody else"
    assert sorted(os.listdir()) == ["houses.csv", "m.hik", "new.csv"]


def test_a_full_disk_leaves_no_half_file(folder, run, monkeypatch):
    def full(number):
        assert any(name.startswith(".m.hik") for name in os.listdir())  # half of it is there
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    result = run("fit", "houses.csv", "--target", "price", "--drop", "sold", "--out", "m.hik")
    assert result.exit_code == 1
    assert "'" + str(folder / "m.hik") + "' cannot be written: No space left" in result.stderr
    assert sorted(os.listdir()) == ["houses.csv", "new.csv"]


def test_a_link_stays_a_link(folder, run):
    (folder / "real").mkdir()
    (folder / "m.hik").symlink_to(folder / "real" / "model.hik")
    words = ["fit", "houses.csv", "--target", "price", "--drop", "sold", "--out", "m.hik"]
    assert run(*words, "--max-order", 1).exit_code == 0
    assert (folder / "m.hik").is_symlink()
    assert hikernel.load("real/model.hik").n_features_in_ == 3


@pytest.mark.slow
def test_a_report_is_written_beside_the_model(folder, run):
    pytest.importorskip("bokeh")
    words = ["fit", "houses.csv", "--target", "price", "--drop", "sold"]
    result = run(*words, "--out", "modèle ünd.hik", "--report", "a report.html")
    assert result.exit_code == 0
    assert result.stderr.splitlines()[-2:] == ["Model: modèle ünd.hik", "Report: a report.html"]
    assert "<html" in (folder / "a report.html").read_text()
    assert len(os.listdir()) == 4


def test_categories_in_order(folder, quick, run, houses):
    grades = ["poor", "fair", "good"]
    houses["grade"] = [grades[i % 3] for i in range(len(houses))]
    houses["stars"] = [i % 4 for i in range(len(houses))]
    houses["price"] += 50.0 * (houses["grade"] == "good")
    houses.to_csv("graded.csv", index=False)
    words = ["fit", "graded.csv", "--target", "price", "--out", "graded.hik", "--drop", "sold"]
    result = run(*words, "--ordered", "grade=poor, fair,good", "--ordered", "stars")
    assert result.exit_code == 0, result.stderr
    model = hikernel.load("graded.hik")
    place = {name: m for m, name in enumerate(model.columns_.names)}
    assert model.columns_.ordered == (place["grade"], place["stars"])
    assert model.columns_.categories[place["grade"]] == ("poor", "fair", "good")
    result = run(*words, "--force", "--ordered", "grade")
    assert result.exit_code == 2
    assert "no order of its own" in result.stderr
    result = run(*words, "--force", "--ordered", "stars=few,many")
    assert "lists text, but 'stars' has numbers" in result.stderr
    result = run(*words, "--force", "--ordered", "star")
    assert "--ordered names 'star', which is no column" in result.stderr


def test_an_exposure_and_an_offset_are_columns_of_their_own(folder, houses, run, quick):
    linked = [name for name, loss in REGRESSION.items() if loss.link == "log"]
    assert list(fit_command.LOG_LINK) == linked
    rng = np.random.default_rng(0)
    years = rng.uniform(0.5, 2.0, 60)
    table = houses.drop(columns=["price", "sold"])
    table = table.assign(n=rng.poisson(3.0 * years), years=years, known=0.1 * np.arange(60))
    table.to_csv("claims.csv", index=False)
    words = ("fit", "claims.csv", "--target", "n", "--loss", "poisson", "--out", "model.hik")
    result = run(*words, "--exposure", "years", "--offset", "known", "--json")
    assert result.exit_code == 0, result.stderr
    facts = json.loads(result.stdout)["summary"]["data"]
    assert (facts["exposure"], facts["offset"]) == ("years", "known")
    assert not {"years", "known"} & {column["name"] for column in facts["columns"]}
    with_both = run("predict", "model.hik", "claims.csv", "--json")
    assert "years" not in with_both.stderr
    table.drop(columns=["known", "years"]).to_csv("plain.csv", index=False)
    alone = run("predict", "model.hik", "plain.csv", "--json")
    assert "no column 'years': predictions are for exposure 1." in alone.stderr
    assert "no column 'known': predictions are for offset 0." in alone.stderr
    ratio = np.divide(
        *(json.loads(found.stdout)["columns"]["prediction"] for found in (with_both, alone))
    )
    np.testing.assert_allclose(ratio, years * np.exp(0.1 * np.arange(60)), rtol=1e-6)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--exposure", "rooms"], "--exposure needs --loss poisson, gamma or tweedie."),
        (["--loss", "poisson", "--exposure", "zero"], "'zero' has 0 in row 1 below the header"),
        (["--loss", "poisson", "--offset", "hole"], "offset of every row is a finite number"),
        (["--loss", "poisson", "--offset", "none"], "--offset names 'none', which is no column"),
        (["--offset", "price"], "--target and --offset both name the column 'price'"),
    ],
)
def test_bad_exposures_and_offsets_get_a_sentence(words, sentence, folder, houses, run):
    houses.assign(zero=0, hole=[None, *range(59)]).to_csv("bad.csv", index=False)
    result = run("fit", "bad.csv", "--target", "price", *words)
    assert result.exit_code == 2
    assert sentence in result.stderr


def test_directions_of_columns(folder, quick, run, houses):
    words = ["fit", "houses.csv", "--target", "price", "--out", "model.hik", "--drop", "sold"]
    result = run(*words, "--monotone", f"{SIZE}=increasing", "--monotone", f"{ROOMS}=-1")
    assert result.exit_code == 0, result.stderr
    assert f"f rises with {SIZE} and falls with {ROOMS}" in " ".join(result.stdout.split())
    model = hikernel.load("model.hik")
    assert model.monotone == {SIZE: "increasing", ROOMS: -1}
    for wrong in ("size", "size=up", "=1"):
        result = run(*words, "--force", "--monotone", wrong)
        assert result.exit_code == 2
        assert f"--monotone {wrong} gives no direction; write COLUMN=increasing" in result.stderr
    result = run(*words, "--force", "--monotone", "sice=1")
    assert "--monotone names 'sice', which is no column" in result.stderr
    result = run(*words, "--force", "--monotone", "sold=1")
    assert "--drop and --monotone both name the column 'sold'" in result.stderr
    result = run(*words, "--force", "--monotone", "sold (year)=1")
    assert "--drop and --monotone both name the column 'sold'" in result.stderr
