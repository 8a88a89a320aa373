"""Ridge under constraints: against cvxpy, against leaving rows out, and its own proof."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from oracles.dags import solve
from oracles.twin import LOSSES
from scipy import linalg
from selection.test_ridge import case

from hikernel.graphs import Direction
from hikernel.losses import Cox, Huber, LogLoss, Poisson, SquaredError, SquaredHinge
from hikernel.selection import constrained
from hikernel.selection.constrained import fit_constrained
from hikernel.selection.ridge import fit_ridge

SMOOTH = [SquaredError(), LogLoss(), Poisson(), Huber(), SquaredHinge()]
SCALES = np.array([1.0, 0.3, 0.5, 0.1, 1.0, 1.0])


def constraints(seed=0):
    """Two effects with constraints, in which the fit without them would not agree."""
    rng = np.random.default_rng(seed)
    return [
        Direction(np.array([0, 2]), rng.standard_normal((7, 2)) + np.array([0.0, 1.5])),
        Direction(np.array([3, 4, 5]), np.vstack([-np.eye(3), rng.standard_normal((4, 3))])),
    ]


def twin(features, y, omega, loss, mu, directions):
    """Optimal value and coefficients, by cvxpy."""
    coef, intercept = cp.Variable(features.shape[1]), cp.Variable()
    f = features @ coef + intercept
    value = omega @ LOSSES[type(loss)](loss, y, f) + 0.5 * mu * cp.sum_squares(coef)
    within = [rows @ cp.multiply(SCALES, coef)[columns] >= 0.0 for columns, rows in directions]
    problem = cp.Problem(cp.Minimize(value), within)
    solve(problem)
    return problem.value, coef.value


def objective(fit, features, y, omega, loss):
    f = features @ fit.coef + fit.intercept
    return float(omega @ loss.value(y, f) + 0.5 * fit.mu * fit.coef @ fit.coef)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("loss", SMOOTH, ids=lambda loss: loss.name)
def test_it_is_the_optimum_of_cvxpy(loss, seed):
    features, y, omega = case(loss, size=6, seed=seed)
    directions = constraints(seed)
    fit = fit_constrained(features.copy(), y, omega, loss, SCALES, directions, 1e-3)
    for columns, rows in directions:
        size = np.max(np.abs(SCALES * fit.coef), initial=1.0)
        assert np.min(rows @ (SCALES * fit.coef)[columns]) >= -1e-14 * size
    best, coef = twin(features, y, omega, loss, fit.mu, directions)
    value = objective(fit, features, y, omega, loss)
    assert value == pytest.approx(best, rel=1e-8)
    # cvxpy finds the optimum of Poisson no closer than 1e-8, and so coefficients to 1e-4.
    np.testing.assert_allclose(fit.coef, coef, atol=1e-3 * np.max(np.abs(coef)))
    assert 0.0 <= fit.gap <= 1e-9


@pytest.mark.parametrize("loss", SMOOTH, ids=lambda loss: loss.name)
def test_the_gap_holds_at_any_feasible_point(loss):
    features, y, omega = case(loss, size=6)
    directions = constraints()
    fit = fit_constrained(features.copy(), y, omega, loss, SCALES, directions, 1e-2)
    problem = constrained._Constrained.of(
        features - omega @ features, y, omega, loss, SCALES, directions
    )
    best, _ = twin(features, y, omega, loss, fit.mu, directions)
    for share in (0.0, 0.5, 0.9, 1.0):  # the cone is convex and has its tip at zero
        coef = share * fit.coef
        f = (features - omega @ features) @ coef
        intercept = loss.intercept(y, f, omega)
        value = float(omega @ loss.value(y, f + intercept) + 0.5 * fit.mu * coef @ coef)
        gap = problem.gap(coef, intercept, fit.mu)
        assert gap * value >= value - best - 1e-9


@pytest.mark.parametrize("loss", SMOOTH, ids=lambda loss: loss.name)
@pytest.mark.parametrize("relative", [None, 1e-2, 0.0])
def test_a_fit_that_meets_the_constraints_stays(loss, relative):
    features, y, omega = case(loss, size=6)
    free = fit_ridge(features - omega @ features, y, omega, loss, relative)
    direction = Direction(np.arange(6), np.diag(np.sign(free.coef)))
    fit = fit_constrained(features.copy(), y, omega, loss, SCALES, [direction], relative)
    np.testing.assert_array_equal(fit.coef, free.coef)
    assert (fit.mu, fit.score) == (free.mu, free.score)


def test_leave_one_out_is_exact_with_the_same_constraints_binding():
    features, y, omega = case(SquaredError(), n=40, size=6)
    rows = np.array([[-1.0, 2.0, 0.0], [0.0, 1.0, 1.0], [1.0, 1.0, 1.0]])
    direction = Direction(np.array([0, 2, 5]), rows)
    fit = fit_constrained(features.copy(), y, omega, SquaredError(), SCALES, [direction])
    whole = np.zeros((3, 6))
    whole[:, direction.columns] = rows * SCALES[direction.columns]
    binding = np.abs(whole @ fit.coef) < 1e-12
    assert 0 < binding.sum() < 3
    face = linalg.null_space(whole[binding])
    losses = []
    for i in range(len(y)):
        others = np.arange(len(y)) != i
        design = np.column_stack([features[others] @ face, np.ones(len(y) - 1)])
        penalty = fit.mu * np.diag(np.append(np.ones(face.shape[1]), 0.0))
        left = design.T @ (omega[others, None] * design) + penalty
        beta = np.linalg.solve(left, design.T @ (omega[others] * y[others]))
        losses.append(0.5 * (y[i] - features[i] @ face @ beta[:-1] - beta[-1]) ** 2)
    assert fit.score == pytest.approx(omega @ losses, rel=1e-6)


def test_the_penalty_is_chosen_under_the_constraints():
    """Noise that would need a large penalty: with constraints, it is gone without one."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1.0, 1.0, 60)
    features = np.column_stack([x**j for j in range(1, 9)])
    y = np.where(x > 0.0, 1.0, -1.0) + 0.8 * rng.standard_normal(60)
    omega = np.full(60, 1.0 / 60)
    grid = np.linspace(-1.0, 1.0, 200)
    rows = np.diff(np.column_stack([grid**j for j in range(1, 9)]), axis=0)
    direction = [Direction(np.arange(8), rows)]
    fits = [
        fit_constrained(features.copy(), y, omega, SquaredError(), np.ones(8), direction, relative)
        for relative in (None, *np.geomspace(1e-8, 1.0, 9))
    ]
    assert fits[0].score <= 1.02 * min(fit.score for fit in fits)


