"""Finite feature maps for kernels without one: pivoted Cholesky and principal directions.

Smooth one-variable kernels have a small numerical rank: a factor with ten digits has some tens of
columns for any number of rows. No n x n matrix is ever formed.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import numpy as np
from scipy.linalg import solve_triangular

from hikernel.bases.column import distinct
from hikernel.bases.kernels import Kernel
from hikernel.engines.protocol import FloatArray

__all__ = ["LowRankMap", "LowRankWarning", "leading_directions", "pivoted_cholesky"]

#: Largest number of columns if ``max_rank`` is None. More than any smooth kernel needs, and few
#: enough that a rough kernel on a million rows gives a warning instead of filling the memory.
DEFAULT_MAX_RANK = 1000

_EPS = float(np.finfo(np.float64).eps)
# Kernel values have rounding errors. A larger relative violation of symmetry or positivity, beyond
# half of the digits, is not rounding.
_VIOLATION = _EPS**0.5
_DIAGONAL_BLOCK = 64


class LowRankWarning(UserWarning):
    """A feature map is less precise than the requested tolerance."""


@dataclass(frozen=True, eq=False)
class LowRankMap:
    """phi(z) = L_pp^{-1} k(p, z), with pivots p and k(p, p) = L_pp L_pp'.

    Parameters
    ----------
    kernel : callable
        k(x, z), values of shape (len(x), len(z)).
    pivots : ndarray of shape (r,)
        Training points that span the kernel.
    factor : ndarray of shape (r, r)
        Lower triangular L_pp.
    residual : float
        Weighted trace of K - L L' on the training points, relative to that of K.
    """

    kernel: Kernel
    pivots: FloatArray
    factor: FloatArray
    residual: float

    @property
    def rank(self) -> int:
        """Number of columns r."""
        return int(self.pivots.size)

    def transform(self, z: FloatArray) -> FloatArray:
        """Return the feature map at ``z`` of shape (n,), an array of shape (n, r)."""
        values = evaluate(self.kernel, self.pivots, z)
        # Use substitution, not an inverse. L_pp is ill conditioned, but pivoting made its diagonal
        # decrease, so substitution solves each row to its own precision.
        phi = solve_triangular(self.factor, values, lower=True, check_finite=False)
        return np.asarray(phi, dtype=np.float64).T


def pivoted_cholesky(
    kernel: Kernel,
    x: FloatArray,
    weights: FloatArray,
    tol: float,
    max_rank: int | None = None,
    first_pivot: int | None = None,
) -> LowRankMap:
    """Factor K ~ L L' with sum_i w_i (K - L L')_ii <= tol sum_i w_i K_ii.

    Each step takes the point with the largest residual diagonal as pivot and evaluates one
    column of the kernel: O(m r) memory and O(m r^2) time for m distinct points and rank r.
    The residual K - L L' is positive semidefinite, so its diagonal bounds every entry:
    |K - L L'|_ij^2 <= (K - L L')_ii (K - L L')_jj.

    Parameters
    ----------
    kernel : callable
        Symmetric and positive semidefinite; k(x, z) has shape (len(x), len(z)). If it has a
        method ``diagonal(x)``, this must return the values k(x_i, x_i).
    x : ndarray of shape (n,)
        Points; only distinct values count.
    weights : ndarray of shape (n,)
        Positive. They enter the trace, but not the choice of pivots.
    tol : float
        Stop when the weighted trace of the residual, relative to that of K, is at most ``tol``.
        The factorisation also stops when all residuals are rounding errors of the largest
        diagonal entry.
    max_rank : int, optional
        Largest number of columns; None means 1000. Stopping here gives a `LowRankWarning`.
    first_pivot : int, optional
        Row of ``x`` to use as first pivot; some incomplete Cholesky codes start from row 0. It
        is not used if the kernel vanishes there. None takes the largest diagonal entry.

    Returns
    -------
    LowRankMap
        Pivots and the feature map for any point.

    Notes
    -----
    The map may be used on new points, for this reason. A fitted function is
    f = sum_i alpha_i k(x_i, .) over training points x_i. If the residual vanishes on these, each
    k(x_i, .) is a linear combination of the k(p, .), and then
    <phi(x_i), phi(z)> = k(x_i, p) k(p, p)^{-1} k(p, z) = k(x_i, z) for *every* z, near or far.
    Predictions are therefore those of the full kernel. (Only values between two new points may
    differ, and no prediction uses them.) With a residual d_i at x_i and d_z <= k(z, z) at z, the
    error is at most sqrt(d_i d_z).

    Examples
    --------
    >>> from hikernel.bases.kernels import GaussianKernel
    >>> x = np.linspace(-2.0, 2.0, 500)
    >>> phi = pivoted_cholesky(GaussianKernel(0.5), x, np.ones(500), tol=1e-12)
    >>> phi.rank < 20
    True
    >>> L = phi.transform(x)
    >>> bool(np.abs(L @ L.T - GaussianKernel(0.5)(x, x)).max() < 1e-9)
    True
    """
    if first_pivot is not None and not 0 <= first_pivot < x.size:
        raise ValueError(f"first_pivot must be a row from 0 to {x.size - 1}, got {first_pivot}.")
    points, position, w = distinct(x, weights)
    diagonal = _diagonal(kernel, points)
    scale = float(diagonal.max())
    total = float(w @ diagonal)
    residual = diagonal.copy()
    _check_positive(residual, scale)
    if scale == 0.0:
        _check_zero(kernel, points)
    if total < np.finfo(np.float64).tiny:  # products of subnormal numbers are not accurate
        return LowRankMap(kernel, np.empty(0), np.empty((0, 0)), 0.0)

    limit = min(points.size, DEFAULT_MAX_RANK if max_rank is None else max_rank)
    rows = np.empty((min(limit, 32), points.size))
    chosen: list[int] = []
    floor = 8.0 * _EPS * scale
    left = 1.0
    while left > tol and len(chosen) < limit:
        pivot = int(residual.argmax())
        if first_pivot is not None and not chosen and residual[position[first_pivot]] > floor:
            pivot = int(position[first_pivot])
        if residual[pivot] <= floor:
            break
        rank = len(chosen)
        if rank == rows.shape[0]:
            rows = np.concatenate([rows, np.empty_like(rows)])[:limit]
        column = evaluate(kernel, points[pivot : pivot + 1], points)[0]
        row = column - rows[:rank, pivot] @ rows[:rank]
        _check_symmetric(row, residual, chosen, pivot, scale)
        row /= np.sqrt(residual[pivot])
        row[chosen] = 0.0
        row[pivot] = np.sqrt(residual[pivot])
        residual -= row**2
        residual[pivot] = 0.0
        residual[chosen] = 0.0
        _check_positive(residual, scale)
        rows[rank] = row
        chosen.append(pivot)
        left = float(w @ np.maximum(residual, 0.0)) / total
    if left > tol and len(chosen) == limit:
        remedy = "or choose a smoother kernel" if max_rank is None else "or leave it at None"
        warnings.warn(
            f"The factor of a one-variable kernel stopped at {limit} columns with a relative "
            f"trace of {left:.1e} left, above tol={tol:.1e}. Raise max_rank or tol, {remedy}.",
            LowRankWarning,
            stacklevel=2,
        )
    factor = np.tril(rows[: len(chosen), chosen].T)
    return LowRankMap(kernel, points[chosen], factor, left)


def leading_directions(moment: FloatArray, tol: float) -> tuple[FloatArray, float]:
    """Return the fewest eigenvectors V with trace(M) - trace(V' M V) <= tol trace(M).

    Parameters
    ----------
    moment : ndarray of shape (r, r)
        Symmetric positive semidefinite M = sum_i w_i phi(x_i) phi(x_i)'.
    tol : float
        Relative trace that may be neglected.

    Returns
    -------
    directions : ndarray of shape (r, c)
        Orthonormal columns, in decreasing order of the eigenvalues. Signs are fixed: the entry of
        largest magnitude is positive.
    neglected : float
        Relative trace of the neglected directions.
    """
    eigenvalues, vectors = np.linalg.eigh(moment)
    eigenvalues = np.maximum(eigenvalues[::-1], 0.0)
    # tails[c] is the trace neglected when c directions are kept, summed from the smallest up.
    tails = np.append(np.cumsum(eigenvalues[::-1])[::-1], 0.0)
    if tails[0] == 0.0:
        return np.empty((moment.shape[0], 0)), 0.0
    kept = int(np.argmax(tails <= tol * tails[0]))
    directions = vectors[:, ::-1][:, :kept]
    largest = np.abs(directions).argmax(axis=0)
    signs = np.where(directions[largest, np.arange(kept)] < 0.0, -1.0, 1.0)
    return directions * signs, float(tails[kept] / tails[0])


def evaluate(kernel: Kernel, x: FloatArray, z: FloatArray) -> FloatArray:
    """Return k(x, z) in float64; check shape and finiteness, since users may supply the kernel."""
    try:
        values = np.asarray(kernel(x, z), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"The kernel failed on points of shapes {x.shape} and {z.shape} ({error}); it must "
            "be a function k(x, z) of two 1-D arrays that returns real numbers."
        ) from error
    if values.shape != (x.size, z.size):
        raise ValueError(
            f"The kernel returned shape {values.shape} for {x.size} and {z.size} points; it must "
            f"return {(x.size, z.size)}. Broadcast x[:, None] against z[None, :]."
        )
    if not np.isfinite(values).all():
        raise ValueError(
            "The kernel returned NaN or infinity; it must be finite on standardised points of "
            "any size."
        )
    return values


def _diagonal(kernel: Kernel, x: FloatArray) -> FloatArray:
    """Return k(x_i, x_i), from small blocks if the kernel has no method ``diagonal``."""
    method = cast("Callable[[FloatArray], FloatArray] | None", getattr(kernel, "diagonal", None))
    if method is not None:
        values = np.asarray(method(x), dtype=np.float64)
        if values.shape != x.shape or not np.isfinite(values).all():
            raise ValueError(
                f"The method diagonal(x) of the kernel must return {x.size} finite numbers, "
                f"k(x_i, x_i) for every point; it returned an array of shape {values.shape}."
            )
        return values
    blocks = [x[i : i + _DIAGONAL_BLOCK] for i in range(0, x.size, _DIAGONAL_BLOCK)]
    return np.concatenate([np.diagonal(evaluate(kernel, block, block)) for block in blocks])


def _check_positive(residual: FloatArray, scale: float) -> None:
    if residual.min() < -_VIOLATION * max(scale, 0.0) or scale < 0.0:
        raise ValueError(
            "The kernel is not positive semidefinite: a residual diagonal entry of its matrix "
            f"is negative ({residual.min():.2e}). Use a positive semidefinite kernel."
        )


def _check_zero(kernel: Kernel, x: FloatArray) -> None:
    if np.any(evaluate(kernel, x[:1], x)):
        raise ValueError(
            "The kernel is not positive semidefinite: k(x, x) = 0 at every point and yet it does "
            "not vanish. Use a positive semidefinite kernel."
        )


def _check_symmetric(
    row: FloatArray, residual: FloatArray, chosen: list[int], pivot: int, scale: float
) -> None:
    """Raise unless the new residual row vanishes at old pivots and agrees with the diagonal.

    The value subtracted at an old pivot was computed from k(old, new). If the row does not vanish
    there, k(new, old) differs from k(old, new).
    """
    worst = max(float(np.abs(row[chosen]).max(initial=0.0)), abs(row[pivot] - residual[pivot]))
    if worst > _VIOLATION * scale:
        raise ValueError(
            f"The kernel is not symmetric: k(x, z) and k(z, x) differ by {worst:.2e}. "
            "Use a symmetric kernel, for instance the mean of the two."
        )
