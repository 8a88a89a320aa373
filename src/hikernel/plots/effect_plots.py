"""One effect in a picture of its own, and the largest effects side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from hikernel.checks import check_integer
from hikernel.plots.bar_plots import draw_bars
from hikernel.plots.canvas import (
    LINE_STYLES,
    MARKS,
    axes_or_new,
    font_size,
    new_figure,
    panels_in,
)
from hikernel.plots.lettering import PLAIN, name_legend, percent, title, wrap
from hikernel.plots.line_plots import draw_curves
from hikernel.plots.lookup import (
    EffectView,
    Summary,
    as_summary,
    column_of,
    effect_words,
    find_effect,
    find_outputs,
    limits_of,
    output_name,
)
from hikernel.plots.tile_plots import colour_bar, draw_surface, draw_tiles, surface_reach

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

__all__ = [
    "class_legend",
    "draw_effect",
    "drawable",
    "panel",
    "plot_effect",
    "plot_effects",
    "shares_legend",
]

_ACROSS: Final = 3
"""Panels side by side, for a panel per class and in the grid of effects."""


def plot_effect(
    model: object,
    effect: int | str | Sequence[str],
    *,
    output: object = None,
    ax: Axes | None = None,
) -> Axes | NDArray[Any]:
    """Draw one effect of a model.

    A number is a curve above the density of the rows, with jumps where it jumps; a category is bars
    with their share of the rows, the largest effect on top unless they have an order. Two numbers
    are filled contours, where lines along the edges show the middle 90 % and the middle half of the
    rows; a number and a category a curve per category (the largest 12 in colour); two categories
    tiles with numbers. After a refit, a curve has a band and bars have lines that hold the effect
    with a probability of 95 % at each value, with the selected terms as given. An effect of three
    or more variables has a panel for each of up to three values of its third variable; further
    variables are held at the value that the title tells. Axes on which a few rows lie far out are
    cut off, and say so.

    Parameters
    ----------
    model : fitted estimator or dict
        The model, or what its ``summary()`` returned.
    effect : int, str or tuple of str
        Position (the largest share is 0), name, or variables of the effect, in any order.
    output : str or int, optional
        The class to draw, by label or position, for models of three or more classes. All of them by
        default: a line per class, or a panel per class where there are two or more variables.
    ax : matplotlib.axes.Axes, optional
        Where to draw. Several panels take its place. A new figure by default.

    Returns
    -------
    Axes or ndarray of Axes
        The axes. Where several panels are needed, an array of them: one per class, one per value
        of the third variable, or of shape (classes, values).

    Raises
    ------
    ValueError
        If there is no such effect (the message names the nearest ones) or output, or if the model
        was fitted on a graph, whose effects have no columns.
    ImportError
        If matplotlib is not installed.
    """
    summary = as_summary(model)
    chosen = find_effect(summary, effect)
    view = EffectView.of(summary, chosen)
    outputs = find_outputs(summary, output)
    groups = [outputs] if len(view.axes) == 1 else [[k] for k in outputs]
    slices = list(range(view.slices))
    rows, columns = _shape(len(groups), len(slices))
    host = axes_or_new(ax, *_figure_size(view, rows, columns))
    share = f"  ({percent(chosen['share'])})"
    if len(groups) * len(slices) == 1:
        draw_effect(host, summary, view, groups[0], 0)
        title(host, chosen["name"], tail=share, kept=view.kept(0))
        return host
    grid = panels_in(host, rows, columns)
    panels = np.empty((len(groups), len(slices)), dtype=object)
    flat = grid.ravel()
    for place in flat[panels.size :]:
        place.remove()
    panels[...] = flat[: panels.size].reshape(panels.shape)
    _draw_panels(panels, summary, view, groups, min(columns, panels.size))
    return panels[:, 0] if len(slices) == 1 else panels[0] if len(groups) == 1 else panels


def _shape(groups: int, slices: int) -> tuple[int, int]:
    """Return rows and columns of panels: a column per slice, or a few classes side by side."""
    if slices > 1:
        return groups, slices
    across = min(groups, _ACROSS)
    return -(-groups // across), across


def _figure_size(view: EffectView, rows: int, columns: int) -> tuple[float, float]:
    """Return the size of a figure for all panels, in inches."""
    if rows * columns > 1:
        return min(14.0, 1.0 + 3.2 * columns), min(24.0, 0.8 + 2.8 * rows)
    counts = [0 if is_number else len(axis["values"]) for is_number, axis in _by_kind(view)]
    if view.numbers == [False]:
        several = 2 if len(view.values) > 1 else 0
        return 6.4, min(9.0, 1.6 + 0.24 * (max(counts) + several))
    if len(view.axes) > 1 and not any(view.numbers):
        return min(12.0, 3.6 + 0.5 * counts[1]), min(10.0, 2.4 + 0.3 * counts[0])
    return 6.4, 4.4


def _by_kind(view: EffectView) -> list[tuple[bool, Mapping[str, Any]]]:
    return list(zip(view.numbers, view.axes, strict=True))


def _draw_panels(
    panels: NDArray[Any],
    summary: Summary,
    view: EffectView,
    groups: Sequence[Sequence[int]],
    across: int,
) -> None:
    """Draw a panel per group of outputs and slice, all on one scale."""
    everything = [k for group in groups for k in group]
    scale = _scale(summary, view, view.values[everything])
    drawn = None
    for number, (i, j) in enumerate(np.ndindex(*panels.shape)):
        ax: Any = panels[i, j]
        drawn = draw_effect(ax, summary, view, groups[i], j, scale=scale, bar=False)
        first = number == 0
        title(
            ax,
            view.effect["name"] if first else None,
            tail=f"  ({percent(view.effect['share'])})" if first else "",
            below=output_name(summary, groups[i][0]) if len(groups) > 1 else "",
            kept=view.kept(j),
            above=across,
        )
    if drawn is not None:
        colour_bar(drawn, list(panels.ravel()), effect_words(summary, everything))


def _scale(summary: Summary, view: EffectView, values: NDArray[np.float64]) -> Any:
    """Return what panels share: the range of curves, or the reach of colours."""
    if len(view.axes) == 1 or view.numbers[:2] == [True, False]:
        return limits_of(values)
    known = [column_of(summary, axis["variable"]) for axis in view.axes[:2]]
    if values.ndim > 3:
        values = np.moveaxis(values, -1, 1)
    return surface_reach(values, view.axes[:2], known)


def draw_effect(
    ax: Axes,
    summary: Summary,
    view: EffectView,
    outputs: Sequence[int],
    which: int,
    *,
    scale: Any = None,
    bar: bool = True,
    labelled: bool = True,
    named: bool = True,
) -> Any:
    """Draw one panel of an effect.

    Parameters
    ----------
    ax : Axes
        Where to draw.
    summary, view
        The model and the effect.
    outputs : sequence of int
        The outputs in this panel; one, if there are two or more axes.
    which : int
        The slice along the third axis.
    scale : object, optional
        What panels share: the range of curves, or the reach of colours.
    bar : bool, default=True
        Whether surfaces and tiles get a colour bar.
    labelled : bool, default=True
        Whether the axis with the effect, or the colour bar, has a label.
    named : bool, default=True
        Whether outputs have names in the panel; False if a legend elsewhere has them.

    Returns
    -------
    object
        What a colour bar is made of, or None for curves and bars.
    """
    values = view.slice(outputs, which)
    first, *others = view.axes
    known = [column_of(summary, axis["variable"]) for axis in view.axes[:2]]
    words = effect_words(summary, outputs) if labelled else None
    names = [summary["outputs"][k] for k in outputs] if named else None
    if not others and view.numbers == [True]:
        draw_curves(
            ax,
            first["values"],
            values,
            names,
            column=known[0],
            limits=scale,
            band=view.band(outputs),
            xlabel=first["variable"],
            ylabel=words,
        )
        return None
    if not others:
        draw_bars(
            ax,
            first,
            values,
            names,
            band=view.band(outputs),
            xlabel=words,
        )
        return None
    if view.numbers[:2] == [True, False]:
        shares = others[0]["shares"]
        draw_curves(
            ax,
            first["values"],
            values[0].T,
            others[0]["names"],
            column=known[0],
            weights=shares if shares.any() else None,
            limits=scale,
            xlabel=first["variable"],
            ylabel=words,
        )
        return None
    reach = surface_reach(values, view.axes[:2], known) if scale is None else scale
    if all(view.numbers[:2]):
        drawn = draw_surface(ax, view.axes[:2], values[0], known, reach)
    else:
        drawn = draw_tiles(ax, view.axes[:2], values[0], reach)
    if bar:
        colour_bar(drawn, [ax], words)
    return drawn


def drawable(summary: Summary) -> list[Mapping[str, Any]]:
    """Return the effects that have a view, the largest first."""
    return [effect for effect in summary["effects"] if effect.get("view") is not None]


def plot_effects(model: object, *, max_effects: int = 12, output: object = None) -> Figure:
    """Draw the largest effects of a model side by side, a panel each.

    Where an effect would need several panels (see :func:`plot_effect`), the class on which it is
    largest is drawn, and the slice where it is; the title tells which.

    Parameters
    ----------
    model : fitted estimator or dict
        The model, or what its ``summary()`` returned.
    max_effects : int, default=12
        Number of effects at most.
    output : str or int, optional
        The class to draw, for models of three or more classes.

    Returns
    -------
    matplotlib.figure.Figure
        A new figure.

    Raises
    ------
    ValueError
        If there is nothing to draw: no effect, or a model that was fitted on a graph.
    ImportError
        If matplotlib is not installed.
    """
    check_integer("max_effects", max_effects, 1)
    summary = as_summary(model)
    outputs = find_outputs(summary, output)
    find_effect(summary, 0)
    found = drawable(summary)
    if not found:
        EffectView.of(summary, summary["effects"][0])
    shown = found[:max_effects]
    across = min(_ACROSS, len(shown))
    down = -(-len(shown) // across)
    figure = new_figure(3.9 * across, 0.5 + 2.9 * down)
    shared = shares_legend(outputs)
    for k, effect in enumerate(shown):
        panel(figure.add_subplot(down, across, k + 1), summary, effect, outputs, named=not shared)
    whole = len(summary["effects"])
    if len(shown) < whole:
        covered = percent(sum(effect["share"] for effect in shown))
        words = f"The {len(shown)} largest of {whole} effects ({covered} of all shares)"
    else:
        words = "The effect" if whole == 1 else f"All {whole} effects"
    words += effect_words(summary, outputs).removeprefix("effect")
    size = font_size(1.1)
    points = 0.95 * 72.0 * float(figure.get_size_inches()[0])
    figure.suptitle(wrap(words, points, size), fontsize=size, x=0.01, ha="left", **PLAIN)
    if shared:
        class_legend(figure, summary, outputs, points, loc="outside lower left")
    return figure


def shares_legend(outputs: Sequence[int]) -> bool:
    """Return whether one legend for all panels can tell the outputs apart."""
    return 1 < len(outputs) <= len(LINE_STYLES)


def class_legend(
    where: Any, summary: Summary, outputs: Sequence[int], points: float, **place: Any
) -> None:
    """Draw one legend of the outputs for all panels, on a figure or axes."""
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=colour, ls=dash, marker=mark, markersize=5)
        for (colour, dash), mark, _ in zip(LINE_STYLES, MARKS, outputs, strict=False)
    ]
    name_legend(where, handles, [summary["outputs"][k] for k in outputs], points, **place)


def panel(
    ax: Axes,
    summary: Summary,
    effect: Mapping[str, Any],
    outputs: Sequence[int],
    *,
    named: bool = True,
) -> None:
    """Draw an effect in one panel, whatever it is, with a title that tells what is left out."""
    view = EffectView.of(summary, effect)
    words = ""
    if len(view.axes) > 1 and len(outputs) > 1:
        sizes = [np.nanmax(np.abs(view.values[k])) for k in outputs]
        outputs = [outputs[int(np.argmax(sizes))]]
        words = output_name(summary, outputs[0])
    sizes = [np.nanmax(np.abs(view.slice(outputs, j))) for j in range(view.slices)]
    which = int(np.argmax(sizes))
    draw_effect(ax, summary, view, outputs, which, labelled=False, named=named)
    tail = f"  ({percent(effect['share'])})"
    title(ax, effect["name"], tail=tail, below=words, kept=view.kept(which), scale=0.95)
