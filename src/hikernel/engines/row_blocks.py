"""Rows that do not lie in one array: blocks of them, and the one way to compute with them.

What lies here knows nothing of columns, bases or terms. A block is whatever the one who made it and
the function that is mapped over it agree on: a part of a table, or a matrix of numbers.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hikernel.engines.machine import in_threads
from hikernel.engines.protocol import FloatArray
from hikernel.errors import MemoryPlanError

__all__ = [
    "FileBlocks",
    "HeldBlocks",
    "RowBlocks",
    "Selection",
    "StreamedBlocks",
    "as_slices",
    "n_selected",
    "split_rows_of_blocks",
]

IndexArray = NDArray[np.intp]
Selection = IndexArray | None
"""Rows of a block by position, increasing; None for all."""

Work = Callable[..., Any]
"""Takes a block and the arguments for it. It can be pickled, as blocks may lie elsewhere."""


class RowBlocks(ABC):
    """Blocks of rows in a fixed order, wherever they lie."""

    @abstractmethod
    def map(
        self, name: str, work: Work, arguments: Iterable[tuple[Any, ...]] | None = None
    ) -> Iterator[Any]:
        """Yield ``work(block, *arguments_of_the_block)`` for every block, in their order.

        The time of the user is not looked at: who needs a result of all rows cannot do with less.

        Parameters
        ----------
        name : str
            What the work is, in a word or two, for those who watch it.
        work : callable
            The function.
        arguments : iterable of tuple, optional
            What it takes besides the block, one tuple per block; nothing by default.
        """

    @abstractmethod
    def kept(self, name: str, work: Work) -> RowBlocks:
        """Return the matrices ``work(block)`` as blocks, made once and kept where blocks lie."""


class HeldBlocks(RowBlocks):
    """Blocks in the memory of this process, or slices of an array that is mapped from a file.

    Parameters
    ----------
    blocks : sequence
        The blocks.
    """

    def __init__(self, blocks: Sequence[Any]) -> None:
        self._blocks = blocks

    def map(
        self, name: str, work: Work, arguments: Iterable[tuple[Any, ...]] | None = None
    ) -> Iterator[Any]:
        """Yield the results of all blocks, computed in threads."""
        return _in_threads(self._blocks, work, arguments)

    def kept(self, name: str, work: Work) -> RowBlocks:
        """Return the matrices in a file, as others would not fit beside those that are here."""
        return FileBlocks.written(self.map(name, work))


class StreamedBlocks(RowBlocks):
    """Blocks that are read one after the other, every time from the start.

    Parameters
    ----------
    read : callable
        Returns an iterator over the blocks.
    """

    def __init__(self, read: Callable[[], Iterator[Any]]) -> None:
        self._read = read

    def map(
        self, name: str, work: Work, arguments: Iterable[tuple[Any, ...]] | None = None
    ) -> Iterator[Any]:
        """Yield the results of all blocks, computed as they are read."""
        every = repeat(()) if arguments is None else iter(arguments)
        for block in self._read():
            yield work(block, *next(every))

    def kept(self, name: str, work: Work) -> RowBlocks:
        """Return the matrices in a file."""
        return FileBlocks.written(self.map(name, work))


class FileBlocks(HeldBlocks):
    """Matrices of float64 in a temporary file, each column by column; gone with this object.

    The file has no name where the system allows that, so that nothing is left behind, however the
    process ends. Reads go through the cache of the system and take no memory of the process.

    Parameters
    ----------
    file : NumberFile
        The file.
    shapes : sequence of (int, int)
        Rows and columns of every block.
    """

    def __init__(self, file: NumberFile, shapes: Sequence[tuple[int, int]]) -> None:
        starts = np.cumsum([0, *(rows * columns for rows, columns in shapes)]).tolist()
        super().__init__([FileBlock(file, *at) for at in zip(starts, shapes, strict=False)])

    @classmethod
    def written(cls, matrices: Iterable[FloatArray]) -> FileBlocks:
        """Write matrices as they come, and return them as blocks."""
        file, shapes = NumberFile(), []
        for matrix in matrices:
            file.append(np.asfortranarray(matrix, dtype=np.float64).T)
            shapes.append((len(matrix), matrix.shape[1]))
        return cls(file, shapes)


class NumberFile:
    """A temporary file of float64 numbers, which several threads may read."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile(prefix="hikernel-")  # noqa: SIM115
        self._lock = threading.Lock()
        weakref.finalize(self, self._file.close)

    def append(self, numbers: FloatArray) -> None:
        """Write numbers at the end; raise if the disk has no room for them."""
        folder = tempfile.gettempdir()
        free = shutil.disk_usage(folder).free
        if numbers.nbytes > free:
            raise MemoryPlanError(
                f"The rows are kept as numbers in a temporary file, and {folder} has only "
                f"{free / 2**30:.1f} GiB left; make room, or name another folder in the "
                "environment variable TMPDIR (it takes 8 bytes per row and column)."
            )
        self._file.write(numbers.reshape(-1).view(np.uint8).data)
        self._file.flush()

    def numbers(self, start: int, count: int) -> FloatArray:
        """Return some numbers, by position."""
        out = np.empty(count)
        with self._lock:
            self._file.seek(start * out.itemsize)
            self._file.readinto(out.view(np.uint8).data)
        return out


