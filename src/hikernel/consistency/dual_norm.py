"""The dual norm of the hierarchical norm over a part of a graph, between proven bounds.

The dual norm of Omega(Delta) = sum_v d_v |Delta_D(v)| has no closed form on a general DAG. It has
the variational forms

    Omega*(x)^2 = max_{eta in H} sum_w zeta_w(eta) |x_w|^2
                = min_kappa max_v d_v^-2 sum_{w in D(v)} kappa_vw^2 |x_w|^2

Any eta gives a lower bound from the maximum and, with kappa_vw = zeta_w / eta_v, an upper bound
from the minimum. The multiplicative updates of ``HullMap.refine_dual_norm`` improve eta until the
two bounds agree to a relative precision. (``refine_dual_norm`` itself returns the eta of the best
upper bound, which is often reached long before the lower bound is as good.)
"""

from __future__ import annotations

import numpy as np

from hikernel.consistency.graph_part import GraphPart
from hikernel.consistency.report import Condition
from hikernel.engines.protocol import FloatArray
from hikernel.reduced.variational import THETA_FLOOR

__all__ = ["closed_form", "dual_norm", "largest_source"]

_MAX_ROUNDS = 20_000
"""Maximum number of updates: half a second for a hundred nodes. Most graphs need a few hundred."""


def largest_source(part: GraphPart, squares: FloatArray) -> Condition:
    """Return max over the sources t of |x_t| / d_t, a lower bound on Omega*(x).

    Parameters
    ----------
    part : GraphPart
        The m nodes.
    squares : ndarray of shape (m,)
        |x_w|^2.
    """
    ratios = {t: float(np.sqrt(squares[t]) / part.map.weights[t]) for t in part.sources}
    return _largest(part, ratios)


def closed_form(part: GraphPart, squares: FloatArray) -> Condition:
    """Return the paper's upper bound on Omega*(x).

    It is the square root of the maximum over the sources t of

        sum_{w in D(t)} |x_w|^2 / (sum_{v in A(w) and D(t)} d_v)^2.
    """
    sums = {
        t: float(np.sqrt(sum(squares[w] / total**2 for w, total in part.weight_below(t).items())))
        for t in part.sources
    }
    return _largest(part, sums)


def dual_norm(part: GraphPart, squares: FloatArray, *, tol: float) -> Condition:
    """Return bounds on Omega*(x) that agree to relative precision ``tol``.

    After 20,000 updates the bounds are returned as they are. The worst node is the one with the
    largest share zeta_w |x_w|^2 of Omega*(x)^2.

    Parameters
    ----------
    part : GraphPart
        The m nodes.
    squares : ndarray of shape (m,)
        |x_w|^2.
    tol : float
        Stop once upper / lower - 1 is at most this.
    """
    scale = float(np.max(squares, initial=0.0))
    if scale == 0.0:
        return _largest(part, dict.fromkeys(part.sources, 0.0))
    every = squares / scale
    # If x is zero on all of D(v), then eta_v = 0 at the optimum: leave v out.
    kept = np.flatnonzero(part.map.closure(every > 0.0))
    hull, squares, nodes = part.map.restrict(kept), every[kept], [part.nodes[i] for i in kept]
    eta = hull.eta(np.full(hull.size, 1.0 / hull.size))
    # Omega(Delta) <= sum_w c_w |Delta_w| with c_w = sum of d over A(w), hence the lower bounds
    # |x_w| / c_w <= Omega*(x).
    shares = squares * hull.zeta(1.0 / hull.weights) ** 2
    lower, upper = float(np.max(shares)), closed_form(part, every).upper ** 2
    for _ in range(_MAX_ROUNDS):
        if upper <= lower * (1.0 + tol) ** 2:
            break
        shares = hull.zeta(eta) * squares
        ratios = hull.dual_norm_ratios(squares, eta)
        lower = max(lower, float(np.sum(shares)))
        upper = min(upper, float(np.max(ratios)) ** 2)
        eta = np.maximum(eta * ratios / np.max(ratios), THETA_FLOOR / hull.weights**2)
        eta /= hull.weights**2 @ eta
    worst = nodes[int(np.argmax(shares))]
    # When the bounds are equal up to rounding, lower may exceed upper.
    lower, upper = np.sqrt(scale * np.array([min(lower, upper), max(lower, upper)])).tolist()
    return Condition(lower, upper, worst)


def _largest(part: GraphPart, values: dict[int, float]) -> Condition:
    """Return the largest value and its node; 0 if there are no values."""
    if not values:
        return Condition(0.0, 0.0)
    worst = max(values, key=values.__getitem__)
    return Condition(values[worst], values[worst], part.nodes[worst])
