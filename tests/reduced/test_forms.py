"""Both forms against a plain solve and numerical derivatives."""

from __future__ import annotations

import numpy as np
import pytest
from oracles.naive import all_nodes

from hikernel.engines.features import Blocks
from hikernel.graphs import Grid, geometric_weights
from hikernel.reduced import HullMap
from hikernel.reduced.forms import DualForm, PrimalForm

ALPHA = 0.05


def make(widths, seed=0, n=30):
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((n, sum(widths))) / np.sqrt(n)
    target = rng.standard_normal(n) / np.sqrt(n)
    blocks = Blocks(widths)
    primal = PrimalForm(features.T @ features, features.T @ target, float(target @ target), blocks)
    return features, target, blocks, primal, DualForm(features, target, blocks)


GRID = Grid(geometric_weights([2, 1], 2.0))
NODES = all_nodes(GRID)
CASES = [[1] * 6, [1, 3, 2, 1, 1, 4]]


@pytest.mark.parametrize("widths", CASES)
def test_both_forms_solve_the_ridge_problem(widths):
    features, target, _, primal, dual = make(widths)
    zeta = np.random.default_rng(1).uniform(0.01, 1, 6)
    columns = np.repeat(zeta, widths)
    beta = np.linalg.solve(
        features.T @ features + ALPHA * np.diag(1 / columns), features.T @ target
    )
    residual = target - features @ beta
    for form in (primal, dual):
        assert form.total == pytest.approx(target @ target)
        assert form.n_columns == sum(widths)
        solved = form.evaluate(zeta, ALPHA)
        np.testing.assert_allclose(solved.coef, beta, rtol=1e-9)
        np.testing.assert_allclose(solved.scores, features.T @ residual / ALPHA, rtol=1e-9)
        assert solved.loss == pytest.approx(0.5 * residual @ residual)
        assert solved.fit == pytest.approx(target @ residual)
        blocks = np.split(beta, np.cumsum(widths)[:-1])
        np.testing.assert_allclose(solved.coef_squares, [b @ b for b in blocks], rtol=1e-9)
    np.testing.assert_allclose(
        primal.evaluate(zeta, ALPHA).curvature(), dual.evaluate(zeta, ALPHA).curvature(), atol=1e-12
    )


@pytest.mark.parametrize("widths", CASES)
@pytest.mark.parametrize("which", ["primal", "dual"])
def test_gradient_and_hessian_in_log_eta_are_numerical_derivatives(widths, which):
    *_, primal, dual = make(widths)
    form = primal if which == "primal" else dual
    hull = HullMap(NODES, GRID)
    eta = np.random.default_rng(2).uniform(0.1, 1, 6)

    def value(log_eta):
        zeta = hull.zeta(np.exp(log_eta))
        solved = form.evaluate(zeta, ALPHA)
        return solved.loss + 0.5 * ALPHA * zeta @ solved.score_squares

    point, h = np.log(eta), 1e-4
    zeta = hull.zeta(eta)
    solved = form.evaluate(zeta, ALPHA)
    pull = hull.descendant_sums(solved.coef_squares) / eta
    unit = h * np.eye(6)
    gradient = [(value(point + e) - value(point - e)) / (2 * h) for e in unit]
    np.testing.assert_allclose(-0.5 * ALPHA * pull, gradient, atol=1e-9)
    # d2P/dlog eta^2 = eta H eta + diag(gradient): the solver uses the first part.
    hessian = np.array(
        [
            [
                (
                    value(point + a + b)
                    - value(point + a - b)
                    - value(point - a + b)
                    + value(point - a - b)
                )
                / (4 * h * h)
                for b in unit
            ]
            for a in unit
        ]
    )
    ours = np.diag(ALPHA * pull) - hull.sandwich(solved.curvature(), eta, zeta)
    np.testing.assert_allclose(ours - np.diag(0.5 * ALPHA * pull), hessian, atol=1e-6)
    assert np.linalg.eigvalsh(ours).min() >= -1e-12


def test_a_system_that_rounding_makes_singular_is_reported():
    column = np.full((4, 1), 1e9)
    features = np.hstack([column, column])
    target = np.array([1.0, -1.0, 1.0, -1.0])
    blocks = Blocks([1, 1])
    primal = PrimalForm(features.T @ features, features.T @ target, 4.0, blocks)
    assert primal.evaluate(np.ones(2), 1e-30) is None
    assert DualForm(features, target, blocks).evaluate(np.ones(2), 1e-30) is None
