"""What a basis is: a recipe (`Basis`) that fits to a column and becomes a `FittedBasis`.

A new basis writes two methods: ``_fit`` on the standardised column, and ``_levels`` of its
fitted half. Checking, ties, weights, missing values, standardisation and constant columns are
dealt with here.
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

    Level 0 means "absent": it is identically one, or a bump for the bases that say so. A
    concrete basis is a frozen dataclass of hyperparameters, checked when it is made.

    Attributes
    ----------
    name : str
        Key in the registry.
    standardises : bool
        Whether levels are defined on the standardised column (the rule) or on its values as they
        are, to the last bit.
    """

    name: ClassVar[str]
    standardises: ClassVar[bool] = True

    def fit(self, x: ArrayLike, sample_weight: ArrayLike | None = None) -> FittedBasis:
        """Fit the levels to one column.

        Parameters
        ----------
        x : array_like of shape (n,)
            Finite numbers, or NaN where a value is missing: such rows are left out. At least one
            row has a positive weight.
        sample_weight : array_like of shape (n,), optional
            Nonnegative. Integer weights equal repeated rows; rows of weight 0 are left out.

        Returns
        -------
        FittedBasis
            A constant column has level 0 alone, identically one, whatever the basis; so has a
            column without any value.
        """
        column = Column.from_rows(x, sample_weight)
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
        """Fit on a column in the units of ``scaler`` with at least two distinct values."""


@dataclass(frozen=True, eq=False)
class FittedBasis(ABC):
    """Feature maps phi_j: R -> R^{r_j} with <phi_j(x), phi_j(z)> = k_j(x, z), j = 0..q.

    Fields are numbers, arrays and dataclasses of these, so that a fitted basis can be written
    to a file without pickle; the one exception is a kernel that the user gave as a callable.

    Parameters
    ----------
    scaler : Standardizer
        Brings points to the scale on which the levels are defined.
    constant_level : bool
        True when level 0 is identically one.
    absent : float, default 1.0
        Level 0 where the value is missing: its mean over the training rows, which is one for a
        constant level. A row keeps its other variables that way, at their usual size; zero would
        delete it from every term, since without a constant level all terms contain all variables.
    """

    scaler: Standardizer
    constant_level: bool
    absent: float = field(default=1.0, kw_only=True)

    @property
    @abstractmethod
    def widths(self) -> tuple[int, ...]:
        """Columns per level, level 0 first."""

    @property
    def max_level(self) -> int:
        """Highest level q of this column; it may be less than the degree asked for."""
        return len(self.widths) - 1

    def transform(self, x: ArrayLike) -> list[FloatArray]:
        """Feature maps at ``x``.

        Parameters
        ----------
        x : array_like of shape (n,)
            Finite numbers of any size, or NaN where a value is missing.

        Returns
        -------
        list of ndarray of shape (n, r_j)
            One float64 array per level, level 0 first. Never NaN: a missing value gives
            ``absent`` at level 0 and zero at all others.
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
        """Feature maps at points ``z`` of shape (n,) in the units of the scaler, all finite."""

    def argument(self, x: ArrayLike) -> FloatArray:
        """Return t(x), shape (n,), in which `level_polynomial` is written: x standardised."""
        return self.scaler.transform(as_points(x))

    @property
    def domain(self) -> tuple[float, float] | None:
        """Range of x beyond which points count as its nearer end, or None where there is none."""
        return None

    def up_to(self, level: int) -> FittedBasis:
        """Return the basis without its levels above ``level``, or with them where they are free.

        The levels that stay have the same values to the last bit.
        """
        return self

    def level_polynomial(self, level: int) -> FloatArray | None:
        """Coefficients c with phi_level(x) = sum_i c_i t(x)^i, or None for other functions.

        Parameters
        ----------
        level : int
            From 0 to ``max_level``.

        Returns
        -------
        ndarray of shape (degree + 1,) or None
            A formula writes the level out where it has these numbers, and names it elsewhere.
        """
        return None


@dataclass(frozen=True, eq=False)
class FittedConstant(FittedBasis):
    """phi_0 = 1 and nothing else: what every basis makes of a column that does not vary."""

    @property
    def widths(self) -> tuple[int, ...]:
        """Columns per level: a single one."""
        return (1,)

    def _levels(self, z: FloatArray) -> list[FloatArray]:
        return [np.ones((z.size, 1))]


def as_levels(terms: FloatArray) -> list[FloatArray]:
    """Split terms of shape (q + 1, n) into one-column levels of shape (n, 1)."""
    return [term[:, np.newaxis] for term in terms]
