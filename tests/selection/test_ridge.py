"""Ridge against brute force: refits without each row, scipy's minimiser, scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from losses.cases import some_cases
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression, Ridge

from hikernel.losses import (
    Gamma,
    Huber,
    LogLoss,
    Multinomial,
    Poisson,
    SquaredError,
    SquaredHinge,
    Tweedie,
)
from hikernel.selection.ridge import RidgeStart, fit_ridge
from hikernel.selection.ridge_objective import RidgeObjective

LOSSES = [LogLoss(), Poisson(), Huber(), SquaredHinge(), Gamma(), Tweedie(1.3)]


def case(loss, n=60, size=4, seed=0, weighted=True):
    """Features of unequal scale and location, a target of the loss's kind, weights of sum one."""
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((n, size)) * np.geomspace(1.0, 0.2, size) + 0.7
    signal = features @ np.linspace(1.0, -0.5, size) - 0.3
    if loss.link == "log":
        y = rng.poisson(np.exp(0.5 * signal)).astype(float) + (loss.name == "gamma")
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
@pytest.mark.parametrize("mu", [1e-6, 1e-2, 1.0])
def test_squared_error_leave_one_out_is_exact(n, size, mu, weighted):
    features, y, omega = case(SquaredError(), n, size, weighted=weighted)
    fit = fit_ridge(features.copy(), y, omega, SquaredError(), mu)
    beta = normal_equations(features, y, omega, fit.mu)
    np.testing.assert_allclose(fit.coef, beta[:-1], rtol=1e-6, atol=1e-9)
    assert fit.intercept == pytest.approx(beta[-1], rel=1e-6)
    f = np.empty(n)
    for i in range(n):
        others = np.arange(n) != i
        beta = normal_equations(features[others], y[others], omega[others], fit.mu)
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
    assert weighted.mu == pytest.approx(repeated.mu)
    f = np.empty(len(rows))
    for i in range(40):
        others = rows != i
        beta = normal_equations(features[rows][others], y[rows][others], omega[others], weighted.mu)
        f[rows == i] = features[i] @ beta[:-1] + beta[-1]
    assert weighted.score == pytest.approx(0.5 * np.mean((y[rows] - f) ** 2))
    # Copies that stay behind would make the score of the repeated rows too good.
    assert repeated.score < weighted.score


def test_the_strength_chosen_is_the_best_of_those_tried():
    features, y, omega = case(SquaredError(), 40, 15)
    fit = fit_ridge(features.copy(), y, omega, SquaredError())
    scores = [
        fit_ridge(features.copy(), y, omega, SquaredError(), mu).score
        for mu in np.geomspace(1e-10, 100.0, 31)
    ]
    assert fit.score == pytest.approx(min(scores))
    assert fit.score < 0.9 * scores[0]


@pytest.mark.parametrize("loss", LOSSES)
def test_the_strength_of_other_losses_is_the_best_until_two_are_worse(loss):
    features, y, omega = case(loss, 60, 15)
    fit = fit_ridge(features.copy(), y, omega, loss)
    grid = np.geomspace(1e-7, 100.0, 15)[::-1]
    fits = [fit_ridge(features.copy(), y, omega, loss, mu) for mu in grid]
    scores = np.array([one.score for one in fits])
    best = next(
        k for k in range(1, len(grid)) if scores[k] < np.min(scores[:k]) and
        np.min(scores[k + 1 : k + 3], initial=np.inf) >= scores[k]
    )  # fmt: skip
    assert fit.mu == pytest.approx(fits[best].mu)
    # The curvature at the solution for one penalty begins the solve for the next.
    assert fit.score == pytest.approx(scores[best], rel=1e-5)
    np.testing.assert_allclose(fit.coef, fits[best].coef, atol=1e-4 * np.max(np.abs(fit.coef)))


def test_smaller_penalties_are_tried_while_the_largest_is_the_best(monkeypatch):
    features, y, omega = case(LogLoss(), 60, 4)
    asked = []

    def rising(self, theta, factor):
        asked.append(len(asked))
        return -1e-3 * asked[-1] * y[:, None]

    monkeypatch.setattr(RidgeObjective, "left_out", rising)
    fit_ridge(features.copy(), y, omega, LogLoss())
    assert len(asked) == 15


