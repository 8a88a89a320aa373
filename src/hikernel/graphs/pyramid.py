"""Pyramid match kernels: point clouds compared by histograms over finer and finer cells.

Level l cuts every side of the box of the training points into 2^l parts. The levels form a chain
from coarse to fine. Cells are never enumerated: only cells that contain a point are stored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from hikernel.engines.protocol import FloatArray
from hikernel.graphs.sparse_counts import inner_products

__all__ = ["PyramidMatch"]

# Cell numbers are exact in float64 up to 2^53; a few bits are left for points outside the box.
_DEEPEST = 48


class PyramidMatch:
    """K_l(x, z) = sum over the cells of level l of min(count in x, count in z), l = 0 .. depth.

    Every K_l is an inner product: the t-th point of a cloud in a cell is the feature (cell, t),
    and the smaller of two counts is the number of features that both clouds have.

    Parameters
    ----------
    depth : int
        The finest level; the sides of its cells are 2^-depth times those of the box.
    normalize : bool
        Whether to divide by sqrt(K_l(x, x) K_l(z, z)), the root of the product of the numbers of
        points. By default this is done: otherwise large clouds have large kernels at every level,
        and the number of points outweighs their positions. Set it to False if the number of points
        should matter. The kernel of an empty cloud with any cloud is 0.

    Notes
    -----
    The box is the range of each coordinate over all training points, so units do not matter. A
    cell contains its lower faces; the last cell also contains the upper face of the box. The cells
    continue beyond the box: a new point outside is not moved to the border, and it matches only
    points in the same outside cell. A coordinate that is constant in training gets the longest
    side of the other coordinates (1 if all are constant), with the constant at one third of it.
    No cell of any level ends there, so rounding does not decide to which cell a point belongs.

    Examples
    --------
    >>> clouds = [np.array([[0.0], [1.0]]), np.array([[0.1], [0.2]])]
    >>> match = PyramidMatch(depth=1, normalize=False).fit(clouds)
    >>> match.kernel(0)(clouds, clouds).tolist(), match.kernel(1)(clouds, clouds).tolist()
    ([[2.0, 2.0], [2.0, 2.0]], [[2.0, 1.0], [1.0, 2.0]])
    """

    def __init__(self, depth: int, *, normalize: bool = True) -> None:
        if isinstance(depth, bool) or not isinstance(depth, (int, np.integer)):
            raise ValueError(f"depth must be a whole number, got {depth!r}.")
        if not 0 <= depth <= _DEEPEST:
            raise ValueError(f"depth must lie between 0 and {_DEEPEST}, got {depth}.")
        self.depth = int(depth)
        self.normalize = bool(normalize)

    def fit(self, clouds: Sequence[Any]) -> Self:
        """Find the box of all points of the training clouds.

        Parameters
        ----------
        clouds : sequence of array-like of shape (n_points_i, dim)
            Finite coordinates; clouds may be empty, but not all of them.
        """
        points, _ = _stack(clouds, None)
        if len(points) == 0:
            raise ValueError("No cloud has a point; the box needs at least one.")
        low, high = points.min(axis=0), points.max(axis=0)
        with np.errstate(over="ignore"):
            side = high - low
        if not np.isfinite(side).all():
            raise ValueError("The coordinates span more than floating point numbers can; rescale.")
        constant = side == 0.0
        longest = side.max() if side.max() > 0.0 else 1.0
        self.side_: FloatArray = np.where(constant, longest, side)
        self.low_: FloatArray = np.where(constant, low - longest / 3.0, low)
        self.high_: FloatArray = np.where(constant, self.low_ + longest, high)
        return self

    def kernel(self, level: int) -> Callable[[Sequence[Any], Sequence[Any]], FloatArray]:
        """Return the kernel of one level, a function (X, Z) -> K_l of shape (len(X), len(Z))."""
        if level not in range(self.depth + 1):
            raise ValueError(f"level must be one of 0 to {self.depth}, got {level!r}.")
        return partial(self._one_level, level)

    def grams(self, X: Sequence[Any], Z: Sequence[Any]) -> FloatArray:
        """Return K_0 .. K_depth, shape (depth + 1, len(X), len(Z))."""
        sides = self._units(X), self._units(Z)
        return np.stack([self._intersect(level, *sides) for level in range(self.depth + 1)])

    def _one_level(self, level: int, X: Sequence[Any], Z: Sequence[Any]) -> FloatArray:
        return self._intersect(level, self._units(X), self._units(Z))

    def _units(self, clouds: Sequence[Any]) -> tuple[FloatArray, NDArray[np.intp]]:
        """Return all points in units of the box, and the number of points of each cloud."""
        if not hasattr(self, "low_"):
            raise ValueError("Call fit with the training clouds first; it finds the box.")
        points, sizes = _stack(clouds, len(self.low_))
        with np.errstate(over="ignore"):
            units = (points - self.low_) / self.side_
        # Rounding must not move a point of the box out of it.
        inside = (points >= self.low_) & (points <= self.high_)
        units[inside] = np.clip(units[inside], 0.0, np.nextafter(1.0, 0.0))
        return units, sizes

    def _intersect(
        self,
        level: int,
        X: tuple[FloatArray, NDArray[np.intp]],
        Z: tuple[FloatArray, NDArray[np.intp]],
    ) -> FloatArray:
        with np.errstate(over="ignore"):
            cells = np.floor(np.concatenate([X[0], Z[0]]) * 2.0**level)
        sizes = np.concatenate([X[1], Z[1]])
        cloud = np.repeat(np.arange(len(sizes)), sizes)
        cell = _number_rows(cells)
        turn = _turn_in_group(cell, cloud)
        feature = _number_rows(np.column_stack([cell, turn]))
        shape = (len(sizes), int(feature.max(initial=0)) + 1)
        counts = sparse.csr_array((np.ones(len(cloud)), (cloud, feature)), shape=shape)
        left, right = counts[: len(X[1])], counts[len(X[1]) :]
        return inner_products(left, right, normalize=self.normalize)


def _number_rows(rows: NDArray[Any]) -> NDArray[np.intp]:
    """Return a number for every row of a matrix; equal rows have the same number."""
    order = np.lexsort(rows.T[::-1]) if rows.shape[1] else np.arange(len(rows))
    ordered = rows[order]
    new = np.zeros(len(rows), dtype=np.intp)
    new[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    out = np.empty(len(rows), dtype=np.intp)
    out[order] = np.cumsum(new)
    return out


def _turn_in_group(cell: NDArray[np.intp], cloud: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return for every point the number of earlier points of its cloud in the same cell."""
    group = _number_rows(np.column_stack([cell, cloud]))
    order = np.argsort(group, kind="stable")
    sizes = np.bincount(group)
    out = np.empty(len(group), dtype=np.intp)
    out[order] = np.arange(len(group)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return out


def _stack(clouds: Sequence[Any], dim: int | None) -> tuple[FloatArray, NDArray[np.intp]]:
    """Return the points of all clouds in one array, and the number of points of each cloud."""
    arrays: list[FloatArray] = []
    for i, cloud in enumerate(clouds):
        try:
            if np.iscomplexobj(cloud):
                raise TypeError
            points = np.asarray(cloud, dtype=np.float64)
        except (TypeError, ValueError):
            raise ValueError(f"Cloud {i} is no array of numbers.") from None
        if points.ndim != 2 or points.shape[1] == 0:
            raise ValueError(
                f"Cloud {i} must have shape (points, coordinates), got {points.shape}."
            )
        dim = points.shape[1] if dim is None else dim
        if points.shape[1] != dim:
            raise ValueError(
                f"All points must have {dim} coordinates, those of cloud {i} have "
                f"{points.shape[1]}."
            )
        if not np.isfinite(points).all():
            raise ValueError(f"Cloud {i} has coordinates that are not finite.")
        arrays.append(points)
    if not arrays:
        raise ValueError("The list of clouds is empty; at least one is needed.")
    return np.concatenate(arrays), np.array([len(points) for points in arrays])
