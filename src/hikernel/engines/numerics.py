"""Numerical routines that several layers share: dense products and a line search.

NumPy and SciPy wheels each bring a BLAS with its own thread pool. If the two alternate, as in a
Newton loop of NumPy products and LAPACK factorisations, the idle threads of one pool spin on the
cores that the other pool needs. On two cores a product of 20 microseconds then takes two
milliseconds. The dense matrix products of the reduced solver therefore use SciPy's BLAS.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np
from scipy.linalg import blas

from hikernel.engines.machine import check_time, in_threads
from hikernel.engines.protocol import FloatArray

__all__ = ["backtrack", "gram_in_parts", "lower_gram", "matmul", "matvec", "product_in_parts"]

_PART_WORK = 4e9
"""Multiplications of a product that is computed at once: a quarter of a second on one core."""

Trial = TypeVar("Trial")


def matvec(matrix: FloatArray, vector: FloatArray) -> FloatArray:
    """Return matrix @ vector for a dense matrix in C or Fortran order.

    >>> matvec(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1.0, 1.0]))
    array([3., 7.])
    """
    if matrix.size == 0:
        return np.zeros(matrix.shape[0])
    if matrix.flags.f_contiguous:
        return np.asarray(blas.dgemv(1.0, matrix, vector))
    return np.asarray(blas.dgemv(1.0, matrix.T, vector, trans=1))


def matmul(left: FloatArray, right: FloatArray) -> FloatArray:
    """Return left @ right for dense matrices in C or Fortran order.

    >>> matmul(np.eye(2), np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([[1., 2.],
           [3., 4.]])
    """
    a, flip_a = (left, 0) if left.flags.f_contiguous else (left.T, 1)
    b, flip_b = (right, 0) if right.flags.f_contiguous else (right.T, 1)
    return np.asarray(blas.dgemm(1.0, a, b, trans_a=flip_a, trans_b=flip_b))


def lower_gram(matrix: FloatArray) -> FloatArray:
    """Return the lower triangle of matrix @ matrix.T; what is above it is zero.

    It takes half the time of the whole product.

    >>> lower_gram(np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([[ 5.,  0.],
           [11., 25.]])
    """
    a, flip = (matrix, 0) if matrix.flags.f_contiguous else (matrix.T, 1)
    return np.asarray(blas.dsyrk(1.0, a, trans=flip, lower=1))


def product_in_parts(left: FloatArray, right: FloatArray) -> FloatArray:
    """Return left @ right, a few rows at a time where it takes long, and check the time between.

    >>> product_in_parts(np.eye(2), np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([[1., 2.],
           [3., 4.]])
    """
    n = len(left)
    step = _rows_of_part(n, left.shape[1] * right.shape[1])
    if step >= n:
        return np.asarray(left @ right)
    out = np.empty((n, right.shape[1]))
    for start in range(0, n, step):
        check_time()
        np.matmul(left[start : start + step], right, out=out[start : start + step])
    return out


def gram_in_parts(matrix: FloatArray) -> FloatArray:
    """Return matrix.T @ matrix, summed over a few rows at a time, in threads, where it takes long.

    What is added to what does not depend on the number of threads.

    >>> gram_in_parts(np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([[10., 14.],
           [14., 20.]])
    """
    n, size = matrix.shape
    if n * size**2 <= _PART_WORK:
        return np.asarray(matrix.T @ matrix)
    out = np.zeros((size, size))
    step = _rows_of_part(n, 4.0 * size**2)

    def of_part(start: int) -> FloatArray:
        part = matrix[start : start + step]
        return np.asarray(part.T @ part)

    for product in in_threads(of_part, list(range(0, n, step))):
        out += product
    return out


def _rows_of_part(n_rows: int, work: float) -> int:
    """Return how many rows of a product are computed at once, if each takes so much work."""
    return max(1, min(n_rows, int(_PART_WORK / max(1.0, work))))


def backtrack(
    trial_at: Callable[[float], Trial | None],
    value: Callable[[Trial], float],
    before: float,
    slope: float,
    *,
    length: float = 1.0,
    trials: int = 40,
    slack: float = 0.0,
) -> tuple[Trial, float] | None:
    """Halve a step until it decreases a function enough (Armijo's rule).

    A step of length t is accepted if value(x + t d) <= value(x) + 1e-4 t slope + slack.

    Parameters
    ----------
    trial_at : callable
        Maps a length t to the point x + t d, or to None if that point is not valid.
    value : callable
        Maps such a point to the value of the function.
    before, slope : float
        Value of the function at x, and its derivative along d, which is at most zero.
    length : float
        The first length that is tried.
    trials : int
        Maximum number of lengths that are tried.
    slack : float
        Increase that is tolerated as rounding error.

    Returns
    -------
    tuple of (point, length), or None if no length is accepted

    Examples
    --------
    >>> backtrack(lambda t: 1.0 - 4.0 * t, lambda x: x**2, 1.0, -8.0)
    (0.0, 0.25)
    """
    for _ in range(trials):
        trial = trial_at(length)
        if trial is not None and value(trial) <= before + 1e-4 * length * slope + slack:
            return trial, length
        length *= 0.5
    return None
