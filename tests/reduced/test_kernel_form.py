"""The form from kernels is the form from their factors."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from oracles.dags import factor, random_parents

from hikernel.engines.features import Blocks
from hikernel.engines.node_kernels import BlockKernel, DenseGram, KernelOperator
from hikernel.graphs import Dag
from hikernel.reduced import HullMap, Status
from hikernel.reduced.forms import DualForm, PrimalForm
from hikernel.reduced.kernel_form import KernelForm
from hikernel.reduced.newton import solve_reduced
from hikernel.reduced.working_set import solve_from

N = 25
ALPHA = 0.05
RANKS = [3, N, 1, 2, N]


class Case:
    """The same problem from kernels, and from centred and scaled factors in both forms."""

    def __init__(self, kinds, seed=0):
        rng = np.random.default_rng(seed)
        self.weights = rng.uniform(0.1, 2.0, N) / N
        y = rng.standard_normal(N)
        mean = self.weights / self.weights.sum()
        self.target = y - mean @ y
        features = [rng.standard_normal((N, r)) / np.sqrt(r) + 0.3 for r in RANKS]
        nodes = [
            BlockKernel(block) if kind == "block" else DenseGram(block @ block.T)
            for block, kind in zip(features, kinds, strict=True)
        ]
        self.kinds = kinds
        self.operator = KernelOperator(nodes, N)
        self.form = KernelForm(self.operator, self.weights, self.target)
        self.raw = [
            block if kind == "block" else factor(block @ block.T)
            for block, kind in zip(features, kinds, strict=True)
        ]
        root = np.sqrt(self.weights)
        scaled = np.hstack([(block - mean @ block) * root[:, None] for block in self.raw])
        self.widths = [block.shape[1] for block in self.raw]
        blocks = Blocks(self.widths)
        goal = root * self.target
        self.dual = DualForm(scaled, goal, blocks)
        self.primal = PrimalForm(scaled.T @ scaled, scaled.T @ goal, float(goal @ goal), blocks)

    def functions(self, coef):
        """The values on the rows of each node's function, from kernel coordinates."""
        parts = self.operator.blocks.split(coef)
        kernels = self.operator._kernels
        return np.column_stack([k.expand(c) for k, c in zip(kernels, parts, strict=True)])

    def factor_functions(self, coef):
        parts = np.split(coef, np.cumsum(self.widths)[:-1])
        return np.column_stack([F @ c for F, c in zip(self.raw, parts, strict=True)])

    def random_coef(self, seed):
        """Coordinates of one model, in both languages."""
        u = np.random.default_rng(seed).standard_normal((len(RANKS), N))
        kernels = self.operator._kernels
        ours = np.concatenate([k.coordinates(x) for k, x in zip(kernels, u, strict=True)])
        theirs = np.concatenate([F.T @ x for F, x in zip(self.raw, u, strict=True)])
        return ours, theirs


KINDS = {
    "grams": ["gram"] * 5,
    "mixed": ["block", "gram", "gram", "block", "gram"],
    "blocks": ["block"] * 5,
}


@pytest.fixture(params=list(KINDS))
def case(request):
    return Case(KINDS[request.param])


@pytest.mark.parametrize("seed", [0, 1])
def test_one_evaluation_equals_both_forms(case, seed):
    zeta = np.random.default_rng(seed).uniform(0.01, 1.0, len(RANKS))
    ours = case.form.evaluate(zeta, ALPHA)
    assert case.form.total == pytest.approx(case.dual.total)
    assert case.form.n_columns == sum(
        N if kind == "gram" else r for kind, r in zip(case.kinds, RANKS, strict=True)
    )
    for form in (case.dual, case.primal):
        other = form.evaluate(zeta, ALPHA)
        assert ours.loss == pytest.approx(other.loss, rel=1e-9)
        assert ours.fit == pytest.approx(other.fit, rel=1e-9)
        np.testing.assert_allclose(ours.coef_squares, other.coef_squares, rtol=1e-8)
        np.testing.assert_allclose(ours.score_squares, other.score_squares, rtol=1e-8)
        np.testing.assert_allclose(ours.curvature(), other.curvature(), atol=1e-10)
        np.testing.assert_allclose(
            case.functions(ours.coef), case.factor_functions(other.coef), atol=1e-9
        )
        np.testing.assert_allclose(
            case.functions(ours.scores), case.factor_functions(other.scores), atol=1e-8
        )
    np.testing.assert_allclose(case.form.squares(ours.coef), ours.coef_squares, rtol=1e-8)
    np.testing.assert_allclose(case.form.squares(ours.scores), ours.score_squares, rtol=1e-8)


def test_scores_and_inner_products_of_any_model(case):
    a, a_factors = case.random_coef(1)
    b, b_factors = case.random_coef(2)
    scores = case.form.scores(a, ALPHA)
    expected = case.dual.scores(a_factors, ALPHA)
    np.testing.assert_allclose(case.functions(scores), case.factor_functions(expected), atol=1e-7)
    np.testing.assert_allclose(case.form.squares(a), case.dual.squares(a_factors), rtol=1e-8)
    assert case.form.inner(a, b) == pytest.approx(case.dual.inner(a_factors, b_factors), rel=1e-8)
    assert case.form.inner(a, scores) == pytest.approx(
        case.dual.inner(a_factors, expected), rel=1e-8
    )


