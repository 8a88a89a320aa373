"""HKLClassifier as a user meets it."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, softmax
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

from hikernel import HKLClassifier
from hikernel.losses import CLASSIFICATION, Hinge, LogLoss, Multinomial

pytestmark = pytest.mark.slow

LOSSES = pytest.mark.parametrize("loss", sorted(CLASSIFICATION))
CLASSES = pytest.mark.parametrize("n_classes", [2, 3])


def data(n=150, p=4, seed=0, n_classes=2):
    """An interaction decides between two classes; a second variable splits one of them."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    y = (X[:, 0] * X[:, 1] + 0.05 * rng.standard_normal(n) > 0).astype(int)
    if n_classes == 3:
        y[(y == 1) & (X[:, 2] > 0)] = 2
    return X, y


UNLIKE_REPEATED_ROWS = dict.fromkeys(
    [
        "check_sample_weight_equivalence_on_dense_data",
        "check_sample_weight_equivalence_on_sparse_data",
    ],
    "the estimated error counts rows by how unequal their weights are, and weights have no unit",
)
"""What alpha="auto" does not promise."""


# On its data of pure noise with p > n nothing can be proven, and the model rightly says so.
@pytest.mark.filterwarnings("ignore::hikernel.errors.CertificateWarning")
@parametrize_with_checks(
    [HKLClassifier()], expected_failed_checks=lambda model: UNLIKE_REPEATED_ROWS
)
def test_scikit_learn_accepts_it(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("estimator", "check"),
    [
        (estimator, check)
        for estimator, check in estimator_checks_generator(HKLClassifier(alpha=0.01))
        if check.func.__name__ in UNLIKE_REPEATED_ROWS
    ],
)
def test_weights_are_repeated_rows_at_a_given_alpha(estimator, check):
    check(estimator)


@LOSSES
@CLASSES
def test_fitted_attributes_fit_together(loss, n_classes):
    X, y = data(n_classes=n_classes)
    model = HKLClassifier(0.005, loss=loss).fit(X, y)
    outputs = () if n_classes == 2 else (n_classes,)
    assert model.certificate_.certified
    assert model.certificate_.kind == "exact"
    np.testing.assert_array_equal(model.classes_, np.arange(n_classes))
    assert "x0 * x1" in set(model.hull_["term"])
    assert model.coef_.shape == (model.hull_["width"].sum(), *outputs)
    assert np.shape(model.intercept_) == outputs
    assert isinstance(model.intercept_, float) == (n_classes == 2)
    assert model.dual_coef_.shape == (len(y), *outputs)
    np.testing.assert_allclose(model.dual_coef_.sum(axis=0), 0.0, atol=1e-8)
    assert model.n_iter_ == len(model.history_) >= 2
    levels = [basis.transform(X[:, m]) for m, basis in enumerate(model._design.bases)]
    features = [
        np.prod([levels[m][j][:, 0] for m, j in node], axis=0) * np.ones(len(y))
        for node in model.nodes_
    ]
    f = np.column_stack(features) @ model.coef_ + model.intercept_
    np.testing.assert_allclose(model.decision_function(X), f, atol=1e-10)
    # The objective, written out from the public attributes alone.
    norms = dict(zip(model.nodes_, model.hull_["norm"], strict=True))
    omega = sum(
        model.graph_.weight(v)
        * np.sqrt(sum(norms[w] ** 2 for w in norms if v in model.graph_.ancestors(w)))
        for v in norms
    )
    marks = (y[:, None] == np.arange(n_classes)).astype(float)
    target = 2.0 * (y if n_classes == 2 else marks) - 1.0
    if n_classes == 3 and loss == "log_loss":
        target = marks
    mean_loss = np.mean(model.loss_.value(target, f))
    objective = mean_loss + 0.5 * 0.005 * omega**2
    assert model.certificate_.objective == pytest.approx(objective, rel=1e-9)


