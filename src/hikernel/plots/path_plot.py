"""The path over alpha: cross-validated errors, or the share explained, and how many effects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hikernel.plots.canvas import FAINT, INK, LINE_STYLES, MUTED, axes_or_new, bare, font_size, room
from hikernel.plots.lettering import label_axes, legend_above, room_above, text_width
from hikernel.plots.lookup import Summary, as_summary, floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

__all__ = ["plot_path"]

_MARKS = "osD^vP"


def plot_path(model: object, ax: Axes | None = None) -> Axes:
    """Draw the path over alpha: the error of each refit, the number of effects, and the choice.

    The cross-validated error has a bar of a standard error to either side. A model that was not
    cross-validated shows the share of the loss that is explained on the training rows in its place.
    Alpha falls from left to right, so that models grow. A dashed line and a ring mark the chosen
    alpha and refit; the grey steps, with an axis at the right, are the number of effects
    of the convex problem, before a refit.

    Parameters
    ----------
    model : fitted estimator or dict
        The model, or what its ``summary()`` returned.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib.axes.Axes
        The axes of the errors; those of the numbers of effects are a twin of it.

    Raises
    ------
    ValueError
        If the model knows no path, because it was fitted at one alpha.
    ImportError
        If matplotlib is not installed.
    """
    summary = as_summary(model)
    path: Sequence[Mapping[str, Any]] = summary.get("path") or []
    if not path:
        raise ValueError(
            "This model has no path over alpha, as it was fitted at one alpha; "
            'fit HKLRegressorCV or HKLClassifierCV, or an estimator with alpha="auto".'
        )
    ax = axes_or_new(ax, 6.4, 4.0)
    alphas = floats([point["alpha"] for point in path])
    ax.set_xscale("log")
    if len(alphas) > 1:
        ax.set_xlim(alphas.max() * 1.15, alphas.min() / 1.15)
    bare(ax)
    counted = "number of effects" if summary.get("refit") is None else "effects before the refit"
    _count_axis(ax, alphas, floats([point["n_effects"] for point in path]), counted)
    refits = list(dict.fromkeys(refit for point in path for refit in point["cv"]))
    if refits:
        handles, names = _errors(ax, summary, path, alphas, refits)
        label = _error_words(ax, summary)
    else:
        handles, names = _explained(ax, path, alphas)
        label = "explained (training)"
    label_axes(ax, "alpha (smaller: more effects)", label)
    below = room_above(ax, names)
    legend_above(ax, handles, names)
    for point in path:
        if point["chosen"]:
            dashes = (0, (4, 3))
            ax.axvline(point["alpha"], ymax=below, color=INK, linewidth=0.9, linestyle=dashes)
    return ax


def _error_words(ax: Axes, summary: Summary) -> str:
    """Return the metric, or fewer words where they would be cut."""
    quality = summary.get("quality") or {}
    metric = quality.get("metric") or "error"
    if quality.get("larger_is_better"):
        metric = f"minus {metric}"
    for words in (f"{metric}, cross-validated", f"CV {metric}"):
        if text_width(words, font_size(0.85)) <= room(ax)[1]:
            return words
    return "CV error"


def _errors(
    ax: Axes,
    summary: Summary,
    path: Sequence[Mapping[str, Any]],
    alphas: NDArray[np.float64],
    refits: Sequence[str],
) -> tuple[list[Any], list[str]]:
    """Draw the error of each refit, and mark the chosen one."""
    handles: list[Any] = []
    chosen = [k for k, point in enumerate(path) if point["chosen"]]
    for k, refit in enumerate(refits):
        known = [point["cv"].get(refit) or {} for point in path]
        means = floats([one.get("mean") for one in known])
        errors = floats([one.get("se") for one in known])
        colour, dash = LINE_STYLES[k % len(LINE_STYLES)]
        bars = ax.errorbar(
            alphas,
            means,
            np.nan_to_num(errors),
            color=colour,
            linestyle=dash,
            marker=_MARKS[k % len(_MARKS)],
            markersize=3.5,
            linewidth=1.3,
            elinewidth=0.7,
            zorder=3,
        )
        handles.append(bars.lines[0])
        if refit == str(summary.get("refit")):
            _mark(ax, alphas[chosen], means[chosen])
    return handles, [_refit_words(refit) for refit in refits]


def _refit_words(refit: str) -> str:
    return "no refit" if refit == "None" else f"refit: {refit}"


def _explained(
    ax: Axes, path: Sequence[Mapping[str, Any]], alphas: NDArray[np.float64]
) -> tuple[list[Any], list[str]]:
    """Draw the share of the loss that is explained."""
    shares = floats([point["explained"] for point in path])
    colour, _ = LINE_STYLES[0]
    (line,) = ax.plot(alphas, shares, color=colour, marker="o", markersize=3.5, zorder=3)
    chosen = [k for k, point in enumerate(path) if point["chosen"]]
    _mark(ax, alphas[chosen], shares[chosen])
    return [line], ["explained"]


def _mark(ax: Axes, alphas: NDArray[np.float64], heights: NDArray[np.float64]) -> None:
    """Mark the chosen point."""
    ax.plot(
        alphas,
        heights,
        linestyle="",
        marker="o",
        markersize=11,
        markerfacecolor="none",
        markeredgecolor=INK,
        markeredgewidth=1.5,
        zorder=5,
        label="chosen",
    )


def _count_axis(
    ax: Axes, alphas: NDArray[np.float64], counts: NDArray[np.float64], label: str
) -> None:
    """Draw the number of effects as grey steps, with an axis of its own at the right."""
    from matplotlib.ticker import MaxNLocator

    other = ax.twinx()
    other.step(alphas, counts, where="mid", color=FAINT, linewidth=1.6, label="effects")
    top = float(np.nanmax(counts)) if np.isfinite(counts).any() else 1.0
    other.set_ylim(0.0, 1.3 * max(top, 1.0))
    other.yaxis.set_major_locator(MaxNLocator(nbins=5, integer=True))
    bare(other, keep="right bottom")
    other.tick_params(axis="y", colors=MUTED)
    other.spines["right"].set_color(FAINT)
    other.set_ylabel(label, fontsize=font_size(0.85), color=MUTED)
    # Errors stand in front of the steps.
    ax.set_zorder(other.get_zorder() + 1)
    ax.patch.set_visible(False)