def test_it_is_the_ridge_of_scikit_learn():
    features, y, omega = case(SquaredError(), 50, weighted=True)
    fit = fit_ridge(features.copy(), y, omega, SquaredError())
    ridge = Ridge(alpha=fit.mu).fit(features, y, sample_weight=omega)
    np.testing.assert_allclose(fit.coef, ridge.coef_, rtol=1e-8)
    assert fit.intercept == pytest.approx(ridge.intercept_)


@pytest.mark.parametrize("loss", [SquaredError(), LogLoss()], ids=lambda loss: loss.name)
def test_noise_is_shrunk_away(loss):
    """More columns than the noise deserves: the mu goes far beyond the features' size."""
    rng = np.random.default_rng(3)
    features = rng.standard_normal((120, 60))
    y = np.where(rng.standard_normal(120) > 0, 1.0, -1.0)
    fit = fit_ridge(features, y, np.full(120, 1 / 120), loss)
    assert fit.mu > 5.0
    assert np.max(np.abs(fit.coef)) < 0.05


def test_more_columns_than_rows():
    """The fit interpolates for small penalties, and leave-one-out knows how bad that is."""
    rng = np.random.default_rng(4)
    features = rng.standard_normal((30, 80))
    y = features[:, 0] + rng.standard_normal(30)
    omega = np.full(30, 1 / 30)
    scores = []
    for mu in (1e-10, 1e-6, 1e-2):
        fit = fit_ridge(features.copy(), y, omega, SquaredError(), mu)
        f = np.empty(30)
        for i in range(30):
            others = np.arange(30) != i
            ridge = Ridge(alpha=fit.mu, solver="svd")
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
@pytest.mark.parametrize("mu", [1e-3, 1.0])
def test_other_losses_are_minimised(loss, mu):
    features, y, omega = case(loss, 200)
    fit = fit_ridge(features.copy(), y, omega, loss, mu)
    beta = brute_force(features, y, omega, loss, fit.mu)
    np.testing.assert_allclose(fit.coef, beta[:-1], atol=1e-5)
    assert fit.intercept == pytest.approx(beta[-1], abs=1e-5)
    f = features @ fit.coef + fit.intercept
    # Stationary, and in the intercept without any penalty.
    slope = omega * loss.gradient(y, f)
    np.testing.assert_allclose(features.T @ slope, -fit.mu * fit.coef, atol=1e-7)
    assert slope.sum() == pytest.approx(0.0, abs=1e-7)


def test_log_loss_is_the_logistic_regression_of_scikit_learn():
    features, y, omega = case(LogLoss(), 200)
    fit = fit_ridge(features.copy(), y, omega, LogLoss())
    model = LogisticRegression(C=1.0 / fit.mu, tol=1e-10, max_iter=1000)
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
    assert fit.mu == 0.0


# One Newton step is exact for a quadratic; for a loss with kinks in its derivative (Huber,
# squared hinge) rows that change sides when another one leaves are missed.
@pytest.mark.parametrize(
    ("loss", "rtol"),
    [(LogLoss(), 0.01), (Poisson(), 0.01), (Huber(), 0.03), (SquaredHinge(), 0.03)],
    ids=lambda value: getattr(value, "name", None),
)
@pytest.mark.parametrize("mu", [1e-3, 0.1, 1.0])
def test_approximate_leave_one_out_is_close(loss, mu, rtol):
    features, y, omega = case(loss, 80)
    fit = fit_ridge(features.copy(), y, omega, loss, mu)
    f = left_out(features, y, omega, loss, fit.mu)
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
    if loss.for_labels:
        y = np.where(features[:, 0] > 0, 1.0, -1.0)
    for mu in (None, 0.0):
        fit = fit_ridge(features.copy(), y, np.full(40, 1 / 40), loss, mu)
        assert np.all(np.isfinite(fit.coef))
        assert np.isfinite(fit.score)


