"""Offsets and exposures: equal problems, other packages, folds, routing, files, bad input."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
import sklearn
import statsmodels.api as sm
from sklearn.base import clone
from sklearn.linear_model import GammaRegressor, TweedieRegressor
from sklearn.metrics import mean_poisson_deviance
from sklearn.model_selection import GridSearchCV, KFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import hikernel
from hikernel import (
    HKLClassifier,
    HKLClassifierCV,
    HKLRegressor,
    HKLRegressorCV,
    hkl_path,
    stability_selection,
)
from hikernel.graphs import KernelGraph
from hikernel.losses import Poisson, Tweedie

QUICK = {"degree": 2, "certify": "none"}


def data(n=120, p=3, seed=0):
    """Columns, a rate, and exposures from a month to five years."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, p))
    return X, np.exp(0.8 * X[:, 0] + X[:, 1] * X[:, -1]), rng.uniform(0.1, 5.0, n), rng


def line():
    """A graph whose features do not depend on weights, as bases of columns do."""
    functions = {"a": lambda X: X[:, 0], "b": lambda X: X[:, 1], "ab": lambda X: X[:, 0] * X[:, 1]}
    return KernelGraph({"a": [], "b": [], "ab": ["a", "b"]}, features=functions)


def test_counts_with_an_exposure_are_rates_with_weights():
    X, rate, exposure, rng = data()
    y = rng.poisson(rate * exposure).astype(float)
    weights = rng.uniform(0.5, 2.0, len(y))
    model = HKLRegressor(0.01, loss="poisson", graph=line(), tol=1e-6)
    counts = model.fit(X, y, weights, exposure=exposure).predict(X, exposure=exposure)
    # The objectives are sums over weights of sum one, and so differ by a factor.
    factor = np.sum(weights * exposure) / np.sum(weights)
    rates = HKLRegressor(0.01 / factor, loss="poisson", graph=line(), tol=1e-6)
    rates.fit(X, y / exposure, weights * exposure)
    np.testing.assert_allclose(counts, exposure * rates.predict(X), rtol=1e-3)
    objective, bound = model.certificate_.objective, model.certificate_.dual_bound
    assert objective == pytest.approx(factor * rates.certificate_.objective, rel=1e-5)
    assert bound == pytest.approx(factor * rates.certificate_.dual_bound, rel=1e-5)
    assert model.certificate_.certified


@pytest.mark.parametrize("loss", ["squared_error", "huber", "quantile"])
def test_an_offset_of_residuals_is_taken_from_y(loss):
    X, _, offset, rng = data(80)
    y = X[:, 0] + 3.0 * offset + 0.1 * rng.standard_normal(80)
    model = HKLRegressor(0.02, loss=loss, **QUICK).fit(X, y, offset=offset)
    moved = HKLRegressor(0.02, loss=loss, **QUICK).fit(X, y - offset)
    np.testing.assert_array_equal(model.predict(X), moved.predict(X))
    np.testing.assert_allclose(
        model.predict(X, offset=offset), moved.predict(X) + offset, rtol=1e-12
    )
    assert model.certificate_.objective == moved.certificate_.objective


def test_shapes_of_an_unpenalised_refit_are_those_of_statsmodels():
    X, rate, exposure, rng = data(200, 2)
    offset = 0.3 * rng.standard_normal(200)
    y = rng.poisson(rate * exposure * np.exp(offset)).astype(float)
    one = {"degree": 1, "max_order": 1, "basis": "polynomial", "certify": "none"}
    model = HKLRegressor(1e-4, loss="poisson", refit="unpenalised", **one)
    model.fit(X, y, offset=offset, exposure=exposure)
    glm = sm.GLM(y, sm.add_constant(X), sm.families.Poisson(), offset=offset, exposure=exposure)
    expected = glm.fit(tol=1e-12).predict()
    found = model.predict(X, offset=offset, exposure=exposure)
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("loss", "other"),
    [
        ("gamma", GammaRegressor(alpha=0.0, tol=1e-10, max_iter=1000)),
        (Tweedie(1.3), TweedieRegressor(power=1.3, link="log", alpha=0.0, tol=1e-10)),
    ],
    ids=["gamma", "tweedie"],
)
def test_an_unpenalised_refit_is_that_of_scikit_learn(loss, other):
    X, rate, _, rng = data(200, 2)
    y = rate * rng.gamma(2.0, 0.5, 200)
    if loss != "gamma":
        y[::4] = 0.0
    one = {"degree": 1, "max_order": 1, "basis": "polynomial", "certify": "none"}
    model = HKLRegressor(1e-4, loss=loss, refit="unpenalised", **one).fit(X, y)
    np.testing.assert_allclose(model.predict(X), other.fit(X, y).predict(X), rtol=1e-4)


