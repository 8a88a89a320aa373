"""The protocol of the tables against the same numbers computed by hand."""

from __future__ import annotations

import gzip
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import KFold, StratifiedKFold

from hikernel.experiments import settings
from hikernel.experiments.evaluation import path_errors, run_job, split
from hikernel.experiments.greedy import GreedyClassifier, GreedyRegressor
from hikernel.experiments.l2 import L2Regressor
from hikernel.experiments.paper_data import Dataset, load
from hikernel.experiments.settings import CV_FOLDS, GREEDY_KERNELS, GREEDY_RIDGE, L2_GRID
from hikernel.experiments.store import Job, Result
from hikernel.experiments.tables import Cell

pytestmark = pytest.mark.slow


def save(folder, name, X, y):
    table = pd.DataFrame(X, columns=[f"x{m}" for m in range(X.shape[1])]).assign(target=y)
    with gzip.open(folder / f"{name}.csv.gz", "wt") as file:
        table.to_csv(file, index=False)


@pytest.fixture
def rows():
    rng = np.random.default_rng(5)
    X = rng.standard_normal((90, 3))
    return X, X[:, 0] - X[:, 1] * X[:, 2] + 0.3 * rng.standard_normal(90)


def dataset(task, y):
    return Dataset("d", task, pd.DataFrame(), np.zeros((len(y), 1)), np.asarray(y, dtype=float))


def test_regression_errors_are_over_the_variance_of_all_rows():
    data = dataset("regression", [0.0, 0.0, 4.0, 8.0])
    f, y = np.array([[5.0, 4.0], [5.0, 8.0]]), np.array([4.0, 8.0])
    # Squared errors 1 and 9, mean 5; the variance of 0, 0, 4, 8 is 11 (of 4, 8 it is 4).
    np.testing.assert_allclose(path_errors(data, f, y), [500.0 / 11.0, 0.0])


def test_classification_errors_are_wrong_signs():
    data = dataset("classification", [0.0, 1.0, 1.0, 1.0])
    f = np.array([[-1.0, 2.0], [0.0, 1.0], [3.0, -1.0], [0.1, 1.0]])
    # A decision value of zero is the first class.
    np.testing.assert_allclose(path_errors(data, f, data.y), [25.0, 50.0])


def test_the_criterion_of_regressions_is_the_squared_error_of_folds(tmp_path, rows):
    save(tmp_path, "boston", *rows)
    job = Job("boston", "pol4", "greedy", 3)
    found = run_job(job, tmp_path)
    data = load("boston", tmp_path)
    train, test = split(data, 3)
    basis = settings.kernel_for("boston", "pol4").make_basis()
    expected = np.zeros(GREEDY_KERNELS + 1)
    for fit, held in KFold(CV_FOLDS, shuffle=True, random_state=3).split(train):
        model = GreedyRegressor(GREEDY_KERNELS, basis=basis, ridge=GREEDY_RIDGE)
        model.fit(data.X[train[fit]], data.y[train[fit]])
        f = model.predict_path(data.X[train[held]])
        assert f.shape[1] == GREEDY_KERNELS + 1
        expected += np.mean((f - data.y[train[held], None]) ** 2, axis=0) / CV_FOLDS
    np.testing.assert_allclose(found.cv, expected, rtol=1e-6)
    model = GreedyRegressor(GREEDY_KERNELS, basis=basis, ridge=GREEDY_RIDGE)
    f = model.fit(data.X[train], data.y[train]).predict_path(data.X[test])
    errors = 100 * np.mean((f - data.y[test, None]) ** 2, axis=0) / np.var(data.y)
    np.testing.assert_allclose(found.test, errors, rtol=1e-6)


