"""HKLSurvival and HKLSurvivalCV: against other packages, forms of y, scores, saving, words."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sksurv.linear_model import CoxPHSurvivalAnalysis
from sksurv.metrics import concordance_index_censored
from sksurv.util import Surv
from statsmodels.duration.hazard_regression import PHReg

import hikernel
from hikernel import HKLSurvival, HKLSurvivalCV, hkl_path, stability_selection
from hikernel.errors import ModelFileError
from hikernel.estimators.concordance import concordance
from hikernel.estimators.saving import estimator_from_state, estimator_state
from hikernel.losses import Cox
from hikernel.losses.breslow import BreslowBaseline
from hikernel.persistence.content import ContentError

QUICK = {"degree": 2, "certify": "none"}


def trial(n=150, p=4, seed=0, *, ties=True):
    """Rows with an effect of x0 and one of x1 * x2 on the hazard; times with ties."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (n, p))
    risk = 2.0 * X[:, 0] + 2.5 * X[:, 1] * X[:, 2]
    time = 10.0 * rng.exponential(np.exp(-risk))
    end = rng.uniform(5.0, 40.0, n)
    event, time = time <= end, np.minimum(time, end)
    return X, Surv.from_arrays(event, np.ceil(time) if ties else time)


@pytest.fixture(scope="module")
def fitted():
    X, y = trial()
    return HKLSurvival(alpha=0.01).fit(X, y), X, y


@pytest.fixture(scope="module")
def chosen():
    X, y = trial()
    alphas = [0.1, 0.01, 1e-4]
    model = HKLSurvivalCV(alphas=alphas, cv=3, refit="ridge", basis="orthonormal", **QUICK)
    return model.fit(X, y), X, y


@pytest.fixture(scope="module")
def linear():
    """An unpenalised fit of all columns, and the same of scikit-survival."""
    X, y = trial(120, 3, seed=1)
    model = HKLSurvival(alpha=1e-4, basis="polynomial", degree=1, max_order=1, refit="unpenalised")
    return model.fit(X, y), CoxPHSurvivalAnalysis(ties="breslow", tol=1e-13).fit(X, y), X, y


def test_an_unpenalised_linear_fit_is_that_of_scikit_survival_and_statsmodels(linear):
    ours, theirs, X, y = linear
    assert ours.certificate_.certified
    risk, expected = ours.predict(X), X @ theirs.coef_
    np.testing.assert_allclose(risk - risk.mean(), expected - expected.mean(), atol=1e-9)
    assert risk.mean() == pytest.approx(0.0, abs=1e-12)
    other = PHReg(y["time"], X, status=y["event"], ties="breslow").fit(disp=False)
    np.testing.assert_allclose(risk - risk.mean(), X @ other.params - expected.mean(), atol=1e-5)


def test_survival_functions_are_those_of_scikit_survival(linear):
    ours, theirs, X, y = linear
    times = np.unique(y["time"][y["event"]])
    np.testing.assert_array_equal(ours.event_times_, times)
    for method in ("predict_survival_function", "predict_cumulative_hazard_function"):
        steps = getattr(theirs, method)(X[:7])
        expected = np.array([step(times) for step in steps])
        np.testing.assert_allclose(getattr(ours, method)(X[:7]), expected, rtol=1e-8)
    some = ours.predict_survival_function(X[:7], times=[0.0, times[3], times[3] + 0.5])
    np.testing.assert_allclose(some[:, 0], 1.0)
    np.testing.assert_allclose(some[:, 1:], expected_at(theirs, X[:7], times[3]))
    assert len(ours.baseline_hazard_) == len(times)
    assert np.all(np.diff(ours.baseline_hazard_) > 0.0)


def expected_at(theirs, X, time):
    return np.array([[step(time)] * 2 for step in theirs.predict_survival_function(X)])


def test_the_score_is_harrells_concordance(linear):
    ours, _, X, y = linear
    expected = concordance_index_censored(y["event"], y["time"], ours.predict(X))[0]
    assert ours.score(X, y) == pytest.approx(expected, abs=1e-12)
    half = np.arange(len(X)) < 60
    weighted = ours.score(X, y, sample_weight=half.astype(float))
    assert weighted == pytest.approx(ours.score(X[half], y[half]), abs=1e-12)


