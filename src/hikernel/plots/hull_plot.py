"""The hull as a layered diagram: the root on top, every term below its parents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from hikernel.checks import check_integer
from hikernel.plots.canvas import (
    BLUE,
    FAINT,
    INK,
    MUTED,
    ORDERS,
    axes_or_new,
    font_size,
    order_colour,
    room,
)
from hikernel.plots.lettering import PLAIN, fit, legend_above, room_above, spread, text_width
from hikernel.plots.lookup import as_summary

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

__all__ = ["plot_hull"]

Node = Mapping[str, Any]

_SWEEPS: Final = 6
_NAME_POINTS: Final = 130.0
_LEAD: Final = {"arrowstyle": "-", "color": MUTED, "linewidth": 0.5, "shrinkA": 0, "shrinkB": 2}


def plot_hull(model: object, ax: Axes | None = None, *, max_nodes: int = 200) -> Axes:
    """Draw the hull that the convex problem selected, as a diagram.

    The root is on top, and every term is in a row below its parents, to which lines lead. Active
    terms are filled, coloured by their number of variables, and their area grows with their share;
    idle ancestors, which are there because a descendant is active, are hollow. In every row,
    terms have names where there is room, the largest first; a line of text says how many have none.

    Parameters
    ----------
    model : fitted estimator or dict
        The model, or what its ``summary()`` returned.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.
    max_nodes : int, default=200
        Largest number of terms to draw. Of a larger hull, the terms with the largest shares are
        drawn with their ancestors, and a line of text says how many are left out.

    Returns
    -------
    matplotlib.axes.Axes
        The axes. The points are in its first collections, a row of the diagram per value of y.

    Raises
    ------
    ValueError
        If the summary has no hull.
    ImportError
        If matplotlib is not installed.
    """
    check_integer("max_nodes", max_nodes, 2)
    summary = as_summary(model)
    whole: Sequence[Node] = summary.get("hull") or []
    if not whole:
        raise ValueError("This summary has no hull; make it anew with model.summary().")
    nodes = _largest(whole, max_nodes)
    depths = _depths(nodes)
    rows = [[i for i, d in enumerate(depths) if d == depth] for depth in range(max(depths) + 1)]
    widest = max(len(row) for row in rows)
    ax = axes_or_new(ax, min(14.0, max(6.4, 0.75 * widest)), min(12.0, 1.4 + 1.25 * len(rows)))
    x = _places(nodes, rows)
    y = -np.asarray(depths, dtype=float)
    columns = bool(summary["data"].get("has_columns", True))
    names = _row_names(nodes, rows, "degree" if columns else "depth")
    size = font_size(0.78)
    margin = max((text_width(name, size) for name in names), default=0.0) / room(ax)[0]
    left = -0.05 - margin / (1.0 - min(margin, 0.4))
    ax.set(xlim=(left, 1.05), ylim=(0.45 - len(rows), 0.35))
    ax.set_axis_off()
    for depth, name in enumerate(names):
        ax.text(left, -depth, name, fontsize=size, color=MUTED, va="center")
    _draw_edges(ax, nodes, x, y)
    _legend(ax, nodes, len(whole) - len(nodes), columns)
    radii = _draw_nodes(ax, nodes, x, y, widest)
    _write_names(ax, nodes, rows, x, radii)
    return ax


def _largest(nodes: Sequence[Node], most: int) -> list[dict[str, Any]]:
    """Return a hull of at most ``most`` nodes, with the largest shares; parents are renumbered."""
    kept: set[int] = {0}
    for i in sorted(range(len(nodes)), key=lambda i: (-(nodes[i]["share"] or 0.0), i)):
        more = _ancestors(nodes, i) - kept
        if len(kept) + len(more) <= most:
            kept |= more
    order = sorted(kept)
    position = {old: new for new, old in enumerate(order)}
    return [{**nodes[i], "parents": [position[p] for p in nodes[i]["parents"]]} for i in order]


def _ancestors(nodes: Sequence[Node], node: int) -> set[int]:
    found, waiting = {node}, [node]
    while waiting:
        new = set(nodes[waiting.pop()]["parents"]) - found
        found |= new
        waiting += sorted(new)
    return found


def _depths(nodes: Sequence[Node]) -> list[int]:
    """Return the length of the longest way from a root to each node."""
    depths: dict[int, int] = {}
    waiting = list(range(len(nodes)))[::-1]
    while waiting:
        node = waiting[-1]
        parents = nodes[node]["parents"]
        missing = [p for p in parents if p not in depths]
        if missing:
            waiting += missing
            continue
        depths[node] = 1 + max((depths[p] for p in parents), default=-1)
        waiting.pop()
    return [depths[i] for i in range(len(nodes))]


def _places(nodes: Sequence[Node], rows: Sequence[Sequence[int]]) -> NDArray[np.float64]:
    """Return x of each node in [0, 1]: near its parents and children, apart from its neighbours."""
    children: list[list[int]] = [[] for _ in nodes]
    for i, node in enumerate(nodes):
        for parent in node["parents"]:
            children[parent].append(i)
    x = np.full(len(nodes), 0.5)
    for row in rows:
        x[list(row)] = np.linspace(0.0, 1.0, len(row)) if len(row) > 1 else 0.5
    for sweep in range(_SWEEPS):
        down = sweep % 2 == 1
        for row in rows if down else rows[::-1]:
            near = [nodes[i]["parents"] if down else children[i] for i in row]
            wanted = [
                float(np.mean(x[list(n)])) if n else float(x[i])
                for i, n in zip(row, near, strict=True)
            ]
            gap = min(0.16, 1.0 / max(1, len(row) - 1))
            x[list(row)] = spread(wanted, gap, 0.0, 1.0)
    low, high = float(x.min()), float(x.max())
    return (x - low) / (high - low) if high > low else x


def _draw_edges(
    ax: Axes, nodes: Sequence[Node], x: NDArray[np.float64], y: NDArray[np.float64]
) -> None:
    from matplotlib.collections import LineCollection

    lines = [[(x[p], y[p]), (x[i], y[i])] for i, node in enumerate(nodes) for p in node["parents"]]
    thin = 0.9 if len(lines) < 80 else 0.5
    edges = LineCollection(lines, colors=FAINT, linewidths=thin, zorder=1, label="edges")
    ax.add_collection(edges, autolim=False)


def _draw_nodes(
    ax: Axes,
    nodes: Sequence[Node],
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    widest: int,
) -> NDArray[np.float64]:
    """Draw the nodes; return their radii in points."""
    width, height = room(ax)
    bottom, top = ax.get_ylim()
    largest = 0.5 * min(22.0, 0.45 * height / (top - bottom), max(5.0, 1.6 * width / widest))
    smallest = min(3.0, 0.5 * largest)
    shares = np.array([node["share"] or 0.0 for node in nodes], dtype=float)
    radii = np.maximum(smallest, largest * np.sqrt(shares / (shares.max() or 1.0)))
    active = np.array([bool(node["active"]) for node in nodes])
    colours = np.array([order_colour(node["order"]) for node in nodes])
    for chosen, style in (
        (~active, {"facecolor": "white", "edgecolor": MUTED, "label": "idle"}),
        (active, {"facecolor": colours[active], "edgecolor": "white", "label": "active"}),
    ):
        ax.scatter(
            x[chosen], y[chosen], s=(2.0 * radii[chosen]) ** 2, linewidth=0.8, zorder=3, **style
        )
    return radii


def _row_names(nodes: Sequence[Node], rows: Sequence[Sequence[int]], word: str) -> list[str]:
    """Return the degree of each row where all its terms have the same; the first has no name."""
    found = [{nodes[i]["degree"] for i in row} for row in rows]
    known = [len(degrees) == 1 and None not in degrees for degrees in found]
    return [
        f"{word} {degrees.pop()}" if depth and one else ""
        for depth, (degrees, one) in enumerate(zip(found, known, strict=True))
    ]


def _write_names(
    ax: Axes,
    nodes: Sequence[Node],
    rows: Sequence[Sequence[int]],
    x: NDArray[np.float64],
    radii: NDArray[np.float64],
) -> None:
    """Write names below the nodes, the largest first, where they overlap nothing."""
    width, height = room(ax)
    size = font_size(0.78)
    line = 1.25 * size
    start, end = ax.get_xlim()
    scale = width / (end - start)
    bottom, top = ax.get_ylim()
    row_height = height / (top - bottom)
    nameless, lowest = 0, 0.0
    for depth, row in enumerate(rows):
        below = max(float(radii[i]) for i in row) + 2.0
        levels = max(1, min(4, int((row_height - 2.0 * below) / line)))
        taken: list[list[tuple[float, float]]] = [[] for _ in range(levels)]
        order = sorted(row, key=lambda i: (not nodes[i]["active"], -(nodes[i]["share"] or 0.0), i))
        for i in order:
            text = fit(nodes[i]["term"], _NAME_POINTS, size)
            half = 0.5 * text_width(text, size) + 3.0
            place = (x[i] - start) * scale
            middle = min(max(place, half), width - half)
            free = [
                level
                for level in range(levels)
                if all(middle + half <= a or b <= middle - half for a, b in taken[level])
            ]
            if not free:
                nameless += 1
                continue
            lowest = max(lowest, depth * row_height + below + (free[0] + 1) * line)
            taken[free[0]].append((middle - half, middle + half))
            ax.annotate(
                text,
                xy=(x[i], -depth),
                xytext=(middle - place, -below - free[0] * line),
                textcoords="offset points",
                ha="center",
                va="top",
                fontsize=size,
                color=INK if nodes[i]["active"] else MUTED,
                zorder=4,
                arrowprops=_LEAD if free[0] else None,
                bbox={
                    "boxstyle": "square,pad=0.05",
                    "facecolor": "white",
                    "linewidth": 0,
                    "alpha": 0.8,
                },
                **PLAIN,
            )
    if nameless:
        ax.annotate(
            f"{nameless:,} of {len(nodes):,} terms have no name here, for want of room",
            xy=(1.0, 0.0),
            xycoords="axes fraction",
            xytext=(0.0, -4.0 - max(0.0, lowest + bottom * row_height)),
            textcoords="offset points",
            ha="right",
            va="top",
            fontsize=size,
            color=MUTED,
        )


def _legend(ax: Axes, nodes: Sequence[Node], left_out: int, columns: bool) -> None:
    """Say what the colours mean, if there are variables to count, and what is not drawn."""
    from matplotlib.lines import Line2D

    def dot(colour: str, edge: str) -> Line2D:
        return Line2D(
            [], [], linestyle="", marker="o", color=colour, markeredgecolor=edge, markersize=6
        )

    present = {order_colour(node["order"]) for node in nodes if node["active"]}
    if columns:
        pairs = [(dot(colour, colour), words) for colour, words in ORDERS if colour in present]
    else:
        pairs = [(dot(BLUE, BLUE), "active")]
    if not all(node["active"] for node in nodes):
        pairs.append((dot("white", MUTED), "idle"))
    if left_out:
        pairs.append((Line2D([], [], linestyle=""), f"{left_out:,} smaller terms are left out"))
    names = [words for _, words in pairs]
    room_above(ax, names)
    legend_above(ax, [handle for handle, _ in pairs], names)
