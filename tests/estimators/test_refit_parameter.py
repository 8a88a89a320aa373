"""The refit parameter of the estimators with one alpha."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import hikernel
from hikernel import HKLClassifier, HKLRegressor
from hikernel.bases import OrthonormalPolynomial
from hikernel.losses import Quantile


def data(n=200):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (n, 4))
    y = X[:, 0] + 2 * X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(n)
    return X, y


@pytest.mark.parametrize("refit", ["ridge", "unpenalised", "variables"])
def test_a_refit_takes_the_shrinkage_out_and_keeps_the_certificate(refit, tmp_path):
    X, y = data()
    shrunk = HKLRegressor(0.02).fit(X, y)
    model = HKLRegressor(0.02, refit=refit).fit(X, y)
    assert model.refit_ == refit
    assert model.score(X, y) > 0.98 > 0.95 > shrunk.score(X, y)
    assert model.certificate_ == replace(shrunk.certificate_, refit=refit)
    assert f"predictions come from a refit ({refit})" in str(model.certificate_)
    np.testing.assert_allclose(model.effects(X).sum(axis=1), model.predict(X), rtol=1e-9)
    model.save(tmp_path / "model.hik")
    copy = hikernel.load(tmp_path / "model.hik")
    assert copy.refit_ == refit
    np.testing.assert_array_equal(copy.predict(X), model.predict(X))


def test_a_refitted_classifier_is_more_certain():
    X, y = data()
    shrunk = HKLClassifier(0.02).fit(X, y > 0)
    model = HKLClassifier(0.02, refit="ridge").fit(X, y > 0)
    f, g = shrunk.decision_function(X), model.decision_function(X)
    assert np.abs(g).mean() > 2 * np.abs(f).mean()


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"refit": "lasso"}, "refit must be one of None, 'ridge'"),
        ({"refit": "auto"}, "HKLRegressorCV"),
        ({"refit": "ridge", "loss": Quantile(0.9)}, "needs a smooth loss"),
        ({"refit": "unpenalised", "alpha": 1e-5}, "too many"),
    ],
)
def test_refits_that_do_not_apply_say_so(settings, sentence):
    X, y = data(60)
    with pytest.raises(ValueError, match=sentence):
        HKLRegressor(**{"alpha": 0.01, "certify": "none", **settings}).fit(X, y)


@pytest.mark.parametrize("refit", [None, "ridge", "unpenalised", "variables"])
def test_the_hull_is_a_hull_and_the_terms_are_what_predicts(refit):
    X, y = data()
    plain = HKLRegressor(0.02).fit(X, y)
    model = HKLRegressor(0.02, refit=refit).fit(X, y)
    # The hull of the convex problem, root and ancestors included, whatever predicts.
    pd.testing.assert_frame_equal(model.hull_, plain.hull_)
    names = set(model.hull_["term"])
    assert "1" in names
    assert model.graph_.hull(plain.nodes_) == set(plain.nodes_)
    assert len(plain.nodes_) == len(model.hull_)
    for term in names:
        assert set(term.split(" * ")) <= names
    # The terms are those of the coefficients that predict.
    effects = model.effects(X, by="term")
    assert list(effects.columns) == ["intercept", *model.terms_["term"]]
    np.testing.assert_allclose(effects.sum(axis=1), model.predict(X), atol=1e-9)
    widths = dict(zip(model.terms_["term"], model.terms_["width"], strict=True))
    assert sum(widths.values()) <= len(model.coef_)


@pytest.mark.parametrize("degree", [2, 3, 4, 5])
def test_the_refit_on_variables_goes_two_degrees_beyond_the_search(degree):
    X, y = data()
    model = HKLRegressor(0.02, degree=degree, refit="variables").fit(X, y)
    assert model.terms_["degree"].max() == degree + 2
    assert max(level for node in model.nodes_ for _, level in node) == degree + 2


def test_a_basis_object_keeps_its_levels_in_the_refit_on_variables():
    X, y = data()
    basis = OrthonormalPolynomial(3)
    model = HKLRegressor(0.02, basis=basis, refit="variables").fit(X, y)
    assert max(level for node in model.nodes_ for _, level in node) == 3
