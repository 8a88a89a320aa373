"""``hikernel predict``: the predictions of a model for the rows of a table, as CSV or JSON."""

from __future__ import annotations

import io
import json
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hikernel.cli.console import (
    BadInput,
    Console,
    json_option,
    quiet_option,
    sentences_of_library,
)
from hikernel.cli.destination import check_destination, force_option, write_new
from hikernel.cli.model_file import offsets_of_rows, open_model, read_rows, rows_of_model
from hikernel.cli.table_file import TableOptions, table_options
from hikernel.cli.target_column import check_names

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["predict"]

_COLUMNS = ("prediction", "std", "low", "high")


@click.command(
    "predict", epilog="\b\nhikernel predict model.hik new.csv --keep id --out predictions.csv"
)
@click.argument("model")
@click.argument("data")
@click.option("--out", metavar="FILE", help="Write to a file instead of standard output.")
@click.option("--proba", is_flag=True, help="Add a column P(class) for every class.")
@click.option("--std", is_flag=True, help="Add a column with the standard deviation of the mean.")
@click.option(
    "--interval",
    type=float,
    metavar="LEVEL",
    help="Add columns low and high that hold y with this probability, if the model is calibrated.",
)
@click.option("--keep", multiple=True, metavar="COLUMN", help="Copy a column, such as a number.")
@table_options
@json_option
@force_option
@quiet_option
def predict(
    model: str,
    data: str,
    out: str | None,
    proba: bool,
    std: bool,
    interval: float | None,
    keep: tuple[str, ...],
    reading: TableOptions,
    as_json: bool,
    force: bool,
    quiet: bool,
) -> None:
    """Predict the rows of the table DATA with the MODEL of a file.

    The result is CSV with a column "prediction", one line per row in the same order. Columns of
    DATA are found by name; those that the model does not take are ignored. If the model was fitted
    with --exposure or --offset, the columns of these names are taken as such.
    """
    console = Console(quiet)
    target = None if out is None else check_destination(out, force=force, inputs=[model, data])
    if target is not None and target.suffix.lower() in (".parquet", ".feather"):
        raise BadInput(f"Predictions are written as CSV or JSON, and '{out}' promises another.")
    fitted = open_model(model)
    if proba and not hasattr(fitted, "predict_proba"):
        raise BadInput("This model has no probabilities; leave out --proba.")
    if (std or interval is not None) and not hasattr(fitted, "predict_interval"):
        what = "classes" if hasattr(fitted, "classes_") else "risks of censored times"
        raise BadInput(f"--std and --interval are for numbers, and this model predicts {what}.")
    frame = read_rows(data, fitted, reading, console)
    check_names(frame, "--keep", keep)
    for name in _COLUMNS if std or interval is not None else _COLUMNS[:1]:
        if name in keep:
            raise BadInput(f"--keep names {name!r}, which is a column of the predictions.")
    given = offsets_of_rows(frame, fitted, console)
    used = tuple(str(column.name) for column in given.values())
    rows = rows_of_model(frame, fitted, console, keep + used)
    with console.library_warnings(), sentences_of_library():
        columns: dict[str, Any] = {_COLUMNS[0]: fitted.predict(rows, **given)}
        if proba:
            shares = fitted.predict_proba(rows, **given)
            columns |= {
                f"P({label})": p for label, p in zip(fitted.classes_, shares.T, strict=True)
            }
        if std:
            columns["std"] = fitted.predict(rows, return_std=True, **given)[1]
        if interval is not None:
            columns["low"], columns["high"] = fitted.predict_interval(rows, interval, **given).T
    content = _written(frame, keep, columns, as_json=as_json, tabs=_is_tsv(target))
    if target is None:
        sys.stdout.flush()
        sys.stdout.buffer.write(content)
    else:
        from hikernel.persistence.whole_file import write_whole

        write_new(
            target,
            lambda path: write_whole(path, lambda stream: stream.write(content)),
            force=force,
        )
        console.note(f"{len(frame)} predictions: {out}")


def _is_tsv(target: Path | None) -> bool:
    return target is not None and target.suffix.lower() in (".tsv", ".tab")


def _written(
    frame: pd.DataFrame,
    keep: tuple[str, ...],
    columns: dict[str, Any],
    *,
    as_json: bool,
    tabs: bool,
) -> bytes:
    """Return the table of predictions as it is written, in UTF-8."""
    import pandas as pd

    table = pd.concat([frame[list(keep)], pd.DataFrame(columns, index=frame.index)], axis=1)
    if as_json:
        lists = {str(name): [_plain(value) for value in table[name]] for name in table.columns}
        document = {"n_rows": len(table), "columns": lists}
        return (json.dumps(document, indent=2, allow_nan=False) + "\n").encode()
    text = io.StringIO()
    table.to_csv(text, index=False, sep="\t" if tabs else ",", lineterminator="\n")
    return text.getvalue().encode()


def _plain(value: Any) -> Any:
    """Return a value of a table as JSON has it: None if missing or infinite, or text."""
    import pandas as pd

    value = value.item() if hasattr(value, "item") else value
    if pd.isna(value) or (isinstance(value, float) and math.isinf(value)):
        return None
    return value if isinstance(value, (bool, int, float, str)) else str(value)
