"""Small seeded problems over every basis."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hikernel.bases.design import Design
from hikernel.graphs import Grid, geometric_weights
from hikernel.search import SearchProblem


@dataclass(frozen=True)
class SmallProblem:
    """A search problem with what a naive oracle needs."""

    search: SearchProblem
    levels: list
    y: np.ndarray
    weights: np.ndarray
    grid: Grid


def small_problem(
    basis,
    seed,
    *,
    n=25,
    p=2,
    alpha=0.02,
    weight_base=2.0,
    root_weight=1.0,
    weighted=False,
    form="auto",
    max_order=None,
):
    """Return a problem with an interaction in it; ``basis`` is one basis for all columns."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    y = X[:, 0] + X[:, 0] * X[:, 1] + 0.5 * rng.standard_normal(n)
    y = (y - y.mean()) / y.std()
    weights = rng.integers(1, 4, size=n).astype(float) if weighted else np.ones(n)
    design = Design.fit(X, [basis] * p, weights)
    grid = Grid(geometric_weights(design.max_levels, weight_base), root_weight, max_order)
    search = SearchProblem(design.engine(X, weights), grid, y, alpha, form)
    levels = [fitted.transform(X[:, m]) for m, fitted in enumerate(design.bases)]
    return SmallProblem(search, levels, y, weights, grid)
