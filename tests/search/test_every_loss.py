"""Every loss: the optimum of the twin in both forms, and bounds that hold at every step."""

from __future__ import annotations

import numpy as np
import pytest
from losses.cases import CASES, JOINT, every_loss
from oracles.naive import node_features, omega
from oracles.problems import optimum_of, prediction_of, small_problem
from oracles.searches import lookahead, paper
from sklearn.svm import SVC

from hikernel.bases import Anova, Hermite, OrthonormalPolynomial, Polynomial, Spline
from hikernel.losses import Hinge
from hikernel.reduced import HullMap, Status

pytestmark = pytest.mark.slow

BASES = [OrthonormalPolynomial(2), Polynomial(2), Hermite(2), Spline(tol=1e-1)]
TWIN = 1e-6  # accuracy of the twin, relative


def problem(case, seed, **settings):
    rng = np.random.default_rng(seed)
    alpha = float(10 ** rng.uniform(-3, -1))
    basis, weighted = BASES[seed % 4], seed % 3 == 1
    return small_problem(basis, seed, alpha=alpha, weighted=weighted, case=case, **settings)


def search_with(name, small, tol, callback=None):
    if name == "paper":
        return paper(small.search, tol=tol, max_kernels=200, certify="exact", callback=callback)
    return lookahead(small.search, tol=tol, max_kernels=200, certify="exact", callback=callback)


@pytest.mark.parametrize(
    ("case", "seed"),
    [
        pytest.param(case, seed, id=f"{seed}-{name}")
        for name, case in CASES.items()
        for seed in range(case.problems)
    ],
)
def test_objective_equals_the_twin_on_the_whole_graph_in_both_forms(case, seed):
    check_with_twin(case, seed)


@pytest.mark.parametrize("case", JOINT.values(), ids=list(JOINT))
@pytest.mark.parametrize("seed", range(3))
def test_the_same_for_losses_in_which_rows_interact(case, seed):
    check_with_twin(case, seed)


def check_with_twin(case, seed):
    optimum, _ = optimum_of(problem(case, seed))
    for form in ("primal", "dual"):
        small = problem(case, seed, form=form)
        result = search_with("lookahead", small, 1e-6 if case.loss.smooth else 5e-6)
        assert result.solution.status is Status.CONVERGED
        assert result.certificate.certified
        assert result.certificate.objective == pytest.approx(optimum, rel=1e-5)
        assert result.certificate.dual_bound <= optimum * (1 + TWIN)
        assert small.grid.is_hull(result.nodes)


def objective_of(small, nodes, coef, f):
    """The objective written out from its definition."""
    widths = [node_features(small.levels, v).shape[1] for v in nodes]
    blocks = np.split(coef, np.cumsum(widths)[:-1])
    norm = omega(small.grid, nodes, [np.linalg.norm(block) for block in blocks])
    loss = np.average(small.search.loss.value(small.y, f), weights=small.weights)
    return loss + 0.5 * small.search.lam * norm**2


@every_loss
def test_the_objective_is_that_of_the_returned_model(case):
    small = problem(case, 1)
    result = search_with("lookahead", small, 1e-3)
    f = prediction_of(small.search, result)
    written_out = objective_of(small, result.nodes, result.solution.coef, f)
    assert result.certificate.objective == pytest.approx(written_out, rel=1e-10)


def dual_bound(small, step):
    """The dual objective of a step for the whole graph, from naive scores and tail sums."""
    squares = np.array(
        [np.sum((node_features(small.levels, v).T @ step.dual.dual_coef) ** 2) for v in step.nodes]
    )
    hull = HullMap(step.nodes, small.grid)
    inside = hull.refine_dual_norm(squares, step.solution.dual_norm.eta).value
    frontier = small.grid.sources_of_complement(step.nodes)
    tails = small.search.tail_sums(frontier, step.dual) if frontier else [0.0]
    return step.dual.value(max(inside, *tails))


