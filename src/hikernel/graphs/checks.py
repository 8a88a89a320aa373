"""Is it a kernel? Checks of Gram matrices and feature blocks, with errors that name the node."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from hikernel.engines.protocol import FloatArray, Vertex

__all__ = ["check_block", "check_gram"]


def check_gram(node: Vertex, gram: NDArray[Any], n: int) -> None:
    """Raise unless a matrix is finite, (n, n), symmetric and positive semidefinite.

    Negative eigenvalues down to 1e-8 of the trace (1e-5 in float32) pass for rounding: the
    Cholesky factorisation of K + 1e-8 trace(K) I is the test, n^3 / 3 operations.

    Examples
    --------
    >>> check_gram("a", np.array([[1.0, 2.0], [2.0, 1.0]]), 2)
    Traceback (most recent call last):
    ...
    ValueError: The Gram matrix of 'a' is indefinite: it has an eigenvalue of about -1. A kernel \
must be positive semidefinite.
    """
    if gram.shape != (n, n):
        raise ValueError(
            f"The Gram matrix of {node!r} must have shape ({n}, {n}), got {gram.shape}."
        )
    if not np.all(np.isfinite(gram)):
        raise ValueError(f"The Gram matrix of {node!r} has entries that are not finite.")
    tol = 1e-5 if gram.dtype == np.float32 else 1e-8
    size = float(np.max(np.abs(gram), initial=0.0))
    worst = float(np.max(np.abs(gram - gram.T), initial=0.0))
    if worst > tol * size:
        i, k = np.unravel_index(int(np.argmax(np.abs(gram - gram.T))), gram.shape)
        raise ValueError(
            f"The Gram matrix of {node!r} is not symmetric: entries ({i}, {k}) and ({k}, {i}) are "
            f"{gram[i, k]:.6g} and {gram[k, i]:.6g}."
        )
    system = np.array(gram, dtype=np.float64)
    trace = float(np.trace(system))
    system.flat[:: n + 1] += tol * max(trace, 0.0) + np.finfo(float).tiny
    _, info = lapack.dpotrf(system.T, lower=0, overwrite_a=1, clean=0)
    if info != 0:
        least = float(np.linalg.eigvalsh(np.asarray(gram, dtype=np.float64))[0])
        if least < -tol * max(trace, 0.0):
            raise ValueError(
                f"The Gram matrix of {node!r} is indefinite: it has an eigenvalue of about "
                f"{least:.3g}. A kernel must be positive semidefinite."
            )


def check_block(node: Vertex, block: Any, n: int | None) -> FloatArray:
    """Return features as a finite array of shape (n, r), r >= 1."""
    try:
        found = np.asarray(block, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"The features of {node!r} must be numbers: {error}") from None
    if found.ndim == 1:
        found = found[:, None]
    if found.ndim != 2 or found.shape[1] == 0 or (n is not None and len(found) != n):
        rows = "(n," if n is None else f"({n},"
        raise ValueError(
            f"The features of {node!r} must have shape {rows} r) with r at least 1, "
            f"got {np.shape(block)}."
        )
    if not np.all(np.isfinite(found)):
        raise ValueError(f"The features of {node!r} have entries that are not finite.")
    return found
