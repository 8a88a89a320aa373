"""The command ``hikernel reproduce``: runs the jobs and prints the tables and the figure."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

from hikernel.errors import UsageError
from hikernel.experiments.figure import curves, draw, figure_jobs, figure_markdown
from hikernel.experiments.methods import METHODS
from hikernel.experiments.page import EXPERIMENTS, read_results, write_page
from hikernel.experiments.paper_data import (
    CLASSIFICATION,
    FOLDER_VARIABLE,
    REGRESSION,
    data_folder,
    load,
    source_of,
)
from hikernel.experiments.runner import run_jobs
from hikernel.experiments.settings import FIGURE, KERNELS, SEEDS, SLOW_SPLITS
from hikernel.experiments.store import Job, Store
from hikernel.experiments.tables import TABLES, summarise, table_markdown

__all__ = ["Request", "reproduce"]

_PAGE = Path("docs/reproduction.md")
_DATASETS = {"table1": REGRESSION, "table2": CLASSIFICATION}


_LISTS = ("--datasets", "--kernels", "--methods", "--seeds")
"""Options that take one value or several."""


@dataclass(frozen=True)
class Request:
    """What to compute, and with which data.

    Attributes
    ----------
    what : str
        An experiment, "all" or "page".
    data : str or None
        Folder of the data sets.
    openml : bool
        Whether missing data are fetched from OpenML.
    results : Path
        Folder of the results.
    datasets, kernels, methods, seeds : tuple
        The jobs to run; empty for all.
    n_jobs : int
        Processes side by side.
    page : Path or None
        The page to renew.
    """

    what: str
    data: str | None = None
    openml: bool = False
    results: Path = Path("results")
    datasets: tuple[str, ...] = ()
    kernels: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    seeds: tuple[int, ...] = ()
    n_jobs: int = 1
    page: Path | None = None


class _ListCommand(click.Command):
    """A command whose options for lists take several values, as in ``--seeds 0 1 2``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        option, several = "", []
        for word in args:
            number = word[:1] == "-" and word[1:].isdigit()
            if word[:1] == "-" and not number:
                option = word if word in _LISTS else ""
                several.append(word)
            elif option and several[-1] != option:
                several += [option, word]
            else:
                several.append(word)
        return super().parse_args(ctx, several)


@click.command("reproduce", cls=_ListCommand)
@click.argument("what", type=click.Choice([*EXPERIMENTS, "all", "page"]))
@click.option(
    "--data", metavar="DIR", help=f"Folder of the data sets; {FOLDER_VARIABLE} by default."
)
@click.option("--openml", is_flag=True, help="Fetch missing data from OpenML.")
@click.option(
    "--results",
    type=click.Path(path_type=Path),
    default=Path("results"),
    metavar="DIR",
    help="Where results are kept.",
)
@click.option(
    "--datasets",
    multiple=True,
    metavar="NAME...",
    help="Some data sets only; of figure2 they are synthetic-plain-4 to synthetic-rotated-128.",
)
@click.option(
    "--kernels",
    multiple=True,
    type=click.Choice(list(KERNELS)),
    metavar="NAME...",
    help=f"Some of {', '.join(KERNELS)}; by default pol4, rbf and, for HKL, default.",
)
@click.option("--methods", multiple=True, metavar="NAME...", help=f"Some of {', '.join(METHODS)}.")
@click.option("--seeds", multiple=True, type=int, metavar="N...", help="Splits or replications.")
@click.option("--n-jobs", type=int, default=1, metavar="N", help="Processes side by side.")
@click.option(
    "--page",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help=f"The page to renew; {_PAGE} by default.",
)
def reproduce(**options: Any) -> int:
    """Compute the tables and the figure of the paper again.

    WHAT is an experiment, all of them, or page, which writes the docs from what is saved.
    """
    return run(Request(**options))


def run(arguments: Request) -> int:
    """Run the command and return its exit status.

    0 if everything was computed, 1 if jobs failed, 130 after an interrupt.

    Raises
    ------
    UsageError
        For options that conflict, and data that are missing.
    """
    failed = 0
    try:
        _check(arguments)
        if arguments.what == "page":
            return _page(arguments)
        for what in EXPERIMENTS if arguments.what == "all" else [arguments.what]:
            failed += _experiment(what, arguments)
        if arguments.what == "all":
            _page(arguments)
    except OSError as error:
        raise UsageError(str(error)) from error
    except KeyboardInterrupt:
        print("Stopped. The same command goes on where this one was.", file=sys.stderr)
        return 130
    return 1 if failed else 0


def _check(arguments: Request) -> None:
    """Raise UsageError for options that conflict or have no effect, before work starts."""
    what = arguments.what
    given = [
        name
        for name in ("datasets", "kernels", "methods", "seeds", "data", "openml", "page")
        if getattr(arguments, name)
    ]
    idle: dict[str, tuple[str, ...]] = {
        "page": ("datasets", "kernels", "methods", "seeds", "data", "openml"),
        "all": ("datasets", "kernels", "methods"),
        "figure2": ("kernels", "data", "openml", "page"),
    }
    reasons = {
        "page": "page writes what is saved",
        "all": "all is every experiment, and each has its own; name table1, table2 or figure2",
        "figure2": "figure2 draws its own data and has one kernel, pol4",
    }
    for name in idle.get(what, ("page",)):
        if name in given and not (what == "figure2" and arguments.kernels == ("pol4",)):
            reason = reasons.get(what, "only page and all write the page")
            raise UsageError(f"--{name} does nothing with {what}: {reason}.")
    if what in ("figure2", "all") and find_spec("matplotlib") is None:
        raise UsageError(
            "The figure needs matplotlib: pip install 'hikernel[plot]', or name table1 or table2."
        )
    if arguments.seeds and min(arguments.seeds) < 0:
        raise UsageError(f"--seeds takes numbers from 0 on, not {min(arguments.seeds)}.")
    if arguments.n_jobs == 0:
        raise UsageError("--n-jobs takes a number of processes, or -1 for one per core, not 0.")