@LOSSES
@CLASSES
def test_it_beats_a_linear_model_where_there_is_an_interaction(loss, n_classes):
    X, y = data(400, n_classes=n_classes)
    X_test, y_test = data(400, seed=1, n_classes=n_classes)
    model = HKLClassifier(0.003 if n_classes == 2 else 3e-4, loss=loss).fit(X, y)
    linear = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
    assert model.score(X_test, y_test) > 0.8 > 0.6 > linear.score(X_test, y_test)


@CLASSES
@pytest.mark.parametrize(
    "names",
    [
        ["no", "yes", "zz"],
        [-1, 1, 7],
        [0.0, 1.0, 2.0],
        np.array(["a", "b", "c"], dtype=object),
        [3, 10, 200],
    ],
    ids=["text", "negative", "whole floats", "objects", "integers"],
)
def test_labels_of_any_type_come_back(names, n_classes):
    X, index = data(n_classes=n_classes)
    names = np.asarray(names)[:n_classes]
    labels = names[index]
    model = HKLClassifier(0.01).fit(X, labels)
    plain = HKLClassifier(0.01).fit(X, index)
    np.testing.assert_array_equal(model.classes_, names)
    predicted = model.predict(X)
    assert predicted.dtype == labels.dtype
    np.testing.assert_array_equal(predicted, names[plain.predict(X)])
    np.testing.assert_array_equal(model.decision_function(X), plain.decision_function(X))


def test_true_and_false_are_labels():
    X, y = data()
    model = HKLClassifier(0.01).fit(X, y == 1)
    assert model.predict(X).dtype == bool
    assert np.mean(model.predict(X) == (y == 1)) > 0.8
    as_list = HKLClassifier(0.01).fit(X.tolist(), ["yes" if v else "no" for v in y])
    np.testing.assert_array_equal(as_list.predict(X) == "yes", model.predict(X))
    series = pd.Series(np.where(y == 1, "yes", "no"), dtype="category")
    frame = HKLClassifier(0.01).fit(pd.DataFrame(X, columns=list("abcd")), series)
    assert "a * b" in set(frame.hull_["term"])


def test_swapping_two_labels_swaps_the_sign():
    X, y = data()
    model = HKLClassifier(0.01, tol=1e-6).fit(X, y)
    swapped = HKLClassifier(0.01, tol=1e-6).fit(X, 1 - y)
    np.testing.assert_allclose(swapped.decision_function(X), -model.decision_function(X), atol=1e-2)
    np.testing.assert_array_equal(swapped.predict(X), 1 - model.predict(X))


@CLASSES
def test_probabilities_decisions_and_labels_are_consistent(n_classes):
    X, y = data(n_classes=n_classes)
    model = HKLClassifier(0.01).fit(X, y)
    f, p = model.decision_function(X), model.predict_proba(X)
    assert p.shape == (len(y), n_classes)
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-12)
    assert np.all(p > 0.0)
    np.testing.assert_allclose(np.log(p), model.predict_log_proba(X), atol=1e-10)
    expected = softmax(f, axis=1) if n_classes == 3 else np.stack([expit(-f), expit(f)], axis=1)
    np.testing.assert_allclose(p, expected, rtol=1e-12)
    np.testing.assert_array_equal(model.predict(X), model.classes_[np.argmax(p, axis=1)])
    # The intercept is not penalised: the mean probability of a class is its share.
    np.testing.assert_allclose(p.mean(axis=0), np.bincount(y) / len(y), atol=1e-6)


def test_logarithms_of_vanishing_probabilities_are_finite():
    X, y = data(60, p=2)
    model = HKLClassifier(1e-5, degree=3, basis="polynomial").fit(X, y)
    far = 100.0 * X[:5]
    assert np.min(model.predict_proba(far)) < 1e-300
    assert np.all(np.isfinite(model.predict_log_proba(far)))


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", Hinge()])
def test_a_hinge_has_no_probabilities(loss):
    X, y = data(60)
    model = HKLClassifier(0.05, loss=loss).fit(X, y)
    for name in ("predict_proba", "predict_log_proba"):
        assert not hasattr(model, name)
        with pytest.raises(AttributeError) as error:
            getattr(model, name)
        reasons = f"{error.value} {error.value.__cause__}"
        assert "no probabilities" in reasons
        assert "CalibratedClassifierCV" in reasons
    assert hasattr(HKLClassifier(), "predict_proba")
    assert hasattr(HKLClassifier(loss=LogLoss()), "predict_proba")
    calibrated = CalibratedClassifierCV(model, cv=2).fit(X, y)
    np.testing.assert_allclose(calibrated.predict_proba(X).sum(axis=1), 1.0)


