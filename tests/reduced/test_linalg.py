"""Products of either memory order."""

from __future__ import annotations

import numpy as np
import pytest

from hikernel.engines.numerics import matmul, matvec

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
