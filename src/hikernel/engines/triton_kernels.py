"""Two kernels in Triton for CUDA GPUs: gathered products, and the sum over all pairs of rows.

Both compute in float64, with the formulas of the plain code beside which they stand (``gathered``
in ``torch_features``, ``tails``). They save passes through the memory of the GPU: the plain code
writes every factor of every product there.
"""
# Triton compiles functions without types.
# mypy: disallow_untyped_decorators=False
# mypy: disallow_incomplete_defs=False, disallow_untyped_defs=False

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import triton
import triton.language as tl

__all__ = ["gathered_products", "pair_product_sum"]

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
    widths = [len(factor) for factor in factors]
    # Rows of zeros fill the last tile: the first factor, which has no constant, makes them nothing.
    rows = factors[0].new_zeros((sum(widths), n_tiles * _COLUMNS_OF_TILE))
    start = 0
    for factor in factors:
        rows[start : start + len(factor), :n_rows] = factor
        start += len(factor)
    sums = rows.new_zeros(n_programs[::-1])
    _pair_product_sums[n_programs](
        rows,
        torch.tensor(widths, dtype=torch.int32, device=rows.device),
        torch.tensor(constants, dtype=torch.float64, device=rows.device),
        sums,
        rows.shape[1],
        len(widths),
        n_tiles,
        ROWS=_ROWS,
        COLUMNS=_COLUMNS_OF_TILE,
        STRIP=_STRIP,
        num_warps=2,
    )
    additions = _ROWS * _COLUMNS_OF_TILE + _STRIP + sum(n_programs)
    return sums.sum(1).sum(), additions
