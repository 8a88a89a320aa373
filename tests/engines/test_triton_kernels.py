"""The Triton kernels in Triton's interpreter, which needs no GPU; and what is done without them.

Triton is not among the requirements of the tests. ``pip install triton`` brings it where it is
wanted: torch with CUDA has it.
"""

from __future__ import annotations

import importlib.util
import logging
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest
import torch

from hikernel.engines import torch_kernels

IN_THE_INTERPRETER = """
import itertools
import numpy as np
from engines.cases import make_engine
from hikernel.engines import NumpyEngine, torch_features, torch_kernels, torch_tails, triton_kernels
from hikernel.engines.torch_device import TorchType

assert torch_kernels.kernels_agree(triton_kernels, "cpu")
calls = []
for module in (torch_features, torch_tails):
    module.triton_kernels = lambda table: calls.append(table) or triton_kernels
widths = ((1, 1, 1), (1, 1, 3), (1, 2), (1, 1))
for constant, alpha_shape in [((True,) * 4, (150,)), ((False, True, False, True), (150, 2))]:
    made = [make_engine(kind, n=150, widths=widths, constant=constant)
            for kind in (NumpyEngine, TorchType("torch:cpu"))]
    grid, (ours, theirs) = made[0][3], (engine for engine, *_ in made)
    alpha = np.random.default_rng(1).standard_normal(alpha_shape)
    scales = grid.tail_scales()
    nodes = [((0, 1),), ((0, 1), (1, 2)), ((1, 1), (2, 1), (3, 1))]
    for asked in ([()], nodes):
        a, b = (engine.tail_sums(asked, alpha, scales) for engine in (ours, theirs))
        np.testing.assert_allclose(b, a, rtol=1e-8)
    np.testing.assert_allclose(theirs.features(nodes), ours.features(nodes), rtol=1e-13)
    np.testing.assert_allclose(
        theirs.extension_squares(nodes, alpha, rounded_up=True),
        ours.extension_squares(nodes, alpha, rounded_up=True), rtol=1e-10)
assert len(calls) > 10
print("agree")
"""


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="Triton is not installed")
def test_the_kernels_compute_what_the_plain_code_computes():
    done = subprocess.run(
        [sys.executable, "-c", IN_THE_INTERPRETER],
        env=os.environ | {"TRITON_INTERPRET": "1", "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
    )
    assert done.stdout == "agree\n", done.stderr


def plain(factors, constants):
    product = torch.ones((300, 300), dtype=torch.float64)
    for factor, constant in zip(factors, constants, strict=True):
        product *= factor.T @ factor + constant
    return product.sum(), 1


def gathered(table, index, base=None):
    product = table[index].prod(1)
    return product if base is None else product * base


class PlainRatios:
    """The ratios of one more S_{m,j}, of the second of two variables."""

    def __init__(self, parts, zero_of, n_zero, place, deltas, n_padded):
        assert (list(zero_of), n_zero, list(place), n_padded) == ([0, 1, 1], 2, [1, 0, 2], 300)
        self.parts, self.deltas = parts, deltas

    def __call__(self, tile, weight):
        rows, columns = tile
        kernels = [f[:, rows].T @ f[:, columns] + c for f, c in self.parts]
        a, b, other = (kernel.reshape(-1) for kernel in kernels)
        a, b = a + self.deltas[1], b + self.deltas[0]
        return weight * a * b, torch.stack([other / b, torch.ones_like(b)])


class UnplacedRatios(PlainRatios):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.deltas = self.deltas.flip(0)


def test_wrong_kernels_are_seen():
    right = SimpleNamespace(
        gathered_products=gathered, pair_product_sum=plain, PairRatios=PlainRatios
    )
    assert torch_kernels.kernels_agree(right, "cpu")
    for name, wrong in (
        ("gathered_products", lambda table, index, base=None: gathered(table, index)),
        ("gathered_products", lambda table, index, base=None: gathered(table, index, base) * 1.1),
        ("PairRatios", UnplacedRatios),
        ("pair_product_sum", lambda factors, constants: plain(factors, [0.0] * 3)),
    ):
        module = SimpleNamespace(**vars(right) | {name: wrong})
        assert not torch_kernels.kernels_agree(module, "cpu")


def test_without_triton_or_a_gpu_the_plain_code_is_used(monkeypatch, caplog):
    assert torch_kernels.triton_kernels(torch.zeros(1)) is None
    monkeypatch.setattr(torch_kernels.importlib.util, "find_spec", lambda name: None)
    assert torch_kernels._tried.__wrapped__("cuda") is None
    monkeypatch.setattr(torch_kernels.importlib.util, "find_spec", lambda name: name)
    monkeypatch.setitem(sys.modules, "hikernel.engines.triton_kernels", None)
    with caplog.at_level(logging.INFO, "hikernel"):
        assert torch_kernels._tried.__wrapped__("cuda") is None
    assert "Triton is not used on cuda" in caplog.text
