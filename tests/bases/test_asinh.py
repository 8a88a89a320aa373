"""Polynomials in asinh: linear about the median, logarithmic in the tails."""

import numpy as np
import pytest

from hikernel.bases import AsinhPolynomial, OrthonormalPolynomial


@pytest.fixture
def tail():
    return np.random.default_rng(0).lognormal(sigma=2.0, size=1001)


def bent(fitted, x):
    """t(x) in units of ``unit``, before it is standardised."""
    scaler = fitted.polynomial.scaler
    return scaler.center + scaler.scale * fitted.argument(x)


def test_the_median_and_the_mean_absolute_deviation_are_those_of_the_column(tail):
    fitted = AsinhPolynomial().fit(tail)
    assert fitted.median == pytest.approx(np.median(tail), rel=1e-12)
    deviation = np.mean(np.abs(tail - np.median(tail)))
    assert fitted.unit == pytest.approx(np.sqrt(np.pi / 2) * deviation, rel=1e-12)


def test_the_unit_is_the_standard_deviation_of_normal_data():
    x = 7.0 + 3.0 * np.random.default_rng(1).normal(size=100_000)
    assert AsinhPolynomial().fit(x).unit == pytest.approx(3.0, rel=0.02)


def test_the_argument_is_x_about_the_median_and_a_logarithm_far_from_it(tail):
    fitted = AsinhPolynomial().fit(tail)
    u = np.array([-0.1, -0.01, 0.0, 0.01, 0.1])
    np.testing.assert_allclose(bent(fitted, fitted.median + u * fitted.unit), u, atol=0.1**3 / 6)
    high = (tail.max() - fitted.median) / fitted.unit
    assert high > 50.0
    for v in (high / 4.0, high):
        logarithm = bent(fitted, [fitted.median + v * fitted.unit])[0]
        assert logarithm == pytest.approx(np.log(2.0 * v), abs=1.0 / v**2)


def test_the_first_level_is_linear_in_asinh_and_the_tail_is_tamed(tail):
    t = np.arcsinh((tail - np.median(tail)) / AsinhPolynomial().fit(tail).unit)
    calm = AsinhPolynomial(4).fit(tail).transform(tail)
    np.testing.assert_allclose(calm[1][:, 0], (t - t.mean()) / t.std(), atol=1e-12)
    plain = OrthonormalPolynomial(4).fit(tail).transform(tail)
    for j, factor in ((1, 10.0), (2, 4.0)):
        assert factor * np.mean(calm[j] ** 4) < np.mean(plain[j] ** 4)


@pytest.mark.parametrize("wild", [1e6, -1e6, 1e300])
def test_one_wild_value_leaves_orthonormal_levels(wild):
    x = np.append(np.random.default_rng(2).normal(size=1000), wild)
    fitted = AsinhPolynomial(4).fit(x)
    levels = np.hstack(fitted.transform(x))
    np.testing.assert_allclose(levels.T @ levels / x.size, np.eye(levels.shape[1]), atol=1e-10)
    # Beside 1e300 all other values are one.
    assert fitted.max_level == (1 if wild == 1e300 else 4)
    np.testing.assert_allclose(
        fitted.domain, (x.min(), x.max()), rtol=1e-12, atol=1e-12 * abs(wild)
    )


@pytest.mark.parametrize("share", [0.6, 0.99])
def test_a_column_whose_median_is_its_minimum(share):
    rng = np.random.default_rng(3)
    x = np.where(np.arange(1000) < 1000 * share, 0.0, rng.exponential(size=1000))
    fitted = AsinhPolynomial(3).fit(x)
    assert fitted.median == pytest.approx(0.0, abs=1e-15)
    assert fitted.unit == pytest.approx(np.sqrt(np.pi / 2) * x.mean(), rel=1e-12)
    levels = np.hstack(fitted.transform(x))
    np.testing.assert_allclose(levels.T @ levels / 1000, np.eye(4), atol=1e-11)
    np.testing.assert_array_equal(
        np.hstack(fitted.transform([-5.0])), np.hstack(fitted.transform([0.0]))
    )


@pytest.mark.parametrize("scale", [1.0, 1e-3, 1e-300])
def test_the_largest_numbers_count_as_the_ends(scale, tail):
    fitted = AsinhPolynomial(4).fit(tail * scale)
    ends = np.array([tail.min(), tail.max()]) * scale
    far = np.array([-1e308, 1e308])
    for level, end in zip(fitted.transform(far), fitted.transform(ends), strict=True):
        np.testing.assert_array_equal(level, end)
    np.testing.assert_array_equal(fitted.argument(far), fitted.argument(ends))


def test_a_missing_value_has_no_argument(tail):
    argument = AsinhPolynomial().fit(tail).argument([np.nan, 1.0])
    assert np.isnan(argument).tolist() == [True, False]
