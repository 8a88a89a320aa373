"""The basis that was chosen for a column, and the names that stand for a choice by column."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from hikernel.bases import Basis, Branches

__all__ = ["AND_STEPS", "AUTO", "CUTS", "WITH_JUMPS", "WITH_STEPS", "BasisChoice", "Cuts"]

AUTO, WITH_JUMPS, WITH_STEPS = "auto", "auto+jumps", "auto+steps"
"""Names that stand for a choice by column: smooth functions alone, with steps where y jumps, and
with steps there and between."""
Cuts = Literal["only", "halved"]
CUTS: dict[str, Cuts] = {WITH_JUMPS: "only", WITH_STEPS: "halved"}
AND_STEPS = ", and steps where y jumps"


@dataclass(frozen=True)
class BasisChoice:
    """The basis of one column of the matrix.

    Attributes
    ----------
    basis : Basis
        The basis, not yet fitted.
    why : str
        The reason for the choice, in a few words.
    fixed : bool
        Whether the degree must not change: the basis was given as an object, or the column has at
        most two values.
    at_jumps : {"only", "halved"} or None
        Whether the cuts of the steps beside a smooth basis follow y, and whether the parts between
        them are halved.
    """

    basis: Basis
    why: str
    fixed: bool = False
    at_jumps: Cuts | None = None

    @property
    def name(self) -> str:
        """The name of the basis; that of branches names them all."""
        if isinstance(self.basis, Branches):
            names = [branch.name for branch in self.basis.bases]
            return "+".join([names[0], "jumps"] if self.at_jumps == "only" else names)
        return self.basis.name

    @property
    def smooth_note(self) -> tuple[str, str]:
        """Name and reason of a column whose branch of steps is empty, as y does not jump."""
        assert isinstance(self.basis, Branches)
        return self.basis.bases[0].name, self.why.removesuffix(AND_STEPS)

    def at_quantiles(self) -> BasisChoice:
        """Return the choice with steps at quantiles, where y is not known."""
        why = self.why.replace(AND_STEPS, ", and steps at quantiles")
        return replace(self, at_jumps=None, why=why)

    def with_more_levels(self, extra: int) -> Basis:
        """Return the basis with its degree raised by ``extra``, unless it is fixed or has none."""
        degree = getattr(self.basis, "degree", None)
        if degree is None or self.fixed:
            return self.basis
        return replace(self.basis, degree=degree + extra)  # type: ignore[type-var]
