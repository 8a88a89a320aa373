"""Features of nodes on a device: products of stored columns, gathered for many nodes at once.

Every feature of a node is a product of one stored column of each of its levels. A list of nodes is
therefore a table of integers, one row per feature with the positions of its factors, and a few
large operations make the features of all nodes, whatever the widths of their levels.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from hikernel.engines.features import NodeFeatures
from hikernel.engines.protocol import FloatArray, Node
from hikernel.engines.torch_device import TorchDevice
from hikernel.engines.torch_kernels import triton_kernels

__all__ = ["DeviceFeatures", "gathered", "padded_index", "to_device", "to_host"]

Tensor = Any
"""A tensor of torch: mypy does not read torch, whose types change from release to release."""

IndexArray = NDArray[np.intp]

_MOST_ROWS = 2**24
"""Largest number of rows in a chunk: a grid of programs on a GPU has an end."""


def to_device(array: NDArray[Any], device: TorchDevice) -> Tensor:
    """Return an array as a tensor on a device; on the CPU it may share the memory."""
    array = np.ascontiguousarray(array)
    # torch warns of arrays that must not be written to, which it cannot express.
    return torch.from_numpy(array if array.flags.writeable else array.copy()).to(device.name)


def to_host(tensor: Tensor) -> FloatArray:
    """Return a tensor as an array; this waits for the device."""
    return np.asarray(tensor.cpu().numpy())


def padded_index(positions: Sequence[int], lengths: Sequence[int], padding: int) -> IndexArray:
    """Return lists of positions, given one after the other, as rows filled up with ``padding``.

    >>> padded_index([3, 1, 2], [1, 0, 2], 9)
    array([[3, 9],
           [9, 9],
           [1, 2]])
    """
    ends = np.array(lengths, dtype=np.intp)
    out = np.full((len(ends), max(1, int(np.max(ends, initial=0)))), padding, dtype=np.intp)
    out[np.arange(out.shape[1]) < ends[:, None]] = positions
    return out


def gathered(table: Tensor, index: Tensor, base: Tensor | None = None) -> Tensor:
    """Return base_p prod_k table[index[r, k], p], shape (R, P).

    Parameters
    ----------
    table : tensor of shape (T, P)
        The factors.
    index : tensor of int64 of shape (R, K)
        Rows of the table, at least one.
    base : tensor of shape (P,), optional
        One factor more for all of them.
    """
    kernels = triton_kernels(table)
    if kernels is not None:
        return kernels.gathered_products(table, index, base)
    out = table.index_select(0, index[:, 0])
    for k in range(1, index.shape[1]):
        out *= table.index_select(0, index[:, k])
    if base is not None:
        out *= base
    return out


class DeviceFeatures:
    """The stored columns on a device, and the features of nodes made from them.

    Parameters
    ----------
    table : tensor of shape (C + 1, n)
        All stored one-variable features, a row each, and a last row of ones.
    spans : mapping of (variable, level) to slice
        The rows of the table that hold each level.
    layout : NodeFeatures
        Says which levels a node is made of.
    device : TorchDevice
        Where the table is.

    Attributes
    ----------
    step : int
        Numbers that one step of the work may take, by the memory that was free at the beginning.
    """

    def __init__(
        self,
        table: Tensor,
        spans: Mapping[tuple[int, int], slice],
        layout: NodeFeatures,
        device: TorchDevice,
    ) -> None:
        self.table = table
        self.device = device
        self.spans = spans
        self._layout = layout
        self._ones = len(table) - 1
        # Asking a driver for its free memory takes longer than many a step.
        self.step = device.step_numbers()

    @property
    def n_rows(self) -> int:
        """Number of rows n of the data."""
        return int(self.table.shape[1])

    def index(self, nodes: Sequence[Node]) -> Tensor:
        """Return the factors of all features of some nodes, shape (R, K), on the device."""
        factors = [self._layout.factors(node) for node in nodes]
        if self._layout.single_columns:
            starts = [self.spans[pair].start for pairs in factors for pair in pairs]
            host = padded_index(starts, [len(pairs) for pairs in factors], self._ones)
        else:
            most = max(1, max(map(len, factors), default=0))
            parts = [self._of_node(pairs, most) for pairs in factors]
            host = np.concatenate([np.empty((0, most), dtype=np.intp), *parts])
        return to_device(host, self.device)

    def own_index(self, node: Node) -> Tensor:
        """Return the factors of a node's own levels, without level 0 of absent variables."""
        return to_device(self._of_node(node, max(1, len(node))), self.device)

    def _of_node(self, pairs: Sequence[tuple[int, int]], most: int) -> IndexArray:
        """Return the factors of the features of one node; those of the last level vary fastest."""
        ranges = [np.arange(self.spans[pair].start, self.spans[pair].stop) for pair in pairs]
        ranges += [np.array([self._ones])] * (most - len(pairs))
        return np.stack(np.meshgrid(*ranges, indexing="ij"), axis=-1).reshape(-1, most)

    def values(self, index: Tensor, rows: slice) -> Tensor:
        """Return features on some rows of the data, shape (R, number of rows)."""
        return gathered(self.table[:, rows], index)

    def chunks(self, n_features: int) -> Iterator[slice]:
        """Yield slices of rows such that the work with so many features fits into a step."""
        # The features, the factors that are gathered for them, and what is made of both.
        step = max(1, min(_MOST_ROWS, self.step // (4 * max(1, n_features))))
        for start in range(0, self.n_rows, step):
            yield slice(start, min(start + step, self.n_rows))

    def correlate(self, index: Tensor, vectors: Tensor, *, absolute: bool = False) -> Tensor:
        """Return Phi' V, or |Phi|' |V|, shape (R, k), for V of shape (n, k)."""
        if absolute:
            vectors = vectors.abs()
        out = vectors.new_zeros((len(index), vectors.shape[1]))
        most = max(1, self.step // 64)
        for start in range(0, len(index), most):
            some = index[start : start + most]
            for rows in self.chunks(len(some)):
                values = self.values(some, rows)
                out[start : start + most] += (values.abs_() if absolute else values) @ vectors[rows]
        return out

    def sums(self, index: Tensor, coefs: Tensor, rows: slice) -> Tensor:
        """Return sum_j coef_vjo phi_vj(x_i) on some rows for nodes v, shape (k, nodes, rows).

        ``index``, shape (r, nodes, K), has the factors of the r features of every node, and
        ``coefs``, shape (r, k, nodes), their coefficients.
        """
        out = coefs.new_zeros((*coefs.shape[1:], rows.stop - rows.start))
        for features, coef in zip(index, coefs, strict=True):
            out += coef[:, :, None] * self.values(features, rows)
        return out
