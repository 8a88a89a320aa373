"""Computes the rows of the tables from saved results, for two ways to choose the parameter."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from hikernel.errors import UsageError
from hikernel.experiments.paper_numbers import PAPER, PaperRow
from hikernel.experiments.settings import KERNELS, SEEDS
from hikernel.experiments.store import Result
from hikernel.selection import PathEnd

__all__ = [
    "TABLES",
    "Cell",
    "Row",
    "TableLayout",
    "kernel_name",
    "paper_row",
    "summarise",
    "table_markdown",
    "vertices",
]


@dataclass(frozen=True)
class TableLayout:
    """The methods of a table, in the paper's order of columns, and the unit of the errors."""

    methods: tuple[str, ...]
    unit: str


TABLES: Final = {
    "table1": TableLayout(
        ("L2", "greedy", "lasso-alpha", "MKL", "HKL"),
        "100 x mean squared error / variance of y",
    ),
    "table2": TableLayout(("L2", "greedy", "HKL"), "error rate in percent"),
}


@dataclass(frozen=True)
class Cell:
    """Summary of one method on one data set with one kernel, over the splits.

    Attributes
    ----------
    best, best_std : float
        The paper's protocol: mean and standard deviation of the test error at the parameter with
        the smallest mean test error over the splits (n - 1 in the denominator; NaN for one split).
    honest, honest_std : float
        Mean and standard deviation of the test error when the parameter of each split is chosen by
        cross-validation inside its training half.
    splits : int
        Number of splits.
    parameter : float
        The parameter of ``best``.
    end : str
        Whether ``parameter`` is at the end of the paths. "last" if it is the last of the grid, or
        the last that most paths reached: less regularisation might do better. "Q" if most of these
        paths ended because Q kernels were in use: more kernels might do better. Otherwise empty.
    terms : float
        Mean number of kernels in use at ``parameter``; NaN if not applicable.
    seconds : float
        Mean time per split.
    """

    best: float
    best_std: float
    honest: float
    honest_std: float
    splits: int
    parameter: float
    end: str
    terms: float
    seconds: float

    @classmethod
    def of(cls, results: Sequence[Result]) -> Cell:
        """Summarise the splits of one method.

        Raises
        ------
        UsageError
            If the splits have different grids, so that they cannot be averaged.
        """
        for result in results[1:]:
            if not _same(result.grid, results[0].grid):
                raise UsageError(
                    f"{results[0].job} and {result.job} have different grids and cannot be "
                    "averaged: they were computed with different settings. Remove the older line "
                    "from the file of results; the same command computes it again."
                )
        errors = np.array([result.test for result in results])
        best = int(np.argmin(errors.mean(axis=0)))
        picked = [result.test[int(np.argmin(result.cv))] for result in results]
        terms = [result.terms[best] for result in results if result.terms]
        return cls(
            best=float(errors[:, best].mean()),
            best_std=_std(errors[:, best]),
            honest=float(np.mean(picked)),
            honest_std=_std(picked),
            splits=len(results),
            parameter=results[0].grid[best],
            end=_end(results, best),
            terms=float(np.mean(terms)) if terms else math.nan,
            seconds=float(np.mean([result.seconds for result in results])),
        )


def _end(results: Sequence[Result], best: int) -> str:
    """Return ``Cell.end``: whether ``best`` is at the end of most paths, and of which kind."""
    ended = [result for result in results if best >= (result.reached or len(result.grid)) - 1]
    if 2 * len(ended) <= len(results):
        return ""
    full = sum(result.end == PathEnd.MAX_KERNELS.name for result in ended)
    return "Q" if 2 * full > len(ended) else "last"


@dataclass(frozen=True)
class Row:
    """One data set with one kernel: the cells of the methods that were run."""

    data: str
    kernel: str
    n: int
    p: int
    cells: dict[str, Cell]
    n_vertices: str = ""


