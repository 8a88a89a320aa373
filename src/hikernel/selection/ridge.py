"""Ridge with a penalty chosen by leave-one-out: exact for the squared error, else approximate.

With scaled features F, weights omega of sum one and a penalty mu (which is not lambda),

    min over B, b of sum_i omega_i loss(y_i, b + B' F_i) + (mu/2) |B|^2,

where B has shape (R, k) for k outputs.

Squared error with one output: let F~ = sqrt(omega) (F - mean) = U S V'. The leverages are
h_i = omega_i + sum_k U_ik^2 s_k^2 / (s_k^2 + mu), and the leave-one-out residuals r_i / (1 - h_i).
One decomposition gives them for every mu.

Other smooth losses: Newton's method solves the problem. Leaving out row i is approximated by one
Newton step from the solution. Let x_i = (F_i, 1) and X_i = I kron x_i', so that f_i = X_i theta.
Let g_i (shape (k,)) and W_i (shape (k, k)) be the first and second derivative of the loss of row i
at f_i, and H the Hessian of the objective, including the intercept. Then

    theta_(i) = theta + (H - omega_i X_i' W_i X_i)^-1 omega_i X_i' g_i,
    f_(i) = f_i + (I - Q_i W_i)^-1 Q_i g_i,   Q_i = omega_i X_i H^-1 X_i'

by the Woodbury identity. For one output this is f_i + g_i q_i / (1 - W_i q_i).

A shift-invariant loss (multinomial) does not change when the same number is added to all outputs.
It leaves that direction of b undetermined, and the penalty makes it zero in B. So f = z C', where C
of shape (k, k - 1) has orthonormal columns of sum zero. The k - 1 outputs z have gradient g C,
second derivative C' W C and the same penalty, and H has no null direction.

In a joint loss, row i is part of the losses of others. Leaving it out changes the gradient by
omega_i u_i, where u_i is the derivative of the gradient with respect to omega_i, and

    f_(i) = f_i + q_i / (1 - W_i h_i),   q_i = omega_i x_i' H^-1 u_i,   h_i = omega_i z_i' H^-1 z_i,

where z_i is x_i minus its mean over the rows that row i is compared with. (For Cox's loss, u_i is
minus the score residual of survival analysis.) The score is the loss of the vector of all f_(i).

A row is left out with all its weight; the other weights and mu do not change. Its loss counts with
its weight. A row of weight 2 is therefore like two equal rows that are left out together. The fit
is the same as with a repeated row, but the leave-one-out score is not: with a repeated row, the
remaining copy would reveal the target of the copy left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from hikernel.engines.machine import in_threads
from hikernel.engines.numerics import gram_in_parts
from hikernel.engines.protocol import FloatArray
from hikernel.losses import Loss, SquaredError
from hikernel.selection.ridge_objective import Curvature, RidgeObjective, contrasts, row_chunks

if TYPE_CHECKING:
    from hikernel.selection.block_ridge import BlockFeatures

__all__ = ["RidgeFit", "RidgeStart", "best_of_penalties", "fit_ridge", "ridge_work"]

PENALTIES = np.geomspace(1e-10, 100.0, 31)
"""Values of mu that are tried, relative to the mean variance of the features."""
CONSTANT = 1e-26
"""A feature column counts as constant if its variance is at most this times its squared mean."""
FEW_PENALTIES = np.geomspace(1e-7, 100.0, 15)
"""Values of mu for losses that need Newton's method for each value."""
_PATIENCE = 2
"""Where every penalty needs Newton's method, smaller ones are not tried after this many scores in a
row that are no better than the best; never while the largest penalty is the best, where the fit is
almost a constant."""
_USUAL_STEPS = 4
"""Newton steps that a penalty usually takes, for the count of work."""
SMALLEST_SQUARE = 1e-13
"""Directions with a squared singular value below this fraction of the largest are dropped."""
TINY = float(np.finfo(float).tiny)
_SURE = 1e-3
"""Share of a loss that may be rounding, where the loss only has to be large."""
LEAST_FREE = 1e-14
"""Least value of 1 - h_i, which is zero for a row that the other rows do not determine."""


