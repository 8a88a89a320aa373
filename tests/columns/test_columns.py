"""ColumnTable: the same matrix from every form of a table, and what new tables may be."""

from __future__ import annotations

import dataclasses
import json
import pickle
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from columns.tables import (
    FRAMES,
    MATRIX,
    NAMES,
    TABLES,
    arrow_chunks,
    fit_table,
    pandas_plain,
    polars_frame,
)

from hikernel.bases import Categorical
from hikernel.columns import ColumnTable


@pytest.mark.parametrize("make", TABLES)
def test_every_form_of_a_table_gives_the_same_matrix(make):
    X = make()
    table = fit_table(X)
    named = make in FRAMES
    names = NAMES if named else tuple(f"x{m}" for m in range(6))
    assert table.names == (*names, *(f"{name} is missing" for name in names[:5]))
    assert table.feature_names_in == (names if named else None)
    assert table.n_features_in == 6
    kinds = ("number", "number", "category", "boolean", "category", "number")
    assert table.kinds == (*kinds, *["boolean"] * 5)
    categories = (None, None, ("Bergen", "Oslo", "Ålesund"), None, ("large", "small"), None)
    assert table.categories == (*categories, *[None] * 5)
    assert table.indicators == (0, 1, 2, 3, 4)
    matrix = table.transform(X)
    assert matrix.dtype == np.float64
    np.testing.assert_array_equal(matrix, MATRIX)


@pytest.mark.parametrize("make", TABLES)
def test_a_table_may_come_in_another_form_than_in_fit(make):
    table = fit_table(polars_frame())
    np.testing.assert_array_equal(table.transform(make()), MATRIX)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int8, np.uint64, np.longdouble])
def test_arrays_of_numbers_are_numbers(dtype):
    X = np.arange(12).reshape(4, 3).astype(dtype)
    table = fit_table(X)
    assert table.kinds == ("number",) * 3
    assert table.categories == (None,) * 3
    np.testing.assert_array_equal(table.transform(X), X.astype(np.float64))


def test_an_array_of_floats_is_not_copied():
    X = np.random.default_rng(0).normal(size=(10, 2))
    assert fit_table(X).transform(X) is X


def test_values_whose_sum_overflows_are_finite():
    X = np.full((4, 2), 1e308)
    np.testing.assert_array_equal(fit_table(X).transform(X), X)


def test_arrays_of_booleans_and_text():
    X = np.array([[True, False], [True, True]])
    assert fit_table(X).kinds == ("boolean", "boolean")
    np.testing.assert_array_equal(fit_table(X).transform(X), X.astype(float))
    X = np.array([["b", "1"], ["a", "2"]])
    table = fit_table(X)
    assert table.categories == (("a", "b"), ("1", "2"))
    np.testing.assert_array_equal(table.transform(X), [[1.0, 0.0], [0.0, 1.0]])


def test_mixed_lists_keep_their_numbers():
    table = fit_table([[1, "a"], [2.5, "b"]])
    assert table.kinds == ("number", "category")
    np.testing.assert_array_equal(table.transform([[7, "b"]]), [[7.0, 1.0]])


@pytest.mark.parametrize(
    "column",
    [
        [Decimal("1.5"), None, Decimal("2.25")],
        pl.Series([Decimal("1.5"), None, Decimal("2.25")]),
        pa.array([Decimal("1.5"), None, Decimal("2.25")]),
        pd.array([1.5, None, 2.25], dtype="Float32"),
        pd.arrays.SparseArray([1.5, np.nan, 2.25]),
    ],
    ids=["objects", "polars", "pyarrow", "nullable", "sparse"],
)
def test_decimals_and_other_floats(column):
    if isinstance(column, pl.Series):
        X = pl.DataFrame({"price": column})
    elif isinstance(column, pa.Array):
        X = pa.table({"price": column})
    else:
        X = pd.DataFrame({"price": column})
    table = fit_table(X)
    assert table.kinds == ("number", "boolean")
    np.testing.assert_array_equal(table.transform(X)[:, 0], [1.5, np.nan, 2.25])


def test_128_bit_integers():
    X = pl.DataFrame({"big": pl.Series([1, None, 2**100], dtype=pl.Int128)})
    np.testing.assert_array_equal(fit_table(X).transform(X)[:, 0], [1.0, np.nan, 2.0**100])


@pytest.mark.parametrize("key", ["rooms", 1, np.int64(1)])
def test_named_columns_of_numbers_become_categories(key):
    table = fit_table(pandas_plain(), categorical=[key])
    assert table.kinds[1] == "category"
    # A missing value has made these floats; they are shown as what they were.
    assert [(type(value), value) for value in table.categories[1]] == [(int, 1), (int, 2), (int, 3)]
    codes = table.transform(pandas_plain())[:, 1]
    np.testing.assert_array_equal(codes, [2.0, 0.0, np.nan, 1.0, 2.0])
    whole = pandas_plain().assign(rooms=[1, 2, 3, 4, -7])
    np.testing.assert_array_equal(table.transform(whole)[:, 1], [0.0, 1.0, 2.0, -1.0, -1.0])


