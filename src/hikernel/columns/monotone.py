"""Columns in which f may only rise, or only fall: what the user asks for, as linear constraints.

A column with a direction acts alone, so that f is a function of it plus functions of the others.
Then f rises in the column, whatever the others are, if and only if that one function does. The
basis of the column says which coefficients guarantee it (``FittedBasis.slopes``). The categories of
an ordered column are finitely many points, which are compared in their order.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hikernel.bases import FittedBasis
from hikernel.columns.basis_choice import BasisChoice
from hikernel.columns.interactions import check_interactions
from hikernel.columns.reading import column_position, known_columns
from hikernel.columns.table import ColumnTable
from hikernel.engines.features import Blocks
from hikernel.engines.protocol import FloatArray, Node
from hikernel.graphs import Direction

__all__ = ["check_bases", "check_monotone", "monotone_signs", "node_directions", "sign_of"]

_WORDS = {"increasing": 1, "decreasing": -1}
_GUARANTEED = '"orthonormal", "asinh", "rank" or "steps"'
"""Bases of numbers with a guarantee, for error messages."""


def sign_of(direction: object) -> int | None:
    """Return 1 or -1 for a direction; None if it is none.

    >>> sign_of("increasing"), sign_of(-1.0), sign_of(0), sign_of(True)
    (1, -1, None, None)
    """
    if isinstance(direction, str):
        return _WORDS.get(direction)
    number = isinstance(direction, (int, float, np.number)) and not isinstance(direction, bool)
    return int(direction) if number and direction in (1, -1) else None


def check_monotone(monotone: object) -> None:
    """Raise unless ``monotone`` is None or a mapping from columns to directions."""
    if monotone is None:
        return
    if not isinstance(monotone, Mapping):
        raise ValueError(
            "monotone must be a mapping from columns to +1 (f rises) or -1 (f falls), such as "
            f'{{"age": 1}}, got {monotone!r}.'
        )
    for key, direction in monotone.items():
        if sign_of(direction) is None:
            raise ValueError(
                f'monotone[{key!r}] must be 1 or "increasing", or -1 or "decreasing", got '
                f"{direction!r}; leave out columns without a direction."
            )


def monotone_signs(
    monotone: Mapping[Any, Any],
    interactions: Any,
    table: ColumnTable,
    labels: Sequence[Any] | None,
) -> dict[int, int]:
    """Return the direction of every column that a mapping names, by its position.

    Raises
    ------
    ValueError
        For a column that X does not have, one that is named twice, categories without an order,
        and a column whose interactions the parameter ``interactions`` allows by name.
    """
    signs: dict[int, int] = {}
    size = table.n_features_in
    for key, direction in monotone.items():
        m = column_position(key, table.names[: table.n_values], labels, size)
        if m is None and key in table.input_names:
            m = table.input_names.index(key)
        found = None if m is None else table.part(m)
        if found is not None and found[0].kind == "date" and key != table.names[m or 0]:
            raise ValueError(
                f"monotone names the column {key!r} of dates, whose season or weekday has no "
                f"direction; name the part that has one, such as {table.names[found[0].column]!r}."
            )
        if m is None:
            raise ValueError(
                f"monotone names the column {key!r}, which X does not have; its columns are "
                f"{known_columns(table.input_names, labels, size)}."
            )
        if m in signs:
            raise ValueError(f"monotone names the column {table.names[m]!r} twice.")
        if found is not None and found[1] == "weekday":
            raise ValueError(
                f"monotone names {table.names[m]!r}, but a week has no direction; leave it out."
            )
        if table.categories[m] is not None and m not in table.ordered:
            raise ValueError(
                f"monotone names the column {table.names[m]!r}, whose categories have no order; "
                f"give it in ordered={{{table.names[m]!r}: [...]}}, the lowest category first."
            )
        sign = sign_of(direction)
        assert sign is not None
        signs[m] = sign
    for group in () if interactions is None else check_interactions(interactions).get("allow", ()):
        for key in group:
            m = column_position(key, table.names[: table.n_values], labels, size)
            if m in signs:
                raise ValueError(
                    f"interactions allows the group {tuple(group)!r}, but {table.names[m]!r} has a "
                    "direction in monotone, and so takes part in no interaction; take it out of "
                    "one of them."
                )
    return signs


def check_bases(
    signs: Mapping[int, int],
    table: ColumnTable,
    choices: Sequence[BasisChoice],
    bases: Sequence[FittedBasis],
) -> None:
    """Raise if a direction cannot be guaranteed with these bases."""
    for m in signs:
        if table.categories[m] is None and bases[m].slopes() is None:
            raise ValueError(
                f"monotone names the column {table.names[m]!r}, but nothing guarantees a direction "
                f"of its basis {choices[m].name!r} between and beyond the training rows; give it "
                f"{_GUARANTEED} in basis, or leave it out of monotone."
            )
    if signs and not all(basis.constant_level for basis in bases):
        raise ValueError(
            "monotone needs bases with a constant level 0: without one every term contains every "
            "variable. Pass constant_level=True to the basis, or give it by name."
        )


def node_directions(
    signs: Mapping[int, int],
    nodes: Sequence[Node],
    bases: Sequence[FittedBasis],
    table: ColumnTable,
) -> list[Direction]:
    """Return the constraints on the coefficients of some nodes, one entry per column in them.

    No node may have such a column together with another one.
    """
    out = []
    for m, sign in signs.items():
        own = [i for i, node in enumerate(nodes) if any(k == m for k, _ in node)]
        assert all(len(nodes[i]) == 1 for i in own), "A column with a direction acts alone."
        if not own:
            continue
        layout = Blocks([math.prod(bases[k].widths[j] for k, j in node) for node in nodes])
        levels = Blocks(bases[m].widths[1:])
        kept = levels.columns([nodes[i][0][1] - 1 for i in own])
        out.append(Direction(layout.columns(own), sign * _slopes(m, bases[m], table)[:, kept]))
    return out


def _slopes(m: int, basis: FittedBasis, table: ColumnTable) -> FloatArray:
    """Return the rows that make the effect of a column rise if their products are not negative."""
    categories = table.categories[m]
    if categories is None:
        slopes = basis.slopes()
        assert slopes is not None
        return slopes
    levels = basis.transform(np.arange(float(len(categories))))[1:]
    return np.diff(np.hstack([np.empty((len(categories), 0)), *levels]), axis=0)
