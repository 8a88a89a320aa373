"""Hulls of wide nodes: products of many categories end a search before they make it endless."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from hikernel import HKLRegressor, hkl_path
from hikernel.errors import CertificateWarning
from hikernel.search import effort
from hikernel.search.effort import most_columns
from hikernel.selection.lambda_path import PathEnd


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    first, second = rng.integers(0, 40, 500), rng.integers(0, 40, 500)
    effects = rng.standard_normal((40, 40))
    X = pd.DataFrame({"a": [f"a{i}" for i in first], "b": [f"b{i}" for i in second]})
    return X, effects[first, second] + 0.1 * rng.standard_normal(500)


def test_the_limit_is_never_below_what_single_columns_and_few_rows_need():
    for n_rows in (10, 500, 1500, 2079):
        assert most_columns(n_rows, 1) >= n_rows
    assert most_columns(10**6, 5000) == 5000
    for n_rows in (500, 1000, 10_000):
        most = most_columns(n_rows, 1)
        dual = n_rows**2 * most + n_rows**3 / 3
        assert (most**3 / 3 if most <= n_rows else dual) <= 1.001 * effort._STEP_WORK


def test_a_search_ends_at_the_limit_and_says_what_helps(table, monkeypatch):
    X, y = table
    free = HKLRegressor(alpha=1e-5, max_kernels=50).fit(X, y)
    n_columns = len(free.coef_)
    monkeypatch.setattr(effort, "_STEP_WORK", 1.0)
    with pytest.warns(CertificateWarning, match="products of columns with many categories"):
        model = HKLRegressor(alpha=1e-5, max_kernels=500).fit(X, y)
    assert len(model.coef_) <= 500 < n_columns
    assert not model.certificate_.certified
    path = hkl_path(X, y, alphas=np.geomspace(1.0, 1e-6, 13), max_kernels=500)
    assert path.reason is PathEnd.MAX_COLUMNS
    assert len(path) < 13