@every_loss
@pytest.mark.parametrize("search", ["lookahead", "paper"])
@pytest.mark.parametrize("form", ["primal", "dual"])
def test_the_gap_covers_the_true_suboptimality_at_every_step(case, search, form):
    for seed in (22,) if case.loss.joint else (21, 22, 23):
        small = problem(case, seed, form=form, p=2 + seed % 2)
        optimum, _ = optimum_of(small)
        slack = TWIN * optimum
        bounds = []

        def check(step, small=small, optimum=optimum, slack=slack, bounds=bounds):
            certificate = step.certificate
            assert certificate.objective >= optimum - slack
            assert certificate.gap >= certificate.objective - optimum - slack
            # Also where the search itself saw no need to bound the tail.
            bounds.append(dual_bound(small, step))
            assert bounds[-1] <= optimum + slack
            np.testing.assert_allclose(np.sum(step.dual.dual_coef, axis=0), 0.0, atol=1e-9)

        result = search_with(search, small, 1e-3, check)
        assert len(bounds) >= 2
        assert result.certificate.certified
        assert result.certificate.gap >= result.certificate.objective - optimum - slack
        assert bounds[0] < bounds[-1]


@every_loss
def test_coefficients_come_from_the_dual_variables(case):
    small = problem(case, 0)
    tol, close = (1e-5, 0.02) if case.loss.smooth else (1e-3, 0.2)
    result = search_with("lookahead", small, tol)
    assert result.certificate.certified
    scores = small.search.engine.correlate(result.nodes, result.dual_coef)
    widths = [small.search.engine.width(node) for node in result.nodes]
    zeta = np.repeat(result.solution.zeta, widths)
    ours = result.solution.coef
    expected = (zeta * scores.T).T
    np.testing.assert_allclose(expected, ours, atol=close * np.abs(ours).max())
    assert not np.allclose(scores, ours, atol=close * np.abs(ours).max())


@every_loss
def test_a_start_from_a_neighbour_changes_nothing_but_time(case):
    first = problem(case, 4)
    nearby = small_problem(BASES[0], 4, alpha=0.7 * first.search.lam, case=case)
    before = search_with("lookahead", first, 1e-3)
    start = (before.nodes, before.solution.warm_start)
    cold = search_with("lookahead", nearby, 1e-3)
    warm = lookahead(nearby.search, tol=1e-3, max_kernels=200, start=start)
    assert cold.certificate.certified
    assert warm.certificate.certified
    slack = cold.certificate.gap + warm.certificate.gap
    assert abs(warm.certificate.objective - cold.certificate.objective) <= slack


@pytest.mark.parametrize("basis", [OrthonormalPolynomial(1), Anova(b=0.5, tol=1e-2)])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("alpha", [0.02, 0.005])
def test_a_flat_hinge_model_is_the_support_vector_machine_of_its_kernel(basis, weighted, alpha):
    tol = 1e-4
    small = small_problem(
        basis, 0, n=60, p=4, alpha=alpha, weighted=weighted, max_order=1, case=CASES["hinge"]
    )
    result = search_with("lookahead", small, tol)
    assert isinstance(small.search.loss, Hinge)
    assert result.certificate.certified
    assert len(result.nodes) >= 2
    kernel = np.zeros((60, 60))
    for node, zeta in zip(result.nodes, result.solution.zeta, strict=True):
        features = node_features(small.levels, node)
        kernel += zeta * features @ features.T
    row_weights = small.weights / small.weights.sum()
    machine = SVC(kernel="precomputed", C=1.0 / alpha, tol=1e-8)
    machine.fit(kernel, small.y, sample_weight=row_weights)
    dual = np.zeros(60)
    dual[machine.support_] = machine.dual_coef_[0]
    theirs = machine.decision_function(kernel)
    hinge = row_weights @ np.maximum(1.0 - small.y * theirs, 0.0)
    objective = hinge + 0.5 * alpha * dual @ kernel @ dual
    # The machine's penalty is Omega^2 at the best zeta and larger at any other: it can do no
    # better than the optimum, and with the zeta of the solution no worse than its tolerance.
    assert objective <= result.certificate.objective * (1 + tol)
    assert objective >= result.certificate.dual_bound * (1 - 1e-7)
    # Strong convexity: a gap of g moves f by sqrt(2 g / alpha) in the norm of the kernel.
    distance = np.sqrt(2.0 * tol * objective / alpha * np.diag(kernel))
    ours = prediction_of(small.search, result)
    moved = (ours - ours.mean()) - (theirs - theirs.mean())
    assert np.all(np.abs(moved) <= distance + distance.mean())
    assert np.abs(moved).max() < 0.2 * np.ptp(theirs)
