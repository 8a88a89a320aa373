"""KernelGraph: the rows that it takes, in training and for predictions."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from graphs.kernels import GRAM, HOLE, N, X, fitted, grams_of, linear
from scipy import sparse

from hikernel.graphs import KernelGraph, TrainingRows


def test_columns_by_name_that_a_frame_lacks():
    graph = KernelGraph(features={"a": ["p", "nope"]})
    with pytest.raises(ValueError, match="of node 'a' are not in X"):
        fitted(graph, pd.DataFrame(X, columns=list("pqrs")))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([0.5, 1.0], "row numbers of the matrices"),
        ([-1, 2], "row numbers from -1 to 2"),
        ([0, N], "have 12 rows"),
        (X, "row numbers"),
        ([], "no rows"),
        (["a"], "row numbers"),
        (None, "row numbers"),
        ([True, False], "row numbers"),
        ([np.nan], "row numbers"),
    ],
    ids=["halves", "negative", "beyond", "table", "empty", "text", "None", "mask", "nan"],
)
def test_rows_that_are_no_numbers(rows, message):
    with pytest.raises(ValueError, match=message):
        KernelGraph(grams={"a": GRAM}).read(rows)


def test_row_numbers_in_a_column_are_row_numbers():
    graph = KernelGraph(grams={"a": GRAM})
    for rows in ([[1], [2]], np.array([1.0, 2.0]), pd.Series([1, 2]), pd.DataFrame({"i": [1, 2]})):
        np.testing.assert_array_equal(graph.read(rows), [1, 2])


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("text", "sequence of rows.*str"),
        (3.0, "sequence of rows.*float"),
        ({"a": 1}, "sequence of rows.*dict"),
        ([], "no rows"),
        (sparse.csr_array(X), "sparse"),
        (None, "sequence of rows"),
    ],
    ids=["text", "number", "dict", "empty", "sparse", "None"],
)
def test_rows_of_functions(rows, message):
    with pytest.raises(ValueError, match=message):
        KernelGraph(kernels={"a": linear}).read(rows)


def test_kernels_of_anything_are_asked_for_the_rows_as_they_are():
    words = ["one", "three", "four", "fourteen"]

    def shared(A, B):
        assert isinstance(A, list)
        return [[float(len(set(a) & set(b))) for b in B] for a in A]

    graph = KernelGraph(kernels={"letters": shared})
    design = fitted(graph, graph.read(words))
    found = design.predict(["letters"], np.array([1.0, 0.0, 0.0, 1.0]), ["no", "our"])
    np.testing.assert_allclose(found, [2.0 + 2.0, 1.0 + 3.0])
    ragged = [np.ones(2), np.ones(3), np.ones(1)]
    by_size = KernelGraph(
        kernels={"size": lambda A, B: np.outer([len(a) for a in A], [len(b) for b in B])}
    )
    np.testing.assert_allclose(
        grams_of(fitted(by_size, ragged), ["size"], 3)["size"][0], [4.0, 6.0, 2.0]
    )


def test_a_kernel_of_too_few_new_rows_is_not_spread_over_them():
    def careless(A, B):
        return A @ B.T if len(A) == N else (A @ B.T)[:1]

    design = fitted(KernelGraph(kernels={"a": careless}), X)
    with pytest.raises(ValueError, match=r"'a' between new rows.*\(3, 12\), got \(1, 12\)"):
        design.predict(["a"], np.ones(N), X[:3])


@pytest.mark.parametrize(
    ("new", "message"),
    [
        ({}, "lacks 'g'"),
        ({"g": GRAM[:2]}, "lacks 'f'"),
        ({"g": GRAM[:2], "f": X[:3]}, "'f' has 3 rows and that of 'g' 2"),
        ({"g": GRAM[:2, :5], "f": X[:2]}, r"'g' between new rows.*\(2, 12\), got \(2, 5\)"),
        ({"g": GRAM[:2], "f": X[:2, :1]}, "'f' have 1 columns on new rows and had 4"),
        ({"g": 3.0, "f": X[:1]}, "'g' between new rows"),
        ({"g": GRAM[0], "f": X}, r"'g' between new rows.*got \(12,\)"),
        ({"g": HOLE[3:4], "f": X[:1]}, "'g' on new rows has entries that are not finite"),
        ({"g": GRAM[:1], "f": HOLE[3:4, :4]}, "'f' have entries that are not finite"),
        ({"g": [["x"] * N], "f": X[:1]}, "'g' must be numbers"),
    ],
    ids=["nothing", "one", "rows", "columns", "width", "number", "vector", "nan", "nan f", "text"],
)
def test_new_rows_as_matrices_that_do_not_fit(new, message):
    design = fitted(KernelGraph(grams={"g": GRAM}, features={"f": X}), np.arange(N))
    with pytest.raises(ValueError, match=message):
        design.predict(["g", "f"], np.ones(N + 4), new)


def test_predictions_from_rows_matrices_and_training_rows_agree():
    graph = KernelGraph(grams={"g": GRAM}, features={"f": X, "h": lambda rows: X[rows] ** 2})
    rows, new = np.array([1, 4, 5, 9]), np.array([0, 4, 11])
    design = fitted(graph, rows)
    coef = np.random.default_rng(2).standard_normal((4 + 4 + 4, 2))
    expected = GRAM[np.ix_(new, rows)] @ coef[:4] + X[new] @ coef[4:8] + X[new] ** 2 @ coef[8:]
    nodes = ["g", "f", "h"]
    np.testing.assert_allclose(design.predict(nodes, coef, new), expected)
    mapping = {"g": GRAM[np.ix_(new, rows)], "f": X[new], "h": X[new] ** 2}
    np.testing.assert_allclose(design.predict(nodes, coef, mapping), expected)
    with pytest.raises(ValueError, match="'more', which is no node"):
        design.predict(nodes, coef, mapping | {"more": X[new]})
    own = design.predict(nodes, coef, TrainingRows(np.array([1, 2])))
    np.testing.assert_allclose(own, design.predict(nodes, coef, rows[[1, 2]]))


def test_a_subset_predicts_from_its_own_rows():
    graph = KernelGraph(grams={"g": GRAM}, kernels={"k": lambda i, j: GRAM[np.ix_(i, j)] ** 2})
    design = fitted(graph, np.arange(N)).subset(np.arange(6)).subset(np.array([1, 3]))
    coef = np.array([1.0, -2.0, 0.5, 0.0])
    expected = GRAM[:, [1, 3]] @ coef[:2] + GRAM[:, [1, 3]] ** 2 @ coef[2:]
    np.testing.assert_allclose(design.predict(["g", "k"], coef, np.arange(N)), expected)
    found = design.predict(["g", "k"], coef, TrainingRows(np.arange(N)))
    np.testing.assert_allclose(found, expected)


def test_long_predictions_are_cut_into_pieces(monkeypatch):
    monkeypatch.setattr("hikernel.graphs.kernel_design._CROSS_NUMBERS", 3 * N)
    sizes = []

    def counted(A, B):
        sizes.append(len(A))
        return A @ B.T

    design = fitted(KernelGraph(kernels={"a": counted}), X)
    new = np.random.default_rng(1).standard_normal((8, 4))
    np.testing.assert_allclose(design.predict(["a"], np.ones(N), new), new @ X.T @ np.ones(N))
    assert sizes == [N, 3, 3, 2]