def test_the_loss_of_more_classes_is_multinomial_or_one_vs_rest():
    X, y = data(80, n_classes=3)
    assert isinstance(HKLClassifier(0.1).fit(X, y).loss_, Multinomial)
    assert isinstance(HKLClassifier(0.1, loss="hinge").fit(X, y).loss_, Hinge)
    assert isinstance(HKLClassifier(0.1).fit(X, y > 0).loss_, LogLoss)
    one = HKLClassifier(0.1, loss=LogLoss()).fit(X, y)
    np.testing.assert_array_equal(one.coef_, HKLClassifier(0.1).fit(X, y).coef_)


@LOSSES
@pytest.mark.parametrize("search", ["lookahead", "paper"])
@pytest.mark.parametrize("certify", ["exact", "none"])
def test_every_search_fits_every_loss(loss, search, certify):
    X, y = data(100, p=3, n_classes=3)
    settings = {"loss": loss, "search": search, "degree": 2}
    model = HKLClassifier(0.01, certify=certify, **settings).fit(X, y)
    proven = HKLClassifier(0.01, certify="exact", search="lookahead", degree=2, loss=loss).fit(X, y)
    assert model.certificate_.certified == (certify == "exact")
    lower = proven.certificate_.dual_bound
    assert lower <= model.certificate_.objective <= lower * (1.0 + 3e-3)


@LOSSES
def test_statistical_bounds_work_for_every_loss(loss):
    X, y = data(400, p=7, n_classes=3)  # 2,187 nodes: fewer are listed
    settings = {"loss": loss, "degree": 2, "tol": 0.05}
    model = HKLClassifier(0.05, certify="statistical", **settings).fit(X, y)
    exact = HKLClassifier(0.05, certify="exact", **settings).fit(X, y)
    assert model.certificate_.kind == "statistical"
    assert model.certificate_.certified
    assert model.certificate_.dual_bound <= exact.certificate_.objective


@pytest.mark.parametrize("max_order", [1, 2])
def test_max_order_limits_the_interactions(max_order):
    X, y = data(200)
    model = HKLClassifier(0.003, max_order=max_order).fit(X, y)
    assert model.hull_["order"].max() == max_order
    assert model.certificate_.certified


def test_names_bases_and_pipelines():
    X, y = data()
    frame = pd.DataFrame(X, columns=["age", "income", "c", "d"])
    model = HKLClassifier(0.005, basis={"c": "spline"}).fit(frame, y)
    assert "age * income" in set(model.hull_["term"])
    search = GridSearchCV(
        make_pipeline(StandardScaler(), HKLClassifier(degree=2)),
        {"hklclassifier__alpha": [1.0, 0.01]},
        cv=3,
    ).fit(X, y)
    assert search.best_params_["hklclassifier__alpha"] == 0.01
    assert search.best_score_ > 0.7


@CLASSES
@pytest.mark.parametrize("loss", ["log_loss", "hinge"])
def test_copies_and_pickles_are_the_same_model(loss, n_classes):
    X, y = data(80, n_classes=n_classes)
    model = HKLClassifier(0.02, loss=loss, class_weight="balanced").fit(X, y)
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.predict(X), model.predict(X))
    np.testing.assert_array_equal(copy.decision_function(X), model.decision_function(X))
    again = clone(model)
    assert again.get_params() == model.get_params()
    assert not hasattr(again, "classes_")
    np.testing.assert_array_equal(again.fit(X, y).coef_, model.coef_)
