"""The options ``--allow`` and ``--forbid``: groups of columns, with commas between them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from hikernel.cli.console import BadInput

__all__ = ["column_of", "interaction_groups", "named_columns", "usable_groups"]

_ANY = "*"
_NONE = "none"


def interaction_groups(option: str, given: Sequence[str]) -> list[list[str]]:
    """Return the groups of an option; raise BadInput for one of fewer than two columns."""
    groups = [[name.strip() for name in text.split(",")] for text in given]
    for text, group in zip(given, groups, strict=True):
        if len(group) < 2 or not all(group):
            raise BadInput(
                f"{option} {text} is not a group of columns; name two or more, with commas, as in "
                f'{option} age,sex or {option} "age,*" (* is any column).'
            )
    return groups


def column_of(name: str, columns: Collection[str]) -> str | None:
    """Return the column that a name is about: itself, or the date of a part such as "sold (year)".

    None if there is no such column.

    >>> column_of("sold", ["sold"]), column_of("sold (year)", ["sold"]), column_of("age", ["sold"])
    ('sold', 'sold', None)
    """
    if name in columns:
        return name
    dates = [column for column in columns if name.startswith(f"{column} (")]
    return max(dates, key=len, default=None)


def named_columns(groups: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Return the columns that groups name."""
    return tuple(dict.fromkeys(name for group in groups for name in group if name != _ANY))


def usable_groups(
    allow: Sequence[Sequence[str]], forbid: Sequence[Sequence[str]], columns: Collection[str]
) -> Any:
    """Return the parameter ``interactions``, without columns that a model does not take.

    A group to allow keeps its other columns. One to forbid has no term with all its columns.
    """
    if not allow and not forbid:
        return None

    def known(name: str) -> bool:
        return name == _ANY or column_of(name, columns) is not None

    kept = [[name for name in group if known(name)] for group in allow]
    rules = {
        "allow": [group for group in kept if len(group) > 1],
        "forbid": [group for group in forbid if all(known(name) for name in group)],
    }
    if allow and not rules["allow"]:
        return _NONE
    return {key: groups for key, groups in rules.items() if groups} or None
