"""What a picture needs from the dict of ``summary()``: effects, outputs, columns, words.

Whatever cannot be drawn is said here in one sentence, before anything is drawn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from numbers import Integral
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from hikernel._version import SUMMARY_SCHEMA
from hikernel.plots.lettering import clean, number

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "EffectView",
    "Summary",
    "as_summary",
    "column_of",
    "density_of",
    "effect_words",
    "find_effect",
    "find_outputs",
    "floats",
    "limits_of",
    "output_name",
    "part_words",
    "visible_range",
]

Summary = Mapping[str, Any]
"""The dict of ``summary()`` of a fitted model."""

_FAR: Final = 4.0
"""An axis this many times as long as the middle 98 % of the rows is cut off."""
_BAND: Final = 1.96
"""Standard deviations within which a normal value lies with probability 0.95."""
_NEEDED: Final = ("effects", "outputs", "data")


def as_summary(model: object) -> Summary:
    """Return the summary of a model, or the dict that is one already.

    Raises
    ------
    TypeError
        If ``model`` is neither.
    ValueError
        If the dict is not a summary, or one of a newer version.
    """
    method = getattr(model, "summary", None)
    out: object = model
    if not isinstance(model, Mapping):
        if not callable(method):
            raise TypeError(
                "A picture is drawn from a fitted model or from the dict that its summary() "
                f"returns, got {type(model).__name__}."
            )
        out = method()
    if not isinstance(out, Mapping) or any(key not in out for key in _NEEDED):
        raise ValueError(
            "This is not the summary of a model, which has "
            + ", ".join(repr(key) for key in _NEEDED)
            + "; pass the fitted model or what its summary() returns."
        )
    if out.get("schema", SUMMARY_SCHEMA) != SUMMARY_SCHEMA:
        raise ValueError(
            f"This summary has schema {out['schema']!r}, and this version of hikernel draws "
            f"schema {SUMMARY_SCHEMA}; make the summary and the picture with the same version."
        )
    return out


def find_effect(summary: Summary, effect: object) -> Mapping[str, Any]:
    """Return an effect by name, position or variables.

    Raises
    ------
    ValueError
        If there is none; the message names the nearest ones.
    """
    effects: Sequence[Mapping[str, Any]] = summary["effects"]
    if not effects:
        raise ValueError("This model has no effects: it predicts a constant. Try a smaller alpha.")
    position = _position(effect)
    if position is not None:
        if not -len(effects) <= position < len(effects):
            raise ValueError(
                f"There is no effect {position}; this model has {len(effects)}, counted from 0."
            )
        return effects[position]
    if isinstance(effect, str):
        for candidate in effects:
            if candidate["name"] == effect:
                return candidate
        wanted: frozenset[str] = frozenset(effect.split(" * "))
    elif isinstance(effect, Sequence):
        wanted = frozenset(str(variable) for variable in effect)
    else:
        raise ValueError(
            "An effect is given by its name, its position or a tuple of its variables, "
            f"got {effect!r}."
        )
    for candidate in effects:
        if frozenset(candidate["variables"]) == wanted:
            return candidate
    raise ValueError(f"There is no effect {_said(effect)}; {_nearest(effects, effect, wanted)}.")


def _position(value: object) -> int | None:
    """Return an integer of any kind as an int, and None for anything else."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        return None
    return int(value)


def _said(effect: object) -> str:
    return repr(effect) if isinstance(effect, str) else " * ".join(map(str, effect))  # type: ignore[call-overload]


def _nearest(effects: Sequence[Mapping[str, Any]], effect: object, wanted: frozenset[str]) -> str:
    names = [str(candidate["name"]) for candidate in effects]
    spelled = get_close_matches(_said(effect).strip("'"), names, n=3, cutoff=0.6)
    shared = [
        name
        for name, candidate in zip(names, effects, strict=True)
        if wanted & set(candidate["variables"])
    ]
    near = list(dict.fromkeys([*spelled, *shared]))[:3]
    if near:
        return "the nearest " + ("is " if len(near) == 1 else "are ") + _listed(near)
    more = "" if len(names) <= 3 else f" and {len(names) - 3} more"
    return f"this model has {_listed(names[:3])}{more}"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(repr(name) for name in names)