def _folder(what: str, arguments: Request) -> Path | None:
    """Return the folder of the data; None for the figure, which needs no files."""
    folder = None if what == "figure2" else data_folder(arguments.data)
    if folder is not None and not folder.is_dir():
        raise UsageError(
            f"{folder} is not a folder. Name the folder of the data sets with --data DIR or in the "
            f"environment variable {FOLDER_VARIABLE}."
        )
    return folder


def _experiment(what: str, arguments: Request) -> int:
    """Compute what is missing, print the result and return how many jobs failed."""
    folder = _folder(what, arguments)
    jobs = _figure_jobs(arguments) if what == "figure2" else _table_jobs(what, arguments)
    if not jobs:
        raise UsageError(
            "These options leave no job: the kernel default is for HKL only, and MKL needs a "
            "kernel with a constant, which mehler has not."
        )
    store = Store(arguments.results / f"{what}.jsonl")
    # Load the data sets that are needed now, so that a missing one is reported before any job runs.
    names = dict.fromkeys(job.data for job in jobs)
    sources = {name: source_of(name, folder, openml=arguments.openml) for name in names}
    for name in dict.fromkeys(job.data for job in store.missing(jobs, sources)):
        load(name, folder, openml=arguments.openml)
    outcome = run_jobs(jobs, store, folder, n_jobs=arguments.n_jobs, openml=arguments.openml)
    saved = store.results(sources)
    results = [saved[job] for job in dict.fromkeys(jobs) if job in saved]
    if what == "figure2":
        print("\n".join(figure_markdown(curves(results))))
        # The picture shows all saved results, the table only those of the requested jobs.
        draw(curves(saved.values()), arguments.results / "figure2.png")
    else:
        print("\n".join(table_markdown(what, summarise(results))))
    return len(outcome.failures)


def _table_jobs(what: str, arguments: Request) -> list[Job]:
    names = _chosen("data set", arguments.datasets, _DATASETS[what])
    known = [method for method in TABLES[what].methods if method in METHODS]
    methods = _chosen("method", arguments.methods, known)
    kernels = arguments.kernels or ["pol4", "rbf", "default"]
    jobs = []
    # HKL and L2 first, each split by split, so that an interrupted run leaves complete splits.
    for method in sorted(
        methods, key=lambda m: (m in SLOW_SPLITS and what == "table1", m != "HKL")
    ):
        few = what == "table1" and method in SLOW_SPLITS
        seeds = arguments.seeds or (SEEDS[: SLOW_SPLITS[method]] if few else SEEDS)
        jobs += [
            Job(name, kernel, method, seed)
            for seed in seeds
            for kernel in kernels
            for name in names
            if _fits(method, kernel)
        ]
    return jobs


def _fits(method: str, kernel: str) -> bool:
    """Whether a method works with a kernel.

    The kernel "default" is for HKL only. MKL needs a kernel with a constant level.
    """
    if KERNELS[kernel].basis is None:
        return method == "HKL"
    return not (method == "MKL" and kernel == "mehler")


def _figure_jobs(arguments: Request) -> list[Job]:
    jobs = figure_jobs(FIGURE.replications)
    if arguments.seeds:
        jobs = [job for job in figure_jobs(max(arguments.seeds) + 1) if job.seed in arguments.seeds]
    names = _chosen("data set", arguments.datasets, list(dict.fromkeys(job.data for job in jobs)))
    methods = _chosen("method", arguments.methods, list(dict.fromkeys(job.method for job in jobs)))
    return [job for job in jobs if job.data in names and job.method in methods]


def _chosen(what: str, given: Sequence[str] | None, known: Sequence[str]) -> list[str]:
    """Return the names given, or all known ones; raise UsageError for an unknown name."""
    for name in given or ():
        if name not in known:
            raise UsageError(f"{name!r} is no {what} of this experiment: {', '.join(known)}.")
    return list(given or known)


def _page(arguments: Request) -> int:
    page = arguments.page or _PAGE
    results = read_results(arguments.results)
    if not any(results.values()):
        raise UsageError(f"{arguments.results} has no results; run hikernel reproduce all first.")
    if not page.is_file():
        raise UsageError(f"There is no page {page}; name it with --page FILE.")
    for name in EXPERIMENTS:
        store = Store(arguments.results / f"{name}.jsonl")
        if store.outdated():
            print(f"{len(store.outdated())} results in {store.file} have other settings: left out.")
        for number in store.unreadable():
            print(f"Line {number} of {store.file} cannot be read and is left out.")
    print(f"{write_page(page, results)} is up to date.")
    return 0
