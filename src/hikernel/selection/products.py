"""All products of a few variables up to a total degree: the terms of the refit "variables"."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from hikernel.engines.protocol import Node
from hikernel.graphs import Grid, RicherDesign

__all__ = ["LEAST_DEGREE", "MOST_FEATURES", "are_too_many", "products"]

MOST_FEATURES = 400
"""Largest number of columns of "variables"; its total degree is lowered until they fit."""
LEAST_DEGREE = 3
"""Least total degree of "variables"; below it the hull itself is the richer model."""


def products(rich: RicherDesign, selected: list[Node], most: int) -> list[Node]:
    """Return the selected terms and all products up to a total degree.

    The degree is the largest one, up to that of ``rich``, with at most ``most`` columns. The list
    is empty if that degree is below 3: the hull itself is then the richer model.
    """
    for degree in range(rich.degree, LEAST_DEGREE - 1, -1):
        found = _up_to(rich.grid, rich.levels, degree)
        if found is None:
            continue
        nodes = sorted({*found, *selected}, key=lambda node: (rich.grid.degree(node), node))
        if sum(rich.engine.width(node) for node in nodes) <= most:
            return nodes
    return []


def are_too_many(grid: Grid, variables: Sequence[int]) -> bool:
    """Return whether even the products of the first levels are too many, in any richer grid."""
    return _up_to(grid, {m: [1] for m in variables}, LEAST_DEGREE) is None


def _up_to(grid: Grid, levels: Mapping[int, Sequence[int]], degree: int) -> list[Node] | None:
    """Return all products of total degree 1 to ``degree``, or None if there are too many."""
    limit = grid.max_order
    out: list[Node] = [()]
    for m, own in levels.items():
        depths = [(j, grid.depth(m, j)) for j in own]
        left = [degree - grid.degree(node) for node in out]
        out += [
            (*node, (m, j))
            for node, most in zip(out, left, strict=True)
            if limit is None or len(node) < limit
            for j, depth in depths
            if depth <= most
        ]
        if grid.restriction is not None:
            inside = grid.restriction.permits([[m for m, _ in node] for node in out])
            out = list(itertools.compress(out, inside))
        if len(out) > MOST_FEATURES + 1:
            return None
    return out[1:]
