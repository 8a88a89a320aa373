"""The quadratic model of a loss whose outputs interact, with its true Hessian: one R q form.

Let z = B C, where B has shape (R, k) and C (k, q) orthonormal columns: all of R^k, or the q = k - 1
directions of sum zero where the loss does not see a common shift. With H_i = C' hess_i C of row i,
the Hessian of the mean loss in (z, b) is sum_i omega_i (x_i x_i') kron H_i, x_i = (F_i, 1). The
intercepts are eliminated from it. Column (r, o) of the form is column r of F in output o, so that
the columns of a node stay together and |z_w| = |B_w|.

A bound of H_i by a diagonal matrix has no R q form: every output is solved by itself, at a share
1 / q^2 of the cost. But it overestimates H_i up to twofold, and more in some directions. Then steps
converge linearly, and an output with few columns costs little more than its calls.
"""

from __future__ import annotations

import itertools

import numpy as np
from scipy import linalg

from hikernel.engines.features import Blocks
from hikernel.engines.numerics import lower_gram, matmul
from hikernel.engines.protocol import FloatArray
from hikernel.losses import Loss
from hikernel.reduced.forms import PrimalForm

__all__ = ["coupled_model", "output_directions"]


def output_directions(loss: Loss, n_outputs: int) -> FloatArray:
    """Return C, shape (k, q)."""
    return np.asarray(linalg.helmert(n_outputs).T) if loss.shift_invariant else np.eye(n_outputs)


def coupled_model(
    loss: Loss,
    y: FloatArray,
    f: FloatArray,
    omega: FloatArray,
    floor: FloatArray,
    features: FloatArray,
    coef: FloatArray,
    blocks: Blocks,
) -> tuple[PrimalForm, float]:
    """Return the model in the R q form, and its value at B_0.

    Parameters
    ----------
    loss : Loss
        A smooth loss with k outputs.
    y, f : ndarray of shape (n, k)
        Target, and prediction at B_0.
    omega : ndarray of shape (n,)
        Weights of the rows.
    floor : ndarray of shape (n,)
        Positive; smaller eigenvalues of H_i are raised to it.
    features : ndarray of shape (n, R)
        F, centred; constant columns are zero.
    coef : ndarray of shape (R, k)
        B_0.
    blocks : Blocks
        Columns of each node in F.
    """
    directions = output_directions(loss, y.shape[1])
    (n, width), q = features.shape, directions.shape[1]
    gradient = loss.gradient(y, f) @ directions
    values, turns = np.linalg.eigh(directions.T @ loss.hessian(y, f) @ directions)
    values = np.maximum(values, floor[:, None])
    along = np.einsum("nab,na->nb", turns, gradient)
    value = 0.5 * float(omega @ np.sum(along**2 / values, axis=1))
    hessian = omega[:, None, None] * ((turns * values[:, None, :]) @ turns.transpose(0, 2, 1))
    design = np.empty((n, width + 1), order="F")
    design[:, :width], design[:, width] = features, 1.0
    gram = np.empty((width + 1, q, width + 1, q))
    for a, b in itertools.combinations_with_replacement(range(q), 2):
        if a == b:
            lower = lower_gram((design * np.sqrt(hessian[:, a, a])[:, None]).T)
            block = lower + np.tril(lower, -1).T
        else:
            block = matmul(design.T, design * hessian[:, a, b][:, None])
        gram[:, a, :, b] = gram[:, b, :, a] = block
    gram = gram.reshape((width + 1) * q, (width + 1) * q)
    slope = matmul(design.T, omega[:, None] * gradient).ravel()
    # The intercepts are the last q columns.
    inner, size = slice(0, width * q), width * q
    factor = linalg.cho_factor(gram[size:, size:], lower=True, check_finite=False)
    across = linalg.cho_solve(factor, gram[size:, inner], check_finite=False)
    slope = slope[inner] - across.T @ slope[size:]
    gram = gram[inner, inner] - gram[inner, size:] @ across
    start = (coef @ directions).ravel()
    cross = gram @ start - slope
    total = 2.0 * value + float(start @ (cross - slope))
    return PrimalForm(gram, cross, total, Blocks(blocks.widths * q)), value
