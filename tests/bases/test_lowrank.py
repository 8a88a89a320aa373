"""Pivoted Cholesky against dense linear algebra, and the bases that stand on it."""

import numpy as np
import pytest
from bases import oracles
from bases.cases import level_kernels, matern
from hypothesis import given, settings
from hypothesis import strategies as st

from hikernel.bases import Anova, KernelPCA, LowRankWarning, Spline, lowrank, pivoted_cholesky
from hikernel.bases.kernels import CubicSplineKernel, GaussianKernel, LaplaceKernel
from hikernel.bases.lowrank import leading_directions

KERNELS = [GaussianKernel(0.5), LaplaceKernel(1.0), CubicSplineKernel(), matern]


@pytest.fixture
def rng():
    return np.random.default_rng(17)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("tol", [1e-1, 1e-4])
def test_residual_trace_is_the_dense_one_and_reaches_the_tolerance(kernel, tol, rng):
    x, w = rng.normal(size=150), rng.uniform(0.1, 3.0, size=150)
    phi = pivoted_cholesky(kernel, x, w, tol)
    total = w @ np.diag(kernel(x, x))
    dense = w @ oracles.residual_diagonal(kernel, x, phi.pivots, x) / total
    assert phi.residual <= tol
    assert phi.residual == pytest.approx(dense, rel=1e-6)
    features = phi.transform(x)
    assert 1.0 - w @ (features**2).sum(axis=1) / total == pytest.approx(dense, rel=1e-6)
    # One pivot fewer would not have done.
    shorter = w @ oracles.residual_diagonal(kernel, x, phi.pivots[:-1], x) / total
    assert shorter > tol


@pytest.mark.parametrize("kernel", KERNELS)
def test_pivots_are_greedy(kernel, rng):
    x = rng.normal(size=60)
    phi = pivoted_cholesky(kernel, x, rng.uniform(0.01, 1.0, size=60), 1e-3)
    for k in range(1, phi.rank):
        residual = oracles.residual_diagonal(kernel, x, phi.pivots[:k], x)
        chosen = residual[np.flatnonzero(x == phi.pivots[k])[0]]
        assert chosen == pytest.approx(residual.max(), rel=1e-8)


@pytest.mark.parametrize("kernel", KERNELS)
def test_values_with_training_points_are_exact_for_any_new_point(kernel, rng):
    x = rng.normal(size=40)
    phi = pivoted_cholesky(kernel, x, np.ones(40), 1e-14)
    new = np.append(rng.uniform(-10.0, 10.0, size=30), [1e3, -1e3])
    expected = kernel(x, new)
    actual = phi.transform(x) @ phi.transform(new).T
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-6 * np.abs(expected).max())


@pytest.mark.parametrize("kernel", KERNELS)
def test_factor_is_the_cholesky_factor_of_the_pivots(kernel, rng):
    phi = pivoted_cholesky(kernel, rng.normal(size=50), np.ones(50), 1e-4)
    np.testing.assert_array_equal(phi.factor, np.tril(phi.factor))
    gram = kernel(phi.pivots, phi.pivots)
    np.testing.assert_allclose(phi.factor @ phi.factor.T, gram, atol=1e-12 * gram.max())


def test_duplicates_change_nothing(rng):
    x = rng.normal(size=50)
    counts = rng.integers(1, 6, size=50)
    once = pivoted_cholesky(GaussianKernel(1.0), x, counts.astype(float), 1e-8)
    repeated = np.repeat(x, counts)
    many = pivoted_cholesky(GaussianKernel(1.0), repeated, np.ones(repeated.size), 1e-8)
    np.testing.assert_array_equal(once.pivots, many.pivots)
    np.testing.assert_allclose(once.factor, many.factor, atol=1e-14)


def test_ties_are_evaluated_once():
    sizes = []

    def kernel(x, z):
        sizes.append(max(len(x), len(z)))
        return matern(x, z)

    x = np.repeat([0.0, 1.0, 2.0], 1000)
    assert pivoted_cholesky(kernel, x, np.ones(x.size), 1e-12).rank == 3
    assert max(sizes) == 3


def test_only_columns_are_evaluated_never_the_matrix():
    cells = []

    def kernel(x, z):
        cells.append(len(x) * len(z))
        return oracles.gaussian(x, z, 0.5)

    x = np.random.default_rng(1).normal(size=2000)
    phi = pivoted_cholesky(kernel, x, np.ones(2000), 1e-10)
    assert sum(cells) <= 2000 * (phi.rank + 64)
    assert max(cells) <= 64 * 64


def test_gaussian_kernel_has_tiny_rank(rng):
    x = rng.normal(size=2000)
    assert 10 < pivoted_cholesky(GaussianKernel(0.5), x, np.ones(2000), 1e-10).rank < 40


