"""Arithmetic that more than one layer needs: dense products and the control of Newton's steps.

NumPy and SciPy wheels each bring a BLAS with a thread pool of its own. Where they take turns,
as in a Newton loop of NumPy products and LAPACK factorisations, the idle threads of one pool spin
on the cores that the other needs: on two cores a product of 20 microseconds then takes two
milliseconds. Everything dense in the reduced solver therefore goes through SciPy's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np
from scipy.linalg import blas

from hikernel.engines.protocol import FloatArray

__all__ = ["backtrack", "matmul", "matvec"]

Trial = TypeVar("Trial")


def matvec(matrix: FloatArray, vector: FloatArray) -> FloatArray:
    """Return matrix @ vector for a dense matrix of either order.

    >>> matvec(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1.0, 1.0]))
    array([3., 7.])
    """
    if matrix.size == 0:
        return np.zeros(matrix.shape[0])
    if matrix.flags.f_contiguous:
        return np.asarray(blas.dgemv(1.0, matrix, vector))
    return np.asarray(blas.dgemv(1.0, matrix.T, vector, trans=1))


def matmul(left: FloatArray, right: FloatArray) -> FloatArray:
    """Return left @ right for dense matrices of either order.

    >>> matmul(np.eye(2), np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([[1., 2.],
           [3., 4.]])
    """
    a, flip_a = (left, 0) if left.flags.f_contiguous else (left.T, 1)
    b, flip_b = (right, 0) if right.flags.f_contiguous else (right.T, 1)
    return np.asarray(blas.dgemm(1.0, a, b, trans_a=flip_a, trans_b=flip_b))


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

    A step of length t is taken where value(x + t d) <= value(x) + 1e-4 t slope + slack.

    Parameters
    ----------
    trial_at : callable
        Gives the point after a step of some length, or None where there is none.
    value : callable
        The function at such a point.
    before, slope : float
        The function at the start, and its derivative along the step, at most zero.
    length : float
        The first length tried.
    trials : int
        Lengths tried at most.
    slack : float
        Increase that passes for rounding.

    Returns
    -------
    tuple of (point, length), or None where no length decreases the function

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
