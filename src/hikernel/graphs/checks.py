"""Is it a kernel? Checks of Gram matrices and feature blocks, with errors that name the node."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh_tridiagonal, lapack

from hikernel.engines.kernels import DenseGram
from hikernel.engines.protocol import FloatArray, Vertex
from hikernel.engines.threads import one_blas_thread

__all__ = ["as_numbers", "as_square", "check_block", "check_gram"]

_EXACT_ROWS = 1500
"""Rows up to which a Gram matrix is factorised to see whether it is positive semidefinite."""
_LANCZOS_STEPS = 30
_TILE = 256
"""Rows and columns that are compared with their mirror image at a time."""


def check_gram(node: Vertex, gram: NDArray[Any], n: int) -> None:
    """Raise unless a matrix is finite, (n, n), symmetric and positive semidefinite.

    Negative eigenvalues down to 1e-8 of the trace (1e-5 in float32) pass for rounding. The smallest
    one is found from a Cholesky factorisation that fails, n^3 / 3 operations, and above 1,500
    rows by Lanczos steps, n^2 operations each: these find what is clearly negative, and leave what
    they overlook to the solver, which says when a system is not positive definite.

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
    size = max(float(np.max(gram, initial=0.0)), -float(np.min(gram, initial=0.0)))
    if not np.isfinite(size):
        raise ValueError(f"The Gram matrix of {node!r} has entries that are not finite.")
    tol = 1e-5 if gram.dtype == np.float32 else 1e-8
    skew, i, k = _largest_skew(gram)
    if skew > tol * size:
        raise ValueError(
            f"The Gram matrix of {node!r} is not symmetric: entries ({i}, {k}) and ({k}, {i}) are "
            f"{gram[i, k]:.6g} and {gram[k, i]:.6g}."
        )
    trace = max(float(np.trace(gram, dtype=np.float64)), 0.0)
    least = _lanczos_least(gram) if n > _EXACT_ROWS else _least(gram, tol * trace)
    if least < -tol * trace:
        raise ValueError(
            f"The Gram matrix of {node!r} is indefinite: it has an eigenvalue of about "
            f"{least:.3g}. A kernel must be positive semidefinite."
        )


def _largest_skew(gram: NDArray[Any]) -> tuple[float, int, int]:
    """Return the largest |K_ik - K_ki| and its place, by tiles that stay in the cache."""
    worst = (0.0, 0, 0)
    starts = range(0, len(gram), _TILE)
    for a, b in itertools.combinations_with_replacement(starts, 2):
        tile = gram[a : a + _TILE, b : b + _TILE] - gram[b : b + _TILE, a : a + _TILE].T
        np.abs(tile, out=tile)
        place = int(np.argmax(tile))
        if tile.flat[place] > worst[0]:
            i, k = np.unravel_index(place, tile.shape)
            worst = (float(tile.flat[place]), a + int(i), b + int(k))
    return worst


def _least(gram: NDArray[Any], shift: float) -> float:
    """Return the smallest eigenvalue where it is below -shift; zero elsewhere."""
    system = np.array(gram, dtype=np.float64)
    system.flat[:: len(system) + 1] += shift + np.finfo(float).tiny
    with one_blas_thread():
        _, info = lapack.dpotrf(system.T, lower=0, overwrite_a=1, clean=0)
        if info == 0:
            return 0.0
        return float(np.linalg.eigvalsh(np.asarray(gram, dtype=np.float64))[0])


def _lanczos_least(gram: NDArray[Any]) -> float:
    """Return the smallest Ritz value of a few Lanczos steps, no less than the smallest eigenvalue.

    Rayleigh quotients in float64 of the Ritz vector, so that rounding cannot make it too small.
    """
    n = len(gram)
    basis = np.zeros((_LANCZOS_STEPS + 1, n))
    start = np.random.default_rng(0).standard_normal(n)
    basis[0] = start / np.linalg.norm(start)
    diagonal, beside = np.zeros(_LANCZOS_STEPS), np.zeros(_LANCZOS_STEPS)
    size = 0
    for k in range(_LANCZOS_STEPS):
        image = (gram @ basis[k].astype(gram.dtype)).astype(np.float64)
        diagonal[k] = float(image @ basis[k])
        # All earlier directions are taken out twice: rounding would bring them back.
        for _ in range(2):
            image -= basis[: k + 1].T @ (basis[: k + 1] @ image)
        beside[k], size = float(np.linalg.norm(image)), k + 1
        if beside[k] <= 1e-7 * float(np.max(np.abs(diagonal))):
            break
        basis[k + 1] = image / beside[k]
    _, vectors = eigh_tridiagonal(diagonal[:size], beside[: size - 1])
    ritz = basis[:size].T @ vectors[:, 0]
    return float(DenseGram(gram).inner(ritz, ritz) / (ritz @ ritz))


def as_numbers(node: Vertex, K: Any) -> NDArray[np.floating]:
    """Return a kernel matrix as floating point numbers: float32 stays what it is."""
    try:
        found = np.asarray(K)
        return found if found.dtype in (np.float32, np.float64) else found.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"The Gram matrix of {node!r} must be numbers: {error}") from None


def as_square(node: Vertex, K: Any) -> NDArray[np.floating]:
    """Return a Gram matrix as a square array of floating point numbers."""
    found = as_numbers(node, K)
    if found.ndim != 2 or found.shape[0] != found.shape[1]:
        raise ValueError(f"The Gram matrix of {node!r} must be square, got {found.shape}.")
    return found


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
