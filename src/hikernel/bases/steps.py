"""Steps: Haar functions of a column, from coarse to fine, at quantiles or at given cuts."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hikernel.bases.basis import Basis, FittedBasis
from hikernel.bases.column import Column, Standardizer
from hikernel.checks import check_integer
from hikernel.engines.protocol import FloatArray

__all__ = ["FittedSteps", "Steps"]

_TIE = 1e-9
_LIGHTEST = 1e-9
"""Least weight of one side of a cut, relative to the other."""
_SHOWN_CUTS = 4
"""Largest number of cuts in the name of a level."""


@dataclass(frozen=True)
class Steps(Basis):
    """Level 1 jumps at the median of a column, level 2 at its quartiles, level 3 at its eighths.

    Level j cuts every part that level j - 1 has left in two. A part with the shares w_L of rows up
    to the cut t and w_R above it gives the function

        h(x) = -sqrt(w_R / w_L) / sqrt(w_L + w_R)  for x <= t in the part,
                sqrt(w_L / w_R) / sqrt(w_L + w_R)  for x > t in the part,

    and zero outside the part. These are the Haar functions of the distribution: of mean zero, mean
    square one, and orthogonal. The m_j functions of level j, at most 2^(j - 1), form one block and
    are divided by sqrt(m_j), so that the mean square of the block is one. Where every cut halves
    its part, the norm of the block is one at every row.

    A cut lies between two distinct values, where the weights of both sides are most equal. So a
    value that most rows share is cut off from the others first. The cut is the number with the
    fewest digits from the lower of the two values up to, but without, the upper one; it decides on
    which side a point between the two values lies. Parts with one distinct value are not cut.

    Parameters
    ----------
    degree : int, default 4
        Number of levels above 0, with at most 2^degree - 1 cuts in all.

    Examples
    --------
    >>> fitted = Steps(degree=2).fit([1.0, 2.0, 3.0, 4.0])
    >>> fitted.cuts
    array([1., 2., 3.])
    >>> fitted.widths
    (1, 1, 2)
    >>> fitted.transform([1.0, 2.5, 9.0])[1].ravel()
    array([-1.,  1.,  1.])
    """

    name: ClassVar[str] = "steps"
    standardises: ClassVar[bool] = False
    degree: int = 4

    def __post_init__(self) -> None:
        check_integer("degree", self.degree, 1)

    def _fit(self, column: Column, scaler: Standardizer) -> FittedSteps:
        return self._cut(column, scaler, partial(_halved, column.weights))

    def fit_at(
        self, column: Column, cuts: Sequence[float], *, halve: bool = False
    ) -> FittedSteps | None:
        """Return steps at given cuts, the most important one first; None if none can be made.

        Every part is cut at the most important of the cuts inside it; if there is none, it is not
        cut, or halved with ``halve``. So the first cut makes level 1 alone. The functions are the
        Haar functions of these parts.
        """
        places = np.searchsorted(column.values, cuts, side="right")
        cut = partial(_cut_at, places, halve, column.weights)
        fitted = self._cut(column, Standardizer.identity(), cut)
        given = places[(places > 0) & (places < len(column.values))]
        return fitted if len(given) > 0 and fitted.max_level > 0 else None

    def _cut(
        self,
        column: Column,
        scaler: Standardizer,
        halved: Callable[[int, int], _Half | None],
    ) -> FittedSteps:
        """Return the Haar functions of the parts that ``halved`` makes of (start, stop)."""
        values = column.values
        levels: list[list[_Half]] = []
        parts = [(0, len(values))]
        for _ in range(self.degree):
            halves = [half for half in (halved(*part) for part in parts) if half]
            if not halves:
                break
            levels.append(halves)
            parts = [part for half in halves for part in half.parts]
        places = sorted(half.cut for halves in levels for half in halves)
        piece = {k: i for i, k in enumerate([0, *places, len(values)])}
        heights = np.zeros((len(places) + 1, len(places)))
        widths = [len(halves) for halves in levels]
        functions = [(half, len(halves)) for halves in levels for half in halves]
        for k, (half, width) in enumerate(functions):
            scale = 1.0 / math.sqrt(width * (half.left + half.right))
            low, high = math.sqrt(half.right / half.left), math.sqrt(half.left / half.right)
            heights[piece[half.start] : piece[half.cut], k] = -scale * low
            heights[piece[half.cut] : piece[half.stop], k] = scale * high
        cuts = np.array([short_number(float(values[k - 1]), float(values[k])) for k in places])
        bulk = np.array([values[0], values[-1]])
        return FittedSteps(scaler, True, cuts, heights, np.array(widths, dtype=np.int64), bulk)


@dataclass(frozen=True, eq=False)
class FittedSteps(FittedBasis):
    """Levels that are constant between cuts; a value equal to a cut lies below it.

    Parameters
    ----------
    cuts : ndarray of shape (m,)
        Numbers in increasing order.
    heights : ndarray of shape (m + 1, columns)
        Values of the levels above 0 between the cuts, the columns of level 1 first.
    columns : ndarray of int, shape (q,)
        Number of columns of each level above 0.
    ends : ndarray of shape (2,)
        Smallest and largest value of the training rows.
    """

    cuts: FloatArray
    heights: FloatArray
    columns: NDArray[np.int64]
    ends: FloatArray

    def __post_init__(self) -> None:
        shape = (len(self.cuts) + 1, int(np.sum(self.columns)))
        if self.heights.shape != shape or np.any(np.diff(self.cuts) <= 0.0):
            raise ValueError("Steps need increasing cuts, and heights for every piece and column.")
        if np.any(self.columns < 1) or self.ends.shape != (2,):
            raise ValueError("Every level of steps needs a column, and their range two ends.")

    @property
    def widths(self) -> tuple[int, ...]:
        """Columns per level: 1, 1, 2, 4, ... unless parts could not be cut."""
        return (1, *self.columns.tolist())

    @property
    def exponents(self) -> tuple[float, ...]:
        """0, 1, 3/2, 2, ...: the penalty grows half as fast as that of smooth levels.

        A jump at any place needs one function of every level, however fine.
        """
        return (0.0, *[1.0 + 0.5 * j for j in range(self.max_level)])

    @property
    def bulk(self) -> tuple[float, float]:
        """The range of the training rows."""
        return float(self.ends[0]), float(self.ends[1])

    def cuts_of(self, level: int) -> FloatArray:
        """Return the cuts of one level above 0, in increasing order."""
        return np.sort(self.cuts[np.argmax(self.level_heights(level) > 0.0, axis=0) - 1])

    def level_heights(self, level: int) -> FloatArray:
        """Return the values of one level above 0 between the cuts, shape (m + 1, width)."""
        stop = int(np.sum(self.columns[:level]))
        return self.heights[:, stop - int(self.columns[level - 1]) : stop]

    def level_name(self, level: int, name: str, write: Callable[[float], str] | None = None) -> str:
        """Return the name of a level with its cuts, such as "age > 30|50"; the outer of many.

        ``write`` gives the text of a cut, the number itself by default.
        """
        cuts = [(write or written)(cut) for cut in self.cuts_of(level).tolist()]
        shown = cuts if len(cuts) <= _SHOWN_CUTS else [cuts[0], "..", cuts[-1]]
        return f"{name} > {'|'.join(shown)}"

    def up_to(self, level: int) -> FittedSteps:
        """Return the basis with levels 0 to ``level`` only."""
        columns = self.columns[:level]
        return replace(self, heights=self.heights[:, : int(np.sum(columns))], columns=columns)

    def slopes(self) -> FloatArray:
        """Return the jumps at the cuts."""
        return np.diff(self.heights, axis=0)

    def _levels(self, z: FloatArray) -> list[FloatArray]:
        rows = self.heights[np.searchsorted(self.cuts, z, side="left")]
        ends = np.cumsum(self.columns)
        blocks = [rows[:, e - w : e] for e, w in zip(ends, self.columns, strict=True)]
        return [np.ones((z.size, 1)), *blocks]


@dataclass(frozen=True)
class _Half:
    """A part of the distinct values, from ``start`` to ``stop``, that is cut in two at ``cut``."""

    start: int
    cut: int
    stop: int
    left: float
    right: float

    @property
    def parts(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """The two sides."""
        return (self.start, self.cut), (self.cut, self.stop)


def _halved(weights: FloatArray, start: int, stop: int) -> _Half | None:
    """Return the cut that makes the weights of both sides most equal; None if there is none.

    Neither side may be lighter than 1e-9 times the other, so that all levels are finite.
    """
    if stop - start < 2:
        return None
    left = np.cumsum(weights[start:stop])
    away = np.abs(left[:-1] / left[-1] - 0.5)
    # Of two cuts that are equally good, but for rounding, the lower one.
    cut = start + 1 + int(np.argmax(away <= float(np.min(away)) + _TIE))
    return _half(weights, start, cut, stop)


def _cut_at(
    places: NDArray[np.intp], halve: bool, weights: FloatArray, start: int, stop: int
) -> _Half | None:
    """Return the cut at the first of some places inside a part; without one, perhaps the middle."""
    for cut in places[(places > start) & (places < stop)].tolist():
        half = _half(weights, start, cut, stop)
        if half is not None:
            return half
    return _halved(weights, start, stop) if halve else None


def _half(weights: FloatArray, start: int, cut: int, stop: int) -> _Half | None:
    """Return the two sides of a cut; None if one of them is next to nothing."""
    sides = float(np.sum(weights[start:cut])), float(np.sum(weights[cut:stop]))
    if min(sides) < _LIGHTEST * max(sides):
        return None
    return _Half(start, cut, stop, *sides)


def written(cut: float) -> str:
    """Return a cut with all its digits, which are few.

    >>> written(3.0), written(20150003.0), written(0.25)
    ('3', '20150003', '0.25')
    """
    return repr(float(cut)).removesuffix(".0")


def short_number(low: float, high: float) -> float:
    """Return a number with few digits in [low, high), near the middle; ``low`` < ``high``.

    >>> short_number(0.98, 1.02), short_number(3.0, 4.0), short_number(1234.0, 2891.0)
    (1.0, 3.0, 2000.0)
    """
    middle = 0.5 * low + 0.5 * high
    size = max(abs(low), abs(high))
    first = -math.ceil(math.log10(size))
    for digits in range(first, first + 18):
        nearest = round(middle, digits)
        for number in (nearest, round(nearest - 10.0 ** -max(digits, -300), digits)):
            if low <= number < high:
                return number
    return low
