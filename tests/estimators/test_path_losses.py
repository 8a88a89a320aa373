"""Paths with every kind of loss: labels, means and quantiles, each point a model of its own."""

from __future__ import annotations

import numpy as np
import pytest

from hikernel import HKLClassifier, HKLRegressor, hkl_path
from hikernel.losses import CLASSIFICATION, REGRESSION, Multinomial, Quantile
from hikernel.selection import PathEnd

pytestmark = pytest.mark.slow

LOG_LINK = ("poisson", "gamma", "tweedie")
ALPHAS = [0.1, 0.02, 0.005]


def data(n=150, p=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    return X, X[:, 0] + 2.0 * X[:, 0] * X[:, 1] + 0.5 * rng.standard_normal(n)


def labels_of(signal, n_classes):
    """Classes by size."""
    cuts = np.quantile(signal, np.arange(1, n_classes) / n_classes)
    return np.array(["low", "middle", "top"])[np.searchsorted(cuts, signal)]


def assert_same_model(point, alone, f, g):
    """A point of a path and a fit of its own have the same objective, up to their gaps."""
    slack = point.model.certificate.gap + alone.certificate_.gap
    assert point.model.certificate.certified
    assert abs(point.model.certificate.objective - alone.certificate_.objective) <= slack
    np.testing.assert_allclose(f, g, atol=0.15 * np.std(g) + 1e-6)


@pytest.mark.parametrize("loss", sorted(CLASSIFICATION))
@pytest.mark.parametrize("n_classes", [2, 3])
def test_every_point_of_a_classification_path_is_the_model_of_its_alpha(loss, n_classes):
    X, signal = data()
    y = labels_of(signal, n_classes)
    path = hkl_path(X, y, loss=loss, alphas=ALPHAS, certify="exact", degree=2)
    assert len(path) == 3
    for alpha in path.alphas:
        alone = HKLClassifier(alpha, loss=loss, degree=2).fit(X, y)
        point = path.at(alpha)
        f = point.model.predict(path.design, X)
        assert_same_model(point, alone, f, alone.decision_function(X))
        predicted = path.predict(X, alpha=alpha)
        assert predicted.dtype == y.dtype
        assert np.mean(predicted == alone.predict(X)) > 0.9
    everything = path.predict(X)
    assert everything.shape == (len(y), 3)
    assert set(everything.ravel()) <= set(y)
    assert np.mean(everything[:, -1] == y) > 0.6


@pytest.mark.parametrize("loss", [*sorted(REGRESSION), Quantile(0.8)], ids=str)
def test_every_point_of_a_regression_path_is_the_model_of_its_alpha(loss):
    X, y = data()
    if loss in LOG_LINK:
        y = np.round(np.exp(0.5 * y)) + (loss == "gamma")
    path = hkl_path(X, y, loss=loss, alphas=ALPHAS, certify="exact", degree=2)
    for alpha in path.alphas:
        alone = HKLRegressor(alpha, loss=loss, degree=2).fit(X, y)
        assert_same_model(path.at(alpha), alone, path.predict(X, alpha=alpha), alone.predict(X))
    if loss in LOG_LINK:
        assert np.all(path.predict(X) > 0.0)


@pytest.mark.parametrize("loss", [*sorted(CLASSIFICATION), *sorted(REGRESSION)])
def test_the_automatic_grid_starts_small_and_explains_more_and_more(loss):
    X, y = data()
    if loss in LOG_LINK:
        y = np.round(np.exp(0.5 * y)) + (loss == "gamma")
    elif loss in CLASSIFICATION:
        y = labels_of(y, 3)
    path = hkl_path(X, y, loss=loss, n_alphas=8, eps=1e-4, degree=2)
    table = path.table()
    assert path.points[0].explained < 0.25
    assert path.points[-1].explained > 0.4
    assert np.all(np.diff(table["explained"]) > -1e-3)
    assert np.all(np.diff(table["alpha"]) < 0)
    assert "x0 * x1" in set(path.hull(path.alphas[-1])["term"])


@pytest.mark.parametrize("loss", ["log_loss", "hinge", "poisson", "quantile"])
def test_the_explained_share_is_that_of_the_loss(loss):
    X, y = data(80)
    if loss in LOG_LINK:
        y = np.round(np.exp(0.5 * y)) + (loss == "gamma")
    elif loss in CLASSIFICATION:
        y = np.where(y > 0, 1.0, -1.0)
    path = hkl_path(X, y, loss=loss, alphas=[0.02], degree=2)
    point = path.points[0]
    rule = (REGRESSION | CLASSIFICATION)[loss]()
    f = point.model.predict(path.design, X)
    constants = np.linspace(-2, 4, 60001)
    null = min(float(np.mean(rule.value(y, np.full(len(y), b)))) for b in constants[::100])
    share = 1.0 - np.mean(rule.value(y, f)) / null
    assert point.explained == pytest.approx(share, abs=5e-3)
    assert 0.0 < point.explained < 1.0


def test_weights_reach_the_path_of_a_classifier():
    X, signal = data()
    y = labels_of(signal, 3)
    weights = np.random.default_rng(0).integers(0, 3, len(y))
    path = hkl_path(X, y, loss="log_loss", alphas=[0.01], sample_weight=weights, tol=1e-5)
    again = hkl_path(
        np.repeat(X, weights, axis=0),
        np.repeat(y, weights),
        loss="log_loss",
        alphas=[0.01],
        tol=1e-5,
    )
    assert np.mean(path.predict(X) == again.predict(X)) > 0.98


def test_a_saturated_classifier_ends_the_path():
    X, _ = data()
    path = hkl_path(X, X[:, 0] > 0, loss="squared_hinge", n_alphas=40, eps=1e-9, degree=2)
    assert path.reason is PathEnd.SATURATED
    assert len(path) < 40


@pytest.mark.parametrize(
    ("loss", "y", "sentence"),
    [
        ("log_loss", np.linspace(0, 1, 40), "Unknown label type"),
        ("hinge", np.ones(40, dtype=int), "one class only"),
        ("poisson", -np.ones(40), "negative"),
        ("quantile", np.array(["a", "b"] * 20), "a regressor needs numbers"),
        ("absolute", np.arange(40.0), "'squared_error', .*'log_loss'"),
        (Multinomial(), np.arange(40) % 3, "log_loss"),
        (None, np.arange(40.0), "loss must be one of"),
    ],
    ids=str,
)
def test_targets_and_losses_that_do_not_fit_are_refused(loss, y, sentence):
    X, _ = data(40)
    with pytest.raises(ValueError, match=sentence):
        hkl_path(X, y, loss=loss)
