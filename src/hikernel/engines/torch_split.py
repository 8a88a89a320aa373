"""Nodes as products of two sides, so that many descendant sums are one matrix product.

A node is left + right, with the same number of variables to the right in all of them. Lefts are
ordered by their last variable, and a block of them is multiplied only with the rights that come
after it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from hikernel.engines.protocol import Node
from hikernel.engines.tails import TailPlan
from hikernel.engines.torch_device import TorchDevice
from hikernel.engines.torch_features import gathered, padded_index, to_device
from hikernel.engines.torch_stacks import contracted, part_length

__all__ = ["PlacedPlan", "SplitPlan"]

Tensor = Any
IndexArray = NDArray[np.intp]

_SMALLEST = 40
"""delta_m is 10^-40 times the largest S_{m,0}(x_i, x_i), unless nodes have seven variables or more:
a product of so many delta_m must not underflow."""

_RANGE = 240
"""Decimal powers that the delta_m of one node may take together."""

_ELEMENT = 256
"""Operations of a matrix product in the time in which one number passes through memory."""

_ENTRIES = 2**12
"""Entries for which the sides of a product must fit into a step, at least."""

_FEW_PRODUCTS, _LONG_PART = 2**12, 2**11
"""With more products than this of two sides, parts of a sum have at least so many pairs: else
writing the products of all parts would take longer than computing them."""

_LEFTS = 512
"""Most rows of the left side of a product."""


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
        if products > _FEW_PRODUCTS:
            length = max(length, min(n_pairs, _LONG_PART))
        while length < n_pairs and n_pairs // length * products > numbers // 4:
            length *= 2
        return length

    def deltas(self, diagonal: Tensor) -> Tensor:
        """Return the delta_m, shape (n_zero,), in the order of the stack."""
        largest = diagonal[: self.n_zero].amax(1)
        small = 10.0 ** -min(_SMALLEST, _RANGE // max(1, self.order))
        return torch.where(largest > 0.0, largest, torch.ones_like(largest)) * small

    def on(self, device: TorchDevice, place: IndexArray) -> PlacedPlan:
        """Return the plan for a stack whose kernel k is at ``place[k]``."""
        return PlacedPlan(self, device, place)

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


class PlacedPlan:
    """A plan with its tables of positions on a device."""

    def __init__(self, plan: SplitPlan, device: TorchDevice, place: IndexArray) -> None:
        self._n_zero = plan.n_zero
        self.n_nodes = len(plan.pick_left)
        numbers = device.step_numbers()
        at = {pair: int(place[k]) - plan.n_zero for k, pair in enumerate(plan.pairs)}
        self._n_ratios = n_ratios = len(plan.pairs) - plan.n_zero
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
        # Rights of one factor may be rows that lie beside each other; then nothing is gathered.
        first, n_rights = int(sides[1][0, 0]), len(plan.rights)
        row_by_row = np.array_equal(sides[1], np.arange(first, first + n_rights)[:, None])
        self._beside = slice(first, first + n_rights) if row_by_row else None
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

    def ratios(
        self, entries: Tensor, deltas: Tensor | None, weight: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return weight_p prod_m S_{m,0} of all entries p, and the S_{m,j} / S_{m,0}.

        Parameters
        ----------
        entries : tensor of shape (n_pairs, P) or (n_pairs + 1, P)
            The S_{m,j}, in the order of the stack, and possibly a row to spare. They are
            overwritten.
        deltas : tensor of shape (n_zero,), optional
            What is added to the S_{m,0}.
        weight : tensor of shape (P,)
            Weights of the entries.

        Returns
        -------
        base : tensor of shape (P,)
        ratios : tensor of shape (n_pairs - n_zero + 1, P)
            The last row is one.
        """
        if len(entries) == self._n_zero + self._n_ratios:
            entries = torch.cat([entries, entries[:1]])
        zeros, ratios = entries[: self._n_zero], entries[self._n_zero :]
        ratios[-1] = 1.0
        if deltas is not None:
            zeros += deltas[:, None]
        if self._n_ratios:
            ratios[:-1] /= zeros.index_select(0, self._zero_of)
        return zeros.prod(0).mul_(weight), ratios

    def sums(self, base: Tensor, ratios: Tensor, length: int) -> Tensor:
        """Return the sums of each part of the entries for each node, shape (P / length, n_nodes).

        ``base`` and ``ratios`` are those of ``ratios``; a part has ``length`` entries.
        """
        right = gathered(ratios, self._rights) if self._beside is None else ratios[self._beside]
        out = base.new_zeros((len(base) // length, self.n_nodes))
        for block in self._blocks:
            left = gathered(ratios, self._lefts[block.lefts], base)
            products = contracted(left, right[block.rights], length)
            out[:, block.where] = products[:, block.rows, block.columns]
        return out
