"""The synthetic figure: error against the number of variables, plain and rotated inputs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from hikernel.engines.protocol import FloatArray
from hikernel.experiments.settings import FIGURE
from hikernel.experiments.store import Job, Result
from hikernel.experiments.tables import Cell
from hikernel.persistence.whole_file import write_whole

__all__ = ["Curve", "curves", "draw", "figure_jobs", "figure_markdown"]

METHODS: Final = ("greedy", "L2", "HKL")
"""The methods of the figure, in the order of the paper's legend."""
PANELS: Final = {"plain": "original inputs", "rotated": "rotated inputs"}
KERNEL: Final = "pol4"
_MARKS: Final = {
    "greedy": ("tab:blue", "s", "--"),
    "L2": ("tab:red", "^", "-."),
    "HKL": ("black", "o", "-"),
}
_SHIFTS: Final = (-0.06, 0.0, 0.06)
"""Horizontal shifts of the methods, in units of log2(p), so that bars do not overlap."""


def figure_jobs(
    replications: int = FIGURE.replications, variables: Sequence[int] = FIGURE.variables
) -> list[Job]:
    """Return the jobs of the figure.

    They are ordered by replication, so that an interrupted run leaves complete replications.
    """
    return [
        Job(f"synthetic-{panel}-{p}", KERNEL, method, seed)
        for seed in range(replications)
        for panel in PANELS
        for p in variables
        for method in METHODS
    ]


@dataclass(frozen=True)
class Curve:
    """One line of one panel.

    Attributes
    ----------
    panel : {"plain", "rotated"}
        Original or rotated inputs.
    method : str
        The method.
    variables : ndarray of shape (k,)
        The numbers of variables p.
    means, stds : ndarray of shape (k,)
        Mean and standard deviation of the error (share of the variance) over the replications, at
        the parameter with the smallest mean test error for that p.
    honest : ndarray of shape (k,)
        Mean error with the parameter chosen by cross-validation in each replication.
    counts : ndarray of shape (k,)
        Numbers of replications.
    """

    panel: str
    method: str
    variables: FloatArray
    means: FloatArray
    stds: FloatArray
    honest: FloatArray
    counts: FloatArray


def curves(results: Iterable[Result]) -> list[Curve]:
    """Return the curves of the figure, computed from saved results."""
    groups: dict[tuple[str, str], dict[int, list[Result]]] = {}
    for result in results:
        _, panel, p = result.job.data.split("-")
        sizes = groups.setdefault((panel, result.job.method), {})
        sizes.setdefault(int(p), []).append(result)
    out = []
    for panel in PANELS:
        for method in METHODS:
            sizes = groups.get((panel, method), {})
            if not sizes:
                continue
            cells = {p: Cell.of(sizes[p]) for p in sorted(sizes)}
            columns = np.array(
                [
                    (p, c.best / 100.0, c.best_std / 100.0, c.honest / 100.0, c.splits)
                    for p, c in cells.items()
                ],
                dtype=float,
            ).T
            out.append(Curve(panel, method, *columns))
    return out


def draw(lines: Sequence[Curve], file: Path | None = None) -> Any:
    """Draw the two panels side by side, as in the paper: log2(p) against the test error.

    Error bars extend half a standard deviation over the replications to either side, as in the
    paper's caption. A single replication has no bar. The methods are shifted slightly along the
    horizontal axis, so that their bars do not overlap.

    Parameters
    ----------
    lines : sequence of Curve
        The curves to draw.
    file : Path, optional
        Where to save the figure; the suffix determines the format.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ImportError
        If matplotlib is not installed. The message contains the command that installs it.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("The figure needs matplotlib: pip install 'hikernel[plot]'.") from error
    figure = Figure(figsize=(8.0, 3.2), layout="constrained")
    axes = figure.subplots(1, len(PANELS), sharey=True, squeeze=False)[0]
    shifts = dict(zip(METHODS, _SHIFTS, strict=True))
    top = 0.0
    for ax, (panel, title) in zip(axes, PANELS.items(), strict=True):
        for line in lines:
            if line.panel != panel:
                continue
            color, marker, style = _MARKS[line.method]
            half = 0.5 * line.stds  # NaN for a single replication: no bar is drawn
            ax.errorbar(
                np.log2(line.variables) + shifts[line.method],
                line.means,
                half,
                label=line.method,
                color=color,
                marker=marker,
                linestyle=style,
                capsize=2,
            )
            top = max(top, float(np.max(line.means + np.nan_to_num(half))))
        ax.set(xlabel="log2(p)", title=title)
        ax.xaxis.get_major_locator().set_params(integer=True)
    axes[0].set_ylim(0.0, 1.05 * top or 1.0)
    axes[0].set_ylabel("mean squared error / variance")
    if lines:
        figure.supxlabel("bars: half a standard deviation to either side", fontsize="small")
    if lines:
        axes[0].legend(frameon=False)
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        kind = file.suffix[1:] or "png"
        write_whole(file.resolve(), lambda stream: figure.savefig(stream, dpi=150, format=kind))
    return figure


def figure_markdown(lines: Sequence[Curve]) -> list[str]:
    """Return the lines of a Markdown table with the numbers of the figure.

    Each cell has the error at the best parameter and, in brackets, at the cross-validated one.
    """
    variables = sorted({int(p) for line in lines for p in line.variables})
    head = ["inputs", "method", *(f"p = {p}" for p in variables), "draws"]
    out = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    for line in lines:
        shown = {
            int(p): f"{m:.3f}" + ("" if np.isnan(s) else f" ± {s:.3f}") + f" ({h:.3f})"
            for p, m, s, h in zip(line.variables, line.means, line.stds, line.honest, strict=True)
        }
        counts = sorted({int(count) for count in line.counts})
        draws = "-".join(str(count) for count in dict.fromkeys((counts[0], counts[-1])))
        cells = [line.panel, line.method, *(shown.get(p, "") for p in variables), draws]
        out.append("| " + " | ".join(cells) + " |")
    return out
