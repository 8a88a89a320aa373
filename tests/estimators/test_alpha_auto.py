"""alpha="auto": the alpha of least estimated error on a path, and models that are worth having."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from hikernel import HKLClassifier, HKLRegressor, hkl_path
from hikernel.errors import ConvergenceWarning
from hikernel.selection import PathEnd


def data(n=400, p=6, seed=0, noise=0.1):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (n, p))
    return X, X[:, 0] + 2.0 * X[:, 1] * X[:, 2] + noise * rng.standard_normal(n)


def test_it_is_the_default_and_any_other_text_is_refused():
    for make in (HKLRegressor, HKLClassifier):
        assert make().alpha == "auto"
        for alpha in ("best", None, 0.0, -1.0, np.nan, np.inf):
            with pytest.raises(ValueError, match=r'alpha must be a finite number.*alpha="auto"'):
                make(alpha).fit(*data(20))


@pytest.mark.parametrize("loss", ["squared_error", "huber", "poisson", "quantile"])
def test_alpha_is_that_of_the_least_error_of_the_path(loss):
    X, y = data(150, 4, noise=0.3)
    y = np.round(np.exp(y)) if loss == "poisson" else y
    model = HKLRegressor(loss=loss).fit(X, y)
    path = hkl_path(X, y, loss=loss)
    assert path.reason in (PathEnd.TURNED, PathEnd.SATURATED)
    table = path.table()
    assert model.alpha_ == table["alpha"][table["error"].argmin()]
    assert table["error"].argmin() < len(table) - 1
    # The model is that of this alpha, with a proof.
    given = HKLRegressor(model.alpha_, loss=loss).fit(X, y)
    assert given.alpha_ == given.alpha == model.alpha_
    assert model.certificate_.certified
    slack = model.certificate_.gap + given.certificate_.gap
    assert abs(model.certificate_.objective - given.certificate_.objective) <= slack


def test_a_classifier_too():
    X, f = data(300, 4)
    y = np.where(f + 0.3 * np.random.default_rng(1).standard_normal(300) > 0.0, "yes", "no")
    model = HKLClassifier().fit(X, y)
    path = hkl_path(X, y, loss="log_loss")
    assert model.alpha_ == path.alphas[path.table()["error"].argmin()]
    new, g = data(1000, 4, seed=2)
    assert model.score(new, np.where(g > 0.0, "yes", "no")) > 0.9


def test_a_simple_signal_is_found():
    X, y = data()
    model = HKLRegressor().fit(X, y)
    new, truth = data(1000, seed=1, noise=0.0)
    assert model.score(new, truth) > 0.995
    assert set(model.effects_["effect"][:2]) == {"x0", "x1 * x2"}
    assert model.effects_["share"][:2].sum() > 0.99
    assert model.certificate_.certified


@pytest.mark.parametrize("seed", range(4))
def test_noise_has_few_terms(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((300, 8)), rng.standard_normal(300)
    model = HKLRegressor().fit(X, y)
    assert len(model.terms_) <= 3
    assert np.var(model.predict(X)) < 0.05


def test_weights_are_close_to_repeated_rows():
    # Not the same: a repeated row is counted as two, a row of weight two as less than two.
    X, y = data()
    weights = np.random.default_rng(0).integers(1, 3, len(y))
    model = HKLRegressor(tol=1e-4)
    weighted = clone(model).fit(X, y, sample_weight=weights)
    repeated = clone(model).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    assert 0.3 < weighted.alpha_ / repeated.alpha_ < 3.0
    assert np.max(np.abs(weighted.predict(X) - repeated.predict(X))) < 0.05 * np.std(y)


def test_a_refit_is_of_the_chosen_terms():
    X, y = data(150, 4, noise=0.3)
    base = HKLRegressor().fit(X, y)
    model = HKLRegressor(refit="ridge").fit(X, y)
    assert model.alpha_ == base.alpha_
    assert model.hull_.equals(base.hull_)
    assert model.refit_ == "ridge"


def test_a_path_that_is_cut_off_is_said():
    X, y = data(noise=0.01)
    with pytest.warns(ConvergenceWarning, match="smallest that was tried.*max_kernels") as caught:
        model = HKLRegressor(max_kernels=5, certify="none").fit(X, y)
    assert [warning.filename for warning in caught] == [__file__]
    assert len(model.hull_) <= 5
