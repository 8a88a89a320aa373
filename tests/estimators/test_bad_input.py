"""What a user can do wrong: a sentence that says what to do, or a correct fit."""

from __future__ import annotations

import numpy as np
import pytest

from hikernel import HKLRegressor
from hikernel.bases import BASES, Spline

rng = np.random.default_rng(0)
X = rng.standard_normal((60, 3))
Y = X[:, 0] + X[:, 0] * X[:, 1] + 0.1 * rng.standard_normal(60)


def with_value(array, value):
    out = np.array(array, dtype=float)
    out.flat[7] = value
    return out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((with_value(X, np.inf), Y), "infinity"),
        ((X, with_value(Y, np.nan)), "contains NaN"),
        ((X, with_value(Y, -np.inf)), "infinity"),
        ((X[:1], Y[:1]), "minimum of 2"),
        ((X[:0], Y[:0]), "0 sample"),
        ((X[:, :0], Y), "0 feature"),
        ((X[:, 0], Y), "Reshape your data"),
        ((X[None], Y), r"3 dimension\(s\)"),
        ((X, Y[:-1]), "inconsistent numbers of samples"),
        ((X, np.stack([Y, Y], 1)), "1d array"),
        ((X, None), "requires y"),
        ((X.astype(complex), Y), "Complex data"),
        ((X, np.array(["low", "high"] * 30)), "OneHotEncoder"),
        ((X, Y, ["heavy"] * 60), "OneHotEncoder"),
        ((X, Y, -np.ones(60)), "negative"),
        ((X, Y, np.zeros(60)), "non-zero|positive sample_weight"),
        ((X, Y, np.eye(60)[3]), "at least 2"),
        ((X, Y, np.full(60, np.nan)), "NaN"),
        ((X, Y, np.ones(59)), "sample_weight|inconsistent"),
    ],
)
def test_bad_data_is_refused_with_a_sentence(arguments, sentence):
    with pytest.raises(ValueError, match=sentence):
        HKLRegressor().fit(*arguments)


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"alpha": 0.0}, "alpha must be a finite number above"),
        ({"alpha": -1.0}, "alpha must be"),
        ({"alpha": np.inf}, "alpha must be"),
        ({"alpha": np.nan}, "alpha must be"),
        ({"alpha": "small"}, "alpha must be"),
        ({"degree": 0}, "degree must be an integer >= 1"),
        ({"degree": 2.5}, "degree must be"),
        ({"degree": True}, "degree must be"),
        ({"max_order": 0}, "max_order must be"),
        ({"time_budget": 0.0}, "time_budget must be"),
        ({"time_budget": 5.0, "search": "paper"}, "lookahead"),
        ({"basis": "orthonormall"}, "orthonormal"),
        ({"basis": 3}, "basis"),
        ({"basis": {"nowhere": "spline"}}, "'nowhere'.*x0, x1, x2"),
        ({"basis": {5: "spline"}}, "positions 0 to 2"),
        ({"basis": {0: "splin"}}, "spline"),
        ({"weight_base": 0.0}, "weight_base"),
        ({"weight_base": 1e200}, "weight_base nearer to 1"),
        ({"root_weight": -0.1}, "root_weight"),
        ({"search": "magic"}, "'paper'"),
        ({"max_kernels": 0}, "max_kernels"),
        ({"tol": 0.0}, "tol"),
        ({"tol": 1e-17}, "tol"),
        ({"alpha": 1e-200}, "alpha must be"),
        ({"degree": 10**4, "basis": "polynomial"}, "^.{,300}weight_base nearer to 1"),
        ({"tol": 1.0}, "tol"),
        ({"certify": "maybe"}, "'exact'"),
        ({"verbose": -1}, "verbose"),
    ],
)
def test_bad_parameters_are_refused_with_a_sentence(parameters, sentence):
    with pytest.raises(ValueError, match=sentence):
        HKLRegressor(**parameters).fit(X, Y)


@pytest.mark.parametrize("basis", sorted(BASES))
@pytest.mark.parametrize("scale", [1e-150, 1e-30, 1e30, 1e150])
def test_huge_and_tiny_scales_change_nothing(basis, scale):
    model = HKLRegressor(0.02, basis=basis, degree=2).fit(X, Y)
    # A power of two near the scale, so that rounding is the same.
    factor = 2.0 ** np.round(np.log2(scale))
    scaled = HKLRegressor(0.02, basis=basis, degree=2).fit(factor * X, factor * Y)
    assert scaled.certificate_.certified
    assert list(scaled.hull_["term"]) == list(model.hull_["term"])
    np.testing.assert_allclose(scaled.predict(factor * X) / factor, model.predict(X), rtol=1e-9)


def test_a_target_whose_square_overflows_is_refused():
    with pytest.raises(ValueError, match="rescale y"):
        HKLRegressor().fit(X, 1e200 * Y)
    with pytest.raises(ValueError, match="rescale y"):
        HKLRegressor().fit(X, 1e-200 * Y)