def test_the_criterion_of_classes_is_the_log_loss_of_stratified_folds(tmp_path, rows):
    X, y = rows
    save(tmp_path, "magic04", X, np.where(y > 0.3, "h", "g"))
    found = run_job(Job("magic04", "pol4", "greedy", 1), tmp_path)
    data = load("magic04", tmp_path)
    train, _ = split(data, 1)
    basis = settings.kernel_for("magic04", "pol4").make_basis()
    folds = StratifiedKFold(CV_FOLDS, shuffle=True, random_state=1)
    expected = np.zeros(5)  # with more kernels probabilities become 0 and 1
    for fit, held in folds.split(train, data.y[train]):
        model = GreedyClassifier(GREEDY_KERNELS, basis=basis, ridge=GREEDY_RIDGE)
        f = model.fit(data.X[train[fit]], data.y[train[fit]]).predict_path(data.X[train[held]])
        positive = data.y[train[held], None] == 1.0
        p = 1.0 / (1.0 + np.exp(-f[:, :5]))
        expected += -np.mean(np.log(np.where(positive, p, 1.0 - p)), axis=0) / CV_FOLDS
    np.testing.assert_allclose(found.cv[:5], expected, rtol=1e-5)


def test_l2_regression_is_held_out_row_by_row(tmp_path, rows):
    save(tmp_path, "boston", *rows)
    found = run_job(Job("boston", "pol4", "L2", 0), tmp_path)
    data = load("boston", tmp_path)
    train, _ = split(data, 0)
    kernel = settings.kernel_for("boston", "pol4")
    model = L2Regressor(basis=kernel.make_basis(), share=kernel.share, decay=kernel.decay)
    model.fit(data.X[train], data.y[train])
    F, y, n = model.map_.features, data.y[train], len(train)
    for k in (0, 9, 15):
        errors = []
        for i in range(n):
            kept = np.arange(n) != i
            A, b = F[kept] - F[kept].mean(axis=0), y[kept].mean()
            strength = L2_GRID[k] * n * model.map_.mean_square
            coef = np.linalg.solve(A.T @ A + strength * np.eye(F.shape[1]), A.T @ (y[kept] - b))
            errors.append(y[i] - b - (F[i] - F[kept].mean(axis=0)) @ coef)
        assert found.cv[k] == pytest.approx(np.mean(np.square(errors)), rel=1e-5)


@pytest.mark.parametrize("method", ["HKL", "L2", "greedy", "MKL"])
def test_the_test_half_cannot_reach_the_criterion(tmp_path, monkeypatch, rows, method):
    X, y = rows
    short = replace(settings.KERNELS["pol4"], alphas=np.array([0.1, 0.001]))
    monkeypatch.setitem(settings.KERNELS, "pol4", short)
    job = Job("boston", "pol4", method, 2)
    save(tmp_path, "boston", X, y)
    before = run_job(job, tmp_path)
    _, test = split(load("boston", tmp_path), 2)
    scrambled = y.copy()
    scrambled[test] = 100.0 * np.random.default_rng(0).standard_normal(len(test))
    save(tmp_path, "boston", X, scrambled)
    after = run_job(job, tmp_path)
    assert after.cv == before.cv
    assert after.terms == before.terms
    assert after.test != before.test


def test_a_job_says_where_it_comes_from_and_how_far_it_went(tmp_path, monkeypatch, rows):
    short = replace(settings.KERNELS["pol4"], alphas=np.array([0.1, 0.01, 1e-6, 1e-12]))
    monkeypatch.setitem(settings.KERNELS, "pol4", short)
    monkeypatch.setattr("hikernel.experiments.methods.MAX_KERNELS", 8)
    save(tmp_path, "boston", *rows)
    found = run_job(Job("boston", "pol4", "HKL", 0), tmp_path)
    assert found.source == "file"
    assert found.n_vertices == "10^2"  # 5^3
    assert len(found.settings) == 12
    assert 0 < found.reached < 4
    assert found.test[found.reached - 1] == found.test[-1]
    assert run_job(Job("boston", "pol4", "L2", 0), tmp_path).reached == len(L2_GRID)


def test_deviations_are_of_the_errors_that_were_picked():
    def made(seed, test, cv):
        return Result(Job("boston", "pol4", "HKL", seed), 9, 3, [1.0, 0.1], test, cv, [], 1.0)

    cell = Cell.of(
        [
            made(0, [10.0, 20.0], [1.0, 2.0]),
            made(1, [12.0, 26.0], [2.0, 1.0]),
            made(2, [14.0, 90.0], [1.0, 2.0]),
        ]
    )
    assert (cell.best, cell.best_std) == (12.0, 2.0)
    assert cell.honest == pytest.approx((10 + 26 + 14) / 3)
    assert cell.honest_std == pytest.approx(np.std([10.0, 26.0, 14.0], ddof=1))
