"""The contract of a basis, checked on every one of them."""

import dataclasses
import math
import pickle

import numpy as np
import pytest
from bases import oracles
from bases.cases import CASES, assert_same_kernels, every_case, level_kernels

from hikernel.bases import BASES, Standardizer, make_basis
from hikernel.bases.steps import FittedSteps

BUMPS = {"gaussian", "gaussian-cut", "kernel_pca", "kernel_pca-laplace", "kernel_pca-callable"}


@pytest.fixture
def rng():
    return np.random.default_rng(20080911)


@pytest.fixture
def x(rng):
    return 5.0 + 3.0 * rng.normal(size=60)


def inside(rng, x, n=25):
    """New points in the range of ``x``."""
    return rng.uniform(x.min(), x.max(), size=n)


def test_every_registered_basis_is_a_case():
    # Branches are made of other bases, and so have no name by which a user could ask for them.
    assert {case.basis.name for case in CASES.values()} == {*BASES, "branches", "periodic"}


@every_case
def test_widths_describe_transform(case, x, rng):
    fitted = case.basis.fit(x)
    for points in (x, inside(rng, x), x[:1], x[:0]):
        levels = fitted.transform(points)
        assert [level.shape for level in levels] == [(len(points), r) for r in fitted.widths]
        assert all(level.dtype == np.float64 for level in levels)
    assert (
        fitted.max_level == len(fitted.widths) - 1 == getattr(case.basis, "degree", len(levels) - 1)
    )


@pytest.mark.parametrize("name", CASES)
def test_constant_level_says_whether_level_zero_is_one(name, x, rng):
    fitted = CASES[name].basis.fit(x)
    assert fitted.constant_level is (name not in BUMPS)
    level = fitted.transform(inside(rng, x))[0]
    assert np.array_equal(level, np.ones_like(level)) is fitted.constant_level


@every_case
@pytest.mark.parametrize("weighted", [False, True])
def test_levels_are_the_exact_kernels_on_training_rows_and_new_points(case, weighted, x, rng):
    weights = rng.uniform(0.2, 3.0, size=x.size) if weighted else np.ones(x.size)
    fitted = case.basis.fit(x, weights if weighted else None)
    new = inside(rng, x)
    train_z, new_z = x, new
    if case.basis.standardises:
        train_z, new_z = (oracles.standardise(x, weights, points) for points in (x, new))
    w = weights / weights.sum()
    for points, z, tol in ((x, train_z, case.tol), (new, new_z, case.new_tol)):
        expected = case.exact(train_z, z, train_z, w)
        assert_same_kernels(level_kernels(fitted, x, points), expected, tol)


@every_case
@pytest.mark.parametrize("shift", [0.0, 1e6])
def test_beyond_its_domain_a_point_counts_as_the_nearer_end(case, shift, x, rng):
    weights = rng.uniform(0.2, 3.0, size=x.size)
    weights[[x.argmin(), x.argmax()]] = 0.0
    kept = (x + shift)[weights > 0]
    fitted = case.basis.fit(x + shift, weights)
    if not case.range_only:
        assert fitted.domain is None
        return
    ends = kept.min(), kept.max()
    np.testing.assert_allclose(fitted.domain, ends, rtol=1e-15, atol=1e-14)
    below, above = x.min() + shift, x.max() + shift
    points = np.array([below, above, ends[0] - 1e-3, ends[1] + 1e-3, -1e308, 1e308])
    at_ends = fitted.transform(np.tile(ends, 3))
    for level, end in zip(fitted.transform(points), at_ends, strict=True):
        np.testing.assert_array_equal(level, end)
    np.testing.assert_array_equal(fitted.argument(points), fitted.argument(np.tile(ends, 3)))
    assert fitted.argument(ends[:1]) < fitted.argument(ends[1:])


