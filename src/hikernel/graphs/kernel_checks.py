"""Is it a kernel? Checks of Gram matrices and feature blocks, with errors that name the node."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import eigh_tridiagonal, lapack

from hikernel.engines.machine import one_blas_thread, require_memory
from hikernel.engines.node_kernels import DenseGram
from hikernel.engines.protocol import FloatArray, Vertex

__all__ = ["as_kernels", "as_numbers", "check_block", "kernel_dtype"]

_EXACT_ROWS = 1500
"""Rows up to which a Gram matrix is factorised to see whether it is positive semidefinite."""
_LANCZOS_STEPS = 30
_TILE = 256
"""Rows and columns that are compared with their mirror image at a time."""


def as_kernels(
    given: Mapping[Vertex, Any],
    n: int | None,
    dtype: str | None,
    *,
    name: Callable[..., str] = repr,
) -> dict[Vertex, DenseGram]:
    """Return Gram matrices that are kernels, in the type that is to be kept.

    Parameters
    ----------
    given : mapping of node to array of shape (n, n)
        The matrices.
    n : int, optional
        Their size; that of the first by default.
    dtype : {None, "float32", "float64"}
        The type; as given by default.
    name : callable
        A node in words, for messages.
    """
    kept = kernel_dtype(dtype)
    found = {node: as_numbers(name(node), K) for node, K in given.items()}
    first = ""
    for node, gram in found.items():
        if gram.ndim != 2 or gram.shape[0] != gram.shape[1]:
            wanted = "be square" if n is None else f"have shape ({n}, {n})"
            raise ValueError(f"The Gram matrix of {name(node)} must {wanted}, got {gram.shape}.")
        if n is None:
            n, first = len(gram), name(node)
        if len(gram) != n:
            other = f" and that of {first} {n}" if first else f" in place of {n}"
            raise ValueError(
                f"The Gram matrix of {name(node)} has {len(gram)} rows{other}; all must be of the "
                "same items."
            )
    if kept is not None:
        changed = sum(gram.size for gram in found.values() if gram.dtype != kept)
        require_memory(
            changed * kept.itemsize // 8,
            f"{len(found)} Gram matrices in another type",
            "Give them in the type that is to be kept, or use dtype=None.",
        )
    return {node: _as_kernel(name(node), gram, kept) for node, gram in found.items()}


def kernel_dtype(dtype: str | None) -> np.dtype[Any] | None:
    """Return the type in which matrices are kept; None for the one they have."""
    if dtype not in (None, "float32", "float64"):
        raise ValueError(f'dtype must be None, "float32" or "float64", got {dtype!r}.')
    return None if dtype is None else np.dtype(dtype)


def _as_kernel(name: str, gram: NDArray[Any], dtype: np.dtype[Any] | None) -> DenseGram:
    """Return a matrix that is finite, symmetric and positive semidefinite, or say why it is not.

    Negative eigenvalues down to 1e-8 of the trace (1e-5 where the matrix comes in float32) pass for
    rounding, and so does as much asymmetry. What rounding may have taken from the smallest
    eigenvalue is given back as a nugget, so that a certificate speaks of a kernel: of K + tau I,
    where tau bounds the norm of the rounding to float32 by the largest row sum of |K| (none in
    float64, where it is below the margins of the certificate), or is the negative eigenvalue found.

    The smallest eigenvalue is found from a Cholesky factorisation that fails, n^3 / 3 operations,
    and above 1,500 rows by Lanczos steps, n^2 operations each: these find what is clearly
    negative.
    """
    size = max(float(np.max(gram, initial=0.0)), -float(np.min(gram, initial=0.0)))
    if not np.isfinite(size):
        raise ValueError(f"The Gram matrix of {name} has entries that are not finite.")
    tol = 1e-5 if gram.dtype == np.float32 else 1e-8
    skew, i, k = _largest_skew(gram)
    if skew > tol * size:
        raise ValueError(
            f"The Gram matrix of {name} is not symmetric: entries ({i}, {k}) and ({k}, {i}) are "
            f"{gram[i, k]:.6g} and {gram[k, i]:.6g}, which differ by {skew:.3g}."
        )
    if skew > 0.0:
        gram = np.asarray(0.5 * (gram + gram.T), dtype=gram.dtype)
    trace = max(float(np.trace(gram, dtype=np.float64)), 0.0)
    rounding = float(np.finfo(gram.dtype).eps) / 2.0 * _largest_row_sum(gram)
    slack = rounding if gram.dtype == np.float32 else 8.0 * rounding
    least = _lanczos_least(gram) if len(gram) > _EXACT_ROWS else _least(gram, slack)
    if least < -tol * trace:
        raise ValueError(
            f"The Gram matrix of {name} is indefinite: it has an eigenvalue of about "
            f"{least:.3g}. A kernel must be positive semidefinite."
        )
    kept = gram if dtype is None else np.ascontiguousarray(gram, dtype=dtype)
    nugget = 1.1 * max(0.0, -least - slack)
    if kept.dtype == np.float32:
        nugget += float(np.finfo(np.float32).eps) / 2.0 * _largest_row_sum(kept)
    return DenseGram(kept, nugget=nugget)


def _largest_row_sum(gram: NDArray[Any]) -> float:
    """Return max_i sum_k |K_ik|, which bounds the norm of the matrix, by chunks of rows."""
    starts = range(0, len(gram), _TILE)
    sums = [np.sum(np.abs(gram[a : a + _TILE]), axis=1, dtype=np.float64) for a in starts]
    return float(max((np.max(part) for part in sums), default=0.0))


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
    """Return the smallest eigenvalue where a factorisation of K + shift I fails; else zero."""
    system = np.array(gram, dtype=np.float64)
    system.flat[:: len(system) + 1] += shift + np.finfo(float).tiny
    with one_blas_thread():
        _, info = lapack.dpotrf(system.T, lower=0, overwrite_a=1, clean=0)
        if info == 0:
            return 0.0
        return min(0.0, float(np.linalg.eigvalsh(np.asarray(gram, dtype=np.float64))[0]))


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


def as_numbers(name: str, K: Any) -> NDArray[np.floating]:
    """Return a kernel matrix as floating point numbers: float32 stays what it is."""
    if sparse.issparse(K):
        raise ValueError(f"The Gram matrix of {name} is a sparse matrix; pass K.toarray().")
    try:
        found = np.asarray(K)
        if np.iscomplexobj(found):
            raise TypeError("it is complex")
        return found if found.dtype in (np.float32, np.float64) else found.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"The Gram matrix of {name} must be numbers: {error}") from None


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
