"""Ridge with a loss in which rows interact: exact fits, rows left out, separable data."""

from __future__ import annotations

import numpy as np
import pytest
from losses.cases import JOINT
from sksurv.linear_model import CoxPHSurvivalAnalysis
from sksurv.util import Surv

from hikernel import HKLSurvival
from hikernel.losses import Cox
from hikernel.selection.ridge import fit_ridge
from hikernel.selection.ridge_objective import RidgeObjective

CASE = JOINT["cox"]


def rows(n=50, size=3, seed=0):
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((n, size)) * np.geomspace(1.0, 0.3, size)
    y = CASE.target(features @ np.linspace(1.0, -0.5, size), rng)
    weights = rng.uniform(0.5, 2.0, n)
    return features, y, weights / weights.sum()


def objective(features, y, omega):
    design = np.column_stack([features, np.ones(len(y))])
    return RidgeObjective(design, y[:, None], omega, Cox().on_rows(y, omega), np.eye(1))


def minimised(problem, mu):
    penalty = np.full((problem.design.shape[1], 1), mu)
    penalty[-1] = 0.0
    return problem.minimise(penalty, np.zeros_like(penalty))


def test_the_penalised_fit_is_that_of_scikit_survival():
    features, y, _ = rows()
    n, mu = len(y), 0.03
    equal = np.full(n, 1.0 / n)
    loss = Cox().on_rows(y, equal)
    unit = np.mean(np.var(features, axis=0))
    ours = fit_ridge(features.copy(), y, equal, loss, mu / unit)
    theirs = CoxPHSurvivalAnalysis(alpha=n * mu, ties="breslow", tol=1e-13)
    theirs.fit(features, Surv.from_arrays(y > 0.0, np.abs(y)))
    assert ours.mu == pytest.approx(mu)
    np.testing.assert_allclose(ours.coef, theirs.coef_, atol=1e-8)
    f = features @ ours.coef + ours.intercept
    assert equal @ f == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("mu", [1e-4, 0.1])
def test_rows_are_left_out_almost_exactly(mu):
    features, y, omega = rows()
    features -= omega @ features
    problem = objective(features, y, omega)
    theta, factor, _ = minimised(problem, mu)
    fitted = problem.predict(theta)[:, 0]
    approximate = problem.left_out(theta, factor)[:, 0]
    exact = np.empty(len(y))
    for i in range(len(y)):
        others = np.arange(len(y)) != i
        part, share = omega[others], 1.0 - omega[i]
        centred = features[others] - part @ features[others] / share
        inner = objective(centred, y[others], part / share)
        beta = minimised(inner, mu / share)[0]
        exact[i] = features[i] @ beta[:-1, 0]
    moved = exact - fitted
    assert np.std(approximate - exact) < 0.15 * np.std(moved)
    assert np.std(moved) > 0.005


def test_separable_and_collinear_data_end_finite():
    features, y, omega = rows(30)
    loss = Cox().on_rows(y, omega)
    order = np.where(y > 0.0, -np.abs(y), -100.0)[:, None]  # tells all events apart
    for extreme in (order, np.hstack([order, order]), np.hstack([features, features])):
        for relative in (0.0, 1e-7, None):
            fit = fit_ridge(extreme.astype(float), y, omega, loss, relative)
            assert np.all(np.isfinite(fit.coef))
            assert np.isfinite(fit.score)


def test_noise_is_shrunk_away():
    rng = np.random.default_rng(0)
    _, y, omega = rows(100)
    noise = rng.standard_normal((100, 8))
    fit = fit_ridge(noise.copy(), y, omega, Cox().on_rows(y, omega))
    free = fit_ridge(noise.copy(), y, omega, Cox().on_rows(y, omega), 0.0)
    assert fit.mu > 1.0
    assert np.std(noise @ fit.coef) < 0.4 * np.std(noise @ free.coef)
    assert fit.score < free.score


def test_noise_is_dropped_where_the_gain_per_event_is_above_one():
    rng = np.random.default_rng(2)
    X = rng.uniform(-1.0, 1.0, (150, 3))
    y = np.column_stack([rng.exponential(np.exp(-8.0 * X[:, 0])), np.ones(150)])
    settings = {"alpha": 1e-3, "degree": 2, "certify": "none"}
    ridge, sparse = (HKLSurvival(**settings, refit=name).fit(X, y) for name in ("ridge", "sparse"))
    assert len(sparse.terms_) < len(ridge.terms_)
