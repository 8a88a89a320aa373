"""Values of many kernels S = F F' on a device: for tiles of pairs of rows, draws, and the diagonal.

Kernels whose factors have equally many columns are computed by one batched product.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from hikernel.engines.protocol import FloatArray
from hikernel.engines.sketch import draw_signs
from hikernel.engines.torch_device import TorchDevice
from hikernel.engines.torch_features import to_device

__all__ = [
    "FactorStack",
    "contracted",
    "device_factor",
    "drawn_signs",
    "part_length",
    "square_side",
]

Tensor = Any


def device_factor(levels: Sequence[Tensor | None], scales: FloatArray, ones: Tensor) -> Tensor:
    """Return F', shape (r, n), with F F' = sum_l scales_l k_l; a level None is constant one."""
    rows = [
        float(np.sqrt(scale)) * (ones if block is None else block)
        for block, scale in zip(levels, scales, strict=True)
        if scale > 0.0
    ]
    return torch.cat(rows) if rows else ones[:0]


def square_side(n_rows: int, n_numbers: int, per_pair: int) -> int:
    """Return the side of a tile of pairs: a power of two, at least 16.

    Parameters
    ----------
    n_rows : int
        Number of rows; there is no use in a side of more than twice as many.
    n_numbers : int
        Numbers that a tile may take.
    per_pair : int
        Numbers that are kept for every pair.

    >>> square_side(5000, 2**26, 64), square_side(20, 2**26, 64), square_side(5000, 1, 64)
    (1024, 32, 16)
    """
    most = max(1.0, np.sqrt(n_numbers / per_pair))
    side = min(2 ** int(np.log2(most)), 2 ** int(np.ceil(np.log2(max(1, n_rows)))))
    return int(max(16, side))


def part_length(n_pairs: int) -> int:
    """Return how many of the pairs of a tile are added up in one part: the root of a power of four.

    The rounding error of a sum of parts grows with the length of a part and the number of parts,
    which then are equal.

    >>> part_length(1024**2)
    1024
    """
    return math.isqrt(n_pairs)


def contracted(left: Tensor, right: Tensor, length: int) -> Tensor:
    """Return sum_p left_ap right_bp by parts, shape (P / length, A, B).

    A sum over few rows of millions of numbers would keep little of a GPU busy; and sums of sums
    have smaller rounding errors.

    Parameters
    ----------
    left, right : tensors of shape (A, P) and (B, P)
        Contiguous.
    length : int
        Numbers p in a part; it divides P.
    """
    parts = left.view(len(left), -1, length).transpose(0, 1)
    return torch.bmm(parts, right.view(len(right), -1, length).permute(1, 2, 0))


class FactorStack:
    """Factors F' of shape (r, n) of several kernels, those of equal r together.

    Parameters
    ----------
    factors : sequence of tensor of shape (r, n)
        One per kernel.
    n_first : int
        Number of kernels that must come first in the stack, in any order.
    n_padded : int, optional
        Number of rows with rows of zeros at the end; n by default.

    Attributes
    ----------
    place : ndarray of shape (n_kernels,)
        Position of each kernel in the stack.
    widths : list of int
        r of each kernel.
    n_padded : int
        Number of rows with the rows of zeros.
    """

    def __init__(
        self, factors: Sequence[Tensor], n_first: int = 0, n_padded: int | None = None
    ) -> None:
        groups: dict[tuple[bool, int], list[int]] = {}
        for k, factor in enumerate(factors):
            groups.setdefault((k >= n_first, len(factor)), []).append(k)
        ordered = [groups[key] for key in sorted(groups)]
        order = [k for group in ordered for k in group]
        self.place: NDArray[np.intp] = np.empty(len(order), dtype=np.intp)
        self.place[order] = np.arange(len(order))
        self._members = ordered
        self._groups = [_padded([factors[k] for k in group], n_padded) for group in ordered]
        self._n_rows = factors[0].shape[1]
        self.n_padded = self._n_rows if n_padded is None else n_padded
        self.widths = [len(factor) for factor in factors]

    @property
    def widest(self) -> int:
        """The largest r."""
        return max(self.widths)

    def __len__(self) -> int:
        return len(self.place)

    def pairs(self, rows: slice, columns: slice, spare: int = 0) -> Tensor:
        """Return S(x_i, x_k) for a tile of pairs, shape (n_kernels + spare, pairs).

        Rows that are ``spare`` come last and are left as they are.
        """
        n_pairs = (rows.stop - rows.start, columns.stop - columns.start)
        out = self._groups[0].new_empty((len(self) + spare, *n_pairs))
        start = 0
        for group in self._groups:
            left, right = group[:, :, rows].transpose(1, 2), group[:, :, columns]
            torch.bmm(left, right, out=out[start : start + len(group)])
            start += len(group)
        return out.view(len(out), -1)

    def diagonal(self, rows: slice | None = None) -> Tensor:
        """Return S(x_i, x_i) for some rows i, all by default, shape (n_kernels, rows)."""
        some = slice(0, self._n_rows) if rows is None else rows
        return torch.cat([group[:, :, some].square().sum(1) for group in self._groups])

    def products(self, signs: Sequence[Tensor], rows: slice) -> Tensor:
        """Return F times the signs of every draw, shape (n_kernels, draws, number of rows).

        ``signs`` has a tensor of shape (draws, r) for each factor.
        """
        return torch.cat(
            [
                torch.bmm(torch.stack([signs[k] for k in members]), group[:, :, rows])
                for members, group in zip(self._members, self._groups, strict=True)
            ]
        )


def _padded(factors: list[Tensor], n_padded: int | None) -> Tensor:
    """Return factors of one shape as one tensor, with zeros for the rows that are not there."""
    if n_padded is None or n_padded == factors[0].shape[1]:
        return torch.stack(factors)
    width, n_rows = factors[0].shape
    out = factors[0].new_zeros((len(factors), width, n_padded))
    for target, factor in zip(out, factors, strict=True):
        target[:, :n_rows] = factor
    return out


def drawn_signs(
    widths: Sequence[int], outputs: Tensor, numbers: range, seed: int, device: TorchDevice
) -> tuple[list[Tensor], Tensor]:
    """Return the signs of some draws, and the weights of the rows, shape (draws, n).

    They are those of ``sketch.run_draws``, so that draws do not depend on the engine. ``outputs``,
    shape (k, n), is on the device: there are as many weights as rows and draws.
    """
    drawn = [draw_signs(seed, number, widths, len(outputs)) for number in numbers]
    # One array for all factors is sent, and cut there.
    rows = [np.concatenate([by_factor[k] for k in range(len(widths))]) for by_factor, _ in drawn]
    signs = to_device(np.array(rows), device).split(list(widths), dim=1)
    of_outputs = to_device(np.array([signs_of_outputs for _, signs_of_outputs in drawn]), device)
    return list(signs), of_outputs @ outputs
