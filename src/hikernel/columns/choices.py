"""The choice of a basis for each column of a table, with a reason."""

from __future__ import annotations

import logging
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from hikernel.bases import (
    AsinhPolynomial,
    Basis,
    Branches,
    Categorical,
    FittedBasis,
    OrthonormalPolynomial,
    Periodic,
    RankPolynomial,
    Steps,
    make_basis,
)
from hikernel.bases.column import Column
from hikernel.checks import outside_level
from hikernel.columns.basis_choice import AND_STEPS, AUTO, CUTS, BasisChoice, Cuts
from hikernel.columns.reading import column_position, known_columns
from hikernel.columns.table import ColumnTable
from hikernel.engines.protocol import FloatArray

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "bases_frame",
    "choose_bases",
    "choose_from",
    "column_chooser",
    "warn_of_lost_columns",
]

_log = logging.getLogger(__name__)

_SKEWED = (0.5, 1.0)
_HEAVY = (1.0, 2.0)
"""Limits on |skewness| and excess kurtosis of a column of numbers, above which few rows dominate
its powers: with many distinct values, and with few."""
_CHANCE = 3.0
"""Number of standard errors of skewness and kurtosis that chance may explain. The standard errors
are sqrt(6/m) and sqrt(24/m) for normal columns of m distinct values. (m is not the number of rows,
because a row of weight two must count like two equal rows.)"""
_SPIKED = 3.0
"""Largest excess kurtosis after asinh. Columns that are nearly always zero exceed it."""
_LEAST_ROWS = 3
"""Rows of a category below which it stays among the rare ones, if there are many."""
_ONE_LEVEL = RankPolynomial(degree=1)
"""The basis of columns with at most two values."""


def choose_bases(
    spec: Any,
    degree: int,
    table: ColumnTable,
    X: FloatArray,
    weights: FloatArray,
    labels: Sequence[Any] | None = None,
) -> list[BasisChoice]:
    """Return one basis choice per column of the matrix of a table.

    With "auto", columns of numbers get orthonormal polynomials unless they are skewed or
    heavy-tailed. In that case they get polynomials of asinh, or bounded polynomials of the rank if
    a few rows would dominate even polynomials of asinh. With "auto+jumps" and "auto+steps" they get
    steps as well, in a branch of their own.

    Parameters
    ----------
    spec : str, Basis, or mapping
        A name or object for all columns of numbers, or a mapping from column names or positions
        to names or objects. Columns that are not in the mapping get "auto".
    degree : int
        Degree of the bases that are given by name or chosen by "auto".
    table : ColumnTable
        Names and kinds of the columns.
    X : ndarray of shape (n, p)
        The matrix of the table.
    weights : ndarray of shape (n,)
        Weights of the rows, zero or positive.
    labels : sequence, optional
        Labels of the columns that are not strings, as the user gave them.

    Raises
    ------
    ValueError
        For unknown bases and columns, and for a basis of numbers on a column of categories.
    """

    def distribution(m: int) -> tuple[Column, int]:
        n_rows = int(np.count_nonzero((weights > 0.0) & ~np.isnan(X[:, m])))
        return Column.from_rows(X[:, m], weights), n_rows

    return choose_from(spec, degree, table, distribution, labels)


def choose_from(
    spec: Any,
    degree: int,
    table: ColumnTable,
    distribution: Callable[[int], tuple[Column, int]],
    labels: Sequence[Any] | None = None,
) -> list[BasisChoice]:
    """Return the same from the distribution of every column, and its number of values."""
    given = _given(spec, degree, table, labels) if isinstance(spec, Mapping) else {}
    same = AUTO if isinstance(spec, Mapping) else _as_given(spec, degree)
    chosen = []
    for m in range(len(table.names)):
        known = cache(partial(distribution, m))
        choice = given.get(m) or _of_kind(m, table, known) or same
        if m not in given and table.dates:
            choice = _of_part(m, table, known, degree, steps=_cuts(choice)) or choice
        if isinstance(choice, str):
            choice = _of_distribution(known()[0], degree, steps=_cuts(choice))
        chosen.append(choice)
    _log_choices(table, chosen)
    return chosen


