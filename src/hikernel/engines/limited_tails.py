"""Descendant sums with a limit on the number of interacting variables.

With ``max_order`` K, the sums include only descendants of at most K variables. Let t be a node of
order s and r = K - s. Level 0 is constant, and rho_m = sum_{l >= 1} scales_m[0, l] k_{m,l}. Then

    U(t) = sum_ik alpha_i alpha_k prod_{m in t} S_{m,t_m} E_r({rho_m : m not in t}),

where E_r = e_0 + ... + e_r is a sum of elementary symmetric polynomials. With several outputs,
alpha_i is a row vector, alpha_i alpha_k is an inner product, and U(t) is the sum of the U(t) of the
outputs.

A short recursion leaves a variable out of the e_k: e_k(without m) = e_k - rho_m e_{k-1}(without m).
The nodes t = rest + (m, j) are therefore the entries of r + 1 matrix products over the pairs ik,

    U(t) = sum_{a <= r} left_a @ right_a',
    left_a = alpha alpha' prod_{rest} S E_{r-a}(without rest),   right_a = S_{m,j} (-rho_m)^a.

The e_k are accumulated one variable at a time. Only the S_{m,j} and rho_m of the nodes' variables
are kept in memory, whatever the number of variables.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import numpy as np

from hikernel.engines.features import by_output
from hikernel.engines.machine import TILE_NUMBERS, check_time, in_threads
from hikernel.engines.protocol import FloatArray, Node
from hikernel.engines.sketch import run_draws
from hikernel.engines.tails import Tile, cut_tiles, pair_weights, scaled_factor, tiled_error
from hikernel.engines.watch import watched

__all__ = ["LimitedTailSummer", "OrderPlan"]

Factor = TypeVar("Factor")


class LimitedTailSummer:
    """Sums over the descendants of limited order; level 0 of every variable must be constant.

    In all methods ``dual_coef`` is alpha, of shape (n,), or (n, k) for k outputs. The sums of the
    outputs are added.

    Parameters
    ----------
    variables : sequence of sequence of (ndarray of shape (n, r) or None)
        Level features of each variable; level 0 is None, which means identically one.
    scales : sequence of ndarray with q_m + 1 columns
        ``scales[m][j, l]``, nonnegative, one at [0, 0].
    max_order : int
        K, the maximum number of variables of a descendant.
    """

    def __init__(
        self,
        variables: Sequence[Sequence[FloatArray | None]],
        scales: Sequence[FloatArray],
        max_order: int,
    ) -> None:
        self._variables = variables
        self._scales = scales
        self._max_order = max_order

    def sums(self, nodes: Sequence[Node], dual_coef: FloatArray) -> FloatArray:
        """Return U(t), rounded up, for each node, shape (len(nodes),); infinity on overflow."""
        out = np.zeros(len(nodes))
        for order in sorted({len(node) for node in nodes}):
            index = [i for i, node in enumerate(nodes) if len(node) == order]
            if order <= self._max_order:
                out[index] = self._of_one_order([nodes[i] for i in index], dual_coef)
        out[~np.isfinite(out)] = np.inf
        return out

    def draws(
        self, nodes: Sequence[Node], dual_coef: FloatArray, n_draws: int, seed: int
    ) -> FloatArray:
        """Return independent y_t with E y_t^2 = U(t), shape (n_draws, len(nodes))."""
        out = np.zeros((n_draws, len(nodes)))
        for order in sorted({len(node) for node in nodes}):
            index = [i for i, node in enumerate(nodes) if len(node) == order]
            if order <= self._max_order:
                part = [nodes[i] for i in index]
                out[:, index] = self._draws_of_one_order(part, dual_coef, n_draws, seed)
        return out

    def diagonal(self, nodes: Sequence[Node], dual_coef: FloatArray) -> FloatArray:
        """Return sum_i |alpha_i|^2 K_ii, the diagonal part of U(t), shape (len(nodes),)."""
        squares = np.sum(by_output(dual_coef) ** 2, axis=1)
        out = np.zeros(len(nodes))
        for order in sorted({len(node) for node in nodes}):
            index = [i for i, node in enumerate(nodes) if len(node) == order]
            if order <= self._max_order:
                out[index] = self._diagonal_of_one_order([nodes[i] for i in index], squares)
        return out

    def _diagonal_of_one_order(self, nodes: list[Node], squares: FloatArray) -> FloatArray:
        plan = OrderPlan(nodes, self._max_order)
        parts = self._all_factors(plan, len(squares))
        return plan.sums(_diagonal, *parts, squares, exact=True)

    def _draws_of_one_order(
        self, nodes: list[Node], dual_coef: FloatArray, n_draws: int, seed: int
    ) -> FloatArray:
        plan = OrderPlan(nodes, self._max_order)
        factors, excess, others = self._all_factors(plan, len(dual_coef))
        every = [*factors, *excess, *others]
        position = {id(factor): k for k, factor in enumerate(every)}

        def draw(rows: slice, signs: dict[int, FloatArray], weight: FloatArray) -> FloatArray:
            def signed(factor: FloatArray) -> FloatArray:
                return np.asarray(factor[rows] @ signs[position[id(factor)]])

            return plan.sums(signed, factors, excess, others, weight, exact=True)

        return run_draws(draw, every, dual_coef, n_draws, seed)

    def _all_factors(
        self, plan: OrderPlan, n: int
    ) -> tuple[list[FloatArray], list[FloatArray], list[FloatArray]]:
        """Return factors F of the S_{m,j} of the nodes, of their rho_m, and of the other rho_m."""
        factors = [self._factor(m, j, n) for m, j in plan.pairs]
        excess = [self._factor(m, None, n) for m in plan.variables]
        others = [
            self._factor(m, None, n)
            for m in range(len(self._variables))
            if np.any(self._scales[m][0, 1:]) and m not in plan.position
        ]
        if plan.depth == 0:
            others = []  # no further variable can be added
        elif plan.depth == 1 and others:
            others = [np.hstack(others)]  # only e_1, the sum, is needed: one product
        return factors, excess, others

    def _of_one_order(self, nodes: list[Node], dual_coef: FloatArray) -> FloatArray:
        plan = OrderPlan(nodes, self._max_order)
        dual_coef = by_output(dual_coef)
        n, n_outputs = dual_coef.shape
        factors, excess, others = self._all_factors(plan, n)
        tiles = cut_tiles(n, len(factors) + len(excess) + 4)

        def work(tile: Tile) -> FloatArray:
            rows, cols = tile

            def kernel(factor: FloatArray) -> FloatArray:
                return np.asarray(factor[rows] @ factor[cols].T).ravel()

            weight = pair_weights(dual_coef, tile)
            return plan.sums(kernel, factors, excess, others, weight, exact=True)

        total = np.zeros(len(nodes))
        for part in watched(in_threads(work, tiles, n), len(tiles)):
            total += part

        # The magnitudes add up to at most n sum_i |alpha_i|^2 K_ii. ``exact=False`` adds the terms
        # of the e_k that the exact recursion subtracts.
        with np.errstate(over="ignore", invalid="ignore"):
            squares = np.sum(dual_coef**2, axis=1)
            size = plan.sums(_diagonal, factors, excess, others, squares, exact=False)
            width = sum(f.shape[1] for f in [*factors, *excess, *others])
            gamma = tiled_error(tiles, 4 * width + n_outputs - 1)
            return np.asarray(np.maximum(total, 0.0) + gamma * n * size)

    def _factor(self, variable: int, level: int | None, n_rows: int) -> FloatArray:
        """Return F with S_{m,j} = F F', or with rho_m = F F' if ``level`` is None."""
        levels, scale = self._variables[variable], self._scales[variable]
        if level is None:
            return scaled_factor(levels[1:], scale[0, 1:], n_rows)
        return scaled_factor(levels, scale[level], n_rows)


class OrderPlan:
    """Matrix products that give U(t) for nodes t = rest + (m, j) of one order s.

    Each rest and each (m, j) is listed once.

    Parameters
    ----------
    nodes : list of Node
        Nodes that all have s variables.
    max_order : int
        K, at least s.

    Attributes
    ----------
    depth : int
        r = K - s, the number of variables that may be added.
    variables : list of int
        The variables of the nodes, ascending.
    position : dict of int to int
        Position of each of these variables in ``variables``.
    pairs : list of (variable, level)
        The S_{m,j} that the nodes need.
    rests, lasts : list
        For every factor of a rest, and for the last factor, its positions in ``pairs`` and in
        ``variables``. The root has no last factor.
    pick_rest, pick_last : ndarray of shape (n_nodes,)
        Positions of the rest and of the last factor of each node.
    """

    def __init__(self, nodes: list[Node], max_order: int) -> None:
        order = len(nodes[0])
        self.depth = max_order - order
        variables = sorted({m for node in nodes for m, _ in node})
        self.variables = variables
        self.position = {m: i for i, m in enumerate(variables)}
        pairs: dict[tuple[int, int], int] = {}
        for node in nodes:
            for pair in node:
                pairs.setdefault(pair, len(pairs))
        self.pairs = list(pairs)
        rests: dict[Node, int] = {}
        lasts: dict[tuple[int, int], int] = {}
        self.pick_rest = np.empty(len(nodes), dtype=np.intp)
        self.pick_last = np.empty(len(nodes), dtype=np.intp)
        for i, node in enumerate(nodes):
            self.pick_rest[i] = rests.setdefault(node[:-1], len(rests))
            self.pick_last[i] = lasts.setdefault(node[-1], len(lasts)) if node else 0
        self.rests = [[(pairs[pair], self.position[pair[0]]) for pair in rest] for rest in rests]
        self.lasts = [(pairs[pair], self.position[pair[0]]) for pair in lasts]

    def sums(
        self,
        kernel: Callable[[Factor], FloatArray],
        factors: Sequence[Factor],
        excess: Sequence[Factor],
        others: Sequence[Factor],
        weight: FloatArray,
        *,
        exact: bool,
    ) -> FloatArray:
        """Return the sum for each node, shape (n_nodes,), over the entries given by ``kernel``.

        Parameters
        ----------
        kernel : callable
            Maps a factor to its entries, such as those for the pairs of rows of a tile.
        factors, excess, others : sequence of factors
            Of the S_{m,j} in ``pairs``, of the rho_m of ``variables``, and of the other rho_m.
        weight : ndarray of shape (n_entries,)
            Weights of the entries.
        exact : bool
            Whether to leave a node's own variables out of the symmetric polynomials. Otherwise
            the terms that leave them out are added instead of subtracted. For nonnegative entries
            this bounds the sum of the magnitudes of all terms.
        """
        levels = [kernel(factor) for factor in factors]
        rhos = [kernel(factor) for factor in excess]
        # Evaluate the other rho_m one at a time: they are never all in memory.
        symmetric = _symmetric(itertools.chain(rhos, map(kernel, others)), self.depth, len(weight))
        sign = -1.0 if exact else 1.0
        if not self.lasts:  # the root is the only node
            whole = float(weight @ np.sum(symmetric, axis=0))
            return np.full(len(self.pick_rest), whole)
        last_levels = np.array([levels[pair] for pair, _ in self.lasts])
        slopes = np.array([sign * rhos[variable] for _, variable in self.lasts])
        out = np.empty(len(self.pick_rest))
        block = max(1, TILE_NUMBERS // ((self.depth + 1) * len(weight)))
        for start in range(0, len(self.rests), block):
            check_time()
            rests = self.rests[start : start + block]
            left = np.empty((self.depth + 1, len(rests), len(weight)))
            for r, rest in enumerate(rests):
                inner = symmetric
                base = weight.copy()
                for pair, variable in rest:
                    base *= levels[pair]
                    inner = _without(inner, rhos[variable], sign)
                partial = np.cumsum(inner, axis=0)
                for a in range(self.depth + 1):
                    np.multiply(base, partial[self.depth - a], out=left[a, r])
            products = np.zeros((len(rests), len(self.lasts)))
            right = last_levels.copy()
            for a in range(self.depth + 1):
                products += left[a] @ right.T
                right *= slopes
            here = (self.pick_rest >= start) & (self.pick_rest < start + len(rests))
            out[here] = products[self.pick_rest[here] - start, self.pick_last[here]]
        return out


def _symmetric(rhos: Iterable[FloatArray], depth: int, n_pairs: int) -> FloatArray:
    """Return e_0, ..., e_depth of the rhos, shape (depth + 1, n_pairs)."""
    out = np.zeros((depth + 1, n_pairs))
    out[0] = 1.0
    if depth:
        for rho in rhos:
            for k in range(depth, 0, -1):
                out[k] += rho * out[k - 1]
    return out


def _without(symmetric: FloatArray, rho: FloatArray, sign: float) -> FloatArray:
    """Return the e_k with one variable left out (sign -1), or a bound on its terms (sign 1)."""
    out = symmetric.copy()
    for k in range(1, len(out)):
        out[k] += sign * rho * out[k - 1]
    return out


def _diagonal(factor: FloatArray) -> FloatArray:
    """Return the diagonal of F F'."""
    return np.asarray(np.einsum("ij,ij->i", factor, factor))
