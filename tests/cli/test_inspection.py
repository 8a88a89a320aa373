"""Columns that cannot be used: what is said, and that what is said helps."""

from __future__ import annotations

import shlex

import numpy as np
import pandas as pd
import pytest

from hikernel.cli.console import BadInput, Console
from hikernel.cli.inspection import usable_columns
from hikernel.cli.target_column import check_names, read_target, read_weights, rows_with_target

N = 200
NUMBERS = np.arange(N) % 37 / 10


def usable(columns, categorical=(), given=()):
    console = Console(quiet=True)
    frame = pd.DataFrame({"x": NUMBERS} | columns)
    return usable_columns(frame, categorical, given, console), console


def refusal(columns, **settings):
    with pytest.raises(BadInput) as caught:
        usable(columns, **settings)
    return caught.value.message


def test_what_holds_nothing_is_left_out():
    found, console = usable({"one": ["a"] * N, "none": [None] * N, "same": [1.0] * N})
    assert list(found) == ["x"]
    assert console.notes == ["Left out, as there is one value only or none: 'one', 'none', 'same'."]
    # That a value is missing may matter, though there is one value only.
    found, console = usable({"some": [1.0] * 100 + [None] * 100})
    assert list(found) == ["x", "some"]
    assert console.notes == []
    with pytest.raises(BadInput, match="No column is left"):
        usable_columns(pd.DataFrame({"a": [1, 1]}), (), (), Console(quiet=True))


def test_identifiers_are_left_out():
    names = [f"Nr {i}" for i in range(N)]
    found, console = usable({"name": names, "twin": [name[:-1] for name in names]})
    assert list(found) == ["x", "twin"]
    assert console.notes == ["Left out, as nearly every row has its own text: 'name'."]
    # What the user names is kept, and so are few categories.
    assert list(usable({"name": names}, categorical=["name"])[0]) == ["x", "name"]
    assert list(usable({"name": names}, given=["name"])[0]) == ["x", "name"]
    few = pd.DataFrame({"x": range(6), "town": list("abcdef")})
    assert list(usable_columns(few * 2, (), (), Console(quiet=True))) == ["x", "town"]


