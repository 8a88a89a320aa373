"""What a basis is: a recipe (`Basis`) that fits to a column and becomes a `FittedBasis`.

A new basis writes two methods: ``_fit`` on the standardised column, and ``_levels`` of its
fitted half. Checking, ties, weights, standardisation and constant columns are dealt with here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from hikernel.bases.column import Column, FloatArray, as_points
from hikernel.bases.scaling import Standardizer

__all__ = ["Basis", "FittedBasis", "FittedConstant"]


class Basis(ABC):
    """Decomposition k(x, z) = sum_j k_j(x, z) of a one-variable kernel into levels j = 0..q.

    Level 0 means "absent": it is identically one, or a bump for the bases that say so. A
    concrete basis is a frozen dataclass of hyperparameters, checked when it is made.
    """

    name: ClassVar[str]

    def fit(self, x: ArrayLike, sample_weight: ArrayLike | None = None) -> FittedBasis:
        """Fit the levels to one column.

        Parameters
        ----------
        x : array_like of shape (n,)
            Finite numbers; at least one row of positive weight.
        sample_weight : array_like of shape (n,), optional
            Nonnegative. Integer weights equal repeated rows; rows of weight 0 are left out.

        Returns
        -------
        FittedBasis
            A constant column has level 0 alone, identically one, whatever the basis.
        """
        column = Column.from_rows(x, sample_weight)
        scaler = Standardizer.fit(column.values, column.weights)
        if scaler.constant:
            return FittedConstant(scaler, constant_level=True)
        standardised = Column(scaler.transform(column.values), column.weights, column.position)
        return self._fit(standardised, scaler)

    @abstractmethod
    def _fit(self, column: Column, scaler: Standardizer) -> FittedBasis:
        """Fit on a standardised column with at least two distinct values."""


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
    """

    scaler: Standardizer
    constant_level: bool

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
            Finite numbers of any size.

        Returns
        -------
        list of ndarray of shape (n, r_j)
            One float64 array per level, level 0 first. Never NaN.
        """
        return self._levels(self.scaler.transform(as_points(x)))

    @abstractmethod
    def _levels(self, z: FloatArray) -> list[FloatArray]:
        """Feature maps at standardised points ``z`` of shape (n,), finite."""


@dataclass(frozen=True, eq=False)
class FittedConstant(FittedBasis):
    """phi_0 = 1 and nothing else: what every basis makes of a column that does not vary."""

    @property
    def widths(self) -> tuple[int, ...]:
        """Columns per level: a single one."""
        return (1,)

    def _levels(self, z: FloatArray) -> list[FloatArray]:
        return [np.ones((z.size, 1))]
