"""How much each effect, or each variable, matters: bars of shares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from hikernel.checks import check_choice, check_integer
from hikernel.plots.canvas import (
    BLUE,
    FAINT,
    INK,
    MUTED,
    ORDERS,
    SKY,
    axes_or_new,
    bare,
    font_size,
    order_colour,
    room,
)
from hikernel.plots.lettering import (
    label_axes,
    legend_above,
    percent,
    room_above,
    text_width,
    write_ticks,
)
from hikernel.plots.lookup import as_summary, find_effect

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_importance"]

_FEWEST: Final = 4
"""Bars are as thin as if there were at least this many."""


def plot_importance(
    model: object, *, by: str = "effect", max_items: int = 20, ax: Axes | None = None
) -> Axes:
    """Draw the shares of the effects or of the variables as bars, the largest on top.

    Effects are coloured by their number of variables, and those beyond ``max_items`` are one grey
    bar. A variable has a light bar for all effects that contain it, and a dark one for its effect
    alone; the light bars of all variables add up to more than 100 % where there are interactions.

    Parameters
    ----------
    model : fitted estimator or dict
        The model, or what its ``summary()`` returned.
    by : {"effect", "variable"}, default="effect"
        What has a bar.
    max_items : int, default=20
        Number of effects or variables at most. Fewer are drawn where ``ax`` has no room for them.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

    Raises
    ------
    ValueError
        If the model has no effects, or no variables to tell apart.
    ImportError
        If matplotlib is not installed.
    """
    check_choice("by", by, ("effect", "variable"))
    check_integer("max_items", max_items, 1)
    summary = as_summary(model)
    find_effect(summary, 0)
    items: Sequence[Mapping[str, Any]] = summary[f"{by}s"]
    if not items:
        raise ValueError(
            "This model was fitted on a graph, which has no variables; "
            'draw its effects with by="effect".'
        )
    items = sorted(items, key=lambda item: -item["share"])
    count = min(max_items, len(items))
    names_share = 0.6 if ax is None else 0.45
    ax = axes_or_new(ax, 6.4, 1.3 + 0.26 * (count + 1))
    most = max(1, int(room(ax)[1] / (1.15 * font_size(0.85))) - 3)
    shown = items[: min(count, most)]
    if len(items) == len(shown) + 1:  # its bar says more than that of one other
        shown = items
    rest = items[len(shown) :]
    _draw(ax, shown, rest, by, names_share * room(ax)[0])
    return ax


def _draw(
    ax: Axes,
    shown: Sequence[Mapping[str, Any]],
    rest: Sequence[Mapping[str, Any]],
    by: str,
    points: float,
) -> None:
    """Draw the bars, and their names at most ``points`` wide."""
    size = font_size(0.85)
    width, _ = room(ax)
    names: list[object] = [item["name"] for item in shown]
    shares = [float(item["share"]) for item in shown]
    colours = [order_colour(item["order"]) if by == "effect" else SKY for item in shown]
    if rest and by == "effect":
        names.append(f"{len(rest)} other effect" + ("s" if len(rest) > 1 else ""))
        shares.append(float(sum(item["share"] for item in rest)))
        colours.append(FAINT)
    places = [float(len(names) - 1 - i) for i in range(len(names))]
    ax.barh(places, shares, height=0.72, color=colours)
    if by == "variable":
        alone = [float(item["alone"]) for item in shown]
        ax.barh(places, alone, height=0.72, color=BLUE)
    for place, share in zip(places, shares, strict=True):
        ax.annotate(
            percent(share),
            (share, place),
            xytext=(3, 0),
            textcoords="offset points",
            va="center",
            fontsize=0.95 * size,
            color=INK,
        )
    words = max(text_width(percent(share), size) for share in shares) + 6.0
    ax.set_xlim(0.0, (max(shares) or 1.0) / max(0.3, 1.0 - words / width))
    spare = 0.5 * max(0, _FEWEST - len(names))
    ax.set_ylim(-0.6 - spare, len(names) - 0.4 + spare)
    _legend(ax, shown, by)
    bare(ax, keep="left")
    ax.set_xticks([])
    ax.tick_params(axis="y", length=0)
    write_ticks(ax, "y", places, names, points=points, size=size)
    if rest and by == "effect":
        ax.get_yticklabels()[-1].set_color(MUTED)
    label = "share of the variance of all effects"
    if rest and by == "variable":
        label += f"; {len(rest)} more are not shown"
    label_axes(ax, label)


def _legend(ax: Axes, shown: Sequence[Mapping[str, Any]], by: str) -> None:
    """Say what the colours mean, where there are several, above the bars."""
    from matplotlib.patches import Patch

    if by == "variable":
        pairs = [(SKY, "with all effects that contain it"), (BLUE, "alone")]
    else:
        present = {order_colour(item["order"]) for item in shown}
        pairs = [(colour, words) for colour, words in ORDERS if colour in present]
    if len(pairs) < 2:
        return
    names = [words for _, words in pairs]
    legend_above(ax, [Patch(color=colour) for colour, _ in pairs], names)
    room_above(ax, names)
