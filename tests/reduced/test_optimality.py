"""Optimality conditions of the norm, and slip 3 of the paper: the sum over ancestors belongs in.

At the optimum with all of J active, a_w = delta sum_{v in A(w)} d_v / |beta_D(v)| beta_w. The
consistency conditions rest on it: for a population covariance S and true beta, the solution is
beta - lambda delta S^-1 diag(sum_{v in A(w)} d_v / |beta_D(v)|) beta + o(lambda). The main text of
the paper prints the diagonal without the sum.
"""

from __future__ import annotations

import numpy as np
import pytest
from oracles.naive import all_nodes, is_ancestor

from hikernel.engines.features import Blocks
from hikernel.graphs import Grid, geometric_weights
from hikernel.reduced import HullMap, solve_reduced
from hikernel.reduced.forms import PrimalForm

GRID = Grid(geometric_weights([2, 1], 1.5), root_weight=0.7)
NODES = all_nodes(GRID)


def population(seed):
    rng = np.random.default_rng(seed)
    factor = rng.standard_normal((12, len(NODES))) / np.sqrt(12)
    covariance = factor.T @ factor + 0.5 * np.eye(len(NODES))
    beta = rng.uniform(0.5, 1.5, len(NODES)) * rng.choice([-1, 1], len(NODES))
    form = PrimalForm(
        covariance,
        covariance @ beta,
        float(beta @ covariance @ beta),
        Blocks([1] * len(NODES)),
    )
    return covariance, beta, form


def diagonals(beta):
    """The diagonal with the sum over ancestors, and the main text's without it."""
    norms = [
        np.sqrt(sum(beta[j] ** 2 for j, w in enumerate(NODES) if is_ancestor(v, w))) for v in NODES
    ]
    own = np.array([GRID.weight(v) / norm for v, norm in zip(NODES, norms, strict=True)])
    summed = np.array(
        [sum(own[i] for i, v in enumerate(NODES) if is_ancestor(v, w)) for w in NODES]
    )
    delta = sum(GRID.weight(v) * norm for v, norm in zip(NODES, norms, strict=True))
    return delta, summed, own


@pytest.mark.parametrize("seed", range(3))
def test_scores_at_the_optimum(seed):
    _, _, form = population(seed)
    solution = solve_reduced(form, HullMap(NODES, GRID), 0.01, tol=1e-11)
    delta, summed, own = diagonals(solution.coef)
    np.testing.assert_allclose(solution.scores, delta * summed * solution.coef, rtol=1e-3)
    assert not np.allclose(solution.scores, delta * own * solution.coef, rtol=0.1)


@pytest.mark.parametrize("seed", range(3))
def test_slip_3_first_order_expansion_of_the_solution(seed):
    covariance, beta, form = population(seed)
    strength = 1e-5
    solution = solve_reduced(form, HullMap(NODES, GRID), strength, tol=1e-9)
    slope = (solution.coef - beta) / strength
    delta, summed, own = diagonals(beta)
    expected = -delta * np.linalg.solve(covariance, summed * beta)
    np.testing.assert_allclose(slope, expected, rtol=0.02, atol=0.02 * np.abs(expected).max())
    printed = -delta * np.linalg.solve(covariance, own * beta)
    assert np.abs(slope - printed).max() > 0.2 * np.abs(slope).max()
