"""Descendant sums U(t), computed by matrix products over tiles of pairs of rows.

For a node t,

    U(t) = sum_{i,k} alpha_i alpha_k prod_m S_{m,t_m}(x_i, x_k),
    S_{m,j}(x, x') = sum_l scales_m[j, l] k_{m,l}(x, x').

With several outputs alpha_i is a row vector, alpha_i alpha_k is an inner product, and U(t) is the
sum of the U(t) of the outputs.

For each tile of pairs, the product over all variables at level 0, W = alpha_i alpha_k prod_m
S_{m,0}, is formed once. A node t = rest + (m, j) is then one entry of the matrix product

    (W * prod_{rest} ratio) @ ratio',      ratio_{m,j} = S_{m,j} / S_{m,0}.

The division loses no accuracy: the same computed number S_{m,0} is multiplied in and divided out
again, so every term keeps full relative accuracy however small S_{m,0} is. If S_{m,0} is zero for
some pairs, the result of the tile is NaN, and these pairs are computed again without division. The
terms can cancel in the sum. A bound on the rounding error is therefore added, so that the result is
never below U(t). No n x n array is stored. Only the S_{m,j} that some node needs are computed, each
by one product.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hikernel.engines.features import by_output
from hikernel.engines.machine import TILE_NUMBERS, check_time, in_threads
from hikernel.engines.protocol import FloatArray, Node
from hikernel.engines.sketch import run_draws
from hikernel.engines.watch import watched

__all__ = [
    "TailPlan",
    "TailSummer",
    "Tile",
    "cut_tiles",
    "pair_weights",
    "scaled_factor",
    "tiled_error",
]

Tile = tuple[slice, slice]

_TOO_SMALL = 1e-290
"""If a tile gives NaN or infinity, pairs with |S_{m,0}| below this are redone without division."""


def cut_tiles(n: int, n_stacked: int) -> list[Tile]:
    """Return tiles that cover the pairs i <= k of n rows, for ``n_stacked`` numbers per pair."""
    side = max(16, min(n, int(np.sqrt(TILE_NUMBERS / max(1, n_stacked)))))
    cuts = [slice(s, min(s + side, n)) for s in range(0, n, side)]
    return [(rows, cols) for i, rows in enumerate(cuts) for cols in cuts[i:]]


def pair_weights(dual_coef: FloatArray, tile: Tile) -> FloatArray:
    """Return alpha_i alpha_k, summed over the outputs, for the pairs of a tile.

    Parameters
    ----------
    dual_coef : ndarray of shape (n, n_outputs)
        alpha, one column per output.
    tile : (slice, slice)
        Rows i and rows k. The weights of a tile off the diagonal are doubled, because the tile also
        represents its mirror image.

    Returns
    -------
    ndarray of shape (n_pairs,)
    """
    left, right = (dual_coef[rows] for rows in tile)
    weight = np.outer(left, right) if dual_coef.shape[1] == 1 else left @ right.T
    if tile[0].start != tile[1].start:
        weight *= 2.0
    return np.asarray(weight.ravel())


def tiled_error(tiles: Sequence[Tile], one_term: int) -> float:
    """Return a bound on the rounding error of a sum over tiles, relative to the sum of magnitudes.

    Parameters
    ----------
    tiles : sequence of tiles
        The tiles; the first one must be the largest.
    one_term : int
        Number of operations that compute one term of the sum.
    """
    rows, cols = tiles[0]
    length = (rows.stop - rows.start) * (cols.stop - cols.start)
    return float(np.finfo(float).eps * (length + len(tiles) + one_term))


def scaled_factor(
    levels: Sequence[FloatArray | None], scales: FloatArray, n_rows: int
) -> FloatArray:
    """Return F with F F' = sum_l scales_l k_l; a level None has the constant kernel one."""
    columns = [np.zeros((n_rows, 0))]
    for block, scale in zip(levels, scales, strict=True):
        if scale > 0.0:
            features = np.ones((n_rows, 1)) if block is None else block
            columns.append(np.sqrt(scale) * features)
    return np.hstack(columns)


