"""Which basis each column of a table gets, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hikernel.bases import Basis, Categorical, FittedBasis, RankPolynomial, make_basis
from hikernel.frames import ColumnTable

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["BasisChoice", "choices_frame", "choose_bases"]

_MOST_CATEGORIES = 100
"""Categories of a column beyond which the user has to ask for them."""
_GIVEN = "given by basis="


@dataclass(frozen=True)
class BasisChoice:
    """The basis of one column of the matrix, with the reason in a few words."""

    basis: Basis
    why: str

    @property
    def note(self) -> tuple[str, str]:
        """Name and reason."""
        return self.basis.name, self.why


def choose_bases(spec: Any, degree: int, table: ColumnTable) -> list[BasisChoice]:
    """Return one basis per column of the matrix of a table.

    Parameters
    ----------
    spec : str, Basis, or mapping
        A name or object for all columns of numbers, or a mapping from column names or positions
        to names or objects; columns that a mapping leaves out get "auto".
    degree : int
        Degree of the bases that are given by name.
    table : ColumnTable
        Names and kinds of the columns.

    Raises
    ------
    ValueError
        For bases and columns that are not known, for a basis of numbers on a column of
        categories, and for a column of very many categories that ``spec`` does not name.
    """
    given = _given(spec, degree, table) if isinstance(spec, Mapping) else {}
    numbers = "auto" if isinstance(spec, Mapping) else spec
    on_numbers = BasisChoice(
        make_basis(numbers, degree),
        "number: orthonormal polynomials" if _is_auto(numbers) else _GIVEN,
    )
    return [
        given[m] if m in given else _own_choice(m, table, on_numbers)
        for m in range(len(table.names))
    ]


def choices_frame(
    notes: Sequence[tuple[str, str]], table: ColumnTable, fitted: Sequence[FittedBasis]
) -> pd.DataFrame:
    """Return a row per column of the matrix: column, kind, basis, levels, why.

    Parameters
    ----------
    notes : sequence of (str, str)
        Name and reason of the basis of every column.
    table : ColumnTable
        The columns.
    fitted : sequence of FittedBasis
        What the bases became.
    """
    import pandas as pd

    levels = [basis.max_level for basis in fitted]
    return pd.DataFrame(
        {
            "column": list(table.names),
            "kind": list(table.kinds),
            "basis": [name for name, _ in notes],
            "levels": levels,
            "why": [
                why if level else "constant: left out"
                for (_, why), level in zip(notes, levels, strict=True)
            ],
        }
    )


def _is_auto(spec: object) -> bool:
    return isinstance(spec, str) and spec == "auto"


def _own_choice(m: int, table: ColumnTable, on_numbers: BasisChoice) -> BasisChoice:
    """Return the basis of a column that no mapping names."""
    if m >= table.n_features_in:
        return BasisChoice(RankPolynomial(degree=1), "marks missing values: one bounded level")
    if table.kinds[m] == "boolean":
        return BasisChoice(RankPolynomial(degree=1), "0/1: one bounded level")
    categories = table.categories[m]
    if categories is None:
        return on_numbers
    name = table.names[m]
    if len(categories) > _MOST_CATEGORIES:
        raise ValueError(
            f"Column {name!r} has {len(categories)} categories, more than the "
            f"{_MOST_CATEGORIES} that are taken without asking. Drop the column, group its rare "
            f'values, or pass basis={{{name!r}: "categorical"}} if you do want them all.'
        )
    what = "text" if any(isinstance(value, str) for value in categories) else "category"
    return BasisChoice(Categorical(), f"{what}: one block of centred indicators")


def _given(spec: Mapping[Any, Any], degree: int, table: ColumnTable) -> dict[int, BasisChoice]:
    """Return the bases that a mapping names, by column of the matrix."""
    position = {name: m for m, name in enumerate(table.names)}
    given: dict[int, BasisChoice] = {}
    for key, value in spec.items():
        if isinstance(key, str) and key in position:
            m = position[key]
        elif (
            isinstance(key, (int, np.integer))
            and not isinstance(key, bool)
            and 0 <= key < table.n_features_in
        ):
            m = int(key)
        else:
            names = table.names
            raise ValueError(
                f"basis names the column {key!r}, which X does not have; its columns are "
                f"{', '.join(names[:10])}{', ...' if len(names) > 10 else ''} "
                f"(or positions 0 to {table.n_features_in - 1})."
            )
        if _is_auto(value):
            given.pop(m, None)
            continue
        basis = make_basis(value, degree)
        _check_categories(m, table, basis)
        given[m] = BasisChoice(basis, _GIVEN)
    return given


def _check_categories(m: int, table: ColumnTable, basis: Basis) -> None:
    """Raise where a basis of numbers is given to a column of categories, which are none."""
    categories = table.categories[m]
    if categories is None or isinstance(basis, Categorical):
        return
    name = table.names[m]
    shown = ", ".join(repr(value) for value in categories[:3])
    shown += ", ..." if len(categories) > 3 else ""
    raise ValueError(
        f"Column {name!r} holds categories ({shown}), for which the basis {basis.name!r} of "
        'numbers has no meaning. Give it "categorical", leave it out of basis, or turn the '
        "column into numbers (and leave it out of categorical)."
    )
