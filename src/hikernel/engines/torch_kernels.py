"""Whether the kernels in Triton can be used: they are tried once against the plain code.

Triton compiles on the machine where it runs, which needs a GPU and a C compiler, and this code is
run by releases of it that its tests have not seen. Whatever is wrong, the plain code is right.
"""

from __future__ import annotations

import importlib.util
import logging
from functools import cache
from typing import Any

import torch

__all__ = ["kernels_agree", "triton_kernels"]

Tensor = Any

_LOG = logging.getLogger("hikernel")


def triton_kernels(table: Tensor) -> Any:
    """Return the module of kernels for a tensor's device, or None for the plain code."""
    return _tried(str(table.device)) if table.is_cuda else None


@cache
def _tried(device: str) -> Any:
    if importlib.util.find_spec("triton") is None:
        return None
    try:
        from hikernel.engines import triton_kernels as kernels

        agree = kernels_agree(kernels, device)
    except Exception as error:  # no compiler, another Triton, a GPU that it does not know
        _LOG.info("Triton is not used on %s, the plain code of torch is: %s", device, error)
        return None
    if not agree:
        _LOG.warning(
            "Triton computes wrong numbers on %s: the plain code of torch is used.", device
        )
    return kernels if agree else None


def kernels_agree(kernels: Any, device: str) -> bool:
    """Return whether the kernels give the numbers of plain products, on a few hundred rows."""
    generator = torch.Generator().manual_seed(0)

    def drawn(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float64).to(device)

    table, base = drawn(7, 1300), drawn(1000)
    index = torch.tensor([[0, 1, 6], [3, 3, 2]], device=device)
    some = table[:, 150:1150]
    expected = some[index[:, 0]] * some[index[:, 1]] * some[index[:, 2]]
    found = kernels.gathered_products(some, index)
    agree = torch.allclose(found, expected, rtol=1e-14)
    found = kernels.gathered_products(some, index, base)
    agree &= torch.allclose(found, expected * base, rtol=1e-14)
    factors, constants = [drawn(2, 300), drawn(1, 300), drawn(3, 300)], [0.0, 1.0, 0.5]
    product = torch.ones((300, 300), dtype=torch.float64, device=device)
    for factor, constant in zip(factors, constants, strict=True):
        product *= factor.T @ factor + constant
    parts = [(factors[1], 1.0), (factors[2], 0.5), (factors[0], 0.25)]  # the last is of variable 1
    deltas, weight = drawn(2).abs(), drawn(32 * 32)
    make = kernels.PairRatios(parts, [0, 1, 1], 2, [1, 0, 2], deltas, 300)
    found_base, found_ratios = make((slice(32, 64), slice(96, 128)), weight)
    zeros = [
        (factor[:, 32:64].T @ factor[:, 96:128] + constant).view(-1) for factor, constant in parts
    ]
    first, second = zeros[0] + deltas[1], zeros[1] + deltas[0]
    agree &= torch.allclose(found_base, weight * first * second, rtol=1e-12, atol=1e-13)
    expected = torch.stack([zeros[2] / second, torch.ones_like(second)])
    agree &= torch.allclose(found_ratios, expected, rtol=1e-9)
    total, _ = kernels.pair_product_sum(factors, constants)
    return bool(agree) and bool((total - product.sum()).abs() <= 1e-13 * product.abs().sum())
