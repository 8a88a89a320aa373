"""Where y jumps: the thresholds that boosted trees use, and steps with their cuts there.

Steps at quantiles need one function of every level for a jump between two of them, and a product of
two such jumps needs the products of all these functions. Steps whose first cut is the jump need
one, and one product. So the cuts are chosen from the rows, as knots and degrees are.

Let T_1, ..., T_B be the trees of least squares boosting,

    r <- r - rate T_b(x),    T_b fitted to the residuals r,

begun with the residuals of the best constant, so that one rule serves every loss. Every split of
a tree at a threshold t of column m lowers the squared error of its node by some g >= 0. The mass of
a threshold is the sum of g over all trees, wherever in a tree the split lies: a jump that only
matters in a product has mass, too. The cuts of a column are taken greedily. The next one is where a
window of 5 % of the rows holds most of the mass that is left, at the median of that mass, until the
window holds less than 0.4 % of the mass of all columns, or less than 5 % of that of its own, or
there are 2^degree - 1 cuts. With "auto+jumps" these are all cuts: functions that nothing calls for
cost weight. With "auto+steps" the parts without a jump inside are halved, as with steps at
quantiles, for functions that are rough everywhere.

Trees see the ranks of a column, so monotone transformations do not matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.tree import DecisionTreeRegressor

from hikernel.bases import FittedBasis, Steps
from hikernel.bases.branches import Branches, FittedBranches
from hikernel.bases.column import Column
from hikernel.columns.basis_choice import BasisChoice
from hikernel.columns.table import ColumnTable
from hikernel.engines.machine import is_late
from hikernel.engines.protocol import FloatArray

__all__ = ["most_massive", "split_masses", "steps_at_jumps"]

_ROUNDS = 100
_RATE = 0.1
_DEPTH = 4
_LEAF = 0.01 - 1e-6
"""Share of the weight in every leaf, at least; a little less, so that rounding decides nothing."""
_WINDOW = 0.05
"""Share of the rows within which thresholds stand for one jump."""
_LEAST_MASS, _LEAST_OWN = 4e-3, 0.05
"""Share that a jump has, at least, of the mass of all columns, and of that of its own."""
_MOST_NUMBERS = 5 * 10**5
"""Rows are thinned out evenly until rows times columns are at most this many."""


def steps_at_jumps(
    bases: Sequence[FittedBasis],
    choices: Sequence[BasisChoice],
    table: ColumnTable,
    rows: FloatArray,
    weights: FloatArray,
    residuals: FloatArray,
) -> tuple[FittedBasis, ...]:
    """Return the bases with the cuts of their steps where the residuals jump.

    Parameters
    ----------
    bases : sequence of FittedBasis
        One per column, fitted to these or to more rows.
    choices : sequence of BasisChoice
        Those with ``at_jumps`` have steps that are placed; the others stay as they are.
    table : ColumnTable
        Which columns hold categories.
    rows : ndarray of shape (n, p)
        Training rows; NaN where a value is missing.
    weights : ndarray of shape (n,)
        Positive weights of the rows.
    residuals : ndarray of shape (n,) or (n, k)
        What the trees are fitted to.
    """
    unordered = [m for m, known in enumerate(table.categories) if known and m not in table.ordered]
    masses = split_masses(rows, weights, residuals, unordered)
    total = sum(float(np.sum(mass)) for _, mass in masses)
    out = list(bases)
    for m, choice in enumerate(choices):
        if choice.at_jumps is None:
            continue
        assert isinstance(choice.basis, Branches)
        steps = choice.basis.bases[1]
        assert isinstance(steps, Steps)
        thresholds, mass = masses[m]
        column = Column.from_rows(rows[:, m], weights)
        below = np.searchsorted(column.values, thresholds, side="right")
        shares = np.concatenate([[0.0], np.cumsum(column.weights)])[below]
        least = max(_LEAST_MASS * total, _LEAST_OWN * float(np.sum(mass)))
        best = most_massive(shares, mass, least, 2**steps.degree - 1)
        fitted = steps.fit_at(column, thresholds[best].tolist(), halve=choice.at_jumps == "halved")
        old = bases[m]
        smooth = old.branches[0] if isinstance(old, FittedBranches) else old
        out[m] = smooth if fitted is None else FittedBranches.of((smooth, fitted))
    return tuple(out)


def split_masses(
    rows: FloatArray, weights: FloatArray, residuals: FloatArray, unordered: Sequence[int]
) -> list[tuple[FloatArray, FloatArray]]:
    """Return the thresholds of boosted trees and their masses, for every column.

    Parameters
    ----------
    rows : ndarray of shape (n, p)
        NaN where a value is missing: that is less than any number.
    weights : ndarray of shape (n,)
        Positive weights of the rows.
    residuals : ndarray of shape (n,) or (n, k)
        What the trees are fitted to.
    unordered : sequence of int
        Columns of codes without an order. They get one, by the mean of the residuals.

    Returns
    -------
    list of (ndarray of shape (t,), ndarray of shape (t,))
        Thresholds between neighbouring values, in increasing order, and their masses.
    """
    step = max(1, -(-rows.size // _MOST_NUMBERS))
    rows, weights = rows[::step], weights[::step] / np.sum(weights[::step])
    left = np.array(residuals[::step], dtype=float).reshape(len(rows), -1)
    values, ranks = _ranks(rows, weights, left, unordered)
    # Trees break ties by the order of the columns: it must not be that of the user.
    order = sorted(range(rows.shape[1]), key=lambda m: ranks[:, m].tobytes())
    known = np.ascontiguousarray(ranks[:, order])
    masses = [np.zeros(max(0, len(v) - 1)) for v in values]
    for _ in range(_ROUNDS):
        if is_late():  # fewer trees do, where the user wants an end
            break
        tree = DecisionTreeRegressor(
            max_depth=_DEPTH, min_weight_fraction_leaf=_LEAF, random_state=0
        ).fit(known, left, sample_weight=weights, check_input=False)
        left -= _RATE * np.reshape(tree.predict(known, check_input=False), left.shape)
        _collect(tree.tree_, order, masses)
    return [
        (0.5 * v[:-1] + 0.5 * v[1:] if len(v) else v, mass)
        for v, mass in zip(values, masses, strict=True)
    ]


def _ranks(
    rows: FloatArray, weights: FloatArray, residuals: FloatArray, unordered: Sequence[int]
) -> tuple[list[FloatArray], NDArray[np.float32]]:
    """Return the distinct values of every column, and the rank of every row among them.

    Missing values have rank -1. There are fewer than 2^24 rows, so that the ranks are exact.
    """
    values = []
    ranks = np.full(rows.shape, -1.0, dtype=np.float32, order="F")
    for m in range(rows.shape[1]):
        present = ~np.isnan(rows[:, m])
        found, position = np.unique(rows[present, m], return_inverse=True)
        if m in unordered:
            position = _by_mean(position, weights[present], residuals[present])
            found = found[:0]
        ranks[present, m] = position
        values.append(found)
    return values, ranks


def _by_mean(
    codes: NDArray[np.intp], weights: FloatArray, residuals: FloatArray
) -> NDArray[np.intp]:
    """Return codes in the order of the means of the residuals, of the output that varies most."""
    if len(codes) == 0:
        return codes
    sizes = np.bincount(codes, weights)
    sums = np.stack([np.bincount(codes, weights * r) for r in residuals.T])
    means = sums / sizes
    middle = np.sum(sums, axis=1, keepdims=True) / np.sum(sizes)
    output = int(np.argmax((means - middle) ** 2 @ sizes))
    position = np.empty(len(sizes), dtype=np.intp)
    position[np.argsort(means[output], kind="stable")] = np.arange(len(sizes))
    return position[codes]


def _collect(tree: Any, order: Sequence[int], masses: Sequence[FloatArray]) -> None:
    """Add what the splits of a tree have gained to the masses of their thresholds."""
    errors = tree.weighted_n_node_samples * tree.impurity
    inner = np.flatnonzero(tree.children_left >= 0)
    gains = errors[inner] - errors[tree.children_left[inner]] - errors[tree.children_right[inner]]
    places = np.floor(tree.threshold[inner]).astype(np.intp)
    for column, place, gain in zip(tree.feature[inner], places, gains, strict=True):
        mass = masses[order[column]]
        if 0 <= place < len(mass):  # neither missing against known, nor a category
            mass[place] += max(0.0, float(gain))


def most_massive(shares: FloatArray, mass: FloatArray, least: float, most: int) -> list[int]:
    """Return the positions of the thresholds that stand for jumps, the most massive jump first.

    Parameters
    ----------
    shares : ndarray of shape (t,)
        Share of the rows up to each threshold, in increasing order.
    mass : ndarray of shape (t,)
        Mass of each threshold.
    least : float
        A jump has more mass than this.
    most : int
        Largest number of jumps.
    """
    left = mass.copy()
    starts = np.searchsorted(shares, shares - 0.5 * _WINDOW, side="left")
    stops = np.searchsorted(shares, shares + 0.5 * _WINDOW, side="right")
    chosen: list[int] = []
    while len(chosen) < most and len(mass) > 0:
        sums = np.concatenate([[0.0], np.cumsum(left)])
        inside = sums[stops] - sums[starts]
        best = int(np.argmax(inside))
        if not inside[best] > least:
            break
        window = slice(int(starts[best]), int(stops[best]))
        middle = sums[starts[best]] + 0.5 * inside[best]
        chosen.append(int(np.searchsorted(sums[1:], middle)))
        left[window] = 0.0
    return chosen
