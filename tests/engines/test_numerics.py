"""Products of either memory order, blocks of columns, and the halving of steps."""

from __future__ import annotations

import numpy as np
import pytest

from hikernel.engines.features import Blocks
from hikernel.engines.numerics import backtrack, matmul, matvec

rng = np.random.default_rng(0)


@pytest.mark.parametrize("left", ["C", "F"])
@pytest.mark.parametrize("right", ["C", "F"])
def test_products_equal_numpy(left, right):
    a = np.array(rng.standard_normal((5, 3)), order=left)
    b = np.array(rng.standard_normal((3, 4)), order=right)
    np.testing.assert_allclose(matmul(a, b), a @ b)
    np.testing.assert_allclose(matvec(a, b[:, 0]), a @ b[:, 0])
    np.testing.assert_allclose(matmul(a[::2], b[:, ::2]), a[::2] @ b[:, ::2])
    np.testing.assert_allclose(matvec(a[::2], b[:, 0]), a[::2] @ b[:, 0])


def test_an_empty_matrix_gives_zeros():
    np.testing.assert_array_equal(matvec(np.empty((2, 0)), np.empty(0)), np.zeros(2))


@pytest.mark.parametrize("widths", [[1, 1, 1], [2, 1, 3], []])
def test_blocks_of_columns(widths):
    blocks = Blocks(widths)
    x = rng.standard_normal((sum(widths), 2))
    parts = np.split(x, np.cumsum(widths)[:-1]) if widths else []
    assert len(blocks) == len(widths)
    assert blocks.n_columns == sum(widths)
    for ours, part in zip(blocks.split(x), parts, strict=True):
        np.testing.assert_array_equal(ours, part)
    np.testing.assert_allclose(blocks.squares(x), [np.sum(part**2) for part in parts])
    np.testing.assert_allclose(blocks.squares(x[:, 0]), [np.sum(p[:, 0] ** 2) for p in parts])
    sums = [part.sum(axis=0) for part in parts]
    np.testing.assert_allclose(blocks.sum(x), np.reshape(sums, (-1, 2)))
    np.testing.assert_allclose(blocks.sum(x.T, axis=1), np.reshape(sums, (-1, 2)).T)
    np.testing.assert_array_equal(
        blocks.spread(np.arange(len(widths))), np.repeat(np.arange(len(widths)), widths)
    )


def test_some_of_the_blocks():
    blocks = Blocks([2, 1, 3])
    np.testing.assert_array_equal(blocks.starts, [0, 2, 3])
    np.testing.assert_array_equal(blocks.columns([2, 0]), [3, 4, 5, 0, 1])
    np.testing.assert_array_equal(blocks.restrict([2, 0]).widths, [3, 2])
    assert blocks.columns([]).shape == (0,)


def test_a_step_is_halved_until_it_goes_down_enough():
    tried = []

    def trial_at(length):
        tried.append(length)
        return None if length > 0.6 else 3.0 - 4.0 * length

    # From 3 along -4: the first length has no point, the second lands at 1.
    assert backtrack(trial_at, lambda x: x**2, 9.0, -24.0) == (1.0, 0.5)
    assert tried == [1.0, 0.5]
    assert backtrack(lambda t: t, lambda x: x, 0.0, -1.0, trials=5) is None
    assert backtrack(lambda t: t, lambda x: x, 0.0, 0.0, trials=5, slack=0.1) == (0.0625, 0.0625)
