"""Error bars after a refit: the posterior of the coefficients, with the selected terms as given.

A ridge refit minimises sum_i omega_i loss(y_i, b + B' F_i) + (mu/2) |B|^2 (``ridge``). Up to the
factor n / phi this is minus the logarithm of a posterior density: the loss is phi times minus a
log likelihood, and B has the prior N(0, phi / (n mu) I), b a flat one. For the squared error the
posterior is normal; for other losses it is normal by Laplace's approximation at its mode:

    (B, b) ~ N(estimate, (phi / n) H^-1),   H = sum_i omega_i x_i W_i x_i' + diag(mu, ..., mu, 0)

with x_i = (F_i, 1) and W_i the second derivative of the loss of row i. Without a penalty this is
the covariance of least squares and of generalised linear models. With one it is the Bayesian
covariance that mgcv and pyGAM use: unlike the variance of the estimator alone, it has room for the
bias by shrinkage, so that with the right terms its bands cover the function about as often as they
say, on average over the rows.

n is the number of rows of positive weight, and weights are relative: only their ratios matter, as
in weighted least squares. phi is one for the log loss, whose labels tell their variance, and
otherwise estimated: E g_i^2 = phi E W_i holds for the gradients g_i of a quasi-likelihood, so that

    phi = n / (n - edf) sum_i omega_i g_i^2 / sum_i omega_i W_i,   edf = trace H^-1 (H - diag mu),

which for the squared error is the residual variance.

What the bars do not show: that terms and penalty were chosen on the same rows, so that they cover
less (``benchmarks/error_bars.py``). ``bootstrap`` selects again in every sample.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg

from hikernel.engines.features import Blocks, IndexArray
from hikernel.engines.machine import one_blas_thread
from hikernel.engines.numerics import product_in_parts
from hikernel.engines.protocol import FloatArray
from hikernel.graphs import Design, take
from hikernel.losses import Loss
from hikernel.selection.refit import Fitted
from hikernel.selection.training import TermModel, TrainingProblem

__all__ = ["Posterior", "has_posterior", "posterior_of"]

_CHUNK = 2**21
"""Numbers that are held at a time while standard deviations are computed: 16 MiB."""
_SMALLEST_SQUARE = 1e-13
"""Without a penalty, directions of a smaller part of the largest curvature are left out, as in
``ridge``, where they have no coefficient."""


@dataclass(frozen=True)
class Posterior:
    """Covariance L L' of the coefficients and intercepts of a model, given by its factor L.

    Attributes
    ----------
    factor : ndarray of shape (R + 1, r) or (R + 1, k, r)
        L. Its rows belong to the coefficients of the terms with nonzero coefficients
        (``TermModel.kept``), in the units of y, and the last one to the intercept.
    dispersion : float
        phi: the variance of the noise for the squared error, in units of y^2; 1 for the log loss.
    edf : float
        Effective number of parameters, between the number of intercepts and that of all
        coefficients.
    """

    factor: FloatArray
    dispersion: float
    edf: float

    def covariance(self) -> FloatArray:
        """Return the covariance of coefficients and intercept, shape (R + 1, R + 1).

        For k outputs the shape is ((R + 1) k, (R + 1) k), the outputs of a coefficient adjacent.
        """
        flat = self.factor.reshape(-1, self.factor.shape[-1])
        return np.asarray(flat @ flat.T)

    def std(self, model: TermModel, design: Design, rows: Any, n_rows: int) -> FloatArray:
        """Return the standard deviation of f at rows, shape (n,) or (n, k)."""
        members = np.arange(len(model.kept().nodes))
        return self.part_std(model, design, rows, n_rows, members, intercept=True)

    def part_std(
        self,
        model: TermModel,
        design: Design,
        rows: Any,
        n_rows: int,
        members: Sequence[int] | IndexArray,
        *,
        intercept: bool = False,
    ) -> FloatArray:
        """Return the standard deviation of the sum of some terms at rows, shape (n,) or (n, k).

        Parameters
        ----------
        model, design : TermModel, Design
            The model that this posterior belongs to, and its bases.
        rows : Any
            Rows in the form that the design takes.
        n_rows : int
            How many there are.
        members : sequence of int
            Positions of the terms in ``model.kept()``.
        intercept : bool, default=False
            Whether the intercept is part of the sum.
        """
        kept = model.kept()
        blocks = Blocks(model.widths[kept.positions])
        nodes = [kept.nodes[i] for i in members]
        columns = blocks.columns(members)
        outputs = self.factor.shape[1:-1]
        flat = self.factor.reshape(len(self.factor), -1)
        part, level = flat[columns], flat[-1] if intercept else 0.0
        step = max(1, _CHUNK // part.shape[1])
        if isinstance(rows, Mapping):
            step = max(n_rows, 1)  # features of items, which only their graph can take apart
        out = np.empty((n_rows, *outputs))
        for start in range(0, n_rows, step):
            index = np.arange(start, min(start + step, n_rows))
            some = rows if step >= n_rows else take(rows, index)
            with np.errstate(over="ignore", invalid="ignore"):
                values = design.predict(nodes, part, some) + level
                values = values.reshape(len(index), *outputs, -1)
                out[index] = np.sqrt(np.sum(values**2, axis=-1))
        if not np.all(np.isfinite(out)):
            row = int(np.argwhere(~np.isfinite(out))[0, 0])
            raise ValueError(
                f"Row {row} of X lies so far outside the training data that its error bar "
                "overflows; check its units, or clip X to the range of the training data."
            )
        return out


def has_posterior(loss: Loss) -> bool:
    """Return whether refits with this loss have error bars.

    It needs second derivatives, one per row, and a loss that is a (quasi-)likelihood. Huber's is
    taken as the one of its own noise, as for M-estimators.
    """
    return loss.smooth and loss.is_likelihood and not loss.joint


def posterior_of(problem: TrainingProblem, fitted: Fitted) -> Posterior | None:
    """Return the posterior of a refit, or None if it has none.

    There is none without a refit, for refits under constraints, whose posterior has edges, for
    graphs of Gram matrices, for rows in blocks, for losses that are no likelihood,
    and if the dispersion is not known because the model has as many parameters as rows.
    """
    if fitted.refit is None or fitted.scales is None or fitted.gap is not None:
        return None
    if not has_posterior(problem.loss) or problem.engine.in_blocks:
        return None
    model = fitted.model
    kept = model.kept()
    columns = Blocks(model.widths).columns(kept.positions)
    n = problem.engine.n_rows
    with one_blas_thread():
        features = np.empty((n, 0))
        if kept.nodes and fitted.design is problem.design:
            features = problem.engine.features(kept.nodes)
        elif kept.nodes:
            found = fitted.design.features(kept.nodes, problem.rows)
            features = np.hstack([found[node] for node in kept.nodes])
        coef = model.coef[columns] / problem.scale
        f = features @ coef + (model.intercept - problem.center) / problem.scale
        return _laplace(problem, features, fitted.scales[columns], f, fitted.mu)


def _laplace(
    problem: TrainingProblem, features: FloatArray, scales: FloatArray, f: FloatArray, mu: float
) -> Posterior | None:
    """Return the posterior from the curvature of the loss at f.

    With the blocks A + mu, E and D of H for coefficients, both, and intercepts, the covariance of
    the coefficients is the inverse of S + mu, S = A - E D^-1 E'. Given them, the intercepts have
    mean -D^-1 E' B and covariance D^-1.
    """
    n, size = features.shape
    omega, loss = problem.engine.row_weights, problem.loss
    shape = f.shape[1:]
    y, f = problem.y.reshape(n, -1), f.reshape(n, -1)
    contrasts = linalg.helmert(f.shape[1]).T if loss.shift_invariant else np.eye(f.shape[1])
    scaled = features * scales
    means = omega @ scaled
    scaled -= means
    second = omega[:, None, None] * (contrasts.T @ loss.hessian(y, f) @ contrasts)
    D = np.sum(second, axis=0)
    try:
        root = linalg.cholesky(linalg.inv(D), lower=True)
    except (linalg.LinAlgError, ValueError):
        return None  # no row says anything about the intercept
    S, mixed = _blocks(scaled, second, D)
    squares, vectors = linalg.eigh(S, check_finite=False)
    if mu == 0.0:
        large = squares > _SMALLEST_SQUARE * max(float(np.max(squares, initial=0.0)), 1e-300)
        squares, vectors = squares[large], vectors[:, large]
    squares = np.maximum(squares, 0.0)
    edf = D.shape[0] + float(np.sum(squares / (squares + mu)))
    dispersion = _dispersion(loss, y, f, omega, second, edf)
    if dispersion is None:
        return None
    along = vectors / np.sqrt(squares + mu)
    level = -linalg.solve(D, mixed.T @ along)
    q, width = len(D), along.shape[1]
    along = along.reshape(q, size, width)
    level -= np.einsum("j,qjr->qr", means, along)
    factor = np.zeros((q, size + 1, width + q))
    factor[:, :-1, :width] = scales[:, None] * along
    factor[:, -1, :width], factor[:, -1, width:] = level, root
    factor = np.einsum("kq,qjr->jkr", contrasts, factor)
    factor *= problem.scale * np.sqrt(dispersion / n)
    return Posterior(
        factor.reshape(size + 1, *shape, width + q), problem.scale**2 * dispersion, edf
    )


def _blocks(
    features: FloatArray, second: FloatArray, total: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return S and E for q outputs, of shapes (q R, q R) and (q R, q); ``total`` is D."""
    size, q = features.shape[1], second.shape[1]
    whole = np.empty((q, size, q, size))
    mixed = np.empty((q, size, q))
    for a in range(q):
        for b in range(a, q):
            weights = second[:, a, b]
            block = product_in_parts(features.T, weights[:, None] * features)
            whole[a, :, b], whole[b, :, a] = block, block
            mixed[a, :, b] = mixed[b, :, a] = weights @ features
    flat = mixed.reshape(q * size, q)
    S = whole.reshape(q * size, q * size) - flat @ linalg.solve(total, flat.T)
    return 0.5 * (S + S.T), flat


def _dispersion(
    loss: Loss,
    y: FloatArray,
    f: FloatArray,
    omega: FloatArray,
    second: FloatArray,
    edf: float,
) -> float | None:
    """Return phi; None if no rows are left to estimate it."""
    if loss.for_labels:
        return 1.0
    free = len(y) - edf
    if free <= 1e-6 * len(y):
        return None
    squares = float(np.sum(omega @ loss.gradient(y, f) ** 2))
    return len(y) / free * squares / float(np.sum(second))
