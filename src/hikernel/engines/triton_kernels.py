"""Kernels in Triton for CUDA GPUs: gathered products, ratios of a tile, sums over all pairs.

They compute in float64, with the formulas of the plain code beside which they stand (``gathered``
in ``torch_features``, ``PlacedPlan`` in ``torch_split``, ``tails``). They save passes through the
memory of the GPU: the plain code writes every factor of every product there.
"""
# Triton compiles functions without types.
# mypy: disallow_untyped_decorators=False
# mypy: disallow_incomplete_defs=False, disallow_untyped_defs=False

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import triton
import triton.language as tl

__all__ = ["OtherFactors", "PairRatios", "gathered_products", "other_factors", "pair_product_sum"]

Tensor = Any

_COLUMNS = 1024
"""Columns of a program of ``gathered_products``."""

_ROWS, _COLUMNS_OF_TILE = 16, 128
"""A tile of pairs: 64 threads hold 32 products each, with 18 loads for 32 multiplications."""

_STRIP = 256
"""Tiles that one program adds up."""


@triton.jit
def _gathered_products(
    table,
    row_stride,
    index,
    base,
    out,
    n_columns,
    N_FACTORS: tl.constexpr,
    HAS_BASE: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.program_id(1).to(tl.int64) * COLUMNS + tl.arange(0, COLUMNS)
    inside = columns < n_columns
    product = tl.full((COLUMNS,), 1.0, tl.float64)
    if HAS_BASE:
        product = tl.load(base + columns, mask=inside, other=0.0)
    for k in tl.static_range(N_FACTORS):
        factor = tl.load(index + row * N_FACTORS + k)
        product *= tl.load(table + factor * row_stride + columns, mask=inside, other=0.0)
    tl.store(out + row * n_columns + columns, product, mask=inside)


def gathered_products(table: Tensor, index: Tensor, base: Tensor | None = None) -> Tensor:
    """Return base_p prod_k table[index[r, k], p], shape (R, P).

    Parameters
    ----------
    table : tensor of shape (T, P)
        The factors; numbers of a row lie beside each other.
    index : tensor of int64 of shape (R, K)
        Rows of the table.
    base : tensor of shape (P,), optional
        One factor more for all of them.
    """
    n_columns = table.shape[1]
    index = index.contiguous()
    out = table.new_empty((len(index), n_columns))
    if out.numel():
        _gathered_products[(len(index), triton.cdiv(n_columns, _COLUMNS))](
            table,
            table.stride(0),
            index,
            table if base is None else base.contiguous(),
            out,
            n_columns,
            N_FACTORS=index.shape[1],
            HAS_BASE=base is not None,
            COLUMNS=_COLUMNS,
        )
    return out


@triton.jit
def _pair_product_sums(
    factors,
    widths,
    constants,
    out,
    n_padded,
    n_factors,
    n_tiles,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    STRIP: tl.constexpr,
):
    i_tile = tl.program_id(0)
    strip = tl.program_id(1)
    i = i_tile * ROWS + tl.arange(0, ROWS)
    within = tl.arange(0, COLUMNS)
    total = tl.sum(tl.zeros((ROWS,), tl.float64))
    first = tl.maximum(i_tile * ROWS // COLUMNS, strip * STRIP)
    last = tl.minimum(n_tiles, (strip + 1) * STRIP)
    for k_tile in range(first, last):
        k = k_tile * COLUMNS + within
        # Pairs above the diagonal stand for those below it, too.
        after = (k[None, :] > i[:, None]).to(tl.float64)
        product = after + (k[None, :] >= i[:, None]).to(tl.float64)
        row = factors
        for f in range(n_factors):
            kernel = tl.zeros((ROWS, COLUMNS), tl.float64) + tl.load(constants + f)
            for _ in range(tl.load(widths + f)):
                kernel += tl.load(row + i)[:, None] * tl.load(row + k)[None, :]
                row += n_padded
            product *= kernel
        total += tl.sum(product)
    tl.store(out + strip.to(tl.int64) * tl.num_programs(0) + i_tile, total)


def pair_product_sum(factors: Sequence[Tensor], constants: Sequence[float]) -> tuple[Tensor, int]:
    """Return sum_ik prod_f (c_f + (F_f F_f')_ik) over all pairs of rows, and a number of additions.

    No term goes through more additions than the second number says, which bounds the rounding
    error.

    Parameters
    ----------
    factors : sequence of tensor of shape (r, n)
        F_f' of every factor f.
    constants : sequence of float
        The c_f.
    """
    n_rows = factors[0].shape[1]
    n_tiles = triton.cdiv(n_rows, _COLUMNS_OF_TILE)
    n_programs = (triton.cdiv(n_rows, _ROWS), triton.cdiv(n_tiles, _STRIP))
    # Rows of zeros fill the last tile: the first factor, which has no constant, makes them nothing.
    parts = list(zip(factors, constants, strict=True))
    rows, widths, added = _stacked(parts, factors[0], n_tiles * _COLUMNS_OF_TILE)
    sums = rows.new_zeros(n_programs[::-1])
    _pair_product_sums[n_programs](
        rows,
        widths,
        added,
        sums,
        rows.shape[1],
        len(factors),
        n_tiles,
        ROWS=_ROWS,
        COLUMNS=_COLUMNS_OF_TILE,
        STRIP=_STRIP,
        num_warps=2,
    )
    additions = _ROWS * _COLUMNS_OF_TILE + _STRIP + sum(n_programs)
    return sums.sum(1).sum(), additions


@triton.jit
def _pair_ratios(
    zeros,
    zero_widths,
    zero_constants,
    deltas,
    others,
    other_widths,
    other_constants,
    n_others,
    places,
    weight,
    base,
    ratios,
    first_row,
    first_column,
    side,
    n_padded,
    n_zero,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    within_i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    within_k = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    inside = (within_i[:, None] < side) & (within_k[None, :] < side)
    i, i_inside = first_row + within_i, within_i < side
    k, k_inside = first_column + within_k, within_k < side
    pair = within_i[:, None] * side + within_k[None, :]
    n_pairs = tl.full((), 1, tl.int64) * side * side
    product = tl.load(weight + pair, mask=inside, other=0.0)
    zero_row, other_row, other = zeros, others, 0
    for f in range(n_zero):
        zero = tl.zeros((ROWS, COLUMNS), tl.float64) + tl.load(zero_constants + f)
        for _ in range(tl.load(zero_widths + f)):
            left = tl.load(zero_row + i, mask=i_inside, other=0.0)
            zero += left[:, None] * tl.load(zero_row + k, mask=k_inside, other=0.0)[None, :]
            zero_row += n_padded
        zero += tl.load(deltas + f)
        product *= zero
        for _ in range(tl.load(n_others + f)):
            kernel = tl.zeros((ROWS, COLUMNS), tl.float64) + tl.load(other_constants + other)
            for _ in range(tl.load(other_widths + other)):
                left = tl.load(other_row + i, mask=i_inside, other=0.0)
                kernel += left[:, None] * tl.load(other_row + k, mask=k_inside, other=0.0)[None, :]
                other_row += n_padded
            row = ratios + tl.load(places + other) * n_pairs
            tl.store(row + pair, kernel / zero, mask=inside)
            other += 1
    tl.store(base + pair, product, mask=inside)


@dataclass(frozen=True)
class OtherFactors:
    """The kernels S_{m,j} that are divided by S_{m,0}, of each variable in turn.

    ``order`` has their numbers, ``counts`` how many a variable has, and ``places`` the rows of the
    ratios they belong to. ``deltas`` are in the order of the S_{m,0}.
    """

    order: list[int]
    counts: Tensor
    places: Tensor
    deltas: Tensor


def other_factors(
    zero_of: Sequence[int], n_zero: int, place: Sequence[int], deltas: Tensor
) -> OtherFactors:
    """Return the order of the kernels; the arguments are those of ``PairRatios``."""
    device = deltas.device
    order = sorted(range(n_zero, len(zero_of)), key=lambda k: int(zero_of[k]))
    counts = [sum(int(zero_of[k]) == f for k in order) for f in range(n_zero)]
    places = [int(place[k]) - n_zero for k in order]
    return OtherFactors(
        order,
        torch.tensor(counts, dtype=torch.int32, device=device),
        torch.tensor(places, dtype=torch.int64, device=device),
        deltas[torch.tensor([int(place[f]) for f in range(n_zero)], device=device)],
    )


class PairRatios:
    """The base and the ratios of tiles of pairs, as ``PlacedPlan.ratios`` makes them.

    Parameters
    ----------
    parts : sequence of (tensor of shape (r, n), float)
        F' and c of every S_{m,j} = c + F F', those of level 0 first.
    zero_of : ndarray of shape (n_pairs,)
        For each S_{m,j}, the position of S_{m,0} of the same variable.
    n_zero : int
        Number of S_{m,0}.
    place : ndarray of shape (n_pairs,)
        Position of each S_{m,j} in the order of the ratios and of ``deltas``.
    deltas : tensor of shape (n_zero,)
        What is added to the S_{m,0}.
    n_padded : int
        Number of rows with rows of zeros at the end.
    """

    def __init__(
        self,
        parts: Sequence[tuple[Tensor, float]],
        zero_of: Sequence[int],
        n_zero: int,
        place: Sequence[int],
        deltas: Tensor,
        n_padded: int,
    ) -> None:
        self._factors = other_factors(zero_of, n_zero, place, deltas)
        self._zeros = _stacked([parts[f] for f in range(n_zero)], deltas, n_padded)
        self._others = _stacked([parts[k] for k in self._factors.order], deltas, n_padded)

    def __call__(self, tile: tuple[slice, slice], weight: Tensor) -> tuple[Tensor, Tensor]:
        """Return the base, shape (P,), and the ratios with a last row of ones."""
        rows, columns = tile
        side = rows.stop - rows.start
        base, factors = torch.empty_like(weight), self._factors
        ratios = weight.new_empty((len(factors.order) + 1, len(weight)))
        ratios[-1] = 1.0
        _pair_ratios[(triton.cdiv(side, _ROWS // 2), triton.cdiv(side, _COLUMNS_OF_TILE))](
            *self._zeros,
            factors.deltas,
            *self._others,
            factors.counts,
            factors.places,
            weight,
            base,
            ratios,
            rows.start,
            columns.start,
            side,
            self._zeros[0].shape[1],
            len(factors.counts),
            ROWS=_ROWS // 2,
            COLUMNS=_COLUMNS_OF_TILE,
            num_warps=2,
        )
        return base, ratios


def _stacked(
    parts: Sequence[tuple[Tensor, float]], like: Tensor, n_padded: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the factors below each other, with rows of zeros; their widths; their constants."""
    widths = [len(factor) for factor, _ in parts]
    rows = like.new_zeros((max(1, sum(widths)), n_padded))
    start = 0
    for factor, _ in parts:
        rows[start : start + len(factor), : factor.shape[1]] = factor
        start += len(factor)
    constants = torch.tensor([c for _, c in parts], dtype=torch.float64, device=like.device)
    return rows, torch.tensor(widths, dtype=torch.int32, device=like.device), constants
