"""Text in pictures: names of any kind as one line of plain text that fits its room.

Names come from data: they are never read as mathtext or TeX, control characters are taken out, and
what is too long loses its middle. Numbers and shares are written here, too.
"""

from __future__ import annotations

import math
import unicodedata
import warnings
from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Final

from hikernel.plots.canvas import INK, font_size, room

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "PLAIN",
    "clean",
    "fit",
    "fit_all",
    "label_axes",
    "legend_above",
    "legend_columns",
    "name_legend",
    "number",
    "percent",
    "room_above",
    "spread",
    "text_width",
    "title",
    "wrap",
    "write_ticks",
]

PLAIN: Final[dict[str, Any]] = {"parse_math": False, "usetex": False}
"""Arguments of every text that holds a name: a dollar sign is a dollar sign."""
_LONGEST: Final = 4000
_ELLIPSIS: Final = "…"
_TIMES: Final = " * "


def clean(name: object) -> str:
    """Return a name as one line without control characters; a pair of quotes if it is empty."""
    text = "".join(map(_printable, str(name)[: 2 * _LONGEST]))
    text = " ".join(text.split())
    if len(text) > _LONGEST:
        text = text[: _LONGEST // 2] + _ELLIPSIS + text[-_LONGEST // 2 :]
    return text or '""'


def _printable(character: str) -> str:
    kind = unicodedata.category(character)
    if kind in ("Cc", "Zl", "Zp", "Zs"):
        return " "
    if kind == "Cf":  # invisible, or turns the direction of what follows
        return ""
    return "\ufffd" if kind in ("Cs", "Co", "Cn") else character


def text_width(text: str, size: float) -> float:
    """Return the width of a line of text in points."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of missing glyphs: drawing says so once more
        width, _, _ = text_to_path.get_text_width_height_descent(
            text, FontProperties(size=size), ismath=False
        )
    return float(width)


def fit(name: object, points: float, size: float) -> str:
    """Return a name that is at most ``points`` wide, without its middle if need be.

    Of a product ``a * b``, every factor loses its own middle, so that none of them disappears.
    """
    text = clean(name)
    if text_width(text, size) <= points:
        return text
    factors = text.split(_TIMES)
    if len(factors) > 1:
        between = (len(factors) - 1) * text_width(_TIMES, size)
        widths = [text_width(factor, size) for factor in factors]
        shares = _fair(widths, points - between)
        cut = [share for share, width in zip(shares, widths, strict=True) if share < width]
        if min(cut) >= 2.5 * size:
            parts = zip(factors, shares, strict=True)
            return _TIMES.join(_cut(factor, share, size) for factor, share in parts)
    return _cut(text, points, size)


def fit_all(names: Iterable[object], points: float, size: float) -> list[str]:
    """Return names that fit, no two of them the same: what they share is left out first.

    Names that still look alike are numbered.
    """
    texts = [clean(name) for name in names]
    labels = [fit(text, points, size) for text in texts]
    for same in _alike(labels):
        letters = zip(*(texts[i] for i in same), strict=False)
        front = sum(1 for _ in takewhile(lambda row: len(set(row)) == 1, letters))
        for i in same:
            labels[i] = _from(texts[i], front, points, size)
    for same in _alike(labels):
        for count, i in enumerate(same, 1):
            tail = f" ({count})"
            labels[i] = fit(texts[i], points - text_width(tail, size), size) + tail
    return labels


def _alike(labels: Sequence[str]) -> list[list[int]]:
    """Return the positions of labels that are the same."""
    places: dict[str, list[int]] = {}
    for i, label in enumerate(labels):
        places.setdefault(label, []).append(i)
    return [same for same in places.values() if len(same) > 1]


def _from(text: str, front: int, points: float, size: float) -> str:
    """Return a text from a little before some place on, as much as fits, and its start."""
    head = text[:3] + _ELLIPSIS if front > 4 else text[:front]
    rest = text[front:]
    if text_width(head + rest, size) <= points:
        return head + rest
    for kept in range(len(rest) - 1, 0, -1):
        if text_width(head + rest[:kept] + _ELLIPSIS, size) <= points:
            return head + rest[:kept] + _ELLIPSIS
    return _cut(text, points, size)


def _fair(wanted: Sequence[float], points: float) -> list[float]:
    """Return what each gets of some room: the short all they want, the long ones equal parts."""
    out = [0.0] * len(wanted)
    left, todo = points, len(wanted)
    for i in sorted(range(len(wanted)), key=lambda i: wanted[i]):
        out[i] = min(wanted[i], left / todo)
        left, todo = left - out[i], todo - 1
    return out


def _cut(text: str, points: float, size: float) -> str:
    if text_width(text, size) <= points:
        return text
    low, high = 2, len(text) - 1
    while low < high:  # the largest number of characters that fits
        middle = (low + high + 1) // 2
        if text_width(_without_middle(text, middle), size) <= points:
            low = middle
        else:
            high = middle - 1
    return _without_middle(text, low)


def _without_middle(text: str, kept: int) -> str:
    front = (kept + 1) // 2
    return text[:front].rstrip() + _ELLIPSIS + text[len(text) - (kept - front) :].lstrip()


def wrap(text: str, points: float, size: float, max_lines: int = 3) -> str:
    """Return a text broken into lines that fit; what is beyond the last line is left out."""
    lines: list[str] = []
    line = ""
    words = clean(text).split(" ")
    for i, word in enumerate(words):
        longer = f"{line} {word}".strip()
        if not line or text_width(longer, size) <= points:
            line = longer
            continue
        if len(lines) == max_lines - 1:
            line = f"{line} {_ELLIPSIS}" if i < len(words) else line
            break
        lines.append(line)
        line = word
    return "\n".join(fit(part, points, size) for part in [*lines, line])


def title(
    ax: Axes,
    name: object,
    *,
    tail: str = "",
    below: str = "",
    kept: Sequence[tuple[str, str]] = (),
    scale: float = 1.0,
    above: int = 0,
) -> None:
    """Write a title above axes, at the left.

    Parameters
    ----------
    ax : Axes
        Below the title.
    name, tail : object, str
        The first line, or two lines for a long product; the name is cut where there is no room,
        its tail never. None takes no line.
    below : str, default=""
        The start of the next line.
    kept : sequence of (name, tail), optional
        Variables and what is said of them, on that line as well; a tail is never cut.
    scale : float, default=1
        Size of the font, relative to the user's.
    above : int, default=0
        If positive, the name is apart from the title and stands above so many panels side by side.
    """
    size = font_size(scale)
    points = 1.1 * room(ax)[0]  # there is always something between two panels
    line = _second_line(below, kept, points, size)
    head = _headline(clean(name), tail, max(above, 1) * points, size) if name is not None else ""
    if above and head:
        style: dict[str, Any] = {"fontsize": size, "color": INK, **PLAIN}
        place: dict[str, Any] = {
            "xy": (0.0, 1.0),
            "xycoords": "axes fraction",
            "xytext": (0.0, 6.0 + 1.5 * size),
            "textcoords": "offset points",
        }
        # The layout has to make room for its height, but not for its width.
        ax.annotate(head, **place, **style).set_in_layout(False)
        ax.annotate("\n".join(" " for _ in head.split("\n")), **place, **style)
        head = ""
    text = "\n".join(part for part in (head, line) if part)
    ax.set_title(text, loc="left", fontsize=size, color=INK, **PLAIN)


def _second_line(below: str, kept: Sequence[tuple[str, str]], points: float, size: float) -> str:
    """Return a text and ``name = value`` pairs in one line; values are never cut."""
    parts = ([(below, "")] if below else []) + list(kept)
    if not parts:
        return ""
    tails = sum(text_width(tail, size) for _, tail in parts)
    between = (len(parts) - 1) * text_width(", ", size)
    wanted = [text_width(clean(name), size) for name, _ in parts]
    shares = _fair(wanted, max(points - tails - between, 2.5 * size * len(parts)))
    names = [_cut(clean(name), share, size) for (name, _), share in zip(parts, shares, strict=True)]
    return ", ".join(name + tail for name, (_, tail) in zip(names, parts, strict=True))


def _headline(name: str, tail: str, points: float, size: float) -> str:
    """Return a name and its tail; a product that is too long gets two lines."""
    factors = name.split(_TIMES)
    if text_width(name + tail, size) <= points or len(factors) == 1:
        return fit(name, points - text_width(tail, size), size) + tail
    half = (len(factors) + 1) // 2
    front = fit(_TIMES.join(factors[:half]), points - text_width(" *", size), size)
    back = fit(_TIMES.join(factors[half:]), points - text_width(tail, size), size)
    return f"{front} *\n{back}{tail}"


def label_axes(
    ax: Axes,
    xlabel: object = None,
    ylabel: object = None,
    *,
    note: str = "",
    ynote: str = "",
) -> None:
    """Write labels at the axes, unless they are None; notes, at their ends, are not cut.

    A note that would leave too little of the name has a line of its own.
    """
    size = font_size(0.85)
    width, height = room(ax)
    if xlabel is not None:
        ax.set_xlabel(_noted(xlabel, note, width, size), fontsize=size, color=INK, **PLAIN)
    if ylabel is not None:
        ax.set_ylabel(_noted(ylabel, ynote, height, size), fontsize=size, color=INK, **PLAIN)


def _noted(name: object, note: str, points: float, size: float) -> str:
    if not note:
        return fit(name, points, size)
    left = points - text_width(f" ({note})", size)
    if left >= min(text_width(clean(name), size), 0.5 * points):
        return f"{fit(name, left, size)} ({note})"
    return f"{fit(name, points, size)}\n({wrap(note, points, size, 2)})"


def legend_columns(names: Sequence[object], width: float, size: float) -> int:
    """Return how many entries of a legend fit side by side."""
    widths = [text_width(fit(name, 0.45 * width, size), size) + 3.2 * size for name in names]
    for columns in range(len(names), 1, -1):
        rows = -(-len(names) // columns)  # a legend is filled column by column
        taken = sum(max(widths[k : k + rows]) for k in range(0, len(names), rows))
        if taken <= 0.82 * width:  # the layout may still narrow the axes
            return columns
    return 1


def room_above(ax: Axes, names: Sequence[object]) -> float:
    """Leave room for a legend above what is drawn; return the share of the axes below it."""
    width, height = room(ax)
    size = font_size(0.85)
    rows = -(-len(names) // legend_columns(names, width, size))
    taken = min(0.5, (1.5 * rows + 0.7) * size / height)
    to_axis = ax.transScale.transform
    low, high = (float(to_axis((1.0, y))[1]) for y in ax.get_ylim())
    top = low + (high - low) / (1.0 - taken)
    ax.set_ylim(top=float(ax.transScale.inverted().transform((1.0, top))[1]))
    return 1.0 - taken


def legend_above(ax: Axes, handles: Sequence[Any], names: Sequence[object]) -> None:
    """Draw a legend at the upper edge, inside of the axes."""
    legend = name_legend(ax, handles, names, room(ax)[0], loc="upper left", borderaxespad=0.0)
    legend.set_in_layout(False)  # it is inside, and must not shrink the axes


def name_legend(
    where: Any, handles: Sequence[Any], names: Sequence[object], points: float, **place: Any
) -> Any:
    """Draw a legend without a frame, on axes or on a figure, at most ``points`` wide.

    Names are put in after the legend was made, which would leave out those with a ``_`` in front.
    """
    size = font_size(0.85)
    legend = where.legend(
        handles,
        [str(k) for k in range(len(names))],
        ncols=legend_columns(names, points, size),
        fontsize=size,
        frameon=False,
        borderpad=0.0,
        handlelength=1.2,
        handletextpad=0.4,
        columnspacing=1.0,
        **place,
    )
    for text, name in zip(legend.get_texts(), fit_all(names, 0.45 * points, size), strict=True):
        text.set(text=name, **PLAIN)
    return legend


def write_ticks(
    ax: Axes,
    which: str,
    places: Sequence[float],
    names: Iterable[object],
    *,
    points: float,
    size: float,
    rotation: float = 0.0,
) -> None:
    """Write names at places of the x or y axis, each at most ``points`` long."""
    labels = fit_all(names, points, size)
    axis = ax.yaxis if which == "y" else ax.xaxis
    extra: dict[str, Any] = {"rotation": rotation} if rotation else {}
    axis.set_ticks(list(places), labels=labels, fontsize=size, **PLAIN, **extra)


def spread(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Return places as near to those wanted as they can be, ``gap`` apart, within limits.

    The order is kept. Least squares, by pooling adjacent violators.
    """
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    pools: list[list[float]] = []  # [sum, count] of wanted places, less the gaps below them
    for rank, i in enumerate(order):
        pools.append([wanted[i] - rank * gap, 1.0])
        while len(pools) > 1 and pools[-2][0] / pools[-2][1] > pools[-1][0] / pools[-1][1]:
            total, count = pools.pop()
            pools[-1] = [pools[-1][0] + total, pools[-1][1] + count]
    flat = [total / count for total, count in pools for _ in range(int(count))]
    last = max(low, high - (len(order) - 1) * gap)
    out = [0.0] * len(order)
    for rank, (i, place) in enumerate(zip(order, flat, strict=True)):
        out[i] = min(max(place, low), last) + rank * gap
    return out


def number(value: float, *, like: float | None = None) -> str:
    """Return a number with about three digits that count, or as many as one like another has."""
    if not math.isfinite(value):
        return ""
    size = abs(value if like is None else like)
    if size == 0.0:
        return "0"
    if 1e-3 <= size < 1e7:
        digits = max(0, (2 if like is None else 1) - math.floor(math.log10(size)))
        text = f"{value:,.{digits}f}"
        text = text.rstrip("0").rstrip(".") if "." in text and like is None else text
    else:
        text = f"{value:.2e}".replace("e+0", "e").replace("e-0", "e-").replace("e+", "e")
    return text.replace("-", "\N{MINUS SIGN}")


def percent(share: float) -> str:
    """Return a share in percent."""
    if 0.0 < share < 0.0005:
        return "< 0.1 %"
    return f"{100.0 * share:.1f} %" if 0.0 < share < 0.0995 else f"{100.0 * share:.0f} %"
