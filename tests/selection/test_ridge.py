"""Ridge against brute force: refits without each row, scipy's minimiser, scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression, Ridge

from hikernel.losses import Huber, LogLoss, Poisson, SquaredError, SquaredHinge
from hikernel.selection.ridge import fit_ridge

LOSSES = [LogLoss(), Poisson(), Huber(), SquaredHinge()]


def case(loss, n=60, size=4, seed=0, weighted=True):
    """Features of unequal scale and location, a target of the loss's kind, weights of sum one."""
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((n, size)) * np.geomspace(1.0, 0.2, size) + 0.7
    signal = features @ np.linspace(1.0, -0.5, size) - 0.3
    if isinstance(loss, Poisson):
        y = rng.poisson(np.exp(0.5 * signal)).astype(float)
    elif isinstance(loss, (LogLoss, SquaredHinge)):
        y = np.where(signal + rng.standard_normal(n) > 0.0, 1.0, -1.0)
    else:
        y = signal + 0.5 * rng.standard_normal(n)
    weights = rng.integers(1, 4, n).astype(float) if weighted else np.ones(n)
    return features, y, weights / weights.sum()


def brute_force(features, y, omega, loss, mu):
    """The minimiser of the objective as it is written, by scipy."""

    def objective(beta):
        f = features @ beta[:-1] + beta[-1]
        slope = omega * loss.gradient(y, f)
        value = omega @ loss.value(y, f) + 0.5 * mu * beta[:-1] @ beta[:-1]
        return value, np.append(features.T @ slope + mu * beta[:-1], slope.sum())

    options = {"maxiter": 5000, "ftol": 1e-16, "gtol": 1e-10}
    start = np.zeros(features.shape[1] + 1)
    found = minimize(objective, start, jac=True, method="L-BFGS-B", options=options)
    return found.x


def left_out(features, y, omega, loss, mu):
    """f of every row from a fit without it: other weights and mu as they are."""
    out = np.empty(len(y))
    for i in range(len(y)):
        others = np.arange(len(y)) != i
        beta = brute_force(features[others], y[others], omega[others], loss, mu)
        out[i] = features[i] @ beta[:-1] + beta[-1]
    return out


def normal_equations(features, y, omega, mu):
    design = np.column_stack([features, np.ones(len(y))])
    penalty = mu * np.eye(design.shape[1])
    penalty[-1, -1] = 0.0
    return np.linalg.solve(design.T @ (omega[:, None] * design) + penalty, design.T @ (omega * y))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("n", "size"), [(60, 4), (20, 15), (12, 25)])
@pytest.mark.parametrize("strength", [1e-6, 1e-2, 1.0])
def test_squared_error_leave_one_out_is_exact(n, size, strength, weighted):
    features, y, omega = case(SquaredError(), n, size, weighted=weighted)
    fit = fit_ridge(features.copy(), y, omega, SquaredError(), strength)
    beta = normal_equations(features, y, omega, fit.strength)
    np.testing.assert_allclose(fit.coef, beta[:-1], rtol=1e-6, atol=1e-9)
    assert fit.intercept == pytest.approx(beta[-1], rel=1e-6)
    f = np.empty(n)
    for i in range(n):
        others = np.arange(n) != i
        beta = normal_equations(features[others], y[others], omega[others], fit.strength)
        f[i] = features[i] @ beta[:-1] + beta[-1]
    assert fit.score == pytest.approx(0.5 * omega @ (y - f) ** 2, rel=1e-5)


def test_an_integer_weight_is_a_repeated_row_that_is_left_out_with_its_copies():
    features, y, _ = case(SquaredError(), 40)
    counts = np.random.default_rng(1).integers(1, 4, 40)
    weighted = fit_ridge(features.copy(), y, counts / counts.sum(), SquaredError(), 0.01)
    rows = np.repeat(np.arange(40), counts)
    omega = np.full(len(rows), 1.0 / len(rows))
    repeated = fit_ridge(features[rows], y[rows], omega, SquaredError(), 0.01)
    np.testing.assert_allclose(weighted.coef, repeated.coef, rtol=1e-9)
    assert weighted.strength == pytest.approx(repeated.strength)
    f = np.empty(len(rows))
    for i in range(40):
        others = rows != i
        beta = normal_equations(
            features[rows][others], y[rows][others], omega[others], weighted.strength
        )
        f[rows == i] = features[i] @ beta[:-1] + beta[-1]
    assert weighted.score == pytest.approx(0.5 * np.mean((y[rows] - f) ** 2))
    # Copies that stay behind would make the score of the repeated rows too good.
    assert repeated.score < weighted.score


