"""The family of a restriction as a union of boxes, and the number of vertices of its graph.

A box (R, F, K) has the sets R + r for all r in F with at most K columns in all. Sums over a box are
sums of products: they factor over the columns, like those over a whole grid. The sets that contain
a given one are split into boxes by branching: a box is either simple (all its sets are in the
family), or its columns F fall into parts without an interaction between them, or it is split into
the sets with and without one of these columns. If this would take too many boxes, the last ones
hold more than the family. A sum of nonnegative terms over them is then an upper bound.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hikernel.graphs.restriction import BoolArray, Restriction

__all__ = ["Box", "Cover", "cover", "n_vertices"]

_MOST_COUNTED = 128
"""Largest number of boxes for a number of vertices; with more it is an upper bound."""
_MOST_ASKED = 10**7
"""Largest number of pairs of columns that are compared to split boxes, about two seconds with
thousands of groups; what is left then stays whole."""


@dataclass(frozen=True)
class Box:
    """All sets of at most ``limit`` columns that contain ``required`` and are in both.

    Attributes
    ----------
    required : tuple of int
        R, columns that are in every set.
    free : tuple of int
        F, columns that may be in a set.
    limit : int
        K, the largest number of columns of a set.
    """

    required: tuple[int, ...]
    free: tuple[int, ...]
    limit: int

    def total(self, factors: Sequence[Any]) -> Any:
        """Return the sum over the sets of the box of the products of the factors of its columns.

        With the numbers of levels of the columns above 0, it is the number of their vertices.
        """
        room = min(self.limit - len(self.required), len(self.free))
        if room == len(self.free):
            return _product(factors, self.required) * math.prod(1 + factors[c] for c in self.free)
        by_order: list[Any] = [1] + [0] * room
        for c in self.free:
            for k in range(room, 0, -1):
                by_order[k] += factors[c] * by_order[k - 1]
        return _product(factors, self.required) * sum(by_order)


@dataclass(frozen=True)
class Cover:
    """Boxes that together hold all sets of the family that contain a set.

    Attributes
    ----------
    boxes : list of Box
        The boxes.
    repeated : list of tuple of int
        Sets that are in one box more than needed, once for each; no other set is in two boxes.
    exact : bool
        Whether the boxes hold sets of the family only.
    """

    boxes: list[Box]
    repeated: list[tuple[int, ...]]
    exact: bool

    def total(self, factors: Sequence[Any]) -> Any:
        """Return the sum over the sets of the products of the factors of their columns."""
        twice: Any = sum(_product(factors, columns) for columns in self.repeated)
        return sum(box.total(factors) for box in self.boxes) - twice


def cover(rule: Restriction, columns: Sequence[int], max_order: int | None, most: int) -> Cover:
    """Return boxes for the sets that contain a set of the family.

    Parameters
    ----------
    rule : Restriction
        The family.
    columns : sequence of int
        The set.
    max_order : int or None
        Largest number of columns of a set.
    most : int
        Largest number of boxes, at least 1.
    """
    start = tuple(columns)
    free = np.flatnonzero(rule.column_partners([start])[0])
    todo = [(start, tuple(free.tolist()))]
    found = Cover([], [], True)
    exact = True
    asked = 0
    while todo:
        required, free_now = todo.pop()
        box = _limited(rule, required, free_now, max_order)
        if asked > _MOST_ASKED:
            found.boxes.append(box)
            exact = False
            continue
        asked += len(box.free) * rule.n_columns
        compatible = None if _is_simple(rule, box) else _compatible(rule, box)
        if compatible is None:
            found.boxes.append(box)
        elif not compatible.any():
            found.boxes.append(Box(box.required, box.free, len(box.required) + 1))
        else:
            parts = _split(rule, box, compatible)
            if len(found.boxes) + len(todo) + len(parts) > most:
                found.boxes.append(box)
                exact = False
                continue
            todo += parts
            if parts[0][0] == required == parts[-1][0]:
                found.repeated.extend([required] * (len(parts) - 1))
    return Cover(found.boxes, found.repeated, exact)


def n_vertices(
    rule: Restriction, levels: tuple[int, ...], max_order: int | None
) -> tuple[int, bool]:
    """Return the number of vertices of a restricted grid, and whether it is exact.

    Otherwise it is an upper bound.

    Parameters
    ----------
    rule : Restriction
        The family of the sets of variables that may interact.
    levels : tuple of int
        Number of levels above 0 of each variable.
    max_order : int or None
        Largest number of variables of a vertex.
    """
    counts = [0] * rule.n_columns
    for c, count in zip(rule.column_of, levels, strict=True):
        counts[c] += count  # a set has at most one of the variables of a column
    whole = _limited(rule, (), tuple(range(rule.n_columns)), max_order)
    if whole.limit == 2 and not _is_simple(rule, whole):
        pairs = [
            counts[a] * counts[b]
            for a, b in zip(*np.nonzero(np.triu(_compatible(rule, whole))), strict=True)
        ]
        return 1 + sum(counts) + sum(pairs), True
    found = cover(rule, (), max_order, _MOST_COUNTED)
    return found.total(counts), found.exact


def _product(factors: Sequence[Any], columns: Sequence[int]) -> Any:
    return math.prod(factors[c] for c in columns)


def _limited(
    rule: Restriction, required: tuple[int, ...], free: tuple[int, ...], max_order: int | None
) -> Box:
    limit = min(int(rule.largest_sets([required])[0]), len(required) + len(free))
    return Box(required, free, limit if max_order is None else min(limit, max_order))


def _is_simple(rule: Restriction, box: Box) -> bool:
    """Return whether all sets of a box are in the family, as far as one can see at once."""
    if box.limit <= len(box.required) + 1:
        return True  # the free columns may each join the required ones
    return rule.permits_subsets((*box.required, *box.free), box.limit)


def _compatible(rule: Restriction, box: Box) -> BoolArray:
    """Return which two free columns may be in a set of a box together."""
    partners = rule.column_partners([(*box.required, c) for c in box.free])
    return np.asarray(partners[:, list(box.free)])


def _split(
    rule: Restriction, box: Box, compatible: BoolArray
) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Return (required, free) of the parts of a box.

    If some columns never meet others, the parts have the same required columns, which are the one
    set that they share. Otherwise there are two: the sets without a column, and those with it.
    """
    part = _components(compatible)
    free = np.array(box.free)
    if part.max() > 0:
        singles = np.flatnonzero(np.bincount(part)[part] == 1)
        rest = [tuple(free[part == i].tolist()) for i in set(part) - set(part[singles])]
        # Columns without a partner fit into one part: no two of them are together in a set.
        lonely = tuple(free[singles].tolist())
        return [(box.required, some) for some in ([lonely] if lonely else []) + rest]
    degrees = np.sum(compatible, axis=1)
    # Where few may meet, the column that meets most leaves least; where most may, the other way.
    sparse = np.mean(degrees) < 0.5 * (len(free) - 1)
    i = int(np.argmax(degrees) if sparse else np.argmin(degrees))
    return [
        (box.required, tuple(np.delete(free, i).tolist())),
        ((*box.required, int(free[i])), tuple(free[compatible[i]].tolist())),
    ]


def _components(compatible: BoolArray) -> NDArray[np.intp]:
    """Return the number of the component of each column, from 0 on."""
    part = np.full(len(compatible), -1, dtype=np.intp)
    number = 0
    while np.any(part < 0):
        reached = np.zeros(len(compatible), dtype=bool)
        fresh = np.arange(len(compatible)) == np.argmin(part)  # the first one without a number
        while np.any(fresh):
            reached |= fresh
            fresh = np.any(compatible[fresh], axis=0) & ~reached
        part[reached] = number
        number += 1
    return part
