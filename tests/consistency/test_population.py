"""The conditions against hand computation, the group lasso's formula, loops and cvxpy."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from consistency.twins import (
    dual_norm_by_cvxpy,
    paper_bound,
    pull_of,
    random_case,
    sources_of,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from hikernel.consistency import consistency_conditions
from hikernel.graphs import Dag, Grid, geometric_weights

# The last four once stopped short: the upper bound was exact long before the lower one.
SEEDS = [*range(12), 88, 196, 314, 381]


def conditions(case):
    args, options = case.arguments()
    return consistency_conditions(*args, **options)


def test_a_chain_by_hand():
    # a -> b -> c with d = 1, 2, 4 and W = {a, b}; beta = (3, 4), so that |beta_D(a)| = 5 and
    # |beta_D(b)| = 4: q_a = 3/5, q_b = (1/5 + 2/4) 4 = 2.8. Sigma_WW = I, Sigma_cW = (.5, .25):
    # A_c = 0.3 + 0.7 = 1, and d_c = 4.
    chain = Dag({"a": [], "b": ["a"], "c": ["b"]}, {"a": 1, "b": 2, "c": 4}, weight_base=1.0)
    sigma = [[1, 0, 0.5], [0, 1, 0.25], [0.5, 0.25, 1]]
    report = consistency_conditions(chain, "abc", sigma, {"a": 3, "b": 4}, hull="ab")
    for condition in (report.necessary, report.sufficient, report.closed_form):
        assert condition.value == pytest.approx(0.25, rel=1e-12)
        assert condition.margin == pytest.approx(0.75)
        assert condition.worst == "c"
        assert condition.holds is True
    assert report.verdict == "recovered"


def test_two_nodes_below_the_hull_by_hand():
    # a -> b -> c, W = {a}, d = 1, 1, 1: A = (.8, 2.4). The norm |Delta_bc| + |Delta_c| has the
    # dual ball {x: |x_b, x_c - u| <= 1, |u| <= 1}: for x = (.8, 2.4) the radius r solves
    # .8^2 + (2.4 - r)^2 = r^2, r = 6.4 / 4.8 = 4/3.
    chain = Dag({"a": [], "b": ["a"], "c": ["b"]}, weight_base=1.0)
    sigma = np.array([[1, 0.8, 2.4], [0.8, 1, 0], [2.4, 0, 9]]) + np.diag([0, 1, 9])
    report = consistency_conditions(chain, "abc", sigma, {"a": -7})
    assert report.necessary.value == pytest.approx(0.8)
    assert report.sufficient.value == pytest.approx(4 / 3)
    assert report.closed_form.value == pytest.approx(np.hypot(0.8, 1.2))
    assert report.necessary.holds is True
    assert report.sufficient.holds is False
    assert report.sufficient.margin == pytest.approx(-1 / 3)
    assert report.sufficient.worst == "c"
    assert report.verdict == "not recovered"
    assert "several nodes together" in report.explain()


@pytest.mark.parametrize("seed", SEEDS)
def test_a_flat_graph_is_the_group_lasso(seed):
    # Bach 2008 (group lasso): max_{j not in J} |Sigma_jJ Sigma_JJ^-1 Diag(d / |b|) b_J| / d_j.
    case = random_case(seed, edge=0.0)
    pull, inside = {}, [v for v in case.nodes if v in case.beta]
    columns = np.concatenate([case.columns(v) for v in inside])
    q = np.concatenate(
        [case.weights[v] * case.beta[v] / np.linalg.norm(case.beta[v]) for v in inside]
    )
    inverse = np.linalg.inv(case.sigma[np.ix_(columns, columns)])
    for j in set(case.nodes) - set(inside):
        block = case.sigma[np.ix_(case.columns(j), columns)] @ inverse @ q
        pull[j] = np.linalg.norm(block) / case.weights[j]
    report = conditions(case)
    for condition in (report.necessary, report.sufficient, report.closed_form):
        assert condition.value == pytest.approx(max(pull.values()), rel=1e-9)
        assert condition.worst == max(pull, key=pull.get)


@pytest.mark.parametrize("seed", SEEDS)
def test_random_graphs_against_loops_and_cvxpy(seed):
    case = random_case(seed)
    x = pull_of(case)
    report = conditions(case)
    exact = dual_norm_by_cvxpy(case.parents, case.weights, x)
    assert report.sufficient.upper == pytest.approx(report.sufficient.lower, rel=3e-9)
    assert report.sufficient.value == pytest.approx(exact, rel=1e-6)
    ratios = {t: np.linalg.norm(x[t]) / case.weights[t] for t in sources_of(case.parents, x)}
    assert report.necessary.value == pytest.approx(max(ratios.values()))
    assert report.necessary.worst == max(ratios, key=ratios.get)
    assert report.closed_form.value == pytest.approx(paper_bound(case.parents, case.weights, x))
    assert report.necessary.value <= report.sufficient.upper * (1 + 1e-12)
    assert report.sufficient.lower <= report.closed_form.value * (1 + 1e-12)
    assert report.n_hull == len(case.hull)
    assert report.n_dependent == 0


@pytest.mark.parametrize("seed", SEEDS)
def test_the_expansion_of_the_estimate_decides(seed):
    """Solve the paper's problem for gamma: it is zero outside W exactly if Omega*(A) <= 1."""
    import cvxpy as cp
    from consistency.twins import closure

    case = random_case(seed, m=5, correlation=1.0 + seed % 3)
    above = closure(case.parents)
    gamma = {v: cp.Variable(case.widths[v]) for v in case.nodes}
    stacked = cp.hstack([gamma[v] for v in case.nodes])
    linear, rough = 0.0, 0.0
    for v in case.nodes:
        below = [w for w in case.nodes if v in above[w]]
        if v in case.hull:
            beta = {w: case.beta[w] for w in below if w in case.beta}
            norm = np.sqrt(sum(np.sum(b**2) for b in beta.values()))
            linear += sum(case.weights[v] / norm * (b @ gamma[w]) for w, b in beta.items())
        else:
            rough += case.weights[v] * cp.norm(cp.hstack([gamma[w] for w in below]))
    quadratic = 0.5 * cp.sum_squares(np.linalg.cholesky(case.sigma).T @ stacked)
    cp.Problem(cp.Minimize(quadratic + linear + rough)).solve(solver=cp.CLARABEL)
    outside = max(np.linalg.norm(gamma[v].value) for v in case.nodes if v not in case.hull)
    largest = max(np.linalg.norm(gamma[v].value) for v in case.nodes)
    report = conditions(case)
    assert abs(report.sufficient.margin) > 1e-3
    assert (outside < 1e-4 * largest) == report.sufficient.holds


