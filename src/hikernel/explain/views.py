"""Effects on grids of their variables: what a picture of an effect shows, as plain numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hikernel.bases.basis import FittedBasis
from hikernel.bases.steps import FittedSteps
from hikernel.columns import ColumnDesign
from hikernel.engines.protocol import FloatArray, Node
from hikernel.selection.record import QUANTILES, ColumnStatistics

__all__ = ["Axis", "effect_axis", "effect_view", "view_rows"]

_POINTS = (81, 31, 21)
"""Values of a number in a picture of one, two or three variables."""

_MOST_CATEGORIES = 30
_SLICES = (0.1, 0.5, 0.9)
"""Shares of the rows below the values of the third variable of an effect."""

_STRETCH = 2.0
"""The axis of a number is its whole range, unless that is so many times as wide as the range
without the outer percents of the rows, which is then shown."""

_BELOW = 0.05
"""Share of its range by which an axis begins before its smallest value, if steps jump there."""


@dataclass(frozen=True)
class Axis:
    """Values of one variable in a picture.

    Attributes
    ----------
    variable : int
        Column of the matrix.
    codes : ndarray of shape (n,)
        Values as they are in the matrix, increasing.
    labels : list of str or None
        Names of the values of a category; None for a number.
    jumps : bool
        Whether the effect may jump along the axis: jumps then lie between neighbouring values.
    """

    variable: int
    codes: FloatArray
    labels: list[str] | None
    jumps: bool = False

    def data(self, name: str) -> dict[str, Any]:
        """Return the axis as plain data."""
        if self.labels is None:
            values = self.codes.tolist()
            return {"variable": name, "kind": "number", "values": values, "jumps": self.jumps}
        return {"variable": name, "kind": "category", "values": self.labels}


def effect_axis(
    design: ColumnDesign,
    variable: int,
    statistics: ColumnStatistics | None,
    place: int,
    levels: Sequence[int],
) -> Axis:
    """Return the values at which an effect is shown along one of its variables.

    Parameters
    ----------
    design : ColumnDesign
        Columns and bases.
    variable : int
        Column of the matrix.
    statistics : ColumnStatistics or None
        Where its values lie; without them the bulk of its basis is shown.
    place : int
        0 for the only variable of an effect, 1 for one of two and 2 for one of three. From 3 on, a
        variable has three values only.
    levels : sequence of int
        Levels of the variable that the effect has: only levels of steps jump.
    """
    labels = _labels(design, variable, statistics)
    if labels is not None:
        codes = np.array(sorted(labels))
        if place > 2:
            codes = np.sort(_frequent(codes.tolist(), statistics, 3))
        return Axis(variable, codes, [labels[code] for code in codes.tolist()])
    basis = design.bases[variable]
    low, high = _range(basis, statistics)
    if place > 2:
        where = dict(zip(QUANTILES, statistics.quantiles, strict=True)) if statistics else {}
        middle = [where.get(q, low + q * (high - low)) for q in _SLICES]
        return Axis(variable, np.unique(middle), None)
    points = np.linspace(low, high, _POINTS[place])
    branches = [basis.branch(level) for level in levels if level > 0]
    steps = [branch for branch, _ in branches if isinstance(branch, FittedSteps)]
    if not steps:
        return Axis(variable, np.unique(points), None)
    cuts = steps[0].cuts
    cuts = cuts[(cuts >= low) & (cuts < high)]
    if len(steps) == len(branches):  # constant between the cuts
        points = points[[0, -1]]
        if len(cuts) and cuts[0] == low:  # else the value below the first jump has no width
            points[0] -= _BELOW * (high - low)
    points = np.unique(np.concatenate([points, cuts, np.nextafter(cuts, np.inf)]))
    return Axis(variable, points, None, jumps=True)


def effect_view(
    design: ColumnDesign, nodes: Sequence[Node], blocks: Sequence[FloatArray], axes: Sequence[Axis]
) -> FloatArray:
    """Return the sum of some terms on the grid of some axes, shape (k, n_1, ..., n_d).

    Variables without an axis are missing. With bases whose level 0 is a bump, the other variables
    then have their mean level 0.
    """
    rows, shape = view_rows(design, axes)
    parts = design.effects(nodes, blocks, rows)
    total = np.sum(parts, axis=0).reshape(math.prod(shape), -1)
    return np.asarray(total.T.reshape(-1, *shape))


def view_rows(design: ColumnDesign, axes: Sequence[Axis]) -> tuple[Any, tuple[int, ...]]:
    """Return the points of a grid as rows of the design, and the shape of the grid."""
    grid = np.meshgrid(*(axis.codes for axis in axes), indexing="ij")
    columns = {axis.variable: x.ravel() for axis, x in zip(axes, grid, strict=True)}
    return design.rows_at(columns), grid[0].shape


def _labels(
    design: ColumnDesign, variable: int, statistics: ColumnStatistics | None
) -> dict[float, str] | None:
    """Return the names of the values of a category by code, the most frequent ones; else None."""
    known = design.table.categories[variable]
    if known is not None:
        names: Mapping[float, str] = {float(code): str(label) for code, label in enumerate(known)}
    elif variable >= design.table.n_values:
        names = {0.0: "no", 1.0: "yes"}
    elif design.table.kinds[variable] == "boolean":
        names = {0.0: "False", 1.0: "True"}
    elif statistics is not None and 0 < len(statistics.values) <= 2:
        names = {value: f"{value:.15g}" for value in statistics.values}
    else:
        return None
    if statistics is not None and len(names) > _MOST_CATEGORIES:
        names = {code: names[code] for code in _frequent(names, statistics, _MOST_CATEGORIES)}
    return dict(sorted(names.items())[:_MOST_CATEGORIES])


def _frequent(
    codes: Iterable[float], statistics: ColumnStatistics | None, most: int
) -> list[float]:
    """Return the most frequent of some codes; the first ones if that is not known."""
    shares: dict[float, float] = {}
    if statistics is not None and not statistics.edges:
        shares = dict(zip(statistics.values, statistics.shares, strict=True))
    return sorted(codes, key=lambda code: -shares.get(code, 0.0))[:most]


def _range(basis: FittedBasis, statistics: ColumnStatistics | None) -> tuple[float, float]:
    """Return the range of an axis."""
    if statistics is None:
        return basis.bulk
    low, high = statistics.low, statistics.high
    inner_low, inner_high = statistics.quantiles[0], statistics.quantiles[-1]
    if 0.0 < _STRETCH * (inner_high - inner_low) < high - low:
        return inner_low, inner_high
    return low, high