@every_case
def test_level_polynomials_reproduce_the_levels_everywhere(case, x, rng):
    fitted = case.basis.fit(x)
    new = np.concatenate([inside(rng, x), [x.min() - 9.0, x.max() + 9.0]])
    for j, level in enumerate(fitted.transform(new)):
        coefficients = fitted.level_polynomial(j)
        if coefficients is None:
            assert not case.range_only or isinstance(fitted.branch(j)[0], FittedSteps)
            continue
        values = np.polynomial.Polynomial(coefficients)(fitted.argument(new))
        tol = 1e-12 * max(1.0, np.abs(level).max())
        np.testing.assert_allclose(level[:, 0], values, rtol=0, atol=tol)


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.new_tol > 1e-11])
def test_a_tighter_tolerance_gives_the_exact_kernel_at_new_points(name, x, rng):
    case = CASES[name]
    fitted = dataclasses.replace(case.basis, tol=1e-15).fit(x)
    new, w = inside(rng, x), np.ones(x.size)
    train_z, new_z = (oracles.standardise(x, w, points) for points in (x, new))
    expected = case.exact(train_z, new_z, train_z, w / x.size)
    assert_same_kernels(level_kernels(fitted, x, new), expected, 2e-9)


@every_case
def test_integer_weights_equal_repeated_rows(case, x, rng):
    counts = rng.integers(1, 5, size=x.size)
    weighted = case.basis.fit(x, counts)
    repeated = case.basis.fit(rng.permutation(np.repeat(x, counts)))
    points = np.append(inside(rng, x), x[:10])
    assert weighted.widths == repeated.widths
    kernels = level_kernels(weighted, points)
    assert_same_kernels(kernels, level_kernels(repeated, points), 1e-9)
    unweighted = level_kernels(case.basis.fit(x), points)
    assert not np.allclose(sum(kernels), sum(unweighted), rtol=1e-3)


@every_case
def test_only_relative_weights_matter(case, x, rng):
    weights = rng.uniform(0.5, 2.0, size=x.size)
    new = inside(rng, x)
    reference = level_kernels(case.basis.fit(x, weights), new)
    for factor in (1e-306, 8e307):
        scaled = level_kernels(case.basis.fit(x, weights * factor), new)
        assert_same_kernels(scaled, reference, 1e-9)


@every_case
def test_rows_of_zero_weight_have_no_influence(case, x, rng):
    outliers = np.array([1e6, -1e200, 1e308])
    weights = np.append(np.ones(x.size), np.zeros(3))
    dropped = case.basis.fit(np.append(x, outliers), weights)
    plain = case.basis.fit(x)
    for left, right in zip(dropped.transform(x), plain.transform(x), strict=True):
        np.testing.assert_array_equal(left, right)


@every_case
@pytest.mark.parametrize(
    ("scale", "shift"), [(1e150, 0.0), (1e-150, 0.0), (3e-310, 0.0), (1e307, 0.0), (1.0, 1e4)]
)
def test_scale_and_shift_of_the_column_do_not_matter(case, scale, shift, x, rng):
    # 3e-310 leaves subnormal numbers with some 14 bits, so x is rounded to what survives there.
    if scale == 3e-310:
        grid = 2.0**-10
        x, scale = np.round(x / grid) * grid, 2.0**-1030
    new = rng.choice(x, size=25)
    reference = level_kernels(case.basis.fit(x), new)
    basis = case.basis
    if basis.name == "periodic":  # a period has the units of the column
        basis = dataclasses.replace(basis, period=basis.period * scale)
    moved = level_kernels(basis.fit(x * scale + shift), new * scale + shift)
    assert_same_kernels(moved, reference, 1e-8)


@every_case
def test_the_levels_that_stay_are_the_same_to_the_last_bit(case, x, rng):
    fitted = case.basis.fit(x)
    new = np.append(rng.normal(size=30), np.nan)
    for level in range(1, fitted.max_level + 1):
        shorter = fitted.up_to(level)
        assert level <= shorter.max_level <= fitted.max_level
        for ours, theirs in zip(shorter.transform(new), fitted.transform(new), strict=False):
            np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("name", ["orthonormal", "asinh", "rank"])
def test_levels_that_cost_time_are_left_out(name, x):
    assert make_basis(name, degree=4).fit(x).up_to(2).max_level == 2


