"""The paper's search against the twin on the whole graph, and its certificate at every step."""

from __future__ import annotations

import numpy as np
import pytest
from oracles.naive import all_nodes, node_features
from oracles.problems import optimum_of, prediction_of, small_problem
from oracles.searches import grid_problem, paper

from hikernel import HKLRegressor
from hikernel.bases import (
    Anova,
    Branches,
    Gaussian,
    Hermite,
    KernelPCA,
    OrthonormalPolynomial,
    Polynomial,
    Spline,
    Steps,
)
from hikernel.engines import NumpyEngine
from hikernel.errors import CertificateWarning
from hikernel.graphs import Grid
from hikernel.search import StopReason, objective

pytestmark = pytest.mark.slow

BASES = {
    "polynomial": Polynomial(2),
    "orthonormal": OrthonormalPolynomial(2),
    "hermite": Hermite(2),
    "gaussian": Gaussian(2, b=0.2, tol=1e-4),
    "gaussian with constant": Gaussian(2, b=0.2, constant_level=True, tol=1e-4),
    "kernel PCA": KernelPCA(degree=2, b=0.2, tol=1e-4),
    "anova": Anova(b=0.2, tol=1e-4),
    "spline": Spline(tol=1e-2),
    "branches": Branches((OrthonormalPolynomial(2), Steps(2))),
}

SETTINGS = [
    {"alpha": 0.1, "weighted": False, "weight_base": 2.0, "root_weight": 1.0},
    {"alpha": 0.02, "weighted": True, "weight_base": 2.0, "root_weight": 0.1},
    {"alpha": 0.005, "weighted": False, "weight_base": 4.0, "root_weight": 1.0},
    {"alpha": 0.001, "weighted": True, "weight_base": 1.0, "root_weight": 2.0},
]

# 9 bases x 4 settings = 36 seeded problems; multi-column nodes in six of the bases.
PROBLEMS = [
    pytest.param(basis, setting, 100 * i + j, id=f"{name}-{j}")
    for i, (name, basis) in enumerate(BASES.items())
    for j, setting in enumerate(SETTINGS)
]


@pytest.mark.parametrize(("basis", "setting", "seed"), PROBLEMS)
def test_objective_equals_the_twin_on_the_whole_graph(basis, setting, seed):
    small = small_problem(basis, seed, **setting)
    optimum, prediction = optimum_of(small)
    result = paper(small.search, tol=1e-7, max_kernels=1000, certify="exact")
    assert result.certificate.certified
    assert result.certificate.objective == pytest.approx(optimum, rel=1e-6)
    assert small.grid.is_hull(result.nodes)
    weights = small.grid.weights(result.nodes)
    assert np.all(result.solution.eta >= 0)
    assert weights**2 @ result.solution.eta == pytest.approx(1.0)
    # Strong convexity: a gap of g puts predictions within sqrt(2 g) of each other.
    ours = prediction_of(small.search, result)
    distance = np.average((ours - prediction) ** 2, weights=small.weights)
    assert np.sqrt(distance) <= np.sqrt(2 * 3e-6 * optimum)


STEP_BASES = [
    Polynomial(2),
    OrthonormalPolynomial(2),
    Hermite(2),
    Gaussian(2, remainder=False),
    Gaussian(2, b=0.2, tol=1e-3),
    Anova(b=0.2, tol=1e-3),
    Spline(tol=1e-1),
]


@pytest.mark.parametrize("form", ["primal", "dual"])
@pytest.mark.parametrize("seed", range(14))
def test_the_gap_covers_the_true_suboptimality_at_every_step(seed, form):
    rng = np.random.default_rng(seed)
    small = small_problem(
        STEP_BASES[seed % 7],
        seed,
        p=int(rng.integers(2, 5 if seed % 7 < 4 else 4)),
        alpha=float(10 ** rng.uniform(-4, -1.5)),
        weighted=bool(rng.integers(2)),
        form=form,
    )
    assert small.grid.n_vertices <= 3**4
    optimum, _ = optimum_of(small)
    slack = 1e-7 * optimum  # accuracy of the twin
    steps, bounds = [], []

    def check(step):
        steps.append(step)
        certificate = step.certificate
        assert certificate.dual_bound <= optimum + slack
        assert certificate.gap >= certificate.objective - optimum - slack
        # Also where the search itself saw no need to bound the tail.
        tails = small.search.tail_sums(step.frontier, step.dual)
        bounds.append(step.dual.value(max(step.solution.dual_norm.value, max(tails, default=0.0))))
        assert bounds[-1] <= optimum + slack

    result = paper(small.search, tol=1e-5, max_kernels=100, certify="exact", callback=check)
    assert len(steps) == len(result.history) > 1
    sizes = [len(step.nodes) for step in steps]
    assert sizes == sorted(sizes)
    assert result.certificate.gap >= result.certificate.objective - optimum - slack
    # The bounds are not only valid: they grow and end tight.
    assert result.certificate.certified
    assert bounds[-1] >= optimum * (1 - 2e-5)
    assert 0.0 < bounds[0] < bounds[-1]


