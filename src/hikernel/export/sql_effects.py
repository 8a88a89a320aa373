"""The effects of a model as columns of SQL: sums of products of levels."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from hikernel.columns.kinds import WEEKDAYS
from hikernel.export.python_text import printable
from hikernel.export.sql_levels import write_levels
from hikernel.export.sql_stages import Input, Levels, Stages
from hikernel.export.sql_text import INDENT, table_of_values, total, weighted_sum

__all__ = ["effect_columns", "variable_name"]

Data = dict[str, Any]

_DEEP = INDENT * 3


def effect_columns(document: Data) -> tuple[Stages, list[tuple[str, str, str]]]:
    """Return the stages of all levels, and the effects: name, expression and comment of each.

    Column e<i>_<k> is effect i for output k.
    """
    function = _with_lines_summed(document["function"])
    stages = Stages()
    levels = _write_variables(stages, function)
    return stages, [
        (f"e{i + 1}_{k + 1}", text, name if k == 0 else "")
        for i, (name, outputs) in enumerate(_effects(document, function, levels))
        for k, text in enumerate(outputs)
    ]


def _with_lines_summed(function: Data) -> Data:
    """Return f with one broken line for the terms of one variable alone, per output.

    A sum of broken lines with the same knots is one. There may be a thousand knots, each in one
    line of text per level.
    """
    variables = list(function["variables"])
    terms = list(function["terms"])
    n_outputs = len(function["intercept"])
    for v, one in enumerate(variables):
        levels = one["levels"]
        own = [t for t in terms if len(t["factors"]) == 1 and t["factors"][0][0] == v]
        if levels["kind"] != "interpolation" or len(own) <= n_outputs:
            continue
        heights = np.array(levels["heights"])
        coef = np.array([[row[0] for row in term["coef"]] for term in own])
        sums = heights[:, [term["factors"][0][1] - 1 for term in own]] @ coef
        variables[v] = one | {"levels": levels | {"heights": np.hstack([heights, sums]).tolist()}}
        first = heights.shape[1] + 1
        lines = [
            own[0] | {"factors": [[v, first + k]], "coef": np.eye(n_outputs)[:, [k]].tolist()}
            for k in range(n_outputs)
        ]
        summed = {id(term) for term in own}
        terms = [term for term in terms if id(term) not in summed] + lines
    return function | {"variables": variables, "terms": terms}


def _write_variables(stages: Stages, function: Data) -> list[Levels]:
    """Add the columns of the levels that terms use."""
    used: list[set[int]] = [set() for _ in function["variables"]]
    for term in function["terms"]:
        for variable, level in term["factors"]:
            used[variable].add(level)
    found = []
    for i, one in enumerate(function["variables"]):
        x = Input(f"x{one['input'] + 1}", function["inputs"][one["input"]]["labels"])
        name = f"v{i + 1}"
        if one["part"] is not None:
            x = Input(f"{x.text}_{name}", list(WEEKDAYS) if one["part"] == "weekday" else None)
        elif one["missing"]:
            x = Input(f"(CASE WHEN {x.text} IS NULL THEN 1.0e0 ELSE 0.0e0 END)")
        before = [len(columns) for columns in stages.columns]
        found.append(
            write_levels(stages, name, one["levels"], x, used[i]) if used[i] else Levels({})
        )
        _name_first(stages, before, variable_name(function, i))
    return found


def _name_first(stages: Stages, before: list[int], name: str) -> None:
    """Give the first new column of every stage a comment: the name of its variable."""
    for stage, columns in enumerate(stages.columns):
        place = before[stage] if stage < len(before) else 0
        if place < len(columns):
            column, text, _ = columns[place]
            columns[place] = (column, text, name)


def variable_name(function: Data, i: int) -> str:
    """Return the name of an argument of f."""
    one = function["variables"][i]
    name: str = function["inputs"][one["input"]]["name"]
    if one["missing"]:
        return f"{name} is missing"
    return f"{name} ({one['part']})" if one["part"] else name


def _effects(
    document: Data, function: Data, levels: list[Levels]
) -> Iterator[tuple[str, list[str]]]:
    """Yield every effect: its name, and an expression per output, zero where an input is missing.

    All terms of an effect have the same variables. So where one of these is missing, all are NULL.
    Only a lookup may be NULL where others are not, for a category that it does not have.
    """
    terms, n_outputs = function["terms"], len(function["intercept"])
    names = [one["name"] for one in document["effects"]]
    shares = [f"{100.0 * one['share']:.3g} % of the variance" for one in document["effects"]]
    for effect in [*range(len(names)), None]:
        own = [term for term in terms if term["effect"] == effect]
        if own:
            title = "(base)" if effect is None else f"{names[effect]}: {shares[effect]}"
            yield title, [_sum_of_terms(own, k, levels) for k in range(n_outputs)]


def _sum_of_terms(terms: list[Data], k: int, levels: list[Levels]) -> str:
    """Return the sum of the terms of an effect for output k, zero where all of them are NULL."""
    parts: list[str] = []
    for term in terms:
        found = [*_parts(term, k, levels)]
        lookup = any(level in levels[v].lookups for v, level in term["factors"])
        if len(terms) > 1 and (lookup or term["effect"] is None):
            found = [f"+ COALESCE({total(found, _DEEP).removeprefix('+ ')}, 0.0e0)"]
        parts += found
    text = total(parts, _DEEP).removeprefix("+ ")
    return f"COALESCE(\n{_DEEP}{text},\n{_DEEP}0.0e0\n{INDENT * 2})"


def _parts(term: Data, k: int, levels: list[Levels]) -> Iterator[str]:
    """Yield the summands of a term for output k: coefficients, or tables of them, times levels."""
    factors = [
        (levels[v].columns[level], level in levels[v].lookups) for v, level in term["factors"]
    ]
    coef = np.array(term["coef"][k]).reshape(term["shape"])
    tables = [axis for axis, (_, lookup) in enumerate(factors) if lookup]
    others = [axis for axis, (_, lookup) in enumerate(factors) if not lookup]
    coef = coef.transpose([*others, *tables])
    positions = [factors[axis][0][0] for axis in tables]
    notes = [
        [printable(note) for note in levels[v].lookups[level]]
        for v, level in (term["factors"][axis] for axis in tables)
    ]
    for places in itertools.product(*(range(term["shape"][axis]) for axis in others)):
        product = " * ".join(factors[axis][0][i] for axis, i in zip(others, places, strict=True))
        if tables:
            text = table_of_values(positions, coef[places], notes, _DEEP)
            yield f"+ {product} * {text}" if product else f"+ {text}"
        else:
            yield weighted_sum([(0.0, ""), (float(coef[places]), product)])[1]
