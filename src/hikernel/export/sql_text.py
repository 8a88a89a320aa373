"""How SQL is written: names, numbers, sums, and choices among many cases.

Expressions are balanced: engines limit how deep one may be (SQLite: 1,000), and a sum of n parts
is n deep, as is a chain of n cases inside each other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hikernel.engines.protocol import FloatArray
from hikernel.explain.portable import NotPortableError

__all__ = [
    "DIALECTS",
    "Dialect",
    "identifier",
    "literal",
    "number",
    "pieces",
    "table_of_values",
    "total",
    "weighted_sum",
]

_MOST_PARTS = 100
"""Longest sum that is written without parentheses."""
_MOST_CASES = 16
"""Most cases that are tried one after another."""

INDENT = "    "


@dataclass(frozen=True)
class Dialect:
    """What differs between engines.

    Parameters
    ----------
    materialized : bool
        Whether a common table expression may be marked as to be computed once. Without it an
        engine may put each into the next one, which is as right, and slower.
    nan : bool
        Whether floats can be NaN, which then counts as missing.
    clock : {"strftime", "extract"} or None
        How dates are taken apart.
    """

    materialized: bool
    nan: bool
    clock: str | None


DIALECTS = {
    "sqlite": Dialect(materialized=True, nan=False, clock="strftime"),
    "duckdb": Dialect(materialized=True, nan=True, clock="extract"),
    "postgresql": Dialect(materialized=True, nan=True, clock="extract"),
    "ansi": Dialect(materialized=False, nan=False, clock=None),
}
"""Engines by name."""


def identifier(name: str) -> str:
    """Return a name in double quotes, doubled inside.

    >>> print(identifier('6" pipe'))
    "6"" pipe"
    """
    _check_text(name)
    return '"' + name.replace('"', '""') + '"'


def literal(value: Any) -> str:
    """Return a category or a label: text in single quotes, doubled inside; a number; a boolean.

    >>> print(literal("it's"), literal(True), literal(3), literal(1.5))
    'it''s' TRUE 3 1.5e0
    """
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return number(value)
    text = str(value)
    _check_text(text)
    return "'" + text.replace("'", "''") + "'"


def _check_text(text: str) -> None:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise NotPortableError(
            f"The name or label {text!r} is no valid Unicode, which SQL cannot hold; rename it "
            "before the fit, or export to Python or JSON."
        ) from None
    if "\0" in text:
        raise NotPortableError(
            f"The name or label {text!r} holds a null character, which SQL cannot; rename it "
            "before the fit, or export to Python or JSON."
        )


def number(value: float) -> str:
    """Return a float that reads back without loss; with an exponent it is a double in any engine.

    >>> print(number(0.1), number(-2.0), number(1e-7))
    0.1e0 -2.0e0 1e-07
    """
    value = float(value)
    if not math.isfinite(value):
        raise NotPortableError("The model has a number that is not finite; fit it again.")
    text = repr(value)
    return text if "e" in text else f"{text}e0"


def weighted_sum(parts: Sequence[tuple[float, str]]) -> list[str]:
    """Return the parts of sum c_i e_i, each with its sign; an empty e_i is one.

    >>> weighted_sum([(1.5, "x"), (-2.0, "")])
    ['1.5e0 * x', '- 2.0e0']
    """
    out = []
    for place, (coef, expression) in enumerate(parts):
        sign = "- " if coef < 0.0 else ("+ " if place else "")
        out.append(f"{sign}{number(abs(coef))}{f' * {expression}' if expression else ''}")
    return out


def total(parts: Sequence[str], indent: str = "") -> str:
    """Return the sum of parts that have their signs, one in a line; balanced if it is long.

    >>> print(total(["1.5e0 * x", "- 2.0e0"]))
    1.5e0 * x
    - 2.0e0
    """
    if not parts:
        return number(0.0)
    if len(parts) <= _MOST_PARTS:
        return f"\n{indent}".join(parts)
    size = max(_MOST_PARTS, math.ceil(len(parts) / _MOST_PARTS))
    groups = [parts[i : i + size] for i in range(0, len(parts), size)]
    inner = [f"({total(group, indent + INDENT)})" for group in groups]
    return f"\n{indent}+ ".join(inner)


def pieces(x: str, cuts: Sequence[float], values: Sequence[str], compare: str, indent: str) -> str:
    """Return values[i] for the first i with x ``compare`` cuts[i], and the last value elsewhere.

    The cases are a balanced tree. Where x is NULL, that is the last value.
    """
    inside = indent + INDENT
    if len(cuts) <= _MOST_CASES // 2:
        cases = [
            f"\n{inside}WHEN {x} {compare} {number(cut)} THEN {value}"
            for cut, value in zip(cuts, values[:-1], strict=True)
        ]
        return (
            f"CASE{''.join(cases)}\n{inside}ELSE {values[-1]}\n{indent}END" if cuts else values[0]
        )
    half = len(cuts) // 2
    low = pieces(x, cuts[:half], values[: half + 1], compare, inside)
    high = pieces(x, cuts[half + 1 :], values[half + 1 :], compare, inside)
    test = f"WHEN {x} {compare} {number(cuts[half])} THEN {low}"
    return f"CASE\n{inside}{test}\n{inside}ELSE {high}\n{indent}END"


def table_of_values(
    positions: Sequence[str],
    values: FloatArray,
    notes: Sequence[Sequence[str]],
    indent: str,
    first: int = 0,
) -> str:
    """Return values[positions], NULL where a position is NULL or out of range.

    One choice per position, inside each other. SQLite compares every constant, but for results of
    a case, with all different ones before it. So a statement should have few of them, and a table
    of all combinations, or a formula with its own numbers in every case, takes it seconds to read.

    Parameters
    ----------
    positions : sequence of str
        A column for every axis of the values.
    values : ndarray
        The values, from the position ``first`` of the first axis on.
    notes : sequence of sequences of str
        For every axis a comment per position; may be empty.
    indent : str
        White space before the lines.
    first : int
        The first position.
    """
    if not positions:
        return number(float(values))
    inside, position = indent + INDENT, positions[0]
    if len(values) <= _MOST_CASES:
        ends = [f"  -- {note}" for note in notes[0]] if notes else [""] * len(values)
        cases = [
            f"\n{inside}WHEN {first + i} THEN "
            f"{table_of_values(positions[1:], value, notes[1:], inside)}{end}"
            for i, (value, end) in enumerate(zip(values, ends, strict=True))
        ]
        return f"CASE {position}{''.join(cases)}\n{indent}END"
    # Powers of 16, so that few comparisons lead to a value, and the tree is shallow.
    size = _MOST_CASES
    while size * _MOST_CASES < len(values):
        size *= _MOST_CASES
    starts = range(0, len(values), size)
    inner = [
        table_of_values(
            positions,
            values[i : i + size],
            [notes[0][i : i + size], *notes[1:]] if notes else [],
            inside,
            first + i,
        )
        for i in starts
    ]
    cases = [
        f"\n{inside}WHEN {position} < {first + i} THEN {text}"
        for i, text in zip(starts[1:], inner[:-1], strict=True)
    ]
    return f"CASE{''.join(cases)}\n{inside}ELSE {inner[-1]}\n{indent}END"
