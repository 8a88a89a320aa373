"""The convex problem written down as in the paper and given to cvxpy."""

from __future__ import annotations

import warnings

import cvxpy as cp
import numpy as np

from oracles.naive import is_ancestor, node_features


def twin_optimum(grid, levels, nodes, y, weights, alpha):
    """Optimal value of the problem restricted to some nodes (all of them: the whole graph).

    Parameters
    ----------
    grid : Grid
        For the weights d_v.
    levels : list of list of ndarray
        Level features per variable.
    nodes : list of Node
        Ancestor-closed.
    y, weights : ndarray of shape (n,)
        Target and row weights (normalised here).
    alpha : float
        lambda.

    Returns
    -------
    value : float
    prediction : ndarray of shape (n,)
    """
    omega = weights / weights.sum()
    blocks = [node_features(levels, v) for v in nodes]
    betas = [cp.Variable(block.shape[1]) for block in blocks]
    b = cp.Variable()
    f = b + sum(block @ beta for block, beta in zip(blocks, betas, strict=True))
    norms = [
        grid.weight(v)
        * cp.norm(cp.hstack([betas[i] for i, w in enumerate(nodes) if is_ancestor(v, w)]))
        for v in nodes
    ]
    loss = 0.5 * cp.sum_squares(cp.multiply(np.sqrt(omega), y - f))
    problem = cp.Problem(cp.Minimize(loss + 0.5 * alpha * cp.square(sum(norms))))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # cvxpy's own deprecations are not ours to test
        problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    assert problem.status in ("optimal", "optimal_inaccurate"), problem.status
    return float(problem.value), np.asarray(f.value)
