"""Effects of a category as bars, with the share of the rows of each beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from hikernel.plots.canvas import (
    FAINT,
    INK,
    LINE_STYLES,
    MARKS,
    MUTED,
    bare,
    font_size,
    room,
    sign_colours,
)
from hikernel.plots.lettering import (
    label_axes,
    legend_above,
    legend_columns,
    percent,
    room_above,
    text_width,
    write_ticks,
)
from hikernel.plots.line_plots import ticks_up_to
from hikernel.plots.lookup import limits_of, part_words

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

__all__ = ["draw_bars"]

_FEWEST: Final = 5
"""Bars are as thin as if there were at least this many."""


def draw_bars(
    ax: Axes,
    axis: Mapping[str, Any],
    values: NDArray[np.float64],
    names: Sequence[object] | None,
    *,
    band: NDArray[np.float64] | None = None,
    xlabel: str | None = None,
) -> None:
    """Draw the effect of categories: a bar each, or a dot for each of several outputs.

    Categories without an order are sorted by their effect, the largest on top, or by their share of
    the rows where there are several outputs. A table of shares stands at the right.

    Parameters
    ----------
    ax : Axes
        Where to draw.
    axis : mapping
        The axis of the view, with names, shares and order of its n categories.
    values : ndarray of shape (outputs, n)
        The effect.
    names : sequence of str, or None
        Names of the outputs; None if a legend elsewhere has them.
    band : ndarray of shape (n,), optional
        Half the length of an error bar for each category, with one output.
    xlabel : str, optional
        Label of the axis of the effect.
    """
    labels, shares = axis["names"], axis["shares"]
    size = font_size(0.85)
    width, height = room(ax)
    several = len(values) > 1
    legend = names if several and names is not None else []
    head = 1 + (2 * -(-len(legend) // legend_columns(legend, width, size)) if legend else 0)
    most = max(2, int(height / (1.25 * size)) - head)
    by_share = np.argsort(-shares, kind="stable")
    kept = by_share[:most]
    if axis["ordered"]:
        order = np.sort(kept)
    else:
        order = kept if several else kept[np.argsort(-values[0][kept], kind="stable")]
    places = np.arange(len(order), dtype=float)[::-1]
    ax.axvline(0.0, color=MUTED, linewidth=0.8, zorder=1)
    dots: list[Any] = []
    if several:
        dots = _dots(ax, values[:, order], places)
    else:
        ax.barh(places, values[0][order], height=0.72, color=sign_colours(values[0][order]))
    low, high = limits_of(values[:, order])
    if band is not None:
        ends = values[0][order] + np.array([[-1.0], [1.0]]) * band[order]
        ax.hlines(places, *ends, color=INK, linewidth=1.0, zorder=3, label="95 %")
        low, high = limits_of(ends)
    pad = 0.05 * (high - low)
    low, high = low - (pad if low < 0 else 0.0), high + (pad if high > 0 else 0.0)
    rows_head = 0.9 if shares.any() else 0.3
    spare = 0.5 * max(0, _FEWEST - len(order))  # a few bars are not to become blocks
    ax.set_ylim(-0.6 - spare, len(order) - 0.4 + spare + rows_head)
    if legend:
        room_above(ax, legend)
        legend_above(ax, dots, legend)
    ax.set_xlim(low, high)
    if shares.any():
        _row_shares(ax, shares[order], places, (low, high), width, size)
    bare(ax, keep="bottom")
    ax.tick_params(axis="y", length=0)
    write_ticks(ax, "y", list(places), [labels[i] for i in order], points=0.45 * width, size=size)
    label_axes(ax, xlabel, axis["variable"], ynote=part_words(axis, len(order)))


def _row_shares(
    ax: Axes,
    shares: NDArray[np.float64],
    places: NDArray[np.float64],
    limits: tuple[float, float],
    width: float,
    size: float,
) -> None:
    """Draw the share of the rows of each bar at the right, lightly."""
    texts = [percent(share) for share in shares]
    words = max(text_width(text, size) for text in [*texts, "rows"]) + 10.0
    strip = 0.14
    taken = min(0.5, strip + words / width)
    low, high = limits
    right = low + (high - low) / (1.0 - taken)
    ax.set_xlim(low, right)
    ax.spines["bottom"].set_bounds(low, high)
    ticks_up_to(ax, high)
    start = right - strip * (right - low)
    scale = strip * (right - low) / max(float(shares.max()), 1e-12)
    ax.barh(places, shares * scale, left=start, height=0.5, color=FAINT, label="share of the rows")
    ax.set_xlim(low, right)
    for place, text in zip([*places, places.max() + 0.95], [*texts, "rows"], strict=True):
        ax.annotate(
            text,
            (start, place),
            xytext=(-4, 0),
            textcoords="offset points",
            ha="right",
            va="center",
            fontsize=0.95 * size,
            color=MUTED,
        )


def _dots(ax: Axes, values: NDArray[np.float64], places: NDArray[np.float64]) -> list[Any]:
    """Draw a dot per category and output; return what a legend is made of."""
    low, high = np.nanmin(values, axis=0), np.nanmax(values, axis=0)
    ax.hlines(places, low, high, color=FAINT, linewidth=1.0, zorder=1)
    handles = []
    for k, row in enumerate(values):
        colour = LINE_STYLES[k][0] if k < len(LINE_STYLES) else MUTED
        mark = MARKS[k % len(MARKS)]
        handles += ax.plot(row, places, linestyle="", marker=mark, markersize=5, color=colour)
    return handles