@dataclass(frozen=True)
class RidgeFit:
    """A ridge fit.

    Attributes
    ----------
    coef : ndarray of shape (R,) or (R, k)
        B.
    intercept : ndarray of shape () or (k,)
        b; it sums to zero for shift-invariant losses.
    mu : float
        The penalty itself, not relative to the features.
    score : float
        Weighted mean of the leave-one-out losses, on the scale of ``Loss.error``.
    gap : float or None
        Proven bound on how far a fit under constraints is from its optimum, relative to its
        objective; None without constraints.
    position : int or None
        Position of mu among the penalties of Newton's method, the largest first; None otherwise.
    curvature : Curvature or None
        The Hessian of the loss at the fit where it took Newton's method.
    gram : ndarray of shape (R, R) or None
        F~'F~ for the squared error with one output.
    """

    coef: FloatArray
    intercept: FloatArray
    mu: float
    score: float
    gap: float | None = None
    position: int | None = None
    curvature: Curvature | None = field(default=None, repr=False, compare=False)
    gram: FloatArray | None = field(default=None, repr=False, compare=False)

    def part(self, columns: NDArray[np.intp]) -> RidgeStart:
        """Return where to start the fit of some of the columns, given by position."""
        coef, curvature = self.coef[columns], self.curvature
        if curvature is not None:
            index = np.append(columns, len(self.coef))
            curvature = curvature.restrict(index, len(curvature.hessian) // (len(self.coef) + 1))
        gram = None if self.gram is None else self.gram[np.ix_(columns, columns)]
        return RidgeStart(coef, self.position, curvature, gram)


@dataclass(frozen=True)
class RidgeStart:
    """What is known of a fit beforehand. It saves time, and is no part of the problem.

    Attributes
    ----------
    coef : ndarray of shape (R,) or (R, k)
        Coefficients near B.
    position : int or None
        Position of a penalty near mu (``RidgeFit``), from which penalties are tried both ways.
    curvature : Curvature or None
        The Hessian of the loss near B.
    gram : ndarray of shape (R, R) or None
        F~'F~, for the squared error.
    """

    coef: FloatArray
    position: int | None = None
    curvature: Curvature | None = None
    gram: FloatArray | None = None


def fit_ridge(
    features: FloatArray | BlockFeatures,
    y: FloatArray,
    omega: FloatArray,
    loss: Loss,
    relative_mu: float | None = None,
    start: RidgeStart | None = None,
    most: float = np.inf,
) -> RidgeFit:
    """Fit ridge with the penalty chosen by leave-one-out.

    Parameters
    ----------
    features : ndarray of shape (n, R), or BlockFeatures
        F, scaled so that the penalty is |B|^2. Overwritten.
    y : ndarray of shape (n,) or (n, k)
        Target.
    omega : ndarray of shape (n,)
        Weights of sum one.
    loss : Loss
        A smooth loss.
    relative_mu : float, optional
        Fixed mu instead of leave-one-out, relative to the mean variance of the features. 0 means
        no penalty; if several fits are then optimal, the one of least norm is returned.
    start : RidgeStart, optional
        What is known of the fit.
    most : float, optional
        A score above which the fit is of no use. Its score is then infinite where that is known
        before any row is left out: the loss of a row never falls when the row is left out.
    """
    if not isinstance(features, np.ndarray):
        from hikernel.selection.block_ridge import fit_block_ridge  # imported only when needed

        return fit_block_ridge(features, y, omega, loss, relative_mu, start, most)
    if isinstance(loss, SquaredError) and y.ndim == 1:
        gram = None if start is None else start.gram
        return _squared(features, y, omega, relative_mu, gram, most)
    return _general(features, y, omega, loss, relative_mu, start, most)


def ridge_work(n_rows: int, n_columns: int, n_outputs: int, loss: Loss) -> float:
    """Return the work of a ridge fit with its choice of mu, in multiplications."""
    width = float(n_columns)
    if isinstance(loss, SquaredError) and n_outputs == 1:
        return 4.0 * n_rows * width * (min(n_rows, width) + len(PENALTIES))
    width *= n_outputs
    return len(FEW_PENALTIES) * _USUAL_STEPS * (n_rows * width**2 + width**3)


def _squared(
    features: FloatArray,
    y: FloatArray,
    omega: FloatArray,
    relative_mu: float | None,
    gram: FloatArray | None,
    most: float,
) -> RidgeFit:
    means = omega @ features
    center = float(omega @ y)
    root = np.sqrt(omega)
    sizes = np.zeros(features.shape[1])
    for rows in row_chunks(*features.shape):
        features[rows] -= means
        features[rows] *= root[rows, None]
        sizes += np.sum(features[rows] ** 2, axis=0)
    # What is left of a constant column is rounding, and no direction of the features.
    features[:, sizes <= CONSTANT * means**2] = 0.0
    target = root * (y - center)
    unit = sum(float(np.sum(features[rows] ** 2)) for rows in row_chunks(*features.shape))
    unit /= max(features.shape[1], 1)
    penalties = unit * (PENALTIES if relative_mu is None else np.array([relative_mu]))
    gram = gram_in_parts(features) if gram is None else gram
    if most < np.inf and _least_loss(gram, features.T @ target, target, penalties) > most:
        zero = np.zeros(features.shape[1])
        return RidgeFit(zero, np.asarray(center), float(penalties[0]), np.inf)
    left, along, squares, vectors = _decomposed(features, gram, target)
    lost = penalties / (squares[:, None] + penalties)

    def summed(rows: slice) -> FloatArray:
        """Return the sums of squared leave-one-out residuals over some rows."""
        part = left(rows)
        part_squares = part**2
        # Residuals and 1 - h are computed as the part outside the span of the features plus the
        # part due to shrinkage. Both are tiny if the fit interpolates; computed as differences of
        # larger numbers they would be rounding noise.
        outside = target[rows] - part @ along
        free = np.maximum(1.0 - omega[rows] - np.sum(part_squares, axis=1), 0.0)
        residuals = outside[:, None] + part @ (lost * along[:, None])
        residuals /= np.maximum(free[:, None] + part_squares @ lost, LEAST_FREE)
        return np.asarray(np.sum(residuals**2, axis=0))

    parts = in_threads(summed, list(row_chunks(*features.shape)), len(features))
    scores = 0.5 * sum(parts, np.zeros(len(penalties)))
    best = int(np.argmin(scores))
    mu = float(penalties[best])
    coef = vectors @ (np.sqrt(squares) * along / (squares + mu))
    return RidgeFit(coef, np.asarray(center - means @ coef), mu, float(scores[best]), gram=gram)


def _least_loss(
    gram: FloatArray, cross: FloatArray, target: FloatArray, penalties: FloatArray
) -> float:
    """Return the loss with the smallest penalty, less what may be rounding; zero if unknown."""
    system = gram.copy()
    system.flat[:: len(gram) + 1] += float(np.min(penalties))
    _, coef, info = linalg.lapack.dposv(system, cross)
    if info != 0:
        return 0.0
    loss = float(target @ target) - 2.0 * float(cross @ coef) + float(coef @ gram @ coef)
    return 0.5 * loss * (1.0 - _SURE)


def _decomposed(
    features: FloatArray, gram: FloatArray, target: FloatArray
) -> tuple[Callable[[slice], FloatArray], FloatArray, FloatArray, FloatArray]:
    """Return U on slices of rows, U't, s^2 and V, without directions of numerically zero size.

    With many rows they come from the Gram matrix, which squares the condition number. With few rows
    leverages can be near one, and would show that error; then the SVD is used.
    """
    n, size = features.shape
    if n > 2 * size:
        squares, vectors = linalg.eigh(gram, check_finite=False)
        kept = squares > SMALLEST_SQUARE * max(float(np.max(squares, initial=0.0)), TINY)
        squares, vectors = squares[kept], vectors[:, kept]
        scaled = vectors / np.sqrt(squares)
        along = scaled.T @ (features.T @ target)
        return lambda rows: np.asarray(features[rows] @ scaled), along, squares, vectors
    left, values, right = linalg.svd(features, full_matrices=False, check_finite=False)
    squares = values**2
    kept = squares > SMALLEST_SQUARE * max(float(np.max(squares, initial=0.0)), TINY)
    left = left[:, kept]
    return lambda rows: np.asarray(left[rows]), left.T @ target, squares[kept], right[kept].T


def _general(
    features: FloatArray,
    y: FloatArray,
    omega: FloatArray,
    loss: Loss,
    relative_mu: float | None,
    start: RidgeStart | None,
    most: float,
) -> RidgeFit:
    n, size = features.shape
    means, unit = omega @ features, 0.0
    for rows in row_chunks(n, size):
        features[rows] -= means
        unit += float(np.sum(omega[rows] @ features[rows] ** 2)) / max(size, 1)
    shape, y = y.shape[1:], y.reshape(n, -1)
    outputs = contrasts(loss, y.shape[1])
    problem = RidgeObjective(np.hstack([features, np.ones((n, 1))]), y, omega, loss, outputs)
    return best_of_penalties(problem, means, unit, shape, relative_mu, start, most)


def best_of_penalties(
    problem: RidgeObjective,
    means: FloatArray,
    unit: float,
    shape: tuple[int, ...],
    relative_mu: float | None,
    start: RidgeStart | None = None,
    most: float = np.inf,
) -> RidgeFit:
    """Return the fit with the best leave-one-out score, or at a fixed penalty.

    Parameters
    ----------
    problem : RidgeObjective
        The rows, with columns of mean zero.
    means : ndarray of shape (R,)
        What was subtracted from them.
    unit : float
        Their mean variance.
    shape : tuple of int
        () for one output, or (k,).
    relative_mu, start, most
        As for ``fit_ridge``.
    """
    y, loss, omega, outputs, size = (
        problem.y,
        problem.loss,
        problem.omega,
        problem.outputs,
        len(means),
    )
    grid = FEW_PENALTIES[::-1] if relative_mu is None else np.array([relative_mu])
    first = None if relative_mu is not None or start is None else start.position
    theta = np.zeros((size + 1, outputs.shape[1]))
    known = None if start is None else start.curvature
    if start is not None and (first is not None or relative_mu is not None):
        theta[:-1] = start.coef.reshape(size, -1) @ outputs
    theta[-1] = loss.intercept(y, problem.predict(theta), omega) @ outputs
    # Theta and curvature of every penalty tried: the nearest one is where the next begins.
    solved: dict[int, tuple[FloatArray, Curvature]] = {}
    scores: dict[int, float] = {}
    for k in _positions(scores, len(grid), first):
        near = min(solved, key=lambda tried: abs(tried - k), default=None)
        begin, curvature = (theta, known) if near is None else solved[near]
        mu = float(unit * grid[k])
        penalty = np.full((size + 1, 1), max(mu, 1e-12 * unit, TINY))
        penalty[-1] = 0.0
        found, factor, curvature = problem.minimise(penalty, begin, curvature)
        scores[k] = loss.error(float(omega @ loss.value(y, problem.predict(found))))
        if loss.joint or scores[k] <= most:
            scores[k] = loss.error(float(omega @ loss.value(y, problem.left_out(found, factor))))
        else:
            scores[k] = np.inf
        solved[k] = found, curvature
        solved = {i: solved[i] for i in {k, _best(scores), max(solved), min(solved)}}
    best = _best(scores)
    theta, curvature = solved[best]
    coef = theta @ outputs.T
    intercept = coef[-1] - means @ coef[:-1]
    return RidgeFit(
        coef[:-1].reshape(size, *shape),
        intercept.reshape(shape),
        float(unit * grid[best]),
        scores[best],
        position=best if relative_mu is None else None,
        curvature=curvature,
    )


def _positions(scores: dict[int, float], size: int, first: int | None) -> Iterator[int]:
    """Yield the positions of the penalties to try, while ``scores`` is filled with their scores.

    They begin with the largest penalty, and end after ``_PATIENCE`` scores that are no better than
    the best. Where a position is given to begin with, they go from there to smaller penalties, and
    then to larger ones: to the same end if the score has one minimum.
    """
    begin = 0 if first is None else min(max(first, 0), size - 1)
    for k in range(begin, size):
        yield k
        best = _best(scores)
        if k - best >= _PATIENCE and best > 0:
            break
    for k in range(begin - 1, -1, -1):
        if _best(scores) - k > _PATIENCE:
            break
        yield k


def _best(scores: dict[int, float]) -> int:
    """Return the position of the least score; the largest penalty of equal ones."""
    return min(sorted(scores), key=lambda k: scores[k])