class FileBlock:
    """A matrix in a file; ``block[start:stop, m]`` reads a part of column m.

    Parameters
    ----------
    file : NumberFile
        The file.
    start : int
        Position of its first number.
    shape : (int, int)
        Rows and columns.
    """

    def __init__(self, file: NumberFile, start: int, shape: tuple[int, int]) -> None:
        self._file, self._start, self.shape = file, start, shape

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: tuple[slice, int]) -> FloatArray:
        rows, m = index
        first, last, _ = rows.indices(len(self))
        return self._file.numbers(self._start + m * len(self) + first, max(0, last - first))


def _in_threads(
    blocks: Sequence[Any], work: Work, arguments: Iterable[tuple[Any, ...]] | None
) -> Iterator[Any]:
    every: Iterable[tuple[Any, ...]] = repeat((), len(blocks)) if arguments is None else arguments
    jobs = list(zip(blocks, every, strict=True))
    return in_threads(lambda job: work(job[0], *job[1]), jobs, timed=False)


def as_slices(array: NDArray[Any], n_rows: int) -> list[NDArray[Any]]:
    """Return an array cut into slices of at most ``n_rows`` rows."""
    return [array[start : start + n_rows] for start in range(0, len(array), n_rows)]


def split_rows_of_blocks(
    sizes: Sequence[int], selections: Sequence[Selection], rows: IndexArray
) -> list[Selection]:
    """Return for every block which of its rows are among the selected rows at some positions.

    Parameters
    ----------
    sizes : sequence of int
        Rows of every block.
    selections : sequence of (ndarray of int or None)
        The rows of every block that are selected so far.
    rows : ndarray of int
        Positions among these rows, increasing.

    Raises
    ------
    ValueError
        If the positions do not increase.

    Examples
    --------
    >>> split_rows_of_blocks([3, 2], [None, np.array([1])], np.array([0, 2, 3]))
    [array([0, 2]), array([1])]
    """
    rows = np.asarray(rows)
    if rows.dtype == np.bool_:
        rows = np.flatnonzero(rows)
    if len(rows) and (rows[0] < 0 or np.any(rows[1:] <= rows[:-1])):
        raise ValueError(
            "Rows that lie in blocks are taken in their order, and each once; folds must list "
            "increasing row numbers, as those of KFold do."
        )
    counts = n_selected(sizes, selections)
    ends = np.cumsum(counts)
    cuts = np.searchsorted(rows, ends)
    out: list[Selection] = []
    for first, last, end, count, known in zip(
        [0, *cuts[:-1]], cuts, ends, counts, selections, strict=True
    ):
        within = (rows[first:last] - (end - count)).astype(np.intp)
        whole = len(within) == count
        out.append(known if whole else within if known is None else known[within])
    return out


def n_selected(sizes: Sequence[int], selections: Sequence[Selection]) -> list[int]:
    """Return the number of selected rows of every block."""
    parts = zip(sizes, selections, strict=True)
    return [size if known is None else len(known) for size, known in parts]
