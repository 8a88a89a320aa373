"""Mehler's expansion: the factor that the paper forgot, the remainder, far points."""

import numpy as np
import pytest
from bases import oracles
from bases.cases import level_kernels

from hikernel.bases import Gaussian, LowRankWarning
from hikernel.bases.mehler import MehlerSeries

POINTS = np.linspace(-2.5, 2.5, 21)


@pytest.fixture
def x():
    return np.random.default_rng(11).normal(size=80)


@pytest.mark.parametrize(("b", "s"), [(0.5, 1.0), (2.0, 1.0), (0.1, 3.0)])
def test_slip_1_the_expansion_needs_the_factor_the_paper_forgot(b, s):
    exact = oracles.gaussian(POINTS, POINTS, b)
    r = MehlerSeries(b, s).r

    def total(factor):
        return sum(oracles.mehler_term(POINTS, POINTS, j, b, s, factor) for j in range(120))

    np.testing.assert_allclose(total(True), exact, atol=1e-11)
    # Without it the sum, and so a remainder by differencing, is wrong by that very factor.
    np.testing.assert_allclose(total(False), exact / np.sqrt(1 - r**2), atol=1e-11)
    assert np.abs(total(False) - exact).max() > 0.01


@pytest.mark.parametrize(("b", "s"), [(0.5, 1.0), (1e-6, 1.0), (50.0, 0.3)])
def test_identities_of_the_series_parameters(b, s):
    series = MehlerSeries(b, s)
    assert series.c == pytest.approx(np.sqrt(series.a**2 + 2 * series.a * b), rel=1e-14)
    assert series.r * (series.a + series.c) == pytest.approx(series.c - series.a, rel=1e-8)
    assert series.r == pytest.approx(b / (series.a + b + series.c), rel=1e-14)


def test_remainder_equals_the_difference_where_that_does_not_cancel(x):
    fitted = Gaussian(degree=3).fit(x)
    z = oracles.standardise(x, np.ones(x.size), x)
    difference = oracles.gaussian(z, z, 0.5)
    for j in range(3):
        difference = difference - oracles.mehler_term(z, z, j, 0.5, 1.0)
    np.testing.assert_allclose(level_kernels(fitted, x)[-1], difference, atol=1e-9)


def test_remainder_keeps_its_digits_where_a_difference_cancels(x):
    b, q = 1e-3, 6
    remainder = level_kernels(Gaussian(degree=q, b=b).fit(x), x)[-1]
    z = oracles.standardise(x, np.ones(x.size), x)
    exact = sum(oracles.mehler_term(z, z, j, b, 1.0) for j in range(q, 40))
    difference = oracles.gaussian(z, z, b)
    for j in range(q):
        difference = difference - oracles.mehler_term(z, z, j, b, 1.0)
    assert np.abs(exact).max() < 1e-11
    np.testing.assert_allclose(remainder, exact, rtol=0, atol=1e-9 * np.abs(exact).max())
    assert np.abs(difference - exact).max() > 1e-7 * np.abs(exact).max()


@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize("degree", [1, 4, 8])
def test_levels_sum_to_the_whole_kernel(degree, constant, x):
    fitted = Gaussian(degree=degree, b=0.8, constant_level=constant).fit(x)
    z = oracles.standardise(x, np.ones(x.size), x)
    total = sum(level_kernels(fitted, x)[constant:])
    np.testing.assert_allclose(total, oracles.gaussian(z, z, 0.8), atol=1e-9)


@pytest.mark.parametrize("tol", [1e-2, 1e-5, 1e-9])
def test_the_remainder_keeps_to_its_tolerance_with_the_fewest_columns(tol, x):
    # Weights over six orders of magnitude: unweighted directions would not do.
    w = 10.0 ** np.random.default_rng(13).uniform(-6.0, 0.0, size=x.size)
    w /= w.sum()
    fitted = Gaussian(degree=2, tol=tol).fit(x, w)
    z = oracles.standardise(x, w, x)
    root = np.sqrt(w)
    exact = root[:, None] * oracles.mehler_levels(z, z, 2, 0.5, 1.0, False, True)[-1] * root
    neglected = 1.0 - w @ np.diag(level_kernels(fitted, x)[-1]) / np.trace(exact)
    assert -1e-12 < neglected <= tol
    eigenvalues = np.linalg.eigvalsh(exact)[::-1]
    fewer = fitted.widths[-1] - 1
    assert eigenvalues[fewer:].sum() > 0.9 * tol * eigenvalues.sum()