@pytest.mark.parametrize("seed", range(20))
def test_concordance_with_ties_and_weights(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(5, 60))
    event, time = rng.random(n) < 0.6, rng.integers(0, 12, n).astype(float)
    event[0], time[0] = True, 0.0
    risk, counts = rng.integers(0, 6, n).astype(float), rng.integers(1, 4, n)
    expected = concordance_index_censored(event, time, risk)[0]
    assert concordance(event, time, risk, np.ones(n)) == pytest.approx(expected, abs=1e-12)
    rows = np.repeat(np.arange(n), counts)
    expected = concordance_index_censored(event[rows], time[rows], risk[rows])[0]
    ours = concordance(event, time, risk, counts.astype(float))
    assert ours == pytest.approx(expected, abs=1e-12)


def test_rows_that_cannot_be_compared_have_no_concordance(fitted):
    model, X, y = fitted
    with pytest.raises(ValueError, match="No two rows can be compared"):
        model.score(X[~y["event"]], y[~y["event"]])


def test_it_finds_the_terms_and_proves_it(fitted):
    model, X, y = fitted
    assert model.certificate_.certified
    assert set(model.terms_["term"][:2]) == {"x0", "x1 * x2"}
    assert model.score(X, y) > 0.7
    assert isinstance(model.loss_, Cox)
    # alpha n dual_coef_ are martingale residuals: events minus what the hazards add up to.
    residuals = len(X) * model.alpha_ * model.dual_coef_
    hazards = model.predict_cumulative_hazard_function(X, y["time"])
    np.testing.assert_allclose(residuals, y["event"] - np.diag(hazards), atol=0.02)


def test_integer_weights_are_repeated_rows():
    X, y = trial(80)
    counts = np.random.default_rng(0).integers(1, 4, len(X))
    once = HKLSurvival(alpha=0.02, tol=1e-7, **QUICK).fit(X, y, sample_weight=counts)
    rows = np.repeat(np.arange(len(X)), counts)
    often = HKLSurvival(alpha=0.02, tol=1e-7, **QUICK).fit(X[rows], y[rows])
    np.testing.assert_allclose(once.predict(X), often.predict(X), atol=1e-3)
    assert once.certificate_.objective == pytest.approx(often.certificate_.objective, rel=1e-6)
    np.testing.assert_allclose(once.baseline_hazard_, often.baseline_hazard_, rtol=1e-3)


def test_a_warm_start_keeps_the_baseline_right():
    X, y = trial(80)
    model = HKLSurvival(alpha=0.2, warm_start=True, **QUICK).fit(X, y)
    model.set_params(alpha=0.05).fit(X, y)
    fresh = HKLSurvival(alpha=0.05, **QUICK).fit(X, y)
    np.testing.assert_allclose(model.baseline_hazard_, fresh.baseline_hazard_, rtol=0.01)
    np.testing.assert_allclose(model.predict(X), fresh.predict(X), atol=0.02)


def test_only_the_order_of_the_times_matters_for_the_model():
    X, y = trial(80, ties=False)
    later = y.copy()
    later["time"] = y["time"] ** 3
    one, other = (HKLSurvival(alpha=0.05, **QUICK).fit(X, target) for target in (y, later))
    np.testing.assert_array_equal(one.predict(X), other.predict(X))
    np.testing.assert_allclose(other.event_times_, one.event_times_**3)


