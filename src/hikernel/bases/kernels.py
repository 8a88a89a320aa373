"""One-variable kernels that have no finite feature map, as small callable objects.

A kernel maps points of shape (n,) and (m,) to values of shape (n, m). ``diagonal`` is optional
for kernels given by a user; with it the diagonal costs n values and not n blocks.
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
        """Values of shape (len(x), len(z))."""
        with np.errstate(over="ignore", under="ignore"):
            d = x[:, np.newaxis] - z[np.newaxis, :]
            np.multiply(d, d, out=d)
            d *= -self.b
            return np.exp(d, out=d)

    def diagonal(self, x: FloatArray) -> FloatArray:
        """k(x, x), all ones."""
        return np.ones_like(x)


@dataclass(frozen=True)
class LaplaceKernel:
    """k(x, z) = exp(-b |x - z|).

    It has a kink on the diagonal, so its eigenvalues decay like 1/j^2 only and a factor to
    high precision has about as many columns as there are distinct points.
    """

    b: float

    def __call__(self, x: FloatArray, z: FloatArray) -> FloatArray:
        """Values of shape (len(x), len(z))."""
        with np.errstate(over="ignore", under="ignore"):
            d = np.abs(x[:, np.newaxis] - z[np.newaxis, :])
            d *= -self.b
            return np.exp(d, out=d)

    def diagonal(self, x: FloatArray) -> FloatArray:
        """k(x, x), all ones."""
        return np.ones_like(x)


@dataclass(frozen=True)
class CubicSplineKernel:
    """k(x, z) = 1[xz > 0] m^2 (3M - m) with m, M the smaller and larger of |x|, |z|.

    This is 6 times the integral over u in [0, m] of (|x| - u)(|z| - u): the kernel of
    functions with square-integrable second derivative which vanish with their slope at 0.
    """

    def __call__(self, x: FloatArray, z: FloatArray) -> FloatArray:
        """Values of shape (len(x), len(z))."""
        same_side = np.sign(x)[:, np.newaxis] * np.sign(z)[np.newaxis, :] > 0
        size_x, size_z = np.abs(x)[:, np.newaxis], np.abs(z)[np.newaxis, :]
        m = np.minimum(size_x, size_z)
        return np.where(same_side, m * m * (3.0 * np.maximum(size_x, size_z) - m), 0.0)

    def diagonal(self, x: FloatArray) -> FloatArray:
        """k(x, x) = 2 |x|^3."""
        return 2.0 * np.abs(x) ** 3


#: Kernels that `KernelPCA` knows by name; each takes the inverse squared (or plain) length b.
KERNELS: dict[str, Callable[[float], Kernel]] = {
    "gaussian": GaussianKernel,
    "laplace": LaplaceKernel,
}


def check_kernel_name(name: str) -> None:
    """Raise and suggest a name unless ``name`` is in `KERNELS`."""
    if name in KERNELS:
        return
    close = difflib.get_close_matches(name, KERNELS, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    raise ValueError(
        f"kernel {name!r} is not known; choose one of {', '.join(sorted(KERNELS))}, or pass a "
        f"callable k(x, z) that returns an array of shape (len(x), len(z)).{hint}"
    )