@every_case
@pytest.mark.parametrize(
    "column", [[0.1] * 7, [0.0, 0.0], [1e308] * 3, [5e-324] * 2, [-2.5], [1.0, 1.0 + 4e-16]]
)
def test_a_constant_column_has_level_zero_only(case, column):
    fitted = case.basis.fit(column)
    assert fitted.widths == (1,)
    assert fitted.constant_level is True
    assert fitted.max_level == 0
    (level,) = fitted.transform([-3.0, 0.0, 1e308])
    np.testing.assert_array_equal(level, np.ones((3, 1)))


@every_case
def test_a_column_of_two_values(case):
    x = np.repeat([3.0, 8.0], [5, 2])
    fitted = case.basis.fit(x)
    weights = np.full(7, 1 / 7)
    z = np.array([3.0, 8.0])
    if case.basis.name != "periodic":
        z = oracles.standardise(x, weights, z)
    assert max(fitted.widths[1:]) <= 2
    kernels = level_kernels(fitted, np.array([3.0, 8.0]))
    # Decompositions that depend on the distribution have only as many levels as it allows.
    if case.basis.name in {"orthonormal", "asinh"}:
        assert fitted.widths == (1, 1)
        assert_same_kernels(kernels, [np.ones((2, 2)), np.outer(z, z)], 1e-12)
    elif case.basis.name == "kernel_pca":
        assert sum(fitted.widths) == 2 + fitted.constant_level
        full = case.exact(z, z, z, np.array([5, 2]) / 7)[fitted.constant_level :]
        assert_same_kernels([sum(kernels[fitted.constant_level :])], [sum(full)], 1e-9)
    else:
        assert_same_kernels(kernels, case.exact(z, z, z, np.array([5, 2]) / 7), case.tol)


@every_case
@pytest.mark.parametrize("n_values", [2, 3, 5])
def test_no_level_is_empty(case, n_values, rng):
    # There are fewer directions than levels that were asked for.
    column = np.repeat(rng.standard_normal(n_values), 3)
    fitted = case.basis.fit(column)
    assert min(fitted.widths) >= 1
    assert [level.shape[1] for level in fitted.transform(column)] == list(fitted.widths)


@every_case
def test_far_points_never_give_nan(case, x):
    fitted = case.basis.fit(x)
    far = np.array([1e308, -1e308, 1e160, -1e80, 1e35, 1e31, -1e29, 1e20, 1e10, 0.0, 5e-324])
    levels = np.hstack(fitted.transform(far))
    assert not np.isnan(levels).any()
    if not case.overflows:
        assert np.isfinite(levels).all()
    tiny = case.basis.fit(x * 1e-300)
    assert not np.isnan(np.hstack(tiny.transform(far))).any()


@every_case
def test_fitted_basis_is_frozen_and_survives_pickling(case, x, rng):
    fitted = case.basis.fit(x)
    with pytest.raises(dataclasses.FrozenInstanceError):
        fitted.constant_level = False
    with pytest.raises(dataclasses.FrozenInstanceError):
        case.basis.degree = 2
    new = inside(rng, x)
    copy = pickle.loads(pickle.dumps(fitted))
    for left, right in zip(copy.transform(new), fitted.transform(new), strict=True):
        np.testing.assert_array_equal(left, right)
    assert pickle.loads(pickle.dumps(case.basis)) == case.basis


@every_case
def test_fitted_basis_keeps_no_training_data_but_pivots(case, x):
    many = case.basis.fit(np.tile(x, 20))
    few = case.basis.fit(x)
    assert len(pickle.dumps(many)) == len(pickle.dumps(few))


@every_case
@pytest.mark.parametrize(
    ("column", "weights", "message"),
    [
        ([[1.0], [2.0]], None, r"X\[:, j\]"),
        ([1.0, np.inf], None, "x contains infinity"),
        ([1.0, np.nan, -np.inf], None, "x contains infinity"),
        (["a", "b"], None, "real numbers"),
        ([], None, "at least one"),
        ([1.0, 2.0], [1.0], "one entry per row"),
        ([1.0, 2.0], [1.0, -1.0], "nonnegative"),
        ([1.0, 2.0], [1.0, np.nan], "nonnegative"),
        ([1.0, 2.0], [0.0, 0.0], "zero on every row"),
        ([1.0, 2.0], ["a", "b"], "sample_weight must hold real numbers"),
    ],
)
def test_bad_input_is_refused_with_a_sentence(case, column, weights, message):
    with pytest.raises(ValueError, match=message):
        case.basis.fit(column, weights)


