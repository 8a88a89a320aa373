"""Bases, levels and weights of sparse columns against those of dense ones."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from hikernel.bases import AsinhPolynomial, Branches, OrthonormalPolynomial, Steps
from hikernel.columns import ColumnGrid
from hikernel.columns.shared_bases import SharedBases
from hikernel.columns.sparse_grid import SparseGrid
from hikernel.columns.sparse_levels import SparseLevelSizes, level_matrix
from hikernel.columns.sparse_rows import SparseRows, as_columns, sparse_table
from hikernel.columns.weights import LevelSizes, level_size


def table(n=60, seed=0):
    """Columns that are constant, full, indicators, counts, with signs, and without zeros."""
    rng = np.random.default_rng(seed)
    X = (rng.random((n, 8)) < 0.3) * rng.integers(1, 6, size=(n, 8)).astype(float)
    X[:, 0] = 0.0
    X[:, 1] = 7.0
    X[:, 2] = X[:, 2] > 0
    X[:, 3] = -2.0 * X[:, 2]
    X[:, 4] *= rng.standard_normal(n)
    X[:, 5] = 1.0 + rng.standard_normal(n) ** 2
    return X, rng.uniform(0.5, 2.0, n)


TREE = Branches((OrthonormalPolynomial(2), Steps(1)))


@pytest.mark.parametrize("basis", ["auto", "orthonormal", AsinhPolynomial(3), TREE, {"x6": "rank"}])
@pytest.mark.parametrize("max_order", [1, 2])
@pytest.mark.parametrize("weighted", [False, True])
def test_levels_and_weights_are_those_of_the_dense_columns(basis, max_order, weighted):
    X, weights = table()
    weights = weights if weighted else np.ones(len(X))
    dense = ColumnGrid(basis=basis, max_order=max_order)
    grid = dense.suited_to(sparse.csr_array(X))
    assert isinstance(grid, SparseGrid)
    rows = grid.read(sparse.csr_array(X))
    expected = dense.fit(dense.read(X), weights)
    found = grid.fit(rows, weights)
    assert found.notes == expected.notes
    for m, (mine, theirs) in enumerate(zip(found.bases, expected.bases, strict=True)):
        assert type(mine) is type(theirs)
        for a, b in zip(mine.transform(X[:, m]), theirs.transform(X[:, m]), strict=True):
            np.testing.assert_allclose(a, b, atol=1e-9)
    for mine, theirs in zip(found.grid.level_weights, expected.grid.level_weights, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-8)
    assert found.grid.level_parents == expected.grid.level_parents
    levels = level_matrix(found.bases, rows, range(8))
    dense_levels = levels.columns.toarray() + levels.zeros
    for c, (m, j) in enumerate(levels.pairs):
        np.testing.assert_allclose(
            dense_levels[:, c], expected.bases[m].transform(X[:, m])[j][:, 0], atol=1e-9
        )


@pytest.mark.parametrize("max_order", [1, 2])
def test_the_diagonal_of_the_kernel_equals_that_of_dense_levels(max_order):
    X, weights = table()
    grid = SparseGrid.of(ColumnGrid(max_order=max_order))
    rows = grid.read(sparse.csr_array(X))
    bases = grid.fit(rows, weights).bases
    omega = weights / np.sum(weights)
    sizes = [
        tuple(level_size(level[:, 0] ** 2, omega) for level in basis.transform(X[:, m])[1:])
        for m, basis in enumerate(bases)
    ]
    found = SparseLevelSizes(bases, level_matrix(bases, rows, range(8)), sizes, weights)
    expected = LevelSizes(bases, X, weights)
    for base in (1.5, 3.0, 40.0):
        np.testing.assert_allclose(
            found.log_diagonal(base, max_order), expected.log_diagonal(base, max_order), rtol=1e-10
        )


def test_columns_of_the_same_distribution_share_a_basis():
    rng = np.random.default_rng(0)
    order = rng.permuted(np.tile(np.r_[np.ones(5), np.zeros(25)], (40, 1)), axis=1).T
    counts = rng.permuted(np.tile(np.r_[[1.0, 1.0, 2.0, 3.0], np.zeros(26)], (40, 1)), axis=1).T
    X = sparse.csr_array(np.hstack([order, counts]))
    grid = SparseGrid.of(ColumnGrid())
    design = grid.fit(grid.read(X), np.ones(30))
    shared = SharedBases.of(design.bases)
    assert len(shared.distinct) == 2
    assert shared.every() == design.bases
    assert shared.is_sound()
    for wrong in (shared.index - 1, shared.index + 1, shared.index[None], shared.index + 0.0):
        assert not SharedBases(shared.distinct, wrong).is_sound()


def test_rows_answer_like_a_dense_matrix():
    X, _ = table()
    rows = SparseRows(sparse_table(sparse.csr_array(X)), as_columns(sparse.csr_array(X)))
    assert rows.shape == X.shape
    np.testing.assert_array_equal(rows[:, 4], X[:, 4])
    np.testing.assert_array_equal(rows[3], X[3])
    index = np.array([5, 2, 2])
    np.testing.assert_array_equal(rows[index].matrix.toarray(), X[index])
    np.testing.assert_array_equal(rows[10:20].matrix.toarray(), X[10:20])
    np.testing.assert_array_equal(rows[X[:, 2] > 0].matrix.toarray(), X[X[:, 2] > 0])
    np.testing.assert_array_equal(rows.dense([5, 2]), X[:, [5, 2]])
    expected = [v[0] if len(v := np.unique(x[x != 0])) == 1 else np.nan for x in X.T]
    np.testing.assert_array_equal(rows.indicators(), expected)
