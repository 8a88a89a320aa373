"""Bases of many columns that share a few: what a file keeps of a model of sparse columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hikernel.bases import FittedBasis

__all__ = ["SharedBases"]


@dataclass(frozen=True, eq=False)
class SharedBases:
    """Distinct bases, and which of them each column has.

    Attributes
    ----------
    distinct : tuple of FittedBasis
        The bases.
    index : ndarray of int of shape (p,)
        The position of the basis of each column.
    """

    distinct: tuple[FittedBasis, ...]
    index: NDArray[np.int64]

    @classmethod
    def of(cls, bases: Sequence[FittedBasis]) -> SharedBases:
        """Return bases with those that are the same object listed once."""
        place: dict[int, int] = {}
        distinct: list[FittedBasis] = []
        for basis in bases:
            if place.setdefault(id(basis), len(distinct)) == len(distinct):
                distinct.append(basis)
        index = np.array([place[id(basis)] for basis in bases], dtype=np.int64)
        return cls(tuple(distinct), index)

    def is_sound(self) -> bool:
        """Return whether every position is one, and every basis can be that of a sparse column."""
        return (
            self.index.ndim == 1
            and self.index.dtype.kind == "i"
            and bool(np.all((self.index >= 0) & (self.index < len(self.distinct))))
            and all(b.constant_level and set(b.widths) == {1} for b in self.distinct)
        )

    def every(self) -> tuple[FittedBasis, ...]:
        """Return one basis per column."""
        return tuple(self.distinct[i] for i in self.index.tolist())
