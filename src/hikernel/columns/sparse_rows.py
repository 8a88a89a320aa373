"""Rows of a sparse matrix: read, checked, and selected without filling in the zeros.

A zero that is not stored is the number zero, like one that is. The matrix is kept by columns
(CSC), since bases are fitted and levels computed column by column.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from hikernel.columns.table import ColumnTable
from hikernel.engines.machine import require_memory
from hikernel.engines.protocol import FloatArray
from hikernel.graphs import RowSet

__all__ = ["SparseRows", "as_columns", "check_booleans", "sparse_table"]

IndexArray = NDArray[np.intp]


def as_columns(X: Any) -> sparse.csc_array:
    """Return X as a matrix of sorted columns in float64, without stored zeros and duplicates.

    Raises
    ------
    TypeError
        For complex numbers and objects.
    ValueError
        For infinity, and no rows or columns.
    """
    if not sparse.issparse(X):
        X = _from_frame(X)
    if X.ndim != 2 or min(X.shape) == 0:
        n_features = X.shape[1] if X.ndim == 2 else 0
        raise ValueError(
            f"X is a sparse array of shape {X.shape}, with {n_features} feature(s); a minimum of "
            "1 row and 1 column is required."
        )
    if X.dtype.kind not in "buif":
        raise TypeError(
            f"X is a sparse matrix of dtype {X.dtype}, and only real numbers are supported. "
            "Complex data not supported: pass real and imaginary parts as columns of their own."
            if X.dtype.kind == "c"
            else f"X is a sparse matrix of dtype {X.dtype}, which are not numbers; encode them."
        )
    require_memory(
        2 * X.nnz,
        f"A copy of the {X.nnz} entries of X",
        "Use fewer rows, or drop columns that are rarely not zero.",
    )
    out = sparse.csc_array(X, dtype=np.float64, copy=True)
    out.sum_duplicates()
    out.eliminate_zeros()
    out.sort_indices()
    if np.any(np.isinf(out.data)):
        m = int(np.searchsorted(out.indptr, np.argmax(np.isinf(out.data)), side="right")) - 1
        raise ValueError(
            f"Input X contains infinity in column {m}; replace it by a number, or by NaN in rows "
            "to predict."
        )
    return out


def _from_frame(frame: Any) -> Any:
    """Return a pandas frame of sparse columns as a sparse matrix."""
    kinds = {dtype.subtype.kind for dtype in frame.dtypes}
    if "O" in kinds:
        raise TypeError(
            "X is a frame of sparse columns, some of dtype object, which are not numbers; convert "
            "them, for example by X.astype(pandas.SparseDtype(float, 0.0))."
        )
    if "b" in kinds and len(kinds) > 1:  # which have no common dtype but that of objects
        import pandas as pd

        frame = frame.astype(pd.SparseDtype(np.float64, 0.0))
    return frame.sparse.to_coo()


def _frame_names(frame: Any) -> tuple[str, ...] | None:
    """Return the names of the columns of a frame; None if they are but their positions."""
    names = list(frame.columns)
    if all(isinstance(name, str) for name in names):
        return tuple(names)
    if names == list(range(len(names))):
        return None
    other = next(name for name in names if not isinstance(name, str))
    raise TypeError(
        f"X is a frame of sparse columns with a name that is not text ({other!r}); rename the "
        "columns, for example by X.columns = [str(name) for name in X.columns]."
    )


def sparse_table(X: Any) -> ColumnTable:
    """Return names and kinds of the columns of a sparse X, numbers or booleans by their dtypes."""
    n_columns = X.shape[1]
    given = None if sparse.issparse(X) else _frame_names(X)
    if given is not None and len(set(given)) != len(given):
        raise ValueError("X has two columns of the same name; rename one of them.")
    dtypes: list[Any] = [getattr(X, "dtype", None)] * n_columns
    if not sparse.issparse(X):
        dtypes = [dtype.subtype for dtype in X.dtypes]
    return ColumnTable(
        names=given or tuple(f"x{m}" for m in range(n_columns)),
        kinds=tuple("boolean" if dtype.kind == "b" else "number" for dtype in dtypes),
        categories=(None,) * n_columns,
        n_features_in=n_columns,
        feature_names_in=given,
        indicators=(),
    )


def check_booleans(table: ColumnTable, matrix: sparse.csc_array) -> None:
    """Raise if a column that held booleans in ``fit`` holds other numbers than 0 and 1."""
    boolean = np.array([kind == "boolean" for kind in table.kinds])
    if not boolean.any():
        return
    wrong = np.flatnonzero((matrix.data != 1.0) & ~np.isnan(matrix.data))
    columns = np.searchsorted(matrix.indptr, wrong, side="right") - 1
    for place, m in zip(wrong, columns, strict=True):
        if boolean[m]:
            raise ValueError(
                f"Column {table.names[m]!r} is a column of booleans, but holds "
                f"{matrix.data[place]:g}; pass True and False, or 1 and 0."
            )


@dataclass(frozen=True)
class SparseRows(RowSet):
    """Rows of a sparse matrix with the names of its columns.

    ``rows[index]`` selects rows; ``rows[:, m]`` is column m as a dense vector, and ``rows[i]`` row
    i, so that code for a few columns or one row need not know that the matrix is sparse.

    Attributes
    ----------
    table : ColumnTable
        Names and kinds of the columns.
    matrix : csc_array of shape (n, p)
        The rows; NaN where a value of a new row is missing.
    """

    table: ColumnTable
    matrix: sparse.csc_array

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of columns."""
        return self.matrix.shape

    def __len__(self) -> int:
        return int(self.matrix.shape[0])

    def __getitem__(self, rows: Any) -> Any:
        if isinstance(rows, tuple):
            return self.dense([rows[1]])[:, 0][rows[0]]
        if isinstance(rows, int | np.integer):
            return self.matrix[[rows]].toarray()[0]
        if isinstance(rows, slice):
            rows = np.arange(len(self))[rows]
        # A CSC matrix selects rows fastest in the order of its transpose.
        return replace(self, matrix=sparse.csc_array(self.matrix[np.asarray(rows)]))

    def alone(self, rows: Any) -> SparseRows:
        """Return some rows as if no others had been read."""
        found: SparseRows = self[rows]
        return found

    def dense(self, variables: Sequence[int]) -> FloatArray:
        """Return some columns as a dense matrix, shape (n, len(variables))."""
        require_memory(
            len(self) * len(variables),
            f"{len(variables)} columns of {len(self)} rows of X",
            "Predict fewer rows at a time.",
        )
        out = np.zeros((len(self), len(variables)), order="F")
        for target, m in zip(out.T, variables, strict=True):
            rows, values = self.column(m)
            target[rows] = values
        return out

    def column(self, m: int) -> tuple[NDArray[Any], FloatArray]:
        """Return the rows in which column m is not zero, and its values there."""
        start, stop = self.matrix.indptr[m : m + 2]
        return self.matrix.indices[start:stop], self.matrix.data[start:stop]

    def distinct(self, m: int) -> tuple[FloatArray, IndexArray]:
        """Return the distinct values of column m that are not zero, and the index of each entry."""
        _, values = self.column(m)
        found, inverse = np.unique(values, return_inverse=True)
        return found, inverse.astype(np.intp, copy=False)

    def indicators(self) -> FloatArray:
        """Return the only value but zero of every column that has one, and NaN for the others."""
        counts = np.diff(self.matrix.indptr)
        filled = np.flatnonzero(counts)
        out = np.full(len(counts), np.nan)
        if len(filled):
            starts = self.matrix.indptr[filled]
            low = np.minimum.reduceat(self.matrix.data, starts)
            high = np.maximum.reduceat(self.matrix.data, starts)
            out[filled] = np.where(low == high, low, np.nan)
        return out