def test_first_pivot_is_where_it_starts(rng):
    x = rng.normal(size=30)
    for row in (0, 7, 29):
        assert pivoted_cholesky(matern, x, np.ones(30), 1e-6, first_pivot=row).pivots[0] == x[row]
    # The kernel vanishes at 0, which cannot be a pivot: the greedy choice takes over.
    x[4] = 0.0
    greedy = pivoted_cholesky(CubicSplineKernel(), x, np.ones(30), 1e-6)
    skipped = pivoted_cholesky(CubicSplineKernel(), x, np.ones(30), 1e-6, first_pivot=4)
    np.testing.assert_array_equal(greedy.pivots, skipped.pivots)
    with pytest.raises(ValueError, match="row from 0 to 29"):
        pivoted_cholesky(matern, x, np.ones(30), 1e-6, first_pivot=30)


@pytest.mark.parametrize("basis", [Anova, Spline, KernelPCA])
def test_bases_count_the_first_pivot_in_training_rows(basis, rng):
    x = np.repeat(rng.normal(size=12), 2)
    weights = np.ones(24)
    weights[3] = 0.0
    fitted = basis(first_pivot=10).fit(x, weights)
    assert fitted.low_rank.pivots[0] == fitted.scaler.transform(x)[10]
    with pytest.raises(ValueError, match=r"first_pivot=24.*smaller"):
        basis(first_pivot=24).fit(x)
    with pytest.raises(ValueError, match=r"first_pivot=3 .*zero weight"):
        basis(first_pivot=3).fit(x, weights)


@pytest.mark.parametrize("basis", [Anova(max_rank=3), Spline(max_rank=3), KernelPCA(max_rank=3)])
def test_a_rank_limit_that_bites_warns(basis, rng):
    x = rng.normal(size=100)
    with pytest.warns(LowRankWarning, match=r"stopped at 3 columns.*Raise max_rank or tol"):
        fitted = basis.fit(x)
    assert fitted.low_rank.rank == 3
    # No warning when three columns are all there is: warnings are errors here.
    assert basis.fit(np.repeat([0.0, 1.0, 3.0], 5)).low_rank.rank == 3


def test_no_limit_still_protects_the_machine_from_rough_kernels(rng, monkeypatch):
    assert lowrank.DEFAULT_MAX_RANK == 1000
    monkeypatch.setattr(lowrank, "DEFAULT_MAX_RANK", 50)
    x = rng.normal(size=120)
    with pytest.warns(LowRankWarning, match=r"50 columns.*smoother kernel"):
        assert pivoted_cholesky(LaplaceKernel(1.0), x, np.ones(120), 1e-10).rank == 50
    assert pivoted_cholesky(LaplaceKernel(1.0), x, np.ones(120), 1e-10, max_rank=120).rank == 120


def test_a_tolerance_below_rounding_stops_at_rounding(rng):
    x = rng.normal(size=500)
    phi = pivoted_cholesky(GaussianKernel(0.5), x, np.ones(500), 1e-30)
    assert phi.factor.diagonal().min() ** 2 > 4 * np.finfo(float).eps
    np.testing.assert_allclose((phi.transform(x) ** 2).sum(axis=1), 1.0, atol=1e-12)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(-40, 40), min_size=1, max_size=25),
    st.sampled_from(KERNELS),
    st.sampled_from([1e-2, 1e-6, 1e-10]),
)
def test_any_points_reach_the_tolerance(values, kernel, tol):
    x = np.array(values) / 7.0
    phi = pivoted_cholesky(kernel, x, np.ones(x.size), tol)
    diagonal = np.diag(kernel(x, x))
    kept = (phi.transform(x) ** 2).sum(axis=1)
    assert diagonal.sum() - kept.sum() <= (tol + 1e-13) * diagonal.sum()
    assert phi.rank <= np.unique(x).size


def asymmetric(x, z):
    return np.exp(-((x[:, None] - 0.9 * z[None, :]) ** 2))


def indefinite(x, z):
    return 1.0 - (x[:, None] - z[None, :]) ** 2


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (asymmetric, "not symmetric"),
        (indefinite, "not positive semidefinite"),
        (lambda x, z: -oracles.gaussian(x, z, 1.0), "not positive semidefinite"),
        (lambda x, z: -np.abs(x[:, None] - z[None, :]), "not positive semidefinite"),
        (lambda x, z: np.full((len(x), len(z)), np.nan), "NaN or infinity"),
        (lambda x, z: np.exp(-((x - z) ** 2)), r"shape|failed"),
        (lambda x, z: oracles.gaussian(x, z, 1.0)[:, :-1], r"Broadcast x\[:, None\]"),
        (lambda x, z: "no numbers", "failed on points"),
        (lambda x: x, "failed on points"),
        (lambda x, z: np.zeros((len(x), len(z))), "zero on all training points"),
        (lambda x, z: 5e-324 * np.equal.outer(x, z), "multiply it by a constant"),
        (lambda x, z: 1e-310 * oracles.gaussian(x, z, 1.0), "multiply it by a constant"),
    ],
)
def test_a_callable_that_is_no_kernel_is_refused(kernel, message, rng):
    with pytest.raises(ValueError, match=message):
        KernelPCA(kernel).fit(rng.normal(size=80))


