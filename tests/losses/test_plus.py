"""max(t, 0) smoothed by a barrier on its slope."""

from __future__ import annotations

import numpy as np
import pytest
from losses.smoothing import plus_value

from hikernel.losses.plus import plus_curvature, plus_slope

T = np.concatenate([np.linspace(-3, 3, 61), [-1e6, -1e3, 1e3, 1e6]])
every_smoothing = pytest.mark.parametrize("smoothing", [1.0, 0.1, 1e-4, 1e-10])


@every_smoothing
def test_the_slope_is_inside_its_domain_and_increasing(smoothing):
    slope = plus_slope(T, smoothing)
    assert np.all(slope > 0.0)
    assert np.all(slope <= 1.0)
    assert np.all(np.diff(slope[np.argsort(T)]) >= 0.0)
    np.testing.assert_allclose(slope + plus_slope(-T, smoothing), 1.0, rtol=1e-15)


@every_smoothing
def test_the_smoothed_function_lies_below_and_not_far(smoothing):
    gap = np.maximum(T, 0.0) - plus_value(T, smoothing)
    assert np.all(gap > 0.0)
    bound = smoothing * (2.0 * np.log(2.0) + np.log1p(np.abs(T) / smoothing))
    assert np.all(gap <= bound + 1e-15 * np.abs(T))


@every_smoothing
def test_the_slope_costs_at_most_the_smoothing(smoothing):
    cost = np.maximum(T, 0.0) - plus_slope(T, smoothing) * T
    assert np.all(cost >= 0.0)
    # At 1e6 the slope rounds to one: an error of t times the precision at most.
    assert np.all(cost <= smoothing + 1e-15 * np.abs(T))


@pytest.mark.parametrize("smoothing", [1.0, 0.1])
def test_the_value_is_the_maximum_over_slopes(smoothing):
    a = np.linspace(0.0, 1.0, 200_002)[1:-1]
    barrier = smoothing * (np.log(a) + np.log1p(-a))
    for t in (-2.0, -0.3, 0.0, 0.1, 1.7):
        best = int(np.argmax(a * t + barrier))
        assert plus_value(np.array([t]), smoothing)[0] == pytest.approx(
            a[best] * t + barrier[best], abs=1e-8
        )
        assert plus_slope(np.array([t]), smoothing)[0] == pytest.approx(a[best], abs=1e-5)


@pytest.mark.parametrize("smoothing", [1.0, 0.1, 0.01])
def test_slope_and_curvature_are_numerical_derivatives(smoothing):
    t, h = np.linspace(-2, 2, 41), 1e-3 * smoothing
    slope = (plus_value(t + h, smoothing) - plus_value(t - h, smoothing)) / (2 * h)
    np.testing.assert_allclose(plus_slope(t, smoothing), slope, atol=1e-6)
    curvature = (plus_slope(t + h, smoothing) - plus_slope(t - h, smoothing)) / (2 * h)
    np.testing.assert_allclose(plus_curvature(t, smoothing), curvature, rtol=1e-4)