def column_chooser(
    spec: Any, degree: int, table: ColumnTable
) -> tuple[Callable[[int, Column], BasisChoice], set[int]]:
    """Return a function that chooses as ``choose_bases`` does, for tables without categories.

    It takes the position of a column and its distribution. Steps are cut at quantiles, as nothing
    is known of y. The positions that matter, those of columns that the user named, are returned
    too.
    """
    given = _given(spec, degree, table, None) if isinstance(spec, Mapping) else {}
    same = AUTO if isinstance(spec, Mapping) else _as_given(spec, degree)

    def choose(m: int, column: Column) -> BasisChoice:
        choice = given.get(m) or _of_kind(m, table, lambda: (column, 0)) or same
        if isinstance(choice, BasisChoice):
            return choice
        return _of_distribution(column, degree, steps=_cuts(choice)).at_quantiles()

    return choose, set(given)


def _cuts(choice: BasisChoice | str) -> Cuts | None:
    """Return how the steps of a choice by column are cut; None without steps."""
    return CUTS.get(choice) if isinstance(choice, str) else None


def _as_given(spec: Any, degree: int) -> BasisChoice | str:
    """Return the choice for a basis given by the user, by name or as an object.

    "auto" and its forms with steps are returned as they are: they depend on the column.
    """
    if isinstance(spec, str) and spec in (AUTO, *CUTS):
        return spec
    return BasisChoice(make_basis(spec, degree), "given by basis=", isinstance(spec, Basis))


def _of_distribution(column: Column, degree: int, *, steps: Cuts | None) -> BasisChoice:
    """Return the choice of "auto" for a column of numbers, from its distribution.

    With ``steps``, a branch of steps is beside the smooth functions.
    """
    if column.values.size <= 2:
        return BasisChoice(_ONE_LEVEL, "number with two values: one bounded level", True)
    smooth = _smooth(column, degree)
    if steps is None:
        return smooth
    both = Branches((smooth.basis, Steps(degree)))
    return BasisChoice(both, smooth.why + AND_STEPS, True, steps)


def _smooth(column: Column, degree: int) -> BasisChoice:
    """Return the smooth functions of a column of numbers with at least three values."""
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
    """Return skewness and excess kurtosis of level 1, which has mean zero and variance one."""
    if fitted.max_level == 0:  # constant up to rounding
        return 0.0, 0.0
    t = fitted.transform(column.values)[1][:, 0]
    return float(column.weights @ t**3), float(column.weights @ t**4) - 3.0


def _of_kind(
    m: int, table: ColumnTable, known: Callable[[], tuple[Column, int]]
) -> BasisChoice | None:
    """Return the choice for column m of the matrix, or None if it is a column of numbers."""
    if m >= table.n_values:
        return BasisChoice(_ONE_LEVEL, "marks missing values: one bounded level", True)
    if table.kinds[m] == "boolean":
        return BasisChoice(_ONE_LEVEL, "0/1: one bounded level", True)
    categories = table.categories[m]
    if categories is None:
        return None
    what = "text" if any(isinstance(value, str) for value in categories) else "category"
    basis, how = Categorical(), "one block of centred indicators"
    if len(categories) > Categorical.most:
        # Nothing can be learnt about a category from one or two rows, whatever their weights.
        basis = Categorical(least=min(0.5, (_LEAST_ROWS - 0.5) / max(1, known()[1])))
        how = f"{len(categories)} categories, from frequent to rare"
    if m in table.ordered and len(categories) > 2:
        both = Branches((basis, Steps()))
        return BasisChoice(both, f"ordered {what}: {how}, and steps in its order")
    return BasisChoice(basis, f"{what}: {how}")