def test_y_may_have_several_forms():
    X, y = trial(60)
    swapped = np.array(
        list(zip(y["time"], y["event"], strict=True)), dtype=[("weeks", float), ("died", bool)]
    )
    columns = np.column_stack([y["time"], y["event"]])
    frame = pd.DataFrame({"weeks": y["time"], "died": y["event"].astype(int)})
    forms = {
        "structured": (y, "time"),
        "swapped": (swapped, "weeks"),
        "columns": (columns, None),
        "list": (columns.tolist(), None),
        "frame": (frame, "weeks"),
        "flag first": (pd.DataFrame({"died": y["event"], "weeks": y["time"]}), "weeks"),
        "nullable": (frame.astype({"died": "boolean"})[["died", "weeks"]], "weeks"),
        "polars": (pl.DataFrame({"died": y["event"], "weeks": y["time"]}), "weeks"),
    }
    expected = HKLSurvival(alpha=0.05, **QUICK).fit(X, y).predict(X)
    for name, (form, target) in forms.items():
        model = HKLSurvival(alpha=0.05, **QUICK).fit(X, form)
        np.testing.assert_array_equal(model.predict(X), expected, err_msg=name)
        assert model.summary()["target"] == target
        assert model.score(X, form) == model.score(X, y)


BAD = {
    "one column": (np.arange(6.0), "must have a time and an event .* shape \\(6,\\)"),
    "three columns": (np.ones((6, 3)), "shape \\(6, 3\\)"),
    "three columns of a frame": (pd.DataFrame(np.ones((6, 3))), "has 3 columns"),
    "a number": (3.0, "it is a single value"),
    "ragged": ([[1.0, 1], [2.0]] * 3, "differ in length"),
    "no flag": (np.ones(6, dtype=[("a", float), ("b", float)]), "has a \\(float64\\), b"),
    "two flags": (np.ones(6, dtype=[("a", bool), ("b", bool)]), "has a \\(bool\\), b"),
    "swapped": ([[1, 5.0], [0, 2.0]] * 3, "seem to be swapped, the time comes first"),
    "not a flag": ([[1.5, 2], [3.0, 0]] * 3, "must be 0 or 1, and row 0 has 2"),
    "NaN": ([[1.0, 1], [np.nan, 0]] * 3, "3 time\\(s\\) are missing, the first in row 1"),
    "no event known": ([[1.0, None], [2.0, 1]] * 3, "3 event\\(s\\) are missing"),
    "negative": ([[1.0, 1], [-2.0, 0]] * 3, "zero or positive, and row 1 has -2"),
    "infinite": ([[1.0, 1], [np.inf, 0]] * 3, "must be finite"),
    "text": ([["soon", 1], ["late", 0]] * 3, "times of y hold text"),
    "no events": ([[1.0, 0], [2.0, 0]] * 3, "no event among the rows"),
    "none": (None, "requires y to be passed"),
    "spans": (
        pd.DataFrame({"t": pd.to_timedelta([1, 2] * 3, unit="D"), "e": [True, False] * 3}),
        "dates or time spans",
    ),
}


@pytest.mark.parametrize(("y", "sentence"), BAD.values(), ids=list(BAD))
def test_a_bad_target_is_explained(y, sentence):
    X = np.arange(12.0).reshape(6, 2)
    with pytest.raises(ValueError, match=sentence):
        HKLSurvival(alpha=0.1).fit(X, y)


def test_other_mistakes_are_explained(fitted):
    model, X, y = fitted
    with pytest.raises(ValueError, match="numbers from 0 to 40"):
        model.predict_survival_function(X[:2], times=[1.0, 50.0])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        HKLSurvival(alpha=0.1).fit(X[:-1], y)
    with pytest.raises(ValueError, match="use HKLSurvivalCV"):
        HKLSurvival(refit="auto").fit(X, y)
    with pytest.raises(ValueError, match='scoring must be None, "concordance", or a function'):
        HKLSurvivalCV(scoring="r2").fit(X, y)
    with pytest.raises(ValueError, match="'cox' takes no offset and no exposure"):
        hkl_path(X, y, loss="cox", offset=np.zeros(len(X)))
    folds = [(np.flatnonzero(~y["event"]), np.flatnonzero(y["event"]))]
    with pytest.raises(ValueError, match="training rows of fold 0 cannot be fitted: There is no"):
        HKLSurvivalCV(cv=folds, **QUICK).fit(X, y)