class TailSummer:
    """Sums over all descendants, for one set of rows and one set of scales.

    In all methods ``dual_coef`` is alpha, of shape (n,), or (n, k) for k outputs. The sums of the
    outputs are added.

    Parameters
    ----------
    variables : sequence of sequence of (ndarray of shape (n, r) or None)
        Level features of each variable; None means that the level is identically one.
    scales : sequence of ndarray with q_m + 1 columns
        ``scales[m][j, l]``, nonnegative: a row for every level, and possibly for sums of levels.
    """

    def __init__(
        self,
        variables: Sequence[Sequence[FloatArray | None]],
        scales: Sequence[FloatArray],
    ) -> None:
        self._variables = variables
        self._scales = scales
        # A variable that has only the constant level multiplies every term by scales[0, 0].
        self._varying = [
            m
            for m, levels in enumerate(variables)
            if np.any(scales[m][:, 1:]) or levels[0] is not None
        ]
        idle = set(range(len(variables))) - set(self._varying)
        self._constant = float(np.prod([scales[m][0, 0] for m in idle]))

    def sums(self, nodes: Sequence[Node], dual_coef: FloatArray) -> FloatArray:
        """Return U(t), rounded up, for each node, shape (len(nodes),); infinity on overflow."""
        if not nodes:
            return np.zeros(0)
        dual_coef = by_output(dual_coef)
        if not self._varying:
            gamma = (sum(dual_coef.shape) - 1) * np.finfo(float).eps
            sums = np.abs(np.sum(dual_coef, axis=0)) + gamma * np.sum(np.abs(dual_coef), axis=0)
            return np.full(len(nodes), self._constant * float(sums @ sums))
        plan = TailPlan.of(nodes, self._varying)
        factors = [self._factor(m, j, len(dual_coef)) for m, j in plan.pairs]
        tiles = cut_tiles(len(dual_coef), len(plan.pairs))

        def work(tile: Tile) -> FloatArray:
            rows, cols = tile
            stack = np.empty((len(factors), rows.stop - rows.start, cols.stop - cols.start))
            for target, factor in zip(stack, factors, strict=True):
                np.matmul(factor[rows], factor[cols].T, out=target)
            return plan.tile_sums(stack.reshape(len(stack), -1), pair_weights(dual_coef, tile))

        total = np.zeros(len(nodes))
        for part in watched(in_threads(work, tiles, len(dual_coef)), len(tiles)):
            total += part
        total = np.maximum(total, 0.0) + self._rounding(plan, factors, tiles, dual_coef)
        total *= self._constant
        total[~np.isfinite(total)] = np.inf
        return total

    def draws(
        self, nodes: Sequence[Node], dual_coef: FloatArray, n_draws: int, seed: int
    ) -> FloatArray:
        """Return independent y_t with E y_t^2 = U(t), shape (n_draws, len(nodes))."""
        plan = TailPlan.of(nodes, self._varying)
        factors = [self._factor(m, j, len(dual_coef)) for m, j in plan.pairs]

        def draw(rows: slice, signs: dict[int, FloatArray], weight: FloatArray) -> FloatArray:
            stack = np.empty((len(factors), len(weight)))
            for k, factor in enumerate(factors):
                np.matmul(factor[rows], signs[k], out=stack[k])
            return plan.tile_sums(stack, weight)

        found = run_draws(draw, factors, dual_coef, n_draws, seed)
        return np.asarray(np.sqrt(self._constant) * found)

    def diagonal(self, nodes: Sequence[Node], dual_coef: FloatArray) -> FloatArray:
        """Return sum_i |alpha_i|^2 prod_m S_{m,t_m}(x_i, x_i), shape (len(nodes),)."""
        plan = TailPlan.of(nodes, self._varying)
        factors = [self._factor(m, j, len(dual_coef)) for m, j in plan.pairs]
        stack = np.empty((len(factors), len(dual_coef)))
        for target, factor in zip(stack, factors, strict=True):
            np.einsum("ij,ij->i", factor, factor, out=target)
        squares = np.sum(by_output(dual_coef) ** 2, axis=1)
        return np.asarray(self._constant * plan.tile_sums(stack, squares))

    def _rounding(
        self,
        plan: TailPlan,
        factors: list[FloatArray],
        tiles: list[Tile],
        dual_coef: FloatArray,
    ) -> FloatArray:
        """Return a bound on the rounding error of the sums.

        The terms of U(t) = sum_ik alpha_i alpha_k K_ik have both signs, and can be many orders of
        magnitude larger than the sum. K is positive semidefinite, so their magnitudes add up to at
        most (sum_i |alpha_i| sqrt(K_ii))^2. The error is at most gamma times that. With several
        outputs |alpha_i| is the norm of a row: |alpha_i| |alpha_k| is at least the sum of the
        magnitudes of the products in the inner product alpha_i alpha_k.
        """
        roots = np.array([np.sqrt(np.einsum("ij,ij->i", f, f)) for f in factors])
        # hypot neither overflows nor underflows, and is |alpha_i| itself for one output.
        absolute = plan.tile_sums(roots, np.hypot.reduce(np.abs(dual_coef), axis=1))
        widest = max(factor.shape[1] for factor in factors)
        # One term is a product of sums of at most ``widest`` numbers, and one sum over outputs.
        gamma = tiled_error(tiles, len(factors) * (widest + 4) + dual_coef.shape[1] - 1)
        with np.errstate(over="ignore"):
            return np.asarray(gamma * absolute**2)

    def _factor(self, variable: int, level: int, n_rows: int) -> FloatArray:
        """Return F with S_{m,j}(x_i, x_k) = (F F')_ik."""
        levels, scales = self._variables[variable], self._scales[variable]
        return scaled_factor(levels, scales[level], n_rows)