def test_the_strength_chosen_is_the_best_of_those_tried():
    features, y, omega = case(SquaredError(), 40, 15)
    fit = fit_ridge(features.copy(), y, omega, SquaredError())
    scores = [
        fit_ridge(features.copy(), y, omega, SquaredError(), strength).score
        for strength in np.geomspace(1e-10, 100.0, 31)
    ]
    assert fit.score == pytest.approx(min(scores))
    assert fit.score < 0.9 * scores[0]


def test_it_is_the_ridge_of_scikit_learn():
    features, y, omega = case(SquaredError(), 50, weighted=True)
    fit = fit_ridge(features.copy(), y, omega, SquaredError())
    ridge = Ridge(alpha=fit.strength).fit(features, y, sample_weight=omega)
    np.testing.assert_allclose(fit.coef, ridge.coef_, rtol=1e-8)
    assert fit.intercept == pytest.approx(ridge.intercept_)


@pytest.mark.parametrize("loss", [SquaredError(), LogLoss()], ids=lambda loss: loss.name)
def test_noise_is_shrunk_away(loss):
    """More columns than the noise deserves: the strength goes far beyond the features' size."""
    rng = np.random.default_rng(3)
    features = rng.standard_normal((120, 60))
    y = np.where(rng.standard_normal(120) > 0, 1.0, -1.0)
    fit = fit_ridge(features, y, np.full(120, 1 / 120), loss)
    assert fit.strength > 5.0
    assert np.max(np.abs(fit.coef)) < 0.05


def test_more_columns_than_rows():
    """The fit interpolates for small strengths, and leave-one-out knows how bad that is."""
    rng = np.random.default_rng(4)
    features = rng.standard_normal((30, 80))
    y = features[:, 0] + rng.standard_normal(30)
    omega = np.full(30, 1 / 30)
    scores = []
    for strength in (1e-10, 1e-6, 1e-2):
        fit = fit_ridge(features.copy(), y, omega, SquaredError(), strength)
        f = np.empty(30)
        for i in range(30):
            others = np.arange(30) != i
            ridge = Ridge(alpha=fit.strength, solver="svd")
            f[i] = ridge.fit(features[others], y[others], omega[others]).predict(features[[i]])[0]
        scores.append((fit.score, 0.5 * np.mean((y - f) ** 2)))
    np.testing.assert_allclose(*np.transpose(scores), rtol=1e-3)


@pytest.mark.parametrize("loss", [SquaredError(), *LOSSES], ids=lambda loss: loss.name)
def test_columns_that_say_nothing(loss):
    features, y, omega = case(loss)
    plain = fit_ridge(features.copy(), y, omega, loss, 0.0)
    doubled = np.column_stack([features, features[:, 0], np.ones(len(y))])
    fit = fit_ridge(doubled.copy(), y, omega, loss, 0.0)
    f = doubled @ fit.coef + fit.intercept
    np.testing.assert_allclose(f, features @ plain.coef + plain.intercept, atol=1e-4)
    constant = fit_ridge(np.ones((len(y), 2)), y, omega, loss)
    np.testing.assert_allclose(constant.coef, 0.0, atol=1e-12)
    best = loss.intercept(y, np.zeros(len(y)), omega)
    assert constant.intercept == pytest.approx(float(best), rel=1e-5)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
@pytest.mark.parametrize("strength", [1e-3, 1.0])
def test_other_losses_are_minimised(loss, strength):
    features, y, omega = case(loss, 200)
    fit = fit_ridge(features.copy(), y, omega, loss, strength)
    beta = brute_force(features, y, omega, loss, fit.strength)
    np.testing.assert_allclose(fit.coef, beta[:-1], atol=1e-5)
    assert fit.intercept == pytest.approx(beta[-1], abs=1e-5)
    f = features @ fit.coef + fit.intercept
    # Stationary, and in the intercept without any penalty.
    slope = omega * loss.gradient(y, f)
    np.testing.assert_allclose(features.T @ slope, -fit.strength * fit.coef, atol=1e-7)
    assert slope.sum() == pytest.approx(0.0, abs=1e-7)


