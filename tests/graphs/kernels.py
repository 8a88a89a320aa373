"""Rows, a Gram matrix and designs on them, for the tests of KernelGraph."""

from __future__ import annotations

import numpy as np

N = 12
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, 4))
GRAM = X @ X.T
HOLE = GRAM.copy()
HOLE[3, 3] = np.nan


def fitted(graph, rows):
    """The design on rows of equal weights."""
    return graph.fit(rows, np.ones(len(rows)))


def linear(A, B):
    return A @ B.T


def grams_of(design, nodes, n=N):
    """The kernel of every node on the training rows, entry by entry."""
    store = design.store
    out = {}
    for node in nodes:
        if store.has_block(node):
            block = store.features([node])
            out[node] = block @ block.T
        else:
            out[node] = np.column_stack([store.apply([node], e) for e in np.eye(n)])
    return out
