"""Bounded polynomials in the rank: what they are for."""

from __future__ import annotations

import numpy as np

from hikernel import HKLClassifier
from hikernel.bases import RankPolynomial, rank


def test_levels_are_bounded_whatever_the_tails():
    x = np.random.default_rng(0).standard_cauchy(500)
    levels = RankPolynomial(4).fit(x).transform(np.concatenate([x, [-1e300, 1e300]]))
    assert max(np.abs(level).max() for level in levels) <= 2.0 * (1.0 + 1e-12)


def test_levels_are_bounded_in_gaps_too():
    # Zero-inflated: between 0 and the first positive value there is no training row.
    rng = np.random.default_rng(0)
    x = np.where(rng.uniform(size=512) < 0.85, 0.0, rng.exponential(1.0, 512) + 0.3)
    counts = np.repeat([0.0, 1.0, 2.0, 3.0, 100.0], [900, 60, 30, 9, 1])
    for column in (x, counts):
        fitted = RankPolynomial(4).fit(column)
        grid = np.linspace(column.min() - 1, column.max() + 1, 2001)
        assert max(np.abs(level).max() for level in fitted.transform(grid)) <= 2.0 * (1 + 1e-12)


def test_increasing_transformations_of_the_column_do_not_matter():
    x = np.random.default_rng(1).standard_normal(200)
    plain = np.hstack(RankPolynomial(3).fit(x).transform(x))
    bent = np.hstack(RankPolynomial(3).fit(np.exp(3 * x)).transform(np.exp(3 * x)))
    np.testing.assert_allclose(plain, bent, atol=1e-12)


def test_many_distinct_values_keep_few_knots():
    x = np.random.default_rng(2).standard_normal(5000)
    fitted = RankPolynomial(2).fit(x)
    assert len(fitted.knots) == rank.MAX_KNOTS
    np.testing.assert_allclose(fitted.knots[[0, -1]], (np.sort(x)[[0, -1]] - x.mean()) / x.std())
    linear = fitted.transform(x)[1][:, 0]
    exact = np.argsort(np.argsort(x)) / 5000
    assert np.corrcoef(linear, exact)[0, 1] > 1 - 1e-6


def test_rare_values_in_common_rows_do_not_make_deep_terms():
    # Thirty rare marks that all fall on the same few rows: their products are huge there.
    rng = np.random.default_rng(0)
    n = 300
    X = (rng.uniform(size=(n, 30)) < 0.01).astype(float)
    X[:3] = 1.0
    X[:, 0] = rng.uniform(size=n) < 0.5
    y = (X[:, 0] + 0.3 * rng.standard_normal(n) > 0.5).astype(int)
    y[:3] = [0, 0, 1]
    settings = {"alpha": 0.1, "certify": "none", "max_kernels": 100}
    bounded = HKLClassifier(basis="rank", **settings).fit(X, y)
    assert bounded.hull_["order"].max() == 1
    assert len(bounded.hull_) <= 5
