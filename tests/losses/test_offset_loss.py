"""A loss with an offset: the twin in cvxpy, bounds at every step, and the loss it decorates."""

from __future__ import annotations

import numpy as np
import pytest
from losses.cases import Case, counts, marks, signs, sizes
from oracles.problems import optimum_of, prediction_of, small_problem
from oracles.searches import lookahead

from hikernel.bases import OrthonormalPolynomial
from hikernel.losses import (
    Gamma,
    Hinge,
    Huber,
    LogLoss,
    Multinomial,
    OffsetLoss,
    Poisson,
    check_loss,
    with_offset,
)

N = 25
RNG = np.random.default_rng(7)
OFFSET, OFFSETS = RNG.standard_normal(N), RNG.standard_normal((N, 3))
CASES = [
    Case("log_loss", OffsetLoss(LogLoss(), OFFSET), signs),
    Case("hinge", OffsetLoss(Hinge(), OFFSET), signs),
    Case("poisson", OffsetLoss(Poisson(), OFFSET), counts),
    Case("gamma", OffsetLoss(Gamma(), OFFSET), sizes),
    Case("multinomial", OffsetLoss(Multinomial(), OFFSETS), marks, 3),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_optimum_is_that_of_the_twin_and_no_bound_exceeds_it(case):
    small = small_problem(OrthonormalPolynomial(2), 1, case=case, weighted=True)
    optimum, prediction = optimum_of(small)
    steps = []
    tol = 1e-6 if case.loss.smooth else 5e-6
    result = lookahead(
        small.search, tol=tol, max_kernels=200, certify="exact", callback=steps.append
    )
    assert result.certificate.certified
    assert result.certificate.objective == pytest.approx(optimum, rel=1e-5)
    assert len(result.history) >= 1
    for step in result.history:
        assert step.objective >= optimum * (1 - 1e-6)
        if step.kind != "none":
            assert step.dual_bound <= optimum * (1 + 1e-6)
    if case.loss.smooth:
        f = prediction_of(small.search, result) - result.intercept
        expected = prediction - np.mean(prediction, axis=0)
        np.testing.assert_allclose(f - np.mean(f, axis=0), expected, atol=0.02)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_part_is_that_of_the_loss_at_the_moved_prediction(case):
    loss, plain = case.loss, case.loss.loss
    y, f, weights = case.sample(3, n=N)
    moved = f + loss.offset
    s = case.smoothing()
    np.testing.assert_array_equal(loss.value(y, f), plain.value(y, moved))
    np.testing.assert_array_equal(loss.gradient(y, f, s), plain.gradient(y, moved, s))
    np.testing.assert_array_equal(loss.curvature(y, f, s), plain.curvature(y, moved, s))
    assert (loss.name, loss.link, loss.smooth) == (plain.name, plain.link, plain.smooth)
    assert loss.shift_invariant == plain.shift_invariant
    # Fenchel and Young, with equality at the gradient.
    b = loss.gradient(y, f, s)
    inner = b * f if f.ndim == 1 else np.sum(b * f, axis=1)
    missing = loss.conjugate(y, b) + loss.value(y, f) - inner
    assert np.all(missing >= -1e-12)
    assert np.all(missing <= 1e-12 + s)  # the hinge has one kink
    # The curve of the dual is made of conjugates.
    r = loss.residuals(y, f, weights, s)
    curve = loss.dual_curve(y, r, weights)
    assert curve.curve(0.5) == pytest.approx(-weights @ loss.conjugate(y, -0.5 * r), rel=1e-12)
    # Some rows.
    rows = np.array([3, 1, 20])
    part = loss.subset(rows)
    np.testing.assert_array_equal(part.value(y[rows], f[rows]), loss.value(y, f)[rows])


def test_the_offset_of_kinks_is_in_their_parts():
    y = np.where(OFFSET > 0.3, 1.0, -1.0)
    loss = OffsetLoss(Hinge(), OFFSET)
    slope, c, d = loss.plus_parts(y)
    f = np.linspace(-3, 3, N)
    made = slope * f + np.sum(np.maximum(c * f + d, 0.0), axis=0)
    np.testing.assert_allclose(made, loss.value(y, f), atol=1e-15)


def test_a_loss_of_residuals_moves_the_target_instead():
    loss, y = with_offset(Huber(0.3), np.array([1.0, 2.0]), np.array([0.5, -1.0]))
    assert loss == Huber(0.3)
    np.testing.assert_array_equal(y, [0.5, 3.0])
    check_loss(loss, y)
