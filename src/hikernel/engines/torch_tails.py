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

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from hikernel.engines.features import by_output
from hikernel.engines.machine import check_time
from hikernel.engines.protocol import FloatArray, Node
from hikernel.engines.tails import TailPlan, TailSummer
from hikernel.engines.torch_device import TorchDevice
from hikernel.engines.torch_features import gathered, padded_index, to_device, to_host
from hikernel.engines.torch_stacks import (
    FactorStack,
    contracted,
    device_factor,
    drawn_signs,
    part_length,
    square_side,
)

__all__ = ["DeviceTailSummer", "SplitPlan", "draw_steps", "tiles_of", "weighted_pairs"]

Tensor = Any
IndexArray = NDArray[np.intp]

_SMALLEST = 40
"""delta_m is 10^-40 times the largest S_{m,0}(x_i, x_i), unless nodes have seven variables or more:
a product of so many delta_m must not underflow."""

_RANGE = 240
"""Decimal powers that the delta_m of one node may take together."""

_SEEN = 1e17
"""Where S_{m,0} is less than this times delta_m, its bound in the margin is that."""

_ELEMENT = 256
"""Operations of a matrix product in the time in which one number passes through memory."""

_ENTRIES = 2**12
"""Entries for which the sides of a product must fit into a step, at least."""

