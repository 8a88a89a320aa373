"""The conditions for a population: known covariance, coefficients and hull.

Let W be the true hull and beta the true coefficients (squared loss, n -> infinity, lambda -> 0).
Define

    q_w = (sum_{v in A(w)} d_v / |beta_{D(v) and W}|) beta_w,    w in W,
    A = Sigma_{W^c W} Sigma_WW^-1 q.

To first order in lambda, the estimate on W is beta - lambda Omega(beta) Sigma_WW^-1 q. It is zero
outside W exactly when Delta'A + sum_{v in W^c} d_v |Delta_D(v)| >= 0 for all Delta, that is, when
Omega*(A) <= 1 for the dual norm over W^c. The main text of the paper has d_w / |beta_D(w)| in
place of the sum over the ancestors. Its appendix has the sum, which is used here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from hikernel.consistency.dual_norm import closed_form, dual_norm, largest_source
from hikernel.consistency.report import ConsistencyReport
from hikernel.consistency.system import HullSplit, NodeBlocks, check_covariance, solve_covariance
from hikernel.engines.numerics import matvec
from hikernel.engines.protocol import FloatArray, Vertex
from hikernel.graphs import SupportsAncestors

__all__ = ["conditions_of", "consistency_conditions"]


def consistency_conditions(
    graph: SupportsAncestors,
    nodes: Iterable[Vertex],
    covariance: ArrayLike,
    coefficients: Mapping[Vertex, ArrayLike],
    *,
    hull: Iterable[Vertex] | None = None,
    widths: Sequence[int] | None = None,
    tol: float = 1e-9,
) -> ConsistencyReport:
    """Return the necessary and the sufficient condition for consistent estimation of the hull.

    A is defined in the docstring of the module, and A_w is its block for node w. With t running
    over the sources of W^c (the nodes outside W that have no other ancestor outside W):

        necessary     max_t |A_t| / d_t  <=  1
        sufficient    Omega*(A)  <  1,  the dual norm of Delta -> sum_{v in W^c} d_v |Delta_D(v)|
        closed form   max_t sum_{w in D(t)} |A_w|^2 / (sum_{v in A(w) and D(t)} d_v)^2  <  1

    The paper prints the first and the third, squared; the report has their square roots. The dual
    norm has no closed form. It is bounded from both sides to the relative precision ``tol``.
    If it is above 1, the hull is not recovered, even where the necessary condition holds.

    Parameters
    ----------
    graph : Grid, Dag or anything with ``ancestors(node)`` and ``weights(nodes)``
        The graph.
    nodes : iterable of m nodes
        V, all nodes considered. They must contain all ancestors of each node.
    covariance : array of shape (R, R)
        Sigma of the features of all nodes, one block of columns per node in the order of
        ``nodes``. A penalised constant (the root of a grid) has variance zero.
    coefficients : mapping of node to float or array of shape (r_v,)
        beta; zero for nodes that are not in the mapping.
    hull : iterable of nodes, optional
        W; by default the hull of the nodes with a nonzero coefficient. If given, it must be a
        hull, contain these nodes, and have such a node among the descendants of each member.
    widths : sequence of m int, optional
        r_v, the number of columns of each node; 1 by default.
    tol : float
        Relative precision of the dual norm.

    Returns
    -------
    ConsistencyReport
        Values, margins, worst nodes, and ``explain()``.

    Examples
    --------
    Two variables with correlation 1/2, of which the first one matters: q = (1 + 2) sign(beta),
    A = 3/2 for x1, to be divided by its weight 2.

    >>> from hikernel.graphs import Grid, geometric_weights
    >>> grid = Grid(geometric_weights([1, 1], base=2.0))
    >>> nodes = [(), ((0, 1),), ((1, 1),)]
    >>> sigma = [[0, 0, 0], [0, 1, 0.5], [0, 0.5, 1]]
    >>> report = consistency_conditions(grid, nodes, sigma, {((0, 1),): -3.0})
    >>> round(report.necessary.value, 6), report.necessary.worst, report.verdict
    (0.75, ((1, 1),), 'recovered')
    """
    blocks = NodeBlocks.of(graph, nodes, widths)
    sigma = check_covariance(covariance, blocks.n_columns)
    beta = blocks.direction(coefficients)
    split = HullSplit.of(graph, blocks, beta, hull)
    return conditions_of(blocks, sigma, beta, split, tol=tol)


def conditions_of(
    blocks: NodeBlocks,
    sigma: FloatArray,
    beta: FloatArray,
    split: HullSplit,
    *,
    tol: float,
    n_samples: int | None = None,
) -> ConsistencyReport:
    """Return the report for checked input; ``n_samples`` marks it as an estimate."""
    if not 0.0 < tol < 1.0:
        raise ValueError(f"tol must lie between 0 and 1, got {tol!r}.")
    inside = blocks.blocks.columns(split.inside)
    outside = blocks.blocks.columns(split.outside)
    solution, n_dependent = solve_covariance(
        sigma[np.ix_(inside, inside)], _norm_gradient(blocks, beta[inside], split)
    )
    pull = matvec(sigma[np.ix_(outside, inside)], solution)
    squares = blocks.blocks.restrict(split.outside).squares(pull)
    return ConsistencyReport(
        necessary=largest_source(split.complement, squares),
        sufficient=dual_norm(split.complement, squares, tol=tol),
        closed_form=closed_form(split.complement, squares),
        n_nodes=len(blocks.nodes),
        n_hull=len(split.inside),
        n_dependent=n_dependent,
        n_samples=n_samples,
    )


def _norm_gradient(blocks: NodeBlocks, beta: FloatArray, split: HullSplit) -> FloatArray:
    """Return q, shape (R_W,): the gradient of Omega at beta on W."""
    hull = split.hull.map
    factors = split.hull.ancestor_sums(hull.weights / hull.descendant_norms(split.squares))
    return np.asarray(blocks.blocks.restrict(split.inside).spread(factors) * beta)
