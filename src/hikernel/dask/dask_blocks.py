"""Dask collections as tables in blocks: functions go to the workers where the partitions lie.

There is no scheduler here. Every pass over the rows is a set of tasks of Dask with a name that the
dashboard shows, and what a lost worker had is computed again by Dask from where it came.
"""

from __future__ import annotations

import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import repeat
from typing import Any

import dask
import dask.array as da
import numpy as np
from distributed import Future
from numpy.typing import NDArray

from hikernel.columns.block_table import BlockTable
from hikernel.engines.row_blocks import RowBlocks

__all__ = ["DaskBlocks", "DaskTable", "holds_dask", "partitions_of", "to_client"]

_AHEAD = 2
"""Tasks that wait for each thread of the workers; their part of the vectors is on its way."""


def holds_dask(X: Any) -> bool:
    """Return whether X is a collection of Dask."""
    return bool(dask.is_dask_collection(X))


def partitions_of(X: Any) -> list[Any]:
    """Return the partitions of an array or a frame as delayed objects, in the order of rows."""
    if isinstance(X, da.Array):
        if X.ndim > 1 and X.numblocks[1] > 1:
            X = X.rechunk({1: -1})
        return list(X.to_delayed().ravel())
    return list(X.to_delayed())


def to_client(given: Any, client: Any) -> Any:
    """Return a vector over the rows here, if it is one of Dask; anything else as it is."""
    return client.compute(given).result() if holds_dask(given) else given


class DaskTable(BlockTable):
    """A collection of Dask as a table in blocks.

    Parameters
    ----------
    collection : dask.array.Array or dask.dataframe.DataFrame
        The table, with any partitions.
    client : distributed.Client
        The client of the workers.
    """

    def __init__(self, collection: Any, client: Any) -> None:
        if not holds_dask(collection) or getattr(collection, "ndim", 2) != 2:
            raise TypeError(
                "X must be a dask array or data frame with rows and columns, got "
                f"{type(collection).__name__}; for a table in memory use the estimator of the same "
                "name without Dask."
            )
        self._collection, self._client = collection, client
        self.n_columns = int(collection.shape[1])
        names = list(getattr(collection, "columns", [None]))
        self.names = tuple(names) if all(isinstance(name, str) for name in names) else None

    def blocks(self) -> RowBlocks:
        """Return the partitions."""
        return DaskBlocks(self._client, partitions_of(self._collection))

    def column(self, name: str) -> NDArray[Any]:
        """Return one column as an array, here."""
        return np.asarray(to_client(self._collection[name], self._client))

    def select(self, names: Sequence[str]) -> DaskTable:
        """Return the frame with some columns."""
        return DaskTable(self._collection[list(names)], self._client)


class DaskBlocks(RowBlocks):
    """Blocks on the workers of a cluster.

    Parameters
    ----------
    client : distributed.Client
        The client of the workers.
    parts : sequence of Delayed or Future
        The blocks.
    """

    def __init__(self, client: Any, parts: Sequence[Any]) -> None:
        self._client, self._parts = client, parts
        self._ahead = max(1, _AHEAD * sum(client.nthreads().values()))

    def map(
        self,
        name: str,
        work: Callable[..., Any],
        arguments: Iterable[tuple[Any, ...]] | None = None,
    ) -> Iterator[Any]:
        """Yield the results of all blocks; a few of them are on their way at any time."""
        waiting: deque[Any] = deque()
        for future in self._submitted(name, work, arguments):
            waiting.append(future)
            if len(waiting) > self._ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()

    def kept(self, name: str, work: Callable[..., Any]) -> RowBlocks:
        """Return the matrices, which stay on the workers."""
        return DaskBlocks(self._client, list(self._submitted(name, work, None)))

    def _submitted(
        self,
        name: str,
        work: Callable[..., Any],
        arguments: Iterable[tuple[Any, ...]] | None,
    ) -> Iterator[Any]:
        """Yield a future for every block. Vectors are part of the task, which can be repeated."""
        number = uuid.uuid4().hex
        task = f"hikernel-{name.replace(' ', '-')}-{number}"
        shared = self._client.submit(_itself, work, key=f"hikernel-work-{number}")
        every = repeat(()) if arguments is None else iter(arguments)
        for k, part in enumerate(self._parts):
            given = next(every)
            with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TiB"}):
                if isinstance(part, Future):
                    yield self._client.submit(_call, shared, part, *given, key=f"{task}-{k}")
                else:
                    call = dask.delayed(_call)(shared, part, *given, dask_key_name=f"{task}-{k}")
                    yield self._client.compute(call)


def _itself(work: Any) -> Any:
    return work


def _call(work: Callable[..., Any], block: Any, *arguments: Any) -> Any:
    return work(block, *arguments)