def find_outputs(summary: Summary, output: object) -> list[int]:
    """Return the positions of the outputs to draw: all of them, or one by label or position."""
    labels = [str(label) for label in summary["outputs"]]
    if output is None:
        return list(range(len(labels)))
    if str(output) in labels:
        return [labels.index(str(output))]
    position = _position(output)
    if position is not None and 0 <= position < len(labels):
        return [position]
    if len(labels) == 1:
        raise ValueError(
            f"This model has one output, {labels[0]!r}, so output={output!r} is not needed; "
            "leave it out."
        )
    raise ValueError(f"output must be one of {_listed(labels)}, got {output!r}.")


def output_name(summary: Summary, output: int) -> str:
    """Return what f, or one of its outputs, stands for."""
    link = (summary.get("link") or {}).get("kind", "identity")
    classes = summary.get("classes")
    label = clean(summary["outputs"][output])
    if classes and len(summary["outputs"]) == 1:
        words = "log odds of" if link == "logistic" else "score of"
        return f"{words} {clean(classes[-1])}"
    if classes:
        return f"score of {label}"
    return f"log {label}" if link == "exp" else label


def effect_words(summary: Summary, outputs: Sequence[int]) -> str:
    """Return the label of an axis with values of an effect."""
    if len(outputs) == 1:
        return f"effect on {output_name(summary, outputs[0])}"
    return "effect on the score"


def column_of(summary: Summary, name: str) -> Mapping[str, Any] | None:
    """Return what is known of a column, or None."""
    for column in summary["data"].get("columns") or []:
        if column["name"] == name:
            return dict(column)
    return None


def floats(values: object) -> NDArray[np.float64]:
    """Return nested lists of numbers as an array; None is NaN."""
    return np.array(values, dtype=object).astype(np.float64)


def limits_of(values: NDArray[np.float64]) -> tuple[float, float]:
    """Return the least and the largest value that is there, zero included."""
    found = values[np.isfinite(values)]
    low, high = (float(found.min()), float(found.max())) if found.size else (0.0, 0.0)
    low, high = min(low, 0.0), max(high, 0.0)
    return (low, high) if high > low else (-1.0, 1.0)


def visible_range(
    points: NDArray[np.float64], column: Mapping[str, Any] | None
) -> tuple[float, float]:
    """Return the part of an axis to draw: all of it, unless a few rows make it very long."""
    low, high = float(points[0]), float(points[-1])
    quantiles = (column or {}).get("quantiles") or {}
    first, last = quantiles.get("0.01"), quantiles.get("0.99")
    if first is None or last is None:
        return low, high
    width = float(last - first)
    if width <= 0.0 or high - low <= _FAR * width:
        return low, high
    return max(low, first - 0.25 * width), min(high, last + 0.25 * width)


def _shares_of(labels: Sequence[object], column: Mapping[str, Any] | None) -> NDArray[np.float64]:
    """Return the share of the rows of each category, zero where it is not known.

    Columns of numbers with two values, and indicators of missing values, are categories in a view.
    """
    column = column or {}
    categories = column.get("categories") or []
    known = {str(one["label"]): one["share"] for one in categories}
    known |= {f"{value:.6g}": share for value, share in column.get("values") or []}
    if len(categories) == len(labels) and not any(str(label) in known for label in labels):
        return floats([one["share"] for one in categories])
    return np.array([known.get(str(label)) or 0.0 for label in labels], dtype=float)


def _category_names(labels: Sequence[object], column: Mapping[str, Any] | None) -> list[str]:
    """Return names of categories; the values of a column of numbers have a few digits only."""
    if not (column or {}).get("values"):
        return [str(label) for label in labels]
    return [number(float(str(label))) for label in labels]


def density_of(column: Mapping[str, Any] | None) -> tuple[Any, Any] | None:
    """Return edges and heights of a histogram of a column, or None if it has no numbers.

    A column with few values has a thin bar at each of them.
    """
    column = column or {}
    histogram, values = column.get("histogram"), column.get("values")
    if histogram:
        edges, shares = floats(histogram["edges"]), floats(histogram["shares"])
        widths = np.diff(edges)
        return edges, shares / np.where(widths > 0, widths, np.inf)
    if not values:
        return None
    places, shares = floats(values).T
    half = 0.3 * float(np.diff(places).min()) if len(places) > 1 else 0.5
    edges = np.column_stack([places - half, places + half]).ravel()
    heights = np.zeros(len(edges) - 1)
    heights[::2] = shares
    return edges, heights


