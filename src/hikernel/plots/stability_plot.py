"""How often each term or variable was selected on subsamples."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hikernel.checks import check_choice, check_integer
from hikernel.plots.canvas import BLUE, FAINT, VERMILLION, axes_or_new, bare, font_size, room
from hikernel.plots.lettering import label_axes, percent, write_ticks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_stability"]


def plot_stability(
    stability: Any, ax: Axes | None = None, *, by: str = "term", max_items: int = 20
) -> Axes:
    """Draw the selection frequencies of ``hikernel.stability_selection``.

    The most frequent on top; bars that reach the threshold, a dashed line, are coloured.

    Parameters
    ----------
    stability : StabilitySelection
        What ``stability_selection`` returned: an object with tables ``terms`` and ``variables``
        (columns "term" or "variable", and "frequency") and a ``threshold``.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.
    by : {"term", "variable"}, default="term"
        What has a bar.
    max_items : int, default=20
        Number of bars at most. Fewer are drawn where ``ax`` has no room for them.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

    Raises
    ------
    TypeError
        If ``stability`` is something else.
    ValueError
        If nothing was ever selected.
    ImportError
        If matplotlib is not installed.
    """
    check_choice("by", by, ("term", "variable"))
    check_integer("max_items", max_items, 1)
    if not all(hasattr(stability, name) for name in ("terms", "variables", "threshold")):
        raise TypeError(
            "plot_stability draws what hikernel.stability_selection returns, "
            f"got {type(stability).__name__}."
        )
    table = stability.terms if by == "term" else stability.variables
    pairs = list(zip(table[by], table["frequency"], strict=True))
    ranked = sorted(pairs, key=lambda pair: -pair[1])
    found = [pair for pair in ranked if pair[1] > 0]
    if not found:
        raise ValueError(
            "No subsample selected anything, so there are no frequencies to draw; "
            "use a smaller alpha."
        )
    count = min(max_items, len(found))
    ax = axes_or_new(ax, 6.4, 1.2 + 0.26 * count)
    size = font_size(0.85)
    most = max(1, int(room(ax)[1] / (1.15 * size)) - 1)
    shown = found[: min(count, most)]
    threshold = float(stability.threshold)
    places = [float(len(shown) - 1 - i) for i in range(len(shown))]
    frequencies = [float(frequency) for _, frequency in shown]
    colours = [BLUE if frequency >= threshold else FAINT for frequency in frequencies]
    ax.barh(places, frequencies, height=0.72, color=colours)
    ax.axvline(threshold, color=VERMILLION, linewidth=1.2, linestyle=(0, (4, 3)))
    ax.set(xlim=(0.0, 1.0), ylim=(-0.6, len(shown) - 0.4))
    bare(ax)
    ax.tick_params(axis="y", length=0)
    write_ticks(ax, "y", places, [name for name, _ in shown], points=0.6 * room(ax)[0], size=size)
    label = f"share of {stability.n_subsamples} subsamples; threshold {percent(threshold)}"
    if len(found) > len(shown):
        label += f"; {len(found) - len(shown)} rarer ones are not shown"
    label_axes(ax, label)
    return ax
