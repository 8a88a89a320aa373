"""The demo: a known truth among 10^14 kernels, found and proven optimal in seconds."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from hikernel.datasets import make_polynomial
from hikernel.engines.protocol import FloatArray, Node
from hikernel.estimators import HKLRegressorCV
from hikernel.graphs import node_name

__all__ = ["run_demo"]

TRUTH: dict[Node, float] = {
    ((0, 1),): 1.0,
    ((1, 1),): 0.7,
    ((2, 1),): -0.7,
    ((1, 1), (2, 1)): 1.2,
    ((3, 1),): 0.5,
    ((3, 2),): 0.6,
}
N_TRAIN, N_TEST, N_VARIABLES = 400, 2000, 20


def run_demo() -> HKLRegressorCV:
    """Fit a model, compare it with peers, and print the terms, the errors and the certificate.

    Returns
    -------
    HKLRegressorCV
        The fitted model.
    """
    data = make_polynomial(N_TRAIN + N_TEST, N_VARIABLES, TRUTH, noise=0.5, seed=0)
    names = [f"x{m}" for m in range(N_VARIABLES)]
    train, test = slice(0, N_TRAIN), slice(N_TRAIN, None)
    X, y = data.X[train], data.y[train]
    truth = " + ".join(f"{c:g} {node_name(node, names)}" for node, c in TRUTH.items())
    print(f"Data: {N_TRAIN} rows, {N_VARIABLES} correlated variables, noise of half the signal.")
    print(f"Truth: y = {truth.replace('+ -', '- ')} + noise\n")

    start = time.perf_counter()
    model = HKLRegressorCV(verbose=1).fit(X, y)
    seconds = time.perf_counter() - start

    print("\nHKLRegressorCV().fit(X, y) found (share of the variance of all terms):")
    known = {node_name(node, names) for node in TRUTH}
    for term, share in zip(model.terms_["term"], model.terms_["share"], strict=True):
        print(f"  {term:12s} {100 * share:5.1f} %  {'true' if term in known else ''}".rstrip())

    errors = {"hikernel": _error(model.predict(data.X[test]), data.y[test])}
    with threadpool_limits(1):  # with so few rows many threads are slower
        for name, peer in _peers().items():
            errors[name] = _error(peer.fit(X, y).predict(data.X[test]), data.y[test])
    errors["the truth itself"] = _error(data.signal[test], data.y[test])
    print("\nTest error (100 * mean squared error / variance of y):")
    for name, error in errors.items():
        print(f"  {name:18s} {error:5.1f}")
    print(f"\nCertificate: {model.certificate_}")
    print(f"Cross-validation, fit and proof took {seconds:.1f} s.")
    return model


def _peers() -> dict[str, Any]:
    return {
        "ridge": make_pipeline(StandardScaler(), RidgeCV(np.geomspace(1e-3, 1e3, 13))),
        "gradient boosting": HistGradientBoostingRegressor(random_state=0),
    }


def _error(predicted: FloatArray, y: FloatArray) -> float:
    return float(100.0 * np.mean((predicted - y) ** 2) / np.var(y))
