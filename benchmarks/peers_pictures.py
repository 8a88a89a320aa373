"""The pictures of docs/peers.md: errors and times beside ours, and which true effects are found."""

from __future__ import annotations

from pathlib import Path as FilePath
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator
from peers import OURS

__all__ = ["draw_errors", "draw_recovery", "draw_times"]


STYLE = {
    "EBM": ("#d95f02", "s"),
    "LightGBM": ("#1b9e77", "^"),
    "HistGB": ("#66a61e", "v"),
    "pyGAM": ("#7570b3", "D"),
    "skglm": ("#e6ab02", "P"),
    "adelie": ("#a6761d", "X"),
    "GP": ("#e7298a", "o"),
    "kernel ridge": ("#1f78b4", "h"),
    "linear": ("#999999", "d"),
    OURS: ("#000000", "o"),
}
"""Colour and mark of each method."""
LEAST, MOST = 0.4, 8.0
"""Ratios beyond are drawn at the edge."""


def draw_errors(errors: pd.DataFrame, groups: dict[str, Any], file: FilePath) -> None:
    """Draw each method's error over ours, a line per data set."""
    names = [name for group in groups.values() for name in group if name in errors.index]
    height = {name: -i for i, name in enumerate(names)}
    figure, axes = plt.subplots(figsize=(8.5, 0.27 * len(names) + 1.6), layout="constrained")
    for name in names:
        axes.axhline(height[name], color="0.92", linewidth=0.8, zorder=0)
    first = 0
    for group in groups.values():
        first -= sum(name in height for name in group)
        axes.axhline(first + 0.5, color="0.6", linewidth=0.8, zorder=0)
    axes.axvline(1.0, color="black", linewidth=1.4, zorder=1)
    # A little above one another, so that equal errors do not hide each other.
    shifts = dict(zip(STYLE, np.linspace(0.24, -0.24, len(STYLE)), strict=True))
    for method, (colour, mark) in STYLE.items():
        if method == OURS or method not in errors:
            continue
        part = errors.loc[names, method].dropna()
        axes.scatter(
            part.clip(LEAST, MOST),
            [height[name] + shifts[method] for name in part.index],
            color=colour,
            marker=mark,
            s=30,
            alpha=0.85,
            label=method,
            zorder=2,
        )
    axes.set_xscale("log")
    axes.set_xlim(LEAST * 0.95, MOST * 1.05)
    ticks = [0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 8.0]
    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}" + "+" * int(x >= MOST)))
    axes.set_yticks(list(height.values()), list(height))
    axes.set_ylim(-len(names) + 0.4, 0.6)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel("error over HKL's: left of the line the peer is ahead, right of it HKL")
    axes.spines[["top", "right", "left"]].set_visible(False)
    figure.legend(loc="outside upper center", ncols=5, frameon=False)
    _save(figure, file)


def draw_times(errors: pd.DataFrame, rows: pd.DataFrame, file: FilePath) -> None:
    """Draw the median error over ours against the median seconds of a fit."""
    figure, axes = plt.subplots(figsize=(7.0, 4.2), layout="constrained")
    axes.axhline(1.0, color="0.8", linewidth=1.0, zorder=0)
    for method, (colour, mark) in STYLE.items():
        if method not in errors:
            continue
        ratio = float(errors[method].median())
        time = float(rows.loc[rows["method"] == method, "seconds"].median())
        axes.scatter(time, ratio, color=colour, marker=mark, s=70)
        # Two methods on the same columns lie side by side: one has its name on the left.
        side = {"xytext": (-7, 5), "ha": "right"} if method == "adelie" else {"xytext": (7, 5)}
        axes.annotate(method, (time, ratio), textcoords="offset points", **side)
    axes.set_xscale("log")
    axes.set_xlabel("processor seconds of a fit with its search, median")
    axes.set_ylabel("error over HKL's, median")
    axes.margins(0.1)
    axes.spines[["top", "right"]].set_visible(False)
    _save(figure, file)


def draw_recovery(rows: pd.DataFrame, methods: list[str], file: FilePath) -> None:
    """Draw true effects found and others in the list, as shares and means per problem."""
    methods = [method for method in methods if method in set(rows["method"])]
    sums = rows.groupby("method")[["found", "true", "extra"]].sum().loc[methods]
    counts = rows.groupby("method").size().loc[methods]
    figure, (left, right) = plt.subplots(1, 2, figsize=(8.5, 2.8), layout="constrained")
    places = -np.arange(len(methods))
    colours = [STYLE[method][0] for method in methods]
    share = 100.0 * sums["found"] / sums["true"]
    for axes, values, title in (
        (left, share, "true effects found, %"),
        (right, sums["extra"] / counts, "other effects in the list, mean"),
    ):
        bars = axes.barh(places, values, color=colours, height=0.65)
        axes.bar_label(bars, [f"{value:.3g}" for value in values], padding=3)
        axes.set_title(title, fontsize=11)
        axes.set_yticks(places, methods)
        axes.spines[["top", "right"]].set_visible(False)
        axes.margins(x=0.15)
    right.set_yticks(places, [""] * len(methods))
    _save(figure, file)


def _save(figure: Any, file: FilePath) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=110)
    plt.close(figure)
