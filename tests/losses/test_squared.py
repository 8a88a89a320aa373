"""The squared error: derivative, conjugate, best multiple of a dual point."""

from __future__ import annotations

import numpy as np
import pytest

from hikernel.losses import SquaredError
from hikernel.losses.dual_curve import QuadraticCurve

rng = np.random.default_rng(0)
Y, F = rng.standard_normal(50), rng.standard_normal(50)


def test_gradient_is_the_numerical_derivative():
    loss, h = SquaredError(), 1e-6
    numeric = (loss.value(Y, F + h) - loss.value(Y, F - h)) / (2 * h)
    np.testing.assert_allclose(loss.gradient(Y, F), numeric, atol=1e-8)


def test_fenchel_young_holds_with_equality_at_the_gradient_only():
    loss = SquaredError()
    b = loss.gradient(Y, F)
    np.testing.assert_allclose(loss.value(Y, F) + loss.conjugate(Y, b), F * b, atol=1e-12)
    assert np.all(loss.value(Y, F) + loss.conjugate(Y, b + 0.1) > F * (b + 0.1))


def test_best_dual_value_is_the_maximum_over_multiples():
    fit, residual, penalty = 0.8, 0.5, 0.2
    curve = QuadraticCurve(fit, residual)
    grid = np.linspace(0, 3, 30001)
    values = grid * fit - 0.5 * grid**2 * (residual + penalty)
    assert curve.value(penalty) == pytest.approx(values.max(), rel=1e-8)
    assert curve.value(curve.penalty_for(0.3)) == pytest.approx(0.3)


@pytest.mark.parametrize(
    ("fit", "residual", "penalty"),
    [(-1.0, 1.0, 1.0), (1.0, 1.0, np.inf), (0.0, 0.0, 0.0), (1.0, np.nan, 1.0)],
)
def test_without_information_the_bound_is_zero(fit, residual, penalty):
    assert QuadraticCurve(fit, residual).value(penalty) == 0.0


def test_any_penalty_reaches_a_value_of_zero():
    assert QuadraticCurve(1.0, 1.0).penalty_for(0.0) == np.inf
    assert QuadraticCurve(-1.0, 1.0).penalty_for(0.3) == -np.inf  # no multiple reaches it