def _of_part(
    m: int,
    table: ColumnTable,
    known: Callable[[], tuple[Column, int]],
    degree: int,
    *,
    steps: Cuts | None,
) -> BasisChoice | None:
    """Return the choice for a part of a date that has one of its own, or None.

    The year beside the days since the start is there for what changes with the calendar: as smooth
    functions the two would be copies of each other. A part that comes back after a period has
    waves, if its values lie all around the circle.
    """
    found = table.part(m)
    if found is None or table.categories[m] is not None:
        return None
    from hikernel.columns.dates import CYCLES, goes_around

    date, part = found
    if part == "year" and m != date.column and known()[0].values.size > 2:
        return BasisChoice(Steps(degree), "year beside the days: jumps at New Year")
    if part not in CYCLES or not goes_around(known()[0].values, CYCLES[part]):
        return None
    waves, why = Periodic(CYCLES[part], degree), f"{part}: waves, which come back"
    if steps is None:
        return BasisChoice(waves, why)
    return BasisChoice(Branches((waves, Steps(degree))), why + AND_STEPS, True, steps)


def _given(
    spec: Mapping[Any, Any], degree: int, table: ColumnTable, labels: Sequence[Any] | None
) -> dict[int, BasisChoice | str]:
    """Return the choices for the columns that a mapping names, by their position in the matrix."""
    given: dict[int, BasisChoice | str] = {}
    for key, value in spec.items():
        m = column_position(key, table.names, labels, table.n_features_in)
        if m is None and key in table.input_names:  # a date, of which the first part is meant
            m = table.input_names.index(key)
        if m is None:
            raise ValueError(
                f"basis names the column {key!r}, which X does not have; its columns are "
                f"{known_columns(table.names, labels, table.n_features_in)}."
            )
        choice = _as_given(value, degree)
        if isinstance(choice, str):
            given.pop(m, None)
            if table.categories[m] is None and m < table.n_values:
                given[m] = choice
        else:
            given[m] = choice
            _check_categories(m, table, choice.basis)
    return given


def _check_categories(m: int, table: ColumnTable, basis: Basis) -> None:
    """Raise if a basis of numbers is given to a column of categories."""
    categories = table.categories[m]
    if categories is None or isinstance(basis, Categorical):
        return
    if m in table.ordered and isinstance(basis, Steps | Branches):
        return
    name = table.names[m]
    shown = ", ".join(repr(value) for value in categories[:3])
    shown += ", ..." if len(categories) > 3 else ""
    raise ValueError(
        f"Column {name!r} holds categories ({shown}), for which the basis {basis.name!r} of "
        'numbers has no meaning. Give it "categorical", leave it out of basis, or turn the '
        "column into numbers (and leave it out of categorical)."
    )


def warn_of_lost_columns(matrix: Any, bases: Sequence[FittedBasis], table: ColumnTable) -> None:
    """Warn of columns that vary but count as constant: rounding errors, and identifiers."""
    for m, basis in enumerate(bases):
        if basis.max_level > 0:
            continue
        values = matrix[:, m]
        values = values[~np.isnan(values)]
        if values.size and values.max() > values.min():
            known = table.categories[m]
            why = (
                "varies by less than the rounding error of its size and is taken for a constant; "
                "subtract its mean before fitting."
                if known is None
                else f"has {len(known)} categories with one or two rows each, like an identifier, "
                "from which nothing can be learnt; it is left out."
            )
            warnings.warn(f"Column {table.names[m]} {why}", UserWarning, stacklevel=outside_level())


def _log_choices(table: ColumnTable, chosen: Sequence[BasisChoice]) -> None:
    """Log kinds and bases of the columns."""
    if not _log.isEnabledFor(logging.INFO):
        return
    found = Counter(table.kinds), Counter(choice.name for choice in chosen)
    counts = [", ".join(f"{n} {name}" for name, n in count.items()) for count in found]
    _log.info("Columns: %s. Bases: %s.", *counts)
    for name, kind, choice in zip(table.names, table.kinds, chosen, strict=True):
        _log.debug("Column %r (%s): basis %s, %s.", name, kind, choice.name, choice.why)


def bases_frame(
    table: ColumnTable, bases: Sequence[FittedBasis], notes: Sequence[tuple[str, str]]
) -> pd.DataFrame:
    """Return one row per column of the matrix: column, kind, basis, levels, why.

    ``notes`` has the name of the basis of each column, and the reason for the choice.
    """
    import pandas as pd

    levels = [basis.max_level for basis in bases]
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
