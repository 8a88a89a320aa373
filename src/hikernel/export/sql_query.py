"""The model as one SELECT: f, and what is predicted, for every row of a table.

Common table expressions follow each other: inputs, levels of the variables (one expression per
stage of `hikernel.export.sql_levels`), effects, f. Nothing is joined, so rows stay as they are.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hikernel.export.document import json_document
from hikernel.export.python_text import effects_words, printable
from hikernel.export.sql_dates import date_days, date_part, duration_days
from hikernel.export.sql_effects import effect_columns, variable_name
from hikernel.export.sql_link import link_functions, link_results, link_stages
from hikernel.export.sql_text import (
    DIALECTS,
    INDENT,
    Dialect,
    identifier,
    literal,
    number,
    total,
)

__all__ = ["sql_source"]

Data = dict[str, Any]
Column = tuple[str, str, str]
"""Name, expression and comment."""

_DEEP = INDENT * 3
_ALL: Column = ("*", "", "")
"""All columns of the table before."""
_TITLES = {
    "inputs": "Columns of the table as numbers; categories by position, -1 for any other.",
    "levels": "Levels of the variables, which effects are made of.",
    "effects": "What each effect adds to f.",
}


def sql_source(
    summary: Mapping[str, Any],
    *,
    table: str | Sequence[str] = "data",
    keys: Sequence[str] = (),
    dialect: str = "sqlite",
) -> str:
    """Return the model as the text of one SELECT.

    Parameters
    ----------
    summary : dict
        What ``summary()`` of a fitted model returns.
    table : str or sequence of str, default="data"
        Table with the columns of the training data; a sequence for a table in a schema.
    keys : sequence of str, optional
        Columns of the table that the result has, too.
    dialect : {"sqlite", "duckdb", "postgresql", "ansi"}, default="sqlite"
        The engine. Only "sqlite" and "duckdb" are run in the tests of hikernel.

    Returns
    -------
    str
        A statement whose result has the keys and "prediction", with two classes or a link also
        "f", and with probabilities one column ``"probability_<class>"`` each.

    Raises
    ------
    NotPortableError
        If the model cannot be written as plain data, or not in the limits of engines.
    ValueError
        If the dialect is unknown, or a key is named as a result.
    """
    source, names, known = _check(table, keys, dialect)
    document = json_document(summary)
    results = _checked_results(document, names)
    stages, effects = effect_columns(document)
    carried = [f"key_{i + 1}" for i in range(len(names))]
    keys_read = [
        (key, f"source.{identifier(name)}", "") for key, name in zip(carried, names, strict=True)
    ]
    passed = [(key, key, "") for key in carried]

    query = _Query(_prefix(source[-1]), f"{'.'.join(map(identifier, source))} AS source")
    query.add("inputs", [*keys_read, *_inputs(document["function"], known)], _TITLES["inputs"])
    for i, columns in enumerate(stages.columns):
        query.add(f"{i + 1}", [_ALL, *columns], "" if i else _TITLES["levels"])
    query.add("effects", [*passed, *effects] or [("one", "1", "")], _TITLES["effects"])
    query.add("f", [*passed, *_sums(document, effects)])
    for word, columns in link_stages(document):
        query.add(word, [_ALL, *columns])

    functions = stages.functions | link_functions(document)
    out = [*zip(names, carried, strict=True), *results]
    columns_out = ",\n".join(f"{INDENT}{text} AS {identifier(name)}" for name, text in out)
    return (
        f"{_header(document, source, dialect, functions)}\n"
        f"WITH\n{query.text(known)}\nSELECT\n{columns_out}\nFROM {query.last};\n"
    )


class _Query:
    """Table expressions, each reading the one before.

    Parameters
    ----------
    prefix : str
        Begins the names of all of them.
    source : str
        What the first one reads.
    """

    def __init__(self, prefix: str, source: str) -> None:
        self.prefix = prefix
        self.last = source
        self.tables: list[tuple[str, str]] = []

    def add(self, word: str, columns: Sequence[Column], title: str = "") -> None:
        """Add a table expression with a column per line, and a comment over those that have one."""
        lines = [f"{INDENT * 2}-- {title}"] if title else []
        for i, (name, text, comment) in enumerate(columns):
            end = "," if i + 1 < len(columns) else ""
            if comment:
                lines.append(f"{INDENT * 2}-- {printable(comment)}")
            shown = name if not text or text == name else f"{text} AS {name}"
            lines.append(f"{INDENT * 2}{shown}{end}")
        body = "\n".join(lines)
        name = f"{self.prefix}{word}"
        self.tables.append((name, f"{INDENT}SELECT\n{body}\n{INDENT}FROM {self.last}"))
        self.last = name

    def text(self, dialect: Dialect) -> str:
        """Return all of them."""
        word = "AS MATERIALIZED (" if dialect.materialized else "AS ("
        return ",\n".join(f"{name} {word}\n{text}\n)" for name, text in self.tables)


def _checked_results(document: Data, keys: list[str]) -> list[tuple[str, str]]:
    """Return the columns of the result; raise if a key has the name of one."""
    results = link_results(document)
    for name in keys:
        if name.lower() in (result.lower() for result, _ in results):
            raise ValueError(
                f"The key {name!r} has the name of a result; rename the column in a view of it."
            )
    return results


def _check(
    table: str | Sequence[str], keys: Sequence[str], dialect: str
) -> tuple[list[str], list[str], Dialect]:
    """Return the parts of the name of the table, the keys and the dialect."""
    if dialect not in DIALECTS:
        known = ", ".join(f'"{name}"' for name in DIALECTS)
        raise ValueError(f"dialect must be one of {known}, got {dialect!r}.")
    source = [table] if isinstance(table, str) else list(table)
    if not source or not all(isinstance(part, str) and part for part in source):
        raise ValueError(
            f"table must be the name of a table, or a list such as ['schema', 'name'], "
            f"got {table!r}."
        )
    names = [keys] if isinstance(keys, str) else list(keys)
    if not all(isinstance(name, str) and name for name in names):
        raise ValueError(f"keys must be names of columns, got {keys!r}.")
    if len({name.lower() for name in names}) < len(names):
        raise ValueError("keys names a column twice; name each once.")
    return source, names, DIALECTS[dialect]


def _prefix(table: str) -> str:
    """Return what begins the names of all table expressions: none may hide the table."""
    prefix = "model_"
    while table.lower().startswith(prefix):
        prefix += "_"
    return prefix


def _header(document: Data, source: list[str], dialect: str, functions: set[str]) -> str:
    used = ", ".join(one["name"] for one in document["function"]["inputs"]) or "no column"
    words = [
        f"{document['estimator']} of hikernel {document['version']} for "
        f"{document['target'] or 'y'}, as SQL ({dialect}).",
        f"Fitted with loss {document['loss']} to {document['n_rows']:,} rows; "
        f"{effects_words(document)} of: {used}.",
        f"Reads the table {'.'.join(source)}. NULL is missing. A category that is not listed adds "
        "nothing (one with an order counts as missing).",
        f"How predictions follow from f: {document['link']['words']}.",
        f"Functions of the engine that are needed: {', '.join(sorted(functions)) or 'none'}.",
        document["certificate"],
    ]
    lines = [
        line for one in words for line in textwrap.wrap(printable(one), 96, break_long_words=False)
    ]
    return "\n".join(f"-- {line}" for line in lines)


def _inputs(function: Data, dialect: Dialect) -> Iterator[Column]:
    """Yield the inputs of f as numbers, NULL where missing, and the parts of dates."""
    for i, one in enumerate(function["inputs"]):
        # A quoted name that is no column would be text for SQLite, unless its table is named.
        column = f"source.{identifier(one['name'])}"
        clock = f"{one['name']} (on the clock of {one['zone']})" if one["zone"] else ""
        x = _INPUTS[one["kind"]](one, column, dialect)
        yield f"x{i + 1}", x, clock
        for v, variable in enumerate(function["variables"]):
            if variable["input"] == i and variable["part"] is not None:
                part = variable["part"]
                text = date_part(part, column, x, variable["start"], dialect.clock)
                yield f"x{i + 1}_v{v + 1}", text, variable_name(function, v)


def _number(one: Data, column: str, dialect: Dialect) -> str:
    """Return a number; integers must not be divided as such."""
    text = f"CAST({column} AS DOUBLE PRECISION)"
    return f"NULLIF({text}, CAST('NaN' AS DOUBLE PRECISION))" if dialect.nan else text


def _boolean(one: Data, column: str, dialect: Dialect) -> str:
    return f"CASE WHEN {column} THEN 1.0e0 WHEN NOT {column} THEN 0.0e0 END"


def _category(one: Data, column: str, dialect: Dialect) -> str:
    """Return the position among the categories; -1 for others, or NULL if these have an order."""
    values = one["values"] or one["labels"]
    cases = "".join(f"\n{_DEEP}WHEN {literal(value)} THEN {i}" for i, value in enumerate(values))
    other = "NULL" if one["ordered"] else f"CASE WHEN {column} IS NOT NULL THEN -1 END"
    return f"CASE {column}{cases}\n{_DEEP}ELSE {other}\n{INDENT * 2}END" if cases else other


def _date(one: Data, column: str, dialect: Dialect) -> str:
    return date_days(column, dialect.clock)


def _duration(one: Data, column: str, dialect: Dialect) -> str:
    return duration_days(column, dialect.clock)


_INPUTS = {
    "number": _number,
    "boolean": _boolean,
    "category": _category,
    "date": _date,
    "duration": _duration,
}
"""How an input of each kind is read."""


def _sums(document: Data, effects: list[Column]) -> Iterator[Column]:
    """Yield f per output: the intercept and the effects."""
    for k, intercept in enumerate(document["function"]["intercept"]):
        own = [f"+ {name}" for name, _, _ in effects if name.endswith(f"_{k + 1}")]
        start = f"CAST({number(intercept)} AS DOUBLE PRECISION)"
        label = document["outputs"][k] if len(document["outputs"]) > 1 else ""
        yield f"f{k + 1}", total([start, *own], _DEEP), label
