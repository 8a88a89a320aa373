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
    """Return the first module of kernels that the device runs with the right results."""
    if importlib.util.find_spec("triton") is None:
        return None
    for name, load in (("Triton with matrix units", _for_matrix_units), ("Triton", _for_any_gpu)):
        try:
            kernels = load(device)
            agree = kernels is not None and kernels_agree(kernels, device)
        except Exception as error:  # no compiler, another Triton, a GPU that it does not know
            _LOG.info("%s is not used on %s: %s", name, device, error)
            continue
        if agree:
            return kernels
        if kernels is not None:
            _LOG.warning("%s computes wrong numbers on %s, and is not used.", name, device)
    _LOG.info("Triton is not used on %s, the plain code of torch is.", device)
    return None


def _for_matrix_units(device: str) -> Any:
    """Return the fastest kernels, or None for a GPU that has no such instruction."""
    from hikernel.engines import triton_matrix_units as kernels

    able = torch.cuda.get_device_capability(device) >= kernels.LEAST_CAPABILITY
    return kernels if able else None


def _for_any_gpu(device: str) -> Any:
    from hikernel.engines import triton_kernels as kernels

    return kernels


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
    # One factor has more than four columns: matrix units take it in two steps.
    factors, constants = [drawn(2, 300), drawn(1, 300), drawn(6, 300)], [0.0, 1.0, 0.5]
    product = torch.ones((300, 300), dtype=torch.float64, device=device)
    for factor, constant in zip(factors, constants, strict=True):
        product *= factor.T @ factor + constant
    parts = [(factors[1], 1.0), (factors[2], 0.5), (factors[0], 0.25)]  # the last is of variable 1
    tiles = [(slice(32, 64), slice(96, 128)), (slice(0, 128), slice(128, 256))]
    for tile in tiles:
        deltas, weight = drawn(2).abs(), drawn((tile[0].stop - tile[0].start) ** 2)
        make = kernels.PairRatios(parts, [0, 1, 1], 2, [1, 0, 2], deltas, 300)
        found_base, found_ratios = make(tile, weight)
        zeros = [
            (factor[:, tile[0]].T @ factor[:, tile[1]] + constant).reshape(-1)
            for factor, constant in parts
        ]
        first, second = zeros[0] + deltas[1], zeros[1] + deltas[0]
        agree &= torch.allclose(found_base, weight * first * second, rtol=1e-12, atol=1e-13)
        expected = torch.stack([zeros[2] / second, torch.ones_like(second)])
        agree &= torch.allclose(found_ratios, expected, rtol=1e-9)
    total, _ = kernels.pair_product_sum(factors, constants)
    return bool(agree) and bool((total - product.sum()).abs() <= 1e-13 * product.abs().sum())