def test_a_binary_offset_with_a_proof():
    X, _, _, rng = data(100)
    offset = rng.standard_normal(100)
    y = np.where(X[:, 0] + offset + 0.5 * rng.standard_normal(100) > 0, "yes", "no")
    model = HKLClassifier(0.01, degree=2).fit(X, y, offset=offset)
    assert model.certificate_.certified
    f = model.decision_function(X, offset=offset)
    np.testing.assert_allclose(f, model.decision_function(X) + offset)
    np.testing.assert_allclose(model.predict_proba(X, offset=offset)[:, 1], 1 / (1 + np.exp(-f)))
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X, offset=offset)).sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.predict(X, offset=offset), np.where(f > 0, "yes", "no"))
    assert model.score(X, y, offset=offset) == np.mean(model.predict(X, offset=offset) == y)
    assert model.score(X, y, offset=offset) > model.score(X, y) + 0.05
    # The objective is written out: the weighted mean of the loss at f + offset, and the penalty.
    norms = dict(zip(model.nodes_, model.hull_["norm"], strict=True))
    omega = sum(
        model.graph_.weight(v)
        * np.sqrt(sum(norms[w] ** 2 for w in norms if v in model.graph_.ancestors(w)))
        for v in norms
    )
    loss = np.mean(np.logaddexp(0.0, -np.where(y == "yes", 1.0, -1.0) * f))
    assert model.certificate_.objective == pytest.approx(loss + 0.005 * omega**2, rel=1e-8)


@pytest.mark.slow
def test_a_statistical_bound_holds_with_an_offset():
    X, rate, exposure, rng = data(100, 8)
    y = rng.poisson(rate * exposure).astype(float)
    exact = HKLRegressor(0.1, loss="poisson", degree=2, tol=1e-3).fit(X, y, exposure=exposure)
    model = HKLRegressor(0.1, loss="poisson", degree=2, certify="statistical", tol=0.2)
    certificate = model.fit(X, y, exposure=exposure).certificate_
    assert certificate.kind == "statistical"
    assert 0.8 * certificate.objective <= certificate.dual_bound <= exact.certificate_.objective


def test_a_warm_start_sees_that_the_offset_is_another_one():
    X, rate, exposure, rng = data(80)
    y = rng.poisson(rate * exposure).astype(float)
    warm = HKLRegressor(0.05, loss="poisson", warm_start=True, **QUICK)
    warm.fit(X, y, exposure=exposure).fit(X, y, exposure=exposure)
    cold = HKLRegressor(0.05, loss="poisson", **QUICK).fit(X, y, exposure=exposure)
    np.testing.assert_allclose(warm.predict(X), cold.predict(X), rtol=1e-3)
    assert warm._record.exposure == "exposure"
    again, plain = warm.fit(X, y), clone(cold).fit(X, y)
    np.testing.assert_array_equal(again.predict(X), plain.predict(X))
    assert again._record.exposure is None