def test_tools_of_scikit_learn_take_a_structured_target():
    X, y = trial(80)
    model = HKLSurvival(alpha=0.05, **QUICK)
    assert clone(model).get_params() == model.get_params()
    scores = cross_val_score(make_pipeline(StandardScaler(), model), X, y, cv=3)
    assert np.all(scores > 0.5)
    search = GridSearchCV(model, {"alpha": [1.0, 0.05]}, cv=3).fit(X, y)
    assert search.best_params_ == {"alpha": 0.05}
    assert search.score(X, y) == search.best_estimator_.score(X, y)


def test_cross_validation_scores_by_the_partial_likelihood(chosen):
    model, X, y = chosen
    assert -1.0 < model.best_score_ < -0.5
    assert model.certificate_.refit == "ridge"
    assert model.score(X, y) > 0.7
    point = model.path_.points[0].model
    assert model.path_.predict(X, alpha=point.lam).shape == (len(X),)
    # The score of the first alpha on the first fold, from its definition.
    folds = StratifiedKFold(3, shuffle=True, random_state=model._seed())
    train, test = next(folds.split(X, y["event"]))
    assert np.mean(y["event"][test]) == pytest.approx(np.mean(y["event"]), abs=0.03)
    again = HKLSurvivalCV(cv=[(train, test)], alphas=[0.01], refit=None, **QUICK).fit(X, y)
    # One solve on the training rows gives the same model but for the bases, which see all rows.
    part = HKLSurvival(alpha=0.01, **QUICK).fit(X[train], y[train])
    f, null = part.predict(X), np.zeros(len(X))
    gain = sum(
        sign * (log_likelihood(y[rows], f[rows]) - log_likelihood(y[rows], null[rows]))
        for sign, rows in ((1.0, np.arange(len(X))), (-1.0, train))
    )
    events = len(test) * np.mean(y["event"])
    assert again.best_score_ == pytest.approx(gain / events - 1.0, abs=0.02)


def log_likelihood(y, f):
    """Cox's partial log-likelihood, as a sum over the events."""
    later = y["time"][None, :] >= y["time"][:, None]
    return np.sum((f - np.log(later @ np.exp(f)))[y["event"]])


def test_other_scores_and_folds():
    X, y = trial(80)
    settings = {"cv": 2, "refit": None, "alphas": [0.05], "basis": "orthonormal", **QUICK}
    by_name = HKLSurvivalCV(scoring="concordance", **settings).fit(X, y)
    assert 0.5 < by_name.best_score_ <= 1.0

    def survival_at_5(model, X, y):
        """A score that needs the baseline of the fold: the Brier score, without censoring."""
        alive = model.predict_survival_function(X, times=[5.0])[:, 0]
        return -float(np.mean((alive - (y["time"] > 5.0)) ** 2))

    by_function = HKLSurvivalCV(scoring=survival_at_5, **settings).fit(X, y)
    assert -0.25 < by_function.best_score_ < 0.0
    by_events = StratifiedKFold(3)
    assert HKLSurvivalCV(**{**settings, "cv": by_events}).fit(X, y).n_splits_ == 3
    few = y.copy()
    few["event"] = np.arange(len(y)) == 0
    folds = [(np.arange(60), np.arange(60, 80))]
    assert HKLSurvivalCV(**{**settings, "cv": folds}).fit(X, few).n_splits_ == 1
    few["event"] = y["event"] & (np.arange(len(y)) < 4)
    assert HKLSurvivalCV(**{**settings, "cv": 5}).fit(X, few).n_splits_ == 5


def test_paths_and_stability_take_censored_times():
    X, y = trial(80)
    path = hkl_path(X, y, loss="cox", alphas=[1.0, 0.05], degree=2)
    model = HKLSurvival(alpha=0.05, **QUICK).fit(X, y)
    np.testing.assert_allclose(path.predict(X, alpha=0.05), model.predict(X), atol=0.02)
    found = stability_selection(HKLSurvival(alpha=0.05, **QUICK), X, y, n_subsamples=4)
    assert found.variables["variable"][0] in ("x0", "x1", "x2")


