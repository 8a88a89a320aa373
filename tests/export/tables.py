"""A table with everything that columns can hold, and a run of an exported model on its rows."""

from __future__ import annotations

import json
import sqlite3

import numpy as np
import pandas as pd
from oracles.portable import evaluate

from hikernel.export import json_document, python_source, sql_source

AGE, TOWN, FLAG = 'a "b"\n\'c\' -- \\ """', "größe; DROP TABLE data; --", "x1"
"""Names that end strings, comments and statements, and one of SQL's own."""
OSLO, ROME = 'O\'slo """ \\\n-- ☃', "Rome\u2028' || 'x"


def table(n=100, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            AGE: rng.normal(size=n),
            "heavy": rng.lognormal(sigma=1.5, size=n),
            "mostly": np.where(rng.uniform(size=n) < 0.8, 0.0, rng.uniform(size=n)),
            TOWN: rng.choice([OSLO, "Bergen", ROME], n),
            FLAG: rng.uniform(size=n) < 0.4,
            "some": np.where(rng.uniform(size=n) < 0.2, np.nan, rng.uniform(2000, 2020, size=n)),
            "count": rng.integers(0, 9, n),
        }
    )
    y = X[AGE] + np.log(X["heavy"]) * (X[TOWN] == OSLO) + (X[AGE] > 0.3) + X[FLAG]
    y = y + X["some"].isna() + 0.1 * (X["some"].fillna(2000) - 2000) + X["mostly"] * X[AGE]
    return X, y + 0.2 * X["count"] + 0.1 * rng.standard_normal(n)


def other_rows(X, far=1e4, seed=1):
    """Rows of the table and beyond: mixed, missing, unseen, far out."""
    rng = np.random.default_rng(seed)
    rows = X.apply(lambda column: column.sample(frac=1.0, random_state=seed).to_numpy()).copy()
    rows = rows.iloc[:24].reset_index(drop=True)
    for name in set(rows) & {AGE, "heavy", "mostly", "some"}:
        rows.loc[rng.choice(24, 5, replace=False), name] = np.nan
        rows.loc[rng.choice(24, 2, replace=False), name] = far
        rows.loc[rng.choice(24, 2, replace=False), name] = -far
    if TOWN in rows:
        rows[TOWN] = rows[TOWN].astype(object)
        rows.loc[:3, TOWN] = "Paris"
        rows.loc[4:6, TOWN] = None
    if FLAG in rows:
        rows[FLAG] = rows[FLAG].astype(object)
        rows.loc[5:8, FLAG] = None
    return rows


def plain(rows):
    """Return the rows as dicts, None where a value is missing."""
    names = [str(name) for name in rows.columns]
    return [
        {n: None if pd.isna(v) else v for n, v in zip(names, row, strict=True)}
        for row in rows.itertuples(index=False, name=None)
    ]


def run_python(source, name="model"):
    """Return the namespace of an exported module."""
    namespace = {"__name__": name}
    exec(compile(source, f"{name}.py", "exec"), namespace)
    return namespace


def run_sqlite(query, rows, name="data"):
    """Return the result of an exported query on rows with a key, in the order of the rows."""
    found = rows.copy()
    found.columns = [str(column) for column in found.columns]
    for column in found:
        if found[column].dtype == object:
            found[column] = [
                None if pd.isna(v) else int(v) if isinstance(v, bool | np.bool_) else v
                for v in found[column]
            ]
    connection = sqlite3.connect(":memory:")
    try:
        found.assign(key=np.arange(len(rows))).to_sql(name, connection, index=False)
        result = pd.read_sql_query(query, connection)
    finally:
        connection.close()
    return result.sort_values("key").reset_index(drop=True)


def assert_close(found, expected):
    """Equal to 1e-9 of the scale of what is expected."""
    scale = np.maximum(1.0, np.abs(np.asarray(expected, dtype=float)))
    assert np.shape(found) == np.shape(expected)
    error = np.abs(np.asarray(found, dtype=float) - expected) / scale
    assert np.max(error) < 1e-9, f"differs by {np.max(error)}"


def assert_same_function(model, rows, f):
    """All three formats give f on the rows; return the result of the query."""
    summary = model.summary() if hasattr(model, "summary") else model
    assert_close(run_python(python_source(summary))["decision_function"](rows), f)
    result = run_sqlite(sql_source(summary, keys=["key"]), rows)
    names = [name for name in result if name == "f" or name.startswith("f_")] or ["prediction"]
    assert_close(result[names].to_numpy(float).reshape(np.shape(f)), f)
    document = json.loads(json.dumps(json_document(summary), allow_nan=False))
    found = [evaluate(document["function"], row) for row in plain(rows)]
    assert_close(np.reshape(found, np.shape(f)), f)
    return result