def classes(n=60, k=3, size=3, seed=0, noise=1.0):
    """Features of unequal scale and location, marks of k classes, weights of sum one."""
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((n, size)) * np.geomspace(1.0, 0.3, size) + 0.7
    signal = 2.0 * (features - 0.7) @ rng.standard_normal((size, k))
    y = np.eye(k)[np.argmax(signal + noise * rng.gumbel(size=(n, k)), axis=1)]
    weights = rng.integers(1, 4, n).astype(float)
    return features, y, weights / weights.sum()


def logistic(features, y, omega, mu):
    """The minimiser by scikit-learn: coefficients (R, k) and the intercept of sum zero."""
    model = LogisticRegression(C=1.0 / mu, tol=1e-13, max_iter=1000, solver="newton-cholesky")
    model.fit(features, np.argmax(y, axis=1), sample_weight=omega)
    return model.coef_.T, model.intercept_ - model.intercept_.mean()


def exact_score(features, y, omega, mu):
    """The mean loss of all rows under the fits without them."""
    losses = np.empty(len(y))
    for i in range(len(y)):
        others = np.arange(len(y)) != i
        coef, intercept = logistic(features[others], y[others], omega[others], mu)
        losses[i] = Multinomial().value(y[[i]], features[[i]] @ coef + intercept)[0]
    return float(omega @ losses)


@some_cases(lambda case: case.loss.smooth and case.outputs)
def test_the_hessian_of_a_row_is_the_derivative_of_its_gradient(case):
    y, f, _ = case.sample()
    found = case.loss.hessian(y, f)
    for k in range(case.outputs):
        step = 1e-6 * np.eye(case.outputs)[k]
        change = case.loss.gradient(y, f + step) - case.loss.gradient(y, f - step)
        np.testing.assert_allclose(found[:, :, k], change / 2e-6, atol=1e-8)


@pytest.mark.parametrize("k", [3, 5])
@pytest.mark.parametrize("mu", [1e-3, 1.0, None])
def test_several_classes_are_the_logistic_regression_of_scikit_learn(k, mu):
    features, y, omega = classes(200, k)
    fit = fit_ridge(features.copy(), y, omega, Multinomial(), mu)
    coef, intercept = logistic(features, y, omega, fit.mu)
    assert fit.coef.shape == (3, k)
    assert fit.intercept.shape == (k,)
    np.testing.assert_allclose(fit.coef, coef, atol=1e-6)
    np.testing.assert_allclose(fit.intercept - fit.intercept.mean(), intercept, atol=1e-6)
    # The common shift of all classes, which the loss does not see, is zero everywhere.
    np.testing.assert_allclose(fit.coef.sum(axis=1), 0.0, atol=1e-12)
    assert fit.intercept.sum() == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("mu", [1e-4, 0.1])
def test_a_class_is_left_out_by_one_newton_step(mu):
    """The score, from every row's gradient and Hessian without it in the coefficients of all."""
    features, y, omega = classes(30)
    fit = fit_ridge(features.copy(), y, omega, Multinomial(), mu)
    design = np.column_stack([features, np.ones(30)])
    theta = np.vstack([fit.coef, fit.intercept])
    penalty = np.kron(np.diag([fit.mu] * 3 + [0.0]), np.eye(3))
    losses = np.empty(30)
    for i in range(30):
        others = np.arange(30) != i
        f = design[others] @ theta
        slope = design[others].T @ (omega[others, None] * Multinomial().gradient(y[others], f))
        slope = slope.ravel() + penalty @ theta.ravel()
        second = Multinomial().hessian(y[others], f)
        hessian = penalty + np.einsum(
            "n,nr,ns,nab->rasb", omega[others], design[others], design[others], second
        ).reshape(12, 12)
        moved = theta.ravel() - np.linalg.pinv(hessian, rcond=1e-12, hermitian=True) @ slope
        losses[i] = Multinomial().value(y[[i]], design[[i]] @ moved.reshape(4, 3))[0]
    assert fit.score == pytest.approx(float(omega @ losses), rel=1e-6)


@pytest.mark.parametrize(("mu", "n"), [(1e-2, 120), (0.1, 60), (1.0, 60)])
def test_approximate_leave_one_out_of_classes_is_close(mu, n):
    features, y, omega = classes(n)
    fit = fit_ridge(features.copy(), y, omega, Multinomial(), mu)
    exact = exact_score(features, y, omega, fit.mu)
    assert fit.score == pytest.approx(exact, rel=0.02)
    f = features @ fit.coef + fit.intercept
    at_fit = float(omega @ Multinomial().value(y, f))
    assert abs(fit.score - exact) < 0.25 * (exact - at_fit)


