"""What a fit to the columns of a table takes of memory, from shapes alone, before it is taken.

The count is that of the arrays that grow with the data: stored levels, copies of folds, features
and Gram matrices of hulls and refits, descendant sums. ``max_memory`` is held by limiting the
columns of hulls and refits to those that there is room for, which depends on nothing but shapes.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hikernel.engines.machine import available_bytes, n_threads, readable_bytes, trust_plan
from hikernel.engines.protocol import FloatArray
from hikernel.errors import MemoryPlanError
from hikernel.graphs import Design
from hikernel.search.effort import UNLIMITED, ColumnLimits, most_columns
from hikernel.search.objective import AUTO_SKETCH_WORK, N_DRAWS

__all__ = ["FitShape", "MemoryPlanner", "as_bytes", "check_table", "planner"]

MemoryPlanner = Callable[[Design, FloatArray], ColumnLimits]
"""Checks the memory of a fit from its design and target, and returns what limits its models."""

_UNITS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_UNITS |= {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([kMGT]|[KMGT]i)?B\s*")
_NUMBER = 8
"""Bytes of a float64 number."""
_CHUNK = 2**21
"""Numbers in a chunk of features; a few arrays of this size exist at a time."""
_TILES = 5 * 2**20
"""Numbers of the tiles of a thread, while descendant sums are computed."""
_SCORES = 2**25
"""Most numbers in a table of scores."""
_PREFIXES = 2048
_READING = 4
"""Numbers per entry of a table, at least: twice while it is read, and a level and its square."""
_POINTS = 40
"""Points of a path, each of which keeps its dual variables."""
_PROCESS = 150 * 2**20
"""Bytes that a process of a fold takes before it has any rows."""
_LEAST_COLUMNS = 50
"""Columns of a model for which there must be room, or a fit does not start."""
_MOST_REFIT = 1000
"""Columns times outputs of a refit, at most."""


def as_bytes(name: str, value: Any) -> int | None:
    """Return a size in bytes, given as a number or as text with a unit; None for None.

    >>> as_bytes("max_memory", "4GB"), as_bytes("max_memory", "1.5 GiB")
    (4000000000, 1610612736)
    """
    if value is None:
        return None
    if isinstance(value, str):
        found = _SIZE.fullmatch(value)
        number = float(found[1]) * _UNITS[found[2] or ""] if found else 0.0
    elif isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool):
        number = float(value)
    else:
        number = 0.0
    if not 1.0 <= number < 2.0**63:
        raise ValueError(
            f'{name} must be a number of bytes, or a size such as "4GB" or "500 MiB", got '
            f"{value!r}."
        )
    return int(number)


@dataclass(frozen=True)
class FitShape:
    """The sizes of the arrays of a fit.

    Attributes
    ----------
    n_rows, n_columns : int
        Shape of the matrix of the table.
    n_features, n_levels : int
        Stored feature columns and levels of all columns of the matrix.
    n_outputs : int
        Outputs of the model.
    fold_rows : tuple of int
        Training rows of the folds; empty without cross-validation.
    n_jobs : int
        Folds that are fitted at the same time; above one, in other processes.
    refits : bool
        Whether there are refits.
    proof : bool
        Whether the kernels outside the hull are bounded.
    kept : int
        Bytes of another problem that stay in memory.
    """

    n_rows: int
    n_columns: int
    n_features: int
    n_levels: int
    n_outputs: int = 1
    fold_rows: tuple[int, ...] = ()
    n_jobs: int = 1
    refits: bool = True
    proof: bool = True
    kept: int = 0

    def stages(self, columns: ColumnLimits) -> dict[str, int]:
        """Return the bytes at the peak of each stage, for models of so many feature columns."""
        n, width = self.n_rows, self.n_features + self.n_columns
        points = _POINTS * self.n_outputs
        kept = self.kept + _NUMBER * n * (width + self.n_columns + 8 + points)
        out = {
            "features": self.kept + _NUMBER * n * (width + 4 * self.n_columns),
            "search": kept + self._search(n, columns),
        }
        if self.fold_rows:
            copies = [_NUMBER * m * (width + points) for m in self.fold_rows]
            largest = max(self.fold_rows)
            work = max(self._search(largest, columns), self._refit(largest, columns))
            if self.n_jobs == 1:
                folds = sum(copies) + work
            else:  # every process reads the features of all rows from one file in memory
                some = sorted(copies)[-self.n_jobs :]
                folds = _NUMBER * n * width + sum(some) + len(some) * (work + _PROCESS)
            out["cross-validation"] = kept + folds
        if self.proof:
            out["proof"] = kept + self._proof(columns)
        if self.refits:
            out["refit"] = kept + self._refit(n, columns)
        return out

    def peak(self, columns: ColumnLimits) -> int:
        """Return the bytes at the peak of the fit."""
        return max(self.stages(columns).values())

    def _chunks(self, n: int, n_columns: float) -> int:
        return 4 * int(min(_CHUNK, n * max(n_columns, self.n_features)))

    def _search(self, n: int, columns: ColumnLimits) -> int:
        """Return the bytes for scores and solves on n rows."""
        hull, scores = columns.hull, 3 * min(_PREFIXES * self.n_levels, _SCORES)
        solve = (6 + self.n_outputs) * min(hull, 1.5 * n) ** 2
        if hull > 1.5 * n:
            solve += 3 * n * hull
        rows = n * (self.n_features + 8 * self.n_outputs)
        return _NUMBER * int(rows + scores + solve + self._chunks(n, hull))

    def _proof(self, columns: ColumnLimits) -> int:
        """Return the bytes for the factors of the descendant sums, and for tiles of them."""
        n = self.n_rows
        factors = n * (2 * self.n_features + 5 * self.n_columns)
        tiles = n_threads() * int(min(_TILES, 5 * n * n))
        return max(_NUMBER * (factors + tiles), self._search(n, columns))

    def _refit(self, n: int, columns: ColumnLimits) -> int:
        """Return the bytes for the features of a refit on n rows, and their decomposition."""
        if not self.refits:
            return 0
        r = min(columns.refit, columns.hull, _MOST_REFIT // self.n_outputs)
        square = 4.0 * (self.n_outputs * r) ** 2
        return _NUMBER * int(5 * n * r + 80 * n * self.n_outputs + square)

    def limits(self, most: int, max_kernels: int) -> ColumnLimits:
        """Return the columns of hulls and refits that fit into ``most`` bytes.

        Raises
        ------
        MemoryPlanError
            If not even a small model fits.
        """
        least = float(min(_LEAST_COLUMNS, max_kernels))
        self.check(most, f"max_memory allows {readable_bytes(most)}", least)
        useful = most_columns(self.n_rows, max_kernels)
        hull = _largest(lambda h: self.peak(ColumnLimits(h, least)) <= most, least, useful)
        fits = ColumnLimits(min(hull, useful), least)
        refit = _largest(lambda r: self.peak(fits._replace(refit=r)) <= most, least, _MOST_REFIT)
        # Without folds the one refit that is asked for must apply to whatever hull is found.
        only = self.refits and not self.fold_rows
        return ColumnLimits(min(hull, refit) if only else hull, refit)

    def check(self, most: int, limit: str, columns: float) -> None:
        """Raise unless a small model fits into ``most`` bytes; ``limit`` says what that is."""
        stages = self.stages(ColumnLimits(columns, columns))
        stage = max(stages, key=stages.__getitem__)
        if stages[stage] <= most:
            return
        folds = (
            "fewer folds (cv=3), n_jobs=1, or the estimator without CV, "
            if stage == "cross-validation"
            else ""
        )
        raise MemoryPlanError(
            f"A fit to {self.n_rows:,} rows and {self.n_columns:,} columns takes at least "
            f"{readable_bytes(stages[stage])} ({stage}; {self.n_features:,} features per row), and "
            f"{limit}; use {folds}fewer rows or columns, a lower degree, or more memory "
            "(max_memory)."
        )


def _largest(fits: Callable[[float], bool], least: float, most: float) -> float:
    """Return the largest whole number that fits; infinity if ``most`` does."""
    if fits(most):
        return np.inf
    low, high = int(least), int(most)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return float(low)


def _width(design: Design | None) -> int:
    """Return how many numbers a problem on a design stores per row."""
    stored = None if design is None else design.stored_features()
    return 0 if design is None or stored is None else stored[0] + len(design.kinds() or ())


def check_table(X: Any, most: int | None) -> None:
    """Raise if a dense table alone would take more memory than there is, before it is read."""
    shape = getattr(X, "shape", None)
    if not isinstance(shape, tuple) or len(shape) != 2 or hasattr(X, "nnz"):
        return
    free = min((size for size in (most, available_bytes(limited=False)) if size), default=None)
    size = _READING * _NUMBER * int(shape[0]) * int(shape[1])
    if free is not None and size > free:
        raise MemoryPlanError(
            f"A fit to {shape[0]:,} rows and {shape[1]:,} columns takes at least "
            f"{readable_bytes(size)} for the table alone, and there are {readable_bytes(free)}; "
            "use fewer rows or columns, or more memory (max_memory)."
        )


def planner(
    most: int | None,
    max_kernels: int,
    *,
    fold_rows: tuple[int, ...] = (),
    n_jobs: int = 1,
    refits: bool = True,
    certify: str = "auto",
    beside: Design | None = None,
) -> MemoryPlanner:
    """Return what checks the memory of a fit once its design is known, and limits its models.

    Parameters
    ----------
    most : int or None
        Bytes that a fit may take; without, those that are free, which limit no model.
    max_kernels : int
        Largest number of nodes in a hull.
    fold_rows, n_jobs, refits
        As for :class:`FitShape`.
    certify : str
        As for the estimators.
    beside : Design, optional
        The design of another problem on these rows that stays in memory.
    """

    def plan(design: Design, y: FloatArray) -> ColumnLimits:
        stored = design.stored_features()
        if stored is None:  # its engine checks what it takes
            return UNLIMITED
        n_columns = len(design.kinds() or ())
        too_many = len(y) * n_columns * N_DRAWS > AUTO_SKETCH_WORK
        shape = FitShape(
            n_rows=len(y),
            n_columns=n_columns,
            n_features=stored[0],
            n_levels=stored[1],
            n_outputs=1 if y.ndim == 1 else y.shape[1],
            fold_rows=fold_rows,
            n_jobs=min(n_jobs, max(1, len(fold_rows))),
            refits=refits,
            proof=certify != "none" and not (certify == "auto" and too_many),
            kept=_NUMBER * len(y) * _width(beside),
        )
        free = available_bytes(limited=False)
        trust_plan()
        if free is not None:
            shape.check(free, f"{readable_bytes(free)} are available", float(_LEAST_COLUMNS))
        return UNLIMITED if most is None else shape.limits(most, max_kernels)

    return plan
