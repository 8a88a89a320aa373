"""Warm starts: what is kept, when it is used, and that the model is the same."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone

from hikernel import HKLClassifier, HKLRegressor
from hikernel.estimators import one_alpha
from hikernel.graphs import KernelGraph
from hikernel.selection import TrainingProblem


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(150, 5))
    y = X[:, 0] + 2 * X[:, 1] * X[:, 2] + 0.2 * rng.standard_normal(150)
    return X, y


@pytest.fixture
def made(monkeypatch):
    """The number of problems that were made from data."""
    calls = []
    original = TrainingProblem.make.__func__

    def make(cls, *arguments):
        calls.append(arguments)
        return original(cls, *arguments)

    monkeypatch.setattr(TrainingProblem, "make", classmethod(make))
    return calls


@pytest.fixture
def starts(monkeypatch):
    """The alphas at which searches started; None for the empty model."""
    found = []
    original = TrainingProblem.solve

    def solve(self, lam, settings, *, start=None, callback=None):
        found.append(None if start is None else start.lam)
        return original(self, lam, settings, start=start, callback=callback)

    monkeypatch.setattr(TrainingProblem, "solve", solve)
    return found


@pytest.mark.parametrize("alphas", [(0.1, 0.01, 0.003), (0.003, 0.03)])
def test_the_model_is_that_of_a_cold_start(data, made, starts, alphas):
    warm = HKLRegressor(warm_start=True, tol=1e-6)
    for alpha in alphas:
        warm.set_params(alpha=alpha).fit(*data)
    assert len(made) == 1
    assert starts[:2] == [None, alphas[0]]
    cold = HKLRegressor(alphas[-1], tol=1e-6).fit(*data)
    assert cold.certificate_.certified
    assert warm.certificate_.certified
    assert_allclose(warm.certificate_.objective, cold.certificate_.objective, rtol=2e-6)
    assert_allclose(warm.predict(data[0]), cold.predict(data[0]), atol=5e-3)


def test_the_nearest_alpha_above_is_the_start(data, starts):
    model = HKLRegressor(warm_start=True)
    for alpha in (0.1, 0.001, 0.02, 0.5):
        model.set_params(alpha=alpha).fit(*data)
    assert starts == [None, 0.1, 0.1, 0.1]


def test_the_path_of_auto_is_kept(data, monkeypatch, made, starts):
    model = HKLRegressor(warm_start=True).fit(*data)
    path, chosen = model.path_, model.alpha_
    assert len(path) > 5
    assert path.at(chosen).model.lam == chosen
    assert_allclose(path.predict(data[0], alpha=chosen).shape, (150,))
    monkeypatch.setattr(one_alpha, "compute_path", None)  # would fail
    model.set_params(refit="ridge", certify="none").fit(*data)
    assert (model.alpha_, model.refit_) == (chosen, "ridge")
    assert model.path_.alphas.tolist() == path.alphas.tolist()
    on_path = float(path.alphas[4])
    del starts[:]
    model.set_params(alpha=on_path).fit(*data)
    assert starts == [on_path]
    assert not hasattr(model, "path_")
    assert len(made) == 1


def test_a_path_of_another_tolerance_is_solved_again(data, starts):
    model = HKLRegressor(warm_start=True, certify="none").fit(*data)
    known = len(starts)
    model.set_params(max_kernels=50).fit(*data)
    assert len(starts) == known + len(model.path_) + 1


@pytest.mark.parametrize("change", ["X", "y", "weights", "degree", "loss", "warm_start"])
def test_other_data_or_another_graph_start_anew(data, made, change):
    X, y = data
    model = HKLRegressor(0.01, warm_start=True, certify="none").fit(X, y)
    weights = None
    if change == "X":
        X = X.copy()
        X[3, 2] += 1e-9
    elif change == "y":
        y = y[::-1].copy()
    elif change == "weights":
        weights = np.arange(1.0, 151.0)
    else:
        model.set_params(**{change: {"degree": 2, "loss": "huber", "warm_start": False}[change]})
    model.fit(X, y, weights)
    assert len(made) == 2


def test_equal_data_need_not_be_the_same_object(data, made):
    X, y = pd.DataFrame(data[0], columns=list("abcde")), pd.Series(data[1])
    model = HKLRegressor(0.01, warm_start=True, certify="none").fit(X, y)
    model.set_params(alpha=0.005).fit(X.copy(), y.copy())
    assert len(made) == 1


def test_writing_to_x_does_not_change_what_is_kept(data, made):
    X, y = data
    kept = X.copy()
    model = HKLRegressor(0.05, warm_start=True, certify="none").fit(X, y)
    X *= 0.1
    model.set_params(alpha=0.005, refit="variables").fit(kept, y)
    assert len(made) == 1
    cold = HKLRegressor(0.005, refit="variables", certify="none").fit(kept, y)
    assert_allclose(model.predict(kept), cold.predict(kept), atol=1e-6)
    assert model._record.statistics == cold._record.statistics


def test_a_fit_that_fails_leaves_nothing_behind(data, made):
    X, y = data
    labels = np.where(y > 0, "high", "low")
    model = HKLClassifier(0.01, warm_start=True, certify="none").fit(X, labels)
    with pytest.raises(ValueError, match="one class only"):
        model.fit(X, np.full(150, "high"))
    assert not hasattr(model, "_model")
    model.fit(X, labels)
    assert len(made) == 2
    model.set_params(alpha=0.005).fit(X, labels)
    assert len(made) == 2
    assert set(model.predict(X)) == {"high", "low"}


def test_a_graph_is_the_same_after_a_fit(data, made):
    graph = KernelGraph({"x": [], "z": ["x"]}, features={"x": [0], "z": [1]})
    model = HKLRegressor(0.1, graph=graph, warm_start=True).fit(*data)
    model.set_params(alpha=0.05).fit(*data)
    assert len(made) == 1


def test_a_start_is_no_larger_than_allowed(data, made):
    X, y = data
    model = HKLRegressor(0.005, warm_start=True, certify="none").fit(X, y)
    assert len(model.nodes_) > 3
    model.set_params(alpha=0.002, max_kernels=3).fit(X, y)
    assert len(model.nodes_) <= 3
    assert len(made) == 1


def test_what_cannot_be_hashed_starts_anew(data, made):
    graph = KernelGraph({"x": []}, kernels={"x": lambda x, z: np.asarray(x) @ np.asarray(z).T})
    model = HKLRegressor(0.1, graph=graph, warm_start=True)
    model.fit(*data)
    model.set_params(alpha=0.05).fit(*data)
    assert len(made) == 2


def test_pickles_and_clones_have_no_rows(data):
    model = HKLRegressor(0.01, warm_start=True, certify="none").fit(*data)
    assert hasattr(model, "_warm")
    again = pickle.loads(pickle.dumps(model))
    assert not hasattr(again, "_warm")
    assert_allclose(again.predict(data[0]), model.predict(data[0]))
    assert not hasattr(clone(model), "_warm")
    cold = HKLRegressor(0.01, certify="none").fit(*data)
    assert not hasattr(cold, "_warm")


def test_only_true_and_false():
    with pytest.raises(ValueError, match="warm_start must be True or False, got 'yes'"):
        HKLRegressor(warm_start="yes").fit(np.eye(3), np.arange(3.0))
