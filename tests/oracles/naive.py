"""Enumeration in place of closed forms: only for graphs of at most a few hundred vertices."""

from __future__ import annotations

import itertools

import numpy as np

from oracles.restrictions import naive_permits


def all_nodes(grid):
    """Every vertex of a grid, restricted or not."""
    ranges = [range(grid.max_level(m) + 1) for m in range(grid.n_variables)]
    nodes = (
        tuple((m, j) for m, j in enumerate(levels) if j > 0)
        for levels in itertools.product(*ranges)
    )
    kept = [node for node in nodes if grid.max_order is None or len(node) <= grid.max_order]
    if grid.restriction is None:
        return kept
    return [node for node in kept if naive_permits(grid.restriction, [m for m, _ in node])]


def is_ancestor(v, w, grid=None):
    """Whether v is an ancestor of w (or w itself): each level of v is on the way up from w's."""
    levels = dict(w)
    return all(j in way_up(levels.get(m, 0), m, grid) for m, j in v)


def way_up(level, m, grid=None):
    """The levels from one to level 0: one less each, unless the grid has other parents."""
    parents = None if grid is None else grid.level_parents
    out = [level]
    while out[-1] > 0:
        out.append(out[-1] - 1 if parents is None else parents[m][out[-1] - 1])
    return out


def random_tree(rng, n_levels):
    """A parent for each level above 0, smaller than it."""
    return tuple(int(rng.integers(j)) for j in range(1, n_levels + 1))


def node_features(levels, node):
    """Row-wise Kronecker product of the levels of every variable, present or absent."""
    present = dict(node)
    n = len(levels[0][0])
    out = np.ones((n, 1))
    for m, blocks in enumerate(levels):
        block = blocks[present.get(m, 0)]
        out = np.einsum("ia,ib->iab", out, block).reshape(n, -1)
    return out


def omega(grid, nodes, coef_norms):
    """sum_v d_v |beta_D(v)| by two loops."""
    total = 0.0
    for v in nodes:
        inner = sum(
            norm**2 for w, norm in zip(nodes, coef_norms, strict=True) if is_ancestor(v, w, grid)
        )
        total += grid.weight(v) * np.sqrt(inner)
    return total


def descendant_sum(grid, levels, t, alpha):
    """U(t) = sum over descendants w of |a_w|^2 / (sum over A(w) and D(t) of d_u)^2."""
    nodes = all_nodes(grid)
    total = 0.0
    for w in nodes:
        if is_ancestor(t, w, grid):
            a = node_features(levels, w).T @ alpha
            between = [u for u in nodes if is_ancestor(t, u, grid) and is_ancestor(u, w, grid)]
            total += float(a @ a) / sum(grid.weight(u) for u in between) ** 2
    return total


def dual_norm_squared(grid, nodes, score_squares, rounds=20000):
    """Omega*^2 = max over eta in H of sum zeta_w |a_w|^2, by many multiplicative updates.

    Returns a lower bound that is attained by an explicit eta, hence never above Omega*^2.
    """
    d = np.array([grid.weight(v) for v in nodes])
    above = np.array([[is_ancestor(v, w, grid) for w in nodes] for v in nodes], dtype=float)
    eta = 1.0 / (len(nodes) * d**2)
    best = 0.0
    for _ in range(rounds):
        zeta = 1.0 / (above.T @ (1.0 / eta))
        best = max(best, float(zeta @ score_squares))
        grow = np.sqrt(above @ (zeta**2 * score_squares)) / (d * eta)
        eta = np.maximum(eta * grow, 1e-300)
        eta /= d**2 @ eta
    return best
