"""Conformal intervals and sets: the exact index, their guarantee, cross-calibration, bad input."""

import itertools
import pickle
import warnings
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import KFold, ShuffleSplit

import hikernel
from hikernel import HKLClassifier, HKLClassifierCV, HKLRegressor, HKLRegressorCV
from hikernel.selection.conformal import Calibration, least_rows

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, size=(400, 3))
Y = X[:, 0] + X[:, 1] * X[:, 2] + 0.3 * RNG.standard_normal(400)
LABELS = np.array(["a", "b", "c"])[np.argmax(X * 2.0 + RNG.gumbel(size=(400, 3)), axis=1)]
FIT, CAL, NEW = slice(0, 150), slice(150, 269), slice(269, 400)


@pytest.fixture(scope="module")
def regressor():
    return HKLRegressor(0.02, refit="ridge", certify="none").fit(X[FIT], Y[FIT])


@pytest.fixture(scope="module")
def classifier():
    return HKLClassifier(0.02, certify="none").fit(X[FIT], LABELS[FIT])


def test_every_order_of_exchangeable_scores_is_covered_as_often_as_promised():
    scores = np.array([0.3, 1.2, 2.0, 3.1, 4.7, 5.5])
    for level in (0.5, 0.6, 0.75, 0.8):
        # Each of the six is the new one as often as the others.
        inside = [
            new <= Calibration(np.sort(np.delete(scores, i))).quantile(level)
            for i, new in enumerate(scores)
        ]
        covered = Fraction(sum(inside), 6)
        assert Fraction(str(level)) <= covered <= Fraction(str(level)) + Fraction(1, 6)


