"""The search of general graphs: the optimum of cvxpy, honest at every step, deep at once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from losses.cases import CASES
from oracles.clocks import at_every_moment
from oracles.dags import (
    ancestors,
    dag_optimum,
    factor,
    omega_norm,
    random_blocks,
    random_parents,
)
from oracles.searches import explicit, graph_problem

from hikernel import HKLRegressor
from hikernel.graphs import KernelGraph, SubstringGraph
from hikernel.search import SearchSettings, StopReason, growth
from hikernel.search.explicit import _ExplicitSearch

N = 20


def laid_out(graph, weights):
    """Return the engine over all rows of a graph's matrices."""
    return graph.fit(np.arange(len(weights)), weights).engine(None, weights)


class Case:
    """A random graph with features, Gram matrices or both, and the problem on it."""

    def __init__(self, seed, m, kind, loss="squared_error", alpha=0.05, weighted=False):
        rng = np.random.default_rng(seed)
        self.parents = random_parents(rng, m, most=2)
        blocks = random_blocks(rng, self.parents, N)
        given = [v for v in blocks if kind == "features" or (kind == "mixed" and int(v) % 2)]
        grams = {v: blocks[v] @ blocks[v].T for v in blocks if v not in given}
        self.blocks = {v: blocks[v] if v in given else factor(grams[v]) for v in blocks}
        self.weights = {v: float(rng.uniform(0.5, 3.0)) for v in blocks}
        self.alpha, self.case = alpha, CASES[loss]
        deep, wide = str(m - 1), str(m // 2)
        signal = blocks[deep][:, 0] + 0.7 * blocks[wide][:, -1]
        if self.case.outputs is not None:
            signal = np.column_stack([signal, -blocks[deep][:, 0], blocks["0"][:, 0]])
        self.y = self.case.target(signal, rng)
        self.row_weights = rng.integers(1, 4, N).astype(float) if weighted else np.ones(N)
        graph = KernelGraph(
            self.parents,
            features={v: blocks[v] for v in given},
            grams=grams,
            weights=self.weights,
        )
        engine = laid_out(graph, self.row_weights)
        self.problem = graph_problem(engine, graph.dag, self.y, alpha, self.case.loss)

    def optimum(self):
        return dag_optimum(
            self.parents,
            self.weights,
            self.blocks,
            self.y,
            self.row_weights,
            self.alpha,
            self.case.loss,
        )

    def is_hull(self, nodes):
        return set(nodes) == set().union(*(ancestors(self.parents, v) for v in nodes))


@given(
    seed=st.integers(0, 10**6),
    m=st.integers(1, 10),
    kind=st.sampled_from(["features", "grams", "mixed"]),
    alpha=st.floats(1e-3, 0.3),
    weighted=st.booleans(),
)
@settings(max_examples=40, deadline=None, derandomize=True)
def test_objective_and_bounds_against_cvxpy(seed, m, kind, alpha, weighted):
    case = Case(seed, m, kind, alpha=alpha, weighted=weighted)
    optimum, f, _ = case.optimum()
    result = explicit(case.problem, tol=1e-6, max_kernels=100)
    certificate = result.certificate
    assert certificate.certified
    assert certificate.kind == "exact"
    assert certificate.n_vertices == m
    assert certificate.objective == pytest.approx(optimum, rel=2e-6)
    assert certificate.dual_bound <= optimum * (1 + 1e-7)
    assert case.is_hull(result.nodes)
    engine = case.problem.engine
    ours = engine.apply(result.nodes, result.solution.coef) + result.intercept
    np.testing.assert_allclose(ours, f, atol=0.02)
    # The objective once more, from the definition.
    omega = case.row_weights / case.row_weights.sum()
    squares = result.problem.node_squares(result.solution.coef)
    norms = dict.fromkeys(case.parents, 0.0) | dict(
        zip(result.nodes, np.sqrt(squares), strict=True)
    )
    norm = omega_norm(case.parents, case.weights, norms)
    value = 0.5 * omega @ (case.y - ours) ** 2 + 0.5 * alpha * norm**2
    assert certificate.objective == pytest.approx(value, rel=1e-9)
    for step in result.history:
        assert step.kind == "exact"
        assert step.dual_bound <= optimum * (1 + 1e-7)
        assert step.objective >= optimum * (1 - 1e-6)  # as precise as the twin is


@pytest.mark.parametrize(
    "loss",
    ["huber", "quantile", "epsilon_insensitive", "poisson", "log_loss", "hinge", "multinomial"],
)
@pytest.mark.parametrize("kind", ["features", "mixed"])
def test_every_loss_reaches_its_optimum(loss, kind):
    case = Case(3, 6, kind, loss, alpha=0.03, weighted=True)
    optimum, _, _ = case.optimum()
    result = explicit(case.problem, tol=1e-5, max_kernels=100)
    assert result.certificate.certified
    assert result.certificate.objective == pytest.approx(optimum, rel=2e-5)
    for step in result.history:
        assert step.dual_bound <= optimum * (1 + 1e-7)


@given(
    seed=st.integers(0, 10**6),
    kind=st.sampled_from(["features", "grams", "mixed"]),
    alpha=st.floats(1e-3, 0.3),
    solve_tol=st.sampled_from([1e-1, 1e-6]),
)
@settings(max_examples=25, deadline=None, derandomize=True)
def test_the_bound_is_valid_on_any_hull(seed, kind, alpha, solve_tol):
    case = Case(seed, 8, kind, alpha=alpha)
    optimum, _, _ = case.optimum()
    rng = np.random.default_rng(seed)
    dag = case.problem.graph
    chosen = rng.choice(8, int(rng.integers(1, 4)), replace=False)
    hull = sorted(dag.hull([str(v) for v in chosen]), key=dag.sort_key)
    solved = case.problem.solved(hull, tol=1e-3, solve_tol=solve_tol)
    settings_ = SearchSettings(tol=1e-3)
    bound = _ExplicitSearch(case.problem.objective, case.problem.lam, settings_)._bound(solved)
    value = solved.dual.value(max(solved.inside, bound.value))
    assert value <= optimum * (1 + 1e-7)
    assert solved.objective >= optimum * (1 - 1e-6)
    if not bound.violators and solve_tol < 1e-3:
        assert solved.objective - value <= 1e-3 * solved.objective * (1 + 1e-9)


def chain_problem(depth, alpha, noise=0.1, n=60, weight_base=1.0):
    """A chain whose last node carries the signal, and nodes beside it; none above says anything."""
    rng = np.random.default_rng(0)
    features = {("chain", i): rng.standard_normal((n, 1)) for i in range(depth)}
    features |= {("beside", i): rng.standard_normal((n, 1)) for i in range(20)}
    edges = [(("chain", i), ("chain", i + 1)) for i in range(depth - 1)]
    y = features["chain", depth - 1][:, 0] + noise * rng.standard_normal(n)
    graph = KernelGraph(edges, features=features, weight_base=weight_base)
    engine = laid_out(graph, np.ones(n))
    return graph_problem(engine, graph.dag, (y - y.mean()) / y.std(), alpha)


def test_a_violator_deep_in_the_graph_brings_its_hull():
    problem = chain_problem(6, 1e-3)
    steps = []
    start = ([("beside", 0)], None)  # far from it
    reduced = problem.reduced(list(start[0]))
    warm = reduced.solve(problem.lam, tol=1e-6).warm_start
    result = explicit(
        problem, tol=1e-4, max_kernels=100, callback=steps.append, start=(start[0], warm)
    )
    assert {("chain", i) for i in range(6)} <= set(result.nodes)
    assert result.certificate.certified
    # In one round, not one for every level.
    assert {("chain", i) for i in range(6)} <= set(steps[1].nodes)
    cold = explicit(problem, tol=1e-4, max_kernels=100)
    assert cold.certificate.objective == pytest.approx(result.certificate.objective, rel=2e-4)


@pytest.mark.parametrize("most", [1, 3, 5])
def test_no_hull_is_larger_than_max_kernels(most):
    problem = chain_problem(6, 1e-3)
    steps = []
    result = explicit(problem, tol=1e-3, max_kernels=most, callback=steps.append)
    assert max(len(step.nodes) for step in steps) <= most
    assert len(result.nodes) <= most
    assert not result.certificate.certified
    assert result.certificate.reason is StopReason.MAX_KERNELS
    assert problem.graph.hull(result.nodes) == set(result.nodes)
    best = explicit(problem, tol=1e-6, max_kernels=100).certificate
    assert 0.0 <= result.certificate.dual_bound <= best.objective


def test_enough_room_is_no_reason_to_stop():
    problem = chain_problem(6, 1e-3)
    free = explicit(problem, tol=1e-3, max_kernels=100)
    just = explicit(problem, tol=1e-3, max_kernels=free.certificate.n_kernels)
    assert just.certificate.certified


@pytest.mark.parametrize("kind", ["features", "grams"])
def test_time_may_be_up_at_any_moment(kind):
    problem = Case(0, 8, kind, alpha=1e-3).problem
    settings_ = {"tol": 1e-4, "max_kernels": 100}
    free = explicit(problem, **settings_)
    results = at_every_moment(lambda: explicit(problem, **settings_))
    assert len(results) > 2
    for result in results:
        assert problem.graph.hull(result.nodes) == set(result.nodes)
        assert len(result.solution.eta) == len(result.nodes)
        assert result.certificate.objective >= free.certificate.dual_bound
        measured = problem.solve(problem.reduced(result.nodes), problem.lam, tol=1e-4)
        assert measured.objective == pytest.approx(result.certificate.objective, rel=1e-3)
    for result in results[:-1]:
        assert result.certificate.reason is StopReason.SEARCH_TIME
        assert not result.certificate.certified
        assert result.certificate.kind == "none"
        assert result.certificate.dual_bound == 0.0
    assert results[-1].certificate == free.certificate
    assert len({len(result.nodes) for result in results}) > 1


def test_the_flat_graph_is_multiple_kernel_learning():
    # An independent form: sum of norms, squared, over full-rank Gram matrices.
    rng = np.random.default_rng(5)
    grams = {}
    for k in range(5):
        x = rng.standard_normal((N, 2))
        grams[k] = np.exp(-np.sum((x[:, None] - x) ** 2, axis=2))
    y = np.linalg.cholesky(grams[0] + 1e-9 * np.eye(N)) @ rng.standard_normal(N)
    weights = {k: 1.0 + 0.1 * k for k in grams}
    blocks = {k: factor(gram) for k, gram in grams.items()}
    flat = {k: [] for k in grams}
    optimum, f, norms = dag_optimum(flat, weights, blocks, y, np.ones(N), 0.01)
    graph = KernelGraph(grams=grams, weights=weights)
    engine = laid_out(graph, np.ones(N))
    problem = graph_problem(engine, graph.dag, y, 0.01)
    result = explicit(problem, tol=1e-8, max_kernels=100)
    assert result.certificate.objective == pytest.approx(optimum, rel=1e-7)
    ours = engine.apply(result.nodes, result.solution.coef) + result.intercept
    np.testing.assert_allclose(ours, f, atol=1e-4)
    found = np.sqrt(result.problem.node_squares(result.solution.coef))
    np.testing.assert_allclose(found, [norms[k] for k in result.nodes], atol=1e-3)
    # Flat: eta = zeta = |beta_v| / (d_v sum_w d_w |beta_w|).
    d = np.array([weights[k] for k in result.nodes])
    np.testing.assert_allclose(result.solution.zeta, found / (d * (d @ found)), atol=1e-3)
    np.testing.assert_allclose(result.solution.zeta, result.solution.eta, rtol=1e-12)


def test_a_shared_kappa_settles_what_violates_alone(monkeypatch):
    # A deep node with a score of its own above the threshold, but not together with its ancestors.
    def solve(settled):
        monkeypatch.setattr(growth, "_SETTLED", settled)
        return explicit(problem, tol=1e-3, max_kernels=100)

    saved = 0
    for seed in range(12):
        case = Case(seed, 10, "features", alpha=0.3)
        problem = case.problem
        with_, without = solve(2000), solve(-1)
        optimum, _, _ = case.optimum()
        for result in (with_, without):
            assert result.certificate.certified
            assert result.certificate.dual_bound <= optimum * (1 + 1e-7)
        saved += without.certificate.n_kernels - with_.certificate.n_kernels
    assert saved > 0


def test_a_start_from_a_neighbour_changes_nothing_but_time():
    case = Case(2, 10, "mixed", alpha=0.05)
    first = explicit(case.problem, tol=1e-6, max_kernels=100)
    nearby = graph_problem(case.problem.engine, case.problem.graph, case.y, 0.035)
    cold = explicit(nearby, tol=1e-6, max_kernels=100)
    warm = explicit(
        nearby,
        tol=1e-6,
        max_kernels=100,
        start=(first.nodes, first.solution.warm_start),
    )
    assert warm.certificate.objective == pytest.approx(cold.certificate.objective, rel=2e-6)


def test_scales_of_kernels_do_not_break_the_proof():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 4))
    y = X[:, 0] + X[:, 2] + 0.1 * rng.standard_normal(40)
    y = (y - y.mean()) / y.std()
    for scale in (1e-6, 1e-3, 1e3, 1e6):
        for kind in ("features", "grams"):
            blocks = {"a": X[:, :2], "b": scale * X[:, 2:]}
            given = blocks if kind == "features" else {v: B @ B.T for v, B in blocks.items()}
            graph = KernelGraph(**{kind: given})
            engine = laid_out(graph, np.ones(40))
            problem = graph_problem(engine, graph.dag, y, 0.01)
            result = explicit(problem, tol=1e-3, max_kernels=10)
            flat = {"a": [], "b": []}
            # The problem for 40 rows in other units: d_b is what the scale of a kernel is.
            twin, _, _ = dag_optimum(
                flat,
                {"a": 1.0, "b": 1.0 / scale},
                {"a": X[:, :2], "b": X[:, 2:]},
                y,
                np.ones(40),
                0.01,
            )
            assert result.certificate.dual_bound <= twin * (1 + 1e-7)
            assert result.certificate.objective == pytest.approx(twin, rel=2e-3)
            # Rounding of Gram matrices 1e12 apart leaves nothing to prove with; features are exact.
            if kind == "features" or scale < 1e6:
                assert result.certificate.certified


