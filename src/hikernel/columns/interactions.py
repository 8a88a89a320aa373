"""Which interactions may enter: the parameter ``interactions`` as rules about columns.

A rule is a group of columns, by name or position; "*" in it stands for any one column. The groups
of "allow" are the sets whose columns may be in a term together, those of "forbid" the sets that
must not be in a term together, whatever else is in it. ``graphs/restriction.py`` has the family of
sets that follows.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from hikernel.columns.reading import column_position, known_columns
from hikernel.columns.table import ColumnTable
from hikernel.graphs.restriction import Group, Restriction

__all__ = ["ANY", "NONE", "check_interactions", "read_interactions"]

ANY = "*"
"""Stands for any one column."""
NONE = "none"
"""Stands for no interactions at all."""

_SPELLINGS = (
    'interactions must be None (anything), "none", a list of groups of columns such as '
    '[("age", "sex")], or a mapping such as {"allow": [("age", "*")]} or '
    '{"forbid": [("region", "*")]}'
)


def check_interactions(spec: Any) -> dict[str, list[list[Any]]]:
    """Return the groups of columns to "allow" and to "forbid", as far as they are given.

    Raises
    ------
    TypeError, ValueError
        For anything that is not a rule about groups of two columns or more.
    """
    if isinstance(spec, str) and spec == NONE:
        return {"allow": []}
    if isinstance(spec, Mapping):
        unknown = [key for key in spec if key not in ("allow", "forbid")]
        if unknown or not spec:
            got = f"the key {unknown[0]!r}" if unknown else "an empty mapping"
            raise ValueError(f'{_SPELLINGS}; a mapping has "allow", "forbid" or both, got {got}.')
        return {key: _groups(f"interactions[{key!r}]", value) for key, value in spec.items()}
    if _is_list(spec):
        return {"allow": _groups("interactions", spec)}
    raise TypeError(f"{_SPELLINGS}, got {spec!r}.")


def _is_list(value: object) -> bool:
    return isinstance(value, Collection) and not isinstance(value, str | bytes | Mapping)


def _groups(where: str, value: Any) -> list[list[Any]]:
    if not _is_list(value):
        raise TypeError(f"{where} must be a list of groups of columns, got {value!r}.")
    if len(value) == 0:
        raise ValueError(
            f'{where} is empty; write interactions="none" for no interactions at all, or leave it '
            "out for any."
        )
    return [_group(where, group) for group in value]


def _group(where: str, value: Any) -> list[Any]:
    if not _is_list(value):
        raise TypeError(
            f"{where} has {value!r} where a group of columns is meant; write [({value!r}, "
            f'"*")] for "with any other column", or name all columns of the group.'
        )
    group = list(value)
    if len(group) < 2:
        shown = repr(group[0]) if group else "a column"
        raise ValueError(
            f"{where} has the group {group!r} of {len(group)} column(s); a group has two or more, "
            f'as ({shown}, "*") for "with any other column". Every column may act alone.'
        )
    return group


def read_interactions(
    spec: Any, table: ColumnTable, labels: tuple[Any, ...] | None, alone: Iterable[Any] = ()
) -> Restriction | None:
    """Return the family of sets of variables that may interact, or None for all.

    Parameters
    ----------
    spec : None, "none", list of groups, or mapping
        The parameter ``interactions``.
    table : ColumnTable
        The columns. An indicator of missing values follows the rules of its column, and so does
        every part of a date, unless rules name the part.
    labels : tuple or None
        Labels of the columns that are not strings.
    alone : iterable of columns
        Columns, by name or position, that take part in no interaction, whatever ``spec`` says.

    Raises
    ------
    TypeError, ValueError
        For columns that the table does not have, and for an allowed group of which all
        interactions are forbidden.
    """
    single = [m for key in alone for m in _positions("alone", key, table, labels)]
    if spec is None and not single:
        return None
    rules = {} if spec is None else check_interactions(spec)
    allowed = None
    if "allow" in rules:
        groups = [_members(group, table, labels) for group in rules["allow"]]
        allowed = _distinct(
            (tuple(sorted(itertools.chain(*parts))), stars) for parts, stars in groups
        )
    # A set is forbidden with any part of a date that a group names, and allowed with all of them.
    forbidden = _distinct(
        (tuple(sorted(chosen)), stars)
        for parts, stars in (_members(group, table, labels) for group in rules.get("forbid", ()))
        for chosen in itertools.product(*parts)
    )
    found = Restriction((*range(table.n_values), *table.indicators), allowed, forbidden)
    _check_consistent(found, table.names)
    return found.without_interactions_of(single)


def _distinct(groups: Iterable[Group]) -> tuple[Group, ...]:
    return tuple(dict.fromkeys(groups))


def _members(
    group: list[Any], table: ColumnTable, labels: tuple[Any, ...] | None
) -> tuple[list[list[int]], int]:
    """Return the variables of each column of a group, several for a date, and its stars."""
    named = [key for key in group if not (isinstance(key, str) and key == ANY)]
    members = [_positions("interactions", key, table, labels) for key in named]
    every = [m for some in members for m in some]
    if len(set(every)) < len(every):
        raise ValueError(f"interactions names a column twice in the group {group!r}.")
    return members, len(group) - len(named)


def _positions(
    where: str, key: object, table: ColumnTable, labels: tuple[Any, ...] | None
) -> list[int]:
    """Return the variables of a column that a rule names: itself, or all parts of a date."""
    p = table.n_features_in
    column = column_position(key, table.input_names, labels, p)
    if column is not None and not table.dates:
        return [column]
    if column is not None:
        return [m for m in range(table.n_values) if table.input_of(m) == column]
    part = column_position(key, table.names[: table.n_values], None, 0)
    if part is not None:
        return [part]
    raise ValueError(
        f"{where} names the column {key!r}, which X does not have; its columns are "
        f"{known_columns(table.input_names, labels, p)}."
    )


def _check_consistent(found: Restriction, names: Sequence[str]) -> None:
    """Raise if all interactions of an allowed group are forbidden."""
    if not found.forbidden:
        return
    for columns, stars in found.allowed or ():
        every = range(found.n_columns)
        joins = found.column_partners([(c,) for c in columns or every])
        if not np.any(joins if stars else joins[:, list(columns)]):
            group = (*(names[c] for c in columns), *(ANY,) * stars)
            raise ValueError(
                f"interactions allows the group {group!r} and forbids all its pairs; take it out "
                'of "allow" or of "forbid".'
            )
