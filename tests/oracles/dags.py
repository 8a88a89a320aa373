"""General graphs, slowly: ancestors by recursion, kernels by factors, the problem in cvxpy."""

from __future__ import annotations

import warnings

import cvxpy as cp
import numpy as np

from hikernel.losses import SquaredError
from oracles.twin import LOSSES, _tolerances


def ancestors(parents, node):
    """A(v), v included."""
    return {node}.union(*(ancestors(parents, above) for above in parents[node]))


def descendants(parents, node):
    """D(v), v included."""
    return [w for w in parents if node in ancestors(parents, w)]


def random_parents(rng, m, most=3):
    """A DAG of m nodes "0" to "m-1"; each has at most ``most`` parents among the ones before."""
    names = [str(i) for i in range(m)]
    return {
        names[i]: sorted(
            names[j] for j in rng.choice(i, min(i, rng.integers(most + 1)), replace=False)
        )
        for i in range(m)
    }


def random_blocks(rng, nodes, n, widths=(1, 2, 3)):
    """Features of a few columns for every node, with means."""
    return {
        node: rng.standard_normal((n, int(rng.choice(widths)))) + rng.standard_normal()
        for node in nodes
    }


def factor(K):
    """F with F F' = K, of full column rank."""
    squares, vectors = np.linalg.eigh(np.asarray(K, dtype=float))
    kept = squares > 1e-12 * squares[-1]
    return vectors[:, kept] * np.sqrt(squares[kept])


def omega_norm(parents, weights, norms):
    """sum_v d_v |beta_D(v)|, from the norm of every node's coefficients."""
    return sum(
        weights[v] * np.sqrt(sum(norms[w] ** 2 for w in descendants(parents, v))) for v in parents
    )


def dag_optimum(parents, weights, blocks, y, row_weights, alpha, loss=None):
    """Optimal value over the whole graph, the prediction there, and the norms of the nodes.

    ``blocks`` are the features of the nodes (``factor`` makes them from Gram matrices).
    """
    omega = row_weights / row_weights.sum()
    outputs = y.shape[1:]
    betas = {node: cp.Variable((block.shape[1], *outputs)) for node, block in blocks.items()}
    b = cp.Variable(outputs)
    shift = b if not outputs else np.ones((len(y), 1)) @ cp.reshape(b, (1, *outputs), order="C")
    f = shift + sum(blocks[node] @ beta for node, beta in betas.items())
    penalty = sum(
        weights[v]
        * cp.norm(cp.hstack([cp.vec(betas[w], order="C") for w in descendants(parents, v)]))
        for v in parents
    )
    loss = loss or SquaredError()
    mean_loss = cp.sum(omega @ LOSSES[type(loss)](loss, y, f))
    problem = cp.Problem(cp.Minimize(mean_loss + 0.5 * alpha * cp.square(penalty)))
    solve(problem)
    norms = {node: float(np.linalg.norm(beta.value)) for node, beta in betas.items()}
    return float(problem.value), np.asarray(f.value), norms


def solve(problem):
    """Solve a cvxpy problem as precisely as Clarabel can."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # cvxpy's own deprecations are not ours to test
        try:
            problem.solve(solver=cp.CLARABEL, **_tolerances(1e-11))
        except cp.SolverError:  # it fails where it cannot get that far
            problem.solve(solver=cp.CLARABEL, **_tolerances(1e-9))
    assert problem.status in ("optimal", "optimal_inaccurate"), problem.status