def test_a_saved_model_predicts_survival(chosen, tmp_path):
    model, X, _ = chosen
    model.save(tmp_path / "model.hik")
    again = hikernel.load(tmp_path / "model.hik")
    for method in ("predict", "predict_survival_function"):
        np.testing.assert_array_equal(getattr(again, method)(X), getattr(model, method)(X))
    assert str(again) == str(model)
    assert again.summary() == model.summary()
    (tmp_path / "damaged.hik").write_bytes((tmp_path / "model.hik").read_bytes()[:-100])
    with pytest.raises(ModelFileError):
        hikernel.load(tmp_path / "damaged.hik")


@pytest.mark.parametrize(
    ("baseline", "sentence"),
    [
        (None, "no baseline hazard"),
        (BreslowBaseline(np.array([2.0, 1.0]), np.array([0.1, 0.2]), 3.0), "does not increase"),
        (BreslowBaseline(np.array([1.0, 2.0]), np.array([0.2, 0.1]), 3.0), "does not increase"),
        (BreslowBaseline(np.array([1.0, 2.0]), np.array([0.1, 0.2]), 1.5), "does not increase"),
        (BreslowBaseline(np.array([1.0, 2.0]), np.array([0.1, np.inf]), 3.0), "NaN or infinity"),
        (BreslowBaseline(np.array([1.0, 2.0]), np.array([0.1]), 3.0), "has shape"),
        (BreslowBaseline(np.empty(0), np.empty(0), 3.0), "are not numbers"),
        (BreslowBaseline(np.array([1.0]), np.array([0.1]), np.inf), "has no end"),
    ],
)
def test_an_impossible_baseline_is_refused(fitted, baseline, sentence):
    state = estimator_state(fitted[0])
    with pytest.raises(ContentError, match=sentence):
        estimator_from_state("HKLSurvival", {**state, "baseline": baseline})


def test_what_is_said_of_a_model(chosen, fitted, tmp_path):
    model, X, _ = chosen
    text = str(model)
    assert text.startswith("HKLSurvivalCV: survival of time, 150 rows x 4 columns")
    assert "of the variation of the risk on held-out rows (3 folds" in text.replace("\n  ", " ")
    assert "the partial log-likelihood gains" in text.replace("\n  ", " ")
    summary = model.summary()
    assert (summary["task"], summary["loss"], summary["outputs"]) == (
        *("survival", "cox"),
        ["log hazard"],
    )
    assert summary["link"]["kind"] == "hazard"
    quality = summary["quality"]
    assert quality["constant"] == pytest.approx(1.0)
    assert quality["model"] == -model.best_score_ < quality["linear"] < 1.0
    assert quality["explained"] == pytest.approx(1.0 - np.exp(-2.0 * (1.0 - quality["model"])))
    assert model.formula().endswith("hazard = exp(f) times the baseline hazard")
    assert str(model.explain(X[:1])).startswith("Prediction of log hazard: ")
    assert model.effects(X).sum(axis=1).to_numpy() == pytest.approx(model.predict(X))
    names = {"__name__": "exported"}
    exec(model.export(format="python"), names)
    np.testing.assert_allclose(names["predict"](X), model.predict(X), atol=1e-9)
    assert json.loads(model.export(format="json"))["link"]["kind"] == "hazard"
    assert "f1" in model.export(format="sql")
    model.report(tmp_path / "page.html")
    assert "survival" in (tmp_path / "page.html").read_text()
    assert "variation of the risk on the training rows" in str(fitted[0]).replace("\n  ", " ")


@pytest.mark.slow
def test_without_settings_it_finds_what_matters():
    X, y = trial(250, seed=3)
    model = HKLSurvival().fit(X, y)
    assert set(model.effects_["effect"][:2]) == {"x0", "x1 * x2"}
    new, target = trial(300, seed=4)
    assert model.score(new, target) > 0.72


def test_events_of_all_rows_at_one_time_are_a_constant():
    X, _ = trial(40)
    model = HKLSurvival(alpha=0.01, degree=2).fit(X, np.ones((40, 2)))
    assert model.certificate_.certified
    assert model.certificate_.objective == 0.0
    np.testing.assert_array_equal(model.predict(X), 0.0)
