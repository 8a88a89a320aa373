"""The quadratic model of a loss in which rows interact, with its true Hessian.

With row weights omega, gradient g and curvature W of the loss at f_0 = F beta_0, the Hessian in f
is H = diag(omega W) - R'R, where R has one row per group of rows that interact. The model

    (omega g)'(f - f_0) + (f - f_0)' H (f - f_0) / 2

is a squared error like that of other losses, up to a constant. It takes the matrix F'HF instead of
a weighted Gram matrix. The bound diag(omega W) alone would do as well, but then the steps converge
slowly where the penalty is weak.
"""

from __future__ import annotations

import numpy as np
from scipy import linalg

from hikernel.engines.features import Blocks
from hikernel.engines.protocol import FloatArray
from hikernel.losses import Loss
from hikernel.reduced.forms import DualForm, PrimalForm

__all__ = ["dual_model", "primal_model"]

_SMALLEST = 1e-13
"""Eigenvalues of a Hessian below this fraction of the largest are rounding."""


def primal_model(
    loss: Loss,
    y: FloatArray,
    f: FloatArray,
    omega: FloatArray,
    curvature: FloatArray,
    features: FloatArray,
    coef: FloatArray,
    blocks: Blocks,
) -> tuple[PrimalForm, float]:
    """Return the model in the R x R form, and its value at beta_0.

    Parameters
    ----------
    loss : Loss
        A joint loss.
    y, f, omega, curvature : ndarray of shape (n,)
        Target, f_0, row weights, and W, which may be larger than the curvature of the loss.
    features : ndarray of shape (n, R)
        F; constant columns are zero.
    coef : ndarray of shape (R,)
        beta_0.
    blocks : Blocks
        Columns of each node.
    """
    gradient = loss.gradient(y, f)
    coupling = loss.coupling(y, f, features)
    assert coupling is not None
    gram = features.T @ ((omega * curvature)[:, None] * features) - coupling.T @ coupling
    slope = features.T @ (omega * gradient)
    # The value at beta_0 only has to be at least what the model can gain from there.
    ridge = _SMALLEST * float(np.trace(gram)) + np.finfo(float).tiny
    system = gram + ridge * np.eye(len(gram))
    gain = 0.5 * float(slope @ linalg.solve(system, slope, assume_a="sym", check_finite=False))
    value = max(gain, 0.0) + 0.5 * float(omega @ (gradient**2 / curvature))
    cross = gram @ coef - slope
    total = 2.0 * value + float(coef @ (cross - slope))
    return PrimalForm(gram, cross, total, blocks), value


def dual_model(
    loss: Loss,
    y: FloatArray,
    f: FloatArray,
    omega: FloatArray,
    curvature: FloatArray,
    features: FloatArray,
    coef: FloatArray,
    blocks: Blocks,
) -> tuple[DualForm, float]:
    """Return the model in the n x n form, and its value at beta_0; parameters as above.

    With H = C'C and H d = omega g it is |C (f_0 - d) - C F beta|^2 / 2.
    """
    coupling = loss.coupling(y, f, np.eye(len(f)))
    assert coupling is not None
    hessian = np.diag(omega * curvature) - coupling.T @ coupling
    squares, vectors = linalg.eigh(hessian, check_finite=False)
    large = squares > _SMALLEST * squares[-1]
    roots, vectors = np.sqrt(squares[large]), vectors[:, large]
    step = (vectors.T @ (omega * loss.gradient(y, f))) / roots
    scaled = roots[:, None] * (vectors.T @ features)
    return DualForm(scaled, scaled @ coef - step, blocks), 0.5 * float(step @ step)
