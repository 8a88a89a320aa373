"""Dense products through SciPy's BLAS.

NumPy and SciPy wheels each bring a BLAS with a thread pool of its own. Where they take turns,
as in a Newton loop of NumPy products and LAPACK factorisations, the idle threads of one pool spin
on the cores that the other needs: on two cores a product of 20 microseconds then takes two
milliseconds. Everything dense in the reduced solver therefore goes through SciPy's.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import blas

from hikernel.engines.protocol import FloatArray

__all__ = ["matmul", "matvec"]


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
