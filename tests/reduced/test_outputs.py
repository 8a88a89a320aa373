"""Several outputs with shared weights: sums over the outputs of what each form says alone."""

from __future__ import annotations

import numpy as np
import pytest
from oracles.naive import all_nodes

from hikernel.engines.features import Blocks
from hikernel.graphs import Grid, geometric_weights
from hikernel.reduced import HullMap, solve_reduced
from hikernel.reduced.forms import DualForm, PrimalForm
from hikernel.reduced.outputs import OutputForms

ALPHA = 0.05
GRID = Grid(geometric_weights([2, 1], 2.0))
NODES = all_nodes(GRID)
WIDTHS = [1, 3, 2, 1, 1, 4]
BLOCKS = Blocks(WIDTHS)


def make(seed, kind="primal", n=30):
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((n, sum(WIDTHS))) / np.sqrt(n)
    target = rng.standard_normal(n) / np.sqrt(n)
    if kind == "dual":
        return DualForm(features, target, BLOCKS)
    return PrimalForm(features.T @ features, features.T @ target, float(target @ target), BLOCKS)


KINDS = pytest.mark.parametrize("kind", ["primal", "dual"])


@KINDS
def test_copies_of_one_output_are_that_output_many_times(kind):
    form = make(0, kind)
    copies = OutputForms([form] * 3)
    zeta = np.random.default_rng(1).uniform(0.01, 1, 6)
    one, many = form.evaluate(zeta, ALPHA), copies.evaluate(zeta, ALPHA)
    assert copies.n_columns == 3 * form.n_columns
    assert copies.total == pytest.approx(3 * form.total)
    np.testing.assert_allclose(many.coef, np.tile(one.coef, 3))
    np.testing.assert_allclose(many.scores, np.tile(one.scores, 3))
    np.testing.assert_allclose(many.coef_squares, 3 * one.coef_squares)
    np.testing.assert_allclose(many.score_squares, 3 * one.score_squares)
    np.testing.assert_allclose(many.curvature(), 3 * one.curvature())
    assert many.loss == pytest.approx(3 * one.loss)
    assert many.fit == pytest.approx(3 * one.fit)
    np.testing.assert_allclose(
        copies.scores(many.coef, ALPHA), np.tile(form.scores(one.coef, ALPHA), 3)
    )


@KINDS
def test_the_model_of_copies_is_the_model_of_one(kind):
    form, hull = make(0, kind), HullMap(NODES, GRID)
    one = solve_reduced(form, hull, 0.002, tol=1e-10)
    many = solve_reduced(OutputForms([form] * 3), hull, 0.002, tol=1e-10)
    assert np.linalg.norm(one.coef) > 0.1
    assert many.objective == pytest.approx(3 * one.objective, rel=1e-9)
    np.testing.assert_allclose(many.coef.reshape(3, -1), np.tile(one.coef, (3, 1)), atol=1e-4)


def test_columns_and_sums_go_over_all_outputs():
    forms = OutputForms([make(0), make(1)])
    np.testing.assert_array_equal(forms.columns(np.array([0, 2])), [0, 4, 5, 12, 16, 17])
    x = np.arange(24.0)
    expected = BLOCKS.squares(x[:12]) + BLOCKS.squares(x[12:])
    np.testing.assert_array_equal(forms.squares(x), expected)


@KINDS
def test_restricting_restricts_every_output(kind):
    forms = [make(0, kind), make(1, kind)]
    index = np.array([0, 1, 3], dtype=np.intp)
    zeta = np.array([0.5, 0.3, 0.2])
    smaller = OutputForms(forms).restrict(index)
    parts = [form.restrict(index).evaluate(zeta, ALPHA) for form in forms]
    np.testing.assert_allclose(
        smaller.evaluate(zeta, ALPHA).coef, np.concatenate([part.coef for part in parts])
    )
    assert smaller.n_columns == 2 * (1 + 3 + 1)


@KINDS
def test_gradient_and_hessian_in_log_eta_are_numerical_derivatives(kind):
    form, hull = OutputForms([make(0, kind), make(1, kind), make(2, kind)]), HullMap(NODES, GRID)
    eta = np.random.default_rng(2).uniform(0.1, 1, 6)

    def pull_at(log_eta):
        eta = np.exp(log_eta)
        solved = form.evaluate(hull.zeta(eta), ALPHA)
        return -0.5 * ALPHA * hull.descendant_sums(solved.coef_squares) / eta

    def value(log_eta):
        zeta = hull.zeta(np.exp(log_eta))
        solved = form.evaluate(zeta, ALPHA)
        return solved.loss + 0.5 * ALPHA * zeta @ solved.score_squares

    point, unit = np.log(eta), 1e-5 * np.eye(6)
    gradient = [(value(point + e) - value(point - e)) / 2e-5 for e in unit]
    np.testing.assert_allclose(pull_at(point), gradient, atol=1e-9)
    hessian = np.array([(pull_at(point + e) - pull_at(point - e)) / 2e-5 for e in unit])
    solved = form.evaluate(hull.zeta(eta), ALPHA)
    pull = hull.descendant_sums(solved.coef_squares) / eta
    ours = np.diag(ALPHA * pull) - hull.sandwich(solved.curvature(), eta, hull.zeta(eta))
    np.testing.assert_allclose(ours - np.diag(0.5 * ALPHA * pull), hessian, atol=1e-8)


def test_one_singular_output_makes_all_singular():
    column = np.full((4, 1), 1e9)
    features = np.hstack([column, column])
    blocks = Blocks([1, 1])
    broken = PrimalForm(features.T @ features, features.T @ np.ones(4), 4.0, blocks)
    fine = PrimalForm(np.eye(2), np.ones(2), 4.0, blocks)
    assert OutputForms([fine, fine]).evaluate(np.ones(2), 1e-30) is not None
    assert OutputForms([fine, broken]).evaluate(np.ones(2), 1e-30) is None
