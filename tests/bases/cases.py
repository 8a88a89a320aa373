"""Every basis under test with its exact level kernels; a new basis joins by one line here.

``exact(x, z, train, weights)`` returns the list of level kernels at points that are standardised if
the basis does that. Errors
allowed, relative to the largest entry: ``tol`` between training points, ``new_tol`` between a
training and a new point. Where a trace of 1e-10 is neglected, the residual d_i of a training point
is at most 1e-10 / w_i, and the error is at most sqrt(d_i d_z): 6e-9 for sixty equal weights on
training points, and up to sqrt(6e-9 k(z, z)) where a new point falls into a gap of the column.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from bases import oracles

from hikernel.bases import (
    Anova,
    AsinhPolynomial,
    Basis,
    Branches,
    Categorical,
    Gaussian,
    Hermite,
    KernelPCA,
    OrthonormalPolynomial,
    Periodic,
    Polynomial,
    RankPolynomial,
    Spline,
    Steps,
)


def matern(x, z):
    """Once differentiable kernel (1 + d) exp(-d): a kernel as a user writes it, and picklable."""
    d = np.abs(x[:, None] - z[None, :])
    return (1.0 + d) * np.exp(-d)


@dataclass(frozen=True)
class Case:
    basis: Basis
    exact: Callable
    tol: float = 1e-11
    new_tol: float = 1e-11
    overflows: bool = False  # infinite far away, as a polynomial must be
    range_only: bool = False  # beyond the training range as at its ends


def pca(kernel, degree, constant):
    def exact(x, z, train, weights):
        return oracles.kernel_pca_levels(x, z, train, weights, kernel, degree, constant)

    return exact


def mehler(*settings):
    return lambda x, z, train, weights: oracles.mehler_levels(x, z, *settings)


def gauss(b):
    return lambda x, z: oracles.gaussian(x, z, b)


def ones(x, z):
    return np.ones((len(x), len(z)))


TRUNCATED = {"tol": 2e-8, "new_tol": 5e-6}

CASES = {
    "polynomial": Case(
        Polynomial(4), lambda x, z, t, w: oracles.polynomial_levels(x, z, 4), overflows=True
    ),
    "orthonormal": Case(
        OrthonormalPolynomial(5),
        lambda x, z, t, w: oracles.orthonormal_levels(x, z, t, w, 5),
        range_only=True,
    ),
    "asinh": Case(
        AsinhPolynomial(4),
        lambda x, z, t, w: oracles.asinh_levels(x, z, t, w, 4),
        range_only=True,
    ),
    "rank": Case(
        RankPolynomial(3), lambda x, z, t, w: oracles.rank_levels(x, z, t, w, 3, 2.0), tol=1e-10
    ),
    "rank-tight": Case(
        RankPolynomial(4, bound=0.5),
        lambda x, z, t, w: oracles.rank_levels(x, z, t, w, 4, 0.5),
        tol=1e-10,
    ),
    "hermite": Case(
        Hermite(5, a=0.3), lambda x, z, t, w: oracles.hermite_levels(x, z, 5, 0.3), overflows=True
    ),
    "gaussian": Case(Gaussian(4), mehler(4, 0.5, 1.0, False, True), **TRUNCATED),
    "gaussian-constant": Case(
        Gaussian(5, b=1.2, s=0.7, constant_level=True), mehler(5, 1.2, 0.7, True, True), **TRUNCATED
    ),
    "gaussian-whole": Case(
        Gaussian(1, constant_level=True), mehler(1, 0.5, 1.0, True, True), **TRUNCATED
    ),
    "gaussian-cut": Case(Gaussian(3, remainder=False), mehler(3, 0.5, 1.0, False, False)),
    "gaussian-constant-cut": Case(
        Gaussian(3, constant_level=True, remainder=False), mehler(3, 0.5, 1.0, True, False)
    ),
    "kernel_pca": Case(KernelPCA(degree=3), pca(gauss(0.5), 3, False), **TRUNCATED),
    "kernel_pca-constant": Case(
        KernelPCA(degree=3, b=1.0, constant_level=True), pca(gauss(1.0), 3, True), **TRUNCATED
    ),
    "kernel_pca-laplace": Case(
        KernelPCA("laplace", degree=2, b=0.8),
        pca(lambda x, z: oracles.laplace(x, z, 0.8), 2, False),
    ),
    "kernel_pca-callable": Case(KernelPCA(matern, degree=2), pca(matern, 2, False), **TRUNCATED),
    "anova": Case(
        Anova(b=0.7), lambda x, z, t, w: [ones(x, z), oracles.gaussian(x, z, 0.7)], **TRUNCATED
    ),
    "spline": Case(
        Spline(tol=1e-12),
        lambda x, z, t, w: [ones(x, z), np.outer(x, z), oracles.cubic_spline(x, z)],
        **TRUNCATED,
    ),
    "periodic": Case(
        Periodic(7.0, 3), lambda x, z, t, w: oracles.periodic_levels(x, z, t, w, 7.0, 3, 2.0)
    ),
    "steps": Case(Steps(3), lambda x, z, t, w: oracles.steps_levels(x, z, t, w, 3)),
    "branches": Case(
        Branches((OrthonormalPolynomial(2), Steps(2))),
        lambda x, z, t, w: [
            *oracles.orthonormal_levels(
                *[oracles.standardise(t, w, v) for v in (x, z, t)], w, min(2, len(np.unique(t)) - 1)
            ),
            *oracles.steps_levels(x, z, t, w, 2)[1:],
        ],
        range_only=True,
    ),
    "categorical": Case(
        Categorical(), lambda x, z, t, w: oracles.categorical_levels(x, z, t, w, 2.0)
    ),
    "categorical-tight": Case(
        Categorical(bound=0.3), lambda x, z, t, w: oracles.categorical_levels(x, z, t, w, 0.3)
    ),
}

every_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())


def level_kernels(fitted, x, z=None):
    """Kernels <phi_j(x), phi_j(z)>, which do not depend on signs or rotations of a level."""
    z = x if z is None else z
    return [
        left @ right.T for left, right in zip(fitted.transform(x), fitted.transform(z), strict=True)
    ]


def assert_same_kernels(left, right, tol):
    assert len(left) == len(right)
    for a, b in zip(left, right, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=tol * max(1.0, np.abs(b).max()))
