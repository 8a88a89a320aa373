"""The logger of the package: quiet unless a user listens, and then the stages of a fit."""

from __future__ import annotations

import logging
import subprocess
import sys

import numpy as np
import pytest

from hikernel import HKLRegressor, HKLRegressorCV

QUIET = """
import logging
import numpy as np
from hikernel import HKLRegressor
rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, size=(40, 2))
HKLRegressor(0.01).fit(X, X[:, 0])
root, own = logging.getLogger(), logging.getLogger("hikernel")
assert root.handlers == [], root.handlers
assert [type(handler) for handler in own.handlers] == [logging.NullHandler]
assert own.level == logging.NOTSET and own.propagate
"""


@pytest.mark.slow
def test_nobody_hears_of_it_unasked():
    done = subprocess.run([sys.executable, "-c", QUIET], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def fit(model):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(60, 3))
    return model.fit(X, X[:, 0] + 0.1 * rng.standard_normal(60))


@pytest.mark.filterwarnings("ignore:The chosen alpha is the smallest")
def test_listeners_get_the_stages_in_order(caplog):
    caplog.set_level(logging.INFO, "hikernel")
    model = fit(HKLRegressorCV(n_alphas=4, cv=2, degree=2))
    messages = [record.getMessage() for record in caplog.records]
    first = [
        next(i for i, message in enumerate(messages) if start in message)
        for start in ("Read 60", "Columns: 3", "terms explain", "mean score", "Chosen", "Solved")
    ]
    assert first == sorted(first)
    assert f"alpha {model.alpha_:.4g} with refit {model.refit_!r}" in messages[first[4]]
    assert all(record.name.split(".")[0] == "hikernel" for record in caplog.records)
    assert {record.levelno for record in caplog.records} == {logging.INFO}


@pytest.mark.filterwarnings("ignore:The chosen alpha is the smallest")
def test_the_scores_are_those_of_the_results(caplog):
    caplog.set_level(logging.DEBUG, "hikernel")
    model = fit(HKLRegressorCV(alphas=[0.3, 0.1], cv=2, basis={}, refit=None))
    text = caplog.text
    for position, mean in enumerate(model.cv_results_["mean_test_score"]):
        assert f"mean score of 2 folds by refit: None {mean:.6g}." in text
        for fold in (0, 1):
            score = model.cv_results_[f"split{fold}_test_score"][position]
            assert f"fold {fold}: None {score:.6g}." in text


def test_records_that_nobody_wants_are_not_made(monkeypatch):
    def made(*args, **settings):
        pytest.fail("a record was made")

    logger = logging.getLogger("hikernel")
    monkeypatch.setattr(logger, "level", logging.WARNING)
    logger.manager._clear_cache()
    monkeypatch.setattr(logging.Logger, "makeRecord", made)
    try:
        fit(HKLRegressor(0.01))
    finally:
        monkeypatch.undo()
        logger.manager._clear_cache()
