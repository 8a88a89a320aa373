"""The torch engine: levels are stored on a device, and all work on the rows is done there.

Numbers are float64 throughout, so that every bound has the margin that the NumPy engine adds: it
holds for a sum in any order, and so for the order of a device. What goes to and fro is small: a
vector over the rows on the way there, and numbers of nodes on the way back.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from hikernel.engines.extensions import mark_present, sums_of_squares
from hikernel.engines.features import (
    Blocks,
    NodeFeatures,
    WeightedRows,
    by_output,
    cut_blocks,
    level_spans,
    normalised,
    rounding_margin,
)
from hikernel.engines.machine import require_memory
from hikernel.engines.numpy_engine import NumpyEngine
from hikernel.engines.protocol import FloatArray, Node
from hikernel.engines.torch_bumps import bump_scores
from hikernel.engines.torch_device import TorchDevice, on_device
from hikernel.engines.torch_features import DeviceFeatures, to_device, to_host
from hikernel.engines.torch_limited_tails import DeviceLimitedTailSummer
from hikernel.engines.torch_tails import DeviceTailSummer

__all__ = ["TorchEngine"]

Tensor = Any

_REMEDY = "Use fewer rows, a lower degree or a basis with fewer columns per level."

_BLOCK_COLUMNS = 2**11
"""Columns of prefixes that are scored together."""


class TorchEngine(NumpyEngine):
    """Engine that keeps its rows on a device of torch; it counts nodes as the NumPy engine does.

    Parameters
    ----------
    widths, levels, row_weights, constant_levels
        As for :class:`~hikernel.engines.numpy_engine.NumpyEngine`. One variable at a time is moved
        to the device.
    device : TorchDevice
        Where the rows are kept.
    """

    def __init__(
        self,
        widths: Sequence[tuple[int, ...]],
        levels: Iterable[Sequence[FloatArray]],
        row_weights: FloatArray,
        constant_levels: Sequence[bool],
        device: TorchDevice,
    ) -> None:
        n_rows = len(row_weights)
        WeightedRows.__init__(self, row_weights)
        self.device = device
        self._widths = [tuple(w) for w in widths]
        self._spans, n_columns = level_spans(self._widths, constant_levels)
        device.require_memory(
            n_rows * (n_columns + 1),
            f"Storing {n_columns} one-variable features for {n_rows} rows",
            _REMEDY,
        )
        with device.working():
            table = torch.empty((n_columns + 1, n_rows), dtype=torch.float64, device=device.name)
            table[-1] = 1.0
            for m, variable_levels in enumerate(levels):
                for j, block in enumerate(variable_levels):
                    if (m, j) in self._spans:
                        table[self._spans[m, j]] = to_device(block.T, device)
        self._set_table(table)

    def _set_table(self, table: Tensor) -> None:
        # The layout answers what a node is made of; it is given no rows.
        self._features = NodeFeatures(np.empty((0, len(table) - 1)), self._spans, self._widths)
        self._device_features = DeviceFeatures(table, self._spans, self._features, self.device)

    @on_device
    def subset(self, rows: NDArray[np.intp]) -> TorchEngine:
        """Return an engine over some of the rows, on the same device; their features are copied."""
        table = self._device_features.table
        self.device.require_memory(
            len(rows) * len(table), f"A copy of the features of {len(rows)} rows", _REMEDY
        )
        out: TorchEngine = object.__new__(type(self))
        out._weights = normalised(self._weights[rows])
        out.device = self.device
        out._widths, out._spans = self._widths, self._spans
        out._set_table(table.index_select(1, to_device(rows, self.device)))
        return out

    @on_device
    def features(self, nodes: Sequence[Node]) -> FloatArray:
        """Return the (n, R) features of the nodes, in the memory of the host."""
        total = sum(self.width(node) for node in nodes)
        require_memory(
            3 * self.n_rows * total,  # as they are, centred, and scaled by zeta
            f"The features of {len(nodes)} terms for {self.n_rows} rows",
            "Lower max_kernels, or use a basis with fewer columns per level.",
        )
        out = np.empty((self.n_rows, total), order="F")
        index = self._device_features.index(nodes)
        for rows in self._device_features.chunks(total):
            out[rows] = to_host(self._device_features.values(index, rows)).T
        return out

    @on_device
    def gram(
        self,
        left: Sequence[Node],
        right: Sequence[Node],
        left_means: FloatArray,
        right_means: FloatArray,
        weights: FloatArray | None = None,
    ) -> FloatArray:
        """Return the centred cross moments of two lists of nodes."""
        features = self._device_features
        roots = self._sent(np.sqrt(self._weights if weights is None else weights))
        same = list(left) == list(right) and np.array_equal(left_means, right_means)
        sides = [(features.index(left), self._sent(left_means)[:, None])]
        if not same:
            sides.append((features.index(right), self._sent(right_means)[:, None]))
        total = roots.new_zeros((len(left_means), len(right_means)))
        for rows in features.chunks(len(left_means) + len(right_means)):
            parts = [
                features.values(index, rows).sub_(means).mul_(roots[rows]) for index, means in sides
            ]
            total.addmm_(parts[0], parts[-1].T)
        return to_host(total)

    @on_device
    def gram_diagonal(
        self, nodes: Sequence[Node], means: FloatArray, weights: FloatArray | None = None
    ) -> FloatArray:
        """Return the weighted variances of the columns."""
        features = self._device_features
        sent = self._sent(self._weights if weights is None else weights)
        index, centres = features.index(nodes), self._sent(means)[:, None]
        total = sent.new_zeros(len(means))
        for rows in features.chunks(len(means)):
            total += features.values(index, rows).sub_(centres).square_() @ sent[rows]
        return to_host(total)

    @on_device
    def correlate(
        self, nodes: Sequence[Node], vector: FloatArray, *, absolute: bool = False
    ) -> FloatArray:
        """Return Phi' vector, or |Phi|' |vector| if ``absolute``; shape (R,) or (R, k)."""
        index = self._device_features.index(nodes)
        vectors = self._sent(by_output(vector))
        found = to_host(self._device_features.correlate(index, vectors, absolute=absolute))
        return found.reshape(len(found), *vector.shape[1:])

    @on_device
    def variances(self, nodes: Sequence[Node], blocks: Sequence[FloatArray]) -> FloatArray:
        """Return the variance of <block_w, Phi_w(x)> over the rows for each node w.

        Nodes with equally many columns are computed together.
        """
        out = np.empty(len(nodes))
        features, weights = self._device_features, self._sent(self._weights)
        for width, members in _by_width([len(block) for block in blocks]):
            index = features.index([nodes[i] for i in members])
            index = index.view(len(members), width, -1).transpose(0, 1).contiguous()
            # Of every feature of a node, and every output: shape (width, outputs, members).
            coefs = self._sent(np.array([by_output(blocks[i]) for i in members])).permute(1, 2, 0)
            chunks = list(features.chunks((2 * coefs.shape[1] + 1) * len(members)))
            means = sum(features.sums(index, coefs, rows) @ weights[rows] for rows in chunks)
            squares = weights.new_zeros(len(members))
            for rows in chunks:
                centred = features.sums(index, coefs, rows).sub_(means[:, :, None])
                squares += (centred.square_() @ weights[rows]).sum(0)
            out[members] = to_host(squares)
        return out

    @on_device
    def extension_squares(
        self, prefixes: Sequence[Node], vector: FloatArray, *, rounded_up: bool = False
    ) -> FloatArray:
        """Return the squared scores of all one-variable extensions of the prefixes.

        The product and its margin are those of the NumPy engine.
        """
        pairs = self.level_pairs
        if self._features.everywhere:
            return self._scores_with_bumps(prefixes, vector, rounded_up)
        features = self._device_features
        columns = features.table[:-1]
        maxima = torch.maximum(columns.amax(1), -columns.amin(1)) if rounded_up else None
        out = np.zeros((len(prefixes), len(pairs)))
        vectors = self._sent(by_output(vector))
        block = max(1, min(_BLOCK_COLUMNS, features.step // 2**8))
        widths = [self.width(prefix) for prefix in prefixes]
        single = self._features.single_columns
        # The device is waited for only once for as many scores as it has room for.
        for part in cut_blocks(widths, max(block, features.step // (8 * len(columns)))):
            squares, start = [], 0
            index = features.index(prefixes[part])
            for where in cut_blocks(widths[part], block):
                n_columns = sum(widths[part][where])
                some = index[start : start + n_columns]
                squares.append(self._squared_scores(some, columns, vectors, maxima))
                start += n_columns
            found = to_host(torch.cat(squares))
            out[part] = sums_of_squares(found, self.level_starts, widths[part], single)
        mark_present(out, prefixes, pairs)
        return out

    def _squared_scores(
        self, index: Tensor, columns: Tensor, vectors: Tensor, maxima: Tensor | None
    ) -> Tensor:
        """Return the squared scores of products of some features and all columns, on the device."""
        features = self._device_features
        products = vectors.new_zeros((vectors.shape[1], len(index), len(columns)))
        for rows in features.chunks(len(index) + len(columns)):
            values = features.values(index, rows)
            for target, output in zip(products, vectors.T, strict=True):
                target.addmm_(values, (columns[:, rows] * output[rows]).T)
        if maxima is not None:
            sizes = features.correlate(index, vectors, absolute=True)
            margins = rounding_margin(self.n_rows) * sizes.T[:, :, None] * maxima
            products = products.abs_().add_(margins)
        return products.square_().sum(0)

    def _scores_with_bumps(
        self, prefixes: Sequence[Node], vector: FloatArray, rounded_up: bool
    ) -> FloatArray:
        """Return the squared scores of extensions if some level 0 is not constant."""
        if any(self._widths[m][0] > 1 for m in self._features.everywhere):
            return self._explicit_extensions(prefixes, vector, rounded_up)
        pairs, margin = self.level_pairs, rounding_margin(self.n_rows)
        out = np.empty((len(prefixes), len(pairs)))
        blocks = Blocks([self._widths[m][j] for m, j in pairs])
        vectors = self._sent(by_output(vector))
        for target, prefix in zip(out, prefixes, strict=True):
            scores, sizes = bump_scores(
                self._device_features, self._features, prefix, pairs, vectors, rounded_up
            )
            bounds = (scores.abs() + margin * sizes).square_().sum(0)
            target[...] = blocks.sum(to_host(bounds))
        mark_present(out, prefixes, pairs)
        return out

    @on_device
    def level_squares(self, vector: FloatArray) -> FloatArray:
        """Return sum_i vector_i^2 |Phi_v(x_i)|^2 for every one-variable level v."""
        pairs = self.level_pairs
        if self._features.everywhere:
            return np.full(len(pairs), np.inf)
        columns, weights = self._device_features.table[:-1], self._sent(vector).square_()
        squares = weights.new_zeros(len(columns))
        for rows in self._device_features.chunks(len(columns)):
            squares += columns[:, rows].square() @ weights[rows]
        starts = np.array([self._spans[pair].start for pair in pairs], dtype=np.intp)
        found = to_host(squares)
        return np.add.reduceat(found, starts) if pairs else found

    @on_device
    def apply(self, nodes: Sequence[Node], coef: FloatArray) -> FloatArray:
        """Return Phi coef, shape (n,) or (n, k)."""
        features, coefs = self._device_features, self._sent(by_output(coef))
        index = features.index(nodes)
        out = coefs.new_zeros((coefs.shape[1], self.n_rows))
        for rows in features.chunks(len(index)):
            out[:, rows] = coefs.T @ features.values(index, rows)
        return np.ascontiguousarray(to_host(out).T).reshape(self.n_rows, *coef.shape[1:])

    tail_sums = on_device(NumpyEngine.tail_sums)
    tail_draws = on_device(NumpyEngine.tail_draws)
    tail_diagonal = on_device(NumpyEngine.tail_diagonal)
    log_kernels = on_device(NumpyEngine.log_kernels)

    def _row_squares(self, variable: int, level: int) -> FloatArray | float:
        """Return |phi_ml(x_i)|^2, shape (n,), or one for a constant level."""
        if (variable, level) not in self._spans:
            return 1.0
        columns = self._device_features.table[self._spans[variable, level]]
        return to_host(columns.square().sum(0))

    def _summer(
        self, scales: Sequence[FloatArray], max_order: int | None
    ) -> DeviceTailSummer | DeviceLimitedTailSummer:
        table = self._device_features.table
        variables = [
            [
                table[self._spans[m, j]] if (m, j) in self._spans else None
                for j in range(len(self._widths[m]))
            ]
            for m in range(len(self._widths))
        ]
        if max_order is None or max_order >= len(variables):
            return DeviceTailSummer(variables, scales, self.device)
        return DeviceLimitedTailSummer(variables, scales, max_order, self.device)

    def _sent(self, array: FloatArray) -> Tensor:
        """Return numbers on the device, as float64 and never in the memory of the caller."""
        return to_device(np.array(array, dtype=np.float64), self.device)


def _by_width(widths: Sequence[int]) -> list[tuple[int, list[int]]]:
    """Return every width, with the positions that have it.

    >>> _by_width([1, 3, 1])
    [(1, [0, 2]), (3, [1])]
    """
    found: dict[int, list[int]] = {}
    for i, width in enumerate(widths):
        found.setdefault(width, []).append(i)
    return sorted(found.items())
