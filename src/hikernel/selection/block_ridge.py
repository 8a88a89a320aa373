"""The ridge refit of rows in blocks: the fits of ``ridge``, from sums over the rows.

Scaled features F are never brought together. Their moments come from the engine, and what ``ridge``
computes for every row, the leave-one-out residuals, is computed for a few rows at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from hikernel.engines.features import Blocks
from hikernel.engines.numpy_engine import NumpyEngine
from hikernel.engines.protocol import FloatArray, Node
from hikernel.engines.row_block_engine import RowBlockEngine
from hikernel.losses import Loss, SquaredError
from hikernel.selection.ridge import (
    CONSTANT,
    LEAST_FREE,
    PENALTIES,
    SMALLEST_SQUARE,
    TINY,
    RidgeFit,
    RidgeStart,
    best_of_penalties,
)
from hikernel.selection.ridge_objective import RidgeObjective, contrasts

__all__ = ["BlockFeatures", "fit_block_ridge"]

IndexArray = NDArray[np.intp]


@dataclass(frozen=True)
class BlockFeatures:
    """Scaled features of some nodes, F = Phi diag(scales), over rows in blocks.

    Attributes
    ----------
    engine : RowBlockEngine
        The rows.
    nodes : sequence of Node
        The nodes.
    scales : ndarray of shape (R,)
        Scales of their columns.
    """

    engine: RowBlockEngine
    nodes: Sequence[Node]
    scales: FloatArray

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of columns."""
        return self.engine.n_rows, len(self.scales)

    def __getitem__(self, index: tuple[slice, IndexArray]) -> BlockFeatures:
        """Return some of the columns, all of a node or none."""
        columns = index[1]
        starts = Blocks([self.engine.width(node) for node in self.nodes]).starts
        nodes = [self.nodes[i] for i in np.flatnonzero(np.isin(starts, columns)).tolist()]
        return BlockFeatures(self.engine, nodes, self.scales[columns])

    def __mul__(self, scales: FloatArray) -> BlockFeatures:
        """Return the features with further scales of their columns."""
        return BlockFeatures(self.engine, self.nodes, self.scales * scales)

    def copy(self, order: str = "A") -> BlockFeatures:
        """Return the features, which nothing overwrites."""
        return self

    @cached_property
    def variances(self) -> FloatArray:
        """Weighted variances of the columns of F, shape (R,)."""
        found = self.engine.gram_diagonal(self.nodes, self.means / self.scales)
        return np.asarray(found * self.scales**2)

    @cached_property
    def means(self) -> FloatArray:
        """Weighted means of the columns of F, shape (R,)."""
        return self.engine.means(self.nodes) * self.scales

    def moments(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return sum_i weights_i (F_i - means)' (F_i - means), and the same without the square.

        The shapes are (R, R) and (R,); weights may have any signs.
        """
        work = SignedMoments(self.nodes, self.means / self.scales)
        squares, sums = self.engine.results("gram", work, weights, nodes=self.nodes)
        return squares * self.scales[:, None] * self.scales, sums * self.scales

    def pull(self, vector: FloatArray) -> FloatArray:
        """Return (F - means)' vector, shape (R,) or (R, k)."""
        sums = np.sum(vector, axis=0)
        found = (self.engine.correlate(self.nodes, vector).T * self.scales).T
        return np.asarray(found - np.multiply.outer(self.means, sums))

    def apply(self, coef: FloatArray) -> FloatArray:
        """Return (F - means) coef, shape (n,) or (n, k)."""
        return self.engine.apply(self.nodes, (coef.T * self.scales).T) - self.means @ coef


def fit_block_ridge(
    features: BlockFeatures,
    y: FloatArray,
    omega: FloatArray,
    loss: Loss,
    relative_mu: float | None = None,
    start: RidgeStart | None = None,
    most: float = np.inf,
) -> RidgeFit:
    """Fit ridge as ``fit_ridge`` does; the arguments are the same but for the features."""
    if isinstance(loss, SquaredError) and y.ndim == 1:
        return _squared(features, y, omega, relative_mu)
    return _general(features, y, omega, loss, relative_mu, start, most)


def _squared(
    features: BlockFeatures, y: FloatArray, omega: FloatArray, relative_mu: float | None
) -> RidgeFit:
    means, center = features.means, float(omega @ y)
    gram, _ = features.moments(omega)
    varying = np.diag(gram) > CONSTANT * means**2
    gram = gram * np.outer(varying, varying)
    unit = float(np.trace(gram)) / max(len(gram), 1)
    cross = np.where(varying, features.pull(omega * (y - center)), 0.0)
    squares, vectors = linalg.eigh(gram, check_finite=False)
    kept = squares > SMALLEST_SQUARE * max(float(np.max(squares, initial=0.0)), TINY)
    squares, vectors = squares[kept], vectors[:, kept]
    along = vectors.T @ cross / np.sqrt(squares)
    penalties = unit * (PENALTIES if relative_mu is None else np.array([relative_mu]))
    lost = penalties / (squares[:, None] + penalties)
    turn = varying[:, None] * vectors / np.sqrt(squares)
    scaled = features.scales[:, None] * turn
    work = LeftOutSquares(features.nodes, scaled, means @ turn, along, lost)
    scores = features.engine.results(
        "leave one out", work, omega, y - center, nodes=features.nodes
    )[0]
    best = int(np.argmin(scores))
    mu = float(penalties[best])
    coef = vectors @ (np.sqrt(squares) * along / (squares + mu))
    return RidgeFit(coef, np.asarray(center - means @ coef), mu, float(scores[best]))


@dataclass(frozen=True)
class SignedMoments:
    """Second and first moments of centred features under weights of any signs: sums."""

    nodes: Sequence[Node]
    means: FloatArray

    def __call__(self, engine: NumpyEngine, weights: FloatArray) -> tuple[FloatArray, ...]:
        """Return the moments, shapes (R, R) and (R,)."""
        features = engine.features(self.nodes) - self.means
        return features.T @ (weights[:, None] * features), features.T @ weights


@dataclass(frozen=True)
class LeftOutSquares:
    """Half the sum of squared leave-one-out residuals for every penalty: sums.

    Attributes
    ----------
    nodes : sequence of Node
        The nodes.
    turn, shift : ndarray of shape (R, r) and (r,)
        Phi turn - shift has orthonormal columns, weighted by omega.
    along : ndarray of shape (r,)
        The target along these.
    lost : ndarray of shape (r, number of penalties)
        Which share of it each penalty takes away.
    """

    nodes: Sequence[Node]
    turn: FloatArray
    shift: FloatArray
    along: FloatArray
    lost: FloatArray

    def __call__(
        self, engine: NumpyEngine, omega: FloatArray, target: FloatArray
    ) -> tuple[FloatArray, ...]:
        """Return the sums, shape (number of penalties,)."""
        root = np.sqrt(omega)
        left = root[:, None] * (engine.features(self.nodes) @ self.turn - self.shift)
        left_squares = left**2
        outside = root * target - left @ self.along
        free = np.maximum(1.0 - omega - np.sum(left_squares, axis=1), 0.0)
        residuals = outside[:, None] + left @ (self.lost * self.along[:, None])
        residuals /= np.maximum(free[:, None] + left_squares @ self.lost, LEAST_FREE)
        return (0.5 * np.sum(residuals**2, axis=0),)


def _general(
    features: BlockFeatures,
    y: FloatArray,
    omega: FloatArray,
    loss: Loss,
    relative_mu: float | None,
    start: RidgeStart | None,
    most: float,
) -> RidgeFit:
    n, size = features.shape
    unit = float(np.trace(features.moments(omega)[0])) / max(size, 1)
    outputs = contrasts(loss, int(np.prod(y.shape[1:])))
    none = np.empty((0, size + 1))
    problem = BlockObjective(none, y.reshape(n, -1), omega, loss, outputs, features)
    means = features.means
    return best_of_penalties(problem, means, unit, y.shape[1:], relative_mu, start, most)


@dataclass(frozen=True)
class BlockObjective(RidgeObjective):
    """The objective of ``RidgeObjective`` over rows in blocks; ``design`` has no rows.

    Attributes
    ----------
    features : BlockFeatures
        The rows.
    """

    features: BlockFeatures
    _known: list[tuple[FloatArray, FloatArray]] = field(default_factory=list)

    def linear(self, theta: FloatArray) -> FloatArray:
        """Return x_i' theta for every row, shape (n, outputs); it may be asked for again."""
        coef = theta[:-1]
        if not self._known or not np.array_equal(self._known[0][0], coef):
            self._known[:] = [(coef.copy(), self.features.apply(coef))]
        return np.asarray(self._known[0][1] + theta[-1])

    def pull(self, vectors: FloatArray) -> FloatArray:
        """Return sum_i x_i vectors_i, shape (R + 1, outputs)."""
        return np.vstack([self.features.pull(vectors), np.sum(vectors, axis=0)])

    def moments(self, weights: FloatArray) -> FloatArray:
        """Return sum_i weights_i x_i x_i', shape (R + 1, R + 1)."""
        size = len(self.features.scales)
        out = np.empty((size + 1, size + 1))
        out[:-1, :-1], sums = self.features.moments(weights)
        out[-1, :-1] = out[:-1, -1] = sums
        out[-1, -1] = np.sum(weights)
        return out

    def left_out(self, theta: FloatArray, factor: FloatArray) -> FloatArray:
        """Return f_(i) of every row i, predicted after one Newton step without that row."""
        rows = self.features
        work = LeftOutRows(
            rows.nodes, rows.scales, rows.means, self.loss, self.outputs, theta, factor
        )
        vectors = self.y, self.omega
        found = rows.engine.results(
            "leave one out", work, *vectors, combine="rows", nodes=rows.nodes
        )
        return found[0]


@dataclass(frozen=True)
class LeftOutRows:
    """f_(i) of every row i: rows.

    Attributes
    ----------
    nodes, scales, means
        As for ``BlockFeatures``.
    loss, outputs
        As for ``RidgeObjective``.
    theta, factor : ndarray
        The estimate, and the Cholesky factor of the Hessian there.
    """

    nodes: Sequence[Node]
    scales: FloatArray
    means: FloatArray
    loss: Loss
    outputs: FloatArray
    theta: FloatArray
    factor: FloatArray

    def __call__(self, engine: NumpyEngine, y: FloatArray, omega: FloatArray) -> tuple[FloatArray]:
        """Return f_(i), shape (n, k)."""
        features = engine.features(self.nodes) * self.scales - self.means
        design = np.hstack([features, np.ones((len(features), 1))])
        problem = RidgeObjective(design, y, omega, self.loss, self.outputs)
        return (problem.left_out(self.theta, self.factor),)
