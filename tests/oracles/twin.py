"""The convex problem written down as in the paper and given to cvxpy."""

from __future__ import annotations

import warnings

import cvxpy as cp
import numpy as np
from scipy.special import xlogy

from hikernel.losses import (
    EpsilonInsensitive,
    Gamma,
    Hinge,
    Huber,
    LogLoss,
    Multinomial,
    OffsetLoss,
    Poisson,
    Quantile,
    SquaredError,
    SquaredHinge,
    Tweedie,
)
from hikernel.losses.cox import CoxOnRows
from oracles.naive import is_ancestor, node_features


def cox_rows(loss, y, f):
    """Cox's loss of each row, from its definition; the rows have the weights of the loss."""
    rows = []
    for i in range(len(y)):
        risk = np.flatnonzero(np.abs(y) >= np.abs(y[i]))
        mass = np.sum(loss.weights[y == y[i]])
        level = cp.log_sum_exp(f[risk] + np.log(loss.weights[risk] / mass))
        rows.append(level - f[i] if y[i] > 0.0 else cp.Constant(0.0))
    return cp.hstack(rows)


# Each loss as cvxpy writes it, per entry of f (per row for the multinomial loss).
LOSSES = {
    SquaredError: lambda loss, y, f: 0.5 * cp.square(y - f),
    Huber: lambda loss, y, f: 0.5 * cp.huber(y - f, loss.delta),
    Quantile: lambda loss, y, f: loss.level * (y - f) + cp.pos(f - y),
    EpsilonInsensitive: lambda loss, y, f: cp.pos(cp.abs(y - f) - loss.epsilon),
    Poisson: lambda loss, y, f: cp.exp(f) - cp.multiply(y, f) + xlogy(y, y) - y,
    Gamma: lambda loss, y, f: cp.multiply(y, cp.exp(-f)) + f - 1 - np.log(y),
    Tweedie: lambda loss, y, f: _tweedie(loss, y, f),
    LogLoss: lambda loss, y, f: cp.logistic(-cp.multiply(y, f)),
    Hinge: lambda loss, y, f: cp.pos(1 - cp.multiply(y, f)),
    SquaredHinge: lambda loss, y, f: 0.5 * cp.square(cp.pos(1 - cp.multiply(y, f))),
    CoxOnRows: cox_rows,
    OffsetLoss: lambda loss, y, f: LOSSES[type(loss.loss)](loss.loss, y, f + loss.offset),
    Multinomial: lambda loss, y, f: cp.log_sum_exp(f, axis=1) - cp.sum(cp.multiply(y, f), axis=1),
}


def _tweedie(loss, y, f):
    a, c = loss.power - 1, 2 - loss.power
    rows = cp.multiply(y, cp.exp(-a * f)) / a + cp.exp(c * f) / c
    return rows - y**c / (a * c)


def twin_optimum(grid, levels, nodes, y, weights, alpha, loss=None):
    """Optimal value of the problem restricted to some nodes (all of them: the whole graph).

    Parameters
    ----------
    grid : Grid
        For the weights d_v.
    levels : list of list of ndarray
        Level features per variable.
    nodes : list of Node
        Ancestor-closed.
    y : ndarray of shape (n,) or (n, k)
        Target.
    weights : ndarray of shape (n,)
        Row weights (normalised here).
    alpha : float
        lambda.
    loss : Loss, optional
        The squared error if not given.

    Returns
    -------
    value : float
    prediction : ndarray of the shape of y
    """
    omega = weights / weights.sum()
    blocks = [node_features(levels, v) for v in nodes]
    outputs = y.shape[1:]
    betas = [cp.Variable((block.shape[1], *outputs)) for block in blocks]
    b = cp.Variable(outputs)
    shift = b if not outputs else np.ones((len(y), 1)) @ cp.reshape(b, (1, *outputs), order="C")
    f = shift + sum(block @ beta for block, beta in zip(blocks, betas, strict=True))
    norms = [
        grid.weight(v)
        * cp.norm(
            cp.hstack(
                [
                    cp.vec(betas[i], order="C")
                    for i, w in enumerate(nodes)
                    if is_ancestor(v, w, grid)
                ]
            )
        )
        for v in nodes
    ]
    loss = loss or SquaredError()
    rows = LOSSES[type(loss)](loss, y, f)
    mean_loss = cp.sum(omega @ rows)
    problem = cp.Problem(cp.Minimize(mean_loss + 0.5 * alpha * cp.square(sum(norms))))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # cvxpy's own deprecations are not ours to test
        try:
            problem.solve(solver=cp.CLARABEL, **_tolerances(1e-11))
        except cp.SolverError:  # it fails where it cannot get that far
            problem.solve(solver=cp.CLARABEL, **_tolerances(1e-9))
    assert problem.status in ("optimal", "optimal_inaccurate"), problem.status
    return float(problem.value), np.asarray(f.value)


def _tolerances(tol):
    return {"tol_gap_abs": tol, "tol_gap_rel": tol, "tol_feas": tol}
