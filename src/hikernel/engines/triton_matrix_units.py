"""Kernels in Triton for GPUs whose matrix units multiply in float64: Hopper and later.

They compute what ``pair_product_sum`` and ``PairRatios`` of ``triton_kernels`` compute, in the same
arithmetic. The matrix units take products F_f F_f' of 16 x 4 by 4 x 8 numbers, so that only the
multiplication of the factors with each other is left to the rest of the chip. Triton's own product
of matrices wants 16 columns, where a factor has four; so the instruction itself is written here.

A warp holds a tile of 32 x 32 pairs, a thread 32 of them, one in each of 32 tensors. Lane l of a
warp has, of the 16 x 8 pairs of one instruction, the rows l // 4 and l // 4 + 8 and the columns
2 (l % 4) and 2 (l % 4) + 1. Of the factors, it has column l % 4 of the rows l // 4 and l // 4 + 8
on one side and of the row l // 4 on the other.
"""
# Triton compiles functions without types.
# mypy: disallow_untyped_decorators=False
# mypy: disallow_incomplete_defs=False, disallow_untyped_defs=False

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import torch
import triton
import triton.language as tl

from hikernel.engines.triton_kernels import gathered_products, other_factors

__all__ = ["LEAST_CAPABILITY", "PairRatios", "gathered_products", "pair_product_sum"]

Tensor = Any

LEAST_CAPABILITY = (9, 0)
"""Compute capability from which on GPUs have the instruction."""

_CHUNK = 4
"""Columns of a factor that one instruction takes."""

_SIDE = 64
"""Side of the tile of a program: two by two warps."""

_STRIP = 256
"""Tiles that one program adds up."""


def _products(n_starts: int) -> str:
    """Return the eight instructions of a warp's tile: 32 outputs, 8 fragments, and the starts.

    There is one start for all outputs (a constant), or one for each (a sum so far).
    """
    lines = []
    for rows in range(2):
        for columns in range(4):
            first = 4 * (4 * rows + columns)
            ends = [f"${first + r}" for r in range(4)]
            starts = [f"${40 + (first + r) % n_starts}" for r in range(4)]
            lines.append(
                "mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 "
                f"{{{', '.join(ends)}}}, {{${32 + 2 * rows}, ${33 + 2 * rows}}}, "
                f"{{${36 + columns}}}, {{{', '.join(starts)}}};"
            )
    return "\n".join(lines)


def _each(instruction: str) -> str:
    """Return an instruction for 32 outputs, whose operands are the next 32, and the next."""
    return "\n".join(
        instruction.format(out=f"${j}", left=f"${32 + j}", right=f"${64 + j}", same="$64")
        for j in range(32)
    )


def _inverses() -> str:
    """Return 32 inverses, rounded once more than a quotient, without a branch.

    Each of two Newton steps doubles the 20 bits of the first guess. Zero ends as NaN: no bound.
    """
    lines = ["{", ".reg .f64 inverse, rest, minus;"]
    for j in range(32):
        lines += [
            f"rcp.approx.ftz.f64 inverse, ${32 + j};",
            f"neg.f64 minus, ${32 + j};",
            "fma.rn.f64 rest, minus, inverse, 0d3FF0000000000000;",
            "fma.rn.f64 inverse, inverse, rest, inverse;",
            "fma.rn.f64 rest, minus, inverse, 0d3FF0000000000000;",
            f"fma.rn.f64 ${j}, inverse, rest, inverse;",
        ]
    return "\n".join([*lines, "}"])


def _operands(outputs: str, n_inputs: int) -> str:
    return ",".join([outputs] * 32 + ["d"] * n_inputs)


