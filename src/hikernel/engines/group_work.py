"""What engines over blocks compute on a group of rows: functions that can be sent elsewhere.

Each takes the ``NumpyEngine`` of the group and the parts of the vectors that belong to its rows,
and returns a tuple of arrays. Results of groups are added, compared or put one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from hikernel.engines.features import Blocks, by_output
from hikernel.engines.numpy_engine import NumpyEngine
from hikernel.engines.protocol import FloatArray, Node
from hikernel.engines.row_blocks import Selection

__all__ = [
    "Applied",
    "Combine",
    "Correlations",
    "CrossMoments",
    "EngineMaker",
    "Extensions",
    "Features",
    "GroupWork",
    "LogKernels",
    "TailDiagonal",
    "TailDraws",
    "TermSums",
    "Variances",
    "add_part",
    "column_maxima",
    "joined",
    "level_squares",
    "one_variable_levels",
]

IndexArray = NDArray[np.intp]
Combine = Literal["sum", "largest", "rows"]
Arrays = tuple[FloatArray, ...]


class EngineMaker(Protocol):
    """Makes the engine of a group of rows; it can be pickled."""

    def __call__(
        self, block: Any, rows: slice | IndexArray, highest: Mapping[int, int] | None
    ) -> NumpyEngine:
        """Return the engine over some rows of a block.

        Parameters
        ----------
        block : Any
            The block.
        rows : slice or ndarray of int
            Positions in the block, at least one, increasing.
        highest : mapping of int to int, or None
            The variables that are needed, with their highest level; None for all.
        """
        ...


@dataclass(frozen=True)
class GroupWork:
    """What is done with a block: a computation on every group of its rows, and how to join them.

    Attributes
    ----------
    make : EngineMaker
        Makes the engine of a group.
    compute : callable
        Takes the engine of a group and the parts of the vectors; returns a tuple of arrays.
    combine : {"sum", "largest", "rows"}
        Whether results are added, compared, or put one after the other.
    highest : mapping of int to int, or None
        As for ``make``.
    group : int
        Rows of a group.
    """

    make: EngineMaker
    compute: Callable[..., Arrays]
    combine: Combine
    highest: Mapping[int, int] | None
    group: int

    def __call__(
        self, block: Any, selection: Selection, n_rows: int, *vectors: FloatArray
    ) -> Arrays | None:
        """Return the results of a block of ``n_rows`` selected rows; None if it has none."""
        parts: list[Arrays] = []
        for start in range(0, n_rows, self.group):
            rows = slice(start, min(start + self.group, n_rows))
            engine = self.make(block, rows if selection is None else selection[rows], self.highest)
            add_part(parts, self.compute(engine, *(v[rows] for v in vectors)), self.combine)
        return joined(parts, self.combine) if parts else None


def add_part(parts: list[Arrays], found: Arrays, combine: Combine) -> None:
    """Add a result to those so far, which become one unless rows are put one after the other."""
    parts.append(found)
    if combine != "rows":
        parts[:] = [joined(parts, combine)]


def joined(parts: Sequence[Arrays], combine: Combine) -> Arrays:
    """Return the results of several groups or blocks as one."""
    if len(parts) == 1:
        return parts[0]
    if combine == "rows":
        return tuple(np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    join = np.add if combine == "sum" else np.maximum
    return tuple(np.asarray(join.reduce(arrays)) for arrays in zip(*parts, strict=True))


@dataclass(frozen=True)
class Features:
    """Phi of some nodes: rows."""

    nodes: Sequence[Node]

    def __call__(self, engine: NumpyEngine) -> Arrays:
        """Return Phi, shape (n, R)."""
        return (engine.features(self.nodes),)


@dataclass(frozen=True)
class Correlations:
    """Phi' vector, |Phi|' |vector|, or both: sums."""

    nodes: Sequence[Node]
    signed: bool
    absolute: bool

    def __call__(self, engine: NumpyEngine, vector: FloatArray) -> Arrays:
        """Return what is asked for, each of shape (R,) or (R, k)."""
        asked = [False] * self.signed + [True] * self.absolute
        return tuple(engine.correlate(self.nodes, vector, absolute=a) for a in asked)


@dataclass(frozen=True)
class CrossMoments:
    """Centred cross moments of two lists of nodes: sums."""

    left: Sequence[Node]
    right: Sequence[Node]
    left_means: FloatArray
    right_means: FloatArray

    def __call__(self, engine: NumpyEngine, weights: FloatArray) -> Arrays:
        """Return the moments, shape (R_left, R_right)."""
        means = self.left_means, self.right_means
        return (engine.gram(self.left, self.right, *means, weights),)


@dataclass(frozen=True)
class Variances:
    """Weighted squares of the centred columns: sums."""

    nodes: Sequence[Node]
    means: FloatArray

    def __call__(self, engine: NumpyEngine, weights: FloatArray) -> Arrays:
        """Return the squares, shape (R,)."""
        return (engine.gram_diagonal(self.nodes, self.means, weights),)


@dataclass(frozen=True)
class TermSums:
    """sum_i omega_i (<beta_w, Phi_w(x_i)> - center_w)^power for each term w and output: sums."""

    nodes: Sequence[Node]
    blocks: Sequence[FloatArray]
    centers: FloatArray
    power: int

    def __call__(self, engine: NumpyEngine, weights: FloatArray) -> Arrays:
        """Return the sums, shape (number of nodes, k)."""
        features = Blocks([len(block) for block in self.blocks]).split(
            engine.features(self.nodes).T
        )
        out = []
        for part, block, center in zip(features, self.blocks, self.centers, strict=True):
            values = part.T @ by_output(block) - center
            out.append(weights @ values**self.power)
        return (np.array(out),)


@dataclass(frozen=True)
class Applied:
    """Phi coef: rows."""

    nodes: Sequence[Node]
    coef: FloatArray

    def __call__(self, engine: NumpyEngine) -> Arrays:
        """Return the values of the rows, shape (n,) or (n, k)."""
        return (engine.apply(self.nodes, self.coef),)


@dataclass(frozen=True)
class Extensions:
    """Scores of the columns of prefixes times those of all levels, and |Phi|' |vector|: sums."""

    prefixes: Sequence[Node]
    sizes: bool

    def __call__(self, engine: NumpyEngine, vector: FloatArray) -> Arrays:
        """Return the scores, shape (k, R, C), and the sizes, shape (k, R); empty if not wanted."""
        outputs = np.ascontiguousarray(by_output(vector).T)
        scores = np.stack([engine.extension_products(self.prefixes, v) for v in outputs])
        if not self.sizes:
            return scores, np.zeros((len(outputs), 0))
        return scores, engine.correlate(self.prefixes, outputs.T, absolute=True).T


