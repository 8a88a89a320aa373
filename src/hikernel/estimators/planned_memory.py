"""Whether and how an estimator plans the memory of a fit."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from hikernel.columns.reading import lies_in_blocks
from hikernel.search import SearchSettings

if TYPE_CHECKING:
    from hikernel.estimators.memory_plan import MemoryPlanner

__all__ = ["PlannedMemory"]

_LARGE_TABLE = 10**6
"""Entries of a table above which the memory of a fit is planned, even if the user sets no limit."""


class PlannedMemory:
    """Base class of estimators with a limit on memory."""

    max_memory: Any
    monotone: Any

    def _most_bytes(self) -> int | None:
        """Return ``max_memory`` in bytes; None for no limit."""
        if self.max_memory is None:
            return None
        from hikernel.estimators.memory_plan import as_bytes  # imported only when needed

        return as_bytes("max_memory", self.max_memory)

    def _plans_memory(self, X: Any) -> bool:
        """Return whether memory is planned: not for small tables without a limit, nor blocks."""
        shape = getattr(getattr(X, "matrix", X), "shape", ())
        limited = self.max_memory is not None or math.prod(shape) > _LARGE_TABLE
        return limited and not lies_in_blocks(X)

    def _memory_plan(
        self, rows: Any, settings: SearchSettings, **more: Any
    ) -> MemoryPlanner | None:
        """Return what plans the memory of a fit; None where it is small and has no limit."""
        if not self._plans_memory(rows):
            return None
        from hikernel.estimators.memory_plan import planner  # imported only when needed

        refits = getattr(self, "refit", None) is not None or self.monotone is not None
        most, certify = self._most_bytes(), settings.certify
        return planner(most, settings.max_kernels, refits=refits, certify=certify, **more)
