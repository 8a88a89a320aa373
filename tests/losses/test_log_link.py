"""The gamma and Tweedie losses: deviances, limits, and a conjugate that is never too small."""

from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np
import pytest
from sklearn.metrics import mean_gamma_deviance, mean_tweedie_deviance

from hikernel import HKLRegressor
from hikernel.losses import Gamma, Poisson, Tweedie

POWERS = [1.01, 1.2, 1.5, 1.8, 1.99]


def exact_conjugate(power, y, b):
    """psi(b) to 50 digits, by bisection on the derivative of the loss as it is defined."""
    with localcontext() as context:
        context.prec = 50
        a, c = Decimal(power) - 1, 2 - Decimal(power)
        y, b = Decimal(float(y)), Decimal(float(b))

        def slope(f):
            return (c * f).exp() - y * (-a * f).exp()

        low, high = Decimal(-1), Decimal(1)
        while slope(low) > b:
            low *= 2
        while slope(high) < b:
            high *= 2
        for _ in range(180):
            middle = (low + high) / 2
            low, high = (middle, high) if slope(middle) < b else (low, middle)
        least = y**c / (a * c)
        return b * low - y * (-a * low).exp() / a - (c * low).exp() / c + least


@pytest.mark.parametrize("power", POWERS)
def test_the_tweedie_conjugate_is_an_upper_bound_and_tight(power):
    rng = np.random.default_rng(0)
    y = np.exp(rng.uniform(-8, 8, 6))
    t = np.sign(rng.standard_normal(6)) * np.exp(rng.uniform(-12, 4, 6))
    b = t * y ** (2 - power)
    found = Tweedie(power).conjugate(y, b)
    # Of psi, b log y is computed as for all losses; the rest has no closed form.
    for i in range(6):
        exact = exact_conjugate(power, y[i], b[i])
        slack = Decimal(float(found[i])) - exact
        size = abs(float(exact)) + abs(b[i] * np.log(y[i])) + abs(b[i])
        assert slack >= 0
        assert float(slack) <= 3e-13 * size / min(power - 1, 2 - power)


@pytest.mark.parametrize("power", POWERS)
def test_the_tweedie_conjugate_is_tight_for_predictions_far_from_y(power):
    y, f = np.array([1e-12, 1e-12, 1e12]), np.array([40.0, 27.0, -40.0])
    loss = Tweedie(power)
    b = loss.gradient(y, f)
    psi = loss.conjugate(y, b)
    size = np.abs(b * f) + loss.value(y, f)
    slack = psi + loss.value(y, f) - b * f  # zero at the derivative, by Fenchel and Young
    assert np.all(np.abs(slack) <= 1e-12 * size)


@pytest.mark.parametrize("power", POWERS)
def test_the_curvature_of_the_scaled_tweedie_loss_has_the_least_value_of_the_proof(power):
    a, c = power - 1, 2 - power
    d = np.linspace(-60, 60, 200_001)
    curvature = Tweedie(power).curvature(np.ones_like(d), d)
    assert np.min(curvature) == pytest.approx((a / c) ** (c - a), rel=1e-4)


@pytest.mark.parametrize("power", POWERS)
def test_conjugates_of_no_claims(power):
    zero = np.zeros(3)
    found = Tweedie(power).conjugate(zero, np.array([-1e-300, 0.0, 2.0]))
    c = 2 - power
    np.testing.assert_allclose(found, [np.inf, 0.0, (2 * np.log(2) - 2) / c], rtol=1e-13)


def test_the_losses_are_half_the_deviance():
    rng = np.random.default_rng(1)
    y, f = rng.gamma(1.0, 2.0, 50), rng.standard_normal(50)
    mean = np.exp(f)
    assert np.mean(Gamma().value(y, f)) == pytest.approx(0.5 * mean_gamma_deviance(y, mean))
    y[::3] = 0.0
    for power in POWERS:
        expected = 0.5 * mean_tweedie_deviance(y, mean, power=power)
        assert np.mean(Tweedie(power).value(y, f)) == pytest.approx(expected, rel=1e-11)


