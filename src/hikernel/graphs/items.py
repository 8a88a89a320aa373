"""Rows of any kind: arrays, data frames, lists of strings or graphs, row numbers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sized
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import _safe_indexing

__all__ = ["RowSet", "TrainingRows", "check_items", "check_positions", "check_rows", "take"]

IndexArray = NDArray[np.intp]


class RowSet(ABC):
    """Base class for row containers of this package: they have a length and can be indexed."""

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of rows."""

    @abstractmethod
    def __getitem__(self, rows: Any) -> RowSet:
        """Return some of the rows."""


@dataclass(frozen=True)
class TrainingRows(RowSet):
    """Some of the training rows of a design, by position, so that nothing need be recomputed."""

    positions: IndexArray

    def __len__(self) -> int:
        return len(self.positions)

    def __getitem__(self, rows: Any) -> TrainingRows:
        return TrainingRows(self.positions[rows])


def check_rows(X: Any) -> Any:
    """Return X if it is a sequence of at least one row; raise otherwise."""
    if isinstance(X, (str, bytes, dict)) or not isinstance(X, Sized):
        raise ValueError(
            f"X must be a sequence of rows (an array, a data frame, a list), got "
            f"{type(X).__name__}."
        )
    if sparse.issparse(X):
        raise ValueError("X must be a sequence of rows, got a sparse matrix; pass X.toarray().")
    if len(X) == 0:
        raise ValueError("X has no rows.")
    return X


def check_items(X: Any, what: str) -> list[Any]:
    """Return the rows of a list, a series, or a table with one column as a list.

    Parameters
    ----------
    X : sequence
        The rows.
    what : str
        What the rows are, for error messages.
    """
    is_table = hasattr(X, "columns") or (isinstance(X, np.ndarray) and X.dtype.kind in "OUS")
    shape: tuple[int, ...] = tuple(getattr(X, "shape", ()))
    if is_table and len(shape) == 2:
        if shape[1] != 1:
            raise ValueError(
                f"X must be a list of {what}, one a row, got a table of shape {shape}; pass the "
                "column that holds them."
            )
        X = np.asarray(X, dtype=object)[:, 0]
    return list(check_rows(X))


def take(X: Any, rows: IndexArray) -> Any:
    """Return some rows of X in the same form: an array, a frame of the same library, or a list."""
    if isinstance(X, RowSet):
        return X[rows]
    if isinstance(X, (np.ndarray, list, tuple)):
        return _safe_indexing(X, rows)
    if hasattr(X, "tocsr"):  # not every sparse format has rows to choose
        return X.tocsr()[rows]
    import narwhals.stable.v2 as nw

    frame: Any = nw.from_native(X, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        return frame[rows, :].to_native()
    return _safe_indexing(X, rows)


def check_positions(X: Any, n_items: int, what: str) -> IndexArray:
    """Return row numbers as an array of shape (n,); raise unless they lie in 0 .. n_items - 1."""
    found = np.asarray(X)
    if found.ndim == 2 and found.shape[1] == 1:
        found = found[:, 0]
    if found.size == 0:
        raise ValueError("X has no rows.")
    numbers = found.ndim == 1 and np.issubdtype(found.dtype, np.number) and len(found) > 0
    if not numbers or not np.all(found == np.floor(found)):
        raise ValueError(
            f"X must be row numbers of {what}, one a row (numpy.arange({n_items}) for all), got "
            f"{'shape ' + str(found.shape) if found.ndim != 1 else repr(found[:3])}."
        )
    if np.min(found) < 0 or np.max(found) >= n_items:
        raise ValueError(
            f"X has row numbers from {np.min(found):g} to {np.max(found):g}, but {what} have "
            f"{n_items} rows, numbered from 0."
        )
    return found.astype(np.intp)
