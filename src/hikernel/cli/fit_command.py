"""``hikernel fit``: from a table to a model file, a report, and what was found in words or JSON."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hikernel.cli.column_roles import ColumnRoles
from hikernel.cli.console import (
    BadInput,
    Console,
    json_option,
    print_json,
    quiet_option,
    sentences_of_library,
)
from hikernel.cli.destination import check_destination, force_option, write_new
from hikernel.cli.inspection import usable_columns
from hikernel.cli.interaction_groups import column_of, interaction_groups, usable_groups
from hikernel.cli.report_command import require_report
from hikernel.cli.table_file import TableOptions, read_table_file, table_options
from hikernel.cli.target_column import (
    read_numbers,
    read_target,
    read_weights,
    rows_with_target,
)

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["fit"]

LOSSES = {
    "regression": [
        *("squared_error", "huber", "quantile", "epsilon_insensitive", "poisson", "gamma"),
        "tweedie",
    ],
    "classification": ["log_loss", "hinge", "squared_hinge"],
}
"""Names of the losses by task."""
LOG_LINK = ("poisson", "gamma", "tweedie")
"""Losses that an exposure goes with."""
BASES = [
    *("auto", "auto+jumps", "auto+steps", "polynomial", "orthonormal", "asinh", "rank", "hermite"),
    *("gaussian", "kernel_pca", "anova", "spline", "steps", "categorical"),
]
_FOLDS = 5
REFITS = ["auto", "none", "ridge", "sparse", "unpenalised", "variables"]
# These lists are those of the library, which would take seconds to import for --help.


@dataclass
class _Training:
    """What a fit gets."""

    task: str
    X: pd.DataFrame
    y: pd.Series
    sample_weight: Any = None
    categorical: list[str] = field(default_factory=list)
    basis: str | dict[str, str] = "auto"
    ordered: dict[str, list[Any] | None] = field(default_factory=dict)
    offsets: dict[str, Any] = field(default_factory=dict)
    interactions: Any = None
    monotone: dict[str, str | int] = field(default_factory=dict)


@click.command(
    "fit", epilog="\b\nhikernel fit houses.csv --target price --out model.hik --report report.html"
)
@click.argument("data")
@click.option("--target", required=True, metavar="COLUMN", help="What to predict.")
@click.option("--out", metavar="FILE", help="Save the model, for example to model.hik.")
@click.option("--report", metavar="FILE", help="Write a page on the model, such as report.html.")
@click.option(
    "--task",
    type=click.Choice(list(LOSSES)),
    help="By default it is guessed from the target, and said.",
)
@click.option(
    "--loss",
    type=click.Choice([name for names in LOSSES.values() for name in names]),
    help="squared_error by default, log_loss for classes.",
)
@click.option("--max-order", type=click.IntRange(1), help="Most variables that may interact.")
@click.option(
    "--allow",
    multiple=True,
    metavar="COLUMN,COLUMN,..",
    help="Columns that may interact, no others; * is any column.",
)
@click.option(
    "--forbid",
    multiple=True,
    metavar="COLUMN,COLUMN,..",
    help="Columns that may not interact; * is any column.",
)
@click.option(
    "--basis",
    multiple=True,
    metavar="[COLUMN=]NAME",
    help=f"Functions of the columns of numbers, or of one column: {', '.join(BASES)}.",
)
@click.option(
    "--categorical", multiple=True, metavar="COLUMN", help="Numbers that are names of categories."
)
@click.option(
    "--ordered",
    multiple=True,
    metavar="COLUMN[=A,B,..]",
    help="Categories with an order, from the lowest to the highest; without a list, numbers.",
)
@click.option(
    "--monotone",
    multiple=True,
    metavar="COLUMN=DIRECTION",
    help="f only rises (increasing, 1) or only falls (decreasing, -1) in a column.",
)
@click.option("--drop", multiple=True, metavar="COLUMN", help="Leave out a column.")
@click.option("--weight", metavar="COLUMN", help="Weights of the rows.")
@click.option("--exposure", metavar="COLUMN", help="What means are proportional to, such as years.")
@click.option("--offset", metavar="COLUMN", help="A number of every row that is added to f.")
@click.option("--drop-missing-target", is_flag=True, help="Leave out rows without a target.")
@click.option("--rule", type=click.Choice(["sparse", "best", "one_se"]), default="sparse")
@click.option("--refit", type=click.Choice(REFITS), default="auto")
@click.option(
    "--certify", type=click.Choice(["auto", "exact", "statistical", "none"]), default="auto"
)
@click.option(
    "--time-budget", type=click.FloatRange(0.0, min_open=True), metavar="SECONDS", help="Stop then."
)
@click.option("--n-jobs", type=int, metavar="N", help="Processes side by side; -1: one per core.")
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), default=0, metavar="N")
@table_options
@json_option
@force_option
@click.option("-v", "--verbose", count=True, help="Log the stages; -vv all steps.")
@quiet_option
def fit(
    data: str,
    target: str,
    out: str | None,
    report: str | None,
    task: str | None,
    loss: str | None,
    basis: tuple[str, ...],
    categorical: tuple[str, ...],
    ordered: tuple[str, ...],
    allow: tuple[str, ...],
    forbid: tuple[str, ...],
    monotone: tuple[str, ...],
    drop: tuple[str, ...],
    weight: str | None,
    exposure: str | None,
    offset: str | None,
    drop_missing_target: bool,
    refit: str,
    seed: int,
    reading: TableOptions,
    as_json: bool,
    force: bool,
    verbose: int,
    quiet: bool,
    **settings: Any,
) -> None:
    """Fit a model to the table DATA and say what it found.

    DATA is a CSV, TSV, Parquet or Feather file, or - for CSV from standard input. Alpha and refit
    are chosen by cross-validation (HKLRegressorCV, HKLClassifierCV). What was found goes to
    standard output, everything else to standard error.
    """
    if quiet and verbose:
        raise BadInput("-q and -v contradict each other; choose one.")
    if settings["n_jobs"] == 0:
        raise BadInput("--n-jobs takes a number of processes, or -1 for one per core, not 0.")
    console = Console(quiet)
    files = _check_files(out, report, force, data)
    implied = _check_loss(task, loss)
    if exposure is not None and loss not in LOG_LINK:
        raise BadInput(f"--exposure needs --loss {', '.join(LOG_LINK[:-1])} or {LOG_LINK[-1]}.")
    groups = interaction_groups("--allow", allow), interaction_groups("--forbid", forbid)
    frame = read_table_file(data, reading, console)
    orders, directions = _read_orders(ordered, frame), _read_directions(monotone)
    columns = (target, weight, offset, exposure, drop, categorical)
    roles = ColumnRoles(*columns, _read_basis(basis), orders, *groups, directions)
    training = _training(frame, roles, drop_missing_target, task, implied, console)
    settings |= {"refit": None if refit == "none" else refit, "random_state": seed}
    settings |= {} if loss is None else {"loss": loss}
    settings["verbose"] = 0 if quiet else 1 + verbose
    began = time.monotonic()
    model = _fitted(training, settings, console)
    seconds = time.monotonic() - began
    model.set_params(verbose=0)  # this was for the terminal, and not for those who load the model
    _write(model, files, force, console)
    if as_json:
        document: dict[str, Any] = {"data": data, "target": target, "task": training.task}
        document |= {"model": out, "report": report}
        told = {"notes": console.notes, "warnings": console.warnings}
        print_json(document | {"seconds": seconds} | told | {"summary": model.summary()})
    else:
        click.echo(str(model))
        if out is None:
            console.note("The model was not saved; --out model.hik saves it.")


def _check_files(
    out: str | None, report: str | None, force: bool, data: str
) -> dict[str, tuple[str, Path]]:
    """Return where to write what; raise BadInput if that will not be possible."""
    files = {
        name: (path, check_destination(path, force=force, inputs=[data]))
        for name, path in (("Model", out), ("Report", report))
        if path is not None
    }
    if len({target for _, target in files.values()}) < len(files):
        raise BadInput(f"--out and --report both name '{out}'.")
    if report is not None:
        require_report()
    return files


def _check_loss(task: str | None, loss: str | None) -> str | None:
    """Return the task of the loss, if one is given; raise BadInput if the task is another one."""
    if loss is None:
        return None
    implied = next(name for name, losses in LOSSES.items() if loss in losses)
    if task not in (None, implied):
        raise BadInput(f"--loss {loss} is for {implied}, not for {task}.")
    return implied


def _read_basis(given: tuple[str, ...]) -> str | dict[str, str]:
    """Return the basis of all columns, or of some by name."""
    named: dict[str, str] = {}
    everywhere = []
    for text in given:
        column, _, name = text.rpartition("=")
        if name not in BASES:
            raise BadInput(f"--basis {text} names no basis; there are {', '.join(BASES)}.")
        if column:
            named[column] = name
        else:
            everywhere.append(name)
    if len(everywhere) > 1 or (everywhere and named):
        raise BadInput("--basis takes one name for all columns, or COLUMN=NAME for some of them.")
    return named or (everywhere or ["auto"])[0]


def _read_orders(given: tuple[str, ...], frame: pd.DataFrame) -> dict[str, list[Any] | None]:
    """Return the order of every column that --ordered names; None for that of its numbers."""
    orders: dict[str, list[Any] | None] = {}
    for text in given:
        column, found, listed = text.partition("=")
        if text in frame.columns:
            column, found, listed = text, "", ""
        order: list[Any] = [part.strip() for part in listed.split(",")]
        if found and column in frame.columns and frame[column].dtype.kind in "iuf":
            try:
                order = [float(part) for part in order]
            except ValueError:
                raise BadInput(
                    f"--ordered {text} lists text, but {column!r} has numbers."
                ) from None
        orders[column] = order if found else None
    return orders


def _read_directions(given: tuple[str, ...]) -> dict[str, str | int]:
    """Return the direction of every column that --monotone names."""
    directions: dict[str, str | int] = {}
    words: dict[str, str | int] = {"1": 1, "+1": 1, "-1": -1}
    words |= {word: word for word in ("increasing", "decreasing")}
    for text in given:
        column, _, direction = text.rpartition("=")
        if not column or direction not in words:
            raise BadInput(
                f"--monotone {text} gives no direction; write COLUMN=increasing or "
                "COLUMN=decreasing."
            )
        directions[column] = words[direction]
    return directions


def _training(
    frame: pd.DataFrame,
    roles: ColumnRoles,
    drop_missing: bool,
    task: str | None,
    implied: str | None,
    console: Console,
) -> _Training:
    """Return the columns in their roles; raise BadInput for what cannot be used."""
    roles.check(frame)
    if frame.shape[1] == len(roles.others):
        raise BadInput("There is no column beside the target to learn from.")
    frame = rows_with_target(frame, roles.target, drop_missing, console)
    task, y = read_target(frame[roles.target], task, implied, console)
    if len(frame) < _FOLDS:
        raise BadInput(
            f"{len(frame)} row{'s are' if len(frame) > 1 else ' is'} too few: cross-validation "
            f"takes at least {_FOLDS}."
        )
    weights = None if roles.weight is None else read_weights(frame[roles.weight])
    named = () if isinstance(roles.basis, str) else tuple(roles.basis)
    given = (*roles.categorical, *roles.ordered)
    X = usable_columns(frame.drop(columns=roles.others), given, named, console)
    basis = roles.basis
    if not isinstance(basis, str):
        basis = {name: kind for name, kind in basis.items() if name in X.columns}
    categorical = [name for name in roles.categorical if name in X.columns]
    console.note(f"{len(X)} rows, {X.shape[1]} columns.")
    ordered = {name: order for name, order in roles.ordered.items() if name in X.columns}
    offsets = {
        what: read_numbers(frame[name], what, positive=what == "exposure")
        for what, name in (("offset", roles.offset), ("exposure", roles.exposure))
        if name is not None
    }
    interactions = usable_groups(roles.allow, roles.forbid, X.columns)
    monotone = {name: sign for name, sign in roles.monotone.items() if column_of(name, X.columns)}
    return _Training(
        *(task, X, y, weights, categorical, basis, ordered, offsets, interactions, monotone)
    )


def _estimator(task: str) -> Any:
    from hikernel.estimators import HKLClassifierCV, HKLRegressorCV

    return HKLClassifierCV if task == "classification" else HKLRegressorCV


def _fitted(training: _Training, settings: dict[str, Any], console: Console) -> Any:
    """Return the fitted model; its warnings become lines."""
    columns: dict[str, Any] = {"basis": training.basis}
    columns["categorical"] = training.categorical or None
    columns["ordered"] = training.ordered or None
    columns["interactions"] = training.interactions
    columns["monotone"] = training.monotone or None
    model = _estimator(training.task)(**columns, **settings)
    with console.library_warnings(), sentences_of_library():
        weights = training.sample_weight
        return model.fit(training.X, training.y, sample_weight=weights, **training.offsets)


def _write(model: Any, files: dict[str, tuple[str, Path]], force: bool, console: Console) -> None:
    """Write the model, then the report."""
    for what, (name, target) in files.items():
        write_new(target, model.save if what == "Model" else model.report, force=force)
        console.note(f"{what}: {name}")