@pytest.mark.parametrize(
    "mask",
    [
        [False, True, False],
        (np.False_, np.True_, np.False_),
        np.array([False, True, False]),
        pd.Series([False, True, False], index=["a", "b", "c"]),
        iter([False, True, False]),
    ],
    ids=lambda mask: type(mask).__name__,
)
def test_a_mask_names_columns(mask):
    table = fit_table(np.array([[1, 5, 2], [2, 3, 4]]), categorical=mask)
    assert table.kinds == ("number", "category", "number")
    assert table.categories == (None, (3, 5), None)


def test_a_mask_without_a_column_names_none():
    assert fit_table([[1.0], [2.0]], categorical=[False]).kinds == ("number",)
    assert fit_table([[1.0], [2.0]], categorical=[True]).kinds == ("category",)


def test_named_columns_of_an_array_and_all_kinds_of_values():
    X = np.array([[2.5, True, "b", 1], [-1.0, False, "a", "1"]], dtype=object)
    table = fit_table(X, categorical=[0, "x1", "x2", 3])
    assert table.categories == ((-1, 2.5), (False, True), ("a", "b"), (1, "1"))
    assert type(table.categories[1][0]) is bool
    np.testing.assert_array_equal(table.transform(X), [[1, 1, 1, 0], [0, 0, 0, 1]])


def test_intervals_and_dates_are_categories_by_their_text():
    cut = pd.cut([0.0, 1.0, 2.0, 3.0], [-1.0, 1.5, 3.5])
    days = pd.to_datetime(["2020-01-02", "2020-01-01", None, "2020-01-01"])
    X = pd.DataFrame({"cut": cut, "day": days})
    table = fit_table(X, categorical=["day"])
    assert table.categories[0] == ("(-1.0, 1.5]", "(1.5, 3.5]")
    assert [value[:10] for value in table.categories[1]] == ["2020-01-01", "2020-01-02"]
    expected = [[0, 1, 0], [0, 0, 0], [1, np.nan, 1], [1, 0, 0]]
    np.testing.assert_array_equal(table.transform(X), expected)


def test_unseen_categories_are_minus_one_and_contribute_zero():
    table = fit_table(pl.DataFrame({"town": ["b", "a", "b", "c"]}))
    codes = table.transform(pl.DataFrame({"town": ["z", None, "c", ""]}))[:, 0]
    np.testing.assert_array_equal(codes, [-1.0, np.nan, 2.0, -1.0])
    basis = Categorical().fit(table.transform(pl.DataFrame({"town": ["b", "a", "b", "c"]}))[:, 0])
    level = basis.transform(codes)[1]
    assert level[2].any()
    assert not level[[0, 1, 3]].any()


def test_arrow_dictionaries_keep_their_nulls():
    # pyarrow's to_numpy gives the last category here, and narwhals uses it.
    X = arrow_chunks().select(["size"])
    np.testing.assert_array_equal(
        fit_table(X).transform(X), [[1, 0], [0, 0], [0, 0], [1, 0], [np.nan, 1]]
    )


def test_missing_values_only_in_new_rows_have_no_indicator():
    table = fit_table(pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]}))
    assert table.names == ("a", "b")
    new = table.transform(pd.DataFrame({"a": [np.nan], "b": [None]}))
    np.testing.assert_array_equal(new, [[np.nan, np.nan]])


def test_missing_values_only_in_fit():
    table = fit_table(np.array([[1.0, np.nan], [2.0, 3.0]]))
    assert table.names == ("x0", "x1", "x1 is missing")
    np.testing.assert_array_equal(table.transform([[5.0, 6.0]]), [[5.0, 6.0, 0.0]])


@pytest.mark.parametrize(
    "X",
    [
        pd.DataFrame({"a": [np.nan, np.nan], "b": [1.0, 2.0]}),
        pd.DataFrame({"a": [None, pd.NA], "b": [1.0, 2.0]}, dtype=object),
        pl.DataFrame({"a": [None, None], "b": [1.0, 2.0]}),
        pa.table({"a": pa.nulls(2), "b": [1.0, 2.0]}),
        np.array([[np.nan, 1.0], [np.nan, 2.0]]),
    ],
    ids=["floats", "objects", "polars", "pyarrow", "array"],
)
def test_a_column_without_a_value_is_constant(X):
    table = fit_table(X)
    assert len(table.names) == 2
    matrix = table.transform(X)
    np.testing.assert_array_equal(matrix, [[np.nan, 1.0], [np.nan, 2.0]])
    assert Categorical().fit(matrix[:, 0]).max_level == 0


