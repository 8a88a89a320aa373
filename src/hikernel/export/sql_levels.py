"""The levels of a variable as columns of SQL, for every kind of levels."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from hikernel.engines.protocol import FloatArray
from hikernel.export.evaluator import levels_orthonormal
from hikernel.export.sql_kernels import hermite_levels, kernel_levels, mehler_levels
from hikernel.export.sql_stages import (
    Input,
    Levels,
    Stages,
    clipped,
    less,
    signed,
    standardised,
)
from hikernel.export.sql_text import INDENT, number, pieces, table_of_values

__all__ = ["write_levels"]

Data = dict[str, Any]

_DEEP = INDENT * 3
_ROUNDING = 1e-14
"""Part of a polynomial below which a projection is the rounding error of the fit."""


def write_levels(stages: Stages, name: str, levels: Data, x: Input, used: set[int]) -> Levels:
    """Add the columns of the levels of a variable that are used.

    Parameters
    ----------
    stages : Stages
        Gets the columns.
    name : str
        Begins the names of the columns.
    levels : dict
        The levels as plain data.
    x : str
        Column of the input, NULL where missing.
    used : set of int
        Levels that terms use.

    Returns
    -------
    Levels
    """
    return _WRITERS[levels["kind"]](stages, name, levels, x, used)


def _constant(stages: Stages, name: str, levels: Data, x: Input, used: set[int]) -> Levels:
    return Levels({})


def _lookup(stages: Stages, name: str, levels: Data, given: Input, used: set[int]) -> Levels:
    column, labels, x = f"{name}_position", given.labels, given.text
    if levels["table"] == "steps":
        cuts = levels["cuts"]
        tree = pieces(x, cuts, [str(i) for i in range(len(cuts) + 1)], "<=", _DEEP)
        text = f"CASE WHEN {x} IS NOT NULL THEN {tree} END"
        notes = [*(f"up to {cut:.6g}" for cut in cuts), "above"]
    else:
        codes = [float(code) for code in levels["codes"]]
        cases = "".join(f" WHEN {number(code)} THEN {i}" for i, code in enumerate(codes))
        text = f"CASE {x}{cases} END"
        if codes == [float(i) for i in range(len(codes))]:  # x is the position itself
            text = f"CASE WHEN {x} >= 0 AND {x} < {len(codes)} THEN {x} END"
        notes = [labels[int(c)] if labels else f"{c:.6g}" for c in codes]
    return Levels({1: [stages.add(0, column, text)]}, {1: notes})


def _orthonormal(
    stages: Stages, name: str, levels: Data, x: Input, used: set[int], first: int = 0
) -> Levels:
    z = stages.add(first, f"{name}_z", standardised(levels, x))
    t = stages.add(first + 1, f"{name}_t", clipped(z, levels["low"], levels["high"]))
    needed = max(used)
    projections = _projections(levels, needed)
    columns: dict[int, list[str]] = {}
    p = [""]  # level 0 is one
    for j in range(needed):
        product = f"{t} * {p[j]}" if p[j] else t
        parts = [(-value, p[i]) for i, value in enumerate(projections[j]) if value != 0.0]
        rest = " ".join(signed(parts))
        text = f"{f'({product} {rest})' if rest else product} / {number(levels['norms'][j])}"
        p.append(stages.add(first + 2 + j, f"{name}_{j + 1}", text))
        columns[j + 1] = [p[-1]]
    return Levels(columns)


def _projections(levels: Data, needed: int) -> list[list[float]]:
    """Return the projections of every degree, without those that are rounding errors.

    In exact arithmetic p_{j+1} is orthogonal to z p_j but for p_j and p_{j-1}.
    """
    z = np.linspace(levels["low"], levels["high"], 201)
    plain = levels | {"center": 0.0, "scale": 1.0}
    sizes = [float(np.max(np.abs(one))) for one in levels_orthonormal(plain, z, {})]
    out = []
    for j in range(needed):
        first, second = levels["projections"][j]
        found = [first[i] + second[i] for i in range(j + 1)]
        least = _ROUNDING * levels["norms"][j] * sizes[j + 1]
        out.append([v if abs(v) * sizes[i] > least else 0.0 for i, v in enumerate(found)])
    return out


def _asinh(stages: Stages, name: str, levels: Data, x: Input, used: set[int]) -> Levels:
    stages.functions |= {"LN", "SQRT"}
    w = stages.add(
        0,
        f"{name}_w",
        f"({less(standardised(levels, x), levels['median'])}) / {number(levels['spread'])}",
    )
    root = f"SQRT({w} * {w} + 1.0e0)"
    a = stages.add(
        1,
        f"{name}_asinh",
        f"CASE WHEN {w} < 0 THEN -LN({root} - {w}) ELSE LN({root} + {w}) END",
    )
    return _orthonormal(stages, name, levels["inner"], Input(a), used, first=2)


def _interpolation(stages: Stages, name: str, levels: Data, x: Input, used: set[int]) -> Levels:
    knots, heights = np.array(levels["knots"]), np.array(levels["heights"])
    z = stages.add(0, f"{name}_z", standardised(levels, x))
    t = stages.add(1, f"{name}_t", clipped(z, knots[0], knots[-1]))
    if len(knots) == 2:
        position, beyond = "", f"({less(t, knots[0])})"
    else:
        numbers = [str(i) for i in range(len(knots) - 1)]
        tree = pieces(t, knots[1:-1].tolist(), numbers, "<", _DEEP)
        text = f"CASE WHEN {t} IS NOT NULL THEN {tree} END"
        position = stages.add(2, f"{name}_position", text)
        left = _value_at(position, knots[:-1])
        beyond = stages.add(3, f"{name}_beyond", f"{t} - ({left})")
    columns = {}
    for level in sorted(used - {0}):
        line = heights[:, level - 1]
        slopes = np.diff(line) / np.diff(knots)
        text = (
            f"{_value_at(position, line[:-1])}\n{_DEEP}+ {_value_at(position, slopes)} * {beyond}"
        )
        columns[level] = [stages.add(4, f"{name}_{level}", text)]
    return Levels(columns)


def _value_at(position: str, values: FloatArray) -> str:
    """Return the value at a position, or the only value."""
    if not position:
        return number(float(values[0]))
    return table_of_values([position], values, [], _DEEP)


def _periodic(stages: Stages, name: str, levels: Data, x: Input, used: set[int]) -> Levels:
    stages.functions |= {"COS", "FLOOR", "SIN"}
    period = number(levels["period"])
    text = f"({x.text} - {period} * FLOOR({x.text} / {period})) / {period}"
    phase = stages.add(0, f"{name}_phase", text)
    columns = {}
    for level in sorted(used - {0}):
        angle = f"{number(2.0 * math.pi * level)} * {phase}"
        scale, (cosine, sine) = number(levels["scales"][level - 1]), levels["means"][level - 1]
        columns[level] = [
            stages.add(1, f"{name}_{level}c", f"{scale} * ({less(f'COS({angle})', cosine)})"),
            stages.add(1, f"{name}_{level}s", f"{scale} * ({less(f'SIN({angle})', sine)})"),
        ]
    return Levels(columns)


def _powers(stages: Stages, name: str, levels: Data, x: Input, used: set[int]) -> Levels:
    z = stages.add(0, f"{name}_z", standardised(levels, x))
    columns = {}
    for level in sorted(used - {0}):
        text = " * ".join([number(levels["factors"][level]), *[z] * level])
        columns[level] = [stages.add(1, f"{name}_{level}", text)]
    return Levels(columns)


def _branches(stages: Stages, name: str, levels: Data, x: Input, used: set[int]) -> Levels:
    columns: dict[int, list[str]] = {}
    lookups: dict[int, list[str]] = {}
    bounds = [*levels["starts"], math.inf]
    for i, (start, part) in enumerate(zip(levels["starts"], levels["parts"], strict=True)):
        own = {level - start + 1 for level in used if start <= level < bounds[i + 1]}
        if own:
            found = write_levels(stages, f"{name}{chr(ord('a') + i)}", part, x, own)
            columns |= {start + level - 1: found.columns[level] for level in found.columns if level}
            lookups |= {start + level - 1: notes for level, notes in found.lookups.items()}
    return Levels(columns, lookups)


_WRITERS: dict[str, Callable[..., Levels]] = {
    "constant": _constant,
    "lookup": _lookup,
    "orthonormal": _orthonormal,
    "asinh": _asinh,
    "interpolation": _interpolation,
    "powers": _powers,
    "periodic": _periodic,
    "hermite": hermite_levels,
    "mehler": mehler_levels,
    "kernel": kernel_levels,
    "branches": _branches,
}