@pytest.mark.parametrize("basis", sorted(BASES))
def test_constant_columns_never_enter(basis):
    wide = np.column_stack([np.full(60, 0.1), X, np.zeros(60)])
    plain = HKLRegressor(0.02, basis=basis, degree=2).fit(X, Y)
    model = HKLRegressor(0.02, basis=basis, degree=2).fit(wide, Y)
    assert {m for node in model.nodes_ for m, _ in node} <= {1, 2, 3}
    assert model.graph_.n_vertices == plain.graph_.n_vertices
    np.testing.assert_allclose(model.predict(wide), plain.predict(X), atol=1e-9)


@pytest.mark.parametrize("basis", sorted(BASES))
def test_only_constant_columns_give_the_mean(basis):
    model = HKLRegressor(basis=basis).fit(np.ones((60, 2)), Y)
    np.testing.assert_allclose(model.predict(np.zeros((3, 2))), Y.mean())
    assert model.certificate_.certified
    assert model.certificate_.n_vertices == 1


def test_duplicated_columns_share_the_weight():
    model = HKLRegressor(0.02, tol=1e-6).fit(np.column_stack([X, X[:, 0]]), Y)
    single = HKLRegressor(0.02, tol=1e-6).fit(X, Y)
    assert model.certificate_.certified
    # Twice the same column can only help: the optimum is at most as large.
    assert model.certificate_.objective <= single.certificate_.objective * (1 + 1e-6)
    assert model.score(np.column_stack([X, X[:, 0]]), Y) >= single.score(X, Y) - 1e-3


@pytest.mark.parametrize("value", [0.0, 3.7, -1e150])
def test_a_constant_target_gives_that_constant(value):
    model = HKLRegressor().fit(X, np.full(60, value))
    np.testing.assert_array_equal(model.predict(X), value)
    assert model.certificate_.certified
    assert model.certificate_.objective == 0.0
    np.testing.assert_array_equal(model.coef_, 0.0)


def test_two_rows_are_enough():
    model = HKLRegressor(0.01).fit([[0.0], [1.0]], [0.0, 1.0])
    low, high = model.predict([[0.0], [1.0]])
    assert 0.0 <= low < high <= 1.0


def test_tiny_and_large_alpha_are_solved_or_said_not_to_be():
    large = HKLRegressor(1e8).fit(X, Y)
    np.testing.assert_allclose(large.predict(X), Y.mean(), atol=1e-3)
    assert large.certificate_.certified
    small = HKLRegressor(1e-8, degree=2).fit(X, Y)
    assert small.certificate_.certified
    assert small.score(X, Y) > 0.95


def test_predicting_far_outside_says_so():
    model = HKLRegressor(0.01, basis="polynomial").fit(X, Y)
    far = X[:2].copy()
    far[1] = 1e200
    with pytest.raises(ValueError, match=r"Row 1 .* overflows"):
        model.predict(far)
    for basis in ("auto", "gaussian"):
        assert np.all(np.isfinite(HKLRegressor(0.01, basis=basis).fit(X, Y).predict(far)))


def test_predicting_other_columns_is_refused():
    model = HKLRegressor(0.01).fit(X, Y)
    with pytest.raises(ValueError, match="expecting 3 features"):
        model.predict(X[:, :2])
    with pytest.raises(ValueError, match="infinity"):
        model.predict(with_value(X, np.inf))


def test_predicting_text_says_what_to_do():
    model = HKLRegressor(0.01).fit(X, Y)
    with pytest.raises(ValueError, match="'x0' is a column of numbers, but holds the text 'a'"):
        model.predict([["a", "b", "c"]])


@pytest.mark.parametrize("size", [1e-300, 1e307])
def test_the_size_of_the_weights_does_not_matter(size):
    model = HKLRegressor(0.02).fit(X, Y)
    scaled = HKLRegressor(0.02).fit(X, Y, np.full(60, size))
    np.testing.assert_allclose(scaled.predict(X), model.predict(X), rtol=1e-9)
    one_number = HKLRegressor(0.02).fit(X, Y, 3.0)
    np.testing.assert_allclose(one_number.predict(X), model.predict(X), rtol=1e-9)


def test_a_column_that_drowns_in_its_own_size_is_reported():
    lost = X.copy()
    lost[:, 1] += 1e15
    with pytest.warns(UserWarning, match="Column x1 varies by less than the rounding"):
        HKLRegressor(0.02).fit(lost, Y)


def test_first_pivot_counts_the_rows_that_were_given():
    weights = np.ones(60)
    weights[:5] = 0.0
    chosen = HKLRegressor(0.02, basis=Spline(first_pivot=7)).fit(X, Y, weights)
    shifted = HKLRegressor(0.02, basis=Spline(first_pivot=2)).fit(X[5:], Y[5:])
    np.testing.assert_allclose(chosen.predict(X), shifted.predict(X), atol=1e-9)
    with pytest.raises(ValueError, match="zero weight"):
        HKLRegressor(0.02, basis=Spline(first_pivot=3)).fit(X, Y, weights)


def test_a_constant_root_has_no_coefficient():
    # Rounding noise over a tiny penalty must not become a huge coefficient and intercept.
    model = HKLRegressor(1e-10, degree=1, root_weight=1e-10).fit(X, Y)
    assert model.coef_[model.nodes_.index(())] == 0.0
    loss = 0.5 * np.mean((Y - model.predict(X)) ** 2)
    assert loss <= model.certificate_.objective * (1 + 1e-9)
