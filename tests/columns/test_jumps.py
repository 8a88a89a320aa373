"""Cuts where y jumps: found alone and in products, whatever the scale, order and names."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from hikernel import HKLRegressor
from hikernel.bases.branches import FittedBranches
from hikernel.columns import ColumnGrid, jumps
from hikernel.columns.jumps import most_massive, split_masses
from hikernel.losses import SquaredError
from hikernel.selection import TrainingProblem


def best_threshold(masses, m):
    thresholds, mass = masses[m]
    return thresholds[np.argmax(mass)]


def test_the_mass_of_a_step_lies_at_its_threshold():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(400, 3))
    y = np.where(X[:, 1] > 0.7, 1.0, 0.0)
    masses = split_masses(X, np.ones(400), y - y.mean(), [])
    _, mass = masses[1]
    below, above = np.sort(X[:, 1])[[np.sum(X[:, 1] <= 0.7) - 1, np.sum(X[:, 1] <= 0.7)]]
    assert best_threshold(masses, 1) == 0.5 * below + 0.5 * above
    assert mass.max() > 0.99 * sum(np.sum(mass) for _, mass in masses)
    # Least squares boosting: the residuals shrink by the rate, their squares sum up.
    total = np.var(y) * np.sum(0.9 ** (2 * np.arange(100)))
    np.testing.assert_allclose(mass.max(), total, rtol=1e-6)


def test_a_jump_that_matters_only_in_a_product_is_found():
    rng = np.random.default_rng(1)
    X = rng.uniform(size=(600, 4))
    y = np.where((X[:, 0] > 0.35) & (X[:, 2] > 0.6), 1.0, 0.0)
    masses = split_masses(X, np.ones(600), y - y.mean(), [])
    assert abs(best_threshold(masses, 0) - 0.35) < 0.01
    assert abs(best_threshold(masses, 2) - 0.6) < 0.01
    sums = [np.sum(mass) for _, mass in masses]
    assert min(sums[0], sums[2]) > 20 * max(sums[1], sums[3])


def test_scales_do_not_matter_nor_does_the_order_of_columns():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(300, 4))
    r = np.sign(X[:, 0]) + X[:, 1] * (X[:, 2] > 0.5)
    plain = split_masses(X, np.ones(300), r, [])
    order = [2, 0, 3, 1]
    other = split_masses(np.exp(X[:, order]), np.ones(300), r, [])
    for k, m in enumerate(order):
        np.testing.assert_allclose(other[k][1], plain[m][1], atol=1e-12)


def test_integer_weights_are_repeated_rows_up_to_ties():
    """Two columns that part a small node in the same way gain the same, but for rounding."""
    rng = np.random.default_rng(3)
    X = rng.integers(0, 12, (150, 3)).astype(float)
    r = 1.0 * (X[:, 0] > 4) + 0.1 * X[:, 1] * X[:, 2] + rng.normal(size=150)
    counts = rng.integers(1, 4, 150)
    weighted = split_masses(X, counts.astype(float), r, [])
    repeated = split_masses(
        np.repeat(X, counts, 0), np.ones(counts.sum()), np.repeat(r, counts), []
    )
    total = sum(np.sum(mass) for _, mass in weighted)
    for (a, mass), (b, again) in zip(weighted, repeated, strict=True):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_allclose(mass, again, atol=0.005 * total)
        assert np.argmax(mass) == np.argmax(again)


def test_codes_of_categories_have_no_order_and_no_thresholds():
    rng = np.random.default_rng(4)
    codes = rng.integers(0, 6, 300).astype(float)
    x = rng.uniform(size=300)
    r = np.where(np.isin(codes, [1, 4]) & (x > 0.4), 1.0, 0.0)
    renamed = np.array([3.0, 5.0, 0.0, 1.0, 4.0, 2.0])[codes.astype(int)]
    found = [split_masses(np.c_[c, x], np.ones(300), r, [0]) for c in (codes, renamed)]
    assert found[0][0][0].size == found[0][0][1].size == 0
    np.testing.assert_allclose(found[0][1][1], found[1][1][1], atol=1e-12)
    assert abs(best_threshold(found[0], 1) - 0.4) < 0.02


def test_missing_values_are_no_threshold():
    rng = np.random.default_rng(5)
    x = rng.uniform(size=200)
    x[::3] = np.nan
    masses = split_masses(x[:, None], np.ones(200), np.where(np.isnan(x), 1.0, 0.0), [])
    assert np.sum(masses[0][1]) < 1e-12
    assert not np.any(np.isnan(masses[0][0]))


def test_several_residuals_at_once():
    rng = np.random.default_rng(6)
    X = rng.uniform(size=(300, 2))
    r = np.column_stack([X[:, 0] > 0.3, X[:, 1] > 0.8]).astype(float)
    masses = split_masses(X, np.ones(300), r, [])
    assert abs(best_threshold(masses, 0) - 0.3) < 0.02
    assert abs(best_threshold(masses, 1) - 0.8) < 0.02


@pytest.mark.parametrize("seed", range(5))
def test_the_most_massive_windows_one_after_another(seed):
    rng = np.random.default_rng(seed)
    shares = np.sort(rng.uniform(size=60))
    mass = rng.exponential(size=60) ** 3
    left, expected = mass.copy(), []
    for _ in range(7):
        near = np.abs(shares[:, None] - shares) <= 0.5 * jumps._WINDOW
        inside = near @ left
        i = int(np.argmax(inside))
        if inside[i] <= 2.0:
            break
        members = np.flatnonzero(near[i])
        halves = np.cumsum(left[members])
        expected.append(int(members[np.flatnonzero(halves >= 0.5 * halves[-1])[0]]))
        left[members] = 0.0
    assert most_massive(shares, mass, 2.0, 7) == expected
    assert most_massive(shares, mass, 0.0, 3) == most_massive(shares, mass, 0.0, 5)[:3]
    assert most_massive(shares[:0], mass[:0], 0.0, 5) == []


def problem_of(X, y):
    source = ColumnGrid(basis="auto+steps")
    return TrainingProblem.make(source, source.read(X), y, np.ones(len(y)), SquaredError())


def step_cuts(problem):
    return [
        basis.branches[1].cuts.tolist() if isinstance(basis, FittedBranches) else []
        for basis in problem.design.bases
    ]


def test_a_fold_does_not_know_where_its_test_rows_jump():
    rng = np.random.default_rng(7)
    X = rng.uniform(size=(300, 3))
    y = 1.0 * (X[:, 0] > 0.5) + X[:, 1] + 0.1 * rng.normal(size=300)
    train = np.arange(200)
    lied = y.copy()
    lied[200:] += 9.0 * (X[200:, 2] > 0.9)
    folds = [problem_of(X, target).subset(train) for target in (y, lied)]
    assert step_cuts(folds[0]) == step_cuts(folds[1]) == step_cuts(problem_of(X[:200], y[:200]))
    assert folds[0].graph == folds[1].graph
    whole = problem_of(X, lied)
    assert whole.graph != folds[1].graph
    assert folds[0].engine.n_rows == 200


def test_columns_without_a_jump_have_no_steps():
    rng = np.random.default_rng(8)
    X = pd.DataFrame(rng.uniform(size=(400, 3)), columns=["a", "b", "c"])
    y = 3.0 * (X["b"] > 0.25) + 0.001 * X["a"]
    model = HKLRegressor(1e-3, basis="auto+steps").fit(X, y)
    assert model.bases_["basis"].tolist() == ["orthonormal", "orthonormal+steps", "orthonormal"]
    assert model.bases_["why"][0] == "number: polynomials"
    assert model.bases_["why"][1] == "number: polynomials, and steps where y jumps"
    assert "b > 0.25" in model.terms_["term"].tolist()


def test_jumps_alone_make_no_other_cuts():
    rng = np.random.default_rng(9)
    X = rng.uniform(size=(400, 2))
    y = 1.0 * (X[:, 0] > 0.25) * (X[:, 1] > 0.6) + 0.05 * rng.normal(size=400)
    jumps_only = HKLRegressor(1e-3, basis="auto+jumps").fit(X, y)
    assert jumps_only.bases_["basis"].tolist() == ["orthonormal+jumps"] * 2
    assert jumps_only.bases_["levels"].tolist() == [5, 5]
    halved = HKLRegressor(1e-3, basis="auto+steps").fit(X, y)
    assert halved.bases_["levels"].tolist() == [8, 8]
    names = jumps_only.terms_["term"].str.replace(r"0\.\d+", "cut", regex=True)
    assert "x0 > cut * x1 > cut" in names.tolist()
