"""Columns of a table that cannot be used as they are, found before the fit, with what to do.

Columns of one value and identifiers are left out, and text that is dates becomes dates. Dates that
can be read in two ways, and numbers among which there is text, are refused together, in words that
can be pasted into the command.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection
from typing import TYPE_CHECKING

from hikernel.cli.console import BadInput, Console, listed
from hikernel.cli.date_text import is_text, read_dates

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["decimal_comma", "looks_like_numbers", "usable_columns"]

_IDENTIFIER = 2
"""Most rows of any category of an identifier: nothing can be learnt from so few."""
_MANY = 32
"""Least number of categories of an identifier; the library keeps all of fewer."""
_MOSTLY = 0.8
"""Share of the values of a column of text that are numbers, if it is meant to be one of numbers."""
_LOOKED_AT = 1000
"""Number of distinct texts that are looked at."""
_DATE = re.compile(
    r"(\d{4}-\d{1,2}-\d{1,2}|\d{4}/\d{1,2}/\d{1,2}|\d{1,2}[./-]\d{1,2}[./-](\d{4}|\d{2}))"
    r"([T ]+\d{1,2}:\d{2}.*)?"
)
_COMMA = re.compile(r"[-+]?(\d+|\d*,\d+)")


def usable_columns(
    frame: pd.DataFrame, categorical: Collection[str], given: Collection[str], console: Console
) -> pd.DataFrame:
    """Return the table without the columns that hold nothing; raise BadInput for impossible ones.

    Parameters
    ----------
    frame : DataFrame
        The columns that the model would take.
    categorical : collection of str
        Columns that the user names as categories.
    given : collection of str
        Columns whose basis the user names.
    console : Console
        Says what is left out, and what looks odd.
    """
    frame = read_dates(frame, categorical, console)
    idle, named, dates, remedies = [], [], [], []
    for name in frame.columns:
        column = frame[name]
        if column.count() == 0 or (column.nunique() < 2 and column.count() == len(column)):
            idle.append(name)
        elif name in given or name in categorical:
            continue
        elif _is_ambiguous(column):
            dates.append(name)
        elif not is_text(column):
            _note_count(column, console)
        elif _odd_text(column):
            remedies.append(f"Column {name!r} {_odd_text(column)}.")
        elif column.nunique() > _MANY and column.value_counts().iloc[0] <= _IDENTIFIER:
            named.append(name)
    if dates:
        drops = " ".join(f"--drop {shlex.quote(name)}" for name in dates)
        remedies.append(
            "Dates with the day or the month first can be read in two ways, and are in "
            f"{listed(dates)}: write them year first, as in 2011-03-04, or leave them out: {drops}"
        )
    if remedies:
        raise BadInput(" ".join(remedies))
    if idle:
        console.note(f"Left out, as there is one value only or none: {listed(idle)}.")
    if named:
        console.note(f"Left out, as nearly every row has its own text: {listed(named)}.")
    if len(idle) + len(named) == frame.shape[1]:
        raise BadInput("No column is left to learn from.")
    return frame.drop(columns=[*idle, *named])


def looks_like_numbers(column: pd.Series) -> str:
    """Return a text that stands among the numbers of a column of text; "" if it is no such one."""
    import pandas as pd

    distinct = pd.Series(column.dropna().unique()[:_LOOKED_AT]).astype(str)
    numbers = pd.to_numeric(distinct, errors="coerce").notna()
    if len(distinct) < 5 or numbers.mean() < _MOSTLY or numbers.all():
        return ""
    return str(distinct[~numbers].iloc[0])


def decimal_comma(column: pd.Series) -> str:
    """Return a text of a column that are all numbers with decimal commas; "" if they are not."""
    texts = column.dropna()
    if texts.nunique() < 3 or not is_text(column) or not _all_match(column, _COMMA):
        return ""
    return next((str(value) for value in texts if "," in value), "")


def _odd_text(column: pd.Series) -> str:
    """Return what is odd about a column of text, and what to do about it; "" for nothing."""
    stray = looks_like_numbers(column)
    if stray:
        return (
            f"holds numbers, but also the text {stray!r}; if that is a missing value, add "
            f"--missing {shlex.quote(stray)}"
        )
    example = decimal_comma(column)
    if example:
        return f"holds text such as {example!r}; if that is a number, add --decimal ,"
    return ""


def _all_match(column: pd.Series, pattern: re.Pattern[str]) -> bool:
    """Return whether all texts of a column look alike."""
    sample = column.dropna().iloc[:_LOOKED_AT]
    return bool(sample.map(lambda value: bool(pattern.fullmatch(value.strip()))).all())


def _is_ambiguous(column: pd.Series) -> bool:
    """Return whether a column holds text that looks like dates, which can be read in two ways."""
    return is_text(column) and _all_match(column, _DATE)


def _note_count(column: pd.Series, console: Console) -> None:
    """Note that a column of integers goes up by one from row to row."""
    from pandas.api import types

    name = str(column.name)
    if types.is_integer_dtype(column) and len(column) > 2 and (column.diff()[1:] == 1).all():
        console.note(
            f"Column {name!r} counts the rows; if it is an identifier, leave it out with "
            f"--drop {shlex.quote(name)}."
        )
