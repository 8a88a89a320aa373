"""A model at one look: how good it is, what matters, the largest effects, the path, the proof."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from hikernel.plots.canvas import INK, MUTED, font_size, new_figure
from hikernel.plots.certificate_plot import plot_certificate
from hikernel.plots.effect_plots import class_legend, drawable, panel, shares_legend
from hikernel.plots.hull_plot import plot_hull
from hikernel.plots.importance_plot import plot_importance
from hikernel.plots.lettering import PLAIN, clean, fit, wrap
from hikernel.plots.lookup import Summary, as_summary, effect_words, find_outputs
from hikernel.plots.path_plot import plot_path

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["overview"]

_WIDTH: Final = 13.0
_POINTS: Final = 0.96 * 72.0 * _WIDTH
"""Room for a line of text."""
_MOST_EFFECTS: Final = 6


def overview(model: object) -> Figure:
    """Draw a model at one look.

    A title with what was fitted and how good it is; the shares of the effects; up to six of the
    largest effects (the hull, for a model that was fitted on a graph); the path over alpha, or how
    the proof went where there is no path; and what is proven, in words.

    Parameters
    ----------
    model : fitted estimator or dict
        The model, or what its ``summary()`` returned.

    Returns
    -------
    matplotlib.figure.Figure
        A new figure.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    """
    summary = as_summary(model)
    effects = drawable(summary)[:_MOST_EFFECTS]
    below = _lower_left(summary)
    across = 3 if len(effects) > 4 else max(1, min(2, len(effects)))
    down = max(1, -(-len(effects) // across))
    outputs = find_outputs(summary, None)
    shared = bool(effects) and shares_legend(outputs)
    proof = _proof(summary)
    middle = 6.0 if below or down == 2 else 3.2
    heights = [0.8 if shared else 0.6, middle, 0.05 + 0.2 * (proof.count("\n") + 1 if proof else 0)]
    figure = new_figure(_WIDTH, sum(heights))
    outer = figure.add_gridspec(3, 2, width_ratios=[1.0, 1.9], height_ratios=heights)
    head = figure.add_subplot(outer[0, :])
    _header(head, summary, outputs if effects else [])
    if shared:
        class_legend(head, summary, outputs, 0.62 * _POINTS, loc="lower right", borderaxespad=0.0)
    left = outer[1, 0].subgridspec(2 if below and summary["effects"] else 1, 1)
    # A grid of its own for each, so that long names beside one do not narrow the other.
    parts = [figure.add_subplot(left[k].subgridspec(1, 1)[0]) for k in range(left.nrows)]
    if summary["effects"]:
        plot_importance(summary, max_items=12, ax=parts[0])
        _heading(parts[0], "What matters")
    if below == "path":
        _heading(plot_path(summary, ax=parts[-1]), "The path over alpha")
    elif below == "search":
        _heading(plot_certificate(summary, ax=parts[-1]), "The search")
    if effects:
        grid = outer[1, 1].subgridspec(down, across)
        for k, effect in enumerate(effects):
            ax = figure.add_subplot(grid[k // across, k % across])
            panel(ax, summary, effect, outputs, named=not shared)
    elif summary.get("hull"):
        ax = figure.add_subplot(outer[1, 1])
        _heading(plot_hull(summary, ax=ax), "What the convex problem selected")
    _write(figure.add_subplot(outer[2, :]), 0.0, proof, font_size(0.85), MUTED)
    return figure


def _lower_left(summary: Summary) -> str | None:
    if summary.get("path"):
        return "path"
    return "search" if summary.get("search") else None


def _heading(ax: Axes, text: str) -> None:
    ax.set_title(text, loc="left", fontsize=font_size(), color=INK)


def _header(ax: Axes, summary: Summary, outputs: Sequence[int]) -> None:
    """Write what was fitted, and how good it is."""
    data = summary["data"]
    target = summary.get("target")
    what = f"{summary.get('estimator', 'model')}" + (f" of {clean(target)}" if target else "")
    count = len(summary["effects"])
    size = f"{data['n_rows']:,} rows"
    if data.get("has_columns", True):
        size += f", {data['n_columns']:,} columns"
    words = f"{what}:  {count} effect{'s' * (count != 1)}  ({size})"
    quality = (summary.get("quality") or {}).get("words") or ""
    if outputs:
        quality += f" Panels: {effect_words(summary, outputs)}."
    large, plain = font_size(1.3), font_size()
    _write(ax, 0.0, fit(words, _POINTS, large), large, INK)
    if quality:
        _write(ax, 1.9 * large, wrap(quality, _POINTS, plain, max_lines=2), plain, MUTED)


def _proof(summary: Summary) -> str:
    """Return what is proven, in lines that fit."""
    words = (summary.get("certificate") or {}).get("words") or ""
    return wrap(words, _POINTS, font_size(0.85), max_lines=3) if words else ""


def _write(ax: Axes, down: float, text: str, size: float, colour: str) -> None:
    """Write a text so many points below the upper edge of empty axes."""
    ax.set_axis_off()
    written = ax.annotate(
        text,
        (0.0, 1.0),
        xycoords="axes fraction",
        xytext=(0.0, -down),
        textcoords="offset points",
        va="top",
        fontsize=size,
        color=colour,
        **PLAIN,
    )
    written.set_in_layout(False)  # lines are as long as the figure is wide
