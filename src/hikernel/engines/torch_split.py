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
from hikernel.engines.torch_device import TorchDevice
from hikernel.engines.torch_features import gathered, to_device
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
        The S_{m,j} that are needed, starting with level 0 of every varying variable; then in the
        order in which nodes name them.
    zero_of : ndarray of shape (n_pairs,)
        For each S_{m,j}, the position of S_{m,0} of the same variable.
    n_zero : int
        Number of varying variables.
    lefts, rights : ndarrays of shape (n_lefts, a) and (n_rights, b)
        The two sides, each listed once: positions in ``pairs``, and -1 where there is no further
        factor. Lefts are in the order of their last variable, rights in that of their first.
    pick_left, pick_right : ndarray of shape (n_nodes,)
        The sides of each node.
    """

    pairs: list[tuple[int, int]]
    zero_of: IndexArray
    n_zero: int
    lefts: IndexArray
    rights: IndexArray
    pick_left: IndexArray
    pick_right: IndexArray

    @classmethod
    def of(cls, nodes: Sequence[Node], varying: Sequence[int]) -> SplitPlan:
        """Return the plan with the cheapest number of variables to the right."""
        pairs, table = _tabulated(nodes, varying)
        longest = table.shape[1]
        # Ranks by variable and level, from 1 on; 0 where there is no factor.
        ranks = np.zeros(len(pairs) + 1, dtype=np.intp)
        ranks[sorted(range(len(pairs)), key=pairs.__getitem__)] = np.arange(1, len(pairs) + 1)
        columns = list(ranks[table].T)
        from_left = _told_apart(columns)  # the first 0, 1, ... columns
        from_right = _told_apart(columns[::-1])  # the last 0, 1, ... columns

        def cost(size: int) -> float:
            n_lefts = len(from_left[longest - size][0])
            n_rights = len(from_right[size][0])
            return _cost(n_lefts, longest - size, n_rights, size)

        size = min(range(1, max(2, longest)), key=cost)
        (some_left, pick_left), (some_right, pick_right) = (
            from_left[longest - size],
            from_right[size],
        )
        lefts = table[some_left, : longest - size]
        position = {m: i for i, m in enumerate(varying)}
        return cls(
            pairs,
            np.array([position[m] for m, _ in pairs], dtype=np.intp),
            len(varying),
            lefts if lefts.shape[1] else np.full((len(lefts), 1), -1, dtype=np.intp),
            table[some_right, longest - size :],
            pick_left,
            pick_right,
        )

    @property
    def order(self) -> int:
        """Largest number of variables of a node, or one more."""
        return int(self.lefts.shape[1] + self.rights.shape[1])

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


def _tabulated(
    nodes: Sequence[Node], varying: Sequence[int]
) -> tuple[list[tuple[int, int]], IndexArray]:
    """Return all (variable, level), and which of them every node has, shape (n_nodes, longest).

    Rows are filled up with -1 from the left, to one column at least. There may be 10^5 nodes, so
    that only arrays are worked with.
    """
    lengths = np.fromiter(map(len, nodes), dtype=np.intp, count=len(nodes))
    numbers = itertools.chain.from_iterable(itertools.chain.from_iterable(nodes))
    flat = np.fromiter(numbers, dtype=np.intp, count=2 * int(lengths.sum())).reshape(-1, 2)
    zeros = np.array([(m, 0) for m in varying], dtype=np.intp).reshape(-1, 2)
    every = np.concatenate([zeros, flat])
    n_levels = int(every[:, 1].max(initial=0)) + 1
    codes, first, which = np.unique(
        every[:, 0] * n_levels + every[:, 1], return_index=True, return_inverse=True
    )
    appearance = np.argsort(first)
    place = np.empty(len(codes), dtype=np.intp)
    place[appearance] = np.arange(len(codes))
    pairs = [(int(code) // n_levels, int(code) % n_levels) for code in codes[appearance]]
    longest = max(1, int(lengths.max()))
    table = np.full((len(nodes), longest), -1, dtype=np.intp)
    table[np.arange(longest) >= longest - lengths[:, None]] = place[which.ravel()[len(zeros) :]]
    return pairs, table


def _told_apart(columns: Sequence[IndexArray]) -> list[tuple[IndexArray, IndexArray]]:
    """Tell rows of the first 0, 1, ... columns apart: a row of each kind, and the kind of each row.

    Kinds are in the order of the last of these columns, then of the one before it, and so on.
    """
    n_rows = len(columns[0])
    kinds = np.zeros(n_rows, dtype=np.intp)
    out = [(np.zeros(1, dtype=np.intp), kinds)]
    for column in columns:
        n_kinds = len(out[-1][0])
        _, some, kinds = np.unique(column * n_kinds + kinds, return_index=True, return_inverse=True)
        kinds = kinds.ravel()
        out.append((some, kinds))
    return out


def _cost(n_lefts: int, left: int, n_rights: int, right: int) -> float:
    """Return the work per pair of rows: numbers that pass through memory, and products.

    Rights are kept all at a time, and lefts in blocks, so that rights had better be the fewer.
    """
    made = n_lefts * (left + 1) + 2 * n_rights * right
    return _ELEMENT * made + 2.0 * n_lefts * n_rights


class PlacedPlan:
    """A plan with its tables of positions on a device."""

    def __init__(self, plan: SplitPlan, device: TorchDevice, place: IndexArray) -> None:
        self._n_zero = plan.n_zero
        self.n_nodes = len(plan.pick_left)
        numbers = device.step_numbers()
        self._n_ratios = n_ratios = len(plan.pairs) - plan.n_zero
        zero_of = np.empty(n_ratios, dtype=np.intp)
        zero_of[place[plan.n_zero :] - plan.n_zero] = place[plan.zero_of[plan.n_zero :]]
        self._zero_of = to_device(zero_of, device)
        # Row ``n_ratios`` of the ratios is one: the factor of a level 0, and of an empty side.
        at = np.full(len(plan.pairs) + 1, n_ratios, dtype=np.intp)
        at[plan.n_zero : -1] = place[plan.n_zero :] - plan.n_zero
        sides = [at[plan.lefts], at[plan.rights]]
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
