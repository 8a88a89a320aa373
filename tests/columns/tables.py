"""One table in every form that a user may have it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

from hikernel.columns import ColumnTable

AGE = [31.0, None, 58.0, 44.0, 19.0]
ROOMS = [3, 1, None, 2, 3]
TOWN = ["Oslo", "Bergen", None, "Oslo", "Ålesund"]
OWNER = [True, False, None, True, False]
SIZE = ["small", "large", "large", "small", None]
NAMES = ("age", "rooms", "town", "owner", "size", "plain")
COLUMNS = dict(zip(NAMES, (AGE, ROOMS, TOWN, OWNER, SIZE, [0.5, 1.5, 2.5, 3.5, 4.5]), strict=True))


def fit_table(X, **settings):
    """The encoding of a table, without the matrix that comes with it."""
    return ColumnTable.fit_transform(X, **settings)[0]


def pandas_plain():
    return pd.DataFrame(COLUMNS).astype({"size": "category"})


def pandas_nullable():
    kinds = {"rooms": "Int64", "town": "string", "owner": "boolean", "size": "category"}
    return pd.DataFrame(COLUMNS).astype(kinds)


def pandas_arrow():
    return pd.DataFrame(COLUMNS).astype(
        {
            "age": "float64[pyarrow]",
            "rooms": "int16[pyarrow]",
            "town": "string[pyarrow]",
            "owner": "bool[pyarrow]",
            "size": pd.ArrowDtype(pa.dictionary(pa.int32(), pa.string())),
        }
    )


def pandas_objects():
    return pd.DataFrame(COLUMNS, dtype=object)


def polars_frame():
    return pl.DataFrame(COLUMNS).with_columns(pl.col("size").cast(pl.Categorical))


def polars_enum():
    kinds = pl.Enum(["small", "large"])
    return pl.DataFrame(COLUMNS).with_columns(pl.col("size").cast(kinds))


def arrow_table():
    table = pa.table(COLUMNS)
    return table.set_column(4, "size", table["size"].dictionary_encode())


def arrow_chunks():
    whole = pa.table(COLUMNS)
    table = pa.concat_tables([whole.slice(0, 2), whole.slice(2, 3)])
    return table.set_column(
        4,
        "size",
        pa.chunked_array([chunk.dictionary_encode() for chunk in table["size"].chunks]),
    )


def object_array():
    return np.array(list(COLUMNS.values()), dtype=object).T


def nested_lists():
    return [list(row) for row in zip(*COLUMNS.values(), strict=True)]


FRAMES = [
    pandas_plain,
    pandas_nullable,
    pandas_arrow,
    pandas_objects,
    polars_frame,
    polars_enum,
    arrow_table,
    arrow_chunks,
]
TABLES = [*FRAMES, object_array, nested_lists]

NAN = float("nan")
MATRIX = np.array(
    [
        [31.0, 3.0, 1.0, 1.0, 1.0, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0],
        [NAN, 1.0, 0.0, 0.0, 0.0, 1.5, 1.0, 0.0, 0.0, 0.0, 0.0],
        [58.0, NAN, NAN, NAN, 0.0, 2.5, 0.0, 1.0, 1.0, 1.0, 0.0],
        [44.0, 2.0, 1.0, 1.0, 1.0, 3.5, 0.0, 0.0, 0.0, 0.0, 0.0],
        [19.0, 3.0, 2.0, 0.0, NAN, 4.5, 0.0, 0.0, 0.0, 0.0, 1.0],
    ]
)
