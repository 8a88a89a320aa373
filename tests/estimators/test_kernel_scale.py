"""Gram matrices of any scale: the model predicts what its objective says."""

from __future__ import annotations

import warnings
from functools import partial

import numpy as np
import pytest

from hikernel import HKLClassifier, HKLRegressor
from hikernel.graphs import KernelGraph

N = 40


def linear(left, right, scale):
    return scale * left @ right.T


def sample(loss):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2 * N, 2))
    f = X[:, 0] + 0.3 * X[:, 1]
    if loss == "log_loss":
        return X, (f + rng.standard_normal(2 * N) > 0.0).astype(int)
    if loss == "poisson":
        return X, rng.poisson(np.exp(f)).astype(float)
    return X, f + 0.05 * rng.standard_normal(2 * N)


def fitted(loss, alpha, graph, X, y):
    kind = HKLClassifier if loss == "log_loss" else HKLRegressor
    with warnings.catch_warnings():
        # Rounding may leave too little for the proof, and the fit then says so.
        warnings.simplefilter("ignore")
        return kind(alpha, loss=loss, graph=graph).fit(X[:N], y[:N])


@pytest.mark.parametrize("loss", ["squared_error", "huber", "log_loss", "poisson"])
@pytest.mark.parametrize(
    ("scale", "alpha"), [(1e4, 1e-3), (1e4, 1e-5), (1e8, 1e-4), (1e8, 1e-8), (1e4, 1e-14)]
)
def test_a_kernel_and_its_features_make_one_model(loss, scale, alpha):
    X, y = sample(loss)
    by_kernel = fitted(loss, alpha, KernelGraph(kernels={"k": partial(linear, scale=scale)}), X, y)
    graph = KernelGraph(features={"k": [0, 1]})
    by_features = fitted(loss, alpha, graph, np.sqrt(scale) * X, y)
    assert by_kernel.score(X[N:], y[N:]) == pytest.approx(
        by_features.score(np.sqrt(scale) * X[N:], y[N:]), abs=1e-3
    )
    objective = by_features.certificate_.objective
    assert by_kernel.certificate_.objective == pytest.approx(objective, rel=1e-4)
    assert by_kernel.hull_["norm"].to_numpy() == pytest.approx(
        by_features.hull_["norm"].to_numpy(), rel=0.02
    )
    # Whatever is proven is true.
    assert by_kernel.certificate_.dual_bound <= objective * (1.0 + 1e-9)
