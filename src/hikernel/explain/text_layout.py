"""Lines of plain text: sums that are folded, tables with aligned columns, lists of values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

__all__ = [
    "LINE",
    "fold",
    "in_columns",
    "percent",
    "side_by_side",
    "significant",
    "table_lines",
]

LINE = 96
"""Length of a line, where it can be kept."""

_GAP = "   "


def fold(start: str, pieces: Iterable[str], indent: str, width: int = LINE) -> list[str]:
    """Join pieces with spaces, in lines of limited length; further lines start with ``indent``.

    >>> fold("f = ", ["1", "+ 2*x", "+ 3*y"], "    ", 12)
    ['f = 1 + 2*x', '    + 3*y']
    """
    lines, line, empty = [], start, True
    for piece in pieces:
        if not empty and len(line) + 1 + len(piece) > width:
            lines.append(line)
            line, empty = indent, True
        line += piece if empty else f" {piece}"
        empty = False
    return [*lines, line]


def table_lines(
    corner: str,
    heads: Sequence[str],
    rows: Sequence[tuple[str, Sequence[str]]],
    indent: str = "",
    width: int = LINE,
) -> list[str]:
    """Return a table: names of rows on the left, aligned numbers on the right.

    Columns that do not fit beside each other follow below, with the names of the rows again. A row
    without numbers is a title.

    >>> for line in table_lines("job", ["z(age)"], [("'cook'", ["-0.5"]), ("'judge'", ["1"])]):
    ...     print(line)
    job       z(age)
    'cook'      -0.5
    'judge'        1
    """
    names = [corner, *(name for name, cells in rows if cells)]
    first = max(map(len, names))
    widths = [
        max(len(head), *(len(cells[j]) for _, cells in rows if cells), 1)
        for j, head in enumerate(heads)
    ]
    blocks: list[list[int]] = [[]]
    used = len(indent) + first
    for j, size in enumerate(widths):
        if blocks[-1] and used + len(_GAP) + size > width:
            blocks.append([])
            used = len(indent) + first
        blocks[-1].append(j)
        used += len(_GAP) + size
    lines: list[str] = []
    for block in blocks:
        if lines:
            lines.append("")
        for name, cells in [(corner, heads), *rows]:
            parts = [f"{cells[j]:>{widths[j]}}" for j in block] if cells else []
            lines.append((indent + _GAP.join([f"{name:<{first}}", *parts])).rstrip())
    return lines


def in_columns(items: Sequence[tuple[str, str]], indent: str, width: int = LINE) -> list[str]:
    """Return pairs of a name and a number: in one line, or row by row in aligned columns.

    >>> in_columns([("'a'", "1"), ("'b'", "-2")], "  ")
    ["  'a': 1, 'b': -2"]
    """
    line = indent + ", ".join(f"{name}: {number}" for name, number in items)
    if len(line) <= width:
        return [line]
    left = max(len(name) for name, _ in items) + 1
    right = max(len(number) for _, number in items)
    size = left + 1 + right
    per_line = max(1, (width - len(indent) + len(_GAP)) // (size + len(_GAP)))
    cells = [f"{name + ':':<{left}} {number:>{right}}" for name, number in items]
    return [
        indent + _GAP.join(cells[i : i + per_line]).rstrip() for i in range(0, len(cells), per_line)
    ]


def side_by_side(lines: Sequence[tuple[str, str]]) -> list[str]:
    """Return lines with a short text at the right of some, which starts below one another.

    >>> side_by_side([("a + b", "sum"), ("c", ""), ("d", "last")])
    ['a + b   sum', 'c', 'd       last']
    """
    left = max((len(line) for line, _ in lines), default=0)
    return [f"{line:<{left}}{_GAP}{note}" if note else line for line, note in lines]


def percent(share: float) -> str:
    """Return a share as a percentage with one digit.

    >>> percent(0.1234), percent(1.0), percent(0.0001), percent(0.0)
    ('12.3 %', '100.0 %', '<0.1 %', '0.0 %')
    """
    return "<0.1 %" if 0.0 < share < 0.0005 else f"{100.0 * share:.1f} %"


def significant(value: float, digits: int) -> str:
    """Return a number rounded to some significant digits, without an exponent if it can be read.

    >>> significant(82345.678, 3), significant(0.00012345, 3), significant(1.5e-9, 3)
    ('82300', '0.000123', '1.5e-09')
    """
    if not 1e-4 <= abs(value) < 1e9:
        return f"{value:.{digits}g}"
    return np.format_float_positional(
        value, precision=digits, unique=False, fractional=False, trim="-"
    )
