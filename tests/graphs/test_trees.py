"""Trees: the set of zeta is convex, by the corrected formula, and the problem solved in zeta."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.dags import random_blocks, solve
from oracles.searches import explicit, graph_problem

from hikernel.graphs import Dag, KernelGraph
from hikernel.reduced import HullMap


def random_forest(rng, m, roots=1):
    """Parents of m nodes, the first ``roots`` without any."""
    return {i: [int(rng.integers(i))] if i >= roots else [] for i in range(m)}


def size_in_zeta(parents, d, zeta):
    """What H bounds by one, in terms of zeta: the corrected formula of the paper."""
    total = 0.0
    for v, above in parents.items():
        inverse = 1.0 / zeta[v] - sum(1.0 / zeta[u] for u in above)
        if not inverse > 0.0:
            return np.inf
        extra = sum(zeta[v] ** 2 / (zeta[u] - zeta[v]) for u in above)
        total += d[v] ** 2 * (zeta[v] + extra)
    return total


def random_tree(seed, roots=1, m=9):
    rng = np.random.default_rng(seed)
    parents = random_forest(rng, m, roots)
    dag = Dag(parents, {v: rng.uniform(0.3, 3.0) for v in parents})
    return rng, parents, HullMap(list(range(m)), dag)


@given(seed=st.integers(0, 10**6), roots=st.integers(1, 3))
@settings(max_examples=50, deadline=None, derandomize=True)
def test_the_constraint_on_eta_reads_so_in_zeta(seed, roots):
    rng, parents, hull = random_tree(seed, roots)
    eta = np.exp(rng.uniform(-4.0, 4.0, hull.size))
    zeta = hull.zeta(eta)
    assert size_in_zeta(parents, hull.weights, zeta) == pytest.approx(
        float(hull.weights**2 @ eta), rel=1e-9
    )
    for v, above in parents.items():
        if above:  # zeta falls along the tree, and eta comes back from it
            u = above[0]
            assert zeta[v] < zeta[u]
            back = 1.0 / (1.0 / zeta[v] - 1.0 / zeta[u])
            assert back == pytest.approx(eta[v], rel=1e-9)
        else:
            assert zeta[v] == pytest.approx(eta[v])  # the root, not the leaves


def test_leaves_are_not_where_zeta_is_eta():
    # A chain of two, as the paper has it the other way round.
    hull = HullMap(["root", "leaf"], Dag({"root": [], "leaf": ["root"]}))
    np.testing.assert_allclose(hull.zeta(np.array([0.5, 0.25])), [0.5, 1.0 / 6.0])


@given(seed=st.integers(0, 10**6), roots=st.integers(1, 3), share=st.floats(0.05, 0.95))
@settings(max_examples=100, deadline=None, derandomize=True)
def test_the_set_of_zeta_is_convex(seed, roots, share):
    rng, parents, hull = random_tree(seed, roots, m=6)
    points = []
    for _ in range(2):
        theta = rng.dirichlet(np.full(hull.size, 0.5)) + 1e-9
        points.append(hull.zeta(hull.eta(theta / theta.sum())))
        assert size_in_zeta(parents, hull.weights, points[-1]) == pytest.approx(1.0, rel=1e-6)
    between = share * points[0] + (1.0 - share) * points[1]
    assert size_in_zeta(parents, hull.weights, between) <= 1.0 + 1e-9


def test_the_set_of_zeta_is_not_convex_where_ways_meet_again():
    # a -> b, c -> d: halfway between two feasible points lies one that no eta in H reaches.
    parents = {"a": [], "b": ["a"], "c": ["a"], "d": ["b", "c"]}
    hull = HullMap(list(parents), Dag(parents, weight_base=1.0))

    def size(zeta):
        a, b, c, d = 1.0 / zeta
        inverses = np.array([a, b - a, c - a, d - b - c + a])
        return np.sum(1.0 / inverses) if np.all(inverses > 0.0) else np.inf

    rng = np.random.default_rng(0)
    worst = 0.0
    for _ in range(500):
        one, two = (hull.zeta(rng.dirichlet(np.full(4, 0.3)) + 1e-6) for _ in range(2))
        assert size(one) == pytest.approx(1.0, rel=1e-4)
        worst = max(worst, size(0.5 * (one + two)))
    assert worst > 1.1


def tree_optimum(parents, d, blocks, y, alpha):
    """The problem written in zeta: cvxpy knows the set to be convex."""
    zeta = cp.Variable(len(parents))
    betas = {v: cp.Variable(blocks[v].shape[1]) for v in parents}
    b = cp.Variable()
    f = b + sum(blocks[v] @ beta for v, beta in betas.items())
    penalty = sum(cp.quad_over_lin(beta, zeta[v]) for v, beta in betas.items())
    size = sum(
        d[v] ** 2 * (zeta[v] + sum(cp.quad_over_lin(zeta[v], zeta[u] - zeta[v]) for u in above))
        for v, above in parents.items()
    )
    loss = 0.5 * cp.sum_squares(y - f) / len(y)
    problem = cp.Problem(cp.Minimize(loss + 0.5 * alpha * penalty), [size <= 1.0])
    assert problem.is_dcp()
    solve(problem)
    return float(problem.value), np.asarray(zeta.value), np.asarray(f.value)


@pytest.mark.parametrize("alpha", [0.3, 0.03, 0.003])
@pytest.mark.parametrize("roots", [1, 2])
def test_the_tree_problem_solved_in_zeta_is_ours(roots, alpha):
    rng = np.random.default_rng(roots)
    n, m = 30, 7
    parents = random_forest(rng, m, roots)
    blocks = random_blocks(rng, parents, n)
    weights = {v: float(rng.uniform(0.5, 2.0)) for v in parents}
    leaf = m - 1
    y = blocks[leaf][:, 0] + blocks[0][:, 0] + 0.3 * rng.standard_normal(n)
    optimum, zeta, f = tree_optimum(parents, weights, blocks, y, alpha)
    graph = KernelGraph(parents, features=blocks, weights=weights)
    engine = graph.fit(np.arange(n), np.ones(n)).engine(None, np.ones(n))
    problem = graph_problem(engine, graph.dag, y, alpha)
    result = explicit(problem, tol=1e-8, max_kernels=100)
    assert result.certificate.certified
    assert result.certificate.objective == pytest.approx(optimum, rel=1e-6)
    ours = problem.engine.apply(result.nodes, result.solution.coef) + result.intercept
    np.testing.assert_allclose(ours, f, atol=1e-3)
    found = dict(zip(result.nodes, result.solution.zeta, strict=True))
    full = np.array([found.get(v, 0.0) for v in parents])
    np.testing.assert_allclose(full, zeta, atol=5e-3)
    assert size_in_zeta(
        {v: parents[v] for v in parents if v in found}, weights, found
    ) == pytest.approx(1.0, rel=1e-6)