def _times_products() -> str:
    """Return the instructions that multiply 32 numbers with c + F F' of a factor of one chunk."""
    text, lines = _products(1), ["{", ".reg .f64 kernel<4>;"]
    for part, line in enumerate(text.splitlines()):
        ends = ", ".join(f"${4 * part + r}" for r in range(4))
        line = line.replace(f"{{{ends}}}", "{kernel0, kernel1, kernel2, kernel3}", 1)
        # The 32 numbers come before the fragments.
        lines.append(re.sub(r"\$(\d+)", lambda found: f"${int(found[1]) + 32}", line))
        lines += [f"mul.rn.f64 ${4 * part + r}, ${32 + 4 * part + r}, kernel{r};" for r in range(4)]
    return "\n".join([*lines, "}"])


# Outputs of several instructions must not share registers with their inputs.
_FIRST, _FIRST_OPERANDS = tl.constexpr(_products(1)), tl.constexpr(_operands("=&d", 9))
_MORE, _MORE_OPERANDS = tl.constexpr(_products(32)), tl.constexpr(_operands("=&d", 40))
_FUSED, _FUSED_OPERANDS = tl.constexpr(_times_products()), tl.constexpr(_operands("=&d", 41))
_TIMES = tl.constexpr(_each("mul.rn.f64 {out}, {left}, {right};"))
_TIMES_OPERANDS = tl.constexpr(_operands("=&d", 64))
_PLUS = tl.constexpr(_each("add.rn.f64 {out}, {left}, {same};"))
_PLUS_OPERANDS = tl.constexpr(_operands("=&d", 33))
_INVERSE = tl.constexpr(_inverses())
_INVERSE_OPERANDS = tl.constexpr(_operands("=&d", 32))
_NUMBERS = tl.constexpr((tl.float64,) * 32)


@triton.jit
def _fragments(row_i, row_k, AT: tl.constexpr):
    # Fragments of the columns lie at (0, 0, 0, 0) and further steps of ``AT``.
    return (
        tl.load(row_i),
        tl.load(row_i + 32),
        tl.load(row_i + 64),
        tl.load(row_i + 96),
        tl.load(row_k),
        tl.load(row_k + AT),
        tl.load(row_k + 2 * AT),
        tl.load(row_k + 3 * AT),
    )


@triton.jit
def _kernel(row_i, row_k, stride, n_chunks, constant, AT: tl.constexpr, ONE: tl.constexpr):
    """Return c + F F' of a tile, and the rows of the next factor."""
    first = _fragments(row_i, row_k, AT) + (constant,)
    sums = tl.inline_asm_elementwise(
        _FIRST, _FIRST_OPERANDS, first, dtype=_NUMBERS, is_pure=True, pack=1
    )
    row_i += stride
    row_k += stride
    if not ONE:
        for _ in range(1, n_chunks):
            more = _fragments(row_i, row_k, AT) + sums
            sums = tl.inline_asm_elementwise(
                _MORE, _MORE_OPERANDS, more, dtype=_NUMBERS, is_pure=True, pack=1
            )
            row_i += stride
            row_k += stride
    return sums, row_i, row_k


@triton.jit
def _times(left, right):
    return tl.inline_asm_elementwise(
        _TIMES, _TIMES_OPERANDS, left + right, dtype=_NUMBERS, is_pure=True, pack=1
    )


