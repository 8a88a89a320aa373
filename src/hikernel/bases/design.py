"""Columns to rows of an engine: one fitted basis per variable, fitted once, applied to any data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hikernel.bases.base import Basis, FittedBasis
from hikernel.engines import NumpyEngine
from hikernel.engines.protocol import FloatArray

__all__ = ["Design"]


@dataclass(frozen=True)
class Design:
    """The fitted bases of all variables.

    Attributes
    ----------
    bases : tuple of FittedBasis
        One per column.
    """

    bases: tuple[FittedBasis, ...]

    @classmethod
    def fit(cls, X: FloatArray, bases: Sequence[Basis], sample_weight: FloatArray) -> Design:
        """Fit one basis per column of X, shape (n, p)."""
        return cls(
            tuple(
                basis.fit(np.ascontiguousarray(X[:, m]), sample_weight)
                for m, basis in enumerate(bases)
            )
        )

    def refitted(
        self,
        X: FloatArray,
        bases: Sequence[Basis],
        sample_weight: FloatArray,
        variables: Iterable[int],
    ) -> Design:
        """Return the design with other bases for some of the variables, fitted to X."""
        out = list(self.bases)
        for m in variables:
            out[m] = bases[m].fit(np.ascontiguousarray(X[:, m]), sample_weight)
        return Design(tuple(out))

    @property
    def max_levels(self) -> list[int]:
        """q_m of every variable."""
        return [basis.max_level for basis in self.bases]

    def up_to(self, levels: Mapping[int, int]) -> Design:
        """Return the bases without the levels above those given, by variable."""
        return Design(
            tuple(
                basis.up_to(levels[m]) if m in levels else basis
                for m, basis in enumerate(self.bases)
            )
        )

    def engine(
        self, X: FloatArray, sample_weight: FloatArray, variables: Iterable[int] | None = None
    ) -> NumpyEngine:
        """Return an engine over the rows of X.

        Parameters
        ----------
        X : ndarray of shape (n, p)
            The columns the bases were fitted to, old or new rows.
        sample_weight : ndarray of shape (n,)
            Positive weights.
        variables : iterable of int, optional
            Variables whose levels are needed; the others keep level 0 only, and may not
            appear in a node. All by default.
        """
        wanted = set(range(len(self.bases))) if variables is None else set(variables)
        constant = [basis.constant_level for basis in self.bases]
        widths = [
            basis.widths if m in wanted else basis.widths[:1] for m, basis in enumerate(self.bases)
        ]

        def levels() -> Iterable[Sequence[FloatArray]]:
            for m, basis in enumerate(self.bases):
                if m in wanted:
                    yield basis.transform(np.ascontiguousarray(X[:, m]))
                elif constant[m]:
                    yield []
                else:
                    yield basis.transform(np.ascontiguousarray(X[:, m]))[:1]

        return NumpyEngine(widths, levels(), sample_weight, constant)
