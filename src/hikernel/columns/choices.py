"""Which basis each column of a table gets, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hikernel.bases import (
    AsinhPolynomial,
    Basis,
    Categorical,
    FittedBasis,
    OrthonormalPolynomial,
    RankPolynomial,
    make_basis,
)
from hikernel.bases.column import Column
from hikernel.columns.table import ColumnTable
from hikernel.engines.protocol import FloatArray

__all__ = ["BasisChoice", "choose_bases"]

_MOST_CATEGORIES = 100
"""Categories of a column beyond which the user has to ask for them."""
_SKEWED = (0.5, 1.0)
_HEAVY = (1.0, 2.0)
"""Skewness and excess kurtosis of a column of numbers from which its powers rest on few rows, with
many distinct values and with few."""
_CHANCE = 3.0
"""Standard errors of both that chance explains: sqrt(6/m) and sqrt(24/m) for normal columns of m
distinct values (rows would not do: a weight of two must count as two equal rows do)."""
_SPIKED = 3.0
"""Excess kurtosis that is left after asinh, as of columns that are nearly always zero."""
_ONE_LEVEL = RankPolynomial(degree=1)
"""The basis of columns with two values."""


@dataclass(frozen=True)
class BasisChoice:
    """The basis of one column of the matrix.

    Attributes
    ----------
    basis : Basis
        The basis, not yet fitted.
    why : str
        The reason in a few words.
    fixed : bool
        Whether its degree is its own: it was given as an object, or the column has two values.
    """

    basis: Basis
    why: str
    fixed: bool = False

    def with_more_levels(self, extra: int) -> Basis:
        """Return the basis with a higher degree, unless it is fixed or has none."""
        degree = getattr(self.basis, "degree", None)
        if degree is None or self.fixed:
            return self.basis
        return replace(self.basis, degree=degree + extra)  # type: ignore[type-var]


def choose_bases(
    spec: Any, degree: int, table: ColumnTable, X: FloatArray, weights: FloatArray
) -> list[BasisChoice]:
    """Return one basis per column of the matrix of a table.

    Columns of numbers that are left to "auto" get orthonormal polynomials where their
    distribution allows it, polynomials of asinh where they are skewed or heavy-tailed, and
    bounded polynomials of the rank where even these would rest on a few rows.

    Parameters
    ----------
    spec : str, Basis, or mapping
        A name or object for all columns of numbers, or a mapping from column names or positions
        to names or objects; columns that a mapping leaves out get "auto".
    degree : int
        Degree of the bases that are given by name.
    table : ColumnTable
        Names and kinds of the columns.
    X : ndarray of shape (n, p)
        The matrix of the table.
    weights : ndarray of shape (n,)
        Zero or positive.

    Raises
    ------
    ValueError
        For bases and columns that are not known, for a basis of numbers on a column of
        categories, and for a column of very many categories that ``spec`` does not name.
    """
    given = _given(spec, degree, table) if isinstance(spec, Mapping) else {}
    numbers = "auto" if isinstance(spec, Mapping) else spec
    same = None if _is_auto(numbers) else _as_given(numbers, degree)
    chosen = []
    for m in range(len(table.names)):
        choice = given.get(m) or _of_kind(m, table)
        if choice is None:
            choice = same or _of_distribution(X[:, m], weights, degree)
        chosen.append(choice)
    return chosen


def _is_auto(spec: object) -> bool:
    return isinstance(spec, str) and spec == "auto"


def _as_given(spec: Any, degree: int) -> BasisChoice:
    """Return the choice of a user: a name, or an object with a degree of its own."""
    return BasisChoice(make_basis(spec, degree), "given by basis=", isinstance(spec, Basis))


def _of_distribution(x: FloatArray, weights: FloatArray, degree: int) -> BasisChoice:
    """Return the basis of a column of numbers."""
    column = Column.from_rows(x, weights)
    if column.values.size <= 2:
        return BasisChoice(_ONE_LEVEL, "number with two values: one bounded level", True)
    values = OrthonormalPolynomial(1).fit(column.values, column.weights)
    skewness, kurtosis = _moments(values, column)
    skewed = np.clip(_CHANCE * np.sqrt(6.0 / column.values.size), *_SKEWED)
    heavy = np.clip(_CHANCE * np.sqrt(24.0 / column.values.size), *_HEAVY)
    if abs(skewness) <= skewed and kurtosis <= heavy:
        return BasisChoice(OrthonormalPolynomial(degree), "number: polynomials")
    what = f"skewness {skewness:.1f}, excess kurtosis {kurtosis:.1f}"
    _, left = _moments(AsinhPolynomial(1).fit(column.values, column.weights), column)
    if left <= _SPIKED:
        return BasisChoice(AsinhPolynomial(degree), f"number with tails ({what}): asinh first")
    why = f"number, mostly one value or very heavy tails ({what}): bounded functions of the rank"
    return BasisChoice(RankPolynomial(degree), why)


def _moments(fitted: FittedBasis, column: Column) -> tuple[float, float]:
    """Return skewness and excess kurtosis of level 1, which is of mean zero and variance one."""
    if fitted.max_level == 0:  # constant, but for rounding
        return 0.0, 0.0
    t = fitted.transform(column.values)[1][:, 0]
    return float(column.weights @ t**3), float(column.weights @ t**4) - 3.0


def _of_kind(m: int, table: ColumnTable) -> BasisChoice | None:
    """Return the basis of a column that is not of numbers, and None for one of numbers."""
    if m >= table.n_features_in:
        return BasisChoice(_ONE_LEVEL, "marks missing values: one bounded level", True)
    if table.kinds[m] == "boolean":
        return BasisChoice(_ONE_LEVEL, "0/1: one bounded level", True)
    categories = table.categories[m]
    if categories is None:
        return None
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
        given[m] = _as_given(value, degree)
        _check_categories(m, table, given[m].basis)
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
