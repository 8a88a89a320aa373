"""Effects of two numbers as filled contours, and of two categories as tiles with numbers.

Colours are centred: white is no effect, and the scale is the same on both sides of zero.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from hikernel.plots.canvas import DIVERGING, INK, bare, font_size, room
from hikernel.plots.lettering import PLAIN, fit, label_axes, number, text_width, write_ticks
from hikernel.plots.line_plots import ticks_up_to
from hikernel.plots.lookup import density_of, part_words, visible_range

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

__all__ = ["colour_bar", "draw_surface", "draw_tiles", "surface_reach"]

_LEVELS: Final = 20
_RARE: Final = 0.005
"""Share of the rows, by the columns one by one, whose effect may lie beyond the scale."""


def surface_reach(
    values: NDArray[np.float64],
    axes: Sequence[Mapping[str, Any]],
    columns: Sequence[Mapping[str, Any] | None],
) -> float:
    """Return the largest size of an effect that colours show; corners without rows do not count.

    Parameters
    ----------
    values : ndarray of shape (..., points of axis 0, points of axis 1)
        The effect, for all panels that share the colours.
    axes, columns : sequences of length 2
        The axes of the view and what is known of their columns.
    """
    sizes = np.abs(np.nan_to_num(values)).reshape(-1, *values.shape[-2:])
    weights = np.outer(*(_point_weights(a, c) for a, c in zip(axes, columns, strict=True)))
    weights = np.broadcast_to(weights, sizes.shape)
    order = np.argsort(sizes, axis=None)
    total = np.cumsum(weights.ravel()[order])
    if total[-1] <= 0.0:
        return float(sizes.max()) or 1.0
    k = int(np.searchsorted(total, (1.0 - _RARE) * total[-1]))
    reach = float(sizes.ravel()[order[min(k, len(order) - 1)]])
    return reach or float(sizes.max()) or 1.0


def _point_weights(
    axis: Mapping[str, Any], column: Mapping[str, Any] | None
) -> NDArray[np.float64]:
    """Return about which share of the rows is near each point of an axis."""
    if axis["kind"] != "number":
        shares: NDArray[np.float64] = axis["shares"]
        return shares if shares.any() else np.ones(len(shares))
    points = np.asarray(axis["values"], dtype=float)
    found = density_of(column)
    if found is None:
        return np.ones(len(points))
    edges, density = found
    below = np.concatenate([[0.0], np.cumsum(density * np.diff(edges))])
    middles = np.concatenate([[-np.inf], 0.5 * (points[1:] + points[:-1]), [np.inf]])
    return np.diff(np.interp(middles, edges, below))


def draw_surface(
    ax: Axes,
    axes: Sequence[Mapping[str, Any]],
    values: NDArray[np.float64],
    columns: Sequence[Mapping[str, Any] | None],
    reach: float,
) -> Any:
    """Draw filled contours over two numbers; return what a colour bar is made of.

    Parameters
    ----------
    ax : Axes
        Where to draw.
    axes, columns : sequences of length 2
        The axes of the view and what is known of their columns.
    values : ndarray of shape (points of axis 0, points of axis 1)
        The effect.
    reach : float
        The colours go from minus this number to this number.
    """
    x, y = (np.asarray(axis["values"], dtype=float) for axis in axes)
    levels = np.linspace(-reach, reach, _LEVELS + 1)
    surface = np.ma.masked_invalid(values.T)
    drawn = ax.contourf(x, y, surface, levels=levels, cmap=DIVERGING, extend="both")
    jumps = any(axis.get("jumps") for axis in axes)  # a line of zeros would follow every corner
    if not jumps and float(surface.min()) < 0.0 < float(surface.max()):
        ax.contour(x, y, surface, levels=[0.0], colors=[INK], linewidths=0.7, alpha=0.6)
    limits = [visible_range(p, c) for p, c in zip((x, y), columns, strict=True)]
    ax.set(xlim=limits[0], ylim=limits[1])
    for which, column in zip("xy", columns, strict=True):
        _quantile_marks(ax, which, column)
    bare(ax)
    ticks_up_to(ax)
    label_axes(ax, axes[0]["variable"], axes[1]["variable"])
    return drawn


def _quantile_marks(ax: Axes, which: str, column: Mapping[str, Any] | None) -> None:
    """Mark along an edge where the rows are: a line from 5 % to 95 %, a thick one for the half."""
    quantiles = (column or {}).get("quantiles") or {}
    for ends, thickness in ((("0.05", "0.95"), 1.5), (("0.25", "0.75"), 4.0)):
        along = [quantiles.get(end) for end in ends]
        if None in along:
            return
        across = [0.012, 0.012]
        where = ax.get_xaxis_transform() if which == "x" else ax.get_yaxis_transform()
        ax.plot(
            *((along, across) if which == "x" else (across, along)),
            color=INK,
            alpha=0.65,
            linewidth=thickness,
            solid_capstyle="butt",
            transform=where,
            scalex=False,
            scaley=False,
        )


def draw_tiles(
    ax: Axes, axes: Sequence[Mapping[str, Any]], values: NDArray[np.float64], reach: float
) -> Any:
    """Draw a tile per pair of categories, with its number where it fits.

    The first variable runs down, the second one across. Returns what a colour bar is made of.

    Parameters
    ----------
    ax : Axes
        Where to draw.
    axes : sequence of length 2
        The axes of the view.
    values : ndarray of shape (categories of axis 0, categories of axis 1)
        The effect.
    reach : float
        The colours go from minus this number to this number.
    """
    rows, columns = values.shape
    width, height = room(ax)
    drawn = ax.pcolormesh(
        np.ma.masked_invalid(values),
        cmap=DIVERGING,
        vmin=-reach,
        vmax=reach,
        edgecolor="white",
        linewidth=0.5,
    )
    ax.invert_yaxis()
    bare(ax, keep="")
    ax.tick_params(length=0)
    size = min(font_size(0.85), height / rows / 1.1)
    write_ticks(
        ax, "y", list(np.arange(rows) + 0.5), axes[0]["names"], points=0.4 * width, size=size
    )
    across = [fit(label, 0.35 * height, size) for label in axes[1]["names"]]
    turned = max(text_width(label, size) for label in across) > 0.95 * width / columns
    write_ticks(
        ax,
        "x",
        list(np.arange(columns) + 0.5),
        axes[1]["names"],
        points=0.35 * height,
        size=min(size, width / columns / 1.1) if turned else size,
        rotation=90.0 if turned else 0.0,
    )
    label_axes(
        ax,
        axes[1]["variable"],
        axes[0]["variable"],
        note=part_words(axes[1], columns),
        ynote=part_words(axes[0], rows),
    )
    texts = [[number(value, like=reach) for value in row] for row in values]
    widest = max(text_width(text, 1.0) for row in texts for text in row)
    fits = min(font_size(0.8), 0.9 * width / columns / max(widest, 1e-9), height / rows / 1.3)
    if fits >= 5.0:
        for i, j in np.ndindex(rows, columns):
            dark = abs(values[i, j]) > 0.6 * reach
            ax.text(
                j + 0.5,
                i + 0.5,
                texts[i][j],
                ha="center",
                va="center",
                fontsize=fits,
                color="white" if dark else INK,
            )
    return drawn


def colour_bar(drawn: Any, panels: Sequence[Axes], label: str | None) -> None:
    """Draw one colour bar beside the panels that share it."""
    size = font_size(0.8)
    rows = {panel.get_window_extent().y0: panel for panel in panels}.values()
    bar = panels[0].figure.colorbar(
        drawn, ax=list(panels), fraction=0.08, pad=0.02, aspect=25 * len(rows), extendfrac=0.03
    )
    from matplotlib.ticker import MaxNLocator

    reach = float(drawn.get_clim()[1])
    ticks = MaxNLocator(nbins=6, symmetric=True).tick_values(-reach, reach)
    bar.set_ticks([tick for tick in ticks if abs(tick) <= reach * (1 + 1e-9)])
    bar.minorticks_off()
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=size, length=2)
    if label is None:
        return
    height = sum(room(panel)[1] for panel in rows)
    bar.set_label(fit(label, height, size), fontsize=size, **PLAIN)
