"""What the benchmarks share: the folder of the data, and results that survive a kill."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path as FilePath
from typing import Any

import joblib

__all__ = ["add_data_folder", "data_file", "read", "run_missing"]


def add_data_folder(parser: argparse.ArgumentParser) -> None:
    """Add ``--data``: by default HIKERNEL_DATA, or shared/data beside the checkout."""
    beside = FilePath(__file__).resolve().parents[2] / "shared" / "data"
    default = FilePath(os.environ.get("HIKERNEL_DATA") or beside)
    parser.add_argument("--data", type=FilePath, default=default, help="folder of the data sets")


def data_file(folder: FilePath, name: str) -> FilePath:
    """Return the file of a data set, or end with a sentence where there is none."""
    file = folder / f"{name}.csv.gz"
    if not file.is_file():
        sys.exit(
            f"No {file.name} in {folder}. Give the folder of the data sets with --data DIR or in "
            "the environment variable HIKERNEL_DATA."
        )
    return file


def read(results: FilePath) -> list[dict[str, Any]]:
    """Return the lines of the file; one that was cut off by a kill is left out."""
    out = []
    for line in results.read_text().splitlines() if results.exists() else ():
        try:
            out.append(json.loads(line))
        except json.JSONDecodeError:
            print(f"{results}: a broken line is left out", file=sys.stderr)
    return out


def run_missing(
    args: argparse.Namespace,
    one_fit: Callable[[str, int, str], dict[str, Any]],
    describe: Callable[[dict[str, Any]], str],
) -> None:
    """Compute what the file lacks of data x seeds x methods, a line as soon as it is known."""
    args.results.parent.mkdir(parents=True, exist_ok=True)
    done = {(row["data"], row["seed"], row["method"]) for row in read(args.results)}
    jobs: Sequence[tuple[str, int, str]] = [
        (name, seed, method)
        for seed in args.seeds
        for method in args.methods
        for name in args.datasets
        if (name, seed, method) not in done
    ]
    parallel = joblib.Parallel(args.n_jobs, return_as="generator_unordered")
    found: Iterator[dict[str, Any]] = parallel(joblib.delayed(one_fit)(*job) for job in jobs)
    for row in found:
        with args.results.open("a") as file:
            file.write(json.dumps(row) + "\n")
        print(f"{row['data']:>14} {row['seed']} {row['method']:>16} {describe(row)}", flush=True)