def test_an_effect_against_its_direction_is_exactly_zero():
    features, y, omega = case(SquaredError(), size=6)
    free = fit_ridge(features.copy(), y, omega, SquaredError())
    directions = [Direction(np.array([j]), np.array([[-np.sign(free.coef[j])]])) for j in (0, 2)]
    fit = fit_constrained(features.copy(), y, omega, SquaredError(), SCALES, directions)
    assert fit.coef[0] == fit.coef[2] == 0.0
    rest = fit_ridge(features[:, [1, 3, 4, 5]], y, omega, SquaredError())
    np.testing.assert_allclose(fit.coef[[1, 3, 4, 5]], rest.coef, rtol=1e-3)


def test_everything_may_bind():
    features, y, omega = case(SquaredError(), size=6)
    both = [Direction(np.arange(6), np.vstack([np.eye(6), -np.eye(6)]))]
    fit = fit_constrained(features.copy(), y, omega, SquaredError(), SCALES, both)
    np.testing.assert_array_equal(fit.coef, 0.0)
    assert fit.intercept == pytest.approx(omega @ y)
    assert fit.score == pytest.approx(0.5 * omega @ (y - omega @ y) ** 2)
    ranks = Cox().on_rows(
        np.where(np.arange(len(y)) % 3, 1.0, -1.0) * np.arange(1, len(y) + 1), omega
    )
    fit = fit_constrained(features.copy(), ranks.y, omega, ranks, SCALES, both)
    np.testing.assert_array_equal(fit.coef, 0.0)
    assert fit.score == pytest.approx(1.0)  # on the scale of leave-one-out: no gain


def test_many_nearly_equal_constraints_and_more_columns_than_rows():
    rng = np.random.default_rng(0)
    x = rng.uniform(-1.0, 1.0, 30)
    features = np.hstack([np.column_stack([x**j for j in range(1, 7)]), rng.normal(size=(30, 40))])
    y = np.sin(4.0 * x) + 0.1 * rng.standard_normal(30)
    grid = np.linspace(-1.0, 1.0, 3000)
    rows = np.diff(np.column_stack([grid**j for j in range(1, 7)]), axis=0)
    direction = [Direction(np.arange(6), rows)]
    omega = np.full(30, 1.0 / 30)
    for relative in (None, 1e-8, 0.0):
        fit = fit_constrained(
            features.copy(), y, omega, SquaredError(), np.ones(46), direction, relative
        )
        assert np.min(rows @ fit.coef[:6]) >= -1e-14 * np.max(np.abs(fit.coef))


def test_another_solver_takes_over(monkeypatch):
    features, y, omega = case(LogLoss(), size=6)
    args = (y, omega, LogLoss(), SCALES, constraints(), 1e-3)
    expected = fit_constrained(features.copy(), *args)

    def stuck(*args, **kwargs):
        raise RuntimeError("Maximum number of iterations reached.")

    monkeypatch.setattr(constrained, "nnls", stuck)
    np.testing.assert_allclose(
        fit_constrained(features.copy(), *args).coef, expected.coef, atol=1e-9
    )
