"""Weights from the data, against the sum over all kernels written out."""

import itertools

import numpy as np
import pandas as pd
import pytest

from hikernel import HKLRegressor, hkl_path
from hikernel.bases import Categorical, OrthonormalPolynomial, RankPolynomial
from hikernel.columns import ColumnGrid
from hikernel.columns import weights as weights_module
from hikernel.columns.weights import LevelSizes

MEAN, SPREAD = 1.0, 0.75


def sizes_of(X, bases, weights=None):
    weights = np.ones(len(X)) if weights is None else weights
    fitted = [basis.fit(X[:, m], weights) for m, basis in enumerate(bases)]
    return fitted, LevelSizes(fitted, X, weights)


def written_out(fitted, X, level_weights, max_order):
    """Return K_ii: the sum over all nodes of |Phi_w(x_i)|^2 / prod_m (d_0 + ... + d_{w_m})^2."""
    total = np.zeros(len(X))
    for levels in itertools.product(*[range(basis.max_level + 1) for basis in fitted]):
        if max_order is not None and np.count_nonzero(levels) > max_order:
            continue
        term = np.ones(len(X))
        for m, level in enumerate(levels):
            if level > 0:
                phi = fitted[m].transform(X[:, m])[level]
                scale = sum(level_weights[m][: level + 1]) ** 2
                term *= np.sum(phi**2, axis=1) / scale
        total += term
    return total


def mixed(n=200):
    rng = np.random.default_rng(0)
    X = np.column_stack(
        [rng.standard_normal(n), rng.exponential(size=n), rng.integers(0, 3, n).astype(float)]
    )
    return X, [OrthonormalPolynomial(2), RankPolynomial(3), Categorical()]


@pytest.mark.parametrize("max_order", [None, 1, 2, 3])
@pytest.mark.parametrize("base", [1.5, 3.0])
def test_the_diagonal_is_that_of_the_sum_of_all_kernels(base, max_order):
    X, bases = mixed()
    fitted, sizes = sizes_of(X, bases)
    expected = np.log(written_out(fitted, X, sizes.weights(base), max_order))
    np.testing.assert_allclose(sizes.log_diagonal(base, max_order), expected, rtol=1e-12)


@pytest.mark.parametrize("max_order", [None, 2])
@pytest.mark.parametrize("p", [1, 8, 40])
def test_the_base_is_the_smallest_that_keeps_the_budget(p, max_order):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((300, p)) + rng.standard_normal((300, 1))
    _, sizes = sizes_of(X, [OrthonormalPolynomial(4)] * p)
    base = sizes.base(max_order)

    def keeps(b):
        logs = sizes.log_diagonal(b, max_order)
        upper = np.quantile(logs, 0.95, method="inverted_cdf")
        return logs.mean() <= MEAN and upper - logs.mean() <= SPREAD

    assert keeps(base)
    assert base == pytest.approx(np.sqrt(2.0)) or not keeps(0.999 * base)
    assert (base > 2.0) == (p > 1)


@pytest.mark.parametrize("share", [0.5, 0.2, 0.01])
def test_rare_levels_pay_for_themselves(share):
    n = 1000
    x = (np.arange(n) < share * n).astype(float)
    _, sizes = sizes_of(x[:, None], [OrthonormalPolynomial(1)])
    rare = np.sqrt((1.0 - share) / share)  # the standardised indicator where it is one
    assert sizes.weights(1.0)[0][1] == pytest.approx(max(1.0, rare))


def test_one_gross_row_changes_nothing_but_itself():
    rng = np.random.default_rng(2)
    X = rng.standard_normal((2000, 6))
    wild = X.copy()
    wild[7] = 60.0
    bases = [RankPolynomial(4)] * 6
    plain, gross = (sizes_of(table, bases)[1] for table in (X, wild))
    assert gross.base() == pytest.approx(plain.base(), rel=1e-2)
    for a, b in zip(gross.weights(2.0), plain.weights(2.0), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-2)


def test_a_weight_of_two_is_a_row_given_twice():
    X, bases = mixed(60)
    twice = np.random.default_rng(3).integers(1, 4, len(X))
    _, weighted = sizes_of(X, bases, twice.astype(float))
    _, repeated = sizes_of(np.repeat(X, twice, axis=0), bases)
    assert weighted.base() == pytest.approx(repeated.base(), rel=1e-8)
    for a, b in zip(weighted.weights(2.0), repeated.weights(2.0), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-8)


