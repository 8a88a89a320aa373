"""Error bars and calibrations in files that were changed by hand are refused."""

from dataclasses import replace

import numpy as np
import pytest
from persistence.files import classifier, data, quick

from hikernel import HKLRegressor
from hikernel.estimators.saving import estimator_from_state, estimator_state
from hikernel.persistence.content import ContentError
from hikernel.selection.conformal import Calibration


@pytest.fixture(scope="module")
def state():
    X, y = data()
    model = quick(HKLRegressor(alpha=0.01, refit="ridge"), X, y).calibrate(X, y, scaled=True)
    return estimator_state(model)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda p: replace(p, factor=p.factor[1:]), "do not belong to its terms"),
        (lambda p: replace(p, factor=p.factor[:, :, None]), "do not belong to its terms"),
        (lambda p: replace(p, factor=np.tile(p.factor, 9)), "more directions than coefficients"),
        (lambda p: replace(p, factor=p.factor * np.nan), "impossible numbers"),
        (lambda p: replace(p, dispersion=-1.0), "impossible numbers"),
        (lambda p: replace(p, edf=np.inf), "impossible numbers"),
        (lambda p: None, "relative to error bars that it does not have"),
    ],
)
def test_impossible_error_bars_are_refused(state, change, message):
    changed = state | {"posterior": change(state["posterior"])}
    with pytest.raises(ContentError, match=message):
        estimator_from_state("HKLRegressor", changed)


def test_error_bars_need_a_refit(state):
    with pytest.raises(ContentError, match="it has error bars, but no refit"):
        estimator_from_state("HKLRegressor", state | {"refit": None, "model": None})


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        (np.empty(0), "one number a row"),
        (np.ones((2, 2)), "one number a row"),
        (np.array([2.0, 1.0]), "not sorted"),
        (np.array([1.0, np.inf]), "not finite"),
        (np.array([1, 2]), "one number a row|wrong type"),
    ],
)
def test_impossible_calibrations_are_refused(state, scores, message):
    with pytest.raises(ContentError, match=message):
        estimator_from_state("HKLRegressor", state | {"calibration": Calibration(scores)})


def test_sets_have_no_scale():
    known = estimator_state(classifier())
    scaled = Calibration(np.ones(3), scaled=True)
    with pytest.raises(ContentError, match="relative to error bars"):
        estimator_from_state("HKLClassifier", known | {"calibration": scaled})
