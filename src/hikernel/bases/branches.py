"""Smooth functions of a column and steps side by side, as branches of one tree of levels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg

from hikernel.bases.basis import Basis, FittedBasis
from hikernel.bases.column import Column, Standardizer
from hikernel.bases.steps import Steps
from hikernel.engines.protocol import FloatArray

__all__ = ["Branches", "FittedBranches"]


@dataclass(frozen=True)
class Branches(Basis):
    """The levels of two bases, both below one constant level 0.

    A term uses one level of each of its variables, so it is smooth in a variable or steps in it;
    the model may have both kinds of terms. The levels of the first basis come first.

    Parameters
    ----------
    bases : tuple of (Basis, Steps)
        Smooth functions or categories with a constant level 0, and steps.

    Examples
    --------
    >>> from hikernel.bases import OrthonormalPolynomial, Steps
    >>> both = Branches((OrthonormalPolynomial(2), Steps(2)))
    >>> both.fit([1.0, 2.0, 3.0, 4.0, 5.0]).parents
    (0, 1, 0, 3)
    """

    name: ClassVar[str] = "branches"
    standardises: ClassVar[bool] = False
    bases: tuple[Basis, ...]

    def __post_init__(self) -> None:
        pair = self.bases if isinstance(self.bases, tuple) and len(self.bases) == 2 else (None,) * 2
        first, second = pair
        smooth = isinstance(first, Basis) and not isinstance(first, (Branches, Steps))
        if not (smooth and isinstance(second, Steps)):
            raise ValueError(
                "bases must be a tuple of a basis and its steps, such as "
                f"(OrthonormalPolynomial(4), Steps(4)), got {self.bases!r}."
            )

    def _fit(self, column: Column, scaler: Standardizer) -> FittedBranches:
        fitted = tuple(basis.fit_column(column) for basis in self.bases)
        if not all(branch.constant_level for branch in fitted):
            raise ValueError(
                "The bases of Branches need a constant level 0; pass constant_level=True to them."
            )
        return FittedBranches.of(fitted)


@dataclass(frozen=True, eq=False)
class FittedBranches(FittedBasis):
    """Level 0, then the levels above 0 of each branch.

    Parameters
    ----------
    branches : tuple of FittedBasis
        The fitted bases.
    """

    branches: tuple[FittedBasis, ...]

    def __post_init__(self) -> None:
        if not self.branches or not all(branch.constant_level for branch in self.branches):
            raise ValueError("Branches need at least one basis, with a constant level 0 each.")

    @classmethod
    def of(cls, branches: tuple[FittedBasis, ...]) -> FittedBranches:
        """Return fitted bases side by side."""
        return cls(Standardizer.identity(), True, branches)

    @property
    def widths(self) -> tuple[int, ...]:
        """Columns per level."""
        return (1, *[width for branch in self.branches for width in branch.widths[1:]])

    @property
    def parents(self) -> tuple[int, ...]:
        """Parent of each level above 0; the branches meet at level 0."""
        out: list[int] = []
        for branch in self.branches:
            start = len(out)
            out += [parent + start if parent else 0 for parent in branch.parents]
        return tuple(out)

    @property
    def exponents(self) -> tuple[float, ...]:
        """Exponents of the weight base, those of each branch."""
        return (0.0, *[e for branch in self.branches for e in branch.exponents[1:]])

    def branch(self, level: int) -> tuple[FittedBasis, int]:
        """Return the basis of a level above 0, and the number of the level there."""
        for branch in self.branches:
            if level <= branch.max_level:
                return branch, level
            level -= branch.max_level
        raise IndexError("There is no such level.")

    def level_name(self, level: int, name: str) -> str:
        """Return the name of a level, given by its branch."""
        branch, own = self.branch(level)
        return branch.level_name(own, name)

    def _levels(self, z: FloatArray) -> list[FloatArray]:
        above = [level for branch in self.branches for level in branch.transform(z)[1:]]
        return [np.ones((z.size, 1)), *above]

    def argument(self, x: ArrayLike) -> FloatArray:
        """Return t(x) of the first branch."""
        return self.branches[0].argument(x)

    @property
    def domain(self) -> tuple[float, float] | None:
        """Range of the argument of the first branch."""
        return self.branches[0].domain

    @property
    def bulk(self) -> tuple[float, float]:
        """Range in which most values lie, according to the first branch."""
        return self.branches[0].bulk

    def up_to(self, level: int) -> FittedBranches:
        """Return the basis without some of its levels above ``level``."""
        kept: list[FittedBasis] = []
        for branch in self.branches:
            if level <= 0 and kept:
                break
            kept.append(branch.up_to(level) if level < branch.max_level else branch)
            level -= branch.max_level
        return replace(self, branches=tuple(kept))

    def level_polynomial(self, level: int) -> FloatArray | None:
        """Return the coefficients of a level of the first branch, if it has any."""
        if level == 0:
            return np.ones(1)
        branch, own = self.branch(level)
        return branch.level_polynomial(own) if branch is self.branches[0] else None

    def slopes(self) -> FloatArray | None:
        """Return those of all branches; None if one has none.

        A continuous function and one that is constant between jumps: their sum does not decrease
        if and only if neither does.
        """
        parts = [slopes for branch in self.branches if (slopes := branch.slopes()) is not None]
        if len(parts) < len(self.branches):
            return None
        return np.asarray(linalg.block_diag(*parts))
