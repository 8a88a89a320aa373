"""Which column of a table is what: the target, a weight, an input with a rule of its own."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hikernel.cli.console import BadInput
from hikernel.cli.interaction_groups import column_of, named_columns
from hikernel.cli.target_column import check_names

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["ColumnRoles"]


@dataclass(frozen=True)
class ColumnRoles:
    """Which column is what, as the user says."""

    target: str
    weight: str | None = None
    offset: str | None = None
    exposure: str | None = None
    drop: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    basis: str | dict[str, str] = "auto"
    ordered: dict[str, list[Any] | None] = field(default_factory=dict)
    allow: list[list[str]] = field(default_factory=list)
    forbid: list[list[str]] = field(default_factory=list)
    monotone: dict[str, str | int] = field(default_factory=dict)

    def check(self, frame: pd.DataFrame) -> None:
        """Raise BadInput for columns that are not there, or that are two things at once."""
        named = {} if isinstance(self.basis, str) else self.basis
        given = {
            "--target": (self.target,),
            "--weight": _one(self.weight),
            "--offset": _one(self.offset),
            "--exposure": _one(self.exposure),
            "--drop": self.drop,
            "--categorical": self.categorical,
            "--basis": tuple(named),
            "--ordered": tuple(self.ordered),
            "--allow": named_columns(self.allow),
            "--forbid": named_columns(self.forbid),
            "--monotone": tuple(self.monotone),
        }
        for option in ("--allow", "--forbid", "--monotone"):  # they may name parts of dates
            owners = (column_of(name, frame.columns) or name for name in given[option])
            given[option] = tuple(dict.fromkeys(owners))
        for option, names in given.items():
            check_names(frame, option, names)
        alone: dict[str, str] = {}
        for option in ("--target", "--weight", "--offset", "--exposure", "--drop"):
            for name in given[option]:
                other = alone.setdefault(name, option)
                if other != option:
                    raise BadInput(f"{other} and {option} both name the column {name!r}.")
        for option in (
            "--categorical",
            "--basis",
            "--ordered",
            "--allow",
            "--forbid",
            "--monotone",
        ):
            for name in given[option]:
                if name in alone:
                    raise BadInput(f"{alone[name]} and {option} both name the column {name!r}.")

    @property
    def others(self) -> list[str]:
        """The columns that the model does not take."""
        others = (*_one(self.weight), *_one(self.offset), *_one(self.exposure))
        return [self.target, *self.drop, *others]


def _one(name: str | None) -> tuple[str, ...]:
    return () if name is None else (name,)