@pytest.mark.parametrize("level", [0.1, 0.3, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99])
def test_the_index_is_exact(level):
    for n in itertools.chain(range(1, 120), [999, 9_999]):
        index = -(-(n + 1) * round(100 * level) // 100)  # in integers
        expected = index - 1.0 if index <= n else np.inf
        assert Calibration(np.arange(float(n))).quantile(level) == expected
        assert (n >= least_rows(level)) == np.isfinite(expected)


def test_coverage_is_that_of_the_guarantee():
    """Over calibration sets the coverage has mean k / (n + 1), whatever the model is."""
    model = HKLRegressor(0.3, certify="none").fit(X[FIT], Y[FIT])
    rng = np.random.default_rng(1)
    covered = []
    for _ in range(60):
        rows = rng.uniform(-1, 1, size=(39 + 200, 3))
        y = rows[:, 0] + rng.standard_exponential(239)
        low, high = model.calibrate(rows[:39], y[:39]).predict_interval(rows[39:], 0.8).T
        covered.append(np.mean((low <= y[39:]) & (y[39:] <= high)))
    # Beta(32, 8) has standard deviation 0.062; the mean of 60, with 200 rows each, 0.009.
    assert abs(np.mean(covered) - 32 / 40) < 0.03


def test_intervals_are_symmetric_about_the_prediction(regressor):
    regressor.calibrate(X[CAL], Y[CAL])
    errors = np.sort(np.abs(Y[CAL] - regressor.predict(X[CAL])))
    low, high = regressor.predict_interval(X[NEW], 0.9).T
    np.testing.assert_allclose(high - regressor.predict(X[NEW]), errors[107])  # 108 = 0.9 * 120
    np.testing.assert_allclose(regressor.predict(X[NEW]) - low, errors[107])
    wider = regressor.predict_interval(X[NEW], 0.95)
    assert np.all(wider[:, 0] < low)
    assert np.all(wider[:, 1] > high)


def test_scaled_intervals_are_wider_where_less_is_known(regressor):
    regressor.calibrate(X[CAL], Y[CAL], scaled=True)
    inside, outside = regressor.predict_interval(X[NEW]), regressor.predict_interval(3.0 * X[NEW])
    assert np.mean(np.diff(outside)) > 1.02 * np.mean(np.diff(inside))
    mean, std = regressor.predict(X[CAL], return_std=True)
    expected = np.sqrt(regressor.posterior_.dispersion + std**2)
    scores = np.sort(np.abs(Y[CAL] - mean) / expected)
    np.testing.assert_allclose(regressor._calibration.scores, scores)
    covered = (inside[:, 0] <= Y[NEW]) & (Y[NEW] <= inside[:, 1])
    assert np.mean(covered) > 0.8


def test_counts_have_intervals_from_zero_on_that_grow_with_the_mean():
    counts = np.random.default_rng(2).poisson(np.exp(1.0 + 1.5 * X[:, 0]))
    model = HKLRegressor(0.02, loss="poisson", refit="ridge", certify="none")
    model.fit(X[FIT], counts[FIT]).calibrate(X[CAL], counts[CAL], scaled=True)
    low, high = model.predict_interval(X[NEW]).T
    assert low.min() == 0.0
    assert np.corrcoef(high - low, model.predict(X[NEW]))[0, 1] > 0.8
    _, std = model.predict(X[NEW], return_std=True)
    variance = model.posterior_.dispersion * model.predict(X[NEW]) + std**2
    half = model._calibration.quantile(0.9) * np.sqrt(variance)
    np.testing.assert_allclose(high - model.predict(X[NEW]), half, rtol=1e-6)


def test_sets_hold_the_classes_that_are_likely_enough(classifier):
    classifier.calibrate(X[CAL], LABELS[CAL])
    shares = classifier.predict_proba(X[CAL])
    index = np.searchsorted(classifier.classes_, LABELS[CAL])
    own = np.sort(shares[np.arange(119), index])[::-1]
    sets = classifier.predict_set(X[NEW], 0.9)
    np.testing.assert_array_equal(sets, classifier.predict_proba(X[NEW]) >= own[107] * (1 - 1e-12))
    held = sets[np.arange(len(sets)), np.searchsorted(classifier.classes_, LABELS[NEW])]
    assert np.mean(held) > 0.8
    assert sets.sum(axis=1).mean() < 2.6


@pytest.mark.parametrize("loss", ["log_loss", "hinge"])
def test_two_classes(loss):
    model = HKLClassifier(0.02, loss=loss, certify="none").fit(X[FIT], LABELS[FIT] == "a")
    sets = model.calibrate(X[CAL], LABELS[CAL] == "a").predict_set(X[NEW], 0.9)
    assert sets.shape == (131, 2)
    held = sets[np.arange(131), (LABELS[NEW] == "a").astype(int)]
    assert np.mean(held) > 0.8
    assert np.all(sets[:, 1] >= model.predict(X[NEW])) or np.any(sets.sum(axis=1) == 0)


def test_cross_calibration_uses_models_of_folds():
    model = HKLRegressor(0.02, refit="ridge", certify="none").fit(X, Y)
    folds = list(KFold(4, shuffle=True, random_state=5).split(X))
    model.calibrate(X, Y, cv=folds)
    errors = np.empty(400)
    for train, test in folds:
        part = clone(model).fit(X[train], Y[train])
        errors[test] = np.abs(Y[test] - part.predict(X[test]))
    np.testing.assert_allclose(model._calibration.scores, np.sort(errors), rtol=1e-7)
    assert model._calibration.cross
    one = model.calibrate(X, Y, cv=3)._calibration.scores
    np.testing.assert_array_equal(one, model.calibrate(X, Y, cv=3)._calibration.scores)
    scaled = model.calibrate(X, Y, cv=3, scaled=True).predict_interval(X[:5])
    assert np.ptp(np.diff(scaled)) > 0.0


def test_cross_calibration_takes_weights_and_what_cross_validation_chose():
    frame = pd.DataFrame(X, columns=list("abc"))
    weights = np.where(np.arange(400) % 2, 1.0, 0.0)
    model = HKLRegressorCV(alphas=[0.02], cv=3, certify="none", refit="ridge")
    model.fit(frame, Y, sample_weight=weights)
    folds = list(KFold(2).split(X))
    model.calibrate(frame, Y, cv=folds, sample_weight=weights)
    errors = np.empty(400)
    for train, test in folds:
        part = HKLRegressor(model.alpha_, refit="ridge", certify="none")
        part.fit(frame.iloc[train], Y[train], sample_weight=weights[train])
        errors[test] = np.abs(Y[test] - part.predict(frame.iloc[test]))
    used = np.sort(errors[weights > 0])
    np.testing.assert_allclose(model._calibration.scores, used, rtol=1e-7)


def test_cross_calibration_of_classes_and_of_a_loaded_model_with_steps(tmp_path):
    model = HKLClassifierCV(alphas=[0.05], cv=3, certify="none", refit=None, max_order=1)
    model.fit(X, LABELS).calibrate(X, LABELS, cv=3)
    assert model.predict_set(X).shape == (400, 3)
    y = np.where(X[:, 0] > 0.1, 1.0, 0.0)
    stepped = HKLRegressor(0.01, basis="auto+steps", max_order=1, certify="none", refit="ridge")
    stepped.fit(X, y).calibrate(X, y, cv=3).save(tmp_path / "model.hik")
    again = hikernel.load(tmp_path / "model.hik")
    kept = again.predict_interval(X)
    np.testing.assert_array_equal(kept, stepped.predict_interval(X))
    np.testing.assert_allclose(again.calibrate(X, y, cv=3).predict_interval(X), kept)


def test_copies_keep_the_calibration_and_a_new_fit_drops_it(regressor, tmp_path):
    model = clone(regressor).fit(X[FIT], Y[FIT]).calibrate(X[CAL], Y[CAL], scaled=True)
    kept = model.predict_interval(X[NEW])
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict_interval(X[NEW]), kept)
    model.save(tmp_path / "model.hik")
    np.testing.assert_array_equal(
        hikernel.load(tmp_path / "model.hik").predict_interval(X[NEW]), kept
    )
    model.save(tmp_path / "small.hik", error_bars=False)  # scaled intervals need error bars
    for without in (hikernel.load(tmp_path / "small.hik"), model.fit(X[FIT], Y[FIT])):
        with pytest.raises(ValueError, match="needs a calibrated model"):
            without.predict_interval(X)


