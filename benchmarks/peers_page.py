"""Write the tables and pictures of docs/peers.md from the saved results of ``bench_peers.py``.

What stands between ``<!-- begin: name -->`` and ``<!-- end: name -->`` is made here; the words
around are written by hand.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from pathlib import Path as FilePath

import numpy as np
import pandas as pd
from bench_peers import METHODS
from common import read
from peers import OURS
from peers_pictures import draw_errors, draw_recovery, draw_times
from problems import GENERATED, GROUPS, PAPER_CLASSES, PAPER_REGRESSION, TABLES

ROOT = FilePath(__file__).resolve().parents[1]
ORDER = [OURS, *(method for method in METHODS if method != OURS)]
NEAR = 1.02
"""Errors that differ by less than this factor are called equal."""
LISTED = [OURS, "EBM", "pyGAM", "skglm", "adelie", "linear"]
"""Methods that have a list of effects."""
CERTIFICATES = {
    OURS: "distance to the optimum over all products of levels",
    "skglm": "convergence, over the columns it is given",
    "adelie": "convergence, over the columns it is given",
    "linear": "convex: solved",
    "kernel ridge": "convex: solved",
}


def load(file: FilePath) -> pd.DataFrame:
    """Return the last result of each (data, seed, method)."""
    rows = pd.DataFrame(read(file)).drop_duplicates(["data", "seed", "method"], keep="last")
    if "failure" not in rows:
        rows["failure"] = None
    return rows


def markdown(head: list[str], body: list[list[str]]) -> str:
    """Return a table."""
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in body])


def digits(value: float) -> str:
    """Return three significant digits, without an exponent."""
    if value >= 999.5:
        return f"{value:,.0f}"
    return f"{value:.{2 if value < 10 else 1}f}" if value >= 1 else f"{value:.3f}"


def cells(rows: pd.DataFrame, name: str, column: str) -> dict[str, float]:
    """Return the mean over the splits for each method that has a result on a data set."""
    part = rows[(rows["data"] == name) & rows[column].notna()]
    return part.groupby("method")[column].mean().to_dict()


def missing(rows: pd.DataFrame, name: str, method: str) -> str:
    """Return why there is no number, as a mark."""
    part = rows[(rows["data"] == name) & (rows["method"] == method)]
    if part.empty:
        return ""
    return "time" if "more than" in str(part["failure"].iloc[0]) else "failed"


def wide_table(rows: pd.DataFrame, names: list[str], column: str, bold: bool) -> str:
    """Return a table of data sets by methods."""
    body = []
    for name in names:
        values = cells(rows, name, column)
        best = min(values.values(), default=np.nan)
        line = [name]
        for method in ORDER:
            if method not in values:
                line.append(missing(rows, name, method))
                continue
            text = digits(values[method])
            line.append(f"**{text}**" if bold and values[method] <= best else text)
        body.append(line)
    return markdown(["data", *ORDER], body)


def effects_table(rows: pd.DataFrame) -> str:
    """Return how many effects the models have, and the columns that boosting and lists use."""
    body = []
    for name in (*PAPER_REGRESSION, *PAPER_CLASSES, *TABLES):
        effects, columns = cells(rows, name, "effects"), cells(rows, name, "columns")
        total = max((columns[m] for m in ("HistGB", "linear") if m in columns), default=np.nan)
        line = [name, f"{total:.0f}"]
        line += [f"{effects[m]:.0f}" if m in effects else "" for m in LISTED[:-1]]
        line.append(f"{columns['LightGBM']:.0f}" if "LightGBM" in columns else "")
        body.append(line)
    return markdown(["data", "columns", *LISTED[:-1], "LightGBM: columns"], body)


def recovery_table(rows: pd.DataFrame) -> str:
    """Return true effects found and others in the list, summed over the splits."""
    body = []
    for name in GENERATED:
        line = [name]
        for method in LISTED:
            part = rows[(rows["data"] == name) & (rows["method"] == method)]
            part = part[part["found"].notna()]
            if part.empty:
                line.append("")
                continue
            sums = part[["found", "true", "extra"]].sum()
            line.append(f"{sums['found']:.0f} of {sums['true']:.0f}, +{sums['extra']:.0f}")
        body.append(line)
    return markdown(["data", *LISTED], body)


def certificate_table(rows: pd.DataFrame) -> str:
    """Return the proofs of HKL."""
    ours = rows[(rows["method"] == OURS) & rows["error"].notna()]
    body = []
    for name in [name for group in GROUPS.values() for name in group]:
        part = ours[ours["data"] == name]
        if part.empty:
            continue
        refits = part["refit"].fillna("none").value_counts()
        body.append(
            [
                name,
                f"{int(part['certified'].sum())} of {len(part)}",
                f"{100.0 * part['gap'].max():.2g} %",
                f"{part['terms'].mean():.0f}",
                ", ".join(f"{kind} {count}" for kind, count in refits.items()),
            ]
        )
    return markdown(["data", "proven", "largest gap", "terms", "refits"], body)


def ratios(rows: pd.DataFrame, column: str) -> pd.DataFrame:
    """Return each method's value over ours, a row per data set that we have."""
    names = [name for group in GROUPS.values() for name in group]
    found = {name: cells(rows, name, column) for name in names}
    return pd.DataFrame(
        {
            name: {m: value / values[OURS] for m, value in values.items()}
            for name, values in found.items()
            if OURS in values
        }
    ).T


