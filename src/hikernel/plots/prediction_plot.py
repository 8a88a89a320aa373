"""One prediction as a waterfall: from the intercept, effect by effect, to f(x)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hikernel.checks import check_integer
from hikernel.plots.canvas import (
    FAINT,
    INK,
    MUTED,
    axes_or_new,
    bare,
    font_size,
    room,
    sign_colours,
)
from hikernel.plots.lettering import clean, label_axes, number, text_width, title, write_ticks
from hikernel.plots.lookup import Summary, as_summary, find_outputs, output_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_prediction"]

_Rows = list[tuple[str, NDArray[np.float64]]]
"""Labels, and contributions per output."""


@dataclass(frozen=True)
class _Step:
    """A bar: what it is called, and what it adds."""

    label: str
    change: float


def plot_prediction(
    model: object,
    explanation: Any,
    ax: Axes | None = None,
    *,
    output: object = None,
    max_effects: int = 12,
) -> Axes:
    """Draw one prediction as a waterfall of effects, the largest first.

    The bars start at the intercept and end at f(x); what raises f has one colour, what lowers it
    another. Effects beyond ``max_effects`` are one bar.

    Parameters
    ----------
    model : fitted estimator or dict
        The model, or what its ``summary()`` returned: it has the names of the outputs.
    explanation : object, mapping or sequence
        The effects on one row. One of

        - what ``model.explain(row)`` returned;
        - an object with ``contributions``, a sequence of ``(name, contribution)`` or ``(name,
          value, contribution)`` where value is the text of the values of its variables, and,
          if it has them, ``intercept`` and ``prediction``;
        - a mapping from names of effects to contributions, such as a row of a data frame
          as a dict; an entry ``"intercept"`` is the intercept;
        - a sequence of such pairs or triples.

        A contribution is a number, or a sequence with a number per class for models of three or
        more classes; so is the intercept. Where there is none, that of the model is used.
        ``prediction`` is what the title shows; contributions and intercept add up to f(x).
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.
    output : str or int, optional
        The class to explain, for models of three or more classes. The one with the largest f(x) by
        default, among those that ``explanation`` is about.
    max_effects : int, default=12
        Number of effects with a bar of their own.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

    Raises
    ------
    TypeError
        If ``explanation`` is something else.
    ValueError
        If a contribution is not a number, or there is not one per class, or if the explanation is
        not about the class that ``output`` names.
    ImportError
        If matplotlib is not installed.

    Examples
    --------
    ``plot_prediction(model, {"bmi": 12.0, "bp * s5": -3.5})`` draws two bars from the intercept of
    the model.
    """
    check_integer("max_effects", max_effects, 1)
    summary = as_summary(model)
    reasons = getattr(explanation, "reasons", None)
    read = _read if reasons is None else _read_reasons
    rows, intercept = read(summary, explanation)
    totals = intercept + sum((values for _, values in rows), np.zeros_like(intercept))
    which = int(np.nanargmax(totals)) if output is None else find_outputs(summary, output)[0]
    if np.isnan(totals[which]):
        raise ValueError(
            f"The explanation is not about {summary['outputs'][which]!r}; explain the row with "
            "classes=model.classes_."
        )
    ranked = sorted(rows, key=lambda row: -abs(row[1][which]))
    steps = [_Step(label, float(values[which])) for label, values in ranked[:max_effects]]
    ax = axes_or_new(ax, 6.8, 1.7 + 0.3 * (len(steps) + 3))
    most = max(1, int(room(ax)[1] / (1.25 * font_size(0.85))) - 4)
    steps = steps[:most]
    rest = [float(values[which]) for _, values in ranked[len(steps) :]]
    if rest:
        steps.append(_Step(f"{len(rest)} other effect" + "s" * (len(rest) > 1), sum(rest)))
    words = output_name(summary, which)
    _draw(ax, steps, float(intercept[which]), words)
    label_axes(ax, words)
    prediction = getattr(explanation, "prediction", None)
    if prediction is not None:
        title(ax, f"prediction: {_text(prediction)}")
    else:
        title(ax, f"{words} = {number(float(totals[which]))}")
    return ax


def _read_reasons(summary: Summary, explanation: Any) -> tuple[_Rows, Any]:
    """Return what ``_read`` does for the reasons of an estimator; NaN for classes left out."""
    outputs = [str(label) for label in summary["outputs"]]
    if explanation.classes is None:
        places = [0]
    else:
        places = [outputs.index(str(label)) for label in explanation.classes]

    def spread(numbers: Sequence[float]) -> Any:
        values = np.full(len(outputs), np.nan)
        values[places] = numbers
        return values

    rows = [
        (clean(reason.values or reason.effect), spread(reason.contributions))
        for reason in explanation.reasons
    ]
    return rows, spread(explanation.intercept)


def _read(summary: Summary, explanation: Any) -> tuple[_Rows, Any]:
    """Return labels and contributions per output, and the intercept per output."""
    intercept = getattr(explanation, "intercept", None)
    items = getattr(explanation, "contributions", explanation)
    if isinstance(items, Mapping):
        entries = dict(items)
        if intercept is None:
            intercept = entries.pop("intercept", None)
        items = list(entries.items())
    if isinstance(items, str) or not isinstance(items, Sequence):
        raise TypeError(
            "An explanation is a mapping from effects to contributions, a sequence of (name, "
            "contribution), or an object with such contributions, "
            f"got {type(explanation).__name__}."
        )
    outputs = len(summary["outputs"])
    start = summary["intercept"] if intercept is None else intercept
    rows = []
    for item in items:
        if isinstance(item, str) or not isinstance(item, Sequence) or len(item) not in (2, 3):
            raise TypeError(
                "A contribution is (name, contribution) or (name, value, contribution), "
                f"got {item!r}."
            )
        name, value = item[0], item[1] if len(item) == 3 else None
        label = clean(name) if value in (None, "") else f"{clean(name)} = {clean(value)}"
        rows.append((label, _numbers(item[-1], outputs, f"the contribution of {name!r}")))
    return rows, _numbers(start, outputs, "the intercept")


def _numbers(value: Any, outputs: int, what: str) -> Any:
    """Return a number per output."""
    values = [value] if isinstance(value, Real) else value
    try:
        out = np.asarray(values, dtype=float).ravel()
    except (TypeError, ValueError):
        out = np.array([np.nan])
    if len(out) != outputs or not np.isfinite(out).all():
        one = "one finite number" if outputs == 1 else f"{outputs} finite numbers, one per class"
        raise ValueError(f"This model needs {one} for {what}, got {value!r}.")
    return out


def _text(value: Any) -> str:
    return number(float(value)) if isinstance(value, Real) else clean(value)


def _draw(ax: Axes, steps: Sequence[_Step], intercept: float, result: str) -> None:
    size = font_size(0.85)
    width, _ = room(ax)
    changes = np.array([step.change for step in steps], dtype=float)
    ends = intercept + np.concatenate([[0.0], np.cumsum(changes)])
    places = np.arange(len(steps), 0, -1, dtype=float)
    ax.barh(places, changes, left=ends[:-1], height=0.66, color=sign_colours(changes), zorder=3)
    # Thin lines lead from the end of a bar to the start of the next.
    levels = np.arange(len(steps) + 1, -1, -1, dtype=float)
    ax.vlines(ends, levels[1:] - 0.33, levels[:-1] + 0.33, color=MUTED, linewidth=0.8, zorder=2)
    ax.plot(
        [ends[0], ends[-1]],
        [levels[0], 0.0],
        linestyle="",
        marker="D",
        markersize=5,
        color=INK,
        zorder=4,
    )
    texts = [number(intercept)]
    like = float(np.abs(changes).max()) if len(changes) else None
    texts += [("+" if change > 0 else "") + number(change, like=like) for change in changes]
    texts.append(number(float(ends[-1])))
    rights = [ends[0], *np.maximum(ends[:-1], ends[1:]), ends[-1]]
    for level, right, text in zip(levels, rights, texts, strict=True):
        shift = 7 if level in (levels[0], 0.0) else 3
        ax.annotate(
            text,
            (right, level),
            xytext=(shift, 0),
            textcoords="offset points",
            va="center",
            fontsize=size,
            color=INK,
        )
    low, high = float(ends.min()), float(ends.max())
    span = (high - low) or 1.0
    words = (max(text_width(text, size) for text in texts) + 12.0) / width
    ax.set_xlim(low - 0.06 * span, high + (span + 0.06 * span) * words / max(0.3, 1.0 - words))
    ax.set_ylim(-0.7, len(steps) + 1.7)
    ax.axvline(ends[0], color=FAINT, linewidth=0.8, zorder=1)
    bare(ax, keep="bottom")
    ax.tick_params(axis="y", length=0)
    names = ["intercept", *(step.label for step in steps), result]
    write_ticks(ax, "y", list(levels), names, points=0.8 * width, size=size)
