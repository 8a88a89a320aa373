"""Kernels of nodes as operators: one interface for Gram matrices and feature blocks.

A function f of node w is given by coordinates c. For a feature block f = Phi c and |f|^2 = |c|^2.
For a Gram matrix f = K c and |f|^2 = c' K c, so that K is never factorised. The coordinates of
f = K_w u, for a dual vector u, are Phi' u for a feature block and u for a Gram matrix.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hikernel.engines.features import Blocks, rounding_margin
from hikernel.engines.protocol import FloatArray, Vertex

__all__ = [
    "WORKING_COPIES",
    "BlockKernel",
    "DenseGram",
    "GramKernel",
    "KernelOperator",
    "NodeKernel",
    "restrict_all",
]

WORKING_COPIES = 4
"""Number of n x n float64 matrices that a solve holds: the system, its factor, and work space."""

_CHUNK_NUMBERS = 2**18
"""Numbers in one chunk of rows of a Gram matrix, as float64 (2 MiB): a chunk stays in the cache
while it is converted, scaled and added."""

_COPIED_NUMBERS = 2**25
"""Numbers in the Gram matrices (256 MiB) up to which a subset of rows is copied. Gathering rows and
columns at every step takes three times as long as reading them in order."""

IndexArray = NDArray[np.intp]


class NodeKernel(ABC):
    """Kernel K of one node over n rows; f is a function of this node."""

    width: int
    """Number of coordinates."""

    @abstractmethod
    def add_to(self, out: FloatArray, scale: float) -> None:
        """Add scale * K to ``out``, shape (n, n), in place."""

    @abstractmethod
    def apply(self, vector: FloatArray) -> FloatArray:
        """Return K vector, shape (n,) or (n, k)."""

    @abstractmethod
    def coordinates(self, vector: FloatArray) -> FloatArray:
        """Return the coordinates of f = K vector, shape (width,) or (width, k)."""

    @abstractmethod
    def expand(self, coordinates: FloatArray) -> FloatArray:
        """Return the values of f on the rows, shape (n,) or (n, k), from its coordinates."""

    @abstractmethod
    def square(self, coordinates: FloatArray) -> float:
        """Return |f|^2, added over outputs, from the coordinates of f."""

    @abstractmethod
    def inner(self, left: FloatArray, right: FloatArray) -> float:
        """Return the inner product of two functions, given by their coordinates."""

    @abstractmethod
    def diagonal(self) -> FloatArray:
        """Return K_ii, shape (n,)."""

    def size_bound(self, sizes: FloatArray) -> float:
        """Return an upper bound on sum_ik |K_ik| s_i s_k for s = ``sizes`` >= 0.

        s has shape (n,), or (n, k), and then the k columns are added. The bound follows from
        |K_ik|^2 <= K_ii K_kk.
        """
        return float(np.sum((np.sqrt(np.maximum(self.diagonal(), 0.0)) @ sizes) ** 2))


class BlockKernel(NodeKernel):
    """A node with feature columns, K = Phi Phi'.

    Parameters
    ----------
    features : ndarray of shape (n, r)
        Phi.
    """

    def __init__(self, features: FloatArray) -> None:
        self._features = features
        self.width = features.shape[1]

    def add_to(self, out: FloatArray, scale: float) -> None:
        """Add scale * Phi Phi' to ``out``."""
        out += (scale * self._features) @ self._features.T

    def apply(self, vector: FloatArray) -> FloatArray:
        """Return Phi Phi' vector."""
        return np.asarray(self._features @ (self._features.T @ vector))

    def coordinates(self, vector: FloatArray) -> FloatArray:
        """Return Phi' vector."""
        return np.asarray(self._features.T @ vector)

    def expand(self, coordinates: FloatArray) -> FloatArray:
        """Return Phi c."""
        return np.asarray(self._features @ coordinates)

    def square(self, coordinates: FloatArray) -> float:
        """Return |c|^2."""
        return float(np.sum(coordinates**2))

    def inner(self, left: FloatArray, right: FloatArray) -> float:
        """Return the inner product of the coordinates."""
        return float(np.sum(left * right))

    def diagonal(self) -> FloatArray:
        """Return |Phi_i|^2 of each row, shape (n,)."""
        return np.asarray(np.sum(self._features**2, axis=1))


