"""Eight threads use one model at once: every bit is that of one thread."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest

from hikernel import HKLClassifier, HKLRegressor, HKLRegressorCV, load

N_THREADS = 8


def table(n=200, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.uniform(-1.0, 1.0, (n, 3)), columns=["low", "high", "width"])
    y = X["low"] + X["high"] * X["width"] + 0.1 * rng.standard_normal(n)
    X["kind"] = rng.choice(["oak", "elm", "ash"], n)
    return X, y.to_numpy()


def regression():
    X, y = table()
    return HKLRegressor(0.01, max_order=2, refit="ridge").fit(X, y)


def classes():
    X, y = table()
    return HKLClassifier(0.01, max_order=2).fit(X, np.digitize(y, [-0.3, 0.3]))


def folds():
    X, y = table()
    return HKLRegressorCV(cv=2, n_alphas=4, max_order=1, basis="polynomial").fit(X, y)


MODELS = {
    "regression": (regression, ["predict", "effects", "predict_std", "transform", "summary"]),
    "classes": (classes, ["predict_proba", "effects", "predict"]),
    "folds": (folds, ["predict", "effects", "explain"]),
}


def asked(model, method, X):
    """The answer as something that can be compared bit for bit."""
    if method == "predict_std":
        return np.stack(model.predict(X, return_std=True)).tobytes()
    if method == "summary":
        return repr(model.summary())
    if method == "explain":
        return str(model.explain(X.iloc[[0]]))
    answer = getattr(model, method)(X)
    if isinstance(answer, pd.DataFrame):
        return answer.to_numpy().tobytes()
    return np.asarray(answer).tobytes()


@pytest.mark.parametrize("loaded", [False, True], ids=["fitted", "loaded"])
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_eight_threads_get_the_bits_of_one(name, loaded, tmp_path):
    make, methods = MODELS[name]
    new, _ = table(n=2000, seed=1)
    make().save(tmp_path / "model.hik")

    def model():
        return load(tmp_path / "model.hik") if loaded else make()

    alone = model()
    expected = {method: asked(alone, method, new) for method in methods}
    shared = model()  # nothing was asked of it yet, so that all fill its caches at once
    together = threading.Barrier(N_THREADS)

    def ask(number):
        own = methods[number % len(methods) :] + methods[: number % len(methods)]
        together.wait(timeout=30)
        return {method: asked(shared, method, new) for method in own}

    with ThreadPoolExecutor(N_THREADS) as pool:
        for answers in pool.map(ask, range(N_THREADS)):
            assert answers == expected
