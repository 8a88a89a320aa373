"""Losses of one's own: what check_loss finds, what the estimators take, what a file cannot hold."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from losses.cases import some_cases
from scipy.special import expit, xlog1py, xlogy
from sklearn.base import clone

import hikernel
from hikernel import HKLClassifier, HKLRegressor, HKLRegressorCV, hkl_path
from hikernel.losses import (
    CLASSIFICATION,
    REGRESSION,
    Huber,
    Loss,
    SquaredError,
    check_loss,
    make_loss,
    row_sums,
)


@dataclass(frozen=True)
class OwnHuber(Loss):
    """The Huber loss, written by somebody else."""

    delta: float = 0.5

    name: ClassVar[str] = "own huber"
    degree: ClassVar[int] = 2

    def value(self, y, f):
        r = np.abs(y - f)
        return row_sums(np.where(r <= self.delta, 0.5 * r**2, self.delta * (r - 0.5 * self.delta)))

    def gradient(self, y, f, smoothing=0.0):
        return np.clip(f - y, -self.delta, self.delta)

    def curvature(self, y, f, smoothing=0.0):
        return np.where(np.abs(y - f) <= self.delta, 1.0, 0.0)

    def conjugate(self, y, b):
        return row_sums(np.where(np.abs(b) <= self.delta, 0.5 * b**2 + b * y, np.inf))


class OwnLogLoss(Loss):
    """The log loss, written by somebody else."""

    name = "own log loss"
    for_labels = True

    def value(self, y, f):
        return row_sums(np.logaddexp(0.0, -y * f))

    def gradient(self, y, f, smoothing=0.0):
        return -y * expit(-y * f)

    def curvature(self, y, f, smoothing=0.0):
        return expit(f) * expit(-f)

    def conjugate(self, y, b):
        c = -y * b
        inside = (c >= 0.0) & (c <= 1.0)
        c = np.where(inside, c, 0.0)
        return row_sums(np.where(inside, xlogy(c, c) + xlog1py(1.0 - c, -c), np.inf))


@some_cases(lambda case: case.outputs is None)
def test_every_loss_of_the_package_passes(case):
    check_loss(case.loss, case.sample()[0])


def test_good_losses_pass():
    check_loss(OwnHuber(0.3), [-2.0, 0.0, 1.5])
    check_loss(OwnLogLoss(), [-1.0, 1.0])


def changed(**methods):
    """A Huber loss with some of its parts replaced."""
    return type("Changed", (OwnHuber,), methods)()


HALF = OwnHuber()


def summed(part):
    """A conjugate as a method, from that of one output."""
    return lambda self, y, b: row_sums(part(y, b))


def _entries(y, f):
    return HALF.value(np.ravel(y), np.ravel(f))


WRONG = {
    "gradient is not the derivative of value": {
        "gradient": lambda self, y, f, smoothing=0.0: 2.0 * HALF.gradient(y, f)
    },
    "curvature is not the derivative of gradient": {
        "curvature": lambda self, y, f, smoothing=0.0: np.full_like(f, 3.0)
    },
    "curvature is negative": {"curvature": lambda self, y, f, smoothing=0.0: -HALF.curvature(y, f)},
    "value lies above its chord": {
        "value": lambda self, y, f: row_sums(np.sqrt(np.abs(y - f))),
        "gradient": lambda self, y, f, smoothing=0.0: (
            0.5 * np.sign(f - y) / np.sqrt(np.maximum(np.abs(f - y), 1e-9))
        ),
        "curvature": lambda self, y, f, smoothing=0.0: np.zeros_like(f),
    },
    "the loss of a row depends on other rows": {
        "value": lambda self, y, f: HALF.value(y, f) * (1.0 + np.std(f))
    },
    "value is negative, but its minimum must be zero": {
        "value": lambda self, y, f: HALF.value(y, f) - f.size / len(f),
    },
    r"conjugate\(y, 0\) is not zero": {"conjugate": lambda self, y, b: HALF.conjugate(y, b) - 1.0},
    "conjugate is too small.* A certificate would be wrong": {
        "conjugate": summed(lambda y, b: np.where(np.abs(b) <= 0.5, 0.4 * b**2 + b * y, np.inf))
    },
    "conjugate is too large": {
        "conjugate": summed(lambda y, b: np.where(np.abs(b) <= 0.5, b**2 + b * y, np.inf))
    },
    "conjugate is infinite at a derivative": {
        "conjugate": summed(lambda y, b: np.where(np.abs(b) <= 0.4, 0.5 * b**2 + b * y, np.inf))
    },
    "conjugate is infinite between zero and a derivative": {
        "conjugate": summed(
            lambda y, b: np.where((np.abs(b) <= 0.5) & (4 * b % 1 == 0), 0.5 * b**2 + b * y, np.inf)
        )
    },
    r"value has shape \(1,\) for": {"value": lambda self, y, f: np.sum(f)[None]},
    r"value has shape \(123, 2\) where .* hikernel.losses.row_sums": {
        "value": lambda self, y, f: np.abs(y - f)
    },
    "value is not finite": {"value": lambda self, y, f: np.full_like(f, np.nan)},
    "degree is 2, but value changes when y and f grow": {
        "value": lambda self, y, f: row_sums((1.0 + y**2) * np.reshape(_entries(y, f), f.shape)),
        "gradient": lambda self, y, f, smoothing=0.0: (1.0 + y**2) * HALF.gradient(y, f),
        "curvature": lambda self, y, f, smoothing=0.0: (1.0 + y**2) * HALF.curvature(y, f),
        "conjugate": summed(lambda y, b: (1.0 + y**2) * (0.5 * (b / (1.0 + y**2)) ** 2) + b * y),
    },
    "Changed needs a class attribute name": {"name": None},
}


@pytest.mark.parametrize("sentence", WRONG)
def test_what_is_wrong_is_said(sentence):
    y = [0.0] if "infinite between" in sentence else [-1.0, 0.0, 2.0]
    with pytest.raises(ValueError, match=f"(?s){sentence}"):
        check_loss(changed(**WRONG[sentence]), y)


def test_a_wrong_degree_is_said():
    class OfDegreeOne(OwnLogLoss):
        name, degree, for_labels = "squares", 1, False

        def value(self, y, f):
            return row_sums(0.5 * (y - f) ** 2)

        def gradient(self, y, f, smoothing=0.0):
            return f - y

        def curvature(self, y, f, smoothing=0.0):
            return np.ones_like(f)

        def conjugate(self, y, b):
            return row_sums(0.5 * b**2 + b * y)

    with pytest.raises(ValueError, match=r"degree is 1, but value\(2 y, 2 f\) is not"):
        check_loss(OfDegreeOne(), [0.0, 1.0])


@pytest.mark.parametrize("what", ["huber", Huber, 3])
def test_what_is_no_loss(what):
    with pytest.raises(ValueError, match="derived from Loss"):
        check_loss(what, [1.0])


def data(n=120):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (n, 3))
    return X, X[:, 0] + X[:, 1] * X[:, 2] + 0.2 * rng.standard_normal(n)


def test_a_regressor_takes_it_and_finds_what_the_same_loss_of_the_package_finds(tmp_path):
    X, y = data()
    own, ours = (
        HKLRegressor(0.01, loss=loss, degree=2, refit="ridge").fit(X, y, offset=X[:, 0])
        for loss in (OwnHuber(0.4), Huber(0.4))
    )
    np.testing.assert_allclose(own.predict(X), ours.predict(X), rtol=1e-9)
    assert own.certificate_.certified
    assert own.certificate_.dual_bound == pytest.approx(ours.certificate_.dual_bound, rel=1e-9)
    assert own.summary()["loss"] == "own huber"
    assert clone(own).loss == own.loss
    again = pickle.loads(pickle.dumps(own))
    np.testing.assert_array_equal(again.predict(X), own.predict(X))
    with pytest.raises(ValueError, match=r"of your own class OwnHuber.* use pickle or joblib"):
        own.save(tmp_path / "model.hik")
    path = hkl_path(X, y, loss=OwnHuber(0.4), alphas=[0.01], degree=2, offset=X[:, 0])
    plain = hkl_path(X, y, loss=Huber(0.4), alphas=[0.01], degree=2, offset=X[:, 0])
    np.testing.assert_allclose(path.predict(X, 0.01), plain.predict(X, 0.01), rtol=1e-9)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The chosen alpha is the smallest")
def test_cross_validation_takes_it():
    X, y = data(60)
    own, ours = (
        HKLRegressorCV(loss=loss, alphas=[0.1, 0.01], degree=2, cv=2, basis="polynomial").fit(X, y)
        for loss in (OwnHuber(0.4), Huber(0.4))
    )
    assert own.best_score_ == pytest.approx(ours.best_score_, rel=1e-9)
    assert own.refit_ == ours.refit_


def test_a_classifier_takes_it():
    X, y = data()
    labels = np.where(y > 0, "up", "down")
    own, ours = (
        HKLClassifier(0.01, loss=loss, degree=2).fit(X, labels)
        for loss in (OwnLogLoss(), "log_loss")
    )
    np.testing.assert_allclose(own.decision_function(X), ours.decision_function(X), atol=1e-6)
    assert not hasattr(own, "predict_proba")
    assert hkl_path(X, labels, loss=OwnLogLoss(), alphas=[0.01]).predict(X)[0] in labels


class Derived(SquaredError):  # noqa: N818
    """A loss whose own methods solvers would pass over."""

    name = "derived"


class Nameless(OwnHuber):
    """A loss with the name of another."""

    name = "huber"


@pytest.mark.parametrize(
    ("loss", "choices", "sentence"),
    [
        (Derived(), REGRESSION, "Derived is derived from SquaredError; derive .* from hikernel"),
        (Nameless(), REGRESSION, "needs a class attribute name.* got 'huber'"),
        (OwnHuber(), CLASSIFICATION, r"loss must be one of .*for_labels=True"),
        (OwnLogLoss(), REGRESSION, r"loss must be one of .*for_labels=False"),
        (OwnHuber, REGRESSION, r"loss must be one of .*or one of your own class"),
    ],
)
def test_what_is_refused(loss, choices, sentence):
    with pytest.raises(ValueError, match=sentence):
        make_loss(loss, choices)


def test_the_checker_is_public():
    assert hikernel.losses.check_loss is check_loss
