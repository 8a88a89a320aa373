"""Engines of random levels, and descendant sums in rational arithmetic."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from hikernel.graphs import Grid, geometric_weights


def make_engine(
    engine_type,
    seed=0,
    n=23,
    widths=((1, 1, 1), (1, 1, 3), (1, 2)),
    constant=(True, True, True),
    parents=None,
):
    rng = np.random.default_rng(seed)
    levels = [
        [
            np.ones((n, 1)) if constant[m] and j == 0 else rng.standard_normal((n, r))
            for j, r in enumerate(variable)
        ]
        for m, variable in enumerate(widths)
    ]
    weights = rng.uniform(0.5, 2.0, n)
    grid = Grid(geometric_weights([len(w) - 1 for w in widths], 2.0), level_parents=parents)
    return engine_type(widths, levels, weights, constant), levels, weights / weights.sum(), grid


def rational_tail_sum(X, alpha, scales, node):
    """U(t) in exact rational arithmetic, for levels 1, x, x^2."""
    rows = [[Fraction(float(x)) for x in row] for row in X]
    a = [Fraction(float(x)) for x in alpha]
    factors = [[[Fraction(float(c)) for c in row] for row in scale] for scale in scales]
    present = dict(node)
    total = Fraction(0)
    for i in range(len(rows)):
        for k in range(i + 1):
            term = a[i] * a[k] * (1 if i == k else 2)
            for m in range(len(factors)):
                j = present.get(m, 0)
                product = rows[i][m] * rows[k][m]
                term *= sum(factors[m][j][level] * product**level for level in range(j, 3))
            total += term
    return float(total)
