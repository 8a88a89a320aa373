"""Real data: what a wrong normalisation would show at once."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from hikernel import HKLRegressor

pytestmark = pytest.mark.slow


def half_split(folder, name):
    table = pd.read_csv(folder / f"{name}.csv.gz")
    y = table.pop("target").to_numpy(dtype=float)
    X = table.to_numpy(dtype=float)
    order = np.random.default_rng(0).permutation(len(y))
    return X, y, order[: len(y) // 2], order[len(y) // 2 :]


def test_the_terms_of_pumadyn_are_found_and_proven(data_folder):
    """At lambda = 0.03 the hull of x5^2 * x16 (counted from 1), among 5^32 kernels."""
    X, y, train, test = half_split(data_folder, "pumadyn-32nm")
    model = HKLRegressor(0.03, weight_base=2.0).fit(X[train], y[train])
    assert model.certificate_.certified
    assert model.certificate_.n_vertices == 5**32
    assert set(model.hull_["term"]) == {"1", "x4", "x4^2", "x15", "x4 * x15", "x4^2 * x15"}
    error = 100 * np.mean((model.predict(X[test]) - y[test]) ** 2) / y.var()
    assert 75 < error < 79  # shrunk at this lambda, as it must be