def test_many_rows_are_thinned_out(monkeypatch):
    X, bases = mixed(4000)
    _, full = sizes_of(X, bases)
    monkeypatch.setattr("hikernel.columns.weights._MOST_NUMBERS", 9000)
    _, thin = sizes_of(X, bases)
    assert len(thin.log_diagonal(2.0)) == 1000
    assert thin.base() == pytest.approx(full.base(), rel=0.1)


def test_the_budget_is_kept_on_fewer_rows_than_sizes_are_measured_on(monkeypatch):
    X, bases = mixed(3000)
    _, whole = sizes_of(X, bases)
    monkeypatch.setattr(weights_module, "_BUDGET_NUMBERS", 4000)
    _, thinned = sizes_of(X, bases)
    assert thinned.weights(1.0) == whole.weights(1.0)  # sizes alone
    assert len(thinned.log_diagonal(2.0)) < 600
    np.testing.assert_allclose(thinned.base(), whole.base(), rtol=0.1)


def test_known_sizes_are_those_computed_again():
    X, bases = mixed(500)
    known = {}
    fitted = [basis.fit(X[:, m], np.ones(500)) for m, basis in enumerate(bases)]
    first = LevelSizes(fitted, X, np.ones(500), known)
    assert sorted(known) == [(0, 1), (1, 1), (2, 1)]
    # Another basis for column 1: only its sizes are computed, whatever stands there.
    known[0, 1] = (fitted[0], np.full(len(first.weights(1.0)[0]), 7.0))
    richer = [fitted[0], OrthonormalPolynomial(6).fit(X[:, 1], np.ones(500)), fitted[2]]
    second = LevelSizes(richer, X, np.ones(500), known).weights(1.0)
    assert set(second[0]) == {7.0}
    assert second[1] == LevelSizes(richer, X, np.ones(500)).weights(1.0)[1]
    assert second[2] == first.weights(1.0)[2]


def test_a_fold_measures_its_own_sizes():
    X, _ = mixed(300)
    source = ColumnGrid()
    design = source.fit(source.read(X), np.ones(300))
    assert design.level_sizes
    assert design.subset(np.arange(100)).level_sizes == {}


def test_a_number_keeps_its_meaning():
    X, y = mixed()[0], mixed()[0][:, 0]
    model = HKLRegressor(alpha=0.1, weight_base=3.0).fit(X, y)
    assert model.graph_.level_weights[0] == (1.0, 3.0, 9.0, 27.0, 81.0)
    grid = HKLRegressor(alpha=0.1).fit(X, y).graph_
    assert grid.level_weights[0] != model.graph_.level_weights[0]


def test_bases_without_a_constant_level_have_the_base_of_the_paper():
    from hikernel.bases import Gaussian

    rng = np.random.default_rng(4)
    X = rng.standard_normal((50, 2))
    rows = ColumnGrid(basis=Gaussian(3)).read(X)
    design = ColumnGrid(basis=Gaussian(3)).fit(rows, np.ones(50))
    assert design.grid.level_weights[0][:3] == (1.0, 2.0, 4.0)


def test_anything_else_is_refused():
    with pytest.raises(ValueError, match='weight_base="auto"'):
        HKLRegressor(alpha=0.1, weight_base="auto ").fit(np.eye(4), np.arange(4.0))


def test_many_columns_with_rare_values_do_not_fill_the_hull_with_noise():
    rng = np.random.default_rng(5)
    rare = pd.DataFrame({f"rare{m}": np.where(rng.random(400) < 0.03, "b", "a") for m in range(60)})
    x = rng.standard_normal(400)
    y = x + 0.5 * rng.standard_normal(400) + 10.0 * (rng.random(400) < 0.01)
    table = rare.assign(x=x)
    found = {}
    for base in (2.0, "auto"):
        path = hkl_path(table, y, weight_base=base, n_alphas=12, eps=1e-4)
        found[base] = max(point.model.n_terms for point in path.points)
    assert found["auto"] < 0.7 * found[2.0]
