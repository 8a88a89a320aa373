"""Polynomial, orthonormal, asinh and Hermite bases: sums, orthonormality, overflow."""

import numpy as np
import pytest
from bases import oracles

from hikernel.bases import AsinhPolynomial, Hermite, OrthonormalPolynomial, Polynomial


def stacked(fitted, x):
    return np.hstack(fitted.transform(x))


def gram_error(fitted, x, weights):
    levels = stacked(fitted, x)
    gram = (levels.T * (weights / weights.sum())) @ levels
    return np.abs(gram - np.eye(levels.shape[1])).max()


def three_term_values(x, weights, q):
    """Stieltjes recurrence without reorthogonalisation, as in textbooks."""
    w = weights / weights.sum()
    z = oracles.standardise(x, weights, x)
    p = [np.zeros_like(z), np.ones_like(z)]
    back = 0.0
    for _ in range(q):
        candidate = (z - w @ (z * p[-1] ** 2)) * p[-1] - back * p[-2]
        back = np.sqrt(w @ candidate**2)
        p.append(candidate / back)
    return np.array(p[1:]).T, w


COLUMNS = {
    "normal": lambda rng: rng.normal(size=500),
    "uniform": lambda rng: rng.uniform(size=500),
    "cauchy": lambda rng: rng.standard_cauchy(size=2000),
    "lognormal": lambda rng: np.exp(3.0 * rng.normal(size=2000)),
    "one far value": lambda rng: np.append(rng.normal(size=1000), 1e6),
    "few values": lambda rng: rng.integers(0, 4, size=300).astype(float),
    "two values": lambda rng: rng.integers(0, 2, size=300).astype(float),
    "rare value": lambda rng: np.append(np.zeros(9999), 1.0),
    "offset": lambda rng: 1e6 + rng.normal(size=500),
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("basis", [OrthonormalPolynomial(6), AsinhPolynomial(6)])
def test_levels_are_orthonormal_under_the_training_distribution(basis, column, weighted):
    rng = np.random.default_rng(3)
    x = COLUMNS[column](rng)
    weights = rng.uniform(0.1, 2.0, size=x.size) if weighted else np.ones(x.size)
    fitted = basis.fit(x, weights)
    assert gram_error(fitted, x, weights) < 1e-10
    assert fitted.max_level >= min(3, np.unique(x).size - 1)
    if isinstance(basis, OrthonormalPolynomial):
        np.testing.assert_allclose(
            stacked(fitted, x)[:, 1], oracles.standardise(x, weights, x), atol=1e-9
        )


@pytest.mark.parametrize(
    ("column", "degree", "loss"), [("one far value", 4, 1e-2), ("lognormal", 8, 1e-7)]
)
def test_reorthogonalisation_is_needed_under_a_heavy_tail(column, degree, loss):
    x = COLUMNS[column](np.random.default_rng(3))
    plain, w = three_term_values(x, np.ones(x.size), degree)
    assert np.abs((plain.T * w) @ plain - np.eye(degree + 1)).max() > loss
    assert gram_error(OrthonormalPolynomial(degree).fit(x), x, np.ones(x.size)) < 1e-10


@pytest.mark.parametrize("m", [2, 3, 5, 7])
def test_m_distinct_values_allow_m_minus_one_levels(m):
    x = np.tile(np.linspace(-1.0, 2.0, m), 4)
    assert OrthonormalPolynomial(10).fit(x).max_level == m - 1
    assert OrthonormalPolynomial(2).fit(x).max_level == min(2, m - 1)


def test_values_tied_to_rounding_do_not_make_a_level():
    x = np.array([0.0, 1.0, 1.0 + 1e-12] * 10)
    assert OrthonormalPolynomial(4).fit(x).max_level == 1


def test_orthonormal_levels_are_polynomials_of_their_degree_within_the_range():
    rng = np.random.default_rng(5)
    train = rng.gamma(2.0, size=300)
    fitted = OrthonormalPolynomial(5).fit(train)
    x = np.linspace(train.min(), train.max(), 40)
    for j, level in enumerate(fitted.transform(x)):
        fit = np.polynomial.Chebyshev.fit(x, level[:, 0], deg=j)
        np.testing.assert_allclose(fit(x), level[:, 0], atol=1e-9 * np.abs(level).max())
        assert fit.coef[-1] > 0


@pytest.mark.parametrize("degree", [1, 4, 11])
def test_polynomial_levels_sum_to_the_polynomial_kernel(degree):
    rng = np.random.default_rng(6)
    x = rng.normal(size=50)
    fitted = Polynomial(degree).fit(x)
    z = oracles.standardise(x, np.ones(50), x)
    levels = stacked(fitted, x)
    expected = (1.0 + np.outer(z, z)) ** degree
    np.testing.assert_allclose(levels @ levels.T, expected, rtol=0, atol=1e-13 * expected.max())


def test_hermite_levels_sum_to_mehlers_kernel():
    rng = np.random.default_rng(7)
    x, a = rng.normal(size=40), 0.5
    levels = stacked(Hermite(120, a=a).fit(x), x)
    z = oracles.standardise(x, np.ones(40), x)
    exponent = 2 * a * np.outer(z, z) - a**2 * (z[:, None] ** 2 + z[None, :] ** 2)
    expected = np.exp(exponent / (1 - a**2)) / np.sqrt(1 - a**2)
    # The terms of the sum cancel: its rounding error is in units of their size, not of the sum's.
    sizes = np.abs(levels) @ np.abs(levels).T
    assert np.max(np.abs(levels @ levels.T - expected) / sizes) < 1e-12


@pytest.mark.parametrize("basis", [Polynomial(5), Hermite(5)])
def test_overflow_has_the_sign_of_the_leading_power(basis):
    x = np.random.default_rng(8).normal(size=100)
    levels = stacked(basis.fit(x), np.array([1e200, -1e200, 1e28, -1e28, 1e32, -1e32]))
    signs = np.sign(levels)
    np.testing.assert_array_equal(signs[0::2], 1.0)
    np.testing.assert_array_equal(signs[1::2], np.tile((-1.0) ** np.arange(6), (3, 1)))
    assert np.isinf(levels[0, 2:]).all()
    # On both sides of where lower-order terms are dropped, level j grows like x^j.
    ratio = levels[4] / levels[2]
    np.testing.assert_allclose(ratio, 1e4 ** np.arange(6.0), rtol=1e-10)


@pytest.mark.parametrize("basis", [Polynomial, OrthonormalPolynomial, AsinhPolynomial, Hermite])
@pytest.mark.parametrize("degree", [0, -1, 2.0, True, "4", None])
def test_degree_must_be_a_positive_integer(basis, degree):
    with pytest.raises(ValueError, match="degree must be an integer >= 1"):
        basis(degree=degree)


def test_numpy_integers_are_integers():
    assert Polynomial(np.int64(3)).fit([0.0, 1.0]).max_level == 3


@pytest.mark.parametrize("a", [0.0, 1.0, -0.2, np.nan, True, "0.5"])
def test_hermite_a_must_be_a_fraction(a):
    with pytest.raises(ValueError, match=r"a .*between 0 and 1"):
        Hermite(a=a)