def test_slip_3_the_main_text_dropped_the_sum_over_ancestors():
    case = random_case(3)
    appendix, main = pull_of(case), pull_of(case, over_ancestors=False)
    sources = sources_of(case.parents, appendix)
    value = conditions(case).necessary.value

    def largest(pull):
        return max(np.linalg.norm(pull[t]) / case.weights[t] for t in sources)

    assert value == pytest.approx(largest(appendix))
    assert value != pytest.approx(largest(main), rel=0.01)


@given(st.integers(0, 10**6), st.sampled_from([1e-180, -1e-3, 7.0, 1e180]))
@settings(max_examples=20, deadline=None)
def test_the_scale_of_the_coefficients_does_not_matter(seed, scale):
    case = random_case(seed)
    scaled = dataclasses.replace(case, beta={v: scale * b for v, b in case.beta.items()})
    first, second = conditions(case), conditions(scaled)
    for name in ("necessary", "sufficient", "closed_form"):
        value = getattr(first, name).value
        assert getattr(second, name).value == pytest.approx(value, rel=1e-8)


@given(st.integers(0, 10**6))
@settings(max_examples=20, deadline=None)
def test_the_order_of_the_nodes_and_the_scale_of_sigma_do_not_matter(seed):
    case = random_case(seed)
    names = case.nodes[::-1]
    columns = np.concatenate([case.columns(v) for v in names])
    report = consistency_conditions(
        case.graph,
        names,
        3.0 * case.sigma[np.ix_(columns, columns)],
        case.beta,
        hull=case.hull,
        widths=[case.widths[v] for v in names],
    )
    assert report.sufficient.value == pytest.approx(conditions(case).sufficient.value, rel=1e-8)