@every_case
def test_transform_checks_its_points(case, x):
    fitted = case.basis.fit(x)
    with pytest.raises(ValueError, match="x contains infinity"):
        fitted.transform([np.nan, np.inf])
    with pytest.raises(ValueError, match="one column"):
        fitted.transform(x[:, None])


@every_case
def test_missing_values_are_rows_left_out_of_the_fit(case, x, rng):
    counts = rng.integers(1, 4, size=x.size).astype(float)
    holes = np.insert(x, [0, 7, 7, 60], np.nan)
    fitted = case.basis.fit(holes, np.insert(counts, [0, 7, 7, 60], 5.0))
    plain = case.basis.fit(x, counts)
    assert fitted.widths == plain.widths
    assert fitted.absent == plain.absent
    for left, right in zip(fitted.transform(x), plain.transform(x), strict=True):
        np.testing.assert_array_equal(left, right)


@every_case
def test_a_missing_value_gives_zero_above_level_zero_and_its_mean_there(case, x, rng):
    weights = rng.uniform(0.5, 2.0, size=x.size)
    fitted = case.basis.fit(x, weights)
    points = np.array([np.nan, x[0], np.nan, x[1]])
    levels = fitted.transform(points)
    assert [level.shape for level in levels] == [(4, r) for r in fitted.widths]
    for level, known in zip(levels, fitted.transform(x[:2]), strict=True):
        np.testing.assert_allclose(level[1::2], known, rtol=1e-12, atol=1e-14)
    average = 1.0
    if not fitted.constant_level:
        average = np.average(fitted.transform(x)[0], weights=weights, axis=0)
    np.testing.assert_allclose(levels[0][::2], np.tile(average, (2, 1)), rtol=1e-12)
    for level in levels[1:]:
        assert not level[::2].any()
    for level in fitted.transform([np.nan])[1:]:
        assert not level.any()


@every_case
@pytest.mark.parametrize(
    ("column", "weights"), [([np.nan] * 3, None), ([np.nan, 4.0, 5.0], [1.0, 0.0, 0.0])]
)
def test_a_column_without_a_value_is_constant(case, column, weights):
    fitted = case.basis.fit(column, weights)
    assert fitted.widths == (1,)
    np.testing.assert_array_equal(fitted.transform([np.nan, 3.0])[0], np.ones((2, 1)))


@pytest.mark.parametrize("name", ["anova", "spline"])
def test_a_missing_value_is_no_first_pivot(name, x):
    basis = dataclasses.replace(CASES[name].basis, first_pivot=0)
    with pytest.raises(ValueError, match="zero weight or with a missing value"):
        basis.fit(np.append(np.nan, x))


def test_the_identity_keeps_every_bit():
    x = np.array([0.1, -7.0, 1e308, 5e-324, 2.0**53 + 2])
    np.testing.assert_array_equal(Standardizer.identity().transform(x), x)


def test_standardizer_in_original_units(rng):
    x, w = rng.normal(7.0, 2.0, size=50), np.full(50, 0.02)
    scaler = Standardizer.fit(x, w)
    assert scaler.center == pytest.approx(x.mean())
    assert scaler.scale == pytest.approx(x.std())
    assert not scaler.constant
    far = scaler.transform(np.array([1e308, -1e308]))
    assert np.isfinite(far).all()
    saturated = Standardizer.fit(x * 1e-300, w).transform(np.array([1e308, -1e308]))
    np.testing.assert_array_equal(saturated, [np.finfo(float).max, -np.finfo(float).max])


@pytest.mark.parametrize("seed", range(8))
def test_standardizer_has_the_mean_to_the_last_digit(seed):
    """With an offset of 1e9 standard deviations every digit of the mean counts."""
    rng = np.random.default_rng(seed)
    x, w = 1.0 + 1e-9 * rng.normal(size=1001), rng.uniform(size=1001)
    w /= w.sum()
    exact = 1.0 + math.fsum(w * (x - 1.0)) / math.fsum(w)
    assert abs(Standardizer.fit(x, w).center - exact) < 0.6 * np.finfo(float).eps
