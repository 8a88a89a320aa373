"""The estimate from data, and what the conditions predict of the library's own fits."""

from __future__ import annotations

import numpy as np
import pytest
from consistency.twins import random_case
from oracles.designs import design_of
from oracles.naive import all_nodes

from hikernel import HKLRegressor
from hikernel.bases import OrthonormalPolynomial
from hikernel.consistency import consistency_conditions, estimate_conditions
from hikernel.graphs import Dag, Grid, geometric_weights
from hikernel.reduced import ReducedProblem

GRID = Grid(geometric_weights([1, 1], 2.0))
NODES = [(), ((0, 1),), ((1, 1),), ((0, 1), (1, 1))]


def test_it_is_the_population_of_the_rows():
    case = random_case(4)
    rng = np.random.default_rng(0)
    Z = rng.multivariate_normal(np.ones(len(case.sigma)), case.sigma, size=60)
    weights = rng.integers(1, 4, size=60)
    rows = np.repeat(Z, weights, axis=0)
    args, options = case.arguments()
    expected = consistency_conditions(*args[:2], np.cov(rows.T), args[3], **options)
    features = {v: Z[:, case.columns(v)] for v in case.nodes}
    report = estimate_conditions(case.graph, features, case.beta, sample_weight=weights)
    for name in ("necessary", "sufficient", "closed_form"):
        value = getattr(expected, name).value
        assert getattr(report, name).value == pytest.approx(value, rel=1e-8)
    assert report.is_estimate
    assert not expected.is_estimate
    assert report.explain().startswith("An estimate from 60 rows")


def test_it_tends_to_the_population():
    case = random_case(5)
    args, options = case.arguments()
    truth = consistency_conditions(*args, **options).sufficient.value
    errors = []
    for n in (100, 100_000):
        rng = np.random.default_rng(1)
        Z = rng.multivariate_normal(np.zeros(len(case.sigma)), case.sigma, size=n)
        features = {v: Z[:, case.columns(v)] for v in case.nodes}
        estimate = estimate_conditions(case.graph, features, case.beta)
        errors.append(abs(estimate.sufficient.value / truth - 1))
    assert errors[1] < min(errors[0], 0.05)


def test_constant_features_are_the_intercepts():
    # Their rounding errors would be two columns of correlation one.
    rng = np.random.default_rng(2)
    X = rng.standard_normal((51, 2))
    graph = Dag({"1": [], "c": [], "x": ["1", "c"], "z": ["1"]}, dict.fromkeys("1cxz", 2.0))
    rounded = np.ones(51)
    rounded[0] = np.nextafter(1.0, 2.0)
    features = {"1": rounded, "c": 2 * rounded, "x": X[:, 0], "z": X[:, 1]}
    report = estimate_conditions(graph, features, {"x": 1.0})
    slope = np.cov(X.T)[0, 1] / np.var(X[:, 0], ddof=1)
    assert report.n_hull == 3
    assert report.n_dependent == 0
    assert report.necessary.value == pytest.approx(3 * abs(slope))


def test_coefficients_of_a_fit_with_more_columns_than_rows():
    # Whatever a solver returns satisfies Sigma_WW gamma = q up to its tolerance.
    rng = np.random.default_rng(3)
    X = rng.standard_normal((6, 3))
    y = X[:, 0] * X[:, 1] + X[:, 2] + 0.1 * rng.standard_normal(6)
    grid = Grid(geometric_weights([2, 2, 2], 2.0))
    design = design_of(X, [OrthonormalPolynomial(2)] * 3)
    engine = design.engine(X, np.ones(6))
    problem = ReducedProblem(engine, grid, y, all_nodes(grid))
    fitted = problem.solve(1e-5, tol=1e-8)
    keep = problem.node_squares(fitted.coef) > 1e-12
    beta = {v: b for v, b, k in zip(problem.nodes, fitted.coef, keep, strict=True) if k}
    features = {v: engine.features([v]) for v in problem.nodes}
    report = estimate_conditions(grid, features, beta)
    assert report.n_dependent > 0
    assert report.n_hull == len(grid.hull(beta))


def recovery_rate(rho, n, repetitions=12):
    """How often the hull {1, x0} of y = x0 + noise is found, x1 having correlation rho."""
    hits = 0
    for seed in range(repetitions):
        rng = np.random.default_rng(seed)
        X = rng.multivariate_normal([0, 0], [[1, rho], [rho, 1]], size=n)
        y = X[:, 0] + rng.standard_normal(n)
        model = HKLRegressor(0.25 * n**-0.25, degree=1, tol=1e-6, certify="none").fit(X, y)
        hits += set(model.hull_["term"]) == {"1", "x0"}
    return hits / repetitions


@pytest.mark.parametrize(("rho", "verdict"), [(0.3, "recovered"), (0.9, "not recovered")])
def test_the_verdict_comes_true(rho, verdict):
    sigma = np.diag([0, 1, 1, 1 + rho**2]).astype(float)
    sigma[1, 2] = sigma[2, 1] = rho
    report = consistency_conditions(GRID, NODES, sigma, {NODES[1]: 1.0})
    assert report.verdict == verdict
    assert report.necessary.holds == (verdict == "recovered")
    few, many = recovery_rate(rho, 30), recovery_rate(rho, 4000)
    if verdict == "recovered":
        assert few < many == 1.0
    else:
        assert many == 0.0
