"""A time budget ends the whole fit soon, with a model, and says what was cut short."""

from __future__ import annotations

import time
import warnings
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pytest
from oracles.clocks import clock_times, stopped_after

from hikernel import HKLClassifier, HKLClassifierCV, HKLRegressor, HKLRegressorCV, hkl_path
from hikernel.engines import machine
from hikernel.errors import CertificateWarning, ConvergenceWarning, OutOfTime
from hikernel.estimators import estimator
from hikernel.search import StopReason, tail_proof
from hikernel.selection import PathEnd


def data(n=150, p=4, seed=0, noise=0.3):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.5, 1.5, (n, p))
    return X, X[:, 0] + 2.0 * X[:, 0] * X[:, 1] + noise * rng.standard_normal(n)


def timed_fit(model, X, y):
    """Fit, and return the seconds and the warnings that it gave."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        began = time.monotonic()
        model.fit(X, y)
        seconds = time.monotonic() - began
    return seconds, caught


def test_without_a_limit_time_is_never_up():
    assert machine.deadline() == np.inf
    with clock_times(1e12):
        machine.check_time()


def test_limits_are_lifted_and_nested():
    with machine.time_limit(time.monotonic() + 60.0):
        outer = machine.deadline()
        machine.check_time()
        with machine.time_limit(0.0):
            with pytest.raises(OutOfTime):
                machine.check_time()
            with pytest.raises(OutOfTime):
                list(machine.in_threads(str, [1, 2]))
        assert machine.deadline() == outer
        assert list(machine.in_threads(str, [1, 2])) == ["1", "2"]
        with pytest.raises(RuntimeError), machine.time_limit(0.0):
            raise RuntimeError
        assert machine.deadline() == outer
    assert machine.deadline() == np.inf


@pytest.mark.slow
@pytest.mark.parametrize("search", ["lookahead", "paper"])
@pytest.mark.parametrize("kind", ["one alpha", "auto", "CV"])
def test_a_fit_ends_soon_after_its_budget(kind, search):
    # Many effects and little noise, for which the hulls are large: without a budget, minutes.
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4000, 40))
    y = np.sum(X[:, 1:] * X[:, :-1], axis=1) + 0.1 * rng.standard_normal(4000)
    budget = 1.0
    settings = {"time_budget": budget, "search": search, "max_kernels": 10**5}
    if kind == "CV":
        model = HKLRegressorCV(cv=3, **settings)
    else:
        model = HKLRegressor("auto" if kind == "auto" else 1e-6, **settings)
    seconds, caught = timed_fit(model, X, y)
    assert budget < seconds < budget + 2.0
    assert any("time budget" in str(warning.message) for warning in caught)
    assert {warning.category for warning in caught} <= {ConvergenceWarning, CertificateWarning}
    assert np.all(np.isfinite(model.predict(X)))
    assert not model.certificate_.certified
    if kind == "CV":
        assert model.path_.reason is PathEnd.TIME
        scored = len(set(model.cv_results_["alpha"]))
        # On a slow machine the time may be up before every fold has a model.
        assert scored in (0, len(model.path_))
        assert np.isnan(model.best_score_) == (scored == 0)
        assert len(model.path_) < 40


def test_a_spent_budget_gives_a_constant_and_says_so():
    X, y = data()
    for search in ("lookahead", "paper"):
        model = HKLRegressor(0.001, time_budget=1e-9, search=search)
        with pytest.warns(ConvergenceWarning, match="time budget cut the search short"):
            model.fit(X, y)
        np.testing.assert_allclose(model.predict(X), np.mean(y))
        assert len(model.terms_) == 0
        assert list(model.hull_["term"]) == ["1"]
        assert model.certificate_.reason is StopReason.SEARCH_TIME
        assert not model.certificate_.certified
        # The objective of the best constant: half the variance.
        assert model.certificate_.objective == pytest.approx(0.5 * np.var(y))
        assert model.alpha_ == 0.001


def test_a_spent_budget_of_an_alpha_that_is_to_be_chosen():
    X, y = data()
    _, caught = timed_fit(model := HKLRegressor(time_budget=1e-9), X, y)
    messages = [str(warning.message) for warning in caught]
    assert all(issubclass(warning.category, ConvergenceWarning) for warning in caught)
    assert any("alpha is the smallest that was tried" in message for message in messages)
    assert any("cut the search short" in message for message in messages)
    np.testing.assert_allclose(model.predict(X), np.mean(y))
    assert model.alpha_ > 0.0


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_spent_budget_of_a_classifier(n_classes):
    X, y = data()
    labels = np.digitize(y, [-0.5, 0.9][: n_classes - 1])
    model = HKLClassifier(0.01, time_budget=1e-9)
    with pytest.warns(ConvergenceWarning, match="time budget cut the search short"):
        model.fit(X, labels)
    shares = np.bincount(labels) / len(labels)
    np.testing.assert_allclose(model.predict_proba(X), np.tile(shares, (len(X), 1)), atol=1e-4)


def test_a_spent_budget_of_a_path():
    X, y = data()
    with pytest.warns(UserWarning, match="time budget is spent"):
        path = hkl_path(X, y, time_budget=1e-9)
    assert path.reason is PathEnd.TIME
    assert len(path) == 1
    assert path.points[0].explained == pytest.approx(0.0, abs=1e-9)
    np.testing.assert_allclose(path.predict(X)[:, 0], np.mean(y))


@pytest.mark.parametrize("make", [HKLRegressorCV, HKLClassifierCV])
def test_a_budget_in_which_no_fold_has_a_model(make):
    X, y = data()
    y = y > 0.0 if make is HKLClassifierCV else y
    _, caught = timed_fit(model := make(cv=3, time_budget=1e-9), X, y)
    assert any("cut the search short" in str(warning.message) for warning in caught)
    assert all(issubclass(warning.category, ConvergenceWarning) for warning in caught)
    assert len(model.path_) == 1
    assert model.path_.reason is PathEnd.TIME
    assert len(model.terms_) == 0
    if make is HKLRegressorCV:
        np.testing.assert_allclose(model.predict(X), np.mean(y))


@pytest.mark.slow
def test_time_may_be_up_at_any_moment_of_a_fit():
    """There is always a model, and a warning that names the budget."""
    X, y = data(60, 3)
    start_at_zero = mock.patch.object(estimator, "time", SimpleNamespace(monotonic=lambda: 0.0))
    for make in (HKLRegressor, lambda **more: HKLRegressorCV(cv=2, refit="ridge", **more)):
        free = make().fit(X, y)
        reasons = set()
        with start_at_zero, stopped_after(10**9) as clock:
            make(time_budget=1.0).fit(X, y)
        every = range(clock.seen + 1)
        for n_looks in sorted({*every[:5], *every[:: max(1, clock.seen // 15)], *every[-8:]}):
            model = make(time_budget=1.0)
            with start_at_zero, stopped_after(n_looks) as clock:
                _, caught = timed_fit(model, X, y)
            assert np.all(np.isfinite(model.predict(X)))
            if not clock.is_up:
                break
            text = " ".join(str(warning.message) for warning in caught)
            if model.certificate_.certified:  # time was up after the model, its proof included
                assert model._record.simpler.linear is None
                continue
            reasons.add(model.certificate_.reason)
            assert not model.certificate_.certified
            assert "time budget" in text, (make, n_looks, text)
        assert {StopReason.SEARCH_TIME, StopReason.PROOF_TIME} <= reasons
        assert not caught
        assert model.certificate_ == free.certificate_
        np.testing.assert_array_equal(model.predict(X), free.predict(X))


@pytest.mark.parametrize("make", [HKLRegressor, HKLRegressorCV])
def test_a_large_budget_changes_nothing(make):
    X, y = data(90)
    few = {"cv": 2, "basis": {}} if make is HKLRegressorCV else {}
    free, limited = make(**few).fit(X, y), make(time_budget=600.0, **few).fit(X, y)
    np.testing.assert_array_equal(free.predict(X), limited.predict(X))
    assert free.certificate_ == limited.certificate_
    assert machine.deadline() == np.inf


def test_a_proof_that_is_cut_short_leaves_the_model(monkeypatch):
    X, y = data(150, 6)
    free = HKLRegressor(0.003).fit(X, y)
    assert free.certificate_.certified

    def spent():
        raise OutOfTime

    monkeypatch.setattr(tail_proof, "check_time", spent)
    with pytest.warns(CertificateWarning, match="cut the proof short; the model itself is comp"):
        model = HKLRegressor(0.003, time_budget=600.0).fit(X, y)
    assert model.certificate_.reason is StopReason.PROOF_TIME
    assert model.certificate_.kind == "none"
    assert model.certificate_.dual_bound == 0.0
    np.testing.assert_array_equal(model.predict(X), free.predict(X))


@pytest.mark.slow
def test_a_budget_is_kept_in_other_processes():
    """The deadline goes with the jobs; a context variable alone would not."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4000, 40))
    y = np.sum(X[:, 1:] * X[:, :-1], axis=1) + 0.1 * rng.standard_normal(4000)
    model = HKLRegressorCV(time_budget=3.0, cv=2, n_jobs=2, refit=None)
    seconds, caught = timed_fit(model, X, y)
    assert 3.0 < seconds < 8.0  # starting processes takes seconds
    assert any("time budget" in str(warning.message) for warning in caught)
    assert len(model.path_) < 40
