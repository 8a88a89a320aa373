"""Finite feature maps for kernels without one: pivoted Cholesky and principal directions.

One-variable kernels have tiny numerical rank, so a factor to ten digits has some tens of
columns however many rows there are. No n x n matrix is ever formed.
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

#: Columns at most when ``max_rank`` is None: more than any smooth kernel needs, and few enough
#: that a rough kernel on a million rows ends in a warning and not in an exhausted machine.
DEFAULT_MAX_RANK = 1000

_EPS = float(np.finfo(np.float64).eps)
# Kernels are computed to some digits only; a violation of symmetry or positivity beyond half
# of the digits is no rounding.
_VIOLATION = _EPS**0.5
_DIAGONAL_BLOCK = 64


class LowRankWarning(UserWarning):
    """A feature map is less precise than the tolerance that was asked for."""


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
        Weighted trace that is left on the training points, relative to the whole.
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
        """Feature map at ``z`` of shape (n,), an array of shape (n, r)."""
        values = evaluate(self.kernel, self.pivots, z)
        # Substitution, not an inverse: pivoting has made the diagonal of L_pp decrease, and
        # each row is then solved to its own precision although L_pp is ill conditioned.
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
    The residual K - L L' is positive semidefinite, so the trace of it that is left bounds
    every entry: |K - L L'|_ij^2 <= (K - L L')_ii (K - L L')_jj.

    Parameters
    ----------
    kernel : callable
        Symmetric and positive semidefinite; k(x, z) has shape (len(x), len(z)). If it has a
        method ``diagonal(x)``, that gives k(x_i, x_i).
    x : ndarray of shape (n,)
        Points, ties allowed: only distinct values count.
    weights : ndarray of shape (n,)
        Positive. They enter the trace; pivots are chosen without them.
    tol : float
        Relative residual of the weighted trace at which to stop. Residuals below rounding
        of the largest diagonal entry stop it too.
    max_rank : int, optional
        Columns at most; None means 1000. Stopping here gives a `LowRankWarning`.
    first_pivot : int, optional
        Row of ``x`` to start from, as incomplete Cholesky codes do that start from row 0;
        skipped if the kernel vanishes there. None takes the largest diagonal entry.

    Returns
    -------
    LowRankMap
        Pivots and the feature map for any point.

    Notes
    -----
    Why the map may be used on new points. A fitted function is f = sum_i alpha_i k(x_i, .),
    over training points. When the residual vanishes on these, each k(x_i, .) is a combination
    of the k(p, .), and then <phi(x_i), phi(z)> = k(x_i, p) k(p, p)^{-1} k(p, z) = k(x_i, z)
    for *every* z, near or far: predictions are those of the full kernel. (Only values between
    two new points, which no prediction uses, would differ.) With a residual d_i at x_i and
    d_z <= k(z, z) at z the error is at most sqrt(d_i d_z).

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
    """Fewest eigenvectors V with trace(M) - trace(V' M V) <= tol trace(M), largest first.

    Parameters
    ----------
    moment : ndarray of shape (r, r)
        Symmetric positive semidefinite M = sum_i w_i phi(x_i) phi(x_i)'.
    tol : float
        Relative trace that may be neglected.

    Returns
    -------
    directions : ndarray of shape (r, c)
        Orthonormal columns. Signs are fixed: the entry of largest magnitude is positive.
    neglected : float
        Relative trace of the directions left out.
    """
    eigenvalues, vectors = np.linalg.eigh(moment)
    eigenvalues = np.maximum(eigenvalues[::-1], 0.0)
    # tails[c] = trace left out when c directions are kept; summed from the small end.
    tails = np.append(np.cumsum(eigenvalues[::-1])[::-1], 0.0)
    if tails[0] == 0.0:
        return np.empty((moment.shape[0], 0)), 0.0
    kept = int(np.argmax(tails <= tol * tails[0]))
    directions = vectors[:, ::-1][:, :kept]
    largest = np.abs(directions).argmax(axis=0)
    signs = np.where(directions[largest, np.arange(kept)] < 0.0, -1.0, 1.0)
    return directions * signs, float(tails[kept] / tails[0])


def evaluate(kernel: Kernel, x: FloatArray, z: FloatArray) -> FloatArray:
    """Evaluate k(x, z) in float64 and check shape and finiteness, as the kernel may be a user's."""
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
    """k(x_i, x_i); from small blocks when the kernel does not offer it."""
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

    What is subtracted at an old pivot came from k(old, new), so a mismatch is a k(new, old)
    that differs from it.
    """
    worst = max(float(np.abs(row[chosen]).max(initial=0.0)), abs(row[pivot] - residual[pivot]))
    if worst > _VIOLATION * scale:
        raise ValueError(
            f"The kernel is not symmetric: k(x, z) and k(z, x) differ by {worst:.2e}. "
            "Use a symmetric kernel, for instance the mean of the two."
        )
