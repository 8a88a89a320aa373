"""The conditions estimated from data: empirical covariances and estimated coefficients."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import ArrayLike

from hikernel.consistency.population import conditions_of
from hikernel.consistency.report import ConsistencyReport
from hikernel.consistency.system import HullSplit, NodeBlocks
from hikernel.engines.numerics import matmul
from hikernel.engines.protocol import FloatArray, Vertex
from hikernel.graphs import SupportsAncestors

__all__ = ["estimate_conditions"]

_CONSTANT = 1e-26
"""A column with variance / mean^2 up to this is treated as constant: the rest is rounding."""


def estimate_conditions(
    graph: SupportsAncestors,
    features: Mapping[Vertex, ArrayLike],
    coefficients: Mapping[Vertex, ArrayLike],
    *,
    hull: Iterable[Vertex] | None = None,
    sample_weight: ArrayLike | None = None,
    tol: float = 1e-9,
) -> ConsistencyReport:
    """Estimate the conditions of :func:`consistency_conditions` from data.

    This is the plug-in estimate: Sigma is the empirical covariance of the features (centred,
    because the intercept is not penalised), and beta and W are those of a model. It answers "if
    this hull and these coefficients were the truth, would the hull be recovered?". It does not
    answer "is this hull the true one?": nodes that the model missed count as outside.
    Coefficients of a refit are recommended: the penalty shrinks coefficients, and not all in the
    same proportion.

    Parameters
    ----------
    graph : Grid, Dag or anything with ``ancestors(node)`` and ``weights(nodes)``
        The graph.
    features : mapping of node to array of shape (n,) or (n, r_v)
        Feature columns of all nodes considered. They must contain all ancestors of each node.
    coefficients : mapping of node to float or array of shape (r_v,)
        Estimated beta; zero for nodes that are not in the mapping.
    hull : iterable of nodes, optional
        Estimated W; by default the hull of the nodes with a nonzero coefficient.
    sample_weight : array of shape (n,), optional
        Nonnegative weights of the rows; they need not sum to one.
    tol : float
        Relative precision of the dual norm.

    Returns
    -------
    ConsistencyReport
        The conditions; ``is_estimate`` is true.
    """
    columns = {node: _columns(node, block) for node, block in features.items()}
    lengths = {len(block) for block in columns.values()}
    if len(lengths) > 1:
        raise ValueError(f"All features must have the same number of rows, got {sorted(lengths)}.")
    blocks = NodeBlocks.of(graph, columns, [block.shape[1] for block in columns.values()])
    n = lengths.pop()
    weights = _row_weights(sample_weight, n)
    stacked = np.hstack(list(columns.values()))
    means = weights @ stacked
    centred = (stacked - means) * np.sqrt(weights)[:, None]
    centred[:, np.sum(centred**2, axis=0) <= _CONSTANT * means**2] = 0.0
    beta = blocks.direction(coefficients)
    split = HullSplit.of(graph, blocks, beta, hull)
    return conditions_of(blocks, matmul(centred.T, centred), beta, split, tol=tol, n_samples=n)


def _columns(node: Vertex, block: ArrayLike) -> FloatArray:
    """Return the columns of one node, shape (n, r)."""
    array = np.asarray(block, dtype=np.float64)
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2:
        raise ValueError(f"The features of {node!r} must have one or two dimensions.")
    if not np.all(np.isfinite(array)):
        raise ValueError(f"The features of {node!r} must be finite.")
    return array


def _row_weights(sample_weight: ArrayLike | None, n: int) -> FloatArray:
    """Return row weights that sum to one, shape (n,)."""
    if n < 2:
        raise ValueError("At least two rows are needed.")
    if sample_weight is None:
        return np.full(n, 1.0 / n)
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (n,):
        raise ValueError(f"There are {n} rows but weights of shape {weights.shape}.")
    if not np.all(np.isfinite(weights)) or np.any(weights < 0.0) or np.sum(weights) <= 0.0:
        raise ValueError("The weights must be finite, nonnegative and not all zero.")
    return weights / np.sum(weights)
