"""Axes, figures and colours that all pictures share, and the only import of pyplot.

Nothing here changes rcParams, shows a figure or keeps one. A figure is made only where no axes
are given.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

__all__ = [
    "BLUE",
    "DIVERGING",
    "FAINT",
    "INK",
    "LINE_STYLES",
    "MARKS",
    "MUTED",
    "ORDERS",
    "SKY",
    "VERMILLION",
    "axes_or_new",
    "bare",
    "font_size",
    "new_figure",
    "order_colour",
    "panels_in",
    "room",
    "sign_colours",
]

BLUE: Final = "#0072B2"
VERMILLION: Final = "#D55E00"
GREEN: Final = "#009E73"
PURPLE: Final = "#CC79A7"
ORANGE: Final = "#E69F00"
SKY: Final = "#56B4E9"
INK: Final = "#262626"
MUTED: Final = "#6b6b6b"
FAINT: Final = "#d4d4d4"

_SERIES: Final = (BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY, "#000000")
"""The colours of Okabe and Ito, without the yellow, which is too faint for a line on white."""
LINE_STYLES: Final = tuple((colour, dash) for dash in ("-", "--") for colour in _SERIES)[:12]
"""Colour and dashes of at most 12 lines that can be told apart."""
MARKS: Final = "osD^vP*Xh<>d"
"""Marks that go with them."""
DIVERGING: Final = "RdBu"
"""Colour map of surfaces: blue raises f, white is zero, red lowers it."""

ORDERS: Final = (
    (BLUE, "one variable"),
    (ORANGE, "two"),
    (GREEN, "three"),
    (PURPLE, "four or more"),
)
"""Colour of effects and terms of one, two, three and more variables, and what legends call them."""

_MISSING: Final = "Pictures need matplotlib: pip install 'hikernel[plot]'."


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure of the given size in inches, known to pyplot.

    Raises
    ------
    ImportError
        If matplotlib is not installed; the message has the command that installs it.
    """
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(_MISSING) from error
    from hikernel.plots.notebook_figure import NotebookFigure

    size = width, height
    figure = plt.figure(figsize=size, layout="constrained", FigureClass=NotebookFigure)
    figure.get_layout_engine().set(w_pad=0.08, h_pad=0.08)  # type: ignore[union-attr,call-arg]
    return figure


def axes_or_new(ax: Axes | None, width: float = 6.0, height: float = 4.0) -> Axes:
    """Return ``ax``, or the axes of a new figure if it is None."""
    if ax is None:
        return new_figure(width, height).add_subplot()
    if not callable(getattr(ax, "get_subplotspec", None)):
        raise TypeError(
            f"ax must be one Axes of matplotlib, got {type(ax).__name__}; "
            "leave it out for a new figure."
        )
    return ax


def panels_in(host: Axes, rows: int, columns: int) -> NDArray[Any]:
    """Put a grid of panels in the place of ``host``, whose frame disappears; return them."""
    figure: Any = host.figure
    spec = host.get_subplotspec()
    if spec is not None:
        grid = spec.subgridspec(rows, columns)
    else:  # axes that were placed by hand
        box = host.get_position()
        grid = figure.add_gridspec(
            rows, columns, left=box.x0, right=box.x1, bottom=box.y0, top=box.y1, wspace=0.4
        )
    host.set_axis_off()
    out = np.empty((rows, columns), dtype=object)
    for i, j in np.ndindex(rows, columns):
        out[i, j] = figure.add_subplot(grid[i, j])
    return out


def bare(ax: Axes, *, keep: str = "left bottom") -> None:
    """Take away the sides of the frame that are not to be kept."""
    for side in ("left", "right", "top", "bottom"):
        if side not in keep.split():
            ax.spines[side].set_visible(False)
    ax.tick_params(labelsize=font_size(0.85))


def font_size(scale: float = 1.0) -> float:
    """Return the font size of the user's settings, in points, times ``scale``."""
    import matplotlib as mpl
    from matplotlib.font_manager import FontProperties

    return FontProperties(size=mpl.rcParams["font.size"]).get_size_in_points() * scale


def room(ax: Axes) -> tuple[float, float]:
    """Return width and height of axes in points, a little less than they are."""
    box = ax.get_window_extent()
    scale = 0.9 * 72.0 / float(ax.figure.dpi)
    return float(box.width) * scale, float(box.height) * scale


def order_colour(order: int | None) -> str:
    """Return the colour of an effect or term with so many variables."""
    return ORDERS[min(max(order or 1, 1), len(ORDERS)) - 1][0]


def sign_colours(values: Any) -> list[str]:
    """Return the colour of each bar: blue for what raises f, orange for what lowers it."""
    return [BLUE if value > 0 else VERMILLION for value in values]
