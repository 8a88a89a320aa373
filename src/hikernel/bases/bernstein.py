"""Control points of polynomials: a linear condition under which a polynomial never decreases.

On an interval [a, b] a polynomial of degree q is sum_i c_i binom(q, i) s^i (1 - s)^(q - i) with
s = (x - a) / (b - a). Its derivative is q / (b - a) times the same sum, of degree q - 1, over the
differences c_{i+1} - c_i. Each summand is at least zero on the interval. So a polynomial whose
control points c_i do not decrease does not decrease: everywhere on the interval, not on a grid. The
converse holds in the limit of short intervals, with an error that falls with their squared length.
"""

from __future__ import annotations

import numpy as np

from hikernel.engines.protocol import FloatArray

__all__ = ["control_points", "elevated", "times_x"]


def control_points(projections: FloatArray, norms: FloatArray, edges: FloatArray) -> FloatArray:
    """Return the control points of p_1, ..., p_q on the intervals between edges.

    p_0 = 1 and norms_j p_{j+1} = x p_j - sum_{i <= j} projections_ji p_i, as in
    :class:`~hikernel.bases.orthonormal.FittedOrthonormalPolynomial`. The recurrence is run on
    control points, so that no powers of x cancel.

    Parameters
    ----------
    projections : ndarray of shape (q, q)
        The coefficients; entries with i > j are zero.
    norms : ndarray of shape (q,)
        The divisors.
    edges : ndarray of shape (k + 1,)
        Increasing.

    Returns
    -------
    ndarray of shape (q, k, q + 1)
        By level, interval and control point, all of degree q.

    Examples
    --------
    >>> control_points(np.zeros((2, 2)), np.ones(2), np.array([0.0, 1.0]))[:, 0]     # x and x^2
    array([[0. , 0.5, 1. ],
           [0. , 0. , 1. ]])
    """
    low, high = edges[:-1, None], edges[1:, None]
    levels = np.ones((1, len(edges) - 1, 1))
    for row, norm in zip(projections, norms, strict=True):
        count = len(levels)
        above = times_x(levels[-1], low, high)
        levels = elevated(levels)
        above = (above - np.tensordot(row[:count], levels, axes=1)) / norm
        levels = np.concatenate([levels, above[None]])
    return levels[1:]


def elevated(points: FloatArray) -> FloatArray:
    """Return the same polynomials with control points of one degree more, in the last axis.

    >>> elevated(np.array([0.0, 1.0]))
    array([0. , 0.5, 1. ])
    """
    size = points.shape[-1]
    share = np.arange(size + 1) / size
    none = np.zeros((*points.shape[:-1], 1))
    before = np.concatenate([none, points], axis=-1)
    return np.asarray(share * before + (1.0 - share) * np.concatenate([points, none], axis=-1))


def times_x(points: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
    """Return the control points of x times a polynomial on [low, high], of one degree more."""
    size = points.shape[-1]
    share = np.arange(size + 1) / size
    none = np.zeros((*points.shape[:-1], 1))
    before = np.concatenate([none, points], axis=-1)
    after = np.concatenate([points, none], axis=-1)
    return np.asarray(share * high * before + (1.0 - share) * low * after)