@pytest.mark.parametrize("kind", ["%Y-%m-%d", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%MZ", None])
def test_dates_year_first_are_dates(kind):
    dates = pd.Series(pd.date_range("2020-01-01 00:30", periods=N, freq="31h"))
    dates = dates.dt.floor("D") if kind == "%Y-%m-%d" else dates
    day = dates if kind is None else dates.dt.strftime(kind)
    found, console = usable({"the day": day.where(day.index > 3)})
    zone = "UTC" if kind is not None and "Z" in kind else None
    pd.testing.assert_series_equal(
        found["the day"], dates.where(day.index > 3).dt.tz_localize(zone), check_names=False
    )
    said = "Column 'the day' holds dates; --categorical 'the day' makes every one a category."
    assert (said in console.notes) == (kind is not None)
    assert list(usable({"day": day}, categorical=["day"])[0]["day"]) == list(day)


def test_dates_that_do_not_exist():
    message = refusal({"day": ["2020-02-31"] * N})
    assert "Column 'day' holds dates, but not all of them can be read" in message


@pytest.mark.parametrize("kind", ["%m/%d/%Y", "%d.%m.%y"])
def test_dates_with_two_meanings_are_refused_and_may_be_categories(kind):
    dates = pd.Series(pd.date_range("2020-01-01", periods=N))
    day = dates.dt.strftime(kind)
    message = refusal({"the day": day, "due": day})
    assert "are in 'the day', 'due'" in message
    # What it says can be pasted.
    drops = message.split("leave them out: ")[1]
    assert shlex.split(drops) == ["--drop", "the day", "--drop", "due"]
    assert list(usable({"day": day}, categorical=["day"])[0]) == ["x", "day"]


@pytest.mark.parametrize("n_distinct", [20, 150])
def test_numbers_with_a_text_among_them(n_distinct):
    values = [str(i % n_distinct) for i in range(N - 1)]
    message = refusal({"hp": [*values, "not known"]})
    assert message == (
        "Column 'hp' holds numbers, but also the text 'not known'; if that is a missing value, "
        "add --missing 'not known'."
    )


def test_decimal_commas():
    message = refusal({"size": [f"{i},5" for i in range(N)]})
    assert "holds text such as '0,5'; if that is a number, add --decimal ,." in message


def test_a_count_of_the_rows_is_noticed_and_kept():
    found, console = usable({"no": np.arange(5, N + 5), "other": np.arange(N) * 2})
    assert list(found) == ["x", "no", "other"]
    assert console.notes == [
        "Column 'no' counts the rows; if it is an identifier, leave it out with --drop no."
    ]


# -- the target -------------------------------------------------------------------------------


def target(values, task=None, loss=None):
    console = Console(quiet=True)
    task, y = read_target(pd.Series(values, name="y"), task, loss, console)
    return task, y, " ".join(console.notes)


@pytest.mark.parametrize(
    ("values", "task", "said"),
    [
        (["no", "yes"] * 30, "classification", "2 different categories. The task is classif"),
        ([True, False] * 30, "classification", "true or false. The task is classification; --task"),
        ([0, 1] * 30, "classification", "2 different whole numbers. The task is classification;"),
        ([1.0, 2.0, 5.0] * 30, "classification", "3 different whole numbers"),
        (list(range(12)) * 10, "regression", "numbers, 12 different values. The task is regress"),
        ([0, 1, 2, 3, 4, 5, 6], "regression", "--task classification makes it classification."),
        ([0, 1, 2] * 30 + [3] * 4, "regression", "numbers, 4 different values"),
        ([0, 1, 2] * 30 + [3] * 5, "classification", "4 different whole numbers"),
        ([0] * 30 + [1] * 3, "classification", "2 different whole numbers"),
        ([0.5, 1.5] * 30, "regression", "numbers, 2 different values"),
        (pd.Categorical([1, 2, 3] * 30), "classification", "3 different categories"),
    ],
)
def test_the_task_is_guessed_and_said(values, task, said):
    found, y, notes = target(values)
    assert found == task
    assert notes.startswith("Target 'y': ")
    assert said in notes
    assert y.name == "y"
    assert len(y) == len(values)


def test_a_task_that_is_given_is_not_discussed():
    task, y, notes = target([0, 1] * 30, task="regression")
    assert (task, y.dtype, notes) == ("regression", np.float64, "")
    assert target([True, False] * 9, task="regression")[1].tolist() == [1.0, 0.0] * 9
    assert target(list(range(12)) * 3, loss="classification")[0] == "classification"


def test_classes_may_have_commas():
    assert target(["1,5", "2", "3,25"] * 9, task="classification")[0] == "classification"
    assert target(["1", "2", "3"] * 9)[0] == "classification"


def test_labels_keep_their_types():
    assert target([1.0, 2.0] * 30)[1].tolist() == [1, 2] * 30
    assert target([1.0, 2.0] * 30)[1].dtype.kind == "i"
    assert target([True, False] * 30)[1].dtype.kind == "b"
    assert target(pd.Categorical(["b", "a"] * 30))[1].tolist() == ["b", "a"] * 30


@pytest.mark.parametrize(
    ("values", "task", "sentence"),
    [
        ([1, 1, 1], None, "The target 'y' has one value only; there is nothing to learn."),
        (pd.date_range("2020-01-01", periods=5), None, "The target 'y' holds dates"),
        (["a", "b"], "regression", "The target 'y' holds text ('a'), no numbers."),
        (["1,5", "2", "3,25"] * 9, None, "such as '1,5'; if that is a number, add --decimal \",\""),
        (["2", "1,5", "3,25"] * 9, "regression", "such as '1,5'; if that is a number, add"),
        ([f"a{i}" for i in range(150)], None, "has 150 different values in 150 rows, too many"),
        ([*map(str, range(60)), "?"], None, "the text '?'; if that is a missing value, add --miss"),
    ],
)
def test_targets_that_are_none(values, task, sentence):
    with pytest.raises(BadInput) as caught:
        target(values, task)
    assert sentence in caught.value.message


def test_rows_without_a_target():
    frame = pd.DataFrame({"x": [1, 2, 3], "y": [1.0, None, None]})
    console = Console(quiet=True)
    with pytest.raises(BadInput, match=r"2 rows have no value .* \(the first is row 2 below"):
        rows_with_target(frame, "y", False, console)
    assert rows_with_target(frame, "y", True, console)["x"].tolist() == [1]
    assert console.notes == ["2 rows have no value of the target 'y', and are left out."]
    with pytest.raises(BadInput, match="has no values"):
        rows_with_target(frame.assign(y=np.nan), "y", True, console)


def test_weights_are_numbers():
    assert read_weights(pd.Series([1, 2.5, 0])).tolist() == [1.0, 2.5, 0.0]
    for wrong in ([1, -1], ["1", "x"], [1, None], [1, np.inf]):
        with pytest.raises(BadInput, match="in row 2 below the header"):
            read_weights(pd.Series(wrong, name="w"))


def test_columns_that_are_not_there():
    frame = pd.DataFrame(columns=["price", "size"])
    with pytest.raises(BadInput, match="--drop names 'prise', which is no column; did you mean"):
        check_names(frame, "--drop", ["size", "prise"])