def test_three_classes_have_an_offset_each():
    X, _, _, rng = data(120)
    offset = rng.standard_normal((120, 3))
    y = np.argmax(offset + X + 0.3 * rng.standard_normal((120, 3)), axis=1)
    model = HKLClassifier(0.01, degree=1, refit="ridge").fit(X, y, offset=offset)
    with_it, without = model.score(X, y, offset=offset), model.score(X, y)
    assert with_it > 0.8 > without
    assert model.decision_function(X, offset=offset).shape == (120, 3)
    with pytest.raises(ValueError, match=r"each of the 3 classes, in the order of classes_; got"):
        model.predict(X, offset=offset[:, 0])


def test_rows_of_no_weight_leave_with_their_offset():
    X, rate, exposure, rng = data()
    y = rng.poisson(rate * exposure).astype(float)
    weights = (rng.uniform(size=len(y)) > 0.3).astype(float)
    some = weights > 0
    whole = HKLRegressor(0.01, loss="poisson", **QUICK).fit(X, y, weights, exposure=exposure)
    part = HKLRegressor(0.01, loss="poisson", **QUICK)
    part.fit(X[some], y[some], exposure=exposure[some])
    np.testing.assert_allclose(whole.predict(X), part.predict(X), rtol=1e-9)


@pytest.mark.slow
def test_alpha_auto_and_paths_know_it():
    X, rate, exposure, rng = data()
    y = rng.poisson(rate * exposure).astype(float)
    model = HKLRegressor(loss="poisson", **QUICK).fit(X, y, exposure=exposure)
    path = hkl_path(X, y, loss="poisson", exposure=exposure, degree=2)
    assert path.at(model.alpha_).model.n_terms == model._selected.n_terms
    found = path.predict(X, model.alpha_, exposure=exposure)
    np.testing.assert_allclose(found, model.predict(X, exposure=exposure), rtol=1e-2)
    assert path.predict(X, exposure=exposure).shape == (len(y), len(path))
    np.testing.assert_allclose(
        path.decision_function(X, model.alpha_, offset=np.log(exposure)), np.log(found)
    )
    # What is explained is compared with the best constant rate, not with the best constant mean.
    null = np.mean(Poisson().value(y, np.log(exposure * y.sum() / exposure.sum())))
    left = np.mean(Poisson().value(y, np.log(model.predict(X, exposure=exposure))))
    assert model._record.explained == pytest.approx(1 - left / null, rel=1e-6)


@pytest.fixture(scope="module")
def counted():
    """A cross-validated fit of counts, and what went into it."""
    X, rate, exposure, rng = data(100, 3, seed=1)
    y = rng.poisson(rate * exposure).astype(float)
    frame = pd.DataFrame(X, columns=list("abc"))
    folds = list(KFold(2, shuffle=True, random_state=0).split(X))
    options = {"loss": "poisson", "alphas": [0.3, 0.03], "cv": folds, "degree": 1}
    return frame, y, pd.Series(exposure, name="years"), folds, options


def fitted_cv(counted, **more):
    frame, y, years, _, options = counted
    model = HKLRegressorCV(basis={}, **options, **more)
    with pytest.warns(UserWarning, match="smallest that was tried"):
        return model.fit(frame, y, exposure=years)


@pytest.mark.slow
def test_folds_score_held_out_rows_with_their_exposure(counted):
    frame, y, years, folds, _ = counted
    model = fitted_cv(counted)
    # The best constant is a rate, and its loss is written out here.
    expected = [
        -np.mean(
            Poisson().value(y[test], np.log(years[test] * y[train].sum() / years[train].sum()))
        )
        for train, test in folds
    ]
    assert model._record.simpler.constant == pytest.approx(np.mean(expected), rel=1e-6)
    assert model._record.simpler.constant < model._record.simpler.linear < model.best_score_ + 0.05
    np.testing.assert_allclose(model.path_.predict(frame, 0.03, exposure=years) / years,
                               model.path_.predict(frame, 0.03), rtol=1e-12)  # fmt: skip
    # A scorer that knows of no exposure still sees predictions for it.
    seen = []

    def scorer(estimator, X, y):
        mean = estimator.predict(X)
        seen.append(np.allclose(mean, estimator.predict(X, exposure=years[X.index])))
        return -0.5 * mean_poisson_deviance(y, mean)

    by_scorer = fitted_cv(counted, scoring=scorer)
    assert seen
    assert all(seen)
    np.testing.assert_allclose(
        by_scorer.cv_results_["mean_test_score"], model.cv_results_["mean_test_score"], rtol=1e-9
    )
    assert by_scorer._fold_offset is None


