"""Columns of SQL in stages: each stage is a common table expression over the one before.

A column may use those of earlier stages only. So recurrences need one stage per degree, and no
expression is written twice.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hikernel.engines.protocol import FloatArray
from hikernel.explain.portable import NotPortableError
from hikernel.export.sql_text import INDENT, number, total, weighted_sum

__all__ = [
    "Input",
    "Levels",
    "Stages",
    "clipped",
    "combined",
    "decaying_exp",
    "less",
    "signed",
    "standardised",
]

Data = dict[str, Any]

_MOST_COLUMNS = 1500
"""Most columns between inputs and effects; PostgreSQL takes 1,664, SQLite 2,000."""
_DEEP = INDENT * 3


@dataclass
class Stages:
    """Columns by stage, in the order in which they are computed."""

    columns: list[list[tuple[str, str, str]]] = field(default_factory=list)
    functions: set[str] = field(default_factory=set)

    def add(self, stage: int, name: str, expression: str, comment: str = "") -> str:
        """Add a column to a stage and return its name."""
        while len(self.columns) <= stage:
            self.columns.append([])
        self.columns[stage].append((name, expression, comment))
        if sum(map(len, self.columns)) > _MOST_COLUMNS:
            raise NotPortableError(
                f"As SQL the model has more than {_MOST_COLUMNS:,} columns, which engines do not "
                "take; export it to Python or JSON, or fit it with fewer terms."
            )
        return name


@dataclass(frozen=True)
class Input:
    """An argument of a variable.

    Parameters
    ----------
    text : str
        The expression of its value, NULL where it is missing.
    labels : list of str or None
        What the values 0, 1, ... stand for.
    """

    text: str
    labels: list[str] | None = None


@dataclass(frozen=True)
class Levels:
    """The columns of the levels of a variable.

    Parameters
    ----------
    columns : dict of int to list of str
        For every level its columns; for a lookup the one column with the position.
    lookups : dict of int to list of str
        For every level that is a position, what its positions mean.
    """

    columns: dict[int, list[str]]
    lookups: dict[int, list[str]] = field(default_factory=dict)


def standardised(levels: Data, given: Input) -> str:
    """Return (x - center) / scale."""
    x = given.text
    if levels["center"] == 0.0 and levels["scale"] == 1.0:
        return x
    return f"({less(x, levels['center'])}) / {number(levels['scale'])}"


def less(x: str, value: float) -> str:
    """Return x - value."""
    return f"{x} + {number(-value)}" if value < 0.0 else f"{x} - {number(value)}"


def clipped(z: str, low: float, high: float) -> str:
    """Return z between low and high; where it is NULL, no case holds, and NULL is left."""
    return (
        f"CASE WHEN {z} < {number(low)} THEN {number(low)} "
        f"WHEN {z} > {number(high)} THEN {number(high)} ELSE {z} END"
    )


def signed(parts: list[tuple[float, str]]) -> list[str]:
    """Return parts of a sum that follow others: all have their sign."""
    return weighted_sum([(0.0, ""), *parts])[1:]


def decaying_exp(exponent: str) -> str:
    """Return exp of something that is at most zero; engines may refuse an underflow."""
    return f"CASE WHEN {exponent} < -700 THEN 0.0e0 ELSE EXP({exponent}) END"


def combined(
    stages: Stages, stage: int, name: str, columns: list[str], weights: FloatArray
) -> list[str]:
    """Add one column per column of weights: sums of columns with these weights."""
    out = []
    for c, one in enumerate(weights.T):
        parts = weighted_sum([*zip(one.tolist(), columns, strict=True)])
        out.append(stages.add(stage, f"{name}_u{c + 1}", total(parts, _DEEP)))
    return out
