"""``hikernel reproduce``: from the words on the command line to jobs, tables and the figure."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from hikernel.experiments.datasets import (
    CLASSIFICATION,
    FOLDER_VARIABLE,
    REGRESSION,
    data_folder,
    load,
)
from hikernel.experiments.figure import curves, draw, figure_jobs, figure_markdown
from hikernel.experiments.methods import METHODS
from hikernel.experiments.page import EXPERIMENTS, read_results, write_page
from hikernel.experiments.runner import run_jobs
from hikernel.experiments.settings import FIGURE, KERNELS, SEEDS
from hikernel.experiments.store import Job, Store
from hikernel.experiments.tables import TABLES, summarise, table_markdown

__all__ = ["add_arguments", "run"]

_DATASETS = {"table1": REGRESSION, "table2": CLASSIFICATION}
_SLOW = {"greedy": 3, "lasso-alpha": 3, "MKL": 3}
"""Splits of the slower baselines of the first table, unless seeds are given."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what ``hikernel reproduce`` understands."""
    parser.add_argument(
        "what", choices=[*EXPERIMENTS, "all", "page"], help="what to compute; page writes the docs"
    )
    parser.add_argument(
        "--data", metavar="DIR", help=f"folder of the data sets (default: {FOLDER_VARIABLE})"
    )
    parser.add_argument("--openml", action="store_true", help="fetch missing data from OpenML")
    parser.add_argument(
        "--results",
        type=Path,
        default=Path("results"),
        metavar="DIR",
        help="where results are kept",
    )
    parser.add_argument("--datasets", nargs="+", metavar="NAME", help="some data sets only")
    parser.add_argument(
        "--kernels",
        nargs="+",
        choices=list(KERNELS),
        help="pol4, rbf and, for HKL, default if none are given",
    )
    parser.add_argument("--methods", nargs="+", metavar="NAME", help="some methods only")
    parser.add_argument("--seeds", nargs="+", type=int, metavar="N", help="splits or replications")
    parser.add_argument("--n-jobs", type=int, default=1, help="processes side by side")
    parser.add_argument(
        "--page", type=Path, default=Path("docs/reproduction.md"), help="the page to renew"
    )


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return its exit status; mistakes end in one sentence."""
    try:
        if arguments.what == "page":
            return _page(arguments)
        for what in EXPERIMENTS if arguments.what == "all" else [arguments.what]:
            _experiment(what, arguments)
        if arguments.what == "all":
            return _page(arguments)
    except (OSError, ValueError, ImportError) as error:
        print(f"hikernel reproduce: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("Stopped. The same command goes on where this one was.", file=sys.stderr)
        return 130
    return 0


def _experiment(what: str, arguments: argparse.Namespace) -> None:
    """Compute what is missing and print the result."""
    folder = data_folder(arguments.data)
    if folder is not None and not folder.is_dir():
        raise ValueError(
            f"{folder} is no folder. Name the folder of the data sets with --data DIR or in the "
            f"environment variable {FOLDER_VARIABLE}."
        )
    jobs = _figure_jobs(arguments) if what == "figure2" else _table_jobs(what, arguments)
    store = Store(arguments.results / f"{what}.jsonl")
    # A set that is missing should be known now, and not after an hour.
    for name in dict.fromkeys(job.data for job in store.missing(jobs)):
        load(name, folder, openml=arguments.openml)
    run_jobs(jobs, store, folder, n_jobs=arguments.n_jobs, openml=arguments.openml)
    results = [result for job, result in store.results().items() if job in set(jobs)]
    if what == "figure2":
        lines = curves(results)
        print("\n".join(figure_markdown(lines)))
        draw(lines, arguments.results / "figure2.png")
    else:
        print("\n".join(table_markdown(what, summarise(results))))


def _table_jobs(what: str, arguments: argparse.Namespace) -> list[Job]:
    names = _chosen("data set", arguments.datasets, _DATASETS[what])
    known = [method for method in TABLES[what].methods if method in METHODS]
    methods = _chosen("method", arguments.methods, known)
    kernels = arguments.kernels or ["pol4", "rbf", "default"]
    jobs = []
    # HKL and L2 first, and split by split, so that a run that is stopped leaves whole tables.
    for method in sorted(methods, key=lambda m: (m in _SLOW and what == "table1", m != "HKL")):
        few = what == "table1" and method in _SLOW
        seeds = arguments.seeds or (SEEDS[: _SLOW[method]] if few else SEEDS)
        jobs += [
            Job(name, kernel, method, seed)
            for seed in seeds
            for kernel in kernels
            for name in names
            if method == "HKL" or KERNELS[kernel].basis is not None
        ]
    return jobs


def _figure_jobs(arguments: argparse.Namespace) -> list[Job]:
    jobs = figure_jobs(FIGURE.replications)
    if arguments.seeds:
        jobs = [job for job in figure_jobs(max(arguments.seeds) + 1) if job.seed in arguments.seeds]
    names = _chosen("data set", arguments.datasets, list(dict.fromkeys(job.data for job in jobs)))
    methods = _chosen("method", arguments.methods, list(dict.fromkeys(job.method for job in jobs)))
    return [job for job in jobs if job.data in names and job.method in methods]


def _chosen(what: str, given: Sequence[str] | None, known: Sequence[str]) -> list[str]:
    """Return what was asked for, or everything; a name that is not known is an error."""
    for name in given or ():
        if name not in known:
            raise ValueError(f"{name!r} is no {what} of this experiment: {', '.join(known)}.")
    return list(given or known)


def _page(arguments: argparse.Namespace) -> int:
    results = read_results(arguments.results)
    if not any(results.values()):
        raise ValueError(f"{arguments.results} has no results; run hikernel reproduce all first.")
    if not arguments.page.is_file():
        raise ValueError(f"There is no page {arguments.page}; name it with --page FILE.")
    print(f"{write_page(arguments.page, results)} is up to date.")
    return 0
