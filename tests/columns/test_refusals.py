"""What a ColumnTable does not take, each with a sentence that names the column and the remedy."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from columns.tables import fit_table
from scipy import sparse

DAY = datetime.date(2020, 1, 1)


@pytest.mark.parametrize("make", [sparse.csr_matrix, sparse.coo_array, sparse.csc_array])
def test_sparse_matrices(make):
    with pytest.raises(TypeError, match=r"sparse.*X\.toarray\(\).*fewer columns"):
        fit_table(make(np.eye(3)))
    with pytest.raises(TypeError, match="sparse"):
        fit_table(np.eye(3)).transform(make(np.eye(3)))


def test_lazy_frames():
    with pytest.raises(TypeError, match=r"lazy frame \(polars.*LazyFrame\).*collect\(\)"):
        fit_table(pl.LazyFrame({"a": [1]}))


def test_intervals_of_polars():
    """Polars has them as an extension of its own, of two numbers a row."""
    try:
        intervals = pl.from_pandas(pd.DataFrame({"a": pd.interval_range(0.0, 3.0, 3)}))
    except pl.exceptions.ComputeError:
        pytest.skip("this polars has no extension types, and so no intervals")
    with pytest.raises(TypeError, match=r"'a' holds .*Struct.*split it into plain columns"):
        fit_table(intervals)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.arange(3.0), r"shape \(3,\)\. Reshape your data: X\.reshape\(-1, 1\)"),
        ([1.0, 2.0], "Reshape your data"),
        (pd.Series([1.0]), "Reshape your data"),
        (pl.Series([1.0]), "Reshape your data"),
        (3.0, "0 dimension"),
        ({"a": [1.0]}, "0 dimension"),
        (np.zeros((2, 2, 2)), "3 dimension"),
        (np.zeros((0, 3)), r"0 sample\(s\) \(shape=\(0, 3\)\) while a minimum of 1"),
        (np.zeros((3, 0)), r"0 feature\(s\) \(shape=\(3, 0\)\) while a minimum of 1"),
        (pd.DataFrame({"a": []}), r"0 sample\(s\)"),
        (pd.DataFrame(index=[0, 1]), r"0 feature\(s\)"),
        (pl.DataFrame(), r"0 feature\(s\)"),
        ([[1.0], [1.0, 2.0]], "equally long"),
        (np.zeros((2,), dtype=[("a", float)]), "structured array"),
        (pd.DataFrame(np.eye(2), columns=["a", "a"]), r"column name\(s\) 'a' more than once"),
        (pd.DataFrame(np.eye(1), columns=pd.Index(["\ud800"], dtype=object)), "half a character"),
        (pa.table([[1], [1]], names=["b", "b"]), r"column name\(s\) 'b' more than once"),
        (np.eye(2) * 1j, "Complex data not supported: column 'x0'"),
        (pd.DataFrame({"z": [1j, 2]}), "Complex data not supported: column 'z'"),
        (np.array([[1j]], dtype=object), "Complex data not supported"),
    ],
)
def test_tables_that_are_none(X, message):
    with pytest.raises(ValueError, match=message):
        fit_table(X)


def test_column_names_of_several_types():
    with pytest.raises(TypeError, match=r"string names.*\['int', 'str'\]"):
        fit_table(pd.DataFrame(np.eye(2), columns=["a", 1]))


@pytest.mark.parametrize(
    "X",
    [
        pd.DataFrame({"day": pd.period_range("2020", periods=1, freq="D")}),
        pl.DataFrame({"day": [datetime.time(3)]}),
    ],
)
def test_periods_and_times_of_day(X):
    with pytest.raises(ValueError, match=r"Column 'day' holds dates or times.*categorical"):
        fit_table(X)


@pytest.mark.parametrize(
    "X",
    [
        pd.DataFrame({"ok": [1.0, 2.0], "v": [1.0, -np.inf]}),
        pl.DataFrame({"v": [1.0, float("inf")]}),
        pd.DataFrame({"v": [10**400, 1]}, dtype=object),
        pd.DataFrame({"v": np.array([1, 10], dtype=np.longdouble) ** 400}),
    ],
)
def test_infinity(X):
    with pytest.raises(ValueError, match="Column 'v' contains infinity"):
        fit_table(X)


def test_infinity_of_arrays_categories_and_new_rows():
    with pytest.raises(ValueError, match="Column 'x1' contains infinity"):
        fit_table([[np.nan, np.inf], [1.0, 2.0]])
    with pytest.raises(ValueError, match="Column 'x0' contains infinity"):
        fit_table([[np.inf], [1.0]], categorical=[0])
    table = fit_table(pd.DataFrame({"a": [1.0, 2.0], "b": [1.0, 2.0]}))
    with pytest.raises(ValueError, match="Column 'b' contains infinity"):
        table.transform(np.array([[1.0, np.inf]]))


def test_text_among_numbers():
    X = pd.DataFrame({"age": [31.0, "?", 58.0]})
    with pytest.raises(ValueError, match=r"'age' mixes text and numbers \(such as '\?' and 31"):
        fit_table(X)
    assert fit_table(X, categorical=["age"]).categories == ((31, 58, "?"),)
    # narwhals decides by the first hundred rows, which is not enough.
    late = pd.DataFrame({"age": ["a"] * 200 + [1.0]})
    with pytest.raises(ValueError, match="mixes text and numbers"):
        fit_table(late)


@pytest.mark.parametrize(
    "new",
    [
        pd.DataFrame({"age": [31.0, "old"]}),
        pd.DataFrame({"age": ["old"]}, dtype="category"),
        pl.DataFrame({"age": ["old", None]}),
        pa.table({"age": ["old"]}),
        np.array([["old"]]),
        [["old"]],
    ],
)
def test_text_in_a_column_of_numbers(new):
    table = fit_table(pd.DataFrame({"age": [31.0, 58.0]}))
    with pytest.raises(ValueError, match=r"Column 'age' is a column of numbers.*the text 'old'"):
        table.transform(new)


def test_other_values_in_new_columns():
    table = fit_table(pd.DataFrame({"b": [True, False], "n": [1, 2]}))
    with pytest.raises(ValueError, match="'b' is a column of booleans, but holds 2;"):
        table.transform([[2, 1]])
    with pytest.raises(ValueError, match="Column 'n' holds dates"):
        table.transform(pd.DataFrame({"b": [True], "n": [DAY]}))
    with pytest.raises(TypeError, match=r"Column 'n' holds \{'k': 1}, of type dict; each argument"):
        table.transform(np.array([[True, {"k": 1}]], dtype=object))


def test_numbers_for_categories_of_text_and_the_reverse():
    table = fit_table(pd.DataFrame({"town": ["Oslo", "Bergen"]}))
    with pytest.raises(ValueError, match=r"'town' holds 3, but its categories.*'Bergen', 'Oslo'"):
        table.transform(np.array([[3.0]]))
    table = fit_table([[3], [4]], categorical=[0])
    with pytest.raises(ValueError, match="'x0' holds '3', but its categories in fit were 3, 4"):
        table.transform([["3"]])


@pytest.mark.parametrize(
    "X",
    [
        np.array([[{"foo": "bar"}], [1.0]], dtype=object),
        np.array([[b"bytes"]]),
        pl.DataFrame({"x0": [[1, 2]]}),
        pl.DataFrame({"x0": [{"a": 1}]}),
        pa.table({"x0": [b"bytes"]}),
    ],
)
def test_objects(X):
    # The words are those of Python, which scikit-learn's checks look for.
    with pytest.raises(TypeError, match=r"'x0' holds .*argument must be .* string.* number"):
        fit_table(X)


def test_objects_that_are_no_category():
    X = np.array([[{"foo": "bar"}], [1.0]], dtype=object)
    with pytest.raises(TypeError, match=r"argument must be .* string.* number"):
        fit_table(X, categorical=[0])


@pytest.mark.parametrize("key", ["weight", 2, -1, 1.0, None, b"a"])
def test_unknown_categorical_columns(key):
    X = pd.DataFrame({"a": [1, 2], "b": [1, 2]})
    with pytest.raises(ValueError, match=r"does not have; its columns are a, b \(or positions 0 "):
        fit_table(X, categorical=[key])


@pytest.mark.parametrize(
    "mask", [[True], np.array([True, False, False]), [True, 1], ["a", False], [np.True_, "b"]]
)
def test_masks_of_another_length_or_with_other_entries(mask):
    X = pd.DataFrame({"a": [1, 2], "b": [1, 2]})
    with pytest.raises(ValueError, match=r"names or the positions .* or a mask of 2 booleans"):
        fit_table(X, categorical=mask)


@pytest.mark.parametrize("categorical", ["a", 3, b"a"])
def test_categorical_must_be_a_list(categorical):
    with pytest.raises(ValueError, match="list of column names or positions"):
        fit_table(pd.DataFrame({"a": [1, 2]}), categorical=categorical)


def test_columns_of_an_array_have_no_names_of_their_own():
    with pytest.raises(ValueError, match=r"x8, x9, \.\.\. .*no column names of its own"):
        fit_table(np.zeros((2, 12)), categorical=["age"])


def test_another_number_of_columns():
    table = fit_table(np.zeros((2, 3)))
    with pytest.raises(ValueError, match=r"X has 1 features, but \w+ is expecting 3 features"):
        table.transform([[1.0]])
    with pytest.raises(ValueError, match=r"0 sample\(s\)"):
        table.transform(np.zeros((0, 3)))


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pa.table])
def test_other_names(frame):
    table = fit_table(frame({"a": [1], "b": [2]}))
    with pytest.raises(ValueError, match=r"unseen at fit time:\n- c\n.*yet now missing:\n- b\n"):
        table.transform(frame({"a": [1], "c": [2]}))
    with pytest.raises(ValueError, match="must be in the same order"):
        table.transform(frame({"b": [1], "a": [2]}))
    with pytest.raises(ValueError, match="yet now missing:\n- b"):
        table.transform(frame({"a": [1]}))
    many = {name: [1] for name in "cdefghi"}
    with pytest.raises(ValueError, match=r"- g\n- \.\.\.\nFeature names seen"):
        table.transform(frame(many))