@dataclass(frozen=True)
class TailPlan:
    """Matrix products that give U(t) for nodes t = rest + (m, j).

    Each rest and each (m, j) is listed once. A position is an index into ``pairs``.

    Attributes
    ----------
    pairs : list of (variable, level)
        The S_{m,j} that are needed, starting with level 0 of every varying variable.
    zero_of : ndarray of shape (len(pairs),)
        For each S_{m,j}, the position of S_{m,0} of the same variable.
    rests : list of list of int
        Positions of the factors of each rest.
    lasts : ndarray of shape (n_lasts,)
        Positions of the last factors.
    pick_rest, pick_last : ndarray of shape (n_nodes,)
        Row and column of each node in the product. Column 0 means no last factor (the root);
        column c > 0 is ``lasts[c - 1]``.
    n_zero : int
        Number of varying variables.
    """

    pairs: list[tuple[int, int]]
    zero_of: NDArray[np.intp]
    rests: list[list[int]]
    lasts: NDArray[np.intp]
    pick_rest: NDArray[np.intp]
    pick_last: NDArray[np.intp]
    n_zero: int

    @classmethod
    def of(cls, nodes: Sequence[Node], varying: Sequence[int]) -> TailPlan:
        """Return the plan for some nodes; ``varying`` are the variables that are not constant."""
        position = {(m, 0): i for i, m in enumerate(varying)}
        for node in nodes:
            for pair in node:
                position.setdefault(pair, len(position))
        rests: dict[Node, int] = {}
        lasts: dict[tuple[int, int], int] = {}
        picks = []
        for node in nodes:
            rest = rests.setdefault(node[:-1], len(rests))
            picks.append((rest, lasts.setdefault(node[-1], len(lasts) + 1) if node else 0))
        pick_rest, pick_last = np.array(picks, dtype=np.intp).T
        return cls(
            pairs=list(position),
            zero_of=np.array([position[m, 0] for m, _ in position], dtype=np.intp),
            rests=[[position[pair] for pair in rest] for rest in rests],
            lasts=np.array([position[pair] for pair in lasts], dtype=np.intp),
            pick_rest=pick_rest,
            pick_last=pick_last,
            n_zero=len(varying),
        )

    def tile_sums(self, stack: FloatArray, weight: FloatArray) -> FloatArray:
        """Return the contribution of the pairs of one tile to U(t), shape (n_nodes,).

        ``stack``, shape (len(pairs), n_pairs), holds the S_{m,j}; ``weight`` holds alpha_i alpha_k.
        """
        with np.errstate(all="ignore"):
            out = self._by_ratios(stack, weight)
            if not np.all(np.isfinite(out)):
                bad = np.any(np.abs(stack[: self.n_zero]) < _TOO_SMALL, axis=0)
                if np.any(bad):
                    out = self._by_products(stack[:, bad], weight[bad])
                    if not np.all(bad):
                        out += self._by_ratios(stack[:, ~bad], weight[~bad])
        return out

    def _by_ratios(self, stack: FloatArray, weight: FloatArray) -> FloatArray:
        base = weight * np.multiply.reduce(stack[: self.n_zero], axis=0)
        ratios = np.empty((len(self.lasts) + 1, stack.shape[1]))
        ratios[0] = 1.0
        for target, row in zip(ratios[1:], self.lasts, strict=True):
            np.divide(stack[row], stack[self.zero_of[row]], out=target)
        out = np.empty(len(self.pick_rest))
        block = max(1, TILE_NUMBERS // stack.shape[1])
        for start in range(0, len(self.rests), block):
            check_time()
            rests = self.rests[start : start + block]
            left = np.empty((len(rests), stack.shape[1]))
            for target, rows in zip(left, rests, strict=True):
                target[...] = base
                for row in rows:
                    target *= stack[row]
                    target /= stack[self.zero_of[row]]
            here = (self.pick_rest >= start) & (self.pick_rest < start + len(rests))
            products = left @ ratios.T
            out[here] = products[self.pick_rest[here] - start, self.pick_last[here]]
        return out

    def _by_products(self, stack: FloatArray, weight: FloatArray) -> FloatArray:
        """Return the same without division, by multiplying all factors of each node."""
        out = np.empty(len(self.pick_rest))
        for i, (rest, last) in enumerate(zip(self.pick_rest, self.pick_last, strict=True)):
            chosen = np.arange(self.n_zero)
            rows = [*self.rests[rest], self.lasts[last - 1]] if last > 0 else self.rests[rest]
            for row in rows:
                chosen[self.zero_of[row]] = row
            out[i] = weight @ np.multiply.reduce(stack[chosen], axis=0)
        return out