def test_a_bad_diagonal_method_is_refused(rng):
    class Kernel:
        def __call__(self, x, z):
            return matern(x, z)

        def diagonal(self, x):
            return np.ones(3)

    with pytest.raises(ValueError, match="must return 80 finite numbers"):
        KernelPCA(Kernel()).fit(rng.normal(size=80))


def test_a_kernel_that_fails_on_new_points_says_so(rng):
    def linear_overflow(x, z):
        return np.where(np.abs(x[:, None] * z[None, :]) < 100.0, np.outer(x, z), np.inf)

    fitted = KernelPCA(linear_overflow, degree=1).fit(rng.normal(size=20))
    with pytest.raises(ValueError, match="NaN or infinity"):
        fitted.transform([1e6])


@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize("degree", [1, 3, 30])
def test_kernel_pca_levels_sum_to_the_whole_kernel(degree, constant, rng):
    x = rng.normal(size=100)
    fitted = KernelPCA(degree=degree, constant_level=constant).fit(x)
    z = oracles.standardise(x, np.ones(100), x)
    total = sum(level_kernels(fitted, x)[constant:])
    np.testing.assert_allclose(total, oracles.gaussian(z, z, 0.5), atol=1e-8)
    # Degree 30 exceeds the rank, so that no block remains and each direction has its level.
    assert (fitted.widths[-1] > 1) is (degree < 30)
    assert (fitted.max_level == degree) is (degree < 30)


def test_kernel_pca_directions_are_uncorrelated_and_ordered(rng):
    x, w = rng.normal(size=200), rng.uniform(0.5, 2.0, size=200)
    features = np.hstack(KernelPCA(degree=4).fit(x, w).transform(x))
    moment = (features.T * w / w.sum()) @ features
    variances = np.diag(moment)
    np.testing.assert_allclose(moment, np.diag(variances), atol=1e-12)
    assert (np.diff(variances) < 1e-14).all()


def test_a_finite_rank_kernel_leaves_no_block(rng):
    fitted = KernelPCA(lambda x, z: 1.0 + np.outer(x, z), degree=4).fit(rng.normal(size=50))
    assert fitted.widths == (1, 1)


@pytest.mark.parametrize("tol", [1e-1, 1e-3, 1e-9])
def test_leading_directions_are_the_fewest(tol, rng):
    q, _ = np.linalg.qr(rng.normal(size=(12, 12)))
    eigenvalues = 10.0 ** -np.arange(12.0)
    directions, neglected = leading_directions((q * eigenvalues) @ q.T, tol)
    kept = directions.shape[1]
    assert eigenvalues[kept:].sum() <= tol * eigenvalues.sum() < eigenvalues[kept - 1 :].sum()
    assert neglected == pytest.approx(eigenvalues[kept:].sum() / eigenvalues.sum(), abs=1e-14)
    np.testing.assert_allclose(np.abs(directions.T @ q[:, :kept]), np.eye(kept), atol=1e-6)


@pytest.mark.parametrize(
    ("basis", "arguments", "message"),
    [
        (KernelPCA, {"kernel": "gausian"}, "Did you mean 'gaussian'"),
        (KernelPCA, {"kernel": "zzz"}, "choose one of gaussian, laplace"),
        (KernelPCA, {"kernel": 3}, "or a callable"),
        (KernelPCA, {"degree": 0}, "degree must be an integer >= 1"),
        (KernelPCA, {"b": -1}, "b .*positive"),
        (KernelPCA, {"constant_level": "yes"}, "True or False"),
        (KernelPCA, {"max_rank": 0}, "max_rank must be an integer >= 1.*None"),
        (Anova, {"b": np.nan}, "b .*positive"),
        (Anova, {"tol": -1e-3}, "tol .*between 0 and 1"),
        (Anova, {"first_pivot": -1}, "first_pivot must be an integer >= 0.*None"),
        (Spline, {"tol": 2}, "tol .*between 0 and 1"),
        (Spline, {"max_rank": 2.5}, "max_rank must be an integer >= 1"),
        (Spline, {"first_pivot": True}, "first_pivot must be an integer >= 0"),
    ],
)
def test_hyperparameters_are_checked(basis, arguments, message):
    with pytest.raises(ValueError, match=message):
        basis(**arguments)
