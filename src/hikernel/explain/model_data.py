"""Effects, terms and the function of a model as plain data, for `summary`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hikernel.columns import ColumnDesign
from hikernel.engines.protocol import FloatArray
from hikernel.explain.effects import effects_summary, terms_frame
from hikernel.explain.portable import NotPortableError, portable_function
from hikernel.explain.views import Axis, effect_axis, effect_view
from hikernel.graphs import Design
from hikernel.selection import FitRecord, TermModel
from hikernel.selection.record import QUANTILES

if TYPE_CHECKING:
    from hikernel.selection.posterior import Posterior

__all__ = ["effects_data", "function_data", "terms_data", "variables_data"]

_MOST_AXES = 3

Data = dict[str, Any]


def effects_data(
    model: TermModel,
    design: Design,
    columns: ColumnDesign | None,
    record: FitRecord,
    posterior: Posterior | None = None,
) -> list[Data]:
    """Return the effects, the largest share first, each with a view where there are columns.

    With a posterior, views of one variable have standard deviations.
    """
    frame = effects_summary(model, design)
    kept = model.kept()
    out: list[Data] = []
    for row in frame.to_dict("records"):
        names = list(row.get("variables", ()))
        effect = {
            "name": row["effect"],
            "variables": names,
            "order": int(row.get("order", 0)),
            "n_terms": int(row["n_terms"]),
            "share": float(row["share"]),
            "shape": row.get("shape", ""),
            "view": None,
        }
        if columns is not None:
            wanted = {columns.names.index(name) for name in names}
            index = [i for i, node in enumerate(kept.nodes) if {m for m, _ in node} == wanted]
            nodes = [kept.nodes[i] for i in index]
            blocks = [kept.blocks[i] for i in index]
            effect["view"], axes = _view(columns, record, nodes, blocks)
            if posterior is not None and len(axes) == 1:
                from hikernel.explain.effect_bars import view_std  # imported only when needed

                effect["view"]["std"] = _nested(view_std(posterior, model, columns, index, axes))
        out.append(effect)
    return out


def _view(
    design: ColumnDesign, record: FitRecord, nodes: Any, blocks: Any
) -> tuple[Data, list[Axis]]:
    """Return an effect on a grid, and all its axes.

    There are three axes at most in the view, with further variables at one value each.
    """
    variables = [m for m, _ in nodes[0]]
    levels = {m: [dict(node)[m] for node in nodes] for m in variables}
    place = min(len(variables), _MOST_AXES) - 1

    def axis(m: int, place: int) -> Axis:
        return effect_axis(design, m, record.statistics.get(m), place, levels[m])

    # Numbers first, those with many values before those with few.
    full = [axis(m, place) for m in variables]
    full.sort(key=lambda one: (one.labels is not None, one.variable))
    shown = [full[k] if k < _MOST_AXES - 1 else axis(one.variable, 3) for k, one in enumerate(full)]
    held = []
    for k in range(_MOST_AXES, len(shown)):
        last = shown[k]
        shown[k] = Axis(last.variable, last.codes[-1:], last.labels and last.labels[-1:])
        value = shown[k].labels
        held.append(
            {
                "variable": design.names[last.variable],
                "value": value[0] if value else float(last.codes[-1]),
            }
        )
    values = effect_view(design, nodes, blocks, shown)
    values = values.reshape(values.shape[: _MOST_AXES + 1])
    axes = [one.data(design.names[one.variable]) for one in shown[:_MOST_AXES]]
    return {"axes": axes, "values": _nested(values), "std": None, "held": held}, shown


def _nested(values: FloatArray) -> Any:
    """Return an array as nested lists with ten significant digits, enough for any picture."""
    scale = 10.0 ** (9 - np.floor(np.log10(np.maximum(np.abs(values), 1e-290))))
    return (np.round(values * scale) / scale).tolist()


def variables_data(effects: list[Data]) -> list[Data]:
    """Return the share of every variable, in all effects and alone, the largest first."""
    out: dict[str, Data] = {}
    for effect in effects:
        for name in effect["variables"]:
            one = out.setdefault(name, {"name": name, "share": 0.0, "alone": 0.0})
            one["share"] += effect["share"]
            one["alone"] += effect["share"] if effect["order"] == 1 else 0.0
    return sorted(out.values(), key=lambda one: -one["share"])


def terms_data(model: TermModel, design: Design, effects: list[Data]) -> list[Data]:
    """Return the terms, the largest share first; every effect gets the positions of its terms."""
    place = {tuple(effect["variables"]): i for i, effect in enumerate(effects)}
    by_name = {effect["name"]: i for i, effect in enumerate(effects)}
    out: list[Data] = []
    for row in terms_frame(model, design).to_dict("records"):
        known = row.get("variables")
        position = by_name.get(row["term"]) if known is None else place.get(tuple(known))
        out.append(
            {
                "term": row["term"],
                "order": int(row.get("order", 0)),
                "degree": int(row.get("degree", row.get("depth", 0))),
                "norm": float(row["norm"]),
                "share": float(row["share"]),
                "effect": position,
            }
        )
    for i, effect in enumerate(effects):
        effect["terms"] = [k for k, term in enumerate(out) if term["effect"] == i]
    return out


def function_data(
    model: TermModel, design: ColumnDesign | None, record: FitRecord, effects: list[Data]
) -> tuple[Data | None, str]:
    """Return f as plain data, or None and the reason."""
    if design is None:
        return None, "The model was fitted on a graph of kernels, which has no columns."
    try:
        function = portable_function(model, design)
    except NotPortableError as error:
        return None, str(error)
    place = {tuple(effect["variables"]): i for i, effect in enumerate(effects)}
    for term in function["terms"]:
        names = [
            _variable_name(design, function, variable)
            for variable, level in term["factors"]
            if level > 0
        ]
        term["effect"] = place.get(tuple(names))
    for one in function["inputs"]:
        m = one["column"]
        if one["kind"] in ("date", "duration"):
            _describe_date(one, design, record)
            continue
        found = record.statistics.get(m)
        labels = one["labels"]
        one["missing_allowed"] = m in design.table.indicators
        one |= {"min": None, "max": None, "default": labels[0] if labels else 0.0}
        if found is None:
            continue
        one |= {"min": found.low, "max": found.high}
        middle = found.quantiles[QUANTILES.index(0.5)]
        if labels is not None or one["kind"] == "boolean":
            middle = found.values[int(np.argmax(found.shares))]
        one["default"] = labels[int(middle)] if labels else middle
    return function, ""


def _describe_date(one: Data, design: ColumnDesign, record: FitRecord) -> None:
    """Add the range of an input of dates to it, in days, as the input is."""
    m = one["column"]
    date = next(date for date in design.table.dates if date.column == m)
    low, high = date.start, date.end
    middle = np.floor(0.5 * (low + high))
    found = record.statistics.get(m)
    if found is not None and date.parts[0] in ("days", "length"):
        middle = date.start + found.quantiles[QUANTILES.index(0.5)]
    if found is not None and date.kind == "duration":
        low, high = found.low, found.high
    one["missing_allowed"] = m in design.table.indicators
    one |= {"min": low, "max": high, "default": float(middle)}


def _variable_name(design: ColumnDesign, function: Data, variable: int) -> str:
    """Return the name in the matrix of a variable of the portable function."""
    column: int = function["variables"][variable]["column"]
    return design.names[column]
