"""Cox's loss: written out, derivatives, conjugate, and what makes it a joint loss."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from losses.cases import JOINT
from scipy.optimize import minimize

from hikernel.losses import Cox
from hikernel.losses.breslow import BreslowBaseline
from hikernel.losses.cox import CoxOnRows

CASE = JOINT["cox"]


def sample(seed=0, n=16, spread=1.5):
    y, f, weights = CASE.sample(seed, n, spread)
    return CoxOnRows.of(y, weights), y, f, weights


def naive_mean(y, f, weights):
    """The mean loss from its definition, row by row."""
    total = 0.0
    for i in np.flatnonzero(y > 0.0):
        risk = np.sum((weights * np.exp(f))[np.abs(y) >= y[i]])
        total += weights[i] * (np.log(risk / np.sum(weights[y == y[i]])) - f[i])
    return total


def numeric(function, x, h=1e-6):
    return np.array([(function(x + e) - function(x - e)) / (2 * h) for e in h * np.eye(len(x))])


@pytest.mark.parametrize("seed", range(5))
def test_value_gradient_and_curvature_are_those_of_the_definition(seed):
    loss, y, f, weights = sample(seed)
    assert weights @ loss.value(y, f) == pytest.approx(naive_mean(y, f, weights), rel=1e-13)
    gradient = numeric(lambda g: naive_mean(y, g, weights), f)
    np.testing.assert_allclose(weights * loss.gradient(y, f), gradient, atol=1e-8)
    hessian = numeric(lambda g: weights * loss.gradient(y, g), f)
    bound = np.diag(weights * loss.curvature(y, f))
    assert np.min(np.linalg.eigvalsh(bound - hessian)) >= -1e-9
    coupling = loss.coupling(y, f, np.eye(len(y)))
    np.testing.assert_allclose(bound - coupling.T @ coupling, hessian, atol=1e-9)


def test_without_rows_of_its_own_all_weights_are_equal():
    _, y, f, _ = sample(n=12)
    equal = np.full(12, 1 / 12)
    bound, free = Cox().on_rows(y, equal), Cox()
    assert bound.for_any_rows() == free
    for name in ("value", "gradient", "curvature"):
        np.testing.assert_array_equal(getattr(free, name)(y, f), getattr(bound, name)(y, f))
    b = 0.7 * free.gradient(y, f)
    np.testing.assert_array_equal(free.conjugate(y, b), bound.conjugate(y, b))


def test_integer_weights_are_repeated_rows():
    _, y, f, _ = sample(1)
    counts = np.random.default_rng(0).integers(1, 4, len(y))
    once = CoxOnRows.of(y, counts.astype(float))
    often = CoxOnRows.of(np.repeat(y, counts), np.ones(counts.sum()))
    assert often.mean(np.repeat(f, counts)) == pytest.approx(once.mean(f), rel=1e-13)
    np.testing.assert_allclose(
        often.gradient(often.y, np.repeat(f, counts)), np.repeat(once.gradient(y, f), counts)
    )
    b = 0.5 * once.gradient(y, f)
    repeated = np.mean(often.conjugate(often.y, np.repeat(b, counts)))
    assert repeated == pytest.approx(once.weights @ once.conjugate(y, b), rel=1e-12)


def test_the_infimum_is_zero_and_a_shift_changes_nothing():
    loss, y, f, weights = sample(2)
    for spread in (1.0, 30.0):
        assert weights @ loss.value(y, spread * f) >= 0.0
    # Earlier events have larger risk scores, and censored rows the smallest.
    ordered = np.where(y > 0.0, -50.0 * np.abs(y), -5000.0)
    assert 0.0 <= weights @ loss.value(y, ordered) < 1e-12
    np.testing.assert_array_equal(loss.conjugate(y, np.zeros_like(f)), 0.0)
    assert loss.mean(f + 7.0) == pytest.approx(loss.mean(f), rel=1e-13)
    assert weights @ loss.gradient(y, f) == pytest.approx(0.0, abs=1e-15)
    assert float(weights @ (f + loss.intercept(y, f, weights))) == pytest.approx(0.0, abs=1e-15)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("multiple", [0.2, 0.8, 1.0, 1.05])
def test_the_conjugate_is_the_maximum(seed, multiple):
    loss, y, f, weights = sample(seed, n=10, spread=0.7)
    b = multiple * loss.gradient(y, f)
    conjugate = float(weights @ loss.conjugate(y, b))
    x = cp.Variable(len(y))
    rows = [
        weights[i]
        * (cp.log_sum_exp(x[risk] + np.log(weights[risk] / np.sum(weights[y == y[i]]))) - x[i])
        for i in np.flatnonzero(y > 0.0)
        for risk in [np.flatnonzero(np.abs(y) >= y[i])]
    ]
    problem = cp.Problem(cp.Maximize((weights * b) @ x - sum(rows)))
    problem.solve(solver=cp.CLARABEL)
    assert conjugate == pytest.approx(problem.value, abs=2e-8)


def test_fenchel_and_young_are_equal_at_the_gradient_and_not_below_elsewhere():
    loss, y, f, weights = sample(3, n=40)
    b = loss.gradient(y, f)
    at = float(weights @ (loss.value(y, f) + loss.conjugate(y, b) - b * f))
    assert at == pytest.approx(0.0, abs=1e-14)
    for seed in range(20):
        g = sample(seed, n=40)[2]
        excess = weights @ (loss.value(y, g) + loss.conjugate(y, b) - b * g)
        assert excess >= -1e-14


def test_outside_its_domain_the_conjugate_is_infinite():
    y = np.array([-1.0, 2.0, -3.0, 4.0, -5.0])
    loss = CoxOnRows.of(y, np.ones(5))
    inside = np.array([0.0, -0.5, 0.2, -0.1, 0.4])
    assert np.all(np.isfinite(loss.conjugate(y, inside)))
    for wrong in (
        np.array([0.1, -0.6, 0.2, -0.1, 0.4]),  # a row that was never at risk
        np.array([0.0, 0.2, -0.0, -0.4, 0.2]),  # more than the events before can give
        np.array([0.0, -1.5, 0.5, 0.0, 1.0]),  # less than no event
        np.array([0.0, -0.5, 0.2, -0.1, 0.5]),  # does not sum to zero
    ):
        assert np.all(np.isinf(loss.conjugate(y, wrong)))


def test_residuals_are_dual_points_and_multiples_stay_inside():
    loss, y, f, weights = sample(4, n=200, spread=4.0)
    r = loss.residuals(y, f, weights)
    assert weights @ r == pytest.approx(0.0, abs=1e-15)
    for multiple in (0.0, 1e-3, 0.5, 1.0):
        assert np.all(np.isfinite(loss.conjugate(y, -multiple * r)))
    curve = loss.dual_curve(y, r, weights)
    assert curve.value(0.0) > 0.0
    # The value of any multiple is a bound: the loss itself is never below it.
    for g in (f, np.zeros_like(f), -f):
        fit = float((weights * r) @ g)
        assert loss.mean(g) >= -float(weights @ loss.conjugate(y, -r)) - fit - 1e-13


@pytest.mark.parametrize("size", [1e3, 1e6])
def test_extreme_predictions_are_finite(size):
    loss, y, f, weights = sample(5, n=40)
    for g in (np.full_like(f, size), np.full_like(f, -size), size * f):
        for result in (
            loss.value(y, g),
            loss.gradient(y, g),
            loss.curvature(y, g),
            loss.residuals(y, g, weights),
            loss.coupling(y, g, f[:, None]),
            *loss.influence(y, g, f[:, None]),
        ):
            assert np.all(np.isfinite(result))


def test_the_influence_of_a_row_is_the_derivative_in_its_weight():
    _, y, f, weights = sample(6)
    X = np.random.default_rng(0).standard_normal((len(y), 3))

    def gradient(w):
        return w.sum() * (X * CoxOnRows.of(y, w).gradient(y, f)[:, None]).T @ (w / w.sum())

    pulls, around = CoxOnRows.of(y, weights).influence(y, f, X)
    np.testing.assert_allclose(pulls, numeric(gradient, weights), atol=1e-8)
    # A constant has no influence, and nothing around which it varies.
    pulls, around = CoxOnRows.of(y, weights).influence(y, f, np.ones((len(y), 1)))
    np.testing.assert_allclose(pulls, 0.0, atol=1e-13)
    np.testing.assert_allclose(around[np.abs(y) >= np.min(y[y > 0.0])], 0.0, atol=1e-13)


def test_a_subset_has_the_loss_of_its_rows():
    loss, y, f, weights = sample(7, n=30)
    rows = np.random.default_rng(0).permutation(30)[:17]
    part = loss.subset(rows)
    expected = naive_mean(y[rows], f[rows], weights[rows] / weights[rows].sum())
    assert part.mean(f[rows]) == pytest.approx(expected, rel=1e-12)
    assert part.weights.sum() == pytest.approx(1.0)


def test_the_held_out_error_is_that_of_verweij_and_van_houwelingen():
    loss, y, f, weights = sample(8, n=30)
    test = np.arange(4, 12)
    rest = np.setdiff1d(np.arange(30), test)

    share = weights[rest].sum()

    def of_test_rows(g):
        others = share * naive_mean(y[rest], g[rest], weights[rest] / share)
        return naive_mean(y, g, weights) - others

    gain = of_test_rows(np.zeros(30)) - of_test_rows(f)
    events = weights[test].sum() * weights[y > 0.0].sum()
    assert loss.held_out_error(f, test) == pytest.approx(1.0 - gain / events, rel=1e-11)
    assert loss.held_out_error(np.full(30, 3.0), test) == pytest.approx(1.0, rel=1e-12)
    # All rows at once: the error of the loss itself.
    assert loss.held_out_error(f, np.arange(30)) == pytest.approx(loss.error(loss.mean(f)))
    assert loss.explained(loss.error(loss.null), 1.0) == pytest.approx(0.0, abs=1e-14)


@pytest.mark.parametrize("n", [3, 120, 1000])
def test_events_of_all_rows_at_one_time_tell_nothing(n):
    rng = np.random.default_rng(n)
    weights = rng.uniform(0.1, 1.0, n)
    loss = CoxOnRows.of(np.ones(n), weights / np.sum(weights))
    assert loss.null == 0.0
    assert np.all(loss.value(loss.y, np.full(n, 0.3)) == 0.0)
    f = rng.standard_normal(n)
    assert loss.mean(f) == pytest.approx(naive_mean(loss.y, f, loss.weights), rel=1e-13)
    # A row that is censored at that time is at risk, and has no event.
    assert CoxOnRows.of(np.append(np.ones(n), -1.0), np.ones(n + 1)).alone is None


def test_rows_without_an_event_have_no_loss_and_are_refused_as_a_target():
    y = -np.arange(1.0, 5.0)
    loss, f = CoxOnRows.of(y, np.ones(4)), np.arange(4.0)
    np.testing.assert_array_equal(loss.value(y, f), 0.0)
    np.testing.assert_array_equal(loss.gradient(y, f), 0.0)
    with pytest.raises(ValueError, match="no event among the rows"):
        Cox().check_target(y)


def test_the_baseline_is_written_out_and_its_survival_functions_fall():
    loss, y, f, weights = sample(9, n=20)
    times = 10.0 * np.abs(y)
    baseline = BreslowBaseline.of(loss, times, f)
    total, at = 0.0, np.unique(times[y > 0.0])
    np.testing.assert_array_equal(baseline.times, at)
    for time, hazard in zip(at, baseline.hazards, strict=True):
        events = np.sum(weights[(times == time) & (y > 0.0)])
        total += events / np.sum((weights * np.exp(f))[times >= time])
        assert hazard == pytest.approx(total, rel=1e-12)
    steps = baseline.cumulative(np.array([0.0, 1.0]), np.array([0.0, at[0], at[0] + 1e-9, at[-1]]))
    assert steps[0, 0] == 0.0
    assert steps[0, 1] == steps[0, 2] == pytest.approx(baseline.hazards[0])
    np.testing.assert_allclose(steps[1], np.e * steps[0])
    with pytest.raises(ValueError, match="baseline hazard overflows"):
        BreslowBaseline.of(loss, times, -1e4 * np.abs(y))


def test_the_minimum_over_one_column_is_found_by_its_derivatives():
    loss, y, f, weights = sample(10, n=60)
    found = minimize(
        lambda b: loss.mean(b[0] * f),
        np.zeros(1),
        jac=lambda b: np.array([(weights * loss.gradient(y, b[0] * f)) @ f]),
        tol=1e-12,
    )
    assert abs((weights * loss.gradient(y, found.x[0] * f)) @ f) < 1e-7