def test_twin_rows_at_an_extreme_point_do_not_fool_the_certificate():
    # Their terms cancel in the descendant sums to far below rounding; the bound must say so.
    rng = np.random.default_rng(0)
    n, p = 60, 40
    X = rng.standard_normal((n, p))
    X[-2:] = 6.0
    y = 3 * X[:, 0] * X[:, 1]
    linear = np.column_stack([np.ones(n), X])[:-2]
    y[:-2] -= linear @ np.linalg.lstsq(linear, y[:-2], rcond=None)[0]
    y[-1], y[-2] = 2.0, -2.0
    with pytest.warns(CertificateWarning):
        model = HKLRegressor(0.01, weight_base=2.0, max_kernels=5).fit(X, y)
    # A model on two of the columns is feasible for all of them, with the same weights.
    smaller = HKLRegressor(0.01, weight_base=2.0, tol=1e-6, max_kernels=400, certify="exact")
    smaller.fit(X[:, :2], y)
    assert model.certificate_.dual_bound <= smaller.certificate_.objective


def test_wide_nodes_are_scored_through_their_kernels():
    small = small_problem(Spline(), 3, n=20, p=3)
    nodes = [node for node in all_nodes(small.grid) if node]
    engine = small.search.engine
    assert max(engine.width(node) for node in nodes) > 20
    alpha = np.random.default_rng(0).standard_normal(20)
    expected = [float(np.sum((node_features(small.levels, v).T @ alpha) ** 2)) for v in nodes]
    np.testing.assert_allclose(small.search.engine.score_squares(nodes, alpha), expected, rtol=1e-9)


def test_primal_and_dual_form_find_the_same_model():
    results, predictions = [], []
    for form in ("primal", "dual"):
        small = small_problem(OrthonormalPolynomial(2), 5, p=3, form=form)
        results.append(paper(small.search, tol=1e-8, max_kernels=100, certify="exact"))
        predictions.append(prediction_of(small.search, results[-1]))
    a, b = results
    np.testing.assert_allclose(*predictions, atol=1e-4)
    assert a.certificate.objective == pytest.approx(b.certificate.objective, rel=1e-7)


def test_coefficients_come_from_the_dual_variables():
    # Slip 4: beta_w = zeta_w Phi_w' alpha, the main text's version, not the appendix's.
    small = small_problem(Spline(tol=1e-3), 7)
    result = paper(small.search, tol=1e-8, max_kernels=100, certify="exact")
    scores = small.search.engine.correlate(result.nodes, result.dual_coef)
    widths = [small.search.engine.width(node) for node in result.nodes]
    zeta = np.repeat(result.solution.zeta, widths)
    np.testing.assert_allclose(zeta * scores, result.solution.coef, atol=1e-9)
    assert not np.allclose(scores, result.solution.coef, atol=1e-3)
    assert np.sum(result.dual_coef) == pytest.approx(0.0, abs=1e-12)


def test_max_kernels_limits_the_hull_and_is_reported():
    # Slip 4: the algorithm's #(V) <= Q means the hull, not the graph.
    small = small_problem(OrthonormalPolynomial(2), 2, p=3, n=100, alpha=1e-4)
    free = paper(small.search, tol=1e-4, max_kernels=100, certify="exact")
    assert free.certificate.certified
    assert free.certificate.n_kernels > 5
    sizes = []
    cut = paper(
        small.search,
        tol=1e-4,
        max_kernels=5,
        certify="exact",
        callback=lambda step: sizes.append(len(step.nodes)),
    )
    assert max(sizes) == 5
    assert small.grid.n_vertices == 27
    assert not cut.certificate.certified
    assert cut.certificate.reason is StopReason.MAX_KERNELS
    assert cut.certificate.kind == "exact"
    assert cut.certificate.objective - cut.certificate.gap <= free.certificate.objective


def test_without_bounds_nothing_is_claimed():
    small = small_problem(OrthonormalPolynomial(2), 2, p=3, n=100)
    result = paper(small.search, tol=1e-4, max_kernels=100, certify="none")
    assert result.certificate.kind == "none"
    assert not result.certificate.certified
    assert result.certificate.dual_bound == 0.0
    assert result.certificate.relative_gap == 1.0
    proven = paper(small.search, tol=1e-4, max_kernels=100, certify="exact")
    assert result.certificate.objective >= proven.certificate.dual_bound


def test_auto_bounds_small_data_only(monkeypatch):
    small = small_problem(OrthonormalPolynomial(2), 2)
    assert paper(small.search, tol=1e-3, max_kernels=50).certificate.kind == "exact"
    monkeypatch.setattr(objective, "AUTO_WORK", 10)
    unproven = paper(small.search, tol=1e-3, max_kernels=50).certificate
    assert unproven.kind == "none"
    assert unproven.reason is StopReason.NOT_BOUNDED


def test_terms_that_only_the_proof_needed_are_dropped():
    small = small_problem(OrthonormalPolynomial(2), 4, p=4, n=300, alpha=0.02)
    result = paper(small.search, tol=1e-3, max_kernels=100, certify="exact")
    assert result.certificate.certified
    assert len(result.nodes) < result.certificate.n_kernels
    norms = np.sqrt(result.problem.node_squares(result.solution.coef))
    by_node = dict(zip(result.nodes, norms, strict=True))
    assert all(by_node[node] > 1e-4 for node in small.grid.extreme_points(result.nodes))


def test_a_single_vertex_graph_is_solved_exactly():
    small = small_problem(OrthonormalPolynomial(2), 0, n=10)
    engine = NumpyEngine([(1,)], [[np.ones((10, 1))]], np.ones(10), [True])
    problem = grid_problem(engine, Grid(((1.0,),)), small.y, 0.1)
    result = paper(problem, tol=1e-3, max_kernels=10)
    assert result.certificate.certified
    assert result.certificate.objective == pytest.approx(0.5 * np.var(small.y))
    assert result.certificate.n_vertices == 1