def test_a_column_of_no_known_type_takes_any_value_later():
    table = fit_table(pl.DataFrame({"a": [None, None], "b": [1.0, 2.0]}))
    assert table.categories == ((), None)
    np.testing.assert_array_equal(table.transform([["text", 3.0]]), [[-1.0, 3.0]])
    np.testing.assert_array_equal(table.transform([[7.0, 3.0]]), [[-1.0, 3.0]])


def test_names_of_indicators_are_not_taken_twice():
    X = pd.DataFrame({"a": [1.0, None], "a is missing": [0.0, 1.0]})
    assert fit_table(X).names == ("a", "a is missing", "a is missing (2)")


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        (pd.RangeIndex(2), ("0", "1")),
        (pd.Index([7, -3]), ("7", "-3")),
        (pd.Index([1.5, 2.0]), ("1.5", "2.0")),
        (pd.MultiIndex.from_tuples([("size", "mm"), ("size", "kg")]), ("size / mm", "size / kg")),
        (pd.MultiIndex.from_tuples([("a", ""), ("b", 2)]), ("a", "b / 2")),
        (
            pd.MultiIndex.from_tuples([("a / b", "c"), ("a", "b / c")]),
            ("a / b / c", "a / b / c (2)"),
        ),
        (pd.MultiIndex.from_tuples([("", ""), ("x0", "")]), ("x0", "x0 (2)")),
    ],
)
def test_names_that_are_not_strings_are_kept_as_text(labels, names):
    X = pd.DataFrame([[1.0, 0.0], [np.nan, 1.0]], columns=labels)
    table = fit_table(X)
    # scikit-learn's rule: there are feature names only if all are strings.
    assert table.feature_names_in is None
    assert table.names == (*names, f"{names[0]} is missing")
    np.testing.assert_array_equal(table.transform(X.to_numpy())[:, :2], X.to_numpy())


def test_integer_names_are_no_positions():
    X = pd.DataFrame([[1, 5, 2], [2, 3, 4]], columns=[10, 0, 2])
    assert fit_table(X, categorical=[0]).kinds == ("number", "category", "number")
    assert fit_table(X, categorical=[np.int64(2)]).kinds == ("number", "number", "category")
    assert fit_table(X, categorical=["10"]).kinds == ("category", "number", "number")
    sentence = r"names the column 1, which X does not have; its columns are 10, 0, 2\."
    with pytest.raises(ValueError, match=sentence):
        fit_table(X, categorical=[1])


def test_columns_of_a_multi_index_are_named_by_tuples_names_and_positions():
    labels = pd.MultiIndex.from_tuples([("a", "b"), ("a", "c")])
    X = pd.DataFrame([[1, 5], [2, 3]], columns=labels)
    for key in (("a", "c"), "a / c", 1):
        assert fit_table(X, categorical=[key]).kinds == ("number", "category")
    for key in (("a", "d"), "a", 2, ["a", "c"]):
        with pytest.raises(
            ValueError, match=r"its columns are a / b, a / c \(or positions 0 to 1\)"
        ):
            fit_table(X, categorical=[key])


def test_booleans_may_come_as_zero_and_one():
    table = fit_table(pd.DataFrame({"a": [True, False]}))
    np.testing.assert_array_equal(table.transform([[0], [1.0]]), [[0.0], [1.0]])
    numbers = fit_table([[0.0], [2.0]])
    np.testing.assert_array_equal(numbers.transform([[True]]), [[1.0]])


def test_the_table_is_plain_frozen_data():
    table = fit_table(pandas_plain(), categorical=["rooms"])
    with pytest.raises(dataclasses.FrozenInstanceError):
        table.names = ()
    copy = pickle.loads(pickle.dumps(table))
    assert copy == table
    np.testing.assert_array_equal(copy.transform(pandas_plain()), table.transform(pandas_plain()))
    saved = json.loads(json.dumps(dataclasses.asdict(table), allow_nan=False))
    assert saved["categories"][2] == list(table.categories[2])


@pytest.mark.parametrize("labels", [[3, 1], pd.MultiIndex.from_tuples([("a", "b"), ("a", "c")])])
def test_names_that_are_not_strings_must_be_the_same_in_the_same_order(labels):
    X = pd.DataFrame([[1.0, 5.0], [2.0, 3.0]], columns=labels)
    fitted, _ = ColumnTable.fit_transform(X)
    with pytest.raises(ValueError, match="same order"):
        fitted.transform(X.iloc[:, ::-1])
    np.testing.assert_array_equal(fitted.transform(X.to_numpy()), X)  # an array has no names
    other, _ = ColumnTable.fit_transform(X.to_numpy())
    np.testing.assert_array_equal(other.transform(X), X)
