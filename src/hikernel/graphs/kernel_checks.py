"""Checks of Gram matrices and feature blocks, with errors that name the node."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import eigh_tridiagonal, lapack

from hikernel.engines.machine import available_bytes, one_blas_thread, require_memory
from hikernel.engines.node_kernels import DenseGram
from hikernel.engines.protocol import FloatArray, Vertex

__all__ = ["MemoryPlan", "as_kernels", "as_numbers", "check_block", "kernel_dtype"]

_EXACT_ROWS = 1500
"""Largest number of rows for which positive semidefiniteness is checked by a factorisation."""
_LANCZOS_STEPS = 30
_TILE = 256
"""Rows (and columns) of a Gram matrix that are processed at a time."""
_LARGEST = 1e150
"""Of entries of a Gram matrix, so that their squares are numbers."""


@dataclass(frozen=True)
class MemoryPlan:
    """Memory that a computation will need, estimated before it is allocated.

    Attributes
    ----------
    kept : int
        Bytes that stay in use, including those of the user's own matrices.
    working : int
        Additional bytes during the computation.
    to_take : int
        Bytes of the two that are not allocated yet.
    """

    kept: int
    working: int
    to_take: int

    def __str__(self) -> str:
        available = available_bytes()
        free = "" if available is None else f"; {available / 2**30:.2f} GiB are available"
        return (
            f"{self.kept / 2**30:.2f} GiB of matrices and {self.working / 2**30:.2f} GiB to work "
            f"with, of which {self.to_take / 2**30:.2f} GiB are still to be taken{free}"
        )


def as_kernels(
    given: Mapping[Vertex, Any],
    n: int | None,
    dtype: str | None,
    *,
    name: Callable[..., str] = repr,
) -> dict[Vertex, DenseGram]:
    """Check that Gram matrices are kernels, and return them in the type in which they are kept.

    Parameters
    ----------
    given : mapping of node to array of shape (n, n)
        The matrices.
    n : int, optional
        Their number of rows; that of the first matrix by default.
    dtype : {None, "float32", "float64"}
        The type in which they are kept; None for the type they have.
    name : callable
        Returns the name of a node, for error messages.
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
    """Return the type in which matrices are kept; None for the type they have."""
    if dtype not in (None, "float32", "float64"):
        raise ValueError(f'dtype must be None, "float32" or "float64", got {dtype!r}.')
    return None if dtype is None else np.dtype(dtype)


def _as_kernel(name: str, gram: NDArray[Any], dtype: np.dtype[Any] | None) -> DenseGram:
    """Return the matrix with a nugget; raise unless it is finite, symmetric and semidefinite.

    Negative eigenvalues of magnitude up to 1e-8 of the trace (1e-5 if the matrix is given in
    float32) are taken for rounding errors. So is asymmetry up to the same fraction of the largest
    entry. A nugget tau makes up for the effect of rounding on the smallest eigenvalue, so that a
    certificate is about a kernel, K + tau I. tau is the sum of two parts:

    - 1.1 times the magnitude by which a negative eigenvalue exceeds the rounding error of K;
    - if the matrix is given or kept in float32, a bound on the norm of the rounding to float32,
      from the largest row sum of |K|. Rounding to float64 is below the margins of the certificate.

    Up to 1,500 rows a Cholesky factorisation is tried (n^3 / 3 operations), and the smallest
    eigenvalue is computed only if it fails. Above, the smallest eigenvalue is estimated by Lanczos
    steps, n^2 operations each, which find only eigenvalues that are clearly negative.
    """
    size = max(float(np.max(gram, initial=0.0)), -float(np.min(gram, initial=0.0)))
    if not np.isfinite(size):
        raise ValueError(f"The Gram matrix of {name} has entries that are not finite.")
    if size > _LARGEST:
        raise ValueError(
            f"The Gram matrix of {name} has entries of {size:.3g}, whose squares overflow; divide "
            "it by a constant."
        )
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
    if np.float32 in (gram.dtype, kept.dtype):
        nugget += float(np.finfo(np.float32).eps) / 2.0 * _largest_row_sum(kept)
    return DenseGram(kept, nugget=nugget)


def _largest_row_sum(gram: NDArray[Any]) -> float:
    """Return max_i sum_k |K_ik|, a bound on the norm of K, computed in chunks of rows."""
    starts = range(0, len(gram), _TILE)
    sums = [np.sum(np.abs(gram[a : a + _TILE]), axis=1, dtype=np.float64) for a in starts]
    return float(max((np.max(part) for part in sums), default=0.0))


def _largest_skew(gram: NDArray[Any]) -> tuple[float, int, int]:
    """Return the largest |K_ik - K_ki| with i and k, computed in tiles that fit in the cache."""
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
    """Return the smallest eigenvalue of K if the factorisation of K + shift I fails, else zero."""
    system = np.array(gram, dtype=np.float64)
    system.flat[:: len(system) + 1] += shift + np.finfo(float).tiny
    with one_blas_thread():
        _, info = lapack.dpotrf(system.T, lower=0, overwrite_a=1, clean=0)
        if info == 0:
            return 0.0
        return min(0.0, float(np.linalg.eigvalsh(np.asarray(gram, dtype=np.float64))[0]))


def _lanczos_least(gram: NDArray[Any]) -> float:
    """Return the smallest Ritz value of a few Lanczos steps, at least the smallest eigenvalue.

    It is the Rayleigh quotient of the Ritz vector in float64, so rounding cannot make it too small.
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
        # Orthogonalise twice against all earlier directions: rounding would bring them back.
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
    """Return a kernel matrix as float64, or as float32 if it is given in float32."""
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
    if found.size and max(np.max(found), -np.min(found)) > np.sqrt(_LARGEST):
        raise ValueError(
            f"The features of {node!r} have entries above {np.sqrt(_LARGEST):g}, whose fourth "
            "powers overflow; divide them by a constant."
        )
    return found
