"""What every loss must be: derivatives, conjugate, dual point, best constant, finite anywhere."""

from __future__ import annotations

import numpy as np
import pytest
from losses.cases import CASES, JOINT, every_case, some_cases
from losses.smoothing import smoothed_value
from scipy.optimize import minimize, minimize_scalar

from hikernel.losses import CLASSIFICATION, REGRESSION, SURVIVAL, Multinomial, make_loss
from hikernel.losses.dual_curve import _MULTIPLES, SampledCurve

AMOUNT = 0.1


def inner(b, f):
    """<b, f> of each row."""
    return b * f if f.ndim == 1 else np.sum(b * f, axis=1)


def central_difference(function, f, h):
    """The derivative of a function of rows in each output."""
    if f.ndim == 1:
        return (function(f + h) - function(f - h)) / (2 * h)
    units = h * np.eye(f.shape[1])
    return np.stack([(function(f + e) - function(f - e)) / (2 * h) for e in units], axis=-1)


def row(case, y, i):
    """One row of a target, as a function of a vector of outputs gives its loss."""
    shape = case.shape(1)
    return lambda f: case.loss.value(y[i : i + 1], np.reshape(f, shape))[0]


def test_every_public_loss_has_a_case():
    tested = {type(case.loss) for case in (*CASES.values(), *JOINT.values())}
    assert tested == {
        *(*REGRESSION.values(), *CLASSIFICATION.values(), *SURVIVAL.values()),
        Multinomial,
    }


@every_case
def test_the_gradient_is_the_numerical_derivative(case):
    y, f, _ = case.sample()
    s = case.smoothing(AMOUNT)
    numeric = central_difference(lambda g: smoothed_value(case.loss, y, g, s), f, 1e-5)
    np.testing.assert_allclose(case.loss.gradient(y, f, s), numeric, atol=1e-7)


@every_case
def test_the_curvature_is_the_numerical_second_derivative_or_no_smaller(case):
    y, f, _ = case.sample()
    s, h = case.smoothing(AMOUNT), 1e-6
    curvature = case.loss.curvature(y, f, s)
    gradient = np.stack(
        [
            np.reshape(case.loss.gradient(y, f + e, s) - case.loss.gradient(y, f - e, s), (40, -1))
            for e in h * np.eye(case.outputs or 1)
        ],
        axis=-1,
    )
    hessian = gradient / (2 * h)
    if case.name == "multinomial":
        larger = np.stack([np.diag(row) for row in curvature]) - hessian
        assert np.min(np.linalg.eigvalsh(larger)) >= -1e-8
        # Its own diagonal would not do, and twice that is what is promised.
        own = np.stack([np.diag(np.diag(matrix)) for matrix in hessian])
        assert np.min(np.linalg.eigvalsh(own - hessian)) < -1e-2
        np.testing.assert_allclose(
            curvature, 2.0 * np.diagonal(hessian, axis1=1, axis2=2), atol=1e-8
        )
        return
    diagonal = np.diagonal(hessian, axis1=1, axis2=2).reshape(curvature.shape)
    np.testing.assert_allclose(curvature, diagonal, atol=1e-5)
    off = hessian - np.stack([np.diag(np.diag(matrix)) for matrix in hessian])
    np.testing.assert_allclose(off, 0.0, atol=1e-9)


@every_case
@pytest.mark.parametrize("amount", [1.0, 0.1, 1e-6])
def test_the_smoothed_loss_lies_below_and_not_far(case, amount):
    y, f, _ = case.sample(spread=3.0)
    smoothed, value = smoothed_value(case.loss, y, f, amount), case.loss.value(y, f)
    if case.loss.smooth:
        np.testing.assert_array_equal(smoothed, value)
        return
    assert np.all(smoothed < value)
    assert np.all(value <= smoothed + case.cost(amount) * (1.4 + np.log1p(20.0 / amount)))


@every_case
def test_the_smallest_loss_is_zero(case):
    y, f, _ = case.sample(spread=3.0)
    assert np.all(case.loss.value(y, f) >= -1e-15)
    # psi(0) = -min over f of the loss.
    np.testing.assert_array_equal(case.loss.conjugate(y, np.zeros_like(f)), 0.0)


@every_case
def test_the_conjugate_is_the_maximum(case):
    y, f, _ = case.sample(1, n=12)
    b = case.loss.gradient(y, f, case.smoothing(0.3))
    conjugate = case.loss.conjugate(y, b)
    for i in range(len(y)):
        loss = row(case, y, i)
        found = minimize(
            lambda g, i=i, loss=loss: loss(g) - np.sum(b[i] * g),
            np.zeros(case.outputs or 1),
            method="Powell",
            options={"xtol": 1e-9, "ftol": 1e-14, "maxiter": 10_000},
        )
        assert conjugate[i] == pytest.approx(-found.fun, abs=2e-7)


