"""Data that the tests of the experiments share."""

from __future__ import annotations

import gzip

import numpy as np
import pandas as pd
import pytest


@pytest.fixture
def data():
    """Sixty rows with a main effect and an interaction."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 3))
    y = X[:, 0] - X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(60)
    return X, y


@pytest.fixture
def folder(tmp_path):
    """A folder with a small stand-in for boston."""
    X = np.random.default_rng(0).standard_normal((80, 3))
    table = pd.DataFrame(X, columns=["a", "b", "c"]).assign(target=X[:, 0] - X[:, 1])
    with gzip.open(tmp_path / "boston.csv.gz", "wt") as file:
        table.to_csv(file, index=False)
    return tmp_path
