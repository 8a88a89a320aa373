"""Sums over pairs of rows where the levels of a grid are Gram matrices.

The kernel of a node is an entrywise product, K_w = prod_m K_{m,w_m}, and level 0 is one. Scores and
descendant sums are sums over all pairs of rows,

    |a_w|^2 = sum_ik alpha_i alpha_k K_w[i, k],
    U(t)    = sum_ik alpha_i alpha_k prod_m S_{m,t_m}[i, k],
    S_{m,j} = sum_l scales_m[j, l] K_{m,l}.

The sums are computed in tiles of pairs. Only half of the tiles are visited, because the matrices
are symmetric. Per tile, one matrix product gives the scores of all extensions of some prefixes. The
descendant sums use the plans of ``tails`` and ``limited_tails``. No n x n product of levels is ever
stored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from hikernel.engines.features import by_output
from hikernel.engines.limited_tails import OrderPlan
from hikernel.engines.machine import TILE_NUMBERS, in_threads
from hikernel.engines.node_kernels import DenseGram
from hikernel.engines.protocol import FloatArray, Node
from hikernel.engines.tails import TailPlan, Tile, cut_tiles, pair_weights, tiled_error
from hikernel.engines.watch import watched

__all__ = ["GramTailSummer", "LevelGrams", "extension_sums"]

Pair = tuple[int, int]

LevelGrams = Mapping[Pair, DenseGram]
"""Gram matrix of each (variable, level) with level >= 1, variables and levels ascending."""


def extension_sums(
    grams: LevelGrams, prefixes: Sequence[Node], dual_coef: FloatArray, *, rounded_up: bool
) -> FloatArray:
    """Return sum_ik alpha_i alpha_k K_prefix[i, k] K_{m,j}[i, k] for all prefixes and levels.

    Parameters
    ----------
    grams : mapping of (variable, level) to DenseGram
        Gram matrices of the levels.
    prefixes : sequence of Node
        The nodes to be extended by each level.
    dual_coef : ndarray of shape (n,) or (n, k)
        alpha. With several outputs alpha_i alpha_k is an inner product, the sum over the outputs.
    rounded_up : bool
        Whether to add a bound on the rounding error.

    Returns
    -------
    ndarray of shape (len(prefixes), len(grams))
    """
    if not prefixes:
        return np.empty((0, len(grams)))
    dual_coef = by_output(dual_coef)
    row_of = {pair: i for i, pair in enumerate(grams)}
    rows_of = [[row_of[pair] for pair in prefix] for prefix in prefixes]
    tiles = cut_tiles(len(dual_coef), len(grams))

    def work(tile: Tile) -> FloatArray:
        weight = pair_weights(dual_coef, tile)
        stack = np.empty((len(grams), len(weight)))
        for target, gram in zip(stack, grams.values(), strict=True):
            part = gram.tile(*tile)
            target.reshape(part.shape)[...] = part
        out = np.empty((len(prefixes), len(grams)))
        block = max(1, TILE_NUMBERS // len(weight))
        for start in range(0, len(prefixes), block):
            chosen = rows_of[start : start + block]
            left = np.empty((len(chosen), len(weight)))
            for target, rows in zip(left, chosen, strict=True):
                target[...] = weight
                for row in rows:
                    target *= stack[row]
            np.matmul(left, stack.T, out=out[start : start + block])
        return out

    total = np.zeros((len(prefixes), len(grams)))
    for part in watched(in_threads(work, tiles, len(dual_coef)), len(tiles)):
        total += part
    np.maximum(total, 0.0, out=total)
    if rounded_up:
        total += _extension_rounding(grams, rows_of, tiles, dual_coef)
    return total


def _extension_rounding(
    grams: LevelGrams,
    rows_of: Sequence[Sequence[int]],
    tiles: Sequence[Tile],
    dual_coef: FloatArray,
) -> FloatArray:
    """Return a bound on the rounding error of the sums over pairs.

    K_w is positive semidefinite, so the magnitudes of the terms add up to at most
    (sum_i |alpha_i| sqrt(K_w[i, i]))^2, where |alpha_i| is the norm of row i.
    """
    roots = np.stack([_root(gram.diagonal()) for gram in grams.values()])
    sizes = np.hypot.reduce(np.abs(dual_coef), axis=1)
    left = np.array([sizes * np.prod(roots[rows], axis=0) for rows in rows_of])
    order = max(len(rows) for rows in rows_of)
    gamma = tiled_error(tiles, order + 2 + dual_coef.shape[1])
    return np.asarray(gamma * (left @ roots.T) ** 2)


def _root(diagonal: FloatArray) -> FloatArray:
    return np.asarray(np.sqrt(np.maximum(diagonal, 0.0)))


@dataclass(frozen=True)
class _GramSum:
    """The matrix constant + sum_l scale_l K_l.

    Attributes
    ----------
    constant : float
        Contribution of level 0, added to every entry.
    terms : tuple of (scale, DenseGram)
        Contributions of the other levels.
    """

    constant: float
    terms: tuple[tuple[float, DenseGram], ...]

    def write(self, out: FloatArray, tile: Tile) -> None:
        """Write the entries of a tile into ``out``, shape (n_pairs,)."""
        rows, cols = tile
        square = out.reshape(rows.stop - rows.start, cols.stop - cols.start)
        square[...] = self.constant
        for scale, gram in self.terms:
            square += scale * gram.tile(rows, cols)

    def tile(self, tile: Tile) -> FloatArray:
        """Return the entries of a tile, shape (n_pairs,)."""
        rows, cols = tile
        out = np.empty((rows.stop - rows.start) * (cols.stop - cols.start))
        self.write(out, tile)
        return out

    def diagonal(self, n: int) -> FloatArray:
        """Return the diagonal, shape (n,)."""
        out = np.full(n, self.constant)
        for scale, gram in self.terms:
            out += scale * np.maximum(gram.diagonal(), 0.0)
        return out


class GramTailSummer:
    """Descendant sums U(t) from Gram matrices, exact, plus a bound on the rounding error.

    Without a limit on the order, the product of S_{m,0} over all variables is formed once per tile,
    and the S_{m,0} of a node's variables are divided out again (see ``tails``). Here S_{m,0} =
    1 + rho_m may have any sign. If its computed value is zero, there is no division. Any other
    computed value (at least 1e-16 in magnitude if the variable has one level) is multiplied in and
    divided out again, which is exact up to rounding.

    Parameters
    ----------
    grams : mapping of (variable, level) to DenseGram
        Gram matrices of the levels.
    scales : sequence of ndarray with q_m + 1 columns
        ``scales[m][j, l]``, nonnegative, one at [0, 0], zero at [j, 0] for j > 0.
    max_order : int or None
        Maximum number of variables of a descendant; None for no limit.
    """

    def __init__(
        self, grams: LevelGrams, scales: Sequence[FloatArray], max_order: int | None
    ) -> None:
        self._grams = grams
        self._scales = scales
        limited = max_order is not None and max_order < len(scales)
        self._max_order = max_order if limited else None

    def sums(self, nodes: Sequence[Node], dual_coef: FloatArray) -> FloatArray:
        """Return U(t), rounded up, for each node, shape (len(nodes),); infinity on overflow."""
        out = np.zeros(len(nodes))
        dual_coef = by_output(dual_coef)
        if not nodes:
            return out
        with np.errstate(over="ignore", invalid="ignore"):
            if self._max_order is None:
                out[:] = self._unlimited(nodes, dual_coef)
            else:
                for order in {len(node) for node in nodes}:
                    index = [i for i, node in enumerate(nodes) if len(node) == order]
                    if order <= self._max_order:
                        out[index] = self._of_one_order([nodes[i] for i in index], dual_coef)
        out[~np.isfinite(out)] = np.inf
        return out

    def _unlimited(self, nodes: Sequence[Node], dual_coef: FloatArray) -> FloatArray:
        plan = TailPlan.of(nodes, range(len(self._scales)))
        factors = [self._factor(m, j) for m, j in plan.pairs]
        n = len(dual_coef)
        tiles = cut_tiles(n, len(factors))

        def work(tile: Tile) -> FloatArray:
            weight = pair_weights(dual_coef, tile)
            stack = np.empty((len(factors), len(weight)))
            for target, factor in zip(stack, factors, strict=True):
                factor.write(target, tile)
            return plan.tile_sums(stack, weight)

        total = _added_up(work, tiles, len(nodes), n)
        # The magnitudes add up to at most (sum_i |alpha_i| sqrt(K_ii))^2, as in ``tails``.
        roots = np.stack([np.sqrt(factor.diagonal(n)) for factor in factors])
        size = plan.tile_sums(roots, np.hypot.reduce(np.abs(dual_coef), axis=1))
        longest = max(len(factor.terms) for factor in factors)
        gamma = tiled_error(tiles, len(factors) * (longest + 5) + dual_coef.shape[1])
        return np.asarray(total + gamma * size**2)

    def _of_one_order(self, nodes: list[Node], dual_coef: FloatArray) -> FloatArray:
        assert self._max_order is not None
        plan = OrderPlan(nodes, self._max_order)
        n = len(dual_coef)
        parts = self._parts(plan)
        tiles = cut_tiles(n, len(parts[0]) + len(parts[1]) + 4)

        def work(tile: Tile) -> FloatArray:
            def kernel(factor: _GramSum) -> FloatArray:
                return factor.tile(tile)

            return plan.sums(kernel, *parts, pair_weights(dual_coef, tile), exact=True)

        def diagonal(factor: _GramSum) -> FloatArray:
            return factor.diagonal(n)

        total = _added_up(work, tiles, len(nodes), n)
        # The magnitudes add up to at most n sum_i |alpha_i|^2 K_ii. ``exact=False`` adds the terms
        # of the e_k that the exact recursion subtracts.
        squares = np.sum(dual_coef**2, axis=1)
        size = plan.sums(diagonal, *parts, squares, exact=False)
        n_terms = sum(len(factor.terms) + 1 for group in parts for factor in group)
        gamma = tiled_error(tiles, 4 * n_terms + dual_coef.shape[1])
        return np.asarray(total + gamma * n * size)

    def _parts(self, plan: OrderPlan) -> tuple[list[_GramSum], list[_GramSum], list[_GramSum]]:
        """Return the S_{m,j} of the nodes, the rho_m of their variables, and the other rho_m."""
        levels = [self._factor(m, j) for m, j in plan.pairs]
        excess = [self._excess(m) for m in plan.variables]
        others = [self._excess(m) for m in range(len(self._scales)) if m not in plan.position]
        if plan.depth == 0:
            others = []  # no further variable can be added
        elif plan.depth == 1 and others:
            # Only e_1 is needed. It is the sum of the rho_m: one array for all of them.
            others = [_GramSum(0.0, tuple(term for rho in others for term in rho.terms))]
        return levels, excess, others

    def _factor(self, variable: int, level: int) -> _GramSum:
        """Return S_{m,j}."""
        return self._sum(variable, self._scales[variable][level])

    def _excess(self, variable: int) -> _GramSum:
        """Return rho_m, which is S_{m,0} without the contribution of level 0."""
        return replace(self._factor(variable, 0), constant=0.0)

    def _sum(self, variable: int, row: FloatArray) -> _GramSum:
        levels = [j for j in range(1, len(row)) if row[j] > 0.0]
        terms = tuple((float(row[j]), self._grams[variable, j]) for j in levels)
        return _GramSum(float(row[0]), terms)


def _added_up(
    work: Callable[[Tile], FloatArray], tiles: list[Tile], n_sums: int, n_rows: int
) -> FloatArray:
    """Return the sums over all tiles, shape (n_sums,).

    A sum that rounding makes negative is set to zero, and one whose terms overflow to infinity.
    """
    total = np.zeros(n_sums)
    for part in watched(in_threads(work, tiles, n_rows), len(tiles)):
        total += part
    return np.where(np.isfinite(total), np.maximum(total, 0.0), np.inf)
