"""The base classes: a `Basis` holds settings, and fitting it to a column gives a `FittedBasis`.

A new basis implements two methods: ``_fit`` in its `Basis` class, which gets the standardised
column, and ``_levels`` in its `FittedBasis` class. Checks, ties, weights, missing values,
standardisation and constant columns are handled here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from hikernel.bases.column import Column, Standardizer, as_points
from hikernel.engines.protocol import FloatArray

__all__ = ["Basis", "FittedBasis", "FittedConstant", "as_levels"]


class Basis(ABC):
    """Decomposition k(x, z) = sum_j k_j(x, z) of a one-variable kernel into levels j = 0..q.

    Level 0 is the factor of a variable that is absent from a term. It is identically one, except
    for bases with ``constant_level=False``, where it is usually a bump such as exp(-x^2). A
    concrete basis is a frozen dataclass of hyperparameters, checked on construction.

    Attributes
    ----------
    name : str
        Key in the dict ``BASES``.
    standardises : bool
        Whether the levels are functions of the standardised column, as usual, or of its exact
        original values.
    """

    name: ClassVar[str]
    standardises: ClassVar[bool] = True

    def fit(self, x: ArrayLike, sample_weight: ArrayLike | None = None) -> FittedBasis:
        """Fit the levels to one column.

        Parameters
        ----------
        x : array_like of shape (n,)
            Finite numbers, or NaN where a value is missing; rows with NaN are left out.
        sample_weight : array_like of shape (n,), optional
            Nonnegative, at least one positive. An integer weight is the same as repeating the row;
            rows of weight 0 are left out.

        Returns
        -------
        FittedBasis
            For a constant column, and for one without any value, every basis gives level 0 only,
            identically one.
        """
        return self.fit_column(Column.from_rows(x, sample_weight))

    def fit_column(self, column: Column) -> FittedBasis:
        """Fit the levels to a column whose rows have been checked and whose ties are merged."""
        scaler = Standardizer.fit(column.values, column.weights)
        if scaler.constant:
            return FittedConstant(scaler, constant_level=True)
        if not self.standardises:
            scaler = Standardizer.identity()
        z = scaler.transform(column.values)
        fitted = self._fit(Column(z, column.weights, column.position), scaler)
        if fitted.constant_level:
            return fitted
        return replace(fitted, absent=float(column.weights @ fitted._levels(z)[0][:, 0]))

    @abstractmethod
    def _fit(self, column: Column, scaler: Standardizer) -> FittedBasis:
        """Fit to a column that ``scaler`` has transformed, with at least two distinct values."""


@dataclass(frozen=True, eq=False)
class FittedBasis(ABC):
    """Feature maps phi_j: R -> R^{r_j} with <phi_j(x), phi_j(z)> = k_j(x, z), j = 0..q.

    Fields are numbers, arrays and dataclasses of these, so that a fitted basis can be written
    to a file without pickle. The only exception is a kernel given by the user as a callable.

    Parameters
    ----------
    scaler : Standardizer
        Transforms x to the scale on which the levels are defined.
    constant_level : bool
        True when level 0 is identically one.
    absent : float, default 1.0
        Value of level 0 where x is missing: its mean over the training rows (one for a constant
        level). Every term is a product over all variables, so zero would remove the row from all
        terms; the mean leaves the other variables their usual size.
    """

    scaler: Standardizer
    constant_level: bool
    absent: float = field(default=1.0, kw_only=True)

    @property
    @abstractmethod
    def widths(self) -> tuple[int, ...]:
        """Number of columns r_j of each level, level 0 first."""

    @property
    def max_level(self) -> int:
        """Highest level q of this column; it may be less than the requested degree."""
        return len(self.widths) - 1

    @property
    def parents(self) -> tuple[int, ...]:
        """Parent of each level j >= 1 in the tree of levels: here level j - 1, a chain."""
        return tuple(range(self.max_level))

    def depth(self, level: int) -> int:
        """Return the number of steps from level 0 to a level in the tree of levels."""
        steps = 0
        while level > 0:
            level = self.parents[level - 1]
            steps += 1
        return steps

    @property
    def exponents(self) -> tuple[float, ...]:
        """Powers of the weight base in the weights of the levels: here the levels themselves."""
        return tuple(float(j) for j in range(self.max_level + 1))

    def branch(self, level: int) -> tuple[FittedBasis, int]:
        """Return the basis to which a level above 0 belongs, and the number of the level there."""
        return self, level

    def level_name(self, level: int, name: str) -> str:
        """Return the name of a level above 0 of the column ``name``: here like a power of it."""
        return name if level == 1 else f"{name}^{level}"

    @property
    def bulk(self) -> tuple[float, float]:
        """Range in which most values lie: here two standard deviations around the mean."""
        center, scale = self.scaler.center, self.scaler.scale
        return center - 2.0 * scale, center + 2.0 * scale

    def transform(self, x: ArrayLike) -> list[FloatArray]:
        """Return the feature maps at ``x``.

        Parameters
        ----------
        x : array_like of shape (n,)
            Finite numbers of any size, or NaN where a value is missing.

        Returns
        -------
        list of ndarray of shape (n, r_j)
            One float64 array per level, level 0 first. Never NaN: a missing value gives
            ``absent`` at level 0 and zero at all other levels.
        """
        points = as_points(x)
        present = ~np.isnan(points)
        if present.all():
            return self._levels(self.scaler.transform(points))
        levels = []
        for j, known in enumerate(self._levels(self.scaler.transform(points[present]))):
            level = np.full((points.size, known.shape[1]), 0.0 if j else self.absent)
            level[present] = known
            levels.append(level)
        return levels

    @abstractmethod
    def _levels(self, z: FloatArray) -> list[FloatArray]:
        """Return the feature maps at finite points ``z`` of shape (n,), already scaled."""

    def argument(self, x: ArrayLike) -> FloatArray:
        """Return t(x), the variable of `level_polynomial`, shape (n,): here x, standardised."""
        return self.scaler.transform(as_points(x))

    @property
    def domain(self) -> tuple[float, float] | None:
        """Range to which `argument` clips x, in the units of the column, or None for no range."""
        return None

    def up_to(self, level: int) -> FittedBasis:
        """Return the basis without its levels above ``level``; a basis may also return itself.

        The remaining levels have exactly the same values.
        """
        return self

    def level_polynomial(self, level: int) -> FloatArray | None:
        """Return c with phi_level(x) = sum_i c_i t(x)^i, or None if there is no such polynomial.

        Parameters
        ----------
        level : int
            From 0 to ``max_level``.

        Returns
        -------
        ndarray of shape (degree + 1,) or None
            A formula writes the level out if it has these coefficients, and otherwise refers to it
            by name.
        """
        return None

    def slopes(self) -> FloatArray | None:
        """Return S such that S beta >= 0 makes sum_j <beta_j, phi_j(x)> non-decreasing in x.

        Returns
        -------
        ndarray of shape (k, columns) or None
            beta holds the coefficients of all levels above 0, the blocks of the levels in their
            order. The condition must be enough for every real x, the range outside the training
            data included. It need not be necessary, but nearly. None if there is no such S.
        """
        return None


@dataclass(frozen=True, eq=False)
class FittedConstant(FittedBasis):
    """Level 0 only, phi_0 = 1: the result of fitting any basis to a constant column."""

    @property
    def widths(self) -> tuple[int, ...]:
        """Columns per level: one, for level 0."""
        return (1,)

    def _levels(self, z: FloatArray) -> list[FloatArray]:
        return [np.ones((z.size, 1))]

    def slopes(self) -> FloatArray:
        """Return no rows: there is nothing to constrain."""
        return np.empty((0, 0))


def as_levels(terms: FloatArray) -> list[FloatArray]:
    """Split terms of shape (q + 1, n) into one-column levels of shape (n, 1)."""
    return [term[:, np.newaxis] for term in terms]
