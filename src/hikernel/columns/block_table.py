"""Tables that are larger than memory, as blocks of rows that are read when they are needed.

A pyarrow dataset (Parquet, Arrow, CSV), a lazy frame of polars and a large array that is mapped
from a file are such tables; others derive from ``BlockTable``. Nothing here computes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hikernel.columns.reading import lies_in_blocks
from hikernel.engines.row_blocks import HeldBlocks, RowBlocks, StreamedBlocks, as_slices

__all__ = ["BlockTable", "as_block_table"]

_BLOCK_NUMBERS = 2**21
"""Numbers of a block that is read: 16 MiB of float64."""


class BlockTable(ABC):
    """A table whose rows are read in blocks.

    Attributes
    ----------
    names : tuple of str or None
        Names of the columns; None if they have none.
    n_columns : int
        Number of columns.
    """

    in_blocks = True
    names: tuple[str, ...] | None
    n_columns: int

    @abstractmethod
    def blocks(self) -> RowBlocks:
        """Return the blocks, each a table that can be read."""

    @abstractmethod
    def column(self, name: str) -> NDArray[Any]:
        """Return one column as an array, shape (n,)."""

    @abstractmethod
    def select(self, names: Sequence[str]) -> BlockTable:
        """Return the table of some columns, in the given order."""

    def plain_matrix(self) -> NDArray[Any] | None:
        """Return the table as a matrix that is mapped from a file, if it is one."""
        return None

    def split(self, **vectors: Any) -> tuple[BlockTable, dict[str, Any]]:
        """Return the table without some columns, and these columns.

        Parameters
        ----------
        **vectors : str, array-like or None
            The name of a column, which is taken out of the table; anything else stays what it is.

        Raises
        ------
        ValueError
            If there is no column of that name, or no other one.
        """
        taken = {name: given for name, given in vectors.items() if isinstance(given, str)}
        for name, column in taken.items():
            if self.names is None or column not in self.names:
                known = "none has a name" if self.names is None else ", ".join(self.names[:10])
                raise ValueError(
                    f"{name} names the column {column!r}, which X does not have (its columns: "
                    f"{known}); pass the name of one of them, or an array with one entry per row."
                )
        if not taken:
            return self, vectors
        rest = [name for name in self.names or () if name not in taken.values()]
        if not rest:
            raise ValueError("X has no column left; it needs at least one beside those of y.")
        columns = {name: self.column(column) for name, column in taken.items()}
        return self.select(rest), vectors | columns


def as_block_table(X: Any) -> BlockTable | None:
    """Return X as a table in blocks, or None if it is no such thing.

    Examples
    --------
    >>> as_block_table([[1.0, 2.0]]) is None
    True
    """
    if isinstance(X, BlockTable):
        return X
    if not lies_in_blocks(X):
        return None
    if isinstance(X, np.memmap):
        return MappedArray(X)
    return PolarsTable(X) if hasattr(X, "collect_schema") else ArrowTable(X)


class ArrowTable(BlockTable):
    """A pyarrow dataset.

    Parameters
    ----------
    dataset : pyarrow.dataset.Dataset
        The dataset; its files are read in their order.
    names : sequence of str, optional
        The columns; all by default.
    """

    def __init__(self, dataset: Any, names: Sequence[str] | None = None) -> None:
        self._dataset = dataset
        self.names = tuple(dataset.schema.names if names is None else names)
        self.n_columns = len(self.names)

    def blocks(self) -> RowBlocks:
        """Return the blocks as tables of pyarrow."""
        return StreamedBlocks(self._read)

    def _read(self) -> Iterator[Any]:
        import pyarrow as pa

        size = max(1, _BLOCK_NUMBERS // self.n_columns)
        # By default many parts are read ahead, whatever their size.
        batches = self._dataset.to_batches(
            columns=list(self.names or ()), batch_size=size, batch_readahead=2, fragment_readahead=1
        )
        for batch in batches:
            if batch.num_rows:
                yield pa.Table.from_batches([batch])
        pa.default_memory_pool().release_unused()

    def column(self, name: str) -> NDArray[Any]:
        """Return one column as an array."""
        parts = [np.asarray(part.column(0).to_numpy()) for part in self.select([name])._read()]
        return np.concatenate(parts) if parts else np.empty(0)

    def select(self, names: Sequence[str]) -> ArrowTable:
        """Return the dataset with some columns."""
        return ArrowTable(self._dataset, names)


class PolarsTable(BlockTable):
    """A lazy frame of polars, whose query runs whenever it is read, without its whole result.

    Parameters
    ----------
    frame : polars.LazyFrame
        The frame.
    """

    def __init__(self, frame: Any) -> None:
        self._frame = frame
        self.names = tuple(frame.collect_schema().names())
        self.n_columns = len(self.names)

    def blocks(self) -> RowBlocks:
        """Return the blocks as frames of polars."""
        return StreamedBlocks(self._read)

    def _read(self) -> Iterator[Any]:
        size = max(1, _BLOCK_NUMBERS // self.n_columns)
        if hasattr(self._frame, "collect_batches"):
            yield from self._frame.collect_batches(chunk_size=size, maintain_order=True)
            return
        # Before polars 1.34 a query runs once for every slice; one of a file reads only that.
        import polars as pl

        n_rows = int(_collected(self._frame.select(pl.len())).item())
        for start in range(0, n_rows, size):
            yield _collected(self._frame.slice(start, size))

    def column(self, name: str) -> NDArray[Any]:
        """Return one column as an array."""
        found = _collected(self._frame.select(name))
        return np.asarray(found.to_series().to_numpy())

    def select(self, names: Sequence[str]) -> PolarsTable:
        """Return the frame with some columns."""
        return PolarsTable(self._frame.select(list(names)))


def _collected(frame: Any) -> Any:
    """Return the result of a lazy frame, from the streaming engine where polars has one."""
    try:
        return frame.collect(engine="streaming")
    except (TypeError, ValueError):  # before polars 1.23
        return frame.collect()


class MappedArray(BlockTable):
    """An array of numbers that is mapped from a file.

    Parameters
    ----------
    array : ndarray of shape (n, p)
        The array; what is read of it stays in the cache of the system.
    """

    names = None

    def __init__(self, array: NDArray[Any]) -> None:
        self._array = array
        self.n_columns = array.shape[1]

    def blocks(self) -> RowBlocks:
        """Return the blocks as slices of the array."""
        return HeldBlocks(as_slices(self._array, max(1, _BLOCK_NUMBERS // self.n_columns)))

    def plain_matrix(self) -> NDArray[Any]:
        """Return the array, which needs no copy if its columns are numbers without gaps."""
        return self._array

    def column(self, name: str) -> NDArray[Any]:
        """Raise: the columns of an array have no names."""
        raise ValueError(f"An array has no column {name!r}; pass y as an array.")

    def select(self, names: Sequence[str]) -> BlockTable:
        """Raise: the columns of an array have no names."""
        raise ValueError("The columns of an array have no names.")
