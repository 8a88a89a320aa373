"""Columns of a table that cannot be used as they are, found before the fit, with what to do.

Columns of one value are left out. Identifiers, dates, and numbers among which there is text are
refused together, in words that can be pasted into the command.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection
from typing import TYPE_CHECKING

from hikernel.cli.console import BadInput, Console, listed

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["looks_like_numbers", "usable_columns"]

_MOST_CATEGORIES = 100
"""Largest number of categories that the library takes unless ``basis`` names the column."""
_MOSTLY = 0.8
"""Share of the values of a column of text that are numbers, if it is meant to be one of numbers."""
_LOOKED_AT = 1000
"""Number of distinct texts that are looked at."""
_DATE = re.compile(r"\d{4}-\d{1,2}-\d{1,2}|\d{1,2}[./-]\d{1,2}[./-](\d{4}|\d{2})\b|\d{4}/\d")
_COMMA = re.compile(r"[-+]?\d*,\d+")


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
        Columns whose basis the user names, which may have any number of categories.
    console : Console
        Says what is left out, and what looks odd.
    """
    idle, refused, remedies = [], [], []
    for name in frame.columns:
        column = frame[name]
        if column.count() == 0 or (column.nunique() < 2 and column.count() == len(column)):
            idle.append(name)
        elif name not in given:
            problem, remedy = _problem(column, name in categorical)
            if remedy:
                remedies.append(f"Column {name!r} {problem}; {remedy}.")
            elif problem:
                refused.append((name, problem))
            elif _counts_rows(column):
                console.note(
                    f"Column {name!r} counts the rows; if it is an identifier, leave it out with "
                    f"--drop {shlex.quote(name)}."
                )
    if refused:
        shown = " and ".join(f"{name!r} ({problem})" for name, problem in refused[:10])
        drops = " ".join(f"--drop {shlex.quote(name)}" for name, _ in refused)
        remedies.append(f"Columns that cannot be used as they are: {shown}. Leave out: {drops}")
        if any("different texts" in problem for _, problem in refused):
            one = next(name for name, problem in refused if "different texts" in problem)
            remedies[-1] += f" (or keep it, with --basis {shlex.quote(f'{one}=categorical')})"
        remedies[-1] += "."
    if remedies:
        raise BadInput(" ".join(remedies))
    if idle:
        console.note(f"Left out, as there is one value only or none: {listed(idle)}.")
    if len(idle) == frame.shape[1]:
        raise BadInput("No column is left to learn from.")
    return frame.drop(columns=idle)


def looks_like_numbers(column: pd.Series) -> str:
    """Return a text that stands among the numbers of a column of text; "" if it is no such one."""
    import pandas as pd

    distinct = pd.Series(column.dropna().unique()[:_LOOKED_AT]).astype(str)
    numbers = pd.to_numeric(distinct, errors="coerce").notna()
    if len(distinct) < 5 or numbers.mean() < _MOSTLY or numbers.all():
        return ""
    return str(distinct[~numbers].iloc[0])


def _problem(column: pd.Series, is_category: bool) -> tuple[str, str]:
    """Return what is wrong with a column, and what to do but leaving it out; "" for nothing."""
    import pandas as pd
    from pandas.api import types

    n_distinct = column.nunique()
    if is_category or isinstance(column.dtype, pd.CategoricalDtype):
        return (f"{n_distinct} different texts", "") if n_distinct > _MOST_CATEGORIES else ("", "")
    if types.is_datetime64_any_dtype(column) or types.is_timedelta64_dtype(column):
        return "dates or times", ""
    if types.is_numeric_dtype(column) or types.is_bool_dtype(column):
        return "", ""
    present = column.dropna()
    if not present.map(lambda value: isinstance(value, str)).all():
        return "", ""  # the library says what it finds
    stray = looks_like_numbers(present)
    if stray:
        mark = f"if that is a missing value, add --missing {shlex.quote(stray)}"
        return f"holds numbers, but also the text {stray!r}", mark
    sample = present.iloc[:_LOOKED_AT]
    if n_distinct > 2 and sample.map(lambda value: bool(_COMMA.fullmatch(value))).all():
        return f"holds text such as {sample.iloc[0]!r}", "if that is a number, add --decimal ,"
    if n_distinct > _MOST_CATEGORIES:
        dates = sample.map(lambda value: bool(_DATE.match(value.strip()))).all()
        return ("dates" if dates else f"{n_distinct} different texts"), ""
    return "", ""


def _counts_rows(column: pd.Series) -> bool:
    """Return whether a column of integers goes up by one from row to row."""
    from pandas.api import types

    return bool(
        types.is_integer_dtype(column) and len(column) > 2 and (column.diff()[1:] == 1).all()
    )