def test_a_small_difference_is_not_lost_to_rounding():
    y = np.array([1e-6, 1.0, 1e6])
    for loss in (Gamma(), Tweedie(1.3), Tweedie(1.9)):
        f = np.log(y) + 1e-7
        curvature = loss.curvature(y, f)
        np.testing.assert_allclose(loss.gradient(y, f), 1e-7 * curvature, rtol=1e-5)
        assert np.all(loss.value(y, np.log(y)) >= 0.0)


@pytest.mark.parametrize("loss", [Poisson(), Gamma(), Tweedie(1.3), Tweedie(1.9)])
def test_the_smallest_losses_have_their_digits(loss):
    # Near f = log y all of them are quadratic, with the conjugate of that.
    y, d = np.array([0.1, 1.0, 20.0]), 1e-9
    f = np.log(y)
    curvature = loss.curvature(y, f)
    f, d = f + d, f + d - f
    np.testing.assert_allclose(loss.value(y, f), 0.5 * curvature * d**2, rtol=1e-5)
    b = curvature * 1e-9
    found = loss.conjugate(y, b) - b * np.log(y)
    np.testing.assert_allclose(found, 0.5 * b**2 / curvature, rtol=1e-3)


@pytest.mark.parametrize("loss", ["poisson", "gamma", "tweedie"])
def test_a_gap_of_tiny_losses_is_that_of_the_squared_error(loss):
    # With y = 1 + d for tiny d, the loss is half the squared error of d.
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (60, 2))
    d = 1e-6 * (X[:, 0] + rng.standard_normal(60))
    model = HKLRegressor(0.01, loss=loss, degree=2, certify="exact").fit(X, 1.0 + d)
    other = HKLRegressor(0.01, degree=2, certify="exact").fit(X, (1.0 + d) - 1.0)
    assert model.certificate_.objective == pytest.approx(other.certificate_.objective, rel=1e-2)
    assert model.certificate_.certified
    assert model.certificate_.gap > 0.0
    assert model.terms_["term"][0] == "x0"


def test_the_ends_of_the_powers_are_poisson_and_gamma():
    y, f = np.array([0.5, 1.0, 3.0]), np.array([0.2, -1.0, 1.0])
    np.testing.assert_allclose(Tweedie(1.01).value(y, f), Poisson().value(y, f), rtol=0.03)
    np.testing.assert_allclose(Tweedie(1.99).value(y, f), Gamma().value(y, f), rtol=0.03)
    with pytest.raises(ValueError, match=r"power 1 is hikernel.losses.Poisson\(\)"):
        Tweedie(1)
    with pytest.raises(ValueError, match=r"power 2 is hikernel.losses.Gamma\(\)"):
        Tweedie(2.0)


@pytest.mark.parametrize("power", [0.0, 1.001, 1.999, 3.0, np.nan, "1.5", None])
def test_other_powers_are_refused(power):
    with pytest.raises(ValueError, match=r"must be from 1.01 to 1.99, got .*power 1 is"):
        Tweedie(power)


@pytest.mark.parametrize(
    ("loss", "y", "sentence"),
    [
        (Gamma(), [1.0, 0.0], 'needs y above zero, .* zero or negative; use loss="tweedie"'),
        (Gamma(), [1.0, 1e200], "from 1e-100 to 1e100"),
        (Gamma(), [1.0, 1e-200], "from 1e-100 to 1e100"),
        (Tweedie(), [1.0, -1.0], "zero or positive, but some values are negative"),
        (Tweedie(), [1.0, 1e16], "takes y up to 1e"),
        (Tweedie(), [1.0, 1e-200], "zero or from 1e-100 on, .* set them to zero"),
        (Tweedie(), [0.0, 0.0], "needs some y above zero"),
    ],
)
def test_targets_outside_the_domain(loss, y, sentence):
    with pytest.raises(ValueError, match=sentence):
        loss.check_target(np.array(y))
