"""Variables with finitely many cells, whose functions are tables of values.

The cells are the categories of a column, False and True, or the pieces between the cuts of steps.
Here are the values of a level in the cells, and what texts call a cell.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from hikernel.bases.basis import FittedBasis
from hikernel.bases.categorical import FittedCategorical
from hikernel.bases.steps import FittedSteps, written
from hikernel.columns import ColumnDesign
from hikernel.engines.protocol import FloatArray
from hikernel.graphs import unambiguous

__all__ = [
    "OTHER",
    "Axis",
    "axis_of",
    "level_in_cells",
    "named_cells",
    "quoted",
    "shown_names",
    "step_branch",
]

OTHER = "any other"
"""What texts call a category that was not seen in ``fit``; never in quotes, unlike categories."""

_EQUAL = 1e-9
"""Neighbouring pieces of a step function that differ by less, relative to the largest, join."""

_FALSE_TRUE = np.array([0.0, 1.0])


@dataclass(frozen=True)
class Axis:
    """A variable with cells: one axis of a table of values.

    Attributes
    ----------
    variable : int
        Position of the column.
    kind : {"category", "boolean", "steps"}
        What its cells are.
    """

    variable: int
    kind: Literal["category", "boolean", "steps"]


def axis_of(design: ColumnDesign, variable: int, level: int) -> Axis | None:
    """Return the axis of a level above 0, or None if the level has no cells."""
    basis = design.bases[variable]
    if level == 0 or not basis.constant_level:
        return None
    if design.table.kinds[variable] == "boolean":
        return Axis(variable, "boolean")
    branch, _ = basis.branch(level)
    if isinstance(branch, FittedCategorical) or design.table.categories[variable] is not None:
        return Axis(variable, "category")
    return Axis(variable, "steps") if isinstance(branch, FittedSteps) else None


def level_in_cells(design: ColumnDesign, axis: Axis, level: int) -> FloatArray:
    """Return the values of a level in the cells of its axis, shape (cells, width)."""
    basis = design.bases[axis.variable]
    if axis.kind == "boolean":
        return basis.transform(_FALSE_TRUE)[level]
    branch, own = basis.branch(level)
    if axis.kind == "category":
        return branch.transform(_codes(design, axis.variable))[own]
    assert isinstance(branch, FittedSteps)
    return branch.level_heights(own)


def named_cells(
    design: ColumnDesign, axis: Axis, values: FloatArray, name: str | None = None
) -> tuple[list[str], FloatArray]:
    """Return what texts call the cells of an axis, and the values in these cells.

    Parameters
    ----------
    design : ColumnDesign
        The columns.
    axis : Axis
        The axis.
    values : ndarray of shape (cells, ...)
        Values in the cells.
    name : str, optional
        The variable, as the text calls it. With a name, labels are conditions.

    Returns
    -------
    tuple of (list of str, ndarray)
        Categories are in quotes if they are text: 'Oslo', or town = 'Oslo' as a condition. Pieces
        are "3 to 5", or "3 < age <= 5"; neighbouring pieces with equal values are one.
    """
    m = axis.variable
    if axis.kind == "steps":
        ends = _last_of_equals(values)
        cuts = step_branch(design.bases[m]).cuts[ends[:-1]]
        return _pieces([written(cut) for cut in cuts], name), values[ends]
    labels = ["False", "True"]
    if axis.kind == "category":
        codes = _codes(design, m)
        known = design.table.categories[m]
        # Without categories it is a column of numbers that was given the basis of categories.
        labels = [written(code) if known is None else quoted(known[int(code)]) for code in codes]
    return [label if name is None else f"{name} = {label}" for label in labels], values


def quoted(value: object) -> str:
    """Return a value as texts show it: text in quotes, so that none is mistaken for a word.

    >>> quoted("others"), quoted(3), quoted(2.5), quoted(True)
    ("'others'", '3', '2.5', 'True')
    """
    return repr(str(value)) if isinstance(value, str) else str(value)


def shown_names(names: Sequence[str]) -> list[str]:
    """Return the names of columns as a formula shows them.

    They are in quotes if they could be read as a number, a function, or more than a name.

    >>> shown_names(["age", "dose (mg)", "7", "z(age)", "a, b", "age^2"])
    ['age', 'dose (mg)', "'7'", "'z(age)'", "'a, b'", "'age^2'"]
    """
    return [
        repr(name) if shown == name and _reads_like_more(name) else shown
        for name, shown in zip(names, unambiguous(names), strict=True)
    ]


def _reads_like_more(name: str) -> bool:
    if any(mark in name for mark in (", ", ": ", " = ")) or re.fullmatch(r"[a-z]\d*\(.*\)", name):
        return True
    try:
        float(name)
    except ValueError:
        return False
    return True


def _pieces(cuts: list[str], name: str | None) -> list[str]:
    """Return the names of the pieces between cuts; a cut belongs to the piece below it."""
    if not cuts:
        return ["everywhere"]
    between = list(itertools.pairwise(cuts))
    if name is None:
        inner = [f"{low} to {high}" for low, high in between]
        return [f"up to {cuts[0]}", *inner, f"above {cuts[-1]}"]
    inner = [f"{low} < {name} <= {high}" for low, high in between]
    return [f"{name} <= {cuts[0]}", *inner, f"{name} > {cuts[-1]}"]


def _last_of_equals(values: FloatArray) -> list[int]:
    """Return the positions of the last pieces of the runs of equal neighbours."""
    size = float(np.max(np.abs(values), initial=0.0))
    changes = np.abs(np.diff(values, axis=0)).reshape(len(values) - 1, -1)
    jumps = np.flatnonzero(np.max(changes, axis=1, initial=0.0) > _EQUAL * size)
    return [*jumps.tolist(), len(values) - 1]


def step_branch(basis: FittedBasis) -> FittedSteps:
    """Return the steps of a column; raise if it has none."""
    for level in range(1, basis.max_level + 1):
        branch, _ = basis.branch(level)
        if isinstance(branch, FittedSteps):
            return branch
    raise ValueError("The basis has no steps.")


def _codes(design: ColumnDesign, m: int) -> FloatArray:
    """Return the codes of the categories of a column that were seen in ``fit``."""
    branch, _ = design.bases[m].branch(1)
    if isinstance(branch, FittedCategorical):
        return branch.codes
    return np.arange(float(len(design.table.categories[m] or ())))  # steps alone
