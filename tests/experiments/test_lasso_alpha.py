"""lasso-alpha against what it says it solves."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso

from hikernel.bases import Polynomial
from hikernel.experiments.lasso_alpha import LassoAlphaRegressor, _between


def test_lasso_alpha_minimises_its_objective(data):
    X, y = data
    X, y = X[:25], y[:25]
    model = LassoAlphaRegressor(0.05, basis=Polynomial(2), share=0.3)
    model.fit(X, y)
    K = model.kernel_.matrix(X, X)
    C = K - K.mean(axis=0)
    penalty = 0.05 * np.abs(C.T @ (y - y.mean())).max() / len(y)

    def objective(v):
        a, b = v[:25] - v[25:50], v[50]
        return 0.5 * np.mean((y - K @ a - b) ** 2) + penalty * v[:50].sum()

    ours = np.r_[
        np.maximum(model.dual_coef_, 0), np.maximum(-model.dual_coef_, 0), model.intercept_
    ]
    best = minimize(objective, ours, bounds=[(0, None)] * 50 + [(None, None)], tol=1e-14)
    assert objective(ours) <= best.fun + 1e-8
    np.testing.assert_allclose(model.predict(X), K @ model.dual_coef_ + model.intercept_)
    # At alpha = 1 and above nothing is left.
    assert np.all(LassoAlphaRegressor(1.0, basis=Polynomial(2)).fit(X, y).dual_coef_ == 0)


def test_lasso_alpha_paths_pass_through_single_fits(data):
    X, y = data
    alphas = np.array([0.5, 0.1])
    settings = {"basis": Polynomial(2)}
    path = LassoAlphaRegressor(**settings).fit_path(X, y, alphas)
    for k, alpha in enumerate(alphas):
        single = LassoAlphaRegressor(alpha, **settings).fit(X, y)
        np.testing.assert_allclose(path.predict_path(X)[:, k], single.predict(X), atol=1e-9)


def test_lasso_alpha_agrees_with_coordinate_descent(data):
    X, y = data
    alphas = np.array([0.6, 0.02, 0.1])  # in no order
    model = LassoAlphaRegressor(basis=Polynomial(2), share=0.3).fit_path(X, y, alphas)
    K = model.kernel_.matrix(X, X)
    largest = np.abs((K - K.mean(axis=0)).T @ (y - y.mean())).max() / len(y)
    for k, alpha in enumerate(alphas):
        twin = Lasso(alpha * largest, tol=1e-10, max_iter=1_000_000).fit(K, y)
        np.testing.assert_allclose(model.predict_path(X)[:, k], twin.predict(K), atol=1e-4)
    assert np.all(model.gaps_ < 1e-9)
    assert model.reached_.all()


ALPHAS = np.geomspace(0.5, 1e-6, 24)


@pytest.mark.parametrize("unit", [1e-9, 1e9])
def test_lasso_alpha_does_not_depend_on_the_unit_of_y(data, unit):
    X, y = data
    one, other = (LassoAlphaRegressor(share=0.01).fit_path(X, c * y, ALPHAS) for c in (1.0, unit))
    assert one.n_unsolved_ == other.n_unsolved_ == 0
    np.testing.assert_allclose(
        other.predict_path(X) / unit, one.predict_path(X), atol=1e-6 * np.abs(y).max()
    )


@pytest.mark.parametrize("share", [0.01, 0.1])
def test_lasso_alpha_with_rows_that_repeat(data, share):
    X, y = data
    for rows in (np.r_[:60, :5], np.r_[:60, :60]):
        model = LassoAlphaRegressor(share=share).fit_path(X[rows], y[rows], ALPHAS)
        assert len(model.rows_) == 60
        assert model.n_unsolved_ == 0
    model = LassoAlphaRegressor(share=share).fit_path(np.round(X), y, ALPHAS)
    assert len(model.rows_) < 50
    assert model.n_unsolved_ == 0


def test_lasso_alpha_where_there_is_nothing_to_find(data):
    X, y = data
    for rows, target in ((X, np.full(60, 3.0)), (np.ones((60, 3)), y)):
        model = LassoAlphaRegressor().fit(rows, target)
        np.testing.assert_allclose(model.predict(rows), target.mean())
        assert model.gaps_.tolist() == [0.0]
    path = LassoAlphaRegressor().fit_path(X, y, np.array([2.0, 1.0, 0.1, 0.1]))
    assert path.n_used_[:2].tolist() == [0, 0]
    assert path.n_used_[2] == path.n_used_[3] > 0


def test_points_between_corners():
    corners = np.array([[0.0, 2.0, 4.0]])
    found = _between(np.array([1.0, 0.5, 0.1]), corners, np.array([3.0, 1.0, 0.75, 0.3, 0.05]))
    np.testing.assert_allclose(found, [[0.0, 0.0, 1.0, 3.0, 4.0]])


def test_lasso_alpha_says_where_its_path_ended(data):
    X, y = data
    alphas = np.array([1e-4, 0.9])
    short = LassoAlphaRegressor(basis=Polynomial(2), max_steps=5)
    with pytest.warns(ConvergenceWarning, match=r"1 of 2 alphas .* max_steps=5 .* Take larger"):
        short.fit_path(X, y, alphas)
    assert (short.n_steps_, short.n_unsolved_) == (5, 1)
    assert short.reached_.tolist() == [False, True]
    # The gap bounds what is missing of the optimum, from which the whole path is not far.
    whole = LassoAlphaRegressor(basis=Polynomial(2)).fit_path(X, y, alphas)
    assert whole.n_unsolved_ == 0
    assert whole.reached_.all()
    K = whole.kernel_.matrix(X, X)
    C, r = K - K.mean(axis=0), y - y.mean()
    penalty = 1e-4 * np.abs(C.T @ r).max() / len(y)
    gone = [
        np.mean((r - C @ m._duals[:, 0]) ** 2) / 2 + penalty * np.abs(m._duals[:, 0]).sum()
        for m in (short, whole)
    ]
    assert 0.01 < (gone[0] - gone[1]) / (r @ r / 2 / len(y)) <= short.gaps_[0]