def summary_table(rows: pd.DataFrame) -> str:
    """Return a line per method."""
    errors, seconds = ratios(rows, "error"), ratios(rows, "seconds")
    body = []
    for method in ORDER:
        line = [method, ", ".join(sorted(set(rows[rows["method"] == method]["version"])))]
        for known in (False, True):
            part = errors[errors.index.isin(list(GENERATED)) == known]
            against = part[method].dropna() if method in part else pd.Series(dtype=float)
            if method == OURS or against.empty:
                line += [f"{len(against)}", "", ""]
                continue
            ahead, behind = (against < 1.0 / NEAR).sum(), (against > NEAR).sum()
            line += [f"{len(against)}", f"{against.median():.2f}", f"{ahead}, {behind}"]
        line.append(f"{seconds[method].median():.2g}" if method in seconds else "")
        body.append([*line, CERTIFICATES.get(method, "none")])
    head = ["method", "version"]
    for kind in ("real", "generated"):
        head += [f"{kind} data", "error / HKL's", "ahead, behind"]
    return markdown([*head, "seconds / HKL's", "certificate"], body)


def losses_list(rows: pd.DataFrame) -> str:
    """Return a line per data set on which a peer is ahead."""
    body = []
    for group in GROUPS.values():
        for name in group:
            values = cells(rows, name, "error")
            if OURS not in values:
                continue
            ahead = {m: v for m, v in values.items() if v * NEAR < values[OURS]}
            if not ahead:
                continue
            ordered = sorted(ahead.items(), key=lambda pair: pair[1])
            words = ", ".join(f"{method} {digits(value)}" for method, value in ordered)
            excess = values[OURS] / ordered[0][1]
            body.append([name, digits(values[OURS]), f"{excess:.2f}", words])
    return markdown(["data", "HKL", "over the best", "ahead of it"], body)


def state(rows: pd.DataFrame) -> str:
    """Return what is there, and what ended without a number."""
    names = [name for group in GROUPS.values() for name in group]
    lines = []
    for method in ORDER:
        part = rows[rows["method"] == method]
        lacking = [name for name in names if name not in set(part["data"])]
        failed = part[part["failure"].notna()]
        if lacking:
            lines.append(f"- {method}: not run on {', '.join(lacking)}.")
        lines += [f"- {method} on {r['data']}: {r['failure']}." for _, r in failed.iterrows()]
    return "\n".join(lines) or "Every method has a number on every data set."


def blocks(rows: pd.DataFrame) -> dict[str, Callable[[], str]]:
    """Return how each block of the page is made."""
    return {
        "summary": lambda: summary_table(rows),
        "losses": lambda: losses_list(rows),
        "paper": lambda: wide_table(rows, list(PAPER_REGRESSION), "error", True),
        "classes": lambda: wide_table(rows, list(PAPER_CLASSES), "error", True),
        "wrong": lambda: wide_table(rows, list(PAPER_CLASSES), "wrong", True),
        "tables": lambda: wide_table(rows, list(TABLES), "error", True),
        "generated": lambda: wide_table(rows, list(GENERATED), "error", True),
        "recovery": lambda: recovery_table(rows),
        "effects": lambda: effects_table(rows),
        "seconds": lambda: wide_table(
            rows, [name for group in GROUPS.values() for name in group], "seconds", False
        ),
        "certificates": lambda: certificate_table(rows),
        "state": lambda: state(rows),
    }


def fill(text: str, made: dict[str, Callable[[], str]]) -> str:
    """Return the page with its blocks made anew."""
    for name, make in made.items():
        pattern = re.compile(rf"(<!-- begin: {name} -->\n).*?(<!-- end: {name} -->)", re.DOTALL)
        if not pattern.search(text):
            raise SystemExit(f"The page has no place for {name!r}.")
        block = f"\n{make()}\n\n"
        text = pattern.sub(lambda match, block=block: match[1] + block + match[2], text)
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--results", type=FilePath, default=ROOT / "docs/peers/peers.jsonl")
    parser.add_argument("--page", type=FilePath, default=ROOT / "docs/peers.md")
    parser.add_argument("--figures", type=FilePath, default=ROOT / "docs/figures")
    args = parser.parse_args()
    rows = load(args.results)
    args.page.write_text(fill(args.page.read_text(), blocks(rows)))
    draw_errors(ratios(rows, "error"), GROUPS, args.figures / "peers_errors.png")
    real = rows[rows["group"] != "generated"]
    draw_times(ratios(real, "error"), real, args.figures / "peers_times.png")
    draw_recovery(rows[rows["found"].notna()], LISTED, args.figures / "peers_recovery.png")


if __name__ == "__main__":
    main()