@pytest.mark.parametrize("form", ["csr", "coo", "bsr", "dia"])
def test_cross_calibration_of_sparse_rows(form):
    S = sparse.csr_array(np.where(np.abs(X[:60]) > 0.5, X[:60], 0.0))
    model = HKLRegressor(0.05, certify="none", max_order=1).fit(S, Y[:60])
    found = model.calibrate(S.asformat(form), Y[:60], cv=2)._calibration.scores
    np.testing.assert_allclose(found, model.calibrate(S, Y[:60], cv=2)._calibration.scores)


def test_a_constant_has_scaled_intervals_of_no_width():
    model = HKLRegressor(0.05, refit="ridge", certify="none").fit(X[:60], np.full(60, 2.0))
    model.calibrate(X[:60], np.full(60, 2.0), scaled=True)
    np.testing.assert_array_equal(model.predict_interval(X[:5]), 2.0)
    model.calibrate(X[:60], np.full(60, 3.0), scaled=True)
    np.testing.assert_allclose(model.predict_interval(X[:5]), [[1.0, 3.0]] * 5)


def test_too_few_rows_for_a_level_are_said(regressor, classifier):
    regressor.calibrate(X[:8], Y[:8])
    with pytest.warns(UserWarning, match="8 calibration rows are too few .* takes 9 or more"):
        assert np.all(np.isinf(regressor.predict_interval(X[NEW])))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.all(np.isfinite(regressor.predict_interval(X[NEW], 0.8)))
    classifier.calibrate(X[:8], LABELS[:8])
    with pytest.warns(UserWarning, match="everything is predicted to be possible"):
        assert np.all(classifier.predict_set(X[NEW]))


def test_bad_input_is_said(regressor, classifier):
    for level in (0.0, 1.0, 90, "0.9", np.nan):
        with pytest.raises(ValueError, match=r"confidence_level .* strictly between 0 and 1"):
            regressor.predict_interval(X, level)
    fresh = HKLRegressor(0.02, certify="none").fit(X[FIT], Y[FIT])
    with pytest.raises(ValueError, match=r"call calibrate\(X, y\) first"):
        fresh.predict_interval(X)
    with pytest.raises(ValueError, match="This model has no refit"):
        fresh.calibrate(X[CAL], Y[CAL], scaled=True)
    with pytest.raises(ValueError, match="scaled must be True or False"):
        regressor.calibrate(X[CAL], Y[CAL], scaled="yes")
    with pytest.raises(ValueError, match="sample_weight is for the fits of cv"):
        regressor.calibrate(X[CAL], Y[CAL], sample_weight=np.ones(119))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        regressor.calibrate(X[CAL], Y[NEW])
    with pytest.raises(ValueError, match="test every row exactly once"):
        regressor.calibrate(X[CAL], Y[CAL], cv=ShuffleSplit(3))
    with pytest.raises(ValueError, match="the label 'd', which the model does not know"):
        classifier.calibrate(X[:2], ["a", "d"])
    with pytest.raises(ValueError, match=r"cv= is for the training rows"):
        classifier.calibrate(X[:30], np.repeat(["a", "d"], 15), cv=3)
    with pytest.raises(ValueError, match="A fold cannot be fitted"):
        classifier.calibrate(X[:6], list("abcabc"), cv=[([0], range(1, 6)), (range(1, 6), [0])])
