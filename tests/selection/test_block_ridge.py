"""The ridge refit over rows in blocks is that of the features brought together."""

from __future__ import annotations

import numpy as np
import pytest
from engines.blocks import in_blocks
from engines.cases import make_engine

from hikernel.engines import NumpyEngine
from hikernel.engines.row_block_engine import RowBlockEngine
from hikernel.losses import Huber, LogLoss, Multinomial, Poisson, SquaredError
from hikernel.selection import ridge
from hikernel.selection.block_ridge import BlockFeatures
from hikernel.selection.ridge import fit_ridge
from hikernel.selection.term_features import column_variances, scaled_features

NODES = [((0, 1),), ((1, 2),), ((0, 1), (2, 1))]


def problem_of(loss):
    engine, *_ = make_engine(NumpyEngine, n=200)
    blocks, *_ = make_engine(in_blocks((30, 31, 140)), n=200)
    rng = np.random.default_rng(0)
    columns = sum(engine.width(node) for node in NODES)
    f = engine.features(NODES) @ rng.standard_normal(columns) + rng.standard_normal(200)
    if isinstance(loss, LogLoss):
        y = np.where(f > 0, 1.0, -1.0)
    elif isinstance(loss, Multinomial):
        y = np.eye(3)[np.digitize(f, [-1.0, 1.0])]
    else:
        y = np.floor(np.abs(f)) if isinstance(loss, Poisson) else f
    return engine, blocks, y, rng.uniform(0.5, 2.0, columns)


@pytest.mark.parametrize("relative_mu", [None, 0.01, 0.0])
@pytest.mark.parametrize("loss", [SquaredError(), LogLoss(), Multinomial(), Poisson(), Huber()])
def test_fits_are_those_of_the_features_in_memory(loss, relative_mu, monkeypatch):
    if relative_mu == 0.0 and isinstance(loss, LogLoss | Multinomial | Poisson):
        relative_mu = 1e-4  # a separable problem has no solution without a penalty
    monkeypatch.setattr(ridge, "FEW_PENALTIES", np.geomspace(1e-4, 10.0, 4))
    engine, blocks, y, scales = problem_of(loss)
    omega = engine.row_weights
    features = scaled_features(blocks, NODES, scales)
    assert isinstance(features, BlockFeatures)
    together = scaled_features(engine, NODES, scales)
    np.testing.assert_allclose(
        column_variances(features, omega), column_variances(together, omega), rtol=1e-9
    )
    assert features.shape == (200, 6)
    for columns in (slice(None), np.arange(1, 6)):
        some = features if isinstance(columns, slice) else features[:, columns]
        wanted = fit_ridge(together[:, columns].copy(), y, omega, loss, relative_mu)
        found = fit_ridge(some, y, omega, loss, relative_mu)
        assert found.mu == pytest.approx(wanted.mu, rel=1e-9)
        assert found.score == pytest.approx(wanted.score, rel=1e-6)
        np.testing.assert_allclose(found.coef, wanted.coef, rtol=1e-5, atol=1e-7)
        np.testing.assert_allclose(found.intercept, wanted.intercept, rtol=1e-5, atol=1e-7)


def test_predictions_that_are_known_take_no_pass(monkeypatch):
    monkeypatch.setattr(ridge, "FEW_PENALTIES", np.array([0.1]))
    _, blocks, y, scales = problem_of(LogLoss())
    asked = []
    apply = RowBlockEngine.apply
    monkeypatch.setattr(
        RowBlockEngine, "apply", lambda *given: asked.append(given[2].tobytes()) or apply(*given)
    )
    fit_ridge(scaled_features(blocks, NODES, scales), y, blocks.row_weights, LogLoss())
    assert len(asked) == len(set(asked)) > 2
