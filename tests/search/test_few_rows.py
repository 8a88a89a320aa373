"""Three to five rows, and columns of a few values: bounds hold, and nothing breaks."""

from __future__ import annotations

import numpy as np
import pytest
from oracles.designs import design_of
from oracles.naive import all_nodes
from oracles.searches import grid_problem, lookahead

from hikernel import HKLRegressor
from hikernel.bases import Gaussian, KernelPCA, OrthonormalPolynomial, Spline, Steps
from hikernel.losses import Poisson
from hikernel.search import objective

BASES = (OrthonormalPolynomial(3), Gaussian(degree=2), Spline(), Steps(2))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("listed", [0, 2000])
def test_no_bound_for_counts_is_above_the_optimum(seed, listed, monkeypatch):
    # Rows without a count pull f to minus infinity, and the optimum can be a thousandth of the
    # loss of the constant: digits that cancel in the bound would show.
    monkeypatch.setattr(objective, "_LISTED", listed)
    rng = np.random.default_rng([seed, listed])
    done = 0
    while done < 10:
        n, p = int(rng.integers(3, 6)), int(rng.integers(1, 4))
        X = rng.standard_normal((n, p)) * 10.0 ** rng.integers(-6, 7)
        y = rng.poisson(1.5, n).astype(float)
        if len(np.unique(y)) < 2:
            continue
        weights = 10.0 ** rng.uniform(-3.0, 3.0, n) if done % 2 else np.ones(n)
        design = design_of(X, [BASES[i] for i in rng.integers(len(BASES), size=p)], weights)
        engine = design.engine(X, weights)
        problem = grid_problem(engine, design.grid, y, 10.0 ** rng.uniform(-6.0, 0.0), Poisson())
        result = lookahead(problem, tol=float(rng.choice([0.3, 1e-2])), certify="exact")
        best = problem.solved(all_nodes(design.grid), solve_tol=1e-11).objective
        steps = [*result.history, result.certificate]
        assert max(step.dual_bound for step in steps) <= best * (1.0 + 1e-9)
        assert result.certificate.kind == "exact"
        done += 1


@pytest.mark.parametrize("certify", ["exact", "statistical"])
@pytest.mark.parametrize("kernel", ["gaussian", "laplace"])
def test_more_levels_than_directions(kernel, certify, monkeypatch):
    monkeypatch.setattr(objective, "_LISTED", 0)
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (30, 3)).astype(float)
    y = X[:, 0] + X[:, 1] * X[:, 2]
    basis = KernelPCA(kernel, degree=8, constant_level=True)
    model = HKLRegressor(1e-3, basis=basis, certify=certify).fit(X, y)
    assert model.certificate_.kind == certify
    assert model.score(X, y) > 0.9
    assert model.certificate_.n_vertices == 3**3  # two directions of two values, and none
