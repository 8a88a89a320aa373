"""Recurrences that evaluate scaled powers and Hermite polynomials without factorials.

Values are arrays of shape (terms, n), with one contiguous row per term. Points beyond ``FAR`` need
care: there a term may overflow to infinity, and the next step of the recurrence would subtract
infinities. At such points all lower powers are far below the rounding error of the leading one, so
they are dropped.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hikernel.engines.protocol import FloatArray

__all__ = ["binomial_powers", "far_points", "scaled_hermite"]

# Standardised points, and so the roots of the polynomials, are below about sqrt(n). At 1e30 the
# lower-order terms are far below the rounding error of the leading one.
FAR = 1e30


def far_points(z: FloatArray) -> NDArray[np.bool_]:
    """Return a mask of the points at which only the leading power of a polynomial matters."""
    return np.abs(z) > FAR


def binomial_powers(z: FloatArray, degree: int) -> FloatArray:
    """Return phi_j(z) = sqrt(binom(q, j)) z^j for j = 0..q.

    Then sum_j phi_j(x) phi_j(z) = (1 + xz)^q.

    Parameters
    ----------
    z : ndarray of shape (n,)
    degree : int
        The degree q.

    Returns
    -------
    ndarray of shape (q + 1, n)
    """
    terms = np.empty((degree + 1, z.size))
    terms[0] = 1.0
    with np.errstate(over="ignore", under="ignore"):
        for j in range(degree):
            terms[j + 1] = terms[j] * z * np.sqrt((degree - j) / (j + 1))
    return terms


def scaled_hermite(t: FloatArray, ratio: float, start: FloatArray, n_terms: int) -> FloatArray:
    """Return phi_j(t) = start(t) sqrt(ratio^j / (2^j j!)) H_j(t) for j = 0..n_terms-1.

    With H_{j+1} = 2t H_j - 2j H_{j-1} (physicists' polynomials) the normalised recurrence is

        phi_{j+1} = t sqrt(2 ratio / (j + 1)) phi_j - ratio sqrt(j / (j + 1)) phi_{j-1}.

    ``start`` may hold an exponential factor. Where it is zero, all terms are zero.

    Parameters
    ----------
    t, start : ndarray of shape (n,)
    ratio : float
        In (0, 1).
    n_terms : int
        At least 1.

    Returns
    -------
    ndarray of shape (n_terms, n)
    """
    terms = np.empty((n_terms, t.size))
    terms[0] = start
    far = far_points(t)
    with np.errstate(over="ignore", under="ignore"):
        for j in range(n_terms - 1):
            # Multiply t * phi_j first: zero times a large t stays zero.
            terms[j + 1] = (t * terms[j]) * np.sqrt(2.0 * ratio / (j + 1))
            if j > 0:
                back = terms[j - 1] * (ratio * np.sqrt(j / (j + 1)))
                np.subtract(terms[j + 1], back, out=terms[j + 1], where=~far)
    return terms