@pytest.mark.slow
def test_folds_of_residuals_are_those_of_the_difference():
    X, _, offset, rng = data(90)
    y = X[:, 0] + offset + 0.3 * rng.standard_normal(90)
    options = {"alphas": [0.1, 1e-3, 1e-4], "cv": 2, "degree": 1, "basis": {}}
    model = HKLRegressorCV(**options).fit(X, y, offset=offset)
    moved = HKLRegressorCV(**options).fit(X, y - offset)
    for name in ("mean_test_score", "split0_test_score"):
        np.testing.assert_array_equal(model.cv_results_[name], moved.cv_results_[name])
    assert model._record.simpler == moved._record.simpler
    assert "of the variance of y - offset on held-out rows" in model.summary()["quality"]["words"]


@pytest.mark.slow
def test_classes_in_folds():
    X, _, _, rng = data(120)
    offset = 3.0 * rng.standard_normal(120)
    y = (X[:, 0] + offset + 0.3 * rng.standard_normal(120) > 0).astype(int)
    options = {"alphas": [0.1], "cv": 3, "degree": 1, "refit": None, "basis": {}}
    scores = [
        HKLClassifierCV(**options, scoring="accuracy").fit(X, y, offset=given).best_score_
        for given in (offset, None)
    ]
    assert scores[0] > 0.9 > scores[1]


def test_stability_selection_keeps_rows_and_offsets_together():
    X, _, _, rng = data(100)
    offset = 5.0 * rng.standard_normal(100)
    y = X[:, 0] + offset + 0.1 * rng.standard_normal(100)
    estimator = HKLRegressor(0.05, degree=1)
    found = stability_selection(estimator, X, y, offset=offset, n_subsamples=4)
    moved = stability_selection(estimator, X, y - offset, n_subsamples=4)
    pd.testing.assert_frame_equal(found.terms, moved.terms)
    assert found.variables["selected"].tolist() == [True, False, False]
    counts = rng.poisson(np.exp(X[:, 0] + 0.3 * offset)).astype(float)
    poisson = HKLRegressor(0.1, loss="poisson", degree=1)
    kept = stability_selection(poisson, X, counts, exposure=np.exp(0.3 * offset), n_subsamples=4)
    assert kept.variables["selected"].tolist() == [True, False, False]


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def test_metadata_is_routed(routing):
    X, rate, exposure, rng = data(90)
    y = rng.poisson(rate * exposure).astype(float)
    model = HKLRegressor(0.05, loss="poisson", degree=1, certify="none")
    model.set_fit_request(exposure=True).set_score_request(exposure=True)
    model.set_predict_request(exposure=True, offset=False)
    alone = model.fit(X[30:], y[30:], exposure=exposure[30:])
    folds = [(np.arange(30, 90), np.arange(30))]
    found = cross_validate(model, X, y, cv=folds, params={"exposure": exposure})
    expected = alone.score(X[:30], y[:30], exposure=exposure[:30])
    assert found["test_score"][0] == pytest.approx(expected)
    assert expected > alone.score(X[:30], y[:30]) + 0.05
    search = GridSearchCV(model, {"alpha": [0.05, 5.0]}, cv=folds)
    search.fit(X, y, exposure=exposure)
    assert search.cv_results_["split0_test_score"][0] == pytest.approx(expected)
    scaled = make_pipeline(StandardScaler(), clone(model))
    pipeline = scaled.fit(X[30:], y[30:], exposure=exposure[30:])
    np.testing.assert_allclose(
        pipeline.predict(X, exposure=exposure), alone.predict(X, exposure=exposure), rtol=1e-4
    )