@every_case
def test_outside_its_domain_the_conjugate_is_infinite_because_nothing_bounds_it(case):
    rng = np.random.default_rng(2)
    y, _, _ = case.sample(2, n=60)
    b = 2.0 * rng.standard_normal(y.shape)
    conjugate = case.loss.conjugate(y, b)
    outside = np.isinf(conjugate)
    assert np.any(outside) == case.bounded
    units = np.eye(case.outputs or 1)
    directions = [sign * u for u in (*units, np.ones(case.outputs or 1)) for sign in (1.0, -1.0)]
    for i in np.flatnonzero(outside):
        loss = row(case, y, i)
        steps = [[np.sum(b[i] * t * d) - loss(t * d) for t in (1e3, 1e5)] for d in directions]
        assert any(far > near + 1.0 for near, far in steps), (y[i], b[i])


@every_case
def test_fenchel_and_young(case):
    y, f, _ = case.sample(3)
    for seed in range(20):
        _, g, _ = case.sample(seed)
        b = case.loss.gradient(y, g, case.smoothing(0.5))
        assert np.all(case.loss.value(y, f) + case.loss.conjugate(y, b) >= inner(b, f) - 1e-12)


@every_case
@pytest.mark.parametrize("amount", [1.0, 1e-2, 1e-6])
def test_fenchel_and_young_are_equal_at_the_gradient(case, amount):
    y, f, _ = case.sample(3)
    s = case.smoothing(amount)
    b = case.loss.gradient(y, f, s)
    excess = case.loss.value(y, f) + case.loss.conjugate(y, b) - inner(b, f)
    assert np.all(excess >= -1e-12)
    assert np.all(excess <= case.cost(s) + 1e-12)


@every_case
@pytest.mark.parametrize("start", [0.0, -4.0])
def test_the_intercept_is_the_best_constant(case, start):
    y, f, weights = case.sample(4)
    s = case.smoothing(1e-10)

    def mean_loss(b):
        return float(weights @ case.loss.value(y, f + (b[0] if case.outputs is None else b)))

    b = case.loss.intercept(y, f, weights, s, start)
    assert b.shape == case.shape(1)[1:]
    found = min(
        minimize(
            mean_loss,
            np.full(case.outputs or 1, first),
            method="Powell",
            options={"xtol": 1e-10, "ftol": 1e-15},
        ).fun
        for first in (-1.0, 0.0, 1.0)
    )
    assert mean_loss(np.atleast_1d(b)) <= found + 1e-9
    gradient = weights @ case.loss.gradient(y, f + b, s)
    np.testing.assert_allclose(gradient, 0.0, atol=1e-12 if case.loss.smooth else 1e-5)


@every_case
@pytest.mark.parametrize("start", [0.0, -4.0, 3.0])
def test_the_intercept_takes_few_steps(case, start, monkeypatch):
    """Newton's method ends where rounding begins, and does not bisect down to the last bit."""
    if not case.loss.smooth or case.loss.joint:
        pytest.skip("bisection is what finds a kink")
    y, f, weights = case.sample(4, n=200)
    asked = []
    gradient = type(case.loss).gradient

    def counted(self, *args):
        asked.append(args)
        return gradient(self, *args)

    monkeypatch.setattr(type(case.loss), "gradient", counted)
    case.loss.intercept(y, f, weights, 0.0, start)
    assert len(asked) <= 20 * (case.outputs or 1)


@every_case
@pytest.mark.parametrize("shift", [0.0, 1e-9, 0.3, -5.0, 40.0])
def test_residuals_are_dual_points_even_where_the_intercept_is_off(case, shift):
    y, f, weights = case.sample(5)
    s = case.smoothing(1e-3)
    f = (
        f
        + case.loss.intercept(y, f, weights, s)
        + shift * np.arange(1, 1 + (case.outputs or 1))[0 if case.outputs is None else slice(None)]
    )
    r = case.loss.residuals(y, f, weights, s)
    scale = max(1.0, float(np.max(np.abs(r))))
    np.testing.assert_allclose(weights @ r, 0.0, atol=1e-14 * scale)
    assert np.all(np.isfinite(case.loss.conjugate(y, -r)))
    for multiple in (0.0, 1e-3, 0.5, 0.999):
        assert np.all(np.isfinite(case.loss.conjugate(y, -multiple * r)))


@every_case
def test_at_the_best_intercept_the_residuals_are_minus_the_gradient(case):
    y, f, weights = case.sample(6)
    s = case.smoothing(1e-3)
    f = f + case.loss.intercept(y, f, weights, s)
    r = case.loss.residuals(y, f, weights, s)
    np.testing.assert_allclose(r, -case.loss.gradient(y, f, s), atol=1e-11)


