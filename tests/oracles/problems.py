"""Small seeded problems over every basis."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from losses.cases import CASES

from hikernel.graphs import Grid
from oracles.designs import design_of
from oracles.naive import all_nodes
from oracles.searches import ProblemAt, grid_problem
from oracles.twin import twin_optimum


@dataclass(frozen=True)
class SmallProblem:
    """A search problem with what a naive oracle needs."""

    search: ProblemAt
    levels: list
    y: np.ndarray
    weights: np.ndarray
    grid: Grid


def optimum_of(small):
    """Optimal value over the whole graph and the prediction there, from the twin."""
    nodes = all_nodes(small.grid)
    search = small.search
    return twin_optimum(
        small.grid, small.levels, nodes, small.y, small.weights, search.lam, search.loss
    )


def prediction_of(problem, result):
    """f on the rows, from the coefficients and the intercept of a search's result."""
    return problem.engine.apply(result.nodes, result.solution.coef) + result.intercept


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
    case=None,
):
    """Return a problem with an interaction in it; ``basis`` is one basis for all columns.

    ``case`` of ``losses.cases`` says which loss and makes the target; squared error by default.
    """
    case = case or CASES["squared_error"]
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    signal = X[:, 0] + X[:, 0] * X[:, 1]
    if case.outputs is not None:
        signal = np.column_stack([signal, -X[:, 0], X[:, 1]])
    y = case.target(signal, rng)
    weights = rng.integers(1, 4, size=n).astype(float) if weighted else np.ones(n)
    limits = {"weight_base": weight_base, "root_weight": root_weight, "max_order": max_order}
    design = design_of(X, [basis] * p, weights, **limits)
    engine = design.engine(X, weights)
    loss = case.loss.on_rows(y, engine.row_weights)
    search = grid_problem(engine, design.grid, y, alpha, loss, form=form)
    levels = [fitted.transform(X[:, m]) for m, fitted in enumerate(design.bases)]
    return SmallProblem(search, levels, y, weights, design.grid)
