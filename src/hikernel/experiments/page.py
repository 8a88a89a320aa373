"""Writes the results into docs/reproduction.md, next to the numbers of the paper."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from hikernel.errors import UsageError
from hikernel.experiments.figure import curves, draw, figure_markdown
from hikernel.experiments.paper_numbers import PAPER
from hikernel.experiments.store import Result, Store
from hikernel.experiments.tables import (
    TABLES,
    Row,
    beats,
    kernel_name,
    paper_row,
    pm,
    summarise,
    table_markdown,
)
from hikernel.persistence.whole_file import write_whole

__all__ = ["read_results", "write_page"]

EXPERIMENTS: Final = ("table1", "table2", "figure2")
_BEGIN, _END = "<!-- results: {} -->", "<!-- end of {} -->"


def read_results(folder: Path) -> dict[str, list[Result]]:
    """Return the saved results in a folder by experiment; each job occurs once."""
    return {name: list(Store(folder / f"{name}.jsonl").results().values()) for name in EXPERIMENTS}


def write_page(page: Path, results: dict[str, list[Result]]) -> Path:
    """Update the results in the page and the picture of the figure; return the page.

    The text between markers such as ``<!-- results: table1 -->`` and ``<!-- end of table1 -->``
    is replaced. All other text stays as it is.

    Raises
    ------
    UsageError
        If there are results for which the page has no markers.
    """
    text = page.read_text(encoding="utf-8")
    for table in TABLES:
        if results[table]:
            text = _fill(text, table, _table_part(table, summarise(results[table])))
    if results["figure2"]:
        lines = curves(results["figure2"])
        picture = page.parent / "figures" / "figure2.png"
        draw(lines, picture)
        text = _fill(
            text,
            "figure2",
            [
                f"![error against the number of variables](figures/{picture.name})",
                "",
                *figure_markdown(lines),
            ],
        )
    write_whole(page.resolve(), lambda stream: stream.write(text.encode()))
    return page


def _fill(text: str, name: str, lines: Sequence[str]) -> str:
    begin, end = _BEGIN.format(name), _END.format(name)
    if begin not in text or end not in text:
        raise UsageError(f"The page has no place for {name}: it needs {begin} and {end}.")
    before, rest = text.split(begin, 1)
    return before + begin + "\n\n" + "\n".join(lines) + "\n\n" + end + rest.split(end, 1)[1]


def _table_part(table: str, rows: Sequence[Row]) -> list[str]:
    layout = TABLES[table]
    return [
        f"{layout.unit}, mean ± standard deviation over ten splits, or as many as stand in square "
        "brackets, at the parameter that is best on average over the test halves; in round "
        "brackets the paper. Bold: our HKL at or below its. †: the best parameter is the last "
        "of the grid, or the last that most paths reached.",
        "",
        *table_markdown(table, rows),
        "",
        _verdict(table, rows),
        "",
        "HKL in more detail: the parameter of each split by cross-validation inside its training "
        "half (honest), the kernels in use and the seconds a split takes with its "
        "cross-validation; then the other methods, honest as well. (Q) behind lambda: most paths "
        "end there because Q kernels are in use, so that more might do better; (last): it is the "
        "last of the "
        "grid, or the last before the fit saturated.",
        "",
        *_detail(table, rows),
    ]


def _verdict(table: str, rows: Sequence[Row]) -> str:
    """Return sentences that compare our HKL errors with those of the paper."""
    met, missed = [], []
    for row in rows:
        printed = PAPER[table].get((row.data, row.kernel))
        if printed is None or "HKL" not in row.cells:
            continue
        own, theirs = row.cells["HKL"].best, printed.errors["HKL"].mean
        if beats(own, theirs):
            met.append(row)
        else:
            missed.append(f"{row.data} {row.kernel} by {own - theirs:.1f}")
    text = f"At or below the paper's HKL in {len(met)} of {len(met) + len(missed)} rows."
    text += f" Above it: {', '.join(missed)}." if missed else ""
    return text + " What was chosen on test halves is [below](#how-far-the-verdicts-go)."


def _detail(table: str, rows: Sequence[Row]) -> list[str]:
    others = [method for method in TABLES[table].methods if method != "HKL"]
    head = ["data", "k", "best", "honest", "paper", "lambda", "kernels", "seconds"]
    head += [f"{method} honest" for method in others]
    out = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    for row in rows:
        cell = row.cells.get("HKL")
        if cell is None:
            continue
        printed = paper_row(table, row)
        cells = [
            row.data,
            kernel_name(row.kernel),
            pm(cell.best, cell.best_std),
            pm(cell.honest, cell.honest_std),
            f"{printed.errors['HKL'].mean:.1f}" if printed else "",
            f"{cell.parameter:.1e}" + (f" ({cell.end})" if cell.end else ""),
            f"{cell.terms:.0f}",
            f"{cell.seconds:.0f}",
        ]
        beside = [row.cells.get(method) for method in others]
        cells += ["" if other is None else pm(other.honest, other.honest_std) for other in beside]
        out.append("| " + " | ".join(cells) + " |")
    return out