def test_some_of_the_nodes(case):
    some = np.array([1, 3], dtype=np.intp)
    zeta = np.array([0.3, 0.7])
    ours = case.form.restrict(some).evaluate(zeta, ALPHA)
    other = case.dual.restrict(some).evaluate(zeta, ALPHA)
    assert ours.loss == pytest.approx(other.loss, rel=1e-9)
    np.testing.assert_allclose(ours.coef_squares, other.coef_squares, rtol=1e-8)
    coef = np.zeros(case.form.n_columns)
    coef[case.form.columns(some)] = ours.coef
    np.testing.assert_allclose(case.form.squares(coef)[some], ours.coef_squares, rtol=1e-8)
    assert np.all(case.form.squares(coef)[[0, 2, 4]] == 0.0)


def test_weights_of_rows_equal_repetition():
    rng = np.random.default_rng(3)
    root = rng.standard_normal((N, N))
    gram = root @ root.T / N
    times = rng.integers(1, 4, N)
    rows = np.repeat(np.arange(N), times)
    y = rng.standard_normal(N)
    y -= times @ y / times.sum()
    zeta = np.array([0.5])
    weighted = KernelForm(KernelOperator([DenseGram(gram)], N), times / len(rows), y)
    repeated = KernelForm(
        KernelOperator([DenseGram(gram, rows, rows)], len(rows)),
        np.full(len(rows), 1.0 / len(rows)),
        y[rows],
    )
    a, b = weighted.evaluate(zeta, ALPHA), repeated.evaluate(zeta, ALPHA)
    assert a.loss == pytest.approx(b.loss, rel=1e-9)
    np.testing.assert_allclose(a.score_squares, b.score_squares, rtol=1e-9)
    np.testing.assert_allclose(a.curvature(), b.curvature(), rtol=1e-8)
    # A row's dual variable is shared out among its copies.
    np.testing.assert_allclose(a.scores, np.bincount(rows, b.scores), atol=1e-10)


def test_the_dual_variables_sum_to_zero(case):
    solved = case.form.evaluate(np.full(5, 0.2), ALPHA)
    parts = np.split(solved.scores, np.cumsum(case.operator.blocks.widths)[:-1])
    for kind, part in zip(case.kinds, parts, strict=True):
        if kind == "gram":
            assert abs(part.sum()) < 1e-12 * np.abs(part).sum()


@pytest.mark.parametrize("alpha", [0.5, 0.05, 0.005])
def test_the_solvers_end_at_the_same_place(case, alpha):
    parents = random_parents(np.random.default_rng(7), 5, most=2)
    hull = HullMap(list(parents), Dag(parents))
    ours = solve_reduced(case.form, hull, alpha, tol=1e-9)
    other = solve_reduced(case.dual, hull, alpha, tol=1e-9)
    assert ours.status.ok
    assert ours.objective == pytest.approx(other.objective, rel=1e-8)
    np.testing.assert_allclose(
        case.functions(ours.coef).sum(axis=1),
        case.factor_functions(other.coef).sum(axis=1),
        atol=1e-4,
    )
    assert ours.dual_bound <= other.objective * (1 + 1e-12)
    warm = solve_reduced(case.dual, hull, 1.5 * alpha, tol=1e-9).eta
    again = solve_from(case.form, hull, alpha, tol=1e-9, warm_eta=warm)
    assert again.status.ok
    assert again.objective == pytest.approx(ours.objective, rel=1e-8)


def test_a_system_that_rounding_makes_singular_is_reported():
    gram = np.full((4, 4), 1e18)
    target = np.array([1.0, -1.0, 1.0, -1.0])
    form = KernelForm(KernelOperator([DenseGram(-np.eye(4) * 1e3)], 4), np.full(4, 0.25), target)
    assert form.evaluate(np.ones(1), 1e-6) is None
    constant = KernelForm(KernelOperator([DenseGram(gram)], 4), np.full(4, 0.25), target)
    solved = constant.evaluate(np.ones(1), 1.0)
    assert solved is None or solved.loss <= 0.5 * constant.total * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_a_solve_that_no_longer_moves_ends(seed):
    # Beside kernels like these lambda is rounding, and steps are taken that change nothing.
    rng = np.random.default_rng(seed)
    kernels = [1e7 * block @ block.T for block in rng.standard_normal((4, N, 2))]
    kernels += [a * b for a, b in itertools.combinations(kernels, 2)]
    operator = KernelOperator([DenseGram(K) for K in kernels], N)
    weights = 10.0 ** rng.uniform(-3.0, 0.0, N)
    target = rng.standard_normal(N)
    form = KernelForm(operator, weights, target - weights @ target / weights.sum())
    parents = {str(i): [] for i in range(4)}
    pairs = itertools.combinations("0123", 2)
    parents |= {str(4 + i): list(pair) for i, pair in enumerate(pairs)}
    solution = solve_reduced(form, HullMap(list(parents), Dag(parents)), 1e-6, tol=1e-9)
    assert solution.status is Status.STALLED
    assert solution.n_iter < 50
