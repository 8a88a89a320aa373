"""Who wants to know how much of the work at hand is done: set above, told by long loops below."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

__all__ = ["watched", "watcher", "watching"]

Result = TypeVar("Result")
Watcher = Callable[[float], None]

_watcher: ContextVar[Watcher | None] = ContextVar("watcher", default=None)
"""Is told which share of the work at hand is done; only ``watching`` sets it."""


@contextmanager
def watching(watch: Watcher | None) -> Iterator[None]:
    """Let a function be told, within the context, which share of the work there is done."""
    before = _watcher.get()
    try:
        _watcher.set(watch)
        yield
    finally:
        _watcher.set(before)


def watcher() -> Watcher | None:
    """Return the function that wants to know how much is done; None if nobody does."""
    return _watcher.get()


def watched(results: Iterable[Result], number: int) -> Iterator[Result]:
    """Yield ``number`` results, and tell who is watching how many there were.

    >>> seen = []
    >>> with watching(seen.append):
    ...     list(watched("ab", 2))
    ['a', 'b']
    >>> seen
    [0.5, 1.0]
    """
    watch = _watcher.get()
    for count, result in enumerate(results, 1):
        yield result
        if watch is not None:
            watch(count / number)
