"""graph= without edges: the lasso and the group lasso."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import Lasso

from hikernel import (
    HKLRegressor,
)
from hikernel.graphs import KernelGraph


def squared_penalty_as_lasso(model):
    """lambda Omega(beta): with it the penalty of norms has the same minimiser as the squared."""
    return model.alpha * float(np.sum(model.hull_["norm"]))


def test_one_column_per_node_without_edges_is_the_lasso():
    rng = np.random.default_rng(4)
    Z = rng.standard_normal((80, 15))
    y = Z[:, 0] - 0.5 * Z[:, 7] + 0.3 * rng.standard_normal(80)
    y = (y - y.mean()) / y.std()
    graph = KernelGraph(features={k: [k] for k in range(15)})
    for alpha in (0.3, 0.03, 0.003):
        model = HKLRegressor(alpha, graph=graph, tol=1e-9).fit(Z, y)
        strength = squared_penalty_as_lasso(model)
        lasso = Lasso(strength, tol=1e-12, max_iter=100_000).fit(Z, y)
        ours = np.zeros(15)
        ours[model.nodes_] = model.coef_
        np.testing.assert_allclose(ours, lasso.coef_, atol=1e-4)
        np.testing.assert_allclose(model.predict(Z), lasso.predict(Z), atol=1e-3)


def test_blocks_without_edges_are_the_group_lasso():
    cp = pytest.importorskip("cvxpy")
    from oracles.dags import solve

    rng = np.random.default_rng(5)
    Z = rng.standard_normal((80, 18))
    groups = {k: list(range(3 * k, 3 * k + 3)) for k in range(6)}
    weights = {k: 0.7 + 0.1 * k for k in groups}
    y = Z[:, :3] @ [1.0, -1.0, 0.5] + 0.5 * Z[:, 10] + 0.3 * rng.standard_normal(80)
    y = (y - y.mean()) / y.std()
    graph = KernelGraph(features=groups, weights=weights)
    for alpha in (0.1, 0.01):
        model = HKLRegressor(alpha, graph=graph, tol=1e-9).fit(Z, y)
        total = sum(
            weights[v] * norm for v, norm in zip(model.nodes_, model.hull_["norm"], strict=True)
        )
        beta, b = cp.Variable(18), cp.Variable()
        penalty = sum(weights[k] * cp.norm(beta[columns]) for k, columns in groups.items())
        loss = 0.5 * cp.sum_squares(y - Z @ beta - b) / 80
        solve(cp.Problem(cp.Minimize(loss + alpha * total * penalty)))
        ours = np.zeros(18)
        columns = [c for v in model.nodes_ for c in groups[v]]
        ours[columns] = model.coef_
        np.testing.assert_allclose(ours, beta.value, atol=2e-4)
        selected = {k for k, c in groups.items() if np.linalg.norm(beta.value[c]) > 1e-4}
        assert set(model.nodes_) == selected


# From skglm 0.5, which is too heavy to install for a test (it compiles itself with numba):
#   GroupLasso(groups=2, alpha=strength, weights=d, tol=1e-13, fit_intercept=True).fit(Z, y)
GROUP_LASSO = {
    0.3: [0.691988548, -0.770838623, 0, 0, -0.050504948, 0.410719631, 0, 0, 0, 0, -0.102393889],
    0.05: [
        *[0.917227199, -0.923798969, -0.029937838, -0.04785644, 0.026826058, 0.704873193],
        *[0, 0, 0, 0, -0.053668077],
    ],
}


@pytest.mark.parametrize("strength", list(GROUP_LASSO))
def test_the_group_lasso_of_another_library(strength):
    rng = np.random.default_rng(9)
    Z = rng.standard_normal((40, 10))
    y = Z[:, 0] - Z[:, 1] + 0.8 * Z[:, 5] + 0.3 * rng.standard_normal(40)
    *coef, intercept = GROUP_LASSO[strength]
    blocks = np.reshape(coef, (5, 2))
    d = np.array([1.0, 1.1, 1.2, 1.3, 1.4])
    # Squared penalties have the same minimiser at strength / Omega(beta).
    alpha = strength / float(d @ np.linalg.norm(blocks, axis=1))
    graph = KernelGraph(
        features={k: [2 * k, 2 * k + 1] for k in range(5)}, weights=dict(enumerate(d))
    )
    model = HKLRegressor(alpha, graph=graph, tol=1e-9).fit(Z, y)
    ours = np.zeros((5, 2))
    ours[model.nodes_] = model.coef_.reshape(-1, 2)
    np.testing.assert_allclose(ours, blocks, atol=1e-4)
    assert set(model.nodes_) == set(np.flatnonzero(np.any(blocks, axis=1)).tolist())
    assert model.intercept_ == pytest.approx(intercept, abs=1e-4)