def test_classes_get_the_strength_of_exact_leave_one_out():
    features, y, omega = classes(50, size=4)
    fit = fit_ridge(features.copy(), y, omega, Multinomial())
    variances = omega @ (features - omega @ features) ** 2
    penalties = variances.mean() * np.geomspace(1e-7, 100.0, 15)[7:13]
    scores = [exact_score(features, y, omega, mu) for mu in penalties]
    assert fit.mu == pytest.approx(penalties[np.argmin(scores)])
    assert 0 < np.argmin(scores) < len(scores) - 1


def test_two_outputs_of_a_multinomial_are_one_of_the_log_loss():
    """f_1 - f_0 = sqrt(2) z, so that |B|^2 is half the square of one output's coefficients."""
    features, y, omega = classes(k=2)
    pair = fit_ridge(features.copy(), y, omega, Multinomial(), 0.02)
    single = fit_ridge(features.copy(), y[:, 1] - y[:, 0], omega, LogLoss(), 0.01)
    np.testing.assert_allclose(pair.coef[:, 1] - pair.coef[:, 0], single.coef, rtol=1e-5)
    assert pair.intercept[1] - pair.intercept[0] == pytest.approx(single.intercept, rel=1e-5)
    assert pair.score == pytest.approx(single.score, rel=1e-6)


@pytest.mark.parametrize("loss", [SquaredError(), *LOSSES], ids=lambda loss: loss.name)
def test_outputs_that_do_not_interact_are_fits_of_their_own(loss):
    features, y, omega = case(loss, 80)
    _, other, _ = case(loss, 80, seed=1)
    both = fit_ridge(features.copy(), np.column_stack([y, other]), omega, loss, 0.1)
    parts = [fit_ridge(features.copy(), part, omega, loss, 0.1) for part in (y, other)]
    np.testing.assert_allclose(both.coef, np.transpose([p.coef for p in parts]), atol=1e-6)
    np.testing.assert_allclose(both.intercept, [p.intercept for p in parts], atol=1e-6)
    assert both.score == pytest.approx(sum(part.score for part in parts), rel=1e-5)


def test_the_weight_of_a_row_of_a_class_is_its_copies():
    features, y, _ = classes(40)
    counts = np.random.default_rng(1).integers(1, 4, 40)
    rows = np.repeat(np.arange(40), counts)
    weighted = fit_ridge(features.copy(), y, counts / counts.sum(), Multinomial(), 0.01)
    omega = np.full(len(rows), 1.0 / len(rows))
    repeated = fit_ridge(features[rows], y[rows], omega, Multinomial(), 0.01)
    np.testing.assert_allclose(weighted.coef, repeated.coef, atol=1e-8)
    np.testing.assert_allclose(weighted.intercept, repeated.intercept, atol=1e-8)
    assert repeated.score < weighted.score


def test_rows_are_left_out_the_same_in_pieces(monkeypatch):
    features, y, omega = classes(50)
    whole = fit_ridge(features.copy(), y, omega, Multinomial())
    monkeypatch.setattr("hikernel.selection.ridge_objective._CHUNK", 100)
    assert fit_ridge(features.copy(), y, omega, Multinomial()).score == pytest.approx(whole.score)


@pytest.mark.parametrize("mu", [None, 0.0, 1e-9])
@pytest.mark.parametrize("copies", [1, 20])
def test_separable_classes_end_finite(mu, copies):
    features, y, omega = classes(60, noise=0.0)
    features = np.hstack([features] * copies)
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        fit = fit_ridge(features.copy(), 1.0 * y, omega, Multinomial(), mu)
    assert np.all(np.isfinite(fit.coef))
    assert np.isfinite(fit.score)
    f = features @ fit.coef + fit.intercept
    assert np.mean(np.argmax(f, axis=1) == np.argmax(y, axis=1)) > 0.95


