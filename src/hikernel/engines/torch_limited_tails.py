"""Descendant sums with a limit on the number of interacting variables, on a device.

The formulas are those of ``limited_tails``. All rests of a block have their variables left out of
the symmetric polynomials together, so that the number of steps does not grow with the nodes.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch

from hikernel.engines.features import by_output
from hikernel.engines.limited_tails import LimitedTailSummer, OrderPlan
from hikernel.engines.machine import check_time
from hikernel.engines.protocol import FloatArray, Node
from hikernel.engines.torch_device import TorchDevice
from hikernel.engines.torch_features import gathered, to_device, to_host
from hikernel.engines.torch_stacks import (
    FactorStack,
    contracted,
    device_factor,
    drawn_signs,
    part_length,
    square_side,
)
from hikernel.engines.torch_tails import draw_steps, tiles_of, weighted_pairs

__all__ = ["DeviceLimitedTailSummer"]

Tensor = Any

_RESTS = 64
"""Most rests that are multiplied together."""

_TOGETHER = 16
"""Kernels of further variables that are computed together."""


class DeviceLimitedTailSummer(LimitedTailSummer):
    """Sums over the descendants of limited order; level 0 of every variable must be constant.

    Parameters
    ----------
    variables : sequence of sequence of (tensor of shape (r, n) or None)
        Level features of each variable; level 0 is None, which means identically one.
    scales : sequence of ndarray with q_m + 1 columns
        As for :class:`~hikernel.engines.limited_tails.LimitedTailSummer`.
    max_order : int
        K, the maximum number of variables of a descendant.
    device : TorchDevice
        Where the features are.
    """

    def __init__(
        self,
        variables: Sequence[Sequence[Tensor | None]],
        scales: Sequence[FloatArray],
        max_order: int,
        device: TorchDevice,
    ) -> None:
        super().__init__(variables, scales, max_order)
        self._device = device

    def _of_one_order(self, nodes: list[Node], dual_coef: FloatArray) -> FloatArray:
        alpha = by_output(dual_coef)
        sums = _OrderSums(OrderPlan(nodes, self._max_order), self._device)
        n = len(alpha)
        side = square_side(n, sums.numbers, sums.per_entry)
        n_padded = -(-n // side) * side
        kernels = self._kernels(sums.plan, n, n_padded)
        sums.place(kernels.near)
        sent = to_device(np.pad(alpha.T, ((0, 0), (0, n_padded - n))), self._device)
        length = part_length(side * side)
        total = sent.new_zeros(len(nodes))
        tiles = tiles_of(n_padded, side)
        for tile in tiles:
            check_time()
            near, others = kernels.pairs(tile)
            total += sums.of(near, others, weighted_pairs(sent, tile), length, -1.0).sum(0)
        # The magnitudes add up to at most n sum_i |alpha_i|^2 K_ii. The sign 1 adds the terms of
        # the e_k that the exact recursion subtracts.
        squares = to_device(np.sum(alpha**2, axis=1), self._device)
        size = _over_rows(sums, kernels, squares, 1.0)
        found = to_host(torch.stack([total, size]))
        parts = length + side * side // length + len(tiles)
        gamma = np.finfo(float).eps * (parts + 4 * kernels.width + alpha.shape[1] - 1)
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(np.maximum(found[0], 0.0) + gamma * n * found[1])

    def _draws_of_one_order(
        self, nodes: list[Node], dual_coef: FloatArray, n_draws: int, seed: int
    ) -> FloatArray:
        alpha = by_output(dual_coef)
        sums = _OrderSums(OrderPlan(nodes, self._max_order), self._device)
        n = len(alpha)
        kernels = self._kernels(sums.plan, n, n)
        sums.place(kernels.near)
        step, together = draw_steps(n, sums.numbers // sums.per_entry, n_draws)
        outputs = to_device(alpha.T, self._device)
        out = []
        for first in range(0, n_draws, together):
            check_time()
            numbers = range(first, min(first + together, n_draws))
            signs, weights = drawn_signs(kernels.widths, outputs, numbers, seed, self._device)
            total = weights.new_zeros((len(numbers), len(nodes)))
            for start in range(0, n, step):
                rows = slice(start, min(start + step, n))
                near, others = kernels.products(signs, rows)
                weight = weights[:, rows].reshape(-1)
                total += sums.of(near, others, weight, rows.stop - rows.start, -1.0)
            out.append(to_host(total))
        return np.concatenate(out)

    def _diagonal_of_one_order(self, nodes: list[Node], squares: FloatArray) -> FloatArray:
        sums = _OrderSums(OrderPlan(nodes, self._max_order), self._device)
        n = len(squares)
        kernels = self._kernels(sums.plan, n, n)
        sums.place(kernels.near)
        sent = to_device(squares, self._device)
        return to_host(_over_rows(sums, kernels, sent, -1.0))

    def _kernels(self, plan: OrderPlan, n_rows: int, n_padded: int) -> _Kernels:
        """Return the S_{m,j} of the nodes, their rho_m, and the other rho_m."""
        ones = torch.ones((1, n_rows), dtype=torch.float64, device=self._device.name)
        width = 0
        for levels in self._variables:
            width += sum(1 if block is None else len(block) for block in levels)
        self._device.require_memory(
            2 * n_padded * (width + len(plan.pairs)),
            f"The factors of {len(self._variables)} variables for {n_rows} rows",
            'Use certify="none" or fewer rows.',
        )

        def excess(m: int) -> Tensor:
            return device_factor(self._variables[m][1:], self._scales[m][0, 1:], ones)

        near = [device_factor(self._variables[m], self._scales[m][j], ones) for m, j in plan.pairs]
        near += [excess(m) for m in plan.variables]
        others = [
            excess(m)
            for m in range(len(self._variables))
            if plan.depth and np.any(self._scales[m][0, 1:]) and m not in plan.position
        ]
        if plan.depth == 1 and others:
            others = [torch.cat(others)]  # only e_1, the sum, is needed: one product
        return _Kernels(near, len(plan.pairs), others, n_padded)


class _Kernels:
    """The kernels of the nodes' variables, kept in memory, and the others, a few at a time."""

    def __init__(
        self, near: list[Tensor], n_pairs: int, others: list[Tensor], n_padded: int
    ) -> None:
        self.widths = [len(factor) for factor in (*near, *others)]
        self.width = sum(self.widths)
        self._n_near = len(near)
        self.near = FactorStack(near, n_pairs, n_padded) if near else None
        cuts = range(0, len(others), _TOGETHER)
        self._others = [FactorStack(others[s : s + _TOGETHER], n_padded=n_padded) for s in cuts]

    def pairs(self, tile: tuple[slice, slice]) -> tuple[Tensor | None, Iterable[Tensor]]:
        """Return the values for a tile of pairs, those of the others one stack after the other."""
        near = None if self.near is None else self.near.pairs(*tile)
        return near, (stack.pairs(*tile) for stack in self._others)

    def diagonals(self, rows: slice) -> tuple[Tensor | None, Iterable[Tensor]]:
        """Return the values at (x_i, x_i) for some rows."""
        near = None if self.near is None else self.near.diagonal(rows)
        return near, (stack.diagonal(rows) for stack in self._others)

    def products(self, signs: list[Tensor], rows: slice) -> tuple[Tensor | None, Iterable[Tensor]]:
        """Return the factors times random signs, a row of draws after the other."""
        near = None
        if self.near is not None:
            near = self.near.products(signs[: self._n_near], rows).view(len(self.near), -1)
        return near, self._other_products(signs[self._n_near :], rows)

    def _other_products(self, signs: list[Tensor], rows: slice) -> Iterable[Tensor]:
        start = 0
        for stack in self._others:
            found = stack.products(signs[start : start + len(stack)], rows)
            yield found.view(len(stack), -1)
            start += len(stack)