def test_a_thousand_flat_kernels_of_rank_five():
    rng = np.random.default_rng(0)
    n, m = 300, 1000
    features = rng.standard_normal((n, 5 * m)) / np.sqrt(5)
    blocks = {k: features[:, 5 * k : 5 * k + 5] for k in range(m)}
    y = sum(blocks[k] @ rng.standard_normal(5) for k in (17, 400, 931))
    y = y + 0.1 * rng.standard_normal(n)
    graph = KernelGraph(features=blocks)
    engine = laid_out(graph, np.ones(n))
    problem = graph_problem(engine, graph.dag, (y - y.mean()) / y.std(), 0.05)
    result = explicit(problem, tol=1e-3, max_kernels=600)
    assert set(result.nodes) == {17, 400, 931}
    assert result.certificate.certified
    assert result.certificate.n_vertices == m
    assert result.certificate.n_explored == m
    assert result.certificate.n_kernels < 100


@pytest.mark.parametrize("alpha", [1e-3, 1e-7])
def test_rounded_kernels_are_certified_as_kernels(alpha):
    """The bound holds for what is stored, for its positive part, and for the kernels themselves."""
    rng = np.random.default_rng(2)
    n = 80
    X = rng.standard_normal((n, 3))
    y = np.sin(2 * X[:, 0]) + 0.3 * rng.standard_normal(n)
    grams = {str(k): np.exp(-((X[:, [k]] - X[:, k]) ** 2)) for k in range(3)}
    model = HKLRegressor(alpha, graph=KernelGraph(grams=grams, dtype="float32"))
    certificate = model.fit(np.arange(n), y).certificate_
    assert certificate.certified
    parents = {node: [] for node in grams}
    omega = np.full(n, 1.0 / n)
    for kernels in (grams, {node: K.astype(np.float32) for node, K in grams.items()}):
        blocks = {node: positive_factor(K) for node, K in kernels.items()}
        best, *_ = dag_optimum(parents, dict.fromkeys(grams, 1.0), blocks, y, omega, alpha)
        assert certificate.dual_bound <= best * (1.0 + 1e-7)


def positive_factor(K):
    """F with F F' the positive part of K, whatever its rank."""
    squares, vectors = np.linalg.eigh(np.asarray(K, dtype=float))
    return vectors * np.sqrt(np.maximum(squares, 0.0))


def test_a_walk_ends_at_its_budget_and_says_so():
    rng = np.random.default_rng(0)
    strings = ["".join(rng.choice(list("ACGT"), 60)) for _ in range(80)]
    y = np.array([s.count("ACG") for s in strings], dtype=float)
    design = SubstringGraph(8, weight_base=1.0).fit(strings, np.ones(80))
    engine = design.engine(None, np.ones(80))
    problem = graph_problem(engine, design.graph, (y - y.mean()) / y.std(), 0.01)
    whole = explicit(problem, tol=1e-3, max_kernels=100).certificate
    assert whole.certified
    short = explicit(problem, tol=1e-3, max_kernels=100, max_explored=30).certificate
    assert not short.certified
    assert short.reason is StopReason.MAX_EXPLORED
    assert short.dual_bound <= whole.objective
