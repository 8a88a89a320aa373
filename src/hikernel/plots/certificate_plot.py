"""How the search and the proof went: the gap, or objective and bound, against work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from hikernel.checks import check_choice
from hikernel.plots.canvas import (
    BLUE,
    FAINT,
    INK,
    MUTED,
    VERMILLION,
    axes_or_new,
    bare,
    font_size,
    room,
)
from hikernel.plots.lettering import label_axes, legend_above, percent, room_above, text_width
from hikernel.plots.lookup import Summary, as_summary, floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

__all__ = ["plot_certificate"]

_WORK: Final = {
    "explored": "kernels looked at",
    "kernels": "kernels in the problem",
    "step": "step of the search",
}
_ENOUGH: Final = 3
"""Points that make a curve."""
_LEAST: Final = 1e-2
"""A gap of zero is drawn at this share of the tolerance, as a logarithmic axis has no zero."""


def plot_certificate(model: object, ax: Axes | None = None, *, what: str = "auto") -> Axes:
    """Draw how the search went: the proven gap, or objective and bound, against work.

    Work is the number of kernels that were looked at where that grew from step to step, and else
    the number of kernels in the problem, or the step.

    Parameters
    ----------
    model : fitted estimator or dict
        The model, or what its ``summary()`` returned.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.
    what : {"auto", "gap", "objective"}, default="auto"
        "gap": the relative gap on a logarithmic axis, with a line at the tolerance. "objective":
        the objective, and the bound below it, which proves the model optimal if it reaches the
        band of the tolerance; without a bound, the picture says that nothing is proven. "auto":
        the gap if it was computed at three steps or more.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

    Raises
    ------
    ValueError
        If the model has no record of its search, or no gap was computed and one is asked for.
    ImportError
        If matplotlib is not installed.
    """
    check_choice("what", what, ("auto", "gap", "objective"))
    summary = as_summary(model)
    search: Sequence[Mapping[str, Any]] = summary.get("search") or []
    if not search:
        raise ValueError(
            "This model has no record of its search; "
            "draw it from the model that fit returned, or from the summary of that."
        )
    if what == "gap" and all(step["gap"] is None for step in search):
        raise ValueError(
            "No gap was computed in this search, as nothing was to be proven; "
            'fit with certify="exact" or "statistical", or draw what="objective".'
        )
    known = sum(step["gap"] is not None for step in search)
    gap = what == "gap" or (what == "auto" and known >= _ENOUGH)
    ax = axes_or_new(ax, 6.4, 3.6)
    from matplotlib.ticker import MaxNLocator

    key = _work(search)
    work = floats([step[key] for step in search])
    bare(ax)
    if gap:
        _draw_gap(ax, summary, work, floats([step["gap"] for step in search]))
    else:
        _draw_objective(ax, summary, search, work)
    ax.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    label_axes(ax, _WORK[key], "relative gap" if gap else "objective")
    return ax


def _work(search: Sequence[Mapping[str, Any]]) -> str:
    """Return what grew at every step."""
    for key in ("explored", "kernels"):
        known = [float(step[key]) for step in search if step.get(key) is not None]
        if len(known) == len(search) and all(a < b for a, b in pairwise(known)):
            return key
    return "step"


def _draw_gap(
    ax: Axes, summary: Summary, work: NDArray[np.float64], gaps: NDArray[np.float64]
) -> None:
    """Draw the relative gap and the tolerance on a logarithmic axis."""
    certificate = summary.get("certificate") or {}
    tol = certificate.get("tol")
    positive = gaps[gaps > 0]
    least = _LEAST * (tol or (float(positive.min()) if positive.size else 1e-2))
    heights = np.where(np.isfinite(gaps), np.maximum(np.nan_to_num(gaps), least), np.nan)
    ax.set_yscale("log")
    (line,) = ax.plot(work, heights, color=BLUE, marker="o", markersize=4)
    handles, names = [line], ["proven gap"]
    if tol:
        handles.append(ax.axhline(tol, color=VERMILLION, linewidth=1.2, linestyle=(0, (4, 3))))
        names.append(f"tolerance ({percent(tol)})")
    last = np.flatnonzero(np.isfinite(gaps))[-1]
    _at_the_end(ax, f"{100.0 * gaps[last]:.2g} %", work[last], heights[last])
    room_above(ax, names)
    legend_above(ax, handles, names)


def _draw_objective(
    ax: Axes,
    summary: Summary,
    search: Sequence[Mapping[str, Any]],
    work: NDArray[np.float64],
) -> None:
    """Draw the objective, the band of the tolerance below its last value, and the bound."""
    from matplotlib.lines import Line2D

    objective = floats([step["objective"] for step in search])
    bound = floats([step["bound"] for step in search])
    (line,) = ax.plot(work, objective, color=BLUE, marker="o", markersize=4, zorder=3)
    handles: list[Any] = [line]
    names = ["objective"]
    if np.isfinite(bound).any():
        (below,) = ax.plot(work, bound, color=VERMILLION, marker="s", markersize=5, zorder=3)
        handles.append(below)
        names.append("proven bound")
        last = np.flatnonzero(np.isfinite(bound))[-1]
        ax.vlines(work[last], bound[last], objective[last], color=MUTED, linewidth=1.0, zorder=2)
        gap = search[int(last)]["gap"]
        if gap is not None:
            middle = 0.5 * (bound[last] + objective[last])
            _at_the_end(ax, f"gap {100.0 * gap:.2g} %", work[last], middle)
    else:  # a flat curve on a band would look like a proof
        handles.append(Line2D([], [], linestyle=""))
        names.append("nothing is proven")
    tol = (summary.get("certificate") or {}).get("tol")
    if tol and np.isfinite(bound).any() and np.isfinite(objective[-1]):
        top = float(objective[-1])
        handles.append(ax.axhspan(top - tol * abs(top), top, color=FAINT, alpha=0.5, linewidth=0))
        names.append(f"tolerance ({percent(tol)})")
    room_above(ax, names)
    legend_above(ax, handles, names)


def _at_the_end(ax: Axes, text: str, x: float, y: float) -> None:
    """Write a text at the right of the last point, and make room for it."""
    size = font_size(0.85)
    ax.annotate(
        text,
        (x, y),
        xytext=(7, 0),
        textcoords="offset points",
        va="center",
        fontsize=size,
        color=INK,
    )
    low, high = ax.get_xlim()
    share = min(0.5, (text_width(text, size) + 10.0) / room(ax)[0])
    ax.set_xlim(low, x + (x - low or high - low) * share / (1.0 - share))
