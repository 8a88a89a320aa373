"""Effects of one number, alone or with a category, as curves above the density of the rows.

Names of lines stand at their ends, inside the axes, so that nothing reaches into a neighbour.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from hikernel.plots.canvas import BLUE, FAINT, INK, LINE_STYLES, MUTED, bare, font_size, room
from hikernel.plots.lettering import PLAIN, fit_all, label_axes, spread, text_width
from hikernel.plots.lookup import density_of, limits_of, visible_range

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

__all__ = ["draw_curves", "ticks_up_to"]

_SPIKE: Final = 5.0
"""Bins of the density are drawn up to this many times the median of those with rows."""
_STRIP: Final = 0.16
"""Height of the density of the rows, as a share of the axes."""
_BAND_ROOM: Final = 0.3
"""Share of the range of a curve by which a band may widen it, on either side."""


def draw_curves(
    ax: Axes,
    points: Sequence[float],
    lines: NDArray[np.float64],
    names: Sequence[object] | None,
    *,
    column: Mapping[str, Any] | None,
    weights: NDArray[np.float64] | None = None,
    limits: tuple[float, float] | None = None,
    band: NDArray[np.float64] | None = None,
    xlabel: object = None,
    ylabel: str | None = None,
) -> None:
    """Draw curves over one number, with the density of the rows below them.

    Parameters
    ----------
    ax : Axes
        Where to draw.
    points : sequence of float
        The grid, increasing; a jump has two points next to each other.
    lines : ndarray of shape (k, len(points))
        The curves.
    names : sequence of length k, or None
        What they are called. A single curve is not labelled; none of them are if this is None and
        a legend elsewhere tells them apart, which takes at most 12.
    column : mapping, optional
        The column of the summary, for its histogram and quantiles.
    weights : ndarray of shape (k,), optional
        Share of the rows of each curve: which are the largest is a matter of both.
    limits : (low, high), optional
        Range of the values, where panels share one.
    band : ndarray of shape (len(points),), optional
        Half the width of a band around a single curve. Where it is wide, it is cut off rather than
        make the curve flat.
    xlabel, ylabel : object, str, optional
        Labels of the axes.
    """
    x = np.asarray(points, dtype=float)
    left, right = visible_range(x, column)
    notes = [] if (left, right) == (float(x[0]), float(x[-1])) else ["ends cut off"]
    edges = lines[:0] if band is None else np.array([lines[0] - band, lines[0] + band])
    if notes:
        whole = x
        x, lines = _between(whole, lines, left, right)
        _, edges = _between(whole, edges, left, right)
    low, high = limits or limits_of(lines)
    if limits is None and len(edges):
        least, most = limits_of(edges)
        spare = _BAND_ROOM * (high - low)
        low, high = max(least, low - spare), min(most, high + spare)
    pad = 0.06 * (high - low)
    floor = (low - pad) - (_STRIP + 0.03) * (high - low + 2 * pad) / (1.0 - _STRIP - 0.03)
    ax.axhline(0.0, color=FAINT, linewidth=0.8, zorder=1)
    ax.set_ylim(floor, high + pad)
    margin = 0.02 * (right - left) or 1.0
    ax.set_xlim(left - margin, right + margin)
    if _density(ax, column):
        notes.append("broken bars are taller")
    bare(ax)
    if len(edges):
        ax.fill_between(x, *edges, color=BLUE, alpha=0.18, linewidth=0, zorder=2, label="95 % band")
        ax.set_ylim(floor, high + pad)
    if len(lines) == 1:
        ax.plot(x, lines[0], color=BLUE, linewidth=1.8, zorder=3)
    elif names is None:
        for line, (colour, dash) in zip(lines, LINE_STYLES, strict=False):
            ax.plot(x, line, color=colour, linestyle=dash, linewidth=1.6, zorder=3)
    else:
        _named_lines(ax, x, lines, names, weights)
    if len(lines) == 1 or names is None:
        ticks_up_to(ax)
    label_axes(ax, xlabel, ylabel, note=", ".join(notes))


def _density(ax: Axes, column: Mapping[str, Any] | None) -> bool:
    """Draw the histogram of a column along the lower edge; return whether a bar is cut.

    A spike, such as a column that is mostly zero, is cut rather than flatten the rest, and a white
    gap goes through it.
    """
    found = density_of(column)
    if found is None:
        return False
    edges, density = found
    limits = ax.get_xlim(), ax.get_ylim()
    seen = (edges[1:] > limits[0][0]) & (edges[:-1] < limits[0][1])
    some = density[seen & (density > 0)]
    top = min(float(some.max()), _SPIKE * float(np.median(some))) if some.size else 1.0
    ax.stairs(
        np.where(seen, _STRIP * np.minimum(density / top, 1.0), 0.0),
        np.clip(edges, *limits[0]),
        fill=True,
        color=FAINT,
        transform=ax.get_xaxis_transform(),
        zorder=0.5,
        label="density of the rows",
    )
    cut = seen & (density > 1.001 * top)
    ax.hlines(
        np.full(int(cut.sum()), 0.8 * _STRIP),
        edges[:-1][cut],
        edges[1:][cut],
        colors="white",
        linewidth=2.0,
        transform=ax.get_xaxis_transform(),
        zorder=0.6,
        label="cut bars",
    )
    ax.set(xlim=limits[0], ylim=limits[1])
    return bool(cut.any())


def _named_lines(
    ax: Axes,
    x: NDArray[np.float64],
    lines: NDArray[np.float64],
    names: Sequence[object],
    weights: NDArray[np.float64] | None,
) -> None:
    """Draw several lines: the largest ones in colours with their names, the others in grey."""
    from matplotlib.transforms import offset_copy

    figure: Any = ax.figure
    size = font_size(0.8)
    width, height = room(ax)
    gap = 1.25 * size
    most = min(len(LINE_STYLES), max(1, int(height * (1.0 - _STRIP) / (1.5 * gap))))
    reach = np.max(np.abs(np.nan_to_num(lines)), axis=1)
    worth = reach if weights is None else reach * np.sqrt(weights)
    ranked = [int(i) for i in np.argsort(-worth, kind="stable")]
    shown = sorted(ranked[:most])
    for i in ranked[most:]:
        ax.plot(x, lines[i], color=FAINT, linewidth=0.9, zorder=2)
    texts = fit_all([names[i] for i in shown], 0.36 * width, size)
    rest = len(lines) - len(shown)
    more = [f"+ {rest} more"] if rest else []
    lead = 14.0
    needed = (max(text_width(text, size) for text in texts + more) + lead + 4.0) / width
    left, right = ax.get_xlim()
    ax.set_xlim(left, right + (right - left) * needed / max(0.2, 1.0 - needed))
    ax.spines["bottom"].set_bounds(left, right)
    bottom, top = ax.get_ylim()
    scale = height / (top - bottom)
    ends = [_last(lines[i]) for i in shown]
    floor = (_STRIP + 0.02) * height + (gap if rest else 0.5 * gap)
    places = spread([(end - bottom) * scale for end in ends], gap, floor, height - 0.5 * gap)
    beside = offset_copy(ax.transData, figure, x=lead, units="points")
    for k, (i, text, end, place) in enumerate(zip(shown, texts, ends, places, strict=True)):
        colour, dash = LINE_STYLES[k]
        ax.plot(x, lines[i], color=colour, linestyle=dash, linewidth=1.6, zorder=3)
        ax.annotate(
            text,
            xy=(float(x[-1]), end),
            xytext=(right, place / scale + bottom),
            textcoords=beside,
            fontsize=size,
            color=INK,
            va="center",
            arrowprops={
                "arrowstyle": "-",
                "color": colour,
                "linewidth": 0.9,
                "shrinkA": 1,
                "shrinkB": 0,
            },
            annotation_clip=False,
            **PLAIN,
        )
    if more:
        ax.text(
            right,
            (floor - gap) / scale + bottom,
            more[0],
            transform=beside,
            fontsize=size,
            color=MUTED,
            va="center",
        )
    ticks_up_to(ax, right)
    # The lines that were drawn must not widen the axes.
    ax.set_ylim(bottom, top)


def _last(line: NDArray[np.float64]) -> float:
    found = line[np.isfinite(line)]
    return float(found[-1]) if found.size else 0.0


def _between(
    x: NDArray[np.float64], lines: NDArray[np.float64], left: float, right: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the part of some lines between two places, with a point at either of them."""
    inner = x[(x > left) & (x < right)]
    points = np.concatenate([[left], inner, [right]])
    inside = [np.interp(points, x, line) for line in lines]
    return points, np.array(inside).reshape(len(lines), len(points))


def ticks_up_to(ax: Axes, right: float | None = None) -> None:
    """Put as many ticks on the x axis as there is room for, none of them beyond ``right``."""
    from matplotlib.ticker import MaxNLocator

    low, high = ax.get_xlim()
    right = high if right is None else right
    points = room(ax)[0] * (right - low) / (high - low)
    size = font_size(0.85)
    for most in range(7, 0, -1):
        places = MaxNLocator(nbins=most, steps=[1, 2, 2.5, 5, 10]).tick_values(low, right)
        ticks = [float(tick) for tick in places if low <= tick <= right]
        labels = ax.xaxis.get_major_formatter().format_ticks(ticks)
        taken = max((text_width(label, size) for label in labels), default=0.0) + size
        if taken * len(ticks) <= points:
            break
    ax.set_xticks(ticks)