@triton.jit
def _pair_product_sums(
    factors,
    chunks,
    constants,
    out,
    n_padded,
    n_factors,
    n_tiles,
    STRIP: tl.constexpr,
    ONE: tl.constexpr,
):
    i_tile = tl.program_id(0)
    strip = tl.program_id(1)
    thread = tl.arange(0, 128)
    lane = thread % 32
    warp = thread // 32
    # Rows are four numbers long, so that fragments of rows lie in the order of the lanes.
    at_i = (i_tile * 64 + (warp % 2) * 32) * 4 + lane
    at_k = (warp // 2) * 32 * 4 + lane
    total = tl.zeros((128,), tl.float64)
    one = tl.full((128,), 1.0, tl.float64)
    first = tl.maximum(i_tile, strip * STRIP)
    last = tl.minimum(n_tiles, (strip + 1) * STRIP)
    for k_tile in range(first, last):
        row_i = factors + at_i
        row_k = factors + k_tile * 256 + at_k
        product = (one,) * 32
        for f in range(n_factors):
            constant = tl.load(constants + f)
            if ONE:
                some = product + _fragments(row_i, row_k, 32) + (constant,)
                product = tl.inline_asm_elementwise(
                    _FUSED, _FUSED_OPERANDS, some, dtype=_NUMBERS, is_pure=True, pack=1
                )
                row_i += n_padded * 4
                row_k += n_padded * 4
            else:
                kernel, row_i, row_k = _kernel(
                    row_i, row_k, n_padded * 4, tl.load(chunks + f), constant, 32, ONE
                )
                product = _times(product, kernel)
        of_tile = product[0]
        for j in tl.static_range(1, 32):
            of_tile += product[j]
        # Tiles above the diagonal stand for those below it, too.
        total += tl.where(k_tile > i_tile, 2.0, 1.0) * of_tile
    tl.store(out + strip.to(tl.int64) * tl.num_programs(0) + i_tile, tl.sum(total))


def pair_product_sum(factors: Sequence[Tensor], constants: Sequence[float]) -> tuple[Tensor, int]:
    """Return sum_ik prod_f (c_f + (F_f F_f')_ik) over all pairs of rows, and a number of additions.

    Arguments and results are those of ``triton_kernels.pair_product_sum``.
    """
    n_tiles = triton.cdiv(factors[0].shape[1], _SIDE)
    n_programs = (n_tiles, triton.cdiv(n_tiles, _STRIP))
    # Rows of zeros fill the last tile: the first factor, which has no constant, makes them nothing.
    parts = list(zip(factors, constants, strict=True))
    rows, chunks, added = _in_chunks(parts, factors[0], n_tiles * _SIDE)
    sums = rows.new_zeros(n_programs[::-1])
    _pair_product_sums[n_programs](
        rows,
        chunks,
        added,
        sums,
        rows.shape[1],
        len(parts),
        n_tiles,
        STRIP=_STRIP,
        ONE=len(rows) == len(parts),
        num_warps=4,
    )
    additions = 32 + 128 + _STRIP + sum(n_programs)
    return sums.sum(1).sum(), additions


@triton.constexpr_function
def _down(j):
    """Rows from the first pair of a thread to its pair j."""
    return (j // 16) * 16 + (j % 4 // 2) * 8


@triton.constexpr_function
def _right(j):
    """Columns from the first pair of a thread to its pair j."""
    return (j % 2) * 16 + (j // 4 % 4) * 4


@triton.jit
def _pair_ratios(
    zeros,
    zero_chunks,
    zero_constants,
    deltas,
    others,
    other_chunks,
    other_constants,
    n_others,
    places,
    weight,
    base,
    ratios,
    first_row,
    first_column,
    n_padded,
    n_zero,
    SIDE: tl.constexpr,
    ONE: tl.constexpr,
):
    thread = tl.arange(0, 128)
    lane = thread % 32
    warp = thread // 32
    tile_i = tl.program_id(0) * 64 + (warp % 2) * 32
    tile_k = tl.program_id(1) * 64 + (warp // 2) * 32
    # Column n of the product t is column 16 (n % 2) + 4 t + n // 2 of the tile: so the four lanes
    # of a row write four numbers beside each other.
    n = lane // 4
    at_i = (first_row + tile_i) * 4 + lane
    at_k = (first_column + tile_k + 16 * (n % 2) + n // 2) * 4 + lane % 4
    i = tile_i + lane // 4
    k = tile_k + lane % 4
    pair = i * SIDE + k
    n_pairs = tl.full((), SIDE, tl.int64) * SIDE
    zero_i = zeros + at_i
    zero_k = zeros + at_k
    other_i = others + at_i
    other_k = others + at_k
    one = tl.full((128,), 1.0, tl.float64)
    product = (one,) * 32
    other = 0
    for f in range(n_zero):
        constant = tl.load(zero_constants + f)
        zero, zero_i, zero_k = _kernel(
            zero_i, zero_k, n_padded * 4, tl.load(zero_chunks + f), constant, 16, ONE
        )
        some = zero + (tl.load(deltas + f),)
        zero = tl.inline_asm_elementwise(
            _PLUS, _PLUS_OPERANDS, some, dtype=_NUMBERS, is_pure=True, pack=1
        )
        product = _times(product, zero)
        inverse = tl.inline_asm_elementwise(
            _INVERSE, _INVERSE_OPERANDS, zero, dtype=_NUMBERS, is_pure=True, pack=1
        )
        for _ in range(tl.load(n_others + f)):
            kernel, other_i, other_k = _kernel(
                other_i,
                other_k,
                n_padded * 4,
                tl.load(other_chunks + other),
                tl.load(other_constants + other),
                16,
                ONE,
            )
            ratio = _times(kernel, inverse)
            row = ratios + tl.load(places + other) * n_pairs + pair
            for j in tl.static_range(32):
                here = row + (_down(j) * SIDE + _right(j))
                if SIDE % 64 == 0:
                    tl.store(here, ratio[j])
                else:
                    inside = (i + _down(j) < SIDE) & (k + _right(j) < SIDE)
                    tl.store(here, ratio[j], mask=inside)
            other += 1
    for j in tl.static_range(32):
        inside = (i + _down(j) < SIDE) & (k + _right(j) < SIDE)
        here = pair + (_down(j) * SIDE + _right(j))
        weights = tl.load(weight + here, mask=inside, other=0.0)
        tl.store(base + here, weights * product[j], mask=inside)


class PairRatios:
    """The base and the ratios of tiles of pairs, as ``triton_kernels.PairRatios`` computes them.

    A quotient is the product with the rounded inverse here, which is one rounding more.
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
        # A tile may end beyond the last row.
        n_rows = n_padded + _SIDE
        self._zeros = _in_chunks([parts[f] for f in range(n_zero)], deltas, n_rows)
        self._others = _in_chunks([parts[k] for k in self._factors.order], deltas, n_rows)

    def __call__(self, tile: tuple[slice, slice], weight: Tensor) -> tuple[Tensor, Tensor]:
        """Return the base, shape (P,), and the ratios with a last row of ones."""
        rows, columns = tile
        side = rows.stop - rows.start
        base, factors = torch.empty_like(weight), self._factors
        ratios = weight.new_empty((len(factors.order) + 1, len(weight)))
        ratios[-1] = 1.0
        _pair_ratios[(triton.cdiv(side, _SIDE), triton.cdiv(side, _SIDE))](
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
            self._zeros[0].shape[1],
            len(factors.counts),
            SIDE=side,
            ONE=len(self._zeros[0]) == len(self._zeros[1])
            and len(self._others[0]) == len(self._others[1]),
            num_warps=4,
        )
        return base, ratios


def _in_chunks(
    parts: Sequence[tuple[Tensor, float]], like: Tensor, n_padded: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Return factors in chunks of four columns, shape (chunks, n_padded, 4), filled with zeros.

    Behind them, how many chunks each factor has, one at least, and the constants.
    """
    counts = [max(1, triton.cdiv(len(factor), _CHUNK)) for factor, _ in parts]
    out = like.new_zeros((max(1, sum(counts)), n_padded, _CHUNK))
    start = 0
    for (factor, _), count in zip(parts, counts, strict=True):
        for chunk, first in enumerate(range(0, len(factor), _CHUNK)):
            some = factor[first : first + _CHUNK]
            out[start + chunk, : some.shape[1], : len(some)] = some.T
        start += count
    constants = torch.tensor([c for _, c in parts], dtype=torch.float64, device=like.device)
    return out, torch.tensor(counts, dtype=torch.int32, device=like.device), constants
