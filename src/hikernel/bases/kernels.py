"""One-variable kernels that have no finite feature map, as small callable objects.

A kernel maps points of shape (n,) and (m,) to values of shape (n, m). The method ``diagonal`` is
optional for kernels given by a user; without it, the diagonal is taken from small square blocks.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hikernel.engines.protocol import FloatArray

__all__ = [
    "KERNELS",
    "CubicSplineKernel",
    "GaussianKernel",
    "Kernel",
    "LaplaceKernel",
    "check_kernel_name",
]

Kernel = Callable[[FloatArray, FloatArray], FloatArray]


@dataclass(frozen=True)
class GaussianKernel:
    """k(x, z) = exp(-b (x - z)^2)."""

    b: float

    def __call__(self, x: FloatArray, z: FloatArray) -> FloatArray:
        """Return the values k(x, z), shape (len(x), len(z))."""
        with np.errstate(over="ignore", under="ignore"):
            d = x[:, np.newaxis] - z[np.newaxis, :]
            np.multiply(d, d, out=d)
            d *= -self.b
            return np.exp(d, out=d)

    def diagonal(self, x: FloatArray) -> FloatArray:
        """Return k(x_i, x_i), all ones."""
        return np.ones_like(x)


@dataclass(frozen=True)
class LaplaceKernel:
    """k(x, z) = exp(-b |x - z|).

    It has a kink on the diagonal, so its eigenvalues decay only like 1/j^2. A factor of high
    precision has about as many columns as there are distinct points.
    """

    b: float

    def __call__(self, x: FloatArray, z: FloatArray) -> FloatArray:
        """Return the values k(x, z), shape (len(x), len(z))."""
        with np.errstate(over="ignore", under="ignore"):
            d = np.abs(x[:, np.newaxis] - z[np.newaxis, :])
            d *= -self.b
            return np.exp(d, out=d)

    def diagonal(self, x: FloatArray) -> FloatArray:
        """Return k(x_i, x_i), all ones."""
        return np.ones_like(x)


@dataclass(frozen=True)
class CubicSplineKernel:
    """k(x, z) = 1[xz > 0] m^2 (3M - m) with m, M the smaller and larger of |x|, |z|.

    This is 6 times the integral over u in [0, m] of (|x| - u)(|z| - u): the kernel of functions
    with square-integrable second derivative that vanish at 0 together with their slope.
    """

    def __call__(self, x: FloatArray, z: FloatArray) -> FloatArray:
        """Return the values k(x, z), shape (len(x), len(z))."""
        same_side = np.sign(x)[:, np.newaxis] * np.sign(z)[np.newaxis, :] > 0
        size_x, size_z = np.abs(x)[:, np.newaxis], np.abs(z)[np.newaxis, :]
        m = np.minimum(size_x, size_z)
        return np.where(same_side, m * m * (3.0 * np.maximum(size_x, size_z) - m), 0.0)

    def diagonal(self, x: FloatArray) -> FloatArray:
        """Return k(x_i, x_i) = 2 |x_i|^3."""
        return 2.0 * np.abs(x) ** 3


#: Kernels that `KernelPCA` knows by name; b is the inverse squared length, or the inverse length.
KERNELS: dict[str, Callable[[float], Kernel]] = {
    "gaussian": GaussianKernel,
    "laplace": LaplaceKernel,
}


def check_kernel_name(name: str) -> None:
    """Raise an error with the closest name unless ``name`` is in `KERNELS`."""
    if name in KERNELS:
        return
    close = difflib.get_close_matches(name, KERNELS, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    raise ValueError(
        f"kernel {name!r} is not known; choose one of {', '.join(sorted(KERNELS))}, or pass a "
        f"callable k(x, z) that returns an array of shape (len(x), len(z)).{hint}"
    )
