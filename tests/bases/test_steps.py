"""Steps: what they are for, and how cuts are placed."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hikernel.bases import Branches, Gaussian, OrthonormalPolynomial, Steps
from hikernel.bases.column import Column
from hikernel.bases.steps import FittedSteps, short_number


def test_levels_are_orthonormal_blocks_of_mean_square_one():
    rng = np.random.default_rng(0)
    x, weights = rng.gamma(1.0, size=300).round(1), rng.uniform(0.1, 2.0, 300)
    levels = Steps(4).fit(x, weights).transform(x)
    omega = weights / weights.sum()
    for j, level in enumerate(levels[1:], start=1):
        assert level.shape[1] == 2 ** (j - 1)
        gram = (level.T * omega) @ level
        np.testing.assert_allclose(gram, np.eye(len(gram)) / len(gram), atol=1e-12)
        np.testing.assert_allclose(omega @ level, 0.0, atol=1e-12)
    both = (np.hstack(levels[1:3]).T * omega) @ np.hstack(levels[3:])
    np.testing.assert_allclose(both, 0.0, atol=1e-12)


def test_where_cuts_halve_their_parts_the_norm_is_one():
    levels = Steps(3).fit(np.arange(64.0)).transform(np.arange(64.0))
    for level in levels:
        np.testing.assert_allclose(np.sum(level**2, axis=1), 1.0)


def test_a_jump_at_any_dyadic_quantile_is_one_function():
    x = np.arange(32.0)
    features = np.hstack(Steps(5).fit(x).transform(x))
    for cut in range(1, 32):
        coef, *_ = np.linalg.lstsq(features, np.where(x < cut, 0.0, 1.0), rcond=None)
        assert np.count_nonzero(np.abs(coef[1:]) > 1e-9) <= 5  # one for each level on the way


def test_a_value_that_most_rows_share_is_cut_off_first():
    x = np.repeat([0.0, 1.0, 2.0, 3.0], [80, 10, 6, 4])
    fitted = Steps(3).fit(x)
    assert [fitted.cuts_of(j).tolist() for j in (1, 2, 3)] == [[0.0], [1.0], [2.0]]
    assert fitted.widths == (1, 1, 1, 1)
    names = [fitted.level_name(j, "visits") for j in (1, 2, 3)]
    assert names == ["visits > 0", "visits > 1", "visits > 2"]


def test_few_values_need_few_levels():
    assert Steps(4).fit([1.0, 2.0, 2.0]).widths == (1, 1)
    assert Steps(4).fit([1.0, 2.0, 3.0]).widths == (1, 1, 1)


def test_names_show_the_cuts_of_a_level():
    fitted = Steps(4).fit(np.arange(16.0))
    assert fitted.level_name(1, "x") == "x > 7"
    assert fitted.level_name(2, "x") == "x > 3|11"
    assert fitted.level_name(3, "x") == "x > 1|5|9|13"
    assert fitted.level_name(4, "x") == "x > 0|..|14"


def test_of_two_equal_cuts_the_lower_one_whatever_the_rounding():
    for scale in (1.0, 1 / 3, 0.1):
        assert Steps(1).fit([1.0, 2.0, 3.0], [scale] * 3).cuts.tolist() == [1.0]


@given(st.floats(-1e300, 1e300), st.floats(0.0, 1e300))
def test_a_short_number_lies_between(low, gap):
    high = low + gap
    if not low < high < math.inf:
        return
    number = short_number(low, high)
    assert low <= number < high


def test_short_numbers_are_short():
    assert short_number(0.98, 1.02) == 1.0
    assert short_number(3.0, 4.0) == 3.0
    assert short_number(0.12345, 0.12399) == 0.1237  # the nearest to the middle with four digits
    assert short_number(1e307, 1.7e308) == 1e308


def test_levels_above_a_level_are_dropped():
    x = np.arange(40.0)
    both = Branches((OrthonormalPolynomial(3), Steps(3))).fit(x)
    whole = both.transform(x)
    assert both.parents == (0, 1, 2, 0, 4, 5)
    assert both.exponents == (0.0, 1.0, 2.0, 3.0, 1.0, 1.5, 2.0)
    for level in range(1, 7):
        less = both.up_to(level).transform(x)
        assert len(less) >= level + 1
        for one, other in zip(less[: level + 1], whole, strict=False):
            np.testing.assert_array_equal(one, other)


def test_weights_that_differ_by_any_factor():
    fitted = Steps(3).fit([1.0, 2.0, 3.0, 4.0], [1e-300, 1.0, 1.0, 1e-300])
    assert fitted.cuts.tolist() == [2.0]
    assert np.all(np.isfinite(fitted.heights))
    light = Steps(3).fit([1.0, 2.0, 3.0], [1e-8, 1.0, 1.0])  # lost in a difference of sums
    assert light.cuts.tolist() == [1.0, 2.0]
    assert Steps(3).fit([1.0, 2.0], [1.0, 1e-20]).widths == (1,)


def test_cuts_keep_their_digits():
    x = 20150000.0 + 3.0 * np.arange(4)
    fitted = Steps(2).fit(x)
    assert fitted.level_name(2, "day") == "day > 20150000|20150008"


def test_what_branches_refuse():
    both = (OrthonormalPolynomial(2), Steps(2))
    for wrong in (
        (),
        [*both],
        both[::-1],
        (Branches(both), Steps(2)),
        ("rank", Steps(2)),
        both[:1],
    ):
        with pytest.raises(ValueError, match="a basis and its steps"):
            Branches(wrong)
    with pytest.raises(ValueError, match="constant level 0"):
        Branches((Gaussian(2), Steps(2))).fit(np.arange(9.0))
    with pytest.raises(IndexError, match="no such level"):
        Branches(both).fit(np.arange(9.0)).branch(5)


def test_fitted_steps_refuse_arrays_that_do_not_fit():
    good = Steps(1).fit(np.arange(9.0))
    settings = {"scaler": good.scaler, "constant_level": True, "ends": good.ends}
    heights, columns = good.heights, good.columns
    for bad in (
        {"cuts": np.array([2.0, 1.0]), "heights": np.ones((3, 1)), "columns": columns},
        {"cuts": good.cuts, "heights": heights[:1], "columns": columns},
        {"cuts": good.cuts, "heights": heights[:, :0], "columns": np.array([0])},
    ):
        with pytest.raises(ValueError, match="teps"):
            FittedSteps(**settings, **bad)


def test_steps_at_given_cuts_are_haar_functions_too():
    rng = np.random.default_rng(0)
    x, weights = rng.uniform(size=200), rng.uniform(0.1, 2.0, 200)
    column = Column.from_rows(x, weights)
    plain = Steps(3).fit_at(column, [0.7, 0.2, 0.1, 0.9])
    assert plain.widths == (1, 1, 2, 1)
    fitted = Steps(3).fit_at(column, [0.7, 0.2, 0.1, 0.9], halve=True)
    assert set(plain.cuts) < set(fitted.cuts)
    assert fitted.widths == (1, 1, 2, 4)
    near = [abs(fitted.cuts_of(1)[0] - 0.7), *abs(fitted.cuts_of(2) - [0.2, 0.9])]
    near.append(abs(fitted.cuts_of(3)[0] - 0.1))
    assert max(near) < 0.05
    features = np.hstack(fitted.transform(x))
    gram = (features.T * (weights / weights.sum())) @ features
    blocks = np.repeat([1.0, 1.0, 0.5, 0.25], [1, 1, 2, 4])
    np.testing.assert_allclose(gram, np.diag(blocks), atol=1e-12)
    coef, *_ = np.linalg.lstsq(features, 1.0 * (x > fitted.cuts_of(1)[0]), rcond=None)
    assert np.count_nonzero(np.abs(coef) > 1e-9) == 2  # the constant, and one function


def test_no_cut_inside_the_column_gives_no_steps():
    column = Column.from_rows(np.arange(5.0))
    assert Steps(3).fit_at(column, []) is None
    assert Steps(3).fit_at(column, [-1.0, 4.0, 9.0]) is None
    assert Steps(2).fit_at(column, [3.5, -1.0]).cuts.tolist() == [3.0]
    fitted = Steps(2).fit_at(column, [3.5, -1.0], halve=True)
    assert [fitted.cuts_of(j).tolist() for j in (1, 2)] == [[3.0], [1.0]]
