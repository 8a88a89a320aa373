"""The target of a fit: its rows, its task, and the column of weights."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from hikernel.cli.console import BadInput, Console, listed
from hikernel.cli.inspection import decimal_comma, looks_like_numbers

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["check_names", "read_numbers", "read_target", "read_weights", "rows_with_target"]

_MOST_LABELS = 10
_ROWS_PER_LABEL = 5
"""Whole numbers are taken for classes if there are no more of them, with so many rows each."""
_MOST_CLASSES = 100


def check_names(frame: pd.DataFrame, option: str, names: Sequence[str]) -> None:
    """Raise BadInput for a name that is no column of the table."""
    known = list(frame.columns)
    for name in names:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            meant = f"; did you mean {close[0]!r}?" if close else "."
            raise BadInput(
                f"{option} names {name!r}, which is no column{meant} The columns are "
                f"{listed(known, 20)}."
            )


def rows_with_target(
    frame: pd.DataFrame, target: str, drop: bool, console: Console
) -> pd.DataFrame:
    """Return the rows that have a target; raise BadInput if some have none and may not be left out.

    Parameters
    ----------
    frame : DataFrame
        The table.
    target : str
        Name of the target.
    drop : bool
        Whether rows without a target are left out.
    console : Console
        Says how many were left out.
    """
    known = frame[target].notna()
    lost = int((~known).sum())
    if lost == 0:
        return frame
    if lost == len(frame):
        raise BadInput(f"The target {target!r} has no values.")
    rows = f"{lost} row{'s have' if lost > 1 else ' has'} no value of the target {target!r}"
    if not drop:
        first = int(known.to_numpy().argmin()) + 1
        raise BadInput(
            f"{rows} (the first is row {first} below the header); leave out such rows with "
            "--drop-missing-target."
        )
    console.note(f"{rows}, and {'are' if lost > 1 else 'is'} left out.")
    return frame[known].reset_index(drop=True)


def read_target(
    column: pd.Series, task: str | None, loss: str | None, console: Console
) -> tuple[str, pd.Series]:
    """Return the task, guessed and said if it is not given, and the target in its type.

    Parameters
    ----------
    column : Series
        The target, without missing values.
    task : {"regression", "classification"} or None
        The task, if the user says it.
    loss : str or None
        The task of the loss, if the user names one.
    console : Console
        Says what was guessed.
    """
    import pandas as pd
    from pandas.api import types

    name, n_distinct = str(column.name), column.nunique()
    if types.is_datetime64_any_dtype(column) or types.is_timedelta64_dtype(column):
        raise BadInput(f"The target {name!r} holds dates; turn them into numbers first.")
    if n_distinct < 2:
        raise BadInput(f"The target {name!r} has one value only; there is nothing to learn.")
    values = column.astype(object).map(_plain)
    types_of = set(values.map(type))
    boolean = types_of == {bool}
    numeric = types_of <= {int, float} and not isinstance(column.dtype, pd.CategoricalDtype)
    task = task or loss
    comma = decimal_comma(column)
    if comma and task != "classification":
        raise BadInput(
            f"The target {name!r} holds text such as {comma!r}; if that is a number, add "
            '--decimal ","; if it is a class, add --task classification.'
        )
    if task is None:
        task, why = _guess(values, n_distinct, boolean, numeric)
        other = "classification" if task == "regression" else "regression"
        remedy = "" if str in types_of else f"; --task {other} makes it {other}"
        console.note(f"Target {name!r}: {why}. The task is {task}{remedy}.")
    if task == "regression":
        if str in types_of:
            raise BadInput(f"The target {name!r} holds text ({_example(values)!r}), no numbers.")
        return task, values.astype(float)
    if not numeric and looks_like_numbers(column) and n_distinct > _MOST_LABELS:
        stray = looks_like_numbers(column)
        raise BadInput(
            f"The target {name!r} holds numbers, but also the text {stray!r}; if that is a missing "
            f"value, add --missing '{stray}' --drop-missing-target."
        )
    if n_distinct > _MOST_CLASSES:
        raise BadInput(
            f"The target {name!r} has {n_distinct} different values in {len(column)} rows, too "
            f"many for classes (at most {_MOST_CLASSES})."
        )
    return task, values if str in types_of else values.infer_objects()


def read_weights(column: pd.Series) -> Any:
    """Return the weights of the rows; raise BadInput if they are none."""
    import numpy as np
    import pandas as pd

    weights = pd.to_numeric(column, errors="coerce").to_numpy(dtype=float)
    wrong = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0.0)))
    if wrong.size:
        raise BadInput(
            f"Weights are numbers from 0 on, and column {str(column.name)!r} has "
            f"{column.iloc[wrong[0]]!r} in row {wrong[0] + 1} below the header."
        )
    return weights


def read_numbers(column: pd.Series, what: str, *, positive: bool = False) -> pd.Series:
    """Return a column of finite numbers, such as an offset; raise BadInput if it is none."""
    import numpy as np
    import pandas as pd

    numbers = pd.to_numeric(column, errors="coerce").astype(float)
    values = numbers.to_numpy()
    wrong = ~np.isfinite(values) | (positive & (values <= 0.0))
    if wrong.any():
        row = int(wrong.argmax())
        kind = "a positive number" if positive else "a finite number"
        raise BadInput(
            f"The {what} of every row is {kind}, and column {str(column.name)!r} has "
            f"{_plain(column.iloc[row])!r} in row {row + 1} below the header."
        )
    return numbers


def _guess(values: pd.Series, n_distinct: int, boolean: bool, numeric: bool) -> tuple[str, str]:
    """Return the task that a target looks like, and why."""
    if boolean:
        return "classification", "true or false"
    if not numeric:
        return "classification", f"{n_distinct} different categories"
    whole = bool(values.map(lambda value: float(value).is_integer()).all())
    few = n_distinct <= _MOST_LABELS and len(values) >= _ROWS_PER_LABEL * n_distinct
    if n_distinct > 2:  # of two values one may be rare, as an event is
        few = few and values.value_counts().min() >= _ROWS_PER_LABEL
    if whole and few:
        return "classification", f"{n_distinct} different whole numbers"
    return "regression", f"numbers, {n_distinct} different values"


def _plain(value: Any) -> Any:
    """Return a value as a plain Python scalar; whole floats as integers, other objects as text."""
    value = value.item() if hasattr(value, "item") else value
    value = float(value) if isinstance(value, Decimal) else value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, (bool, int, float, str)) else str(value)


def _example(values: pd.Series) -> Any:
    return next(value for value in values if isinstance(value, str))
