"""What a reader sees of a figure: its texts, where they are, and which of them overlap."""

from __future__ import annotations

import itertools

import matplotlib.pyplot as plt
from matplotlib.text import Text


def figure_of(drawn):
    """The figure of whatever a plot function returned."""
    if hasattr(drawn, "savefig"):
        return drawn
    return drawn.figure if hasattr(drawn, "figure") else drawn.ravel()[0].figure


def visible_texts(figure):
    """Every text that is drawn, with its box in pixels."""
    figure.canvas.draw()
    hidden = set()
    for ax in figure.axes:
        for which in ("x", "y"):
            axis = getattr(ax, f"{which}axis")
            low, high = sorted(getattr(ax, f"get_{which}lim")())
            slack = 1e-9 * (high - low)
            for tick in [*axis.get_major_ticks(), *axis.get_minor_ticks()]:
                inside = low - slack <= tick.get_loc() <= high + slack
                if not (ax.axison and axis.get_visible() and inside):
                    hidden |= {tick.label1, tick.label2}
            if not ax.axison:
                hidden |= {axis.label, axis.offsetText}
    texts = [
        text
        for text in figure.findobj(Text)
        if text.get_visible() and text.get_text().strip() and text not in hidden
    ]
    # The box of an annotation would have its arrow in it.
    return [(text, Text.get_window_extent(text)) for text in texts]


def readable(drawn):
    """Fail if texts lie on each other or are cut off, and close the figure, which is drawn once."""
    figure = figure_of(drawn)
    texts = visible_texts(figure)
    assert _overlaps(texts) == []
    assert _cut_off(texts, figure) == []
    plt.close(figure)


def _overlaps(texts, slack=1.0):
    """Pairs of texts that lie on each other by more than some pixels."""
    found = []
    for (a, box), (b, other) in itertools.combinations(texts, 2):
        width = min(box.x1, other.x1) - max(box.x0, other.x0)
        height = min(box.y1, other.y1) - max(box.y0, other.y0)
        if width > slack and height > slack + 0.15 * min(box.height, other.height):
            found.append((a.get_text(), b.get_text()))
    return found


def _cut_off(texts, figure, slack=1.0):
    """Texts that reach beyond the figure."""
    whole = figure.bbox
    return [
        text.get_text()
        for text, box in texts
        if box.x0 < whole.x0 - slack
        or box.x1 > whole.x1 + slack
        or box.y0 < whole.y0 - slack
        or box.y1 > whole.y1 + slack
    ]


def close(drawn):
    plt.close(figure_of(drawn))
