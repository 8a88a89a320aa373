"""Levels of Gaussian and other kernels, and Hermite polynomials, as columns of SQL."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from hikernel.engines.protocol import FloatArray
from hikernel.export.sql_stages import (
    Input,
    Levels,
    Stages,
    combined,
    decaying_exp,
    less,
    standardised,
)
from hikernel.export.sql_text import number

__all__ = ["hermite_levels", "kernel_levels", "mehler_levels"]

Data = dict[str, Any]


def hermite_levels(stages: Stages, name: str, levels: Data, x: Input, used: set[int]) -> Levels:
    """Add Hermite polynomials."""
    z = stages.add(0, f"{name}_z", standardised(levels, x))
    h = _series(stages, name, ("", 0), z, levels["ratio"], max(used) + 1)
    return Levels({j: [h[j]] for j in range(1, len(h))})


def mehler_levels(stages: Stages, name: str, levels: Data, x: Input, used: set[int]) -> Levels:
    """Add Hermite functions, whose products sum up to a Gaussian kernel."""
    stages.functions.add("EXP")
    z = stages.add(0, f"{name}_z", standardised(levels, x))
    t = stages.add(1, f"{name}_t", f"{number(levels['root'])} * {z}")
    bump = decaying_exp(f"{number(-levels['decay'])} * {z} * {z}")
    start = stages.add(1, f"{name}_h0", f"{number(levels['height'])} * {bump}")
    first, n_single = int(levels["constant"]), levels["n_single"]
    rotation = levels["rotation"] or []
    last = first + n_single
    n = n_single + len(rotation) if last in used else max(used) - first + 1
    h = _series(stages, name, (start, 1), t, levels["ratio"], n)
    columns = {first + j: [h[j]] for j in range(min(n_single, len(h)))}
    if rotation and last in used:
        columns[last] = combined(stages, 1 + n, name, h[n_single:], np.array(rotation))
    if 0 in used and not levels["constant"]:
        text = f"COALESCE({columns[0][0]}, {number(levels['absent'])})"
        columns[0] = [stages.add(2, f"{name}_level0", text)]
    return Levels(columns)


def _series(
    stages: Stages, name: str, start: tuple[str, int], t: str, ratio: float, n: int
) -> list[str]:
    """Add n Hermite polynomials or functions by their recurrence; return their columns."""
    h, stage = [start[0]], start[1]
    for j in range(n - 1):
        step = math.sqrt(2.0 * ratio / (j + 1))
        text = " * ".join(part for part in (number(step), t, h[j]) if part)
        if j:
            back = number(ratio * math.sqrt(j / (j + 1)))
            text += f" - {back}{f' * {h[j - 1]}' if h[j - 1] else ''}"
        h.append(stages.add(stage + 1 + j, f"{name}_h{j + 1}", text))
    return h


def kernel_levels(stages: Stages, name: str, levels: Data, x: Input, used: set[int]) -> Levels:
    """Add features of a kernel: sums of its values at a few points."""
    z = stages.add(0, f"{name}_z", standardised(levels, x))
    first = len(levels["before"])
    columns = {i: [z] for i, word in enumerate(levels["before"]) if word == "z"}
    wide = sorted(level for level in used if level >= first)
    if not wide:
        return Levels(columns)
    if levels["kernel"]["name"] != "cubic":
        stages.functions.add("EXP")
    k = [
        stages.add(1, f"{name}_k{i + 1}", _kernel_value(levels["kernel"], pivot, z))
        for i, pivot in enumerate(levels["pivots"])
    ]
    weights = _kernel_weights(levels)
    ends = np.cumsum(levels["widths"])
    for level in wide:
        end, width = int(ends[level - first]), levels["widths"][level - first]
        part = weights[:, end - width : end]
        columns[level] = combined(stages, 2, f"{name}_{level}", k, part)
    if 0 in columns and 0 in used and "absent" in levels:
        text = f"COALESCE({columns[0][0]}, {number(levels['absent'])})"
        columns[0] = [stages.add(3, f"{name}_level0", text)]
    return Levels(columns)


def _kernel_weights(levels: Data) -> FloatArray:
    """Return W with features k(pivots, z)' W: the inverse of the factor, and the rotation."""
    n = len(levels["pivots"])
    # Extended precision, since the factor of a smooth kernel is nearly singular.
    inverse = np.zeros((n, n), dtype=np.longdouble)
    for i, row in enumerate(levels["factor"]):
        known = np.array(row, dtype=np.longdouble)
        inverse[i, i] = 1.0
        inverse[i] -= known[:-1] @ inverse[:i]
        inverse[i] /= known[-1]
    weights = inverse.T
    if levels["rotation"] is not None:
        weights = weights @ np.array(levels["rotation"], dtype=np.longdouble)
    return np.asarray(weights, dtype=np.float64)


def _kernel_value(kernel: Data, pivot: float, z: str) -> str:
    d = f"({less(z, pivot)})"
    if kernel["name"] == "gaussian":
        return decaying_exp(f"{number(-kernel['b'])} * {d} * {d}")
    if kernel["name"] == "laplace":
        return decaying_exp(f"{number(-kernel['b'])} * ABS{d}")
    if pivot == 0.0:
        return f"0.0e0 * {z}"
    p, size = number(abs(pivot)), z if pivot > 0.0 else f"(-{z})"
    inside = f"{size} * {size} * (3.0e0 * {p} - {size})"
    beyond = f"{p} * {p} * (3.0e0 * {size} - {p})"
    # Where z is NULL, no case holds, and what is left is NULL.
    return f"CASE WHEN {size} > {p} THEN {beyond} WHEN {size} <= 0 THEN 0.0e0 ELSE {inside} END"