def test_a_class_of_a_single_row_is_left_out_with_it():
    features, y, omega = classes(40)
    y[:] = np.where(np.arange(3) == (np.arange(40) % 2)[:, None], 1.0, 0.0)
    y[0] = [0.0, 0.0, 1.0]
    fit = fit_ridge(features.copy(), y, omega, Multinomial())
    assert np.isfinite(fit.score)
    assert np.all(np.isfinite(fit.coef))


@pytest.mark.parametrize("first", [0, 3, 7, 11, 14])
@pytest.mark.parametrize("loss", [LogLoss(), Huber()], ids=lambda loss: loss.name)
def test_the_penalty_is_the_same_wherever_the_search_begins(loss, first):
    features, y, omega = case(loss, 80, 15)
    scan = fit_ridge(features.copy(), y, omega, loss)
    rng = np.random.default_rng(0)
    start = RidgeStart(scan.coef + 0.1 * rng.standard_normal(15), first)
    fit = fit_ridge(features.copy(), y, omega, loss, start=start)
    assert fit.position == scan.position
    assert fit.mu == scan.mu
    assert fit.score == pytest.approx(scan.score, rel=1e-6)
    np.testing.assert_allclose(fit.coef, scan.coef, atol=1e-5 * np.max(np.abs(scan.coef)))


@pytest.mark.parametrize("k", [2, 4])
def test_a_part_of_a_fit_starts_from_the_whole(k, monkeypatch):
    features, y, omega = classes(300, k, size=8)
    loss = Multinomial()
    whole = fit_ridge(features.copy(), y, omega, loss)
    columns = np.array([0, 2, 3, 5, 6, 7])
    asked = []
    curvature = RidgeObjective.curvature

    def counted(self, *args):
        asked.append(1)
        return curvature(self, *args)

    monkeypatch.setattr(RidgeObjective, "curvature", counted)
    part = features[:, columns]
    cold = fit_ridge(part.copy(), y, omega, loss, 0.01)
    n_cold = len(asked)
    warm = fit_ridge(part.copy(), y, omega, loss, 0.01, whole.part(columns))
    np.testing.assert_allclose(warm.coef, cold.coef, atol=1e-6)
    np.testing.assert_allclose(warm.intercept, cold.intercept, atol=1e-6)
    assert warm.score == pytest.approx(cold.score, rel=1e-6)
    assert len(asked) - n_cold <= 0.5 * n_cold


def test_few_hessians_are_computed_along_the_penalties(monkeypatch):
    """One at each solution, where leave-one-out needs it, and few on the way there."""
    features, y, omega = case(LogLoss(), 300, 20)
    asked = {"curvature": 0, "left_out": 0}
    for name in asked:
        method = getattr(RidgeObjective, name)

        def counted(self, *args, name=name, method=method):
            asked[name] += 1
            return method(self, *args)

        monkeypatch.setattr(RidgeObjective, name, counted)
    fit_ridge(features, y, omega, LogLoss())
    assert asked["left_out"] >= 6
    assert asked["curvature"] <= 2 * asked["left_out"]


@pytest.mark.parametrize("loss", [SquaredError(), LogLoss(), Poisson()], ids=lambda loss: loss.name)
@pytest.mark.parametrize(("n", "size"), [(80, 6), (40, 30)])
def test_a_fit_is_given_up_only_where_its_score_is_too_large(loss, n, size):
    features, y, omega = case(loss, n, size)
    fit = fit_ridge(features.copy(), y, omega, loss)
    for share in (0.01, 0.5, 0.9, 1.0, 1.1):
        start = fit.part(np.arange(size))
        found = fit_ridge(features.copy(), y, omega, loss, None, start, share * fit.score)
        if share >= 1.0:
            assert found.score == pytest.approx(fit.score, rel=1e-6)
        else:
            assert found.score > share * fit.score
    assert fit_ridge(features.copy(), y, omega, loss, None, None, 1e-3 * fit.score).score == np.inf
    few = fit_ridge(features[:, :1].copy(), y, omega, loss)
    part = fit_ridge(features[:, :1].copy(), y, omega, loss, None, fit.part(np.array([0])))
    assert part.score == pytest.approx(few.score, rel=1e-6)
    np.testing.assert_allclose(part.coef, few.coef, atol=1e-5)