def _over_rows(sums: _OrderSums, kernels: _Kernels, weight: Tensor, sign: float) -> Tensor:
    """Return the sums of the nodes over rows in place of pairs, a step's worth at a time."""
    total = weight.new_zeros(len(sums.plan.pick_rest))
    step = max(256, sums.numbers // sums.per_entry)
    for start in range(0, len(weight), step):
        some = weight[start : start + step]
        rows = slice(start, start + len(some))
        total += sums.of(*kernels.diagonals(rows), some, len(some), sign)[0]
    return total


class _OrderSums:
    """The matrix products of an ``OrderPlan``, from values of kernels on a device."""

    def __init__(self, plan: OrderPlan, device: TorchDevice) -> None:
        self.plan = plan
        self._device = device
        self._n_pairs = len(plan.pairs)
        self._n_nodes = len(plan.pick_rest)
        terms = plan.depth + 1
        fixed = 2 * terms * max(1, len(plan.lasts)) + 2 * (self._n_pairs + len(plan.variables))
        self.numbers = device.step_numbers()
        most = self.numbers // (2**12 * 3 * terms)
        self._size = max(1, min(_RESTS, len(plan.rests), most))
        self.per_entry = fixed + _TOGETHER + terms + 3 * terms * self._size

    def place(self, near: FactorStack | None) -> None:
        """Note where the kernels are in their stack."""
        if near is None:
            return  # the root has no factors
        plan = self.plan
        rests = np.array(plan.rests, dtype=np.intp).reshape(len(plan.rests), -1, 2)
        lasts = np.array(plan.lasts, dtype=np.intp).reshape(-1, 2)
        variables = near.place[self._n_pairs :]
        self._rest_levels = to_device(near.place[rests[:, :, 0]], self._device)
        self._rest_rhos = to_device(variables[rests[:, :, 1]], self._device)
        self._last_levels = to_device(near.place[lasts[:, 0]], self._device)
        self._last_rhos = to_device(variables[lasts[:, 1]], self._device)
        self._blocks = []
        for start in range(0, len(plan.rests), self._size):
            part = slice(start, min(start + self._size, len(plan.rests)))
            where = np.flatnonzero((plan.pick_rest >= part.start) & (plan.pick_rest < part.stop))
            picks = (where, plan.pick_rest[where] - start, plan.pick_last[where])
            self._blocks.append((part, *(to_device(pick, self._device) for pick in picks)))

    def of(
        self,
        near: Tensor | None,
        others: Iterable[Tensor],
        weight: Tensor,
        length: int,
        sign: float,
    ) -> Tensor:
        """Return the sums for each part of the entries and each node, shape (P / length, n_nodes).

        Parameters
        ----------
        near : tensor of shape (n_kernels, P), or None
            The S_{m,j} and the rho_m of the nodes' variables, in the order of their stack.
        others : iterable of tensors of shape (k, P)
            The other rho_m.
        weight : tensor of shape (P,)
            Weights of the entries.
        length : int
            Entries in a part.
        sign : float
            -1 to leave a node's own variables out of the symmetric polynomials; 1 to add the terms
            that leave them out, which bounds the magnitudes.
        """
        symmetric = self._symmetric(() if near is None else near[self._n_pairs :], others, weight)
        if near is None:
            whole = (symmetric.sum(0) * weight).view(-1, length).sum(1)
            return whole[:, None].expand(-1, self._n_nodes)
        depth = self.plan.depth
        right = near.new_empty((depth + 1, len(self._last_levels), near.shape[1]))
        right[0] = near.index_select(0, self._last_levels)
        if depth:
            slopes = near.index_select(0, self._last_rhos).mul_(sign)
            for a in range(depth):
                torch.mul(right[a], slopes, out=right[a + 1])
        out = weight.new_zeros((len(weight) // length, self._n_nodes))
        for part, where, rows, columns in self._blocks:
            left = self._lefts(near, symmetric, weight, part, sign)
            products = contracted(left[depth], right[0], length)
            for a in range(1, depth + 1):
                products += contracted(left[depth - a], right[a], length)
            out[:, where] = products[:, rows, columns]
        return out

    def _symmetric(self, rhos: Any, others: Iterable[Tensor], weight: Tensor) -> Tensor:
        """Return e_0, ..., e_depth of all rho_m, shape (depth + 1, P)."""
        depth = self.plan.depth
        out = weight.new_zeros((depth + 1, len(weight)))
        out[0] = 1.0
        if depth:
            for rho in itertools.chain(rhos, itertools.chain.from_iterable(others)):
                for k in range(depth, 0, -1):
                    out[k].addcmul_(rho, out[k - 1])
        return out

    def _lefts(
        self, near: Tensor, symmetric: Tensor, weight: Tensor, part: slice, sign: float
    ) -> Tensor:
        """Return weight prod S (e_0 + ... + e_k)(without the rest) for some rests and all k."""
        levels, rhos = self._rest_levels[part], self._rest_rhos[part]
        out = symmetric[:, None, :].repeat(1, len(levels), 1)
        for q in range(levels.shape[1]):
            rho = near.index_select(0, rhos[:, q])
            for k in range(1, len(out)):
                out[k].addcmul_(rho, out[k - 1], value=sign)
        for k in range(1, len(out)):
            out[k] += out[k - 1]
        out *= gathered(near, levels, weight) if levels.shape[1] else weight
        return out
