"""Polynomials that are orthonormal under the distribution of the training column."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from hikernel.bases.basis import Basis, FittedBasis, as_levels
from hikernel.bases.column import Column, Standardizer
from hikernel.checks import check_integer
from hikernel.engines.protocol import FloatArray

__all__ = ["FittedOrthonormalPolynomial", "OrthonormalPolynomial"]

# The recurrence stops when the part of x p_j orthogonal to the levels below is at most this small
# relative to x p_j. The new level would be mostly amplified rounding error.
RELATIVE_NORM = 1e-8
# A projection this small relative to x p_j changes it by no more than rounding, and is skipped.
# For ordinary columns this skips the second pass, for symmetric ones every other projection.
ROUNDED_ZERO = 16.0 * float(np.finfo(np.float64).eps)
# Levels have variance one. If the absolute terms of a level, written in powers, add up to more than
# this, too many digits cancel and the level is not written in powers.
LARGEST_LOSS = 1e6
# "Twice is enough": after a second Gram-Schmidt pass, levels are orthogonal up to rounding.
PASSES = 2
# Number of equal parts of the range on which slopes are bounded from below.
PARTS = 32


@dataclass(frozen=True)
class OrthonormalPolynomial(Basis):
    """sum_i w_i p_j(x_i) p_k(x_i) = 1[j = k], p_j of degree j, for the training rows x_i.

    Level 0 is one and level 1 is the standardised column. Every level above 0 has mean zero and
    variance one, so that terms of different degree are comparable and descendant sums stay small.
    Outside the range of the training data the levels keep the values they have at its ends: there
    is no data beyond, and products of powers would explode.

    Parameters
    ----------
    degree : int, default 4
        Highest degree q. A column with m distinct values has at most m - 1 levels above 0. It has
        fewer if some values are so close that a level would be rounding error (the part of x p_j
        orthogonal to the levels below is less than 1e-8 of x p_j).

    Notes
    -----
    The three-term (Stieltjes) recurrence b_{j+1} p_{j+1} = (x - a_j) p_j - b_j p_{j-1} loses
    orthogonality if an extreme value of the column is nearly a root of some p_j: down to 1e-6 at
    degree 8 with a lognormal tail, and completely at degree 4 with one extreme value (1e6 among a
    thousand standard normal ones). Hence x p_j is orthogonalised against all levels below, twice,
    and the coefficients of both passes are kept. ``transform`` repeats exactly these operations, so
    that training rows get exactly the values that were orthogonalised.

    Examples
    --------
    >>> x = np.arange(5.0)
    >>> P = np.hstack(OrthonormalPolynomial(degree=3).fit(x).transform(x))
    >>> np.allclose(P.T @ P / 5, np.eye(4))
    True
    """

    name: ClassVar[str] = "orthonormal"
    degree: int = 4

    def __post_init__(self) -> None:
        check_integer("degree", self.degree, 1)

    def _fit(self, column: Column, scaler: Standardizer) -> FittedOrthonormalPolynomial:
        z, w = column.values, column.weights
        degree = min(int(self.degree), z.size - 1)
        projections = np.zeros((degree, PASSES, degree))
        norms = np.zeros(degree)
        levels = np.ones((degree + 1, z.size))
        for j in range(degree):
            candidate = z * levels[j]
            size = np.sqrt(w @ candidate**2)
            for coefficients in projections[j]:
                found = levels[: j + 1] @ (w * candidate)
                coefficients[: j + 1] = np.where(np.abs(found) > ROUNDED_ZERO * size, found, 0.0)
                _remove(candidate, levels[: j + 1], coefficients)
            norms[j] = np.sqrt(w @ candidate**2)
            if norms[j] <= RELATIVE_NORM * size:
                degree = j
                break
            levels[j + 1] = candidate / norms[j]
        return FittedOrthonormalPolynomial(
            scaler,
            True,
            projections[:degree, :, :degree].copy(),
            norms[:degree].copy(),
            float(z[0]),
            float(z[-1]),
        )


@dataclass(frozen=True, eq=False)
class FittedOrthonormalPolynomial(FittedBasis):
    """p_{j+1} = (x p_j - sum_{i <= j} c_ji p_i) / b_j, evaluated by the operations of the fit.

    Parameters
    ----------
    projections : ndarray of shape (q, 2, q)
        Coefficients c_ji of the two passes; entries with i > j are zero. Apart from rounding
        they vanish for i < j - 1.
    norms : ndarray of shape (q,)
        The b_j.
    low, high : float
        Range of the training column, standardised; points are clipped to it.
    """

    projections: FloatArray
    norms: FloatArray
    low: float
    high: float

    @property
    def widths(self) -> tuple[int, ...]:
        """Columns per level: one each."""
        return (1,) * (self.norms.size + 1)

    def _levels(self, z: FloatArray) -> list[FloatArray]:
        levels = np.ones((self.norms.size + 1, z.size))
        z = np.clip(z, self.low, self.high)
        with np.errstate(under="ignore"):
            for j, norm in enumerate(self.norms):
                candidate = z * levels[j]
                for coefficients in self.projections[j]:
                    _remove(candidate, levels[: j + 1], coefficients)
                levels[j + 1] = candidate / norm
        return as_levels(levels)

    def argument(self, x: ArrayLike) -> FloatArray:
        """Return x standardised and clipped to the range of the training data, shape (n,)."""
        return np.clip(super().argument(x), self.low, self.high)

    @property
    def domain(self) -> tuple[float, float]:
        """Range of the training column, in its units."""
        center, scale = self.scaler.center, self.scaler.scale
        return center + scale * self.low, center + scale * self.high

    def up_to(self, level: int) -> FittedOrthonormalPolynomial:
        """Return the basis with levels 0 to ``level`` only."""
        shorter = self.projections[:level, :, :level]
        return replace(self, projections=shorter, norms=self.norms[:level])

    def level_polynomial(self, level: int) -> FloatArray | None:
        """Return the coefficients of a level in powers of the standardised column, or None.

        None if the powers would cancel more than six digits. This happens from about degree 3 on
        if a few values lie far from all others. The cancellation is measured at the roots of the
        highest polynomial, which are spread over the training values.

        >>> fitted = OrthonormalPolynomial(degree=2).fit([-1.0, 0.0, 1.0])
        >>> fitted.level_polynomial(2) / np.sqrt(2.0)       # (x^2 - 1) / sqrt(1/2)
        array([-1.,  0.,  1.])
        """
        levels = np.eye(level + 1)
        for j in range(level):
            removed = self.projections[j].sum(axis=0)[: j + 1]
            levels[j + 1] = np.append(0.0, levels[j, :-1]) - removed @ levels[: j + 1]
            levels[j + 1] /= self.norms[j]
        jacobi = np.diag(self.projections.sum(axis=1).diagonal())
        jacobi += np.diag(self.norms[:-1], -1)  # eigvalsh reads the lower triangle
        roots = np.abs(np.linalg.eigvalsh(jacobi))
        sizes = np.vander(roots, level + 1, increasing=True) @ np.abs(levels[level])
        return np.asarray(levels[level]) if np.max(sizes) <= LARGEST_LOSS else None

    def slopes(self) -> FloatArray:
        """Return the differences of the control points on 32 parts of the range of the data.

        If none is negative, the polynomial does not decrease on the range (``bases.bernstein``);
        outside of it, it is constant.
        """
        from hikernel.bases.bernstein import control_points  # imported only when needed

        edges = np.linspace(self.low, self.high, PARTS + 1)
        points = control_points(self.projections.sum(axis=1), self.norms, edges)
        return np.diff(points, axis=2).reshape(self.norms.size, -1).T


def _remove(candidate: FloatArray, levels: FloatArray, coefficients: FloatArray) -> None:
    """Subtract sum_i coefficients[i] levels[i] from the candidate in place.

    Levels are subtracted one at a time, not by a matrix product. Fit and transform must round
    alike, and the rounding of elementwise operations does not depend on the number of points.
    """
    for coefficient, level in zip(coefficients, levels, strict=False):
        if coefficient != 0.0:
            candidate -= coefficient * level
