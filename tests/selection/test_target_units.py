"""Location and scale of y: those of repeated rows where weights are whole numbers."""

from __future__ import annotations

import numpy as np
import pytest

from hikernel import HKLRegressor
from hikernel.graphs import KernelGraph
from hikernel.losses import Huber, LogLoss, Quantile, SquaredError
from hikernel.selection.target import target_units


@pytest.mark.parametrize("loss", [SquaredError(), Huber(), Quantile(0.7)], ids=lambda x: x.name)
@pytest.mark.parametrize("scale", [1.0, 2.0**-900, 2.0**900], ids=["one", "tiny", "huge"])
def test_whole_weights_are_repeated_rows(loss, scale):
    # Divided by their sum, weights round: a quarter of the rows was one row more in one of twelve.
    for seed in range(100):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(8, 80))
        y, times = rng.standard_normal(n), rng.integers(1, 4, n)
        weighted = target_units(y, scale * times, loss)
        repeated = target_units(np.repeat(y, times), np.ones(times.sum()), loss)
        np.testing.assert_allclose(weighted, repeated, rtol=1e-9, atol=1e-12)


def test_the_units_of_minus_y_are_the_same():
    for n in range(4, 40):
        y = np.random.default_rng(n).standard_normal(n)
        center, scale = target_units(y, np.ones(n), Huber())
        mirrored = target_units(-y, np.ones(n), Huber())
        np.testing.assert_allclose(mirrored, (-center, scale), atol=1e-12)
        assert center == pytest.approx(np.median(y))


def test_losses_without_units_leave_y_alone():
    assert target_units(np.array([-1.0, 1.0, 1.0]), np.ones(3), LogLoss()) == (0.0, 1.0)


def test_more_than_half_of_one_value_has_the_scale_of_all():
    y = np.array([0.0] * 9 + [5.0])
    center, scale = target_units(y, np.ones(10), Huber())
    assert center == 0.0
    assert scale == pytest.approx(np.std(y))
    assert target_units(np.full(4, 3.0), np.ones(4), Huber()) == (3.0, 1.0)


def test_a_huber_fit_with_weights_is_that_of_repeated_rows():
    worst = 0.0
    for seed in range(15):
        rng = np.random.default_rng(seed)
        X, times = rng.standard_normal((24, 2)), rng.integers(1, 3, 24)
        y = X[:, 0] + rng.standard_normal(24)
        rows = np.repeat(np.arange(24), times)
        graph = KernelGraph(features={"a": [0], "b": [1]})
        fits = [
            HKLRegressor(0.1, loss="huber", graph=graph, tol=1e-8).fit(X, y, times),
            HKLRegressor(0.1, loss="huber", graph=graph, tol=1e-8).fit(X[rows], y[rows]),
        ]
        worst = max(worst, float(np.ptp([m.certificate_.objective for m in fits])))
    assert worst < 1e-6