_LEFTS = 512
"""Most rows of the left side of a product."""


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
        n_padded = -(-n // side) * side
        stack = self._stack(plan, n, n_padded)
        length = plan.part_length(side * side, numbers)
        sent = to_device(np.pad(alpha.T, ((0, 0), (0, n_padded - n))), self._device)
        diagonal = stack.diagonal()
        deltas = plan.deltas(diagonal)
        total = sent.new_zeros(len(nodes))
        placed = plan.on(self._device, stack.place)
        tiles = tiles_of(n_padded, side)
        for tile in tiles:
            check_time()
            weight = weighted_pairs(sent, tile)
            total += placed.sums(stack.pairs(*tile), deltas, weight, length).sum(0)
        # A product of sums of at most ``widest`` numbers each, delta_m and a quotient or two per
        # factor, and a sum over outputs; then parts of a tile, its parts, and the tiles.
        one_term = len(plan.pairs) * (stack.widest + 6) + len(sent) - 1
        gamma = np.finfo(float).eps * (length + side * side // length + len(tiles) + one_term)
        size = placed.sums(
            torch.cat([_seen(diagonal[: plan.n_zero], deltas), diagonal[plan.n_zero :]]).sqrt_(),
            None,
            to_device(np.hypot.reduce(np.abs(alpha), axis=1), self._device),
            n,
        )[0]
        found = to_host(torch.stack([total, size]))
        with np.errstate(over="ignore", invalid="ignore"):
            bounds = self._constant * (np.maximum(found[0], 0.0) + gamma * found[1] ** 2)
        bounds[~np.isfinite(bounds)] = np.inf
        return np.asarray(bounds)

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
        out = []
        for first in range(0, n_draws, together):
            check_time()
            numbered = range(first, min(first + together, n_draws))
            signs, weights = drawn_signs(stack.widths, alpha, numbered, seed, self._device)
            total = weights.new_zeros((len(numbered), len(nodes)))
            for start in range(0, n, step):
                rows = slice(start, min(start + step, n))
                entries = stack.products(signs, rows).view(len(stack), -1)
                weight = weights[:, rows].reshape(-1)
                total += placed.sums(entries, deltas, weight, rows.stop - rows.start)
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
        found = placed.sums(entries, plan.deltas(entries), squares, n)[0]
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


def tiles_of(n_padded: int, side: int) -> list[tuple[slice, slice]]:
    """Return the tiles that cover the pairs i <= k; all have the same shape."""
    cuts = [slice(start, start + side) for start in range(0, n_padded, side)]
    return [(rows, columns) for k, columns in enumerate(cuts) for rows in cuts[: k + 1]]


def weighted_pairs(outputs: Tensor, tile: tuple[slice, slice]) -> Tensor:
    """Return alpha_i alpha_k of a tile, shape (pairs,), from outputs of shape (k, n).

    They are doubled off the diagonal, because the tile also represents its mirror image.
    """
    rows, columns = tile
    weight = outputs[:, rows].T @ outputs[:, columns]
    return (weight if rows.start == columns.start else weight.mul_(2.0)).view(-1)


def _seen(diagonal: Tensor, deltas: Tensor) -> Tensor:
    """Return S_{m,0}(x_i, x_i), or what bounds it in the margin where it is next to nothing."""
    return torch.maximum(diagonal, _SEEN * deltas[:, None])


def draw_steps(n_rows: int, most: int, n_draws: int) -> tuple[int, int]:
    """Return how many rows and how many draws are computed together, of ``most`` in all."""
    step = min(n_rows, max(256, most // 16))
    return step, max(1, min(n_draws, most // step))


@dataclass(frozen=True)
class _Block:
    """Some lefts with the rights that they meet: ranges of both, and the nodes among the products.

    ``rows`` and ``columns`` are positions within the ranges; ``where`` are positions of nodes.
    """

    lefts: slice
    rights: slice
    rows: Any
    columns: Any
    where: Any


@dataclass(frozen=True)
class SplitPlan:
    """Nodes as products of a left and a right side.

    Attributes
    ----------
    pairs : list of (variable, level)
        The S_{m,j} that are needed, starting with level 0 of every varying variable.
    n_zero : int
        Number of varying variables.
    lefts, rights : list of Node
        The two sides, each listed once.
    pick_left, pick_right : ndarray of shape (n_nodes,)
        The sides of each node.
    """

    pairs: list[tuple[int, int]]
    zero_of: IndexArray
    n_zero: int
    lefts: list[Node]
    rights: list[Node]
    pick_left: IndexArray
    pick_right: IndexArray

    @classmethod
    def of(cls, nodes: Sequence[Node], varying: Sequence[int]) -> SplitPlan:
        """Return the plan with the cheapest number of variables to the right."""
        base = TailPlan.of(nodes, varying)
        longest = max(map(len, nodes))
        splits = (_split(nodes, size) for size in range(1, max(2, longest)))
        sides = min(splits, key=lambda found: _cost(*found[:2]))
        return cls(base.pairs, base.zero_of, base.n_zero, *sides)

    @property
    def order(self) -> int:
        """Largest number of variables of a node."""
        return max(map(len, self.lefts)) + max(map(len, self.rights))

    def block_size(self, numbers: int) -> int:
        """Return how many lefts are multiplied together, if a step may take so many numbers."""
        most = max(1, numbers // (_ENTRIES * max(1, len(self.pairs) + len(self.rights))))
        return min(_LEFTS, len(self.lefts), most)

    def per_entry(self, numbers: int) -> int:
        """Return how many numbers are kept for every pair of rows, or row of a draw."""
        ratios = 3 * (len(self.pairs) - self.n_zero) + 2
        return len(self.pairs) + ratios + 2 * len(self.rights) + 2 * self.block_size(numbers)

    def part_length(self, n_pairs: int, numbers: int) -> int:
        """Return how many pairs are added up in one part of a tile, with room for the products."""
        length = part_length(n_pairs)
        products = self.block_size(numbers) * len(self.rights)
        while length < n_pairs and n_pairs // length * products > numbers // 4:
            length *= 2
        return length

    def deltas(self, diagonal: Tensor) -> Tensor:
        """Return the delta_m, shape (n_zero,), in the order of the stack."""
        largest = diagonal[: self.n_zero].amax(1)
        small = 10.0 ** -min(_SMALLEST, _RANGE // max(1, self.order))
        return torch.where(largest > 0.0, largest, torch.ones_like(largest)) * small

    def on(self, device: TorchDevice, place: IndexArray) -> _PlacedPlan:
        """Return the plan for a stack whose kernel k is at ``place[k]``."""
        return _PlacedPlan(self, device, place)

    def blocks(self, size: int) -> Iterator[tuple[slice, slice, IndexArray]]:
        """Yield ranges of lefts and of rights, and the nodes that they make."""
        order = np.argsort(self.pick_left, kind="stable")
        cuts = np.searchsorted(self.pick_left[order], range(0, len(self.lefts) + size, size))
        for b, (start, stop) in enumerate(itertools.pairwise(cuts)):
            where = order[start:stop]
            if len(where):
                met = self.pick_right[where]
                lefts = slice(b * size, min((b + 1) * size, len(self.lefts)))
                yield lefts, slice(int(met.min()), int(met.max()) + 1), where


def _split(
    nodes: Sequence[Node], size: int
) -> tuple[list[Node], list[Node], IndexArray, IndexArray]:
    """Return the sides of the nodes with ``size`` variables to the right, and the node's choices.

    Lefts are in the order of their last variable, rights in that of their first.
    """
    halves = [(node[:-size], node[-size:]) for node in nodes]
    lefts = sorted({left for left, _ in halves}, key=lambda left: left[::-1])
    rights = sorted({right for _, right in halves})
    left_at = {left: i for i, left in enumerate(lefts)}
    right_at = {right: i for i, right in enumerate(rights)}
    picks = np.array([(left_at[a], right_at[b]) for a, b in halves], dtype=np.intp)
    return lefts, rights, picks[:, 0], picks[:, 1]


def _cost(lefts: Sequence[Node], rights: Sequence[Node]) -> float:
    """Return the work per pair of rows: numbers that pass through memory, and products."""
    made = sum(len(left) + 1 for left in lefts) + sum(map(len, rights))
    return _ELEMENT * made + 2.0 * len(lefts) * len(rights)


class _PlacedPlan:
    """A plan with its tables of positions on a device."""

    def __init__(self, plan: SplitPlan, device: TorchDevice, place: IndexArray) -> None:
        self._n_zero = plan.n_zero
        self._n_nodes = len(plan.pick_left)
        numbers = device.step_numbers()
        at = {pair: int(place[k]) - plan.n_zero for k, pair in enumerate(plan.pairs)}
        n_ratios = len(plan.pairs) - plan.n_zero
        zero_of = np.empty(n_ratios, dtype=np.intp)
        zero_of[place[plan.n_zero :] - plan.n_zero] = place[plan.zero_of[plan.n_zero :]]
        self._zero_of = to_device(zero_of, device)
        # Row ``n_ratios`` of the ratios is one: the factor of a level 0, and of an empty side.
        sides = [
            padded_index(
                [[at[pair] if pair[1] else n_ratios for pair in side] for side in both], n_ratios
            )
            for both in (plan.lefts, plan.rights)
        ]
        self._lefts, self._rights = (to_device(side, device) for side in sides)
        self._blocks = [
            _Block(
                lefts,
                rights,
                to_device(plan.pick_left[where] - lefts.start, device),
                to_device(plan.pick_right[where] - rights.start, device),
                to_device(where, device),
            )
            for lefts, rights, where in plan.blocks(plan.block_size(numbers))
        ]

    def sums(self, entries: Tensor, deltas: Tensor | None, weight: Tensor, length: int) -> Tensor:
        """Return the sums for each part of the entries and each node, shape (P / length, n_nodes).

        Parameters
        ----------
        entries : tensor of shape (n_pairs, P)
            The S_{m,j}, in the order of the stack; they are overwritten.
        deltas : tensor of shape (n_zero,), optional
            What is added to the S_{m,0}.
        weight : tensor of shape (P,)
            Weights of the entries.
        length : int
            Entries in a part.
        """
        zeros, others = entries[: self._n_zero], entries[self._n_zero :]
        if deltas is not None:
            zeros += deltas[:, None]
        base = zeros.prod(0).mul_(weight)
        ratios = torch.cat([others, torch.ones_like(base)[None]])
        if len(others):
            ratios[:-1] /= zeros.index_select(0, self._zero_of)
        right = gathered(ratios, self._rights)
        out = base.new_zeros((len(base) // length, self._n_nodes))
        for block in self._blocks:
            left = gathered(ratios, self._lefts[block.lefts], base)
            products = contracted(left, right[block.rights], length)
            out[:, block.where] = products[:, block.rows, block.columns]
        return out
