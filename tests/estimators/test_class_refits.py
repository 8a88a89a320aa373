"""Refits of classifiers with three classes and more."""

from __future__ import annotations

import numpy as np
import pytest
from oracles.formulas import WrittenFormula
from sklearn.datasets import load_iris, load_wine

import hikernel
from hikernel import HKLClassifier, HKLClassifierCV

pytestmark = pytest.mark.slow

QUICK = {"n_alphas": 4, "eps": 1e-2, "cv": 3, "degree": 2, "certify": "none", "basis": {}}

separable = pytest.mark.filterwarnings("ignore:The chosen alpha is the smallest that was tried")
"""These classes are separable, and the best alpha is the smallest of the few tried."""


def check(model, X, path):
    """Probabilities, effects and files of a model say the same."""
    f = model.decision_function(X)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), model.predict_proba(X))
    effects = model.effects(X)
    for k, label in enumerate(model.classes_):
        np.testing.assert_allclose(effects[str(label)].sum(axis=1), f[:, k], atol=1e-9)
    written = WrittenFormula(model._model, model._design)
    np.testing.assert_allclose(written.evaluate(X), f, atol=1e-6 * np.abs(f).max())
    assert model.formula().splitlines()[2].split() == ["share", *map(repr, model.classes_.tolist())]
    model.save(path / "model.hik")
    copy = hikernel.load(path / "model.hik")
    assert copy.refit_ == model.refit_
    np.testing.assert_array_equal(copy.decision_function(X), f)
    np.testing.assert_array_equal(copy.predict(X), model.predict(X))


@separable
@pytest.mark.parametrize("load", [load_iris, load_wine])
def test_cross_validation_compares_refits_of_classes(load, tmp_path):
    X, y = load(return_X_y=True)
    model = HKLClassifierCV(**QUICK).fit(X, y)
    assert set(model.cv_results_["refit"]) == {"None", "ridge", "sparse", "variables"}
    assert model.refit_ is not None
    plain = HKLClassifierCV(refit=None, **QUICK).fit(X, y)
    assert model.best_score_ > plain.best_score_
    assert model.score(X, y) > 0.95
    check(model, X, tmp_path)


@pytest.mark.parametrize("refit", ["ridge", "sparse", "unpenalised", "variables"])
@pytest.mark.parametrize("loss", ["log_loss", "squared_hinge"])
def test_every_refit_at_one_alpha(refit, loss, tmp_path):
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    settings = {"alpha": 0.05, "loss": loss, "degree": 2, "certify": "none"}
    model = HKLClassifier(refit=refit, **settings).fit(X, names)
    assert model.refit_ == refit
    assert model.coef_.shape[1:] == model.intercept_.shape == (3,)
    assert model.score(X, names) > 0.95
    if loss == "log_loss":
        check(model, X, tmp_path)


def test_weights_are_repeated_rows():
    X, y = load_iris(return_X_y=True)
    counts = np.random.default_rng(0).integers(0, 3, 150)
    rows = np.repeat(np.arange(150), counts)
    settings = {"alpha": 0.05, "degree": 2, "certify": "none", "refit": "unpenalised", "tol": 1e-6}
    weighted = HKLClassifier(**settings).fit(X, y, sample_weight=counts)
    repeated = HKLClassifier(**settings).fit(X[rows], y[rows])
    assert list(weighted.hull_["term"]) == list(repeated.hull_["term"])
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-3)


@separable
def test_losses_with_kinks_refuse():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="needs a smooth loss"):
        HKLClassifierCV(loss="hinge", refit="ridge", **QUICK).fit(X, y)
    model = HKLClassifierCV(loss="hinge", **{**QUICK, "n_alphas": 2}).fit(X, y)
    assert set(model.cv_results_["refit"]) == {"None"}