def summarise(results: Iterable[Result]) -> list[Row]:
    """Return the rows in the paper's order; the kernels that it does not have come last."""
    groups: dict[tuple[str, str], dict[str, list[Result]]] = {}
    for result in results:
        methods = groups.setdefault((result.job.data, result.job.kernel), {})
        methods.setdefault(result.job.method, []).append(result)
    order = [data for table in PAPER.values() for data, _ in table]
    kernels = list(KERNELS)

    def place(key: tuple[str, str]) -> tuple[int, str, int]:
        data, kernel = key
        return (order.index(data) if data in order else len(order), data, kernels.index(kernel))

    rows = []
    for data, kernel in sorted(groups, key=place):
        methods = groups[data, kernel]
        first = next(iter(methods.values()))[0]
        cells = {
            name: Cell.of(sorted(found, key=lambda r: r.job.seed))
            for name, found in methods.items()
        }
        known = [r.n_vertices for found in methods.values() for r in found if r.n_vertices]
        count = vertices(kernel, first.p) or next(iter(known), "")
        rows.append(Row(data, kernel, first.n, first.p, cells, count))
    return rows


def kernel_name(kernel: str) -> str:
    """Return the name of a kernel in the tables."""
    return "default basis" if KERNELS[kernel].basis is None else kernel


def vertices(kernel: str, p: int) -> str:
    """Return levels^p as the paper writes it, such as "10^22".

    For the default basis, whose levels differ by column, return an empty string.
    """
    if KERNELS[kernel].basis is None:
        return ""
    return f"10^{round(p * math.log10(KERNELS[kernel].levels))}"


def table_markdown(table: str, rows: Sequence[Row]) -> list[str]:
    """Return the lines of a Markdown table: our errors, with the paper's in round brackets.

    Our errors are those at the best parameter over the splits. † marks a best parameter at the end
    of the paths. A number of splits other than ten is given in square brackets.
    """
    layout = TABLES[table]
    head = ["data", "n", "p", "k", "#(V)", *layout.methods]
    lines = [_line(head), _line(["---"] * len(head))]
    for row in rows:
        printed = paper_row(table, row)
        cells = []
        for method in layout.methods:
            own = row.cells.get(method)
            theirs = printed.errors.get(method) if printed else None
            text = "" if own is None else pm(own.best, own.best_std) + _marks(own)
            if theirs is not None:
                text += f" ({theirs.mean:.1f} ± {theirs.std:.1f})"
            if method == "HKL" and own is not None and theirs is not None:
                text = f"**{text}**" if beats(own.best, theirs.mean) else text
            cells.append(text.strip())
        named = [row.data, str(row.n), str(row.p), kernel_name(row.kernel), row.n_vertices]
        lines.append(_line([*named, *cells]))
    return lines


def paper_row(table: str, row: Row) -> PaperRow | None:
    """Return the paper's row for the same data and kernel, or None.

    The kernel "mehler" is compared with the paper's rbf.
    """
    return PAPER[table].get((row.data, "rbf" if row.kernel == "mehler" else row.kernel))


def beats(own: float, printed: float) -> bool:
    """Whether our error, rounded to one decimal, is at most the one printed in the paper."""
    return round(own, 1) <= printed


def pm(mean: float, std: float) -> str:
    """Return mean and standard deviation as text, with two decimals for means below 10.

    The text is "diverges" for means above 1e6.
    """
    digits = 2 if abs(mean) < 10.0 else 1
    if mean > 1e6:
        return "diverges"
    return f"{mean:.{digits}f}" + ("" if math.isnan(std) else f" ± {std:.{digits}f}")


def _marks(cell: Cell) -> str:
    splits = "" if cell.splits == len(SEEDS) else f" [{cell.splits}]"
    return ("†" if cell.end else "") + splits


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _std(values: Sequence[float] | np.ndarray) -> float:
    return float(np.std(values, ddof=1)) if len(values) > 1 else math.nan


def _same(one: Sequence[float], two: Sequence[float]) -> bool:
    return len(one) == len(two) and bool(np.allclose(one, two, rtol=1e-9, atol=0.0))
