"""Weights of rows and classes, and classes that are rare, alone, or told apart with ease."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.utils.class_weight import compute_sample_weight

from hikernel import HKLClassifier
from hikernel.losses import CLASSIFICATION, Multinomial, Quantile

pytestmark = pytest.mark.slow

LOSSES = pytest.mark.parametrize("loss", sorted(CLASSIFICATION))


def data(n=120, p=3, seed=0, n_classes=2):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    y = (X[:, 0] + X[:, 0] * X[:, 1] + 0.5 * rng.standard_normal(n) > 0.8).astype(int)
    if n_classes == 3:
        y[(y == 0) & (X[:, -1] > 0.3)] = 2
    return X, y


@LOSSES
@pytest.mark.parametrize("n_classes", [2, 3])
def test_integer_weights_equal_repeated_rows(loss, n_classes):
    X, y = data(60, p=2, n_classes=n_classes)
    weights = np.random.default_rng(0).integers(0, 4, len(y))
    settings = {"loss": loss, "degree": 2, "tol": 1e-6 if loss != "hinge" else 1e-3}
    weighted = HKLClassifier(0.05, **settings).fit(X, y, sample_weight=weights)
    repeated = HKLClassifier(0.05, **settings).fit(np.repeat(X, weights, 0), np.repeat(y, weights))
    slack = weighted.certificate_.gap + repeated.certificate_.gap
    difference = weighted.certificate_.objective - repeated.certificate_.objective
    assert abs(difference) <= slack + 1e-12
    close = 0.01 if loss != "hinge" else 0.2
    np.testing.assert_allclose(
        weighted.decision_function(X), repeated.decision_function(X), atol=close
    )
    assert np.all(weighted.dual_coef_[weights == 0] == 0.0)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("class_weight", ["balanced", {0: 1.0, 1: 3.0, 2: 0.5}])
@pytest.mark.parametrize("weighted", [False, True])
def test_class_weights_are_sample_weights(class_weight, n_classes, weighted):
    X, y = data(n_classes=n_classes)
    if class_weight != "balanced":
        class_weight = {k: w for k, w in class_weight.items() if k < n_classes}
    own = np.random.default_rng(0).uniform(0.5, 2.0, len(y)) if weighted else np.ones(len(y))
    if class_weight == "balanced":
        rows = own / np.array([own[y == k].sum() for k in range(n_classes)])[y]
    else:
        rows = own * compute_sample_weight(class_weight, y)
    by_class = HKLClassifier(0.02, class_weight=class_weight).fit(X, y, own if weighted else None)
    by_row = HKLClassifier(0.02).fit(X, y, sample_weight=rows)
    plain = HKLClassifier(0.02).fit(X, y, own)
    np.testing.assert_allclose(by_class.decision_function(X), by_row.decision_function(X))
    assert not np.allclose(by_class.decision_function(X), plain.decision_function(X), atol=0.1)


def test_balanced_weights_of_repeated_rows_are_those_of_integer_weights():
    X, y = data(60)
    own = np.where(y == 1, 3, 1)
    own[:5] = 0
    weighted = HKLClassifier(0.02, class_weight="balanced").fit(X, y, own)
    rows = np.repeat(np.arange(len(y)), own)
    repeated = HKLClassifier(0.02, class_weight="balanced").fit(X[rows], y[rows])
    np.testing.assert_allclose(
        weighted.decision_function(X), repeated.decision_function(X), atol=1e-3
    )


def test_balanced_classes_have_equal_mean_probabilities():
    X, y = data(n_classes=3)
    p = HKLClassifier(0.05, class_weight="balanced").fit(X, y).predict_proba(X)
    weights = compute_sample_weight("balanced", y)
    np.testing.assert_allclose(np.average(p, axis=0, weights=weights), 1 / 3, atol=1e-6)


def test_class_weights_by_label():
    X, y = data()
    labels = np.where(y == 1, "yes", "no")
    by_name = HKLClassifier(0.02, class_weight={"yes": 5.0, "no": 1.0}).fit(X, labels)
    by_row = HKLClassifier(0.02).fit(X, y, np.where(y == 1, 5.0, 1.0))
    np.testing.assert_allclose(by_name.decision_function(X), by_row.decision_function(X))


@LOSSES
def test_one_class_only_is_refused(loss):
    X, _ = data(20)
    with pytest.raises(ValueError, match=r"one class only \(.*\); a classifier needs at least two"):
        HKLClassifier(loss=loss).fit(X, np.zeros(20))


@pytest.mark.parametrize("label", [0, "only", 2.0, True])
def test_messages_show_the_label_as_it_was_given(label):
    X, _ = data(20)
    with pytest.raises(ValueError, match=rf"one class only \({label!r}\); a classifier"):
        HKLClassifier().fit(X, np.full(20, label))


def test_a_class_without_weight_is_refused():
    X, y = data(60, n_classes=3)
    with pytest.raises(ValueError, match=r"lass .*2.* has no row of positive weight"):
        HKLClassifier().fit(X, y, sample_weight=(y != 2).astype(float))
    for none in (0.0, -1.0):
        with pytest.raises(ValueError, match="class_weight must give every class a positive"):
            HKLClassifier(class_weight={0: none, 1: 1.0, 2: 1.0}).fit(X, y)


@pytest.mark.parametrize(
    ("y", "sentence"),
    [
        (np.linspace(0.1, 2.7, 40), "Unknown label type: continuous"),
        (np.array([0.0, np.nan] * 20), "NaN"),
        (np.stack([np.arange(40) % 2] * 2, axis=1), "1d array"),
        (None, "requires y"),
        (np.arange(39) % 2, "inconsistent numbers of samples"),
    ],
)
def test_bad_labels_are_refused_with_a_sentence(y, sentence):
    X, _ = data(40)
    with pytest.raises(ValueError, match=sentence):
        HKLClassifier().fit(X, y)


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"loss": "squared_error"}, "'log_loss', 'hinge', 'squared_hinge'"),
        ({"loss": Quantile(0.5)}, "'log_loss', 'hinge', 'squared_hinge'"),
        ({"loss": Multinomial()}, "'log_loss', 'hinge', 'squared_hinge'"),
        ({"loss": None}, "loss must be one of"),
        ({"class_weight": "heavy"}, "class_weight"),
        ({"class_weight": {0: -1.0, 1: 1.0}}, "negative|positive"),
        ({"alpha": 0.0}, "alpha must be"),
    ],
)
def test_bad_parameters_are_refused_with_a_sentence(parameters, sentence):
    X, y = data(40)
    with pytest.raises(ValueError, match=sentence):
        HKLClassifier(**parameters).fit(X, y)


@LOSSES
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("alpha", [0.01, 1e-5])
def test_classes_that_are_told_apart_with_ease(loss, n_classes, alpha):
    rng = np.random.default_rng(0)
    centers = np.array([[-3.0, 0.0], [3.0, 0.0], [0.0, 6.0]])[:n_classes]
    y = np.arange(90) % n_classes
    X = centers[y] + 0.3 * rng.standard_normal((90, 2))
    model = HKLClassifier(alpha, loss=loss, degree=2).fit(X, y)
    assert model.certificate_.certified
    assert model.score(X, y) == 1.0
    assert np.all(np.isfinite(model.coef_))


@LOSSES
def test_one_row_in_three_hundred(loss):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 3))
    y = np.zeros(300, dtype=int)
    y[17] = 1
    X[17] = 2.5
    model = HKLClassifier(0.01, loss=loss, degree=2).fit(X, y)
    assert model.certificate_.certified
    f = model.decision_function(X)
    assert np.argmax(f) == 17
    balanced = HKLClassifier(0.01, loss=loss, degree=2, class_weight="balanced").fit(X, y)
    assert balanced.predict(X)[17] == 1
    if loss == "log_loss":
        assert model.predict_proba(X)[:, 1].mean() == pytest.approx(1 / 300, rel=1e-6)


@LOSSES
def test_twenty_rows_are_fitted_with_the_defaults(loss):
    # The data of many of scikit-learn's checks.
    rng = np.random.RandomState(0)
    X = 3.0 * rng.uniform(size=(20, 3))
    model = HKLClassifier(loss=loss).fit(X, X[:, 0].astype(int))
    assert model.certificate_.certified
    assert model.score(X, X[:, 0].astype(int)) >= 0.9


@LOSSES
def test_labels_that_nothing_explains(loss):
    rng = np.random.default_rng(3)
    X, y = rng.standard_normal((100, 3)), np.arange(100) % 4 == 0
    model = HKLClassifier(10.0, loss=loss).fit(X, y)
    assert model.certificate_.certified
    assert not np.any(model.predict(X))
    np.testing.assert_allclose(model.decision_function(X), model.intercept_, atol=0.05)


@LOSSES
def test_only_constant_columns_give_the_larger_class(loss):
    model = HKLClassifier(loss=loss).fit(np.ones((9, 2)), ["a", "b", "b"] * 3)
    np.testing.assert_array_equal(model.predict(np.zeros((2, 2))), ["b", "b"])
    assert model.certificate_.certified
    if loss == "log_loss":
        np.testing.assert_allclose(model.predict_proba(np.zeros((1, 2))), [[1 / 3, 2 / 3]])


@LOSSES
def test_two_rows_are_enough(loss):
    model = HKLClassifier(0.01, loss=loss).fit([[0.0], [1.0]], ["a", "b"])
    np.testing.assert_array_equal(model.predict([[0.0], [1.0]]), ["a", "b"])


def test_a_rare_class_among_many_rows_with_the_hinge():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (5000, 5))
    signal = X[:, 0] + 2 * X[:, 1] * X[:, 2] + 0.3 * rng.standard_normal(5000)
    y = signal > np.quantile(signal, 0.99)
    model = HKLClassifier(1e-3, loss="hinge", certify="none").fit(X, y)
    assert len(model.nodes_) > 1
