"""Descendant sums U(t) on a device, in the tiles of ``tails`` but with other products.

With W = alpha_i alpha_k prod_m S_{m,0} and ratio_{m,j} = S_{m,j} / S_{m,0}, a node t = left + right
is one entry of

    (W * prod_{left} ratio) @ (prod_{right} ratio)'.

``tails`` takes one factor to the right. Here it may be more: of all sets of five variables, three
to the left and two to the right need a few thousand rows to be made, where four and one need tens
of thousands. Lefts are ordered by their last variable, and a block of them is multiplied only with
the rights that come after it.

Nothing waits for the device between tiles, so no tile can be looked at and computed again. In place
of that, every S_{m,0} has a delta_m added, so small that it changes a number only where S_{m,0}
vanishes. It is a change of the kernel by at most delta_m, and what it can change in U(t) is in the
margin: |S_{m,0}(x_i, x_k)| is at most the product of the roots of max(S_{m,0}(x_i, x_i), 10^17
delta_m) at i and at k, so each of the p factors changes a term by at most 10^-17 of its bound.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from hikernel.engines.features import by_output
from hikernel.engines.machine import check_time
from hikernel.engines.protocol import FloatArray, Node
from hikernel.engines.tails import TailSummer
from hikernel.engines.torch_device import TorchDevice
from hikernel.engines.torch_features import to_device, to_host
from hikernel.engines.torch_kernels import triton_kernels
from hikernel.engines.torch_split import PlacedPlan, SplitPlan
from hikernel.engines.torch_stacks import (
    FactorStack,
    device_factor,
    drawn_signs,
    square_side,
)

__all__ = ["DeviceTailSummer", "draw_steps", "tiles_of", "weighted_pairs"]

Tensor = Any
Tile = tuple[slice, slice]
TileRatios = Callable[[Tile, Tensor], tuple[Tensor, Tensor]]
"""From a tile and alpha_i alpha_k of its pairs to the base and the ratios."""

_SEEN = 1e17
"""Where S_{m,0} is less than this times delta_m, its bound in the margin is that."""


class DeviceTailSummer(TailSummer):
    """Sums over all descendants, for one set of rows on a device and one set of scales.

    Parameters
    ----------
    variables : sequence of sequence of (tensor of shape (r, n) or None)
        Level features of each variable; None means that the level is identically one.
    scales : sequence of ndarray with q_m + 1 columns
        As for :class:`~hikernel.engines.tails.TailSummer`.
    device : TorchDevice
        Where the features are.
    """

    def __init__(
        self,
        variables: Sequence[Sequence[Tensor | None]],
        scales: Sequence[FloatArray],
        device: TorchDevice,
    ) -> None:
        super().__init__(variables, scales)
        self._device = device

    def sums(self, nodes: Sequence[Node], dual_coef: FloatArray) -> FloatArray:
        """Return U(t), rounded up, for each node, shape (len(nodes),); infinity on overflow."""
        if not nodes or not self._varying:
            return super().sums(nodes, dual_coef)
        plan = SplitPlan.of(nodes, self._varying)
        alpha = by_output(dual_coef)
        n, numbers = len(alpha), self._device.step_numbers()
        side = square_side(n, numbers, plan.per_entry(numbers))
        stack = self._stack(plan, n, -(-n // side) * side)
        diagonal = stack.diagonal()
        deltas = plan.deltas(diagonal)
        placed = plan.on(self._device, stack.place)
        outputs = to_device(alpha.T, self._device)
        kernels = triton_kernels(outputs)
        if kernels is not None and not any(nodes):
            total, additions = kernels.pair_product_sum(*self._of_root(outputs))
        else:
            length = plan.part_length(side * side, numbers)
            ratios = self._tile_ratios(kernels, plan, stack, placed, deltas, outputs)
            total, additions = _by_tiles(placed, ratios, outputs, side, length)
        # A product of sums of at most ``widest`` numbers each, delta_m and a quotient or two per
        # factor, and a sum over outputs; then the additions of the terms.
        one_term = len(plan.pairs) * (stack.widest + 6) + len(outputs) - 1
        gamma = np.finfo(float).eps * (additions + one_term)
        diagonal[: plan.n_zero] = torch.maximum(diagonal[: plan.n_zero], _SEEN * deltas[:, None])
        norms = to_device(np.hypot.reduce(np.abs(alpha), axis=1), self._device)
        step = max(256, numbers // plan.per_entry(numbers))
        size = _over_rows(placed, diagonal.sqrt_(), None, norms, step)
        found = to_host(torch.stack([total.expand_as(size), size]))
        with np.errstate(over="ignore", invalid="ignore"):
            bounds = self._constant * (np.maximum(found[0], 0.0) + gamma * found[1] ** 2)
        bounds[~np.isfinite(bounds)] = np.inf
        return np.asarray(bounds)

    def _of_root(self, outputs: Tensor) -> tuple[list[Tensor], list[float]]:
        """Return F_f' and c_f with alpha_i alpha_k prod_m S_{m,0} = prod_f (c_f + F_f F_f')."""
        parts = [self._with_constant((m, 0), outputs) for m in self._varying]
        return [outputs, *(factor for factor, _ in parts)], [0.0, *(c for _, c in parts)]

    def _with_constant(self, pair: tuple[int, int], like: Tensor) -> tuple[Tensor, float]:
        """Return F' and c with S_{m,j} = c + F F', where c is the part of a constant level 0."""
        m, j = pair
        levels, scales = self._variables[m], self._scales[m][j]
        start = 0 if levels[0] is not None else 1
        factor = device_factor(levels[start:], scales[start:], torch.ones_like(like[:1]))
        return factor, float(scales[0]) if start else 0.0

    def _tile_ratios(
        self,
        kernels: Any,
        plan: SplitPlan,
        stack: FactorStack,
        placed: PlacedPlan,
        deltas: Tensor,
        outputs: Tensor,
    ) -> TileRatios:
        """Return what makes the base and the ratios of a tile, from its weights."""
        if kernels is None:
            return lambda tile, weight: placed.ratios(stack.pairs(*tile, spare=1), deltas, weight)
        parts = [self._with_constant(pair, outputs) for pair in plan.pairs]
        ratios: TileRatios = kernels.PairRatios(
            parts, plan.zero_of, plan.n_zero, stack.place, deltas, stack.n_padded
        )
        return ratios

    def draws(
        self, nodes: Sequence[Node], dual_coef: FloatArray, n_draws: int, seed: int
    ) -> FloatArray:
        """Return independent y_t with E y_t^2 = U(t), shape (n_draws, len(nodes))."""
        if not self._varying:
            return super().draws(nodes, dual_coef, n_draws, seed)
        plan = SplitPlan.of(nodes, self._varying)
        alpha = by_output(dual_coef)
        n, numbers = len(alpha), self._device.step_numbers()
        stack = self._stack(plan, n, n)
        deltas = plan.deltas(stack.diagonal()).sqrt()
        placed = plan.on(self._device, stack.place)
        step, together = draw_steps(n, numbers // plan.per_entry(numbers), n_draws)
        outputs = to_device(alpha.T, self._device)
        out = []
        for first in range(0, n_draws, together):
            check_time()
            numbered = range(first, min(first + together, n_draws))
            signs, weights = drawn_signs(stack.widths, outputs, numbered, seed, self._device)
            total = weights.new_zeros((len(numbered), len(nodes)))
            for start in range(0, n, step):
                rows = slice(start, min(start + step, n))
                entries = stack.products(signs, rows).view(len(stack), -1)
                weight = weights[:, rows].reshape(-1)
                ratios = placed.ratios(entries, deltas, weight)
                total += placed.sums(*ratios, rows.stop - rows.start)
            out.append(to_host(total))
        return np.asarray(np.sqrt(self._constant) * np.concatenate(out))

    def diagonal(self, nodes: Sequence[Node], dual_coef: FloatArray) -> FloatArray:
        """Return sum_i |alpha_i|^2 prod_m S_{m,t_m}(x_i, x_i), shape (len(nodes),)."""
        if not self._varying:
            return super().diagonal(nodes, dual_coef)
        plan = SplitPlan.of(nodes, self._varying)
        n = len(dual_coef)
        stack = self._stack(plan, n, n)
        entries = stack.diagonal()
        squares = to_device(np.sum(by_output(dual_coef) ** 2, axis=1), self._device)
        placed = plan.on(self._device, stack.place)
        numbers = self._device.step_numbers()
        step = max(256, numbers // plan.per_entry(numbers))
        found = _over_rows(placed, entries, plan.deltas(entries), squares, step)
        return np.asarray(self._constant * to_host(found))

    def _stack(self, plan: SplitPlan, n_rows: int, n_padded: int) -> FactorStack:
        """Return the factors of the S_{m,j} that a plan needs, those of S_{m,0} first."""
        ones = torch.ones((1, n_rows), dtype=torch.float64, device=self._device.name)
        widths = [
            sum(
                1 if block is None else len(block)
                for block, scale in zip(self._variables[m], self._scales[m][j], strict=True)
                if scale > 0.0
            )
            for m, j in plan.pairs
        ]
        self._device.require_memory(
            2 * n_padded * sum(widths),
            f"The factors of {len(widths)} kernels for {n_rows} rows",
            'Use certify="none" or fewer rows.',
        )
        factors = [
            device_factor(self._variables[m], self._scales[m][j], ones) for m, j in plan.pairs
        ]
        return FactorStack(factors, plan.n_zero, n_padded)


def tiles_of(n_padded: int, side: int) -> list[Tile]:
    """Return the tiles that cover the pairs i <= k; all have the same shape."""
    cuts = [slice(start, start + side) for start in range(0, n_padded, side)]
    return [(rows, columns) for k, columns in enumerate(cuts) for rows in cuts[: k + 1]]


def weighted_pairs(outputs: Tensor, tile: Tile) -> Tensor:
    """Return alpha_i alpha_k of a tile, shape (pairs,), from outputs of shape (k, n).

    They are doubled off the diagonal, because the tile also represents its mirror image.
    """
    rows, columns = tile
    weight = outputs[:, rows].T @ outputs[:, columns]
    return (weight if rows.start == columns.start else weight.mul_(2.0)).view(-1)


def _over_rows(
    placed: PlacedPlan, entries: Tensor, deltas: Tensor | None, weight: Tensor, step: int
) -> Tensor:
    """Return the sums of the nodes over rows in place of pairs, ``step`` rows at a time."""
    total = weight.new_zeros(placed.n_nodes)
    for start in range(0, len(weight), step):
        some = weight[start : start + step]
        ratios = placed.ratios(entries[:, start : start + step].contiguous(), deltas, some)
        total += placed.sums(*ratios, len(some))[0]
    return total


def _by_tiles(
    placed: PlacedPlan, ratios: TileRatios, outputs: Tensor, side: int, length: int
) -> tuple[Tensor, int]:
    """Return the sums of the nodes over all tiles, and how many additions a term goes through.

    ``outputs``, shape (k, n), holds alpha; ``length`` is the number of pairs in a part of a tile.
    """
    n_padded = -(-outputs.shape[1] // side) * side
    sent = torch.nn.functional.pad(outputs, (0, n_padded - outputs.shape[1]))
    total = outputs.new_zeros(placed.n_nodes)
    tiles = tiles_of(n_padded, side)
    for tile in tiles:
        check_time()
        total += placed.sums(*ratios(tile, weighted_pairs(sent, tile)), length).sum(0)
    return total, length + side * side // length + len(tiles)


def draw_steps(n_rows: int, most: int, n_draws: int) -> tuple[int, int]:
    """Return how many rows and how many draws are computed together, of ``most`` in all."""
    step = min(n_rows, max(256, most // 16))
    return step, max(1, min(n_draws, most // step))
