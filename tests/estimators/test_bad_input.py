"""What a user can do wrong: a sentence that says what to do, or a correct fit."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from hikernel import HKLClassifier, HKLClassifierCV, HKLRegressor, HKLRegressorCV, hkl_path
from hikernel.bases import BASES, Spline
from hikernel.estimators.path import check_alphas

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
        ((X, np.array(["low", "high"] * 30)), "a regressor needs numbers.*HKLClassifier"),
        ((X, Y, ["heavy"] * 60), "sample_weight holds text .*'heavy'.* weights are numbers"),
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
        (
            {"degree": 10**4, "basis": "polynomial", "weight_base": 2.0},
            "^.{,300}weight_base nearer to 1",
        ),
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
    assert scaled.nodes_ == model.nodes_  # names of steps have numbers in the units of X
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


def test_text_as_the_target_of_a_path_names_the_loss_for_labels():
    with pytest.raises(ValueError, match=r'y holds text .* for labels choose loss="log_loss"'):
        hkl_path(X, np.array(["low", "high"] * 30))


LABELS = ["low", "high", "low", "middle"] * 15


def without(value, *rows):
    return [value if row in rows else label for row, label in enumerate(LABELS)]


@pytest.mark.parametrize(
    "labels",
    [
        without(None, 3, 7),
        without(np.nan, 3, 7),  # NumPy alone would make a class "nan" of it
        np.array(without(None, 3, 7), dtype=object),
        pd.Series(without(None, 3, 7)),
        pd.Series(without(pd.NA, 3, 7), dtype="string", index=range(100, 160)),
        pd.Series(without(None, 3, 7), dtype="category"),
        pd.DataFrame({"y": without(None, 3, 7)}),
        pd.Series([0, 1, 1, None, 0, 1, 1, None] + [0, 1] * 26, dtype="Int64"),
        np.array([0, 1, 1, np.nan, 0, 1, 1, np.nan] + [0, 1] * 26),
    ],
    ids=["none", "nan", "objects", "series", "strings", "category", "frame", "Int64", "floats"],
)
@pytest.mark.parametrize("estimator", [HKLClassifier(), HKLClassifierCV()])
def test_missing_labels_are_counted_and_placed(estimator, labels):
    sentence = r"y contains NaN or None: it has 2 missing label\(s\), the first in row 3.*drop"
    with pytest.raises(ValueError, match=sentence):
        estimator.fit(X, labels)


def test_the_text_nan_is_a_label_like_any_other():
    labels = np.where(X[:, 0] > 0, "nan", "None")
    assert HKLClassifier(0.05, degree=2).fit(X, labels).classes_.tolist() == ["None", "nan"]


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA])
def test_missing_targets_are_placed(missing):
    target = Y.astype(object)
    target[9] = missing
    with pytest.raises(ValueError, match=r"1 missing value\(s\), the first in row 9"):
        HKLRegressor().fit(X, target)


def only_file(caught, sentence):
    """The files that warnings with this sentence point to."""
    return {warning.filename for warning in caught if sentence in str(warning.message)}


FRAME = pd.DataFrame(X, columns=["a", "b", "c"])


@pytest.mark.parametrize(
    "method",
    ["predict", "decision_function", "predict_proba", "predict_log_proba", "effects", "anova"],
)
def test_warnings_of_column_names_point_to_the_line_of_the_user(method):
    model = HKLClassifier(0.1, degree=1).fit(FRAME, Y > 0)
    with pytest.warns(UserWarning, match="X does not have valid feature names") as caught:
        getattr(model, method)(X)
    assert only_file(caught, "feature names") == {__file__}


@pytest.mark.parametrize(
    "fit",
    [
        HKLRegressor(0.1, degree=1).fit,
        HKLRegressorCV(alphas=[0.1], cv=2, degree=1).fit,
        lambda X, y: HKLClassifier(0.1, degree=1).fit(X, y > 0),
        lambda X, y: hkl_path(X, y, alphas=[0.1], degree=1),
    ],
    ids=["regressor", "cross-validated", "classifier", "path"],
)
def test_warnings_of_lost_columns_point_to_the_line_of_the_user(fit):
    lost = X.copy()
    lost[:, 1] += 1e15
    with pytest.warns(UserWarning, match="less than the rounding") as caught:
        fit(lost, Y)
    assert only_file(caught, "less than the rounding") == {__file__}


def test_a_mask_says_which_columns_are_categories():
    rows = np.round(X)
    masked = HKLRegressor(0.05, categorical=np.array([True, False, False])).fit(rows, Y)
    named = HKLRegressor(0.05, categorical=[0]).fit(rows, Y)
    assert masked.columns_ == named.columns_
    np.testing.assert_array_equal(masked.predict(rows), named.predict(rows))


@pytest.mark.parametrize(
    ("alphas", "sentence"),
    [
        (0.1, "alphas must be a list of numbers, or None .*, got 0.1"),
        ("0.1", "alphas must be a list"),
        ({0.1: 1}, "alphas must be a list"),
        (np.ones((2, 2)), "alphas must be a list"),
        ([], "alphas is empty"),
        ([0.1, -1.0], "every alpha must be a finite number above"),
        (["a"], "every alpha"),
    ],
)
def test_alphas_that_are_no_list_of_numbers(alphas, sentence):
    with pytest.raises(ValueError, match=sentence):
        check_alphas(alphas, 5, 0.1)


@pytest.mark.parametrize("alphas", [None, [0.1], (1, 2), np.array([0.1]), pd.Series([0.1])])
def test_alphas_that_are_right(alphas):
    check_alphas(alphas, 5, 0.1)


@pytest.mark.parametrize("verbose", ["x", 1.5, None, -1])
def test_verbose_that_is_no_number(verbose):
    with pytest.raises(ValueError, match="verbose must be an integer >= 0, got"):
        HKLRegressor(verbose=verbose)._check_parameters()


@pytest.mark.parametrize("verbose", [True, False, np.True_, 0, 2, np.int64(1)])
def test_verbose_that_is_right(verbose):
    HKLRegressor(verbose=verbose)._check_parameters()


@pytest.mark.parametrize(
    ("cls", "wrong"),
    [
        (HKLRegressor, {"alpha": -1}),
        (HKLRegressor, {"refit": "nope"}),
        (HKLRegressor, {"loss": "nope"}),
        (HKLClassifier, {"loss": "nope"}),
        (HKLRegressorCV, {"loss": "nope"}),
        (HKLClassifierCV, {"rule": "nope"}),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_a_parameter_that_is_refused_leaves_no_old_model(cls, wrong):
    quick = {"n_alphas": 2, "cv": 2, "basis": {}} if cls.__name__.endswith("CV") else {}
    model = cls(certify="none", **quick).fit(X, Y > 0 if "Classifier" in cls.__name__ else Y)
    with pytest.raises(ValueError, match=r"nope|-1"):
        model.set_params(**wrong).fit(X, Y)
    with pytest.raises(NotFittedError):
        model.predict(X)