@pytest.mark.parametrize("b", [0.05, 0.5, 5.0])
@pytest.mark.parametrize("largest", [0.0, 2.0, 12.0])
def test_terms_needed_bounds_the_tail_and_is_not_wasteful(b, largest):
    series = MehlerSeries(b, 1.0)
    log_target = np.log(1e-10)
    needed = series.terms_needed(largest, log_target)
    squares = series.terms(np.linspace(0.0, largest, 50), needed + 800) ** 2
    assert squares[needed:].sum(axis=0).max() <= 1e-10
    if needed > 20:
        assert squares[int(0.7 * needed) :].sum(axis=0).max() > 1e-10
    assert series.radius(needed, log_target) >= largest
    assert series.radius(needed - 1, log_target) < max(largest, 1e-300)


def test_values_up_to_thirty_deviations_are_resolved():
    x = np.append(np.random.default_rng(12).integers(-3, 4, size=900), 1e4)
    fitted = Gaussian(degree=4).fit(x)
    z = fitted.scaler.transform(x)
    assert z.max() == pytest.approx(30.0, rel=1e-3)
    total = sum(level_kernels(fitted, x))
    np.testing.assert_allclose(total, oracles.gaussian(z, z, 0.5), atol=1e-9)


def test_values_beyond_the_series_warn_and_fade():
    x = np.append(np.random.default_rng(12).integers(-3, 4, size=10_000), 1e6)
    with pytest.warns(LowRankWarning, match=r"100 standard deviations.*logarithms or ranks"):
        fitted = Gaussian(degree=4).fit(x)
    levels = np.hstack(fitted.transform([x[0], 1e6]))
    assert levels[0] @ levels[0] == pytest.approx(1.0, abs=1e-6)
    assert levels[1] @ levels[1] == pytest.approx(0.0, abs=1e-6)


def test_a_remainder_below_floating_point_is_left_out(x):
    fitted = Gaussian(degree=60, b=1e-6).fit(x)
    assert fitted.widths == (1,) * 60
    assert len(fitted.transform(x)) == 60


@pytest.mark.parametrize("b", [1e3, 1e12, 1e300])
def test_b_too_large_for_a_series_is_refused_when_made(b):
    with pytest.raises(ValueError, match=r"too large.*Decrease b or s"):
        Gaussian(b=b)
    with pytest.raises(ValueError, match=r"too large.*Decrease b or s"):
        Gaussian(b=1.0, s=b)


def test_a_large_b_is_fine_without_remainder(x):
    levels = Gaussian(degree=3, b=1e3, remainder=False).fit(x).transform(x)
    z = oracles.standardise(x, np.ones(x.size), x)
    expected = oracles.mehler_term(z, z, 3, 1e3, 1.0)
    np.testing.assert_allclose(levels[3] @ levels[3].T, expected, atol=1e-10)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"b": 0.0}, "b .*positive"),
        ({"b": np.inf}, "b .*positive"),
        ({"b": "0.5"}, "b .*positive"),
        ({"s": -1.0}, "s .*positive"),
        ({"b": 1e-200}, "so small"),
        ({"constant_level": 1}, "constant_level must be True or False"),
        ({"remainder": None}, "remainder must be True or False"),
        ({"tol": 0.0}, "tol .*between 0 and 1"),
        ({"tol": 1.0}, "tol .*between 0 and 1"),
        ({"degree": True}, "degree must be an integer"),
    ],
)
def test_hyperparameters_are_checked(arguments, message):
    with pytest.raises(ValueError, match=message):
        Gaussian(**arguments)
