"""Which variables may be in a term together: a family of sets, closed under subsets.

A rule is a group of columns and a number of places that any other column may fill (its stars). For
the set s of the columns of a term,

    (N, k) allows s if at most k columns of s are outside N,
    (B, k) forbids s if s contains B and at least k columns more.

A set is in the family if it has at most one column, or if some rule allows it (where there are such
rules) and none forbids it. Both conditions are inherited by subsets, so the ancestors of a term in
the graph are in the graph. The family is never enumerated: products of matrices count the columns
that sets and groups share.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from scipy import sparse

__all__ = ["Group", "Restriction"]

Group = tuple[tuple[int, ...], int]
"""Positions of columns, ascending, and a number of stars."""

BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]

_UNLIMITED = np.iinfo(np.int64).max

_DENSE = 10**6
"""Groups times columns up to which groups are a dense matrix."""
_CHUNK = 2**22
"""Sets times columns that are looked at together (16 MiB): a proof asks for millions of pairs."""


@dataclass(frozen=True)
class Restriction:
    """The sets of variables that may be in a term together.

    Parameters
    ----------
    column_of : tuple of int
        The column of each variable. Two variables of one column (its values, and whether they are
        missing) are in no term together, and follow the same rules.
    allowed : tuple of Group or None
        Groups that allow sets of columns; None allows all.
    forbidden : tuple of Group
        Groups that forbid sets of columns. With its stars a group has at least two columns: single
        columns are always in the family.

    Examples
    --------
    Column 0 may interact with any other; no other two may interact:

    >>> rule = Restriction((0, 1, 2), allowed=(((0,), 1),))
    >>> rule.permits([(0, 2), (1, 2), (2,)])
    array([ True, False,  True])
    """

    column_of: tuple[int, ...]
    allowed: tuple[Group, ...] | None = None
    forbidden: tuple[Group, ...] = ()

    def __post_init__(self) -> None:
        if any(c < 0 for c in self.column_of):
            raise ValueError("The positions of columns must not be negative.")
        for columns, stars in (*(self.allowed or ()), *self.forbidden):
            if list(columns) != sorted(set(columns)) or stars < 0 or len(columns) + stars < 2:
                raise ValueError(f"{(columns, stars)!r} is not a group of two columns or more.")
            if columns and not 0 <= columns[0] <= columns[-1] < self.n_columns:
                raise ValueError(f"The group {columns!r} has columns that do not exist.")

    @property
    def n_columns(self) -> int:
        """Number of columns, from the largest position."""
        return max(self.column_of, default=-1) + 1

    def without_interactions_of(self, columns: Iterable[int]) -> Restriction:
        """Return the family in which these columns, in addition, are in no set with another."""
        alone = tuple(((int(c),), 1) for c in sorted(set(columns)))
        return replace(self, forbidden=tuple(dict.fromkeys((*self.forbidden, *alone))))

    def permits(self, supports: Sequence[Sequence[int]]) -> BoolArray:
        """Return for each set of variables whether it is in the family."""
        step = max(1, _CHUNK // max(1, self.n_columns))
        out = np.empty(len(supports), dtype=bool)
        for start in range(0, len(supports), step):
            some = slice(start, start + step)
            columns = [[self.column_of[m] for m in support] for support in supports[some]]
            distinct = np.array([len(set(own)) == len(own) for own in columns], dtype=bool)
            out[some] = self._permits(_Sets.of(columns, self.n_columns)) & distinct
        return out

    def permits_subsets(self, columns: Sequence[int], most: int) -> bool:
        """Return whether all subsets of at most ``most`` of these columns are surely allowed.

        Only one allowed group at a time is looked at, so the answer may be no where several groups
        together allow all subsets.
        """
        return bool(self._permits(_Sets.of([columns], self.n_columns), most)[0])

    def _permits(self, sets: _Sets, most: int = _UNLIMITED) -> BoolArray:
        """Return whether sets of columns, or their subsets of a limited size, are in the family."""
        limited = np.minimum(sets.sizes, most)
        out = np.asarray(self._least_limits(sets) >= limited)
        rows, groups, shared = self._forbidden.overlaps(sets)
        needed, stars = self._forbidden.sizes[groups], self._forbidden.stars[groups]
        out[rows[(shared == needed) & (limited[rows] >= needed + stars)]] = False
        if self.allowed is not None:
            inside = limited <= 1
            rows, _, shared = self._closed.overlaps(sets)
            inside[rows[shared == sets.sizes[rows]]] = True
            starred = self._starred
            inside |= np.any(starred.stars >= np.minimum(starred.outside(sets), most), axis=1)
            out &= inside
        return out

    def partners(self, supports: Sequence[Sequence[int]]) -> BoolArray:
        """Return for each set of the family which variables may join it.

        The shape is (number of sets, number of variables). Entries of variables whose column is in
        the set are False.
        """
        columns = [[self.column_of[m] for m in support] for support in supports]
        return np.asarray(self.column_partners(columns)[:, list(self.column_of)])

    def column_partners(self, columns: Sequence[Sequence[int]]) -> BoolArray:
        """Return for each set of columns of the family which columns may join it."""
        sets = _Sets.of(columns, self.n_columns)
        joined = sets.sizes + 1
        out = np.asarray(self._limits >= joined[:, None])
        out[self._least_limits(sets) < joined] = False
        rows, groups, shared = self._forbidden.overlaps(sets)
        needed = self._forbidden.sizes[groups]
        enough = joined[rows] >= needed + self._forbidden.stars[groups]
        out[rows[enough & (shared == needed)]] = False
        last = enough & (shared == needed - 1)
        out[self._forbidden.spread(rows[last], groups[last], len(out))] = False
        if self.allowed is not None:
            rows, groups, shared = self._closed.overlaps(sets)
            within = shared == sets.sizes[rows]
            inside = self._closed.spread(rows[within], groups[within], len(out))
            slack = self._starred.stars - self._starred.outside(sets)
            rows, groups = np.nonzero(slack == 0)
            inside |= self._starred.spread(rows, groups, len(out))
            inside |= (np.any(slack >= 1, axis=1) | (sets.sizes == 0))[:, None]
            out &= inside
        out[sets.rows, sets.columns] = False
        return out

    def largest_sets(self, columns: Sequence[Sequence[int]]) -> IntArray:
        """Return upper bounds on the sizes of the sets of the family that contain given ones."""
        sets = _Sets.of(columns, self.n_columns)
        most = np.minimum(self._least_limits(sets), self.n_columns)
        if self.allowed is None:
            return np.asarray(most)
        out = np.maximum(sets.sizes, 1)
        rows, groups, shared = self._closed.overlaps(sets)
        inside = shared == sets.sizes[rows]
        np.maximum.at(out, rows[inside], self._closed.sizes[groups[inside]])
        out[sets.sizes == 0] = np.max(self._closed.sizes, initial=1)  # it is in every group
        starred = self._starred
        fits = starred.outside(sets) <= starred.stars
        open_sizes = np.max(np.where(fits, starred.sizes + starred.stars, 1), axis=1, initial=1)
        return np.asarray(np.minimum(most, np.maximum(out, open_sizes)))

    @property
    def largest_term(self) -> int:
        """An upper bound on the size of the sets of the family, at least 1."""
        limits = np.sort(self._limits)[::-1]
        # A set of k columns needs k columns that may be in sets of that size.
        fits = np.count_nonzero(limits >= np.arange(1, len(limits) + 1))
        return max(1, min(int(self.largest_sets([()])[0]), int(fits)))

    def _least_limits(self, sets: _Sets) -> IntArray:
        """Return for each set the least limit of its columns."""
        out = np.full(len(sets.sizes), _UNLIMITED)
        np.minimum.at(out, sets.rows, self._limits[sets.columns])
        return out

    @cached_property
    def _limits(self) -> IntArray:
        """For each column the size of the largest set it may be in, by groups of at most it."""
        out = np.full(self.n_columns, _UNLIMITED)
        for columns, stars in self.forbidden:
            if not columns:
                np.minimum(out, stars - 1, out=out)
            elif len(columns) == 1:
                out[columns[0]] = min(out[columns[0]], stars)
        return out

    @cached_property
    def _forbidden(self) -> _Groups:
        """The forbidden groups of two columns and more; ``_limits`` has the others."""
        return _Groups([group for group in self.forbidden if len(group[0]) > 1], self.n_columns)

    @cached_property
    def _closed(self) -> _Groups:
        """The allowed groups without stars."""
        return _Groups([group for group in self.allowed or () if group[1] == 0], self.n_columns)

    @cached_property
    def _starred(self) -> _Groups:
        """The allowed groups with stars, whose sets need not share a column with them."""
        return _Groups([group for group in self.allowed or () if group[1] > 0], self.n_columns)


@dataclass(frozen=True)
class _Sets:
    """Sets of columns: set ``rows[i]`` has column ``columns[i]``."""

    rows: IntArray
    columns: IntArray
    sizes: IntArray
    n_columns: int

    @classmethod
    def of(cls, sets: Sequence[Sequence[int]], n_columns: int) -> _Sets:
        sizes = np.array([len(columns) for columns in sets], dtype=np.int64)
        columns = np.array([c for some in sets for c in some], dtype=np.int64)
        return cls(np.repeat(np.arange(len(sizes)), sizes), columns, sizes, n_columns)

    @cached_property
    def dense(self) -> NDArray[np.float32]:
        out = np.zeros((len(self.sizes), self.n_columns), dtype=np.float32)
        out[self.rows, self.columns] = 1.0
        return out


class _Groups:
    """Groups of columns, and what sets share with them.

    The groups are the rows of a matrix, dense or sparse: its products with sets count the columns
    that both have.
    """

    def __init__(self, groups: Sequence[Group], n_columns: int) -> None:
        self.stars = np.array([stars for _, stars in groups], dtype=np.int64)
        self._sets = _Sets.of([columns for columns, _ in groups], n_columns)
        self.sizes = self._sets.sizes
        self._dense = len(groups) * n_columns <= _DENSE

    def overlaps(self, sets: _Sets) -> tuple[IntArray, IntArray, IntArray]:
        """Return sets, groups and numbers of shared columns, where a set and a group share some."""
        if not len(self.sizes) or not len(sets.columns):
            return (np.zeros(0, dtype=np.int64),) * 3
        if self._dense:
            shared = sets.dense @ self._sets.dense.T
            rows, groups = np.nonzero(shared)
            return rows, groups, shared[rows, groups].astype(np.int64)
        found = (_sparse(sets) @ _sparse(self._sets).T).tocoo()
        return found.row.astype(np.int64), found.col.astype(np.int64), found.data.astype(np.int64)

    def spread(self, rows: IntArray, groups: IntArray, n_rows: int) -> BoolArray:
        """Return which columns are in one of the groups of a row, shape (n_rows, n_columns)."""
        out = np.zeros((n_rows, self._sets.n_columns), dtype=bool)
        if not len(rows):
            return out
        chosen = _Sets(rows, groups, self.sizes, len(self.sizes))
        if self._dense:
            which = np.zeros((n_rows, len(self.sizes)), dtype=np.float32)
            which[rows, groups] = 1.0
            return np.asarray(which @ self._sets.dense > 0.0)
        found = (_sparse(chosen, n_rows) @ _sparse(self._sets)).tocoo()
        out[found.row, found.col] = True
        return out

    def outside(self, sets: _Sets) -> IntArray:
        """Return how many columns of each set are outside each group."""
        shared = sets.dense @ self._sets.dense.T
        return np.asarray(sets.sizes[:, None] - shared.astype(np.int64))


def _sparse(sets: _Sets, n_rows: int | None = None) -> sparse.csr_array:
    from scipy import sparse

    shape = (len(sets.sizes) if n_rows is None else n_rows, sets.n_columns)
    ones = np.ones(len(sets.rows), dtype=np.int32)
    return sparse.csr_array((ones, (sets.rows, sets.columns)), shape=shape)
