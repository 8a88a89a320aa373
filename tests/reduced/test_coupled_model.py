"""The R q form of interacting outputs against its objective as it is written."""

from __future__ import annotations

import numpy as np
import pytest
from oracles.designs import training_problem

from hikernel.bases import OrthonormalPolynomial
from hikernel.engines.features import Blocks
from hikernel.graphs import ROOT
from hikernel.losses import Multinomial
from hikernel.reduced import ReducedProblem
from hikernel.reduced import problem as module
from hikernel.reduced.coupled_model import coupled_model, output_directions


def sample(k=4, n=60, widths=(1, 2, 1), seed=0):
    """Centred features, marks of k classes, a point, and weights."""
    rng = np.random.default_rng(seed)
    omega = rng.uniform(0.5, 2.0, n)
    omega /= omega.sum()
    features = rng.standard_normal((n, sum(widths)))
    features -= omega @ features
    y = np.eye(k)[rng.integers(0, k, n)]
    coef = rng.standard_normal((sum(widths), k))
    coef -= coef.mean(axis=1, keepdims=True)
    return features, y, omega, coef, Blocks(widths)


@pytest.mark.parametrize("k", [2, 4])
def test_its_minimum_is_that_of_the_quadratic_model(k):
    """With zeta given: the penalised Taylor polynomial of the loss, minimised over B and b."""
    features, y, omega, coef, blocks = sample(k)
    loss, lam = Multinomial(), 0.03
    f = features @ coef + np.linspace(-0.5, 0.5, k)
    floor = np.full(len(y), 1e-9)
    form, value = coupled_model(loss, y, f, omega, floor, features, coef, blocks)
    zeta = np.array([0.7, 0.1, 0.4])
    solved = form.evaluate(zeta, lam)
    C = output_directions(loss, k)
    q = k - 1
    # theta: all (column, direction), then the intercepts.
    rows = np.einsum("nr,ka->nkra", features, C).reshape(len(y), k, -1)
    rows = np.concatenate([rows, np.broadcast_to(C, (len(y), k, q))], axis=2)
    hessian = np.einsum("n,nkt,nkl,nlu->tu", omega, rows, loss.hessian(y, f), rows)
    slope = np.einsum("n,nkt,nk->t", omega, rows, loss.gradient(y, f))
    start = np.append((coef @ C).ravel(), np.zeros(q))
    spread = np.repeat(blocks.spread(zeta), q)
    penalty = np.diag(np.append(lam / spread, np.zeros(q)))
    theta = np.linalg.solve(hessian + penalty, hessian @ start - slope)
    np.testing.assert_allclose(solved.coef, theta[:-q], rtol=1e-7, atol=1e-10)

    # The value of the model, without a constant that is the same for every theta.
    def model(theta):
        d = theta - start
        return slope @ d + 0.5 * d @ hessian @ d

    def best(z):
        free = np.linalg.solve(
            hessian[-q:, -q:], -slope[-q:] - hessian[-q:, :-q] @ (z - start[:-q])
        )
        return model(np.append(z, free))

    other = form.evaluate(2.0 * zeta, lam)
    assert solved.loss - other.loss == pytest.approx(best(solved.coef) - best(other.coef), rel=1e-6)
    lowest = np.linalg.lstsq(hessian, hessian @ start - slope, rcond=None)[0]
    assert value >= best(start[:-q]) - model(lowest)
    pushed = form.scores(solved.coef, lam)
    np.testing.assert_allclose(pushed * spread, solved.coef, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("lam", [0.1, 1e-3, 1e-5])
def test_outputs_together_and_one_by_one_meet_at_the_same_optimum(lam, monkeypatch):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((150, 3))
    y = np.eye(3)[np.argmax(X + X[:, [1, 2, 0]] ** 2 + rng.gumbel(size=(150, 3)), axis=1)]
    whole = training_problem(X, y, OrthonormalPolynomial(2), Multinomial())
    nodes = [ROOT, *(((m, 1),) for m in range(3)), *(((m, 2),) for m in range(3))]
    steps, objectives = [], []
    for most in (10**6, 0):
        monkeypatch.setattr(module, "_MOST_COUPLED", most)
        problem = ReducedProblem(whole.engine, whole.graph, y, nodes, Multinomial())
        solution = problem.solve(lam, tol=1e-7)
        assert solution.status.ok
        steps.append(solution.n_iter)
        objectives.append(solution.objective)
        assert solution.objective - solution.dual_bound <= 1e-7 * solution.objective
        np.testing.assert_allclose(solution.coef.sum(axis=1), 0.0, atol=1e-12)
    assert objectives[0] == pytest.approx(objectives[1], rel=2e-7)
    assert steps[0] < 0.6 * steps[1]