def test_orthogonal_blocks_hold_trivially():
    case = random_case(0)
    blocks = np.zeros_like(case.sigma)
    for v in case.nodes:
        index = np.ix_(case.columns(v), case.columns(v))
        blocks[index] = case.sigma[index]
    report = conditions(dataclasses.replace(case, sigma=blocks))
    assert report.necessary.value == report.sufficient.value == report.closed_form.value == 0.0
    assert report.verdict == "recovered"
    assert report.necessary.margin == 1.0


def test_a_hull_of_all_nodes():
    chain = Dag({"a": [], "b": ["a"]}, weight_base=1.0)
    report = consistency_conditions(chain, "ab", np.eye(2), {"b": 1.0})
    assert report.sufficient.value == 0.0
    assert report.sufficient.worst is None
    assert "No node is outside" in report.explain()


def test_a_grid_with_its_constant():
    # Correlated normal inputs, W = {1, x0}: A_x1 = rho (1 + 2), over d = 2; x0 x1 is uncorrelated.
    grid = Grid(geometric_weights([1, 1], 2.0))
    nodes = [(), ((0, 1),), ((1, 1),), ((0, 1), (1, 1))]
    for rho, verdict in ((0.5, "recovered"), (0.8, "not recovered"), (2 / 3, "undecided")):
        sigma = np.array(
            [[0, 0, 0, 0], [0, 1, rho, 0], [0, rho, 1, 0], [0, 0, 0, 1 + rho**2]], dtype=float
        )
        report = consistency_conditions(grid, nodes, sigma, {((0, 1),): 2.0})
        assert report.necessary.value == pytest.approx(1.5 * rho)
        assert report.sufficient.value == pytest.approx(1.5 * rho)
        assert report.verdict == verdict
        assert report.n_dependent == 0
    text = report.explain(name=lambda node: "x1" if node == ((1, 1),) else "?")
    assert "worst node: x1" in text
    assert "too close to 1" in text


def test_dependent_features_of_the_hull():
    # c = a + b, all in W, and d = 0.4 a + 0.3 b outside.
    graph = Dag({"a": [], "b": [], "c": [], "d": []}, weight_base=1.0)
    maps = np.array([[1, 0, 0.4], [0, 1, 0.3]]).T
    mixed = np.vstack([maps[:2], maps[:2].sum(axis=0), maps[2]])
    base = mixed @ mixed.T
    base[3, 3] += 1.0
    # Moving s from a and b to c changes no prediction and the norm by (d_c - d_a - d_b) s: with
    # weights 1, 1, 2 every split has least norm; with 1, 1, 1 the one below has not.
    weights = {"a": 1, "b": 1, "c": 2, "d": 1}
    flat = Dag({v: [] for v in "abcd"}, weights)
    report = consistency_conditions(flat, "abcd", base, {"a": 1, "b": 1, "c": 1})
    assert report.n_dependent == 1
    assert report.necessary.value == pytest.approx(0.7)
    assert "linearly dependent" in report.explain()
    with pytest.raises(ValueError, match="singular"):
        consistency_conditions(graph, "abcd", base, {"a": 1, "b": 1, "c": 1})


def test_bounds_that_do_not_meet_are_reported(monkeypatch):
    from hikernel.consistency import dual_norm as module

    monkeypatch.setattr(module, "_MAX_ROUNDS", 2)
    case = next(
        case
        for case in map(random_case, range(50))
        if not conditions(case).sufficient.upper <= 1.001 * conditions(case).sufficient.lower
    )
    rough = conditions(case)
    exact = dual_norm_by_cvxpy(case.parents, case.weights, pull_of(case))
    assert rough.sufficient.lower <= exact * (1 + 1e-7)
    assert exact <= rough.sufficient.upper * (1 + 1e-7)
    assert "between" in rough.explain()
