"""Kernels of sparse counts: inner products and cosines of rows of a sparse matrix."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from hikernel.engines.protocol import FloatArray

__all__ = ["inner_products"]


def inner_products(
    left: sparse.csr_array, right: sparse.csr_array, *, normalize: bool
) -> FloatArray:
    """Return sum_f left[x, f] right[z, f] for all rows x and z, shape (n_left, n_right).

    With ``normalize`` these are cosines, and 0 if one of the rows is empty.
    """
    out = np.asarray((left @ right.T).toarray(), dtype=np.float64)
    if normalize:
        # The root of the product, not the product of the roots: the diagonal is exactly 1.
        squares = [np.asarray(side.multiply(side).sum(axis=1)).ravel() for side in (left, right)]
        scale = np.sqrt(np.outer(*squares))
        np.divide(out, scale, out=out, where=scale > 0.0)
    return out