def test_log_loss_is_the_logistic_regression_of_scikit_learn():
    features, y, omega = case(LogLoss(), 200)
    fit = fit_ridge(features.copy(), y, omega, LogLoss())
    model = LogisticRegression(C=1.0 / fit.strength, tol=1e-10, max_iter=1000)
    model.fit(features, y, sample_weight=omega)
    np.testing.assert_allclose(fit.coef, model.coef_[0], atol=1e-4)
    assert fit.intercept == pytest.approx(model.intercept_[0], abs=1e-4)


@pytest.mark.parametrize("loss", [SquaredError(), *LOSSES], ids=lambda loss: loss.name)
def test_the_intercept_is_not_penalised(loss):
    """Moving the features moves nothing but the intercept, however strong the penalty."""
    features, y, omega = case(loss)
    fit = fit_ridge(features.copy(), y, omega, loss, 10.0)
    moved = fit_ridge(features + 50.0, y, omega, loss, 10.0)
    np.testing.assert_allclose(moved.coef, fit.coef, rtol=1e-5, atol=1e-8)
    assert moved.intercept == pytest.approx(fit.intercept - 50.0 * fit.coef.sum(), abs=1e-4)


@pytest.mark.parametrize("loss", [SquaredError(), *LOSSES], ids=lambda loss: loss.name)
def test_strength_zero_is_the_fit_without_a_penalty(loss):
    features, y, omega = case(loss, 300)
    fit = fit_ridge(features.copy(), y, omega, loss, 0.0)
    beta = brute_force(features, y, omega, loss, 0.0)
    np.testing.assert_allclose(fit.coef, beta[:-1], atol=2e-5)
    assert fit.strength == 0.0


# One Newton step is exact for a quadratic; for a loss with kinks in its derivative (Huber,
# squared hinge) rows that change sides when another one leaves are missed.
@pytest.mark.parametrize(
    ("loss", "rtol"),
    [(LogLoss(), 0.01), (Poisson(), 0.01), (Huber(), 0.03), (SquaredHinge(), 0.03)],
    ids=lambda value: getattr(value, "name", None),
)
@pytest.mark.parametrize("strength", [1e-3, 0.1, 1.0])
def test_approximate_leave_one_out_is_close(loss, strength, rtol):
    features, y, omega = case(loss, 80)
    fit = fit_ridge(features.copy(), y, omega, loss, strength)
    f = left_out(features, y, omega, loss, fit.strength)
    exact = float(omega @ loss.value(y, f))
    assert fit.score == pytest.approx(exact, rel=rtol)
    at_fit = float(omega @ loss.value(y, features @ fit.coef + fit.intercept))
    assert abs(fit.score - exact) < 0.25 * (exact - at_fit)


def test_the_step_is_exact_where_the_loss_is_quadratic():
    """Huber with a bound that no residual reaches is the squared error."""
    features, y, omega = case(SquaredError())
    squared = fit_ridge(features.copy(), y, omega, SquaredError(), 0.01)
    huber = fit_ridge(features.copy(), y, omega, Huber(1e3), 0.01)
    np.testing.assert_allclose(huber.coef, squared.coef, rtol=1e-6)
    assert huber.score == pytest.approx(squared.score, rel=1e-6)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
def test_separable_and_collinear_data_end_finite(loss):
    rng = np.random.default_rng(5)
    features = rng.standard_normal((40, 30))
    features = np.hstack([features, features + 1e-9 * rng.standard_normal((40, 30))])
    y = 20.0 * np.abs(features[:, 0])
    if not isinstance(loss, (Poisson, Huber)):
        y = np.where(features[:, 0] > 0, 1.0, -1.0)
    for strength in (None, 0.0):
        fit = fit_ridge(features.copy(), y, np.full(40, 1 / 40), loss, strength)
        assert np.all(np.isfinite(fit.coef))
        assert np.isfinite(fit.score)
