"""A basis of every kind that is written as plain data, for the tests of its evaluators."""

from __future__ import annotations

from hikernel.bases import (
    Branches,
    Gaussian,
    KernelPCA,
    OrthonormalPolynomial,
    Periodic,
    RankPolynomial,
    Spline,
    Steps,
)

BASES = {
    "auto": "auto",
    "auto+steps": "auto+steps",
    "steps": "steps",
    "polynomial": "polynomial",
    "hermite": "hermite",
    "asinh": "asinh",
    "rank": RankPolynomial(3),
    "periodic": Periodic(5.0, 3),
    "branches": Branches((OrthonormalPolynomial(2), Steps(3))),
    "gaussian": "gaussian",
    "bumps": Gaussian(degree=3),
    "no remainder": Gaussian(degree=3, constant_level=True, remainder=False),
    "kernel_pca": "kernel_pca",
    "rough": KernelPCA("laplace", degree=3, tol=1e-2),
    "anova": "anova",
    "spline": Spline(tol=1e-3),
}
UNBOUNDED = {"polynomial", "hermite", "spline"}
"""Those that grow without a bound outside the range of the training rows."""
