"""Columns that a user names as categories, and as ordered ones: names, positions, masks, parts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from hikernel.columns.reading import RawTable, column_position, known_columns

__all__ = ["named_columns", "named_parts"]


def named_columns(
    categorical: Iterable[str | int] | None, ordered: Any, raw: RawTable
) -> tuple[set[int], dict[int, Any], list[str]]:
    """Return which columns of a table are categories, the order of some, and other names.

    Parameters
    ----------
    categorical, ordered
        As for :meth:`hikernel.columns.ColumnTable.fit_transform`.
    raw : RawTable
        The table.

    Returns
    -------
    tuple of (set of int, dict, list of str)
        Positions of categories, those with an order included; the orders by position, None where
        none is given; and the names in ``categorical`` that can only be parts of dates.

    Raises
    ------
    ValueError
        For columns that are not there, and what is no list of columns.
    """
    names = [column.name for column in raw.columns]
    orders = _check_ordered(ordered, names, raw)
    others: list[str] = []
    if isinstance(categorical, Iterable) and not isinstance(categorical, (str, bytes)):
        categorical = list(categorical)
        others = [key for key in categorical if isinstance(key, str) and _is_part(key, names)]
        categorical = [key for key in categorical if key not in others]
    return _check_categorical(categorical, names, raw) | orders.keys(), orders, others


def named_parts(others: Sequence[str], names: list[str], raw: RawTable) -> set[int]:
    """Return the positions of parts of dates among all names; raise for those that are not."""
    return {_position("categorical", name, names, raw) for name in others}


def _is_part(name: str, names: Sequence[str]) -> bool:
    """Return whether a name that no column has may be that of a part, such as "sold (year)"."""
    return name not in names and any(name.startswith(f"{column} (") for column in names)


def _check_categorical(
    categorical: Iterable[str | int] | None, names: list[str], raw: RawTable
) -> set[int]:
    """Return the positions of the columns that the user named as categories."""
    if categorical is None:
        return set()
    if isinstance(categorical, (str, bytes)) or not isinstance(categorical, Iterable):
        raise ValueError(
            f"categorical must be a list of column names or positions, got {categorical!r}."
        )
    keys = list(categorical)
    if any(isinstance(key, (bool, np.bool_)) for key in keys):
        return _read_mask(keys, len(names))
    return {_position("categorical", key, names, raw) for key in keys}


def _check_ordered(ordered: Any, names: list[str], raw: RawTable) -> dict[int, Any]:
    """Return the order of the columns that the user named as ordered; None where none is given."""
    if ordered is None:
        return {}
    if isinstance(ordered, (str, bytes)) or not isinstance(ordered, Iterable):
        raise ValueError(
            "ordered must be a mapping from columns to their categories in order, or a list of "
            f"columns, got {ordered!r}."
        )
    items = dict(ordered) if isinstance(ordered, Mapping) else dict.fromkeys(ordered)
    for key, order in items.items():
        if isinstance(key, str) and _is_part(key, names):
            raise ValueError(
                f"ordered names {key!r}, which X does not have; if it is a part of a date, it has "
                'an order already: name it in categorical, or give it the basis "steps".'
            )
        if isinstance(order, str) or not isinstance(order, Iterable | None):
            raise ValueError(
                f"ordered[{key!r}] must list its categories in their order, got {order!r}."
            )
    return {
        _position("ordered", key, names, raw): None if order is None else list(order)
        for key, order in items.items()
    }


def _position(what: str, key: Any, names: list[str], raw: RawTable) -> int:
    """Return the position of a column that a parameter names; raise if there is none."""
    position = column_position(key, names, raw.labels, len(names))
    if position is None:
        unnamed = raw.names is None and raw.labels is None
        raise ValueError(
            f"{what} names the column {key!r}, which X does not have; its columns are "
            f"{known_columns(names, raw.labels, len(names))}"
            f"{'; X has no column names of its own' if unnamed else ''}."
        )
    return position


def _read_mask(keys: list[Any], n_columns: int) -> set[int]:
    """Return the positions at which a mask of the columns is true."""
    if len(keys) != n_columns or not all(isinstance(key, (bool, np.bool_)) for key in keys):
        raise ValueError(
            f"categorical holds True or False and {len(keys)} entries; pass the names or the "
            f"positions of the columns, or a mask of {n_columns} booleans, one for each column."
        )
    return {m for m, key in enumerate(keys) if key}
