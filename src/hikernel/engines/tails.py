"""Descendant sums U(t) over pairs of rows, in tiles, by matrix products.

For every node t asked for,

    U(t) = sum_{i,k} alpha_i alpha_k prod_m S_{m,t_m}(x_i, x_k),
    S_{m,j}(x, x') = sum_{l >= j} scales_m[j, l] k_{m,l}(x, x').

Per tile of pairs the product over all variables at level 0, W = alpha_i alpha_k prod_m S_{m,0},
is formed once. A node t = rest + (m, j) then costs one entry of the matrix product

    (W * prod_{rest} ratio) @ ratio',      ratio_{m,j} = S_{m,j} / S_{m,0}.

Dividing loses nothing: the same computed number S_{m,0} is multiplied in and divided out again,
so every term of the sum keeps full relative accuracy however small S_{m,0} is. Only where it
vanishes (or nearly underflows) is the product taken without division, by prefix and suffix
products. Nothing of size n x n is stored.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from hikernel.engines.protocol import FloatArray, Node

__all__ = ["TailSummer"]

_TILE_NUMBERS = 2**20
"""Numbers in the largest array of a tile (8 MiB)."""

_VANISHING = 1e-60
"""S_{m,0} below this fraction of the largest S_{m,j} of the tile is not divided by."""


class TailSummer:
    """Sums over all descendants, for one set of rows and one set of weights.

    Parameters
    ----------
    variables : sequence of sequence of (ndarray of shape (n, r) or None)
        Level features per variable; None stands for a level that is identically one.
    scales : sequence of ndarray of shape (q_m + 1, q_m + 1)
        ``scales[m][j, l]``, zero for l < j.
    """

    def __init__(
        self,
        variables: Sequence[Sequence[FloatArray | None]],
        scales: Sequence[FloatArray],
    ) -> None:
        # A variable whose only level is the constant one multiplies every term by scales[0, 0].
        self._constant = 1.0
        self._variables: list[Sequence[FloatArray | None]] = []
        self._scales: list[FloatArray] = []
        self._first_row: list[int] = []  # row of (m, 0) in the stacked S of a tile
        self._position: dict[int, int] = {}
        n_rows = 0
        for m, (levels, scale) in enumerate(zip(variables, scales, strict=True)):
            if len(levels) == 1 and levels[0] is None:
                self._constant *= float(scale[0, 0])
                continue
            self._position[m] = len(self._variables)
            self._variables.append(levels)
            self._scales.append(scale)
            self._first_row.append(n_rows)
            n_rows += len(levels)
        self._n_stacked = n_rows

    def sums(self, nodes: Sequence[Node], alpha: FloatArray) -> FloatArray:
        """Return U(t) for the nodes, shape (len(nodes),); infinity where a sum overflows."""
        plan = _Plan(nodes, self)
        total = np.zeros(len(nodes))
        if not nodes:
            return total
        with np.errstate(over="ignore", invalid="ignore", under="ignore", divide="ignore"):
            if not self._variables:
                return np.full(len(nodes), self._constant * float(np.sum(alpha)) ** 2)
            for rows, cols in self._tiles(len(alpha)):
                weight = np.outer(alpha[rows], alpha[cols])
                if rows.start != cols.start:
                    weight *= 2.0  # the tile below the diagonal
                total += plan.tile_sums(self._stack(rows, cols), weight.ravel())
            total *= self._constant
        total[~np.isfinite(total)] = np.inf
        # A sum of squares; rounding can leave a tiny negative number.
        return np.maximum(total, 0.0)

    def row_of(self, variable: int, level: int) -> int:
        """Return the row of S_{variable,level} in the stacked tile."""
        return self._first_row[self._position[variable]] + level

    @property
    def level_zero_rows(self) -> list[int]:
        """Rows of S_{m,0} in the stacked tile, one per variable that varies."""
        return self._first_row

    @property
    def rows_per_variable(self) -> list[int]:
        """Number of stacked rows of each variable that varies."""
        return [len(levels) for levels in self._variables]

    def _tiles(self, n: int) -> Iterator[tuple[slice, slice]]:
        """Cut the pairs i <= k into square tiles."""
        side = max(16, min(n, int(np.sqrt(_TILE_NUMBERS / max(1, self._n_stacked)))))
        cuts = [slice(s, min(s + side, n)) for s in range(0, n, side)]
        for i, rows in enumerate(cuts):
            for cols in cuts[i:]:
                yield rows, cols

    def _stack(self, rows: slice, cols: slice) -> FloatArray:
        """Return S_{m,j} for all m, j on a tile, shape (sum of q_m + 1, pairs)."""
        n_pairs = (rows.stop - rows.start) * (cols.stop - cols.start)
        out = np.empty((self._n_stacked, n_pairs))
        for levels, scale, start in zip(
            self._variables, self._scales, self._first_row, strict=True
        ):
            kernels = np.empty((len(levels), n_pairs))
            for j, block in enumerate(levels):
                if block is None:
                    kernels[j] = 1.0
                else:
                    kernels[j] = (block[rows] @ block[cols].T).ravel()
            np.matmul(scale, kernels, out=out[start : start + len(levels)])
        return out


class _Plan:
    """Which matrix products give the nodes: t = rest + (m, j), rests and (m, j) listed once."""

    def __init__(self, nodes: Sequence[Node], summer: TailSummer) -> None:
        self._zero_rows = np.array(summer.level_zero_rows, dtype=np.intp)
        self._per_variable = summer.rows_per_variable
        rests: dict[Node, int] = {}
        lasts: dict[tuple[int, int], int] = {}
        self._pick_rest = np.empty(len(nodes), dtype=np.intp)
        self._pick_last = np.empty(len(nodes), dtype=np.intp)
        for i, node in enumerate(nodes):
            rest, last = (node[:-1], node[-1]) if node else ((), None)
            self._pick_rest[i] = rests.setdefault(rest, len(rests))
            # The root alone has no last factor: column 0 of the ratios is all ones.
            self._pick_last[i] = 0 if last is None else lasts.setdefault(last, len(lasts) + 1)
        self._rest_rows = [[summer.row_of(m, j) for m, j in rest] for rest in rests]
        self._last_rows = np.array([summer.row_of(m, j) for m, j in lasts], dtype=np.intp)
        self._node_rows = [[summer.row_of(m, j) for m, j in node] for node in nodes]
        self._variable_of = np.repeat(np.arange(len(self._per_variable)), self._per_variable)

    def tile_sums(self, stack: FloatArray, weight: FloatArray) -> FloatArray:
        """Return the part of U(t) that the pairs of one tile contribute."""
        vanishing = self._vanishing_pairs(stack)
        if vanishing is None:
            return self._by_ratios(stack, weight)
        out = self._by_products(stack[:, vanishing], weight[vanishing])
        if not np.all(vanishing):
            out += self._by_ratios(stack[:, ~vanishing], weight[~vanishing])
        return out

    def _vanishing_pairs(self, stack: FloatArray) -> NDArrayBool | None:
        """Return the pairs whose S_{m,0} must not be divided by, or None if there are none."""
        zero_level = np.abs(stack[self._zero_rows])
        largest_of_tile = max(float(stack.max()), -float(stack.min()))
        if float(zero_level.min()) > _VANISHING * largest_of_tile:
            return None
        largest = np.maximum.reduceat(np.abs(stack), self._zero_rows, axis=0)
        bad = np.any(zero_level <= _VANISHING * largest, axis=0)
        return bad if np.any(bad) else None

    def _by_ratios(self, stack: FloatArray, weight: FloatArray) -> FloatArray:
        zero_level = stack[self._zero_rows]
        base = weight * np.multiply.reduce(zero_level, axis=0)
        ratios = np.empty((len(self._last_rows) + 1, stack.shape[1]))
        ratios[0] = 1.0
        np.divide(
            stack[self._last_rows],
            zero_level[self._variable_of[self._last_rows]],
            out=ratios[1:],
        )
        left = np.empty((len(self._rest_rows), stack.shape[1]))
        for target, rows in zip(left, self._rest_rows, strict=True):
            target[...] = base
            for row in rows:
                target *= stack[row]
                target /= zero_level[self._variable_of[row]]
        products: FloatArray = left @ ratios.T
        return products[self._pick_rest, self._pick_last]

    def _by_products(self, stack: FloatArray, weight: FloatArray) -> FloatArray:
        """Return the same without division: each node's factors multiplied one by one."""
        out = np.empty(len(self._node_rows))
        for i, rows in enumerate(self._node_rows):
            chosen = self._zero_rows.copy()
            for row in rows:
                chosen[self._variable_of[row]] = row
            out[i] = weight @ np.multiply.reduce(stack[chosen], axis=0)
        return out


NDArrayBool = np.ndarray[tuple[int], np.dtype[np.bool_]]
