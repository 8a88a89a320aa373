"""``hikernel predict``: the predictions of a model for the rows of a table, as CSV or JSON."""

from __future__ import annotations

import io
import json
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
from hikernel.cli.model_file import open_model, read_rows, rows_of_model
from hikernel.cli.table_file import TableOptions, table_options
from hikernel.cli.target_column import check_names

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["predict"]

_PREDICTION = "prediction"


@click.command(
    "predict", epilog="\b\nhikernel predict model.hik new.csv --keep id --out predictions.csv"
)
@click.argument("model")
@click.argument("data")
@click.option("--out", metavar="FILE", help="Write to a file instead of standard output.")
@click.option("--proba", is_flag=True, help="Add a column P(class) for every class.")
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
    keep: tuple[str, ...],
    reading: TableOptions,
    as_json: bool,
    force: bool,
    quiet: bool,
) -> None:
    """Predict the rows of the table DATA with the MODEL of a file.

    The result is CSV with a column "prediction", one line per row in the same order. Columns of
    DATA are found by name; those that the model does not take are ignored.
    """
    console = Console(quiet)
    target = None if out is None else check_destination(out, force=force, inputs=[model, data])
    if target is not None and target.suffix.lower() in (".parquet", ".feather"):
        raise BadInput(f"Predictions are written as CSV or JSON, and '{out}' promises another.")
    fitted = open_model(model)
    if proba and not hasattr(fitted, "predict_proba"):
        raise BadInput("This model has no probabilities; leave out --proba.")
    frame = read_rows(data, fitted, reading, console)
    check_names(frame, "--keep", keep)
    if _PREDICTION in keep:
        raise BadInput(f"--keep names {_PREDICTION!r}, which is the column of the predictions.")
    rows = rows_of_model(frame, fitted, console, keep)
    with console.library_warnings(), sentences_of_library():
        columns: dict[str, Any] = {_PREDICTION: fitted.predict(rows)}
        if proba:
            shares = fitted.predict_proba(rows)
            columns |= {
                f"P({label})": p for label, p in zip(fitted.classes_, shares.T, strict=True)
            }
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
    """Return a value of a table as JSON has it: None if it is missing, text for other types."""
    import pandas as pd

    value = value.item() if hasattr(value, "item") else value
    if pd.isna(value):
        return None
    return value if isinstance(value, (bool, int, float, str)) else str(value)