def test_probabilities_are_routed(routing):
    X, _, _, rng = data(60)
    offset = rng.standard_normal(60)
    y = (X[:, 0] + offset > 0).astype(int)
    model = HKLClassifier(0.1, degree=1, certify="none").set_fit_request(offset=True)
    model.set_predict_proba_request(offset=True)
    pipeline = make_pipeline(StandardScaler(), clone(model)).fit(X, y, offset=offset)
    alone = model.fit(StandardScaler().fit_transform(X), y, offset=offset)
    found = pipeline.predict_proba(X, offset=offset)
    np.testing.assert_allclose(
        found, alone.predict_proba(StandardScaler().fit_transform(X), offset)
    )


def test_it_is_told_and_saved(tmp_path):
    X, rate, exposure, rng = data(80)
    y = rng.poisson(rate * exposure).astype(float)
    series = pd.Series(exposure, name="years")
    model = HKLRegressor(0.05, loss="poisson", degree=1).fit(X, y, exposure=series, offset=X[:, 0])
    facts = model.summary()["data"]
    assert (facts["offset"], facts["exposure"]) == ("offset", "years")
    assert model.formula().endswith("mean of y = exp(f + offset) * years")
    assert model.summary()["link"] == {"kind": "exp", "words": model._link()}
    assert str(model.explain(X[:1])).endswith(", here with offset = 0 and years = 1")
    json.dumps(model.summary())
    model.save(tmp_path / "model.hik")
    again = hikernel.load(tmp_path / "model.hik")
    assert again.summary() == model.summary()
    np.testing.assert_array_equal(
        again.predict(X, exposure=exposure), model.predict(X, exposure=exposure)
    )
    plain = HKLRegressor(0.05, degree=1).fit(X, y, offset=X[:, 0])
    assert plain.formula().endswith("prediction = f + offset")
    assert plain.explain(X[:1]).prediction == pytest.approx(plain.predict(X[:1])[0])
    labels = HKLClassifier(0.05, degree=1).fit(X, y > 1, offset=X[:, 0])
    assert labels.formula().endswith("(1 + exp(-f)), where offset is added to f")


BAD = [
    ({"offset": np.zeros(3)}, r"offset must have one number for each of the 20 rows; got .*\(3,\)"),
    ({"offset": 0.0}, r"offset must have one number for each of the 20 rows; got .*\(\)"),
    ({"offset": np.zeros((20, 1))}, r"each of the 20 rows; got an array of shape \(20, 1\)"),
    ({"offset": np.r_[np.nan, np.zeros(19)]}, "offset must be finite, but row 0 has nan"),
    ({"exposure": np.r_[1.0, np.inf, np.ones(18)]}, "exposure must be finite, but row 1 has inf"),
    ({"exposure": np.r_[1.0, 1.0, np.zeros(18)]}, "must be positive, but row 2 has 0; leave out"),
    ({"exposure": -np.ones(20)}, "exposure must be positive, but row 0 has -1"),
    ({"offset": ["a"] * 20}, "offset must hold numbers, one for each row"),
]


@pytest.mark.parametrize(("given", "sentence"), BAD)
def test_bad_input_gets_a_sentence_in_fit_and_in_predict(given, sentence):
    X, rate, _, _ = data(20)
    model = HKLRegressor(1.0, loss="poisson", **QUICK)
    with pytest.raises(ValueError, match=sentence):
        model.fit(X, rate, **given)
    with pytest.raises(ValueError, match=sentence):
        model.fit(X, rate).predict(X, **given)
    with pytest.raises(ValueError, match=sentence):
        hkl_path(X, rate, loss="poisson", **given)


@pytest.mark.parametrize("loss", ["squared_error", "quantile"])
def test_an_exposure_needs_a_logarithmic_link(loss):
    X, rate, exposure, _ = data(20)
    sentence = f'exposure multiplies means, which the loss {loss!r} .* use loss="poisson", "gamma"'
    with pytest.raises(ValueError, match=sentence):
        HKLRegressor(1.0, loss=loss).fit(X, rate, exposure=exposure)