class GramKernel(NodeKernel):
    """A node with a Gram matrix, which subclasses provide in chunks of rows."""

    n_rows: int
    """Number of rows of the matrix; its number of columns is ``width``."""

    @abstractmethod
    def chunk(self, rows: slice) -> FloatArray:
        """Return some rows of K as float64, shape (len(rows), width)."""

    def chunks(self) -> Iterator[slice]:
        """Return an iterator of slices that cover the rows."""
        step = max(1, _CHUNK_NUMBERS // max(self.width, 1))
        return (slice(start, start + step) for start in range(0, self.n_rows, step))

    def add_to(self, out: FloatArray, scale: float) -> None:
        """Add scale * K to ``out``."""
        for rows in self.chunks():
            out[rows] += scale * self.chunk(rows)

    def apply(self, vector: FloatArray) -> FloatArray:
        """Return K vector."""
        out = np.empty((self.n_rows, *vector.shape[1:]))
        for rows in self.chunks():
            out[rows] = self.chunk(rows) @ vector
        return out

    def coordinates(self, vector: FloatArray) -> FloatArray:
        """Return the vector itself."""
        return vector

    def expand(self, coordinates: FloatArray) -> FloatArray:
        """Return K c."""
        return self.apply(coordinates)

    def square(self, coordinates: FloatArray) -> float:
        """Return c' K c, or zero if rounding makes it negative."""
        return max(0.0, self.inner(coordinates, coordinates))

    def inner(self, left: FloatArray, right: FloatArray) -> float:
        """Return left' K right."""
        return float(np.sum(left * self.apply(right)))


class DenseGram(GramKernel):
    """A Gram matrix in memory, or a selection of its rows and columns; the matrix is not copied.

    Parameters
    ----------
    matrix : ndarray of shape (N, M)
        float64 or float32; products are always computed in float64.
    rows, columns : ndarray of int, optional
        Positions of the selected rows and columns; all by default.
    nugget : float, default=0.0
        Number added to the diagonal. It makes a matrix positive semidefinite that rounding has left
        slightly indefinite: the kernel is k(x, z), plus the nugget if x and z are the same object.
        It must be zero unless rows and columns are the same.
    """

    def __init__(
        self,
        matrix: NDArray[np.floating],
        rows: IndexArray | None = None,
        columns: IndexArray | None = None,
        nugget: float = 0.0,
    ) -> None:
        self._matrix = matrix
        self._rows = rows
        self._columns = columns
        self.nugget = nugget
        self.n_rows = matrix.shape[0] if rows is None else len(rows)
        self.width = matrix.shape[1] if columns is None else len(columns)

    @property
    def nbytes(self) -> int:
        """Bytes of the whole matrix, not only of the selected part."""
        return int(self._matrix.nbytes)

    def restricted(self, rows: IndexArray, columns: IndexArray | None = None) -> DenseGram:
        """Return the part with some rows and columns; ``columns`` defaults to ``rows``.

        The nugget is dropped if ``columns`` is given.
        """
        nugget = self.nugget if columns is None else 0.0
        columns = rows if columns is None else columns
        rows = rows if self._rows is None else self._rows[rows]
        columns = columns if self._columns is None else self._columns[columns]
        return DenseGram(self._matrix, rows, columns, nugget)

    def copied(self) -> DenseGram:
        """Return the selected part as a separate float64 matrix, which is faster to read."""
        return DenseGram(self._read(slice(0, self.n_rows)), nugget=self.nugget)

    def chunk(self, rows: slice) -> FloatArray:
        """Return some rows as float64."""
        part = self._read(rows)
        if self.nugget > 0.0:
            part = part.copy()
            start = rows.indices(self.n_rows)[0]
            np.einsum("ii->i", part[:, start : start + len(part)])[...] += self.nugget
        return part

    def tile(self, rows: slice, columns: slice) -> FloatArray:
        """Return a block of the matrix as float64."""
        i = rows if self._rows is None else self._rows[rows]
        k = columns if self._columns is None else self._columns[columns]
        if isinstance(i, np.ndarray) and isinstance(k, np.ndarray):
            i = i[:, None]
        part = np.asarray(self._matrix[i, k], dtype=np.float64)
        if self.nugget > 0.0:
            left = np.arange(self.n_rows)[rows]
            right = np.arange(self.width)[columns]
            part = part + self.nugget * (left[:, None] == right)
        return part

    def diagonal(self) -> FloatArray:
        """Return the diagonal."""
        if self._rows is None or self._columns is None:
            found = np.diagonal(self._matrix)
        else:
            found = self._matrix[self._rows, self._columns]
        return np.asarray(found, dtype=np.float64) + self.nugget

    def add_to(self, out: FloatArray, scale: float) -> None:
        """Add scale * K to ``out``."""
        for rows in self.chunks():
            out[rows] += scale * self._read(rows)
        if self.nugget > 0.0:
            out.flat[:: len(out) + 1] += scale * self.nugget

    def apply(self, vector: FloatArray) -> FloatArray:
        """Return K vector, by one product if no selection and no conversion is needed."""
        if self._rows is None and self._columns is None and self._matrix.dtype == np.float64:
            out = np.asarray(self._matrix @ vector)
        else:
            out = np.empty((self.n_rows, *vector.shape[1:]))
            for rows in self.chunks():
                out[rows] = self._read(rows) @ vector
        if self.nugget > 0.0:
            out += self.nugget * vector
        return out

    def _read(self, rows: slice) -> FloatArray:
        """Return some rows as float64, without the nugget."""
        part = self._matrix[rows if self._rows is None else self._rows[rows]]
        if self._columns is not None:
            part = part[:, self._columns]
        return np.asarray(part, dtype=np.float64)


def restrict_all(grams: Mapping[Vertex, DenseGram], rows: IndexArray) -> dict[Any, DenseGram]:
    """Return the same rows and columns of several matrices, copied if they are small in total."""
    out = {node: gram.restricted(rows) for node, gram in grams.items()}
    if len(grams) * len(rows) ** 2 <= _COPIED_NUMBERS:
        return {node: gram.copied() for node, gram in out.items()}
    return out


class KernelOperator:
    """Several nodes over the same rows; their coordinates are concatenated, R in all.

    Parameters
    ----------
    kernels : sequence of NodeKernel
        Kernels of the m nodes.
    n_rows : int
        Number of rows n.
    """

    def __init__(self, kernels: Sequence[NodeKernel], n_rows: int) -> None:
        self._kernels = list(kernels)
        self.n_rows = n_rows
        self.blocks = Blocks([kernel.width for kernel in self._kernels])

    def restrict(self, index: Sequence[int] | IndexArray) -> KernelOperator:
        """Return the operator of the nodes at some positions."""
        return KernelOperator([self._kernels[i] for i in index], self.n_rows)

    def weighted_sum(self, zeta: FloatArray) -> FloatArray:
        """Return sum_w zeta_w K_w, shape (n, n)."""
        out = np.zeros((self.n_rows, self.n_rows))
        # Skip kernels whose weight is below rounding relative to the largest weight.
        least = 1e-18 * float(np.max(zeta))
        for kernel, scale in zip(self._kernels, zeta, strict=True):
            if scale > least:
                kernel.add_to(out, float(scale))
        return out

    def apply(self, vector: FloatArray) -> FloatArray:
        """Return K_w vector for every node, shape (n, m), for a vector of shape (n,)."""
        return np.column_stack([kernel.apply(vector) for kernel in self._kernels])

    def coordinates(self, vector: FloatArray) -> FloatArray:
        """Return the coordinates of K_w vector for every node, shape (R,) or (R, k)."""
        return np.concatenate([kernel.coordinates(vector) for kernel in self._kernels])

    def expand(self, coordinates: FloatArray) -> FloatArray:
        """Return the sum of the nodes' functions on the rows, shape (n,) or (n, k)."""
        parts = zip(self._kernels, self.blocks.split(coordinates), strict=True)
        return np.asarray(sum(kernel.expand(part) for kernel, part in parts))

    def squares(self, coordinates: FloatArray) -> FloatArray:
        """Return the squared norm of each node's function, shape (m,)."""
        parts = zip(self._kernels, self.blocks.split(coordinates), strict=True)
        return np.array([kernel.square(part) for kernel, part in parts])

    def inner(self, left: FloatArray, right: FloatArray) -> float:
        """Return the inner product of two sets of coordinates, added over the nodes."""
        parts = zip(self._kernels, self.blocks.split(left), self.blocks.split(right), strict=True)
        return sum(kernel.inner(a, b) for kernel, a, b in parts)

    def score_squares(self, vector: FloatArray, *, rounded_up: bool = False) -> FloatArray:
        """Return u' K_w u for every node, shape (m,); u has shape (n,) or (n, k).

        It is added over outputs. With ``rounded_up`` no entry is below its exact value.
        """
        out = np.array([kernel.square(kernel.coordinates(vector)) for kernel in self._kernels])
        if not rounded_up:
            return out
        # The factor 2 is for two nested sums over the rows.
        margin = 2.0 * rounding_margin(self.n_rows)
        bounds = np.array([kernel.size_bound(np.abs(vector)) for kernel in self._kernels])
        return np.asarray(out + margin * bounds)

    def sees(self, vector: FloatArray) -> NDArray[np.bool_]:
        """Return for every node whether u' K_w u, u of shape (n,), is more than rounding error."""
        margin = rounding_margin(self.n_rows)
        bounds = np.array([kernel.size_bound(np.abs(vector)) for kernel in self._kernels])
        return np.asarray(self.score_squares(vector) > margin * bounds)

    def mean_diagonal(self, omega: FloatArray) -> float:
        """Return sum_i omega_i K_ii, added over the nodes."""
        return float(sum(omega @ kernel.diagonal() for kernel in self._kernels))