@dataclass(frozen=True)
class EffectView:
    """An effect on a grid.

    Attributes
    ----------
    effect : mapping
        The effect.
    axes : list of mapping
        One to three axes, numbers before categories, with the names of their values and, for
        categories, the shares of the rows, whether they have an order and how many there are.
    values : ndarray of shape (outputs, points of axis 0, ...)
        The effect on that grid.
    held : list of mapping
        Variables that are kept at one value.
    std : ndarray of the shape of values, or None
        Standard deviations of the values, where there are error bars.
    """

    effect: Mapping[str, Any]
    axes: Sequence[Mapping[str, Any]]
    values: NDArray[np.float64]
    held: Sequence[Mapping[str, Any]]
    std: NDArray[np.float64] | None = None

    @classmethod
    def of(cls, summary: Summary, effect: Mapping[str, Any]) -> EffectView:
        """Return the view of an effect, or say why there is none."""
        view = effect.get("view")
        if view is None:
            if not summary["data"].get("has_columns", True):
                raise ValueError(
                    "This model was fitted on a graph, which has no columns to draw an effect "
                    "against; plot_importance and plot_hull show what it found."
                )
            raise ValueError(
                f"There is no grid of the effect {effect['name']!r} in this summary; "
                "plot_importance shows its share."
            )
        axes = [_with_names(axis, column_of(summary, axis["variable"])) for axis in view["axes"]]
        std = view.get("std")
        return cls(
            effect,
            axes,
            floats(view["values"]),
            view.get("held") or [],
            None if std is None else floats(std),
        )

    @property
    def numbers(self) -> list[bool]:
        """Which axes are numbers."""
        return [axis["kind"] == "number" for axis in self.axes]

    @property
    def slices(self) -> int:
        """Number of slices along the third axis, or one."""
        return len(self.axes[2]["values"]) if len(self.axes) > 2 else 1

    def slice(self, outputs: Sequence[int], which: int) -> NDArray[np.float64]:
        """Return the values of some outputs at one value of the third axis."""
        values = self.values[list(outputs)]
        return values[..., which] if len(self.axes) > 2 else values

    def band(self, outputs: Sequence[int]) -> NDArray[np.float64] | None:
        """Return half the width of a 95 % band, for one output with error bars; else None."""
        return None if self.std is None or len(outputs) > 1 else _BAND * self.std[outputs[0]]

    def kept(self, which: int) -> list[tuple[str, str]]:
        """Return what a title says of variables: the values that a slice keeps, after their names.

        Of a category with a curve each, it says how many there are if some have no curve.
        """
        at = [(axis["variable"], axis["names"][which]) for axis in self.axes[2:]]
        at += [(one["variable"], one["value"]) for one in self.held]
        out = [(str(name), f" = {_value(value)}") for name, value in at]
        if self.numbers[:2] == [True, False]:
            axis = self.axes[1]
            note = part_words(axis, len(axis["values"]))
            out = [(str(axis["variable"]), f": {note}"), *out] if note else out
        return out


def _with_names(axis: Mapping[str, Any], column: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return an axis with the names of its values, and the share of the rows of categories."""
    values = axis["values"]
    if axis["kind"] == "number":
        return {**axis, "names": [_value(value) for value in values]}
    ordered = bool((column or {}).get("ordered"))
    names, shares = _category_names(values, column), _shares_of(values, column)
    whole = max(len(values), len((column or {}).get("categories") or []))
    return {**axis, "names": names, "shares": shares, "ordered": ordered, "whole": whole}


def part_words(axis: Mapping[str, Any], shown: int) -> str:
    """Return how many categories are drawn and how many there are, or nothing for all of them."""
    if shown >= axis["whole"]:
        return ""
    most = "most frequent " if axis["shares"].any() else ""
    return f"{shown} {most}of {axis['whole']}"


def _value(value: object) -> str:
    plain = isinstance(value, str | bool) or value is None
    return clean(value) if plain else number(float(value))  # type: ignore[arg-type]
