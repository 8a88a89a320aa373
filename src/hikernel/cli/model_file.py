"""Models from files, and the columns of new tables as a model takes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hikernel.cli.console import BadInput, Console, listed
from hikernel.cli.date_text import as_dates, is_text
from hikernel.cli.table_file import TableOptions, read_table_file
from hikernel.cli.target_column import read_numbers

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["offsets_of_rows", "open_model", "read_rows", "rows_of_model"]


def open_model(path: str) -> Any:
    """Return the model in a file; raise BadInput, in a sentence, if there is none."""
    from hikernel.errors import ModelFileError
    from hikernel.estimators.saving import load

    try:
        return load(path)
    except FileNotFoundError:
        raise BadInput(f"There is no file '{path}'.") from None
    except IsADirectoryError:
        raise BadInput(f"'{path}' is a folder; name a model file.") from None
    except ModelFileError as error:
        raise BadInput(str(error)) from error
    except OSError as error:
        raise BadInput(f"'{path}' cannot be read: {error.strerror}.") from error


def read_rows(path: str, model: Any, options: TableOptions, console: Console) -> pd.DataFrame:
    """Return the table in a file; columns that hold text for the model are read as text."""
    table = model.columns_
    text = [
        name
        for name, categories in zip(table.input_names, table.categories, strict=False)
        if categories and any(isinstance(value, str) for value in categories)
    ]
    return read_table_file(path, options, console, text)


def rows_of_model(
    frame: pd.DataFrame, model: Any, console: Console, keep: tuple[str, ...] = ()
) -> Any:
    """Return the columns of a table that a model takes, in its order.

    Parameters
    ----------
    frame : DataFrame
        The table.
    model : estimator
        A fitted model.
    console : Console
        Says which columns are ignored.
    keep : tuple of str
        Columns that are used otherwise.

    Returns
    -------
    DataFrame, or ndarray for a model that was fitted without names of columns
    """
    named = model.columns_.feature_names_in is not None
    names = list(model.columns_.input_names)
    missing = [name for name in names if name not in frame.columns]
    if missing and not named and frame.shape[1] == len(names):
        console.note("The model has no names of columns; the columns are taken in their order.")
        return frame.to_numpy()
    if missing:
        raise BadInput(
            f"The table has no column {listed(missing)}, which the model takes; its columns are "
            f"{listed(list(frame.columns))}."
        )
    extra = [name for name in frame.columns if name not in names and name not in keep]
    if extra:
        console.note(f"Not used by the model: {listed(extra)}.")
    frame = frame[names]
    for date in model.columns_.dates:
        if date.kind == "date" and is_text(frame[date.name]):
            frame = frame.assign(**{date.name: as_dates(frame[date.name], date.zone)})
    return frame if named else frame.to_numpy()


def offsets_of_rows(frame: pd.DataFrame, model: Any, console: Console) -> dict[str, pd.Series]:
    """Return the columns of a table that were offset and exposure in the fit, as arguments.

    Where there is no such column, predictions are for none, which is said.
    """
    out = {}
    for what, none in (("offset", "0"), ("exposure", "1")):
        name = getattr(model._record, what)
        if name in frame.columns:
            out[what] = read_numbers(frame[name], what, positive=what == "exposure")
        elif name is not None:
            console.note(f"The table has no column {name!r}: predictions are for {what} {none}.")
    return out
