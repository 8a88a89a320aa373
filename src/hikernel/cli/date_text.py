"""Dates in text files: columns of text that are dates, year first, become dates."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection
from typing import TYPE_CHECKING

from hikernel.cli.console import BadInput, Console

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["as_dates", "is_text", "read_dates"]

_YEAR_FIRST = re.compile(
    r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}([.,]\d+)?)?(Z|[+-]\d{2}:?\d{2})?)?"
)


def read_dates(frame: pd.DataFrame, kept: Collection[str], console: Console) -> pd.DataFrame:
    """Return the table with columns of text that are dates, year first, as dates.

    Parameters
    ----------
    frame : DataFrame
        The columns that the model would take.
    kept : collection of str
        Columns that stay as they are.
    console : Console
        Says which columns are dates.
    """
    found = {}
    for name in frame.columns:
        column = frame[name]
        if name in kept or not is_text(column) or column.count() == 0:
            continue
        if column.dropna().map(lambda value: bool(_YEAR_FIRST.fullmatch(value.strip()))).all():
            try:
                found[name] = as_dates(column)
            except BadInput as error:
                raise BadInput(
                    f"{error} If they are no dates, --categorical {shlex.quote(name)} keeps them "
                    "as they are."
                ) from None
            console.note(
                f"Column {name!r} holds dates; --categorical {shlex.quote(name)} makes every one a "
                "category."
            )
    return frame.assign(**found) if found else frame


def as_dates(column: pd.Series, zone: str | None = None) -> pd.Series:
    """Return a column of text as dates; raise BadInput, in a sentence, for other text.

    Times with a distance from UTC are converted to ``zone``, or to UTC without one.
    """
    import pandas as pd

    text = column.dropna().astype(str).str.strip()
    aware = bool(text.str.contains(r":\d{2}.*(?:Z|[+-]\d{2}:?\d{2})$", regex=True).any())
    try:
        dates = pd.to_datetime(column, format="ISO8601", utc=aware)
    except (ValueError, TypeError) as error:
        reason = str(error).split(". ")[0].split(", at position")[0]
        raise BadInput(
            f"Column {str(column.name)!r} holds dates, but not all of them can be read ({reason}); "
            "write them as 2011-03-04 or 2011-03-04 14:30, all with a time zone or none."
        ) from None
    return dates.dt.tz_convert(zone) if aware and zone is not None else dates


def is_text(column: pd.Series) -> bool:
    """Return whether a column holds text and nothing else."""
    from pandas.api import types

    if not (types.is_object_dtype(column) or types.is_string_dtype(column)):
        return False
    return bool(column.dropna().map(lambda value: isinstance(value, str)).all())
