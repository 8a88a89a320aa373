"""One prediction as a waterfall: from the intercept, effect by effect, to f(x)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

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
    from numpy.typing import NDArray

__all__ = ["plot_prediction"]


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
    explanation : Explanation, mapping or sequence
        The effects on one row. One of

        - what ``model.explain(row)`` returns, or any object with ``reasons``, each of which has
          ``effect``, ``values`` (text, may be empty) and ``contributions`` (a number per class);
          and with ``intercept``, ``prediction`` and ``classes`` (those that are explained, or
          None) where they are known;
        - a mapping or series from names of effects to contributions, such as
          ``model.effects(X).iloc[0]``; an entry ``"intercept"`` is the intercept;
        - a sequence of ``(name, contribution)``, or ``(name, value, contribution)`` with the value
          of the variable as text.

        A contribution is a number, or a sequence with a number per class for models of three or
        more classes; so is the intercept. Where there is none, that of the model is used.
        ``prediction`` is what the title shows; contributions and intercept add up to f(x).
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.
    output : str or int, optional
        The class to draw, for models of three or more classes. Of those that are explained, the one
        with the largest f(x) by default.
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
        If a contribution is not a number, or there is not one per class.
    ImportError
        If matplotlib is not installed.

    Examples
    --------
    ``plot_prediction(model, {"bmi": 12.0, "bp * s5": -3.5})`` draws two bars from the intercept of
    the model.
    """
    check_integer("max_effects", max_effects, 1)
    summary = as_summary(model)
    bill = _read(summary, explanation)
    total = bill.intercept + bill.changes.sum(axis=0)
    which = int(np.argmax(total)) if output is None else _explained(summary, bill, output)
    changes = bill.changes[:, which]
    ranked = np.argsort(-np.abs(changes), kind="stable")
    words = output_name(summary, bill.outputs[which])
    ax = axes_or_new(ax, 6.8, 1.7 + 0.3 * (min(max_effects, len(ranked)) + 3))
    most = max(1, int(room(ax)[1] / (1.25 * font_size(0.85))) - 4)
    own = ranked[: min(max_effects, most)]
    rest = ranked[len(own) :]
    labels = [bill.labels[i] for i in own]
    steps = changes[own].tolist()
    if len(rest):
        labels.append(f"{len(rest)} other effect" + "s" * (len(rest) > 1))
        steps.append(float(changes[rest].sum()))
    _draw(ax, labels, np.array(steps, dtype=float), float(bill.intercept[which]), words)
    label_axes(ax, words)
    said = _prediction_words(explanation)
    title(ax, f"prediction: {said}" if said else f"{words} = {number(float(total[which]))}")
    return ax


@dataclass(frozen=True)
class _Bill:
    """What adds up to f: a row of changes per effect, a column per explained output."""

    labels: list[str]
    changes: NDArray[np.float64]
    intercept: NDArray[np.float64]
    outputs: list[int]


def _read(summary: Summary, explanation: Any) -> _Bill:
    """Return what an explanation says."""
    outputs = find_outputs(summary, None)
    classes = getattr(explanation, "classes", None)
    if classes is not None:
        outputs = [find_outputs(summary, str(label))[0] for label in classes]
    intercept = getattr(explanation, "intercept", None)
    triples = [
        (reason.effect, reason.values, reason.contributions)
        for reason in getattr(explanation, "reasons", ())
    ]
    if not hasattr(explanation, "reasons"):
        triples, intercept = _plain_triples(explanation)
    if intercept is None:
        intercept = [summary["intercept"][k] for k in outputs]
    count = len(outputs)
    labels = [_label(name, value) for name, value, _ in triples]
    changes = [_numbers(part, count, f"the contribution of {name!r}") for name, _, part in triples]
    return _Bill(
        labels,
        np.array(changes, dtype=float).reshape(len(triples), count),
        _numbers(intercept, count, "the intercept"),
        outputs,
    )


def _plain_triples(explanation: Any) -> tuple[list[tuple[Any, Any, Any]], Any]:
    """Return names, values and contributions of a mapping or sequence, and its intercept."""
    items, intercept = explanation, None
    if callable(getattr(explanation, "items", None)):
        entries = dict(explanation.items())
        intercept = entries.pop("intercept", None)
        items = list(entries.items())
    if isinstance(items, str) or not isinstance(items, Sequence):
        raise TypeError(
            "An explanation is what explain(row) returns, a mapping from effects to contributions, "
            f"or a sequence of (name, contribution), got {type(explanation).__name__}."
        )
    out = []
    for item in items:
        if isinstance(item, str) or not isinstance(item, Sequence) or len(item) not in (2, 3):
            raise TypeError(
                "A contribution is (name, contribution) or (name, value, contribution), "
                f"got {item!r}."
            )
        out.append((item[0], item[1] if len(item) == 3 else None, item[-1]))
    return out, intercept


def _label(name: object, value: object) -> str:
    """Return a name with its value; values that say the name themselves stand alone."""
    text = clean(name)
    if value is None or value == "":
        return text
    says = clean(value)
    return says if " = " in says or says.startswith(text) else f"{text} = {says}"


def _explained(summary: Summary, bill: _Bill, output: object) -> int:
    """Return the position of a class among those that are explained."""
    wanted = find_outputs(summary, output)[0]
    if wanted not in bill.outputs:
        raise ValueError(
            f"This explanation is not about {output!r}; make one with classes={output!r}, "
            "or leave output out."
        )
    return bill.outputs.index(wanted)


def _prediction_words(explanation: Any) -> str:
    """Return the prediction, with its probability if it is a label and there is one."""
    prediction = getattr(explanation, "prediction", None)
    if prediction is None:
        return ""
    label = getattr(explanation, "is_label", False) or not isinstance(prediction, Real)
    if not label:
        return number(float(prediction))
    chance = (getattr(explanation, "probabilities", None) or {}).get(prediction)
    return clean(prediction) + ("" if chance is None else f" (probability {chance:.2f})")


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


def _draw(
    ax: Axes,
    labels: Sequence[str],
    changes: NDArray[np.float64],
    intercept: float,
    result: str,
) -> None:
    """Draw the bars one below the other, each where the one above it ends."""
    size = font_size(0.85)
    width, _ = room(ax)
    ends = intercept + np.concatenate([[0.0], np.cumsum(changes)])
    places = np.arange(len(labels), 0, -1, dtype=float)
    ax.barh(places, changes, left=ends[:-1], height=0.66, color=sign_colours(changes), zorder=3)
    # Thin lines lead from the end of a bar to the start of the next.
    levels = np.arange(len(labels) + 1, -1, -1, dtype=float)
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
    ax.set_ylim(-0.7, len(labels) + 1.7)
    ax.axvline(ends[0], color=FAINT, linewidth=0.8, zorder=1)
    bare(ax, keep="bottom")
    ax.tick_params(axis="y", length=0)
    names = ["intercept", *labels, result]
    write_ticks(ax, "y", list(levels), names, points=0.8 * width, size=size)