@dataclass(frozen=True)
class TailDraws:
    """Random y_t with E y_t^2 = U(t): sums, as the signs of a draw belong to variables."""

    nodes: Sequence[Node]
    scales: Sequence[FloatArray]
    max_order: int | None
    n_draws: int
    seed: int

    def __call__(self, engine: NumpyEngine, dual_coef: FloatArray) -> Arrays:
        """Return the draws, shape (n_draws, number of nodes)."""
        how = self.max_order, self.n_draws, self.seed
        return (engine.tail_draws(self.nodes, dual_coef, self.scales, *how),)


@dataclass(frozen=True)
class TailDiagonal:
    """The diagonal parts of descendant sums: sums."""

    nodes: Sequence[Node]
    scales: Sequence[FloatArray]
    max_order: int | None

    def __call__(self, engine: NumpyEngine, dual_coef: FloatArray) -> Arrays:
        """Return the parts, shape (number of nodes,)."""
        return (engine.tail_diagonal(self.nodes, dual_coef, self.scales, self.max_order),)


@dataclass(frozen=True)
class LogKernels:
    """log prod_m S_{m,0}(x_i, x_i): rows."""

    scales: Sequence[FloatArray]

    def __call__(self, engine: NumpyEngine) -> Arrays:
        """Return the logarithms, shape (n,)."""
        return (engine.log_kernels(self.scales),)


def level_squares(engine: NumpyEngine, vector: FloatArray) -> Arrays:
    """Return sum_i vector_i^2 |Phi_v(x_i)|^2 of every level: sums."""
    return (engine.level_squares(vector),)


def column_maxima(engine: NumpyEngine) -> Arrays:
    """Return the largest magnitude in every stored column: largest."""
    return (engine.column_maxima(),)


def one_variable_levels(engine: NumpyEngine) -> Arrays:
    """Return the features of every stored level, variables and levels in order: rows."""
    own, rows = engine.node_features.own, slice(0, engine.n_rows)
    return tuple(own((pair,), rows) for pair in engine.node_features.stored)