def best_multiple(case, y, r, weights, penalty):
    """max over t of -sum weights psi(-t r) - t^2 penalty / 2, by brute force."""

    def height(t):
        return -float(weights @ case.loss.conjugate(y, -t * r)) - 0.5 * t**2 * penalty

    inside, outside = 1.0, 8.0  # the largest multiple in the domain, by bisection
    for _ in range(60):
        middle = 0.5 * (inside + outside)
        inside, outside = (middle, outside) if np.isfinite(height(middle)) else (inside, middle)
    found = minimize_scalar(
        lambda t: -height(t), bounds=(0.0, inside), method="bounded", options={"xatol": 1e-9}
    )
    return max(0.0, -found.fun, height(inside))


@every_case
def test_the_dual_curve_never_exceeds_the_best_multiple_and_knows_its_inverse(case):
    y, f, weights = case.sample(7, spread=0.3)
    s = case.smoothing(1e-3)
    f = f + case.loss.intercept(y, f, weights, s)
    r = case.loss.residuals(y, f, weights, s)
    curve = case.loss.dual_curve(y, r, weights)
    at_one = -float(weights @ case.loss.conjugate(y, -r))
    for penalty in (0.0, 0.01, 0.1, 1.0, 10.0):
        value = curve.value(penalty)
        assert value <= best_multiple(case, y, r, weights, penalty) + 1e-12
        assert value >= max(0.0, at_one - 0.5 * penalty)
    top = curve.value(0.0)
    assert top > 0.0
    for share in (0.05, 0.5, 0.95):
        limit = curve.penalty_for(share * top)
        assert curve.value(limit) == pytest.approx(share * top, rel=1e-9)
        assert curve.value(1.001 * limit) < share * top
    assert curve.penalty_for(0.0) == np.inf
    assert curve.value(np.inf) == 0.0


@every_case
@pytest.mark.parametrize("size", [1e3, 1e6])
def test_extreme_predictions_are_finite(case, size):
    y, f, weights = case.sample(8)
    s = case.smoothing(1e-6)
    for g in (np.full_like(f, size), np.full_like(f, -size), size * f):
        for result in (
            case.loss.value(y, g),
            smoothed_value(case.loss, y, g, s),
            case.loss.gradient(y, g, s),
            case.loss.curvature(y, g, s),
            case.loss.residuals(y, g, weights, s),
        ):
            assert np.all(np.isfinite(result))
        assert np.all(case.loss.curvature(y, g, s) >= 0.0)


@every_case
def test_a_prediction_that_is_far_off_by_a_constant_is_brought_back(case):
    y, f, weights = case.sample(9)
    s = case.smoothing(1e-3)
    near = case.loss.intercept(y, f, weights, s)
    far = case.loss.intercept(y, f + 1e3, weights, s)
    shift = 0.0 if case.name == "multinomial" else 1e3  # a common shift is no change there
    np.testing.assert_allclose(far, near - shift, atol=1e-8)


@some_cases(lambda case: case.loss.degree > 0)
def test_units_of_the_target_follow_the_degree(case):
    y, f, _ = case.sample(10)
    loss = case.loss
    if case.in_units is not None:
        loss = type(loss)(3.0 * getattr(loss, case.in_units))
    expected = 3.0**case.loss.degree * case.loss.value(y, f)
    np.testing.assert_allclose(loss.value(3.0 * y, 3.0 * f), expected, rtol=1e-12)


@some_cases(lambda case: case.name != "multinomial")  # which log_loss becomes
def test_its_name_makes_it(case):
    choices = REGRESSION | CLASSIFICATION
    assert type(make_loss(case.loss.name, choices)) is type(case.loss)
    assert make_loss(case.loss, choices) is case.loss


@every_case
def test_few_samples_of_the_dual_curve_find_the_best_of_all(case):
    y, f, weights = case.sample(9, spread=0.3)
    s = case.smoothing(1e-3)
    f = f + case.loss.intercept(y, f, weights, s)
    r = case.loss.residuals(y, f, weights, s)
    curve = case.loss.dual_curve(y, r, weights)
    if not isinstance(curve, SampledCurve):
        pytest.skip("the best multiple has a closed form")
    every = [(float(m), curve.curve(float(m))) for m in _MULTIPLES]
    every = [(m, height) for m, height in every if np.isfinite(height)]
    for penalty in (0.0, 0.01, 0.1, 1.0, 10.0):
        best = max(height - 0.5 * penalty * m**2 for m, height in every)
        assert curve.value(penalty) == pytest.approx(max(0.0, best), rel=1e-12)
    for share in (0.05, 0.5, 0.95):
        wanted = share * curve.value(0.0)
        best = max(2.0 * (height - wanted) / m**2 for m, height in every)
        assert curve.penalty_for(wanted) == pytest.approx(best, rel=1e-12)
    near = case.loss.dual_curve(y, r, weights)
    near.penalty_for(near.value(0.01) * (1.0 - 1e-3))
    assert len(near.heights) < len(every)
