"""Slip 4 of the paper: hull recovery needs lambda -> 0 with lambda sqrt(n) -> infinity.

Independent inputs, so that the sufficient condition holds. At lambda = n^(-1/4) / 4 the hull is
recovered more and more surely; at lambda = 1/n, where lambda sqrt(n) -> 0, it never is.
"""

from __future__ import annotations

import numpy as np

from hikernel import HKLRegressor


def recovery_rate(n, alpha, repetitions=12):
    hits = 0
    for seed in range(repetitions):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((n, 3))
        y = X[:, 0] + X[:, 1] + X[:, 0] * X[:, 1] + rng.standard_normal(n)
        model = HKLRegressor(alpha, degree=2, tol=1e-6, certify="none").fit(X, y)
        hits += set(model.hull_["term"]) == {"1", "x0", "x1", "x0 * x1"}
    return hits / repetitions


def test_slip_4_the_rate_of_lambda():
    small, large = 30, 4000
    slow = [recovery_rate(n, 0.25 * n**-0.25) for n in (small, large)]
    fast = [recovery_rate(n, 1.0 / n) for n in (small, large)]
    assert slow[1] == 1.0
    assert slow[0] < slow[1]
    assert fast[1] <= 0.25
