"""The ridge objective of a loss that is not squared: Newton's method, and rows left out.

The parameters theta of shape (R + 1, outputs) hold the coefficients and, in the last row, the
intercepts. The Hessian of the objective is computed once at a solution, where leave-one-out needs
it. On the way there the last one known is used again as long as steps with it converge fast: a step
takes three products with a vector, a Hessian takes as many as there are columns.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from hikernel.engines.machine import check_time
from hikernel.engines.numerics import backtrack, gram_in_parts, product_in_parts
from hikernel.engines.protocol import FloatArray
from hikernel.losses import Loss

__all__ = ["Curvature", "RidgeObjective", "contrasts", "row_chunks"]

_CHUNK = 2**21
"""Numbers per chunk of rows in the leave-one-out step: 16 MiB."""
_NEWTON_STEPS = 50
_CONVERGED = 1e-10
"""Relative gain of a step below which the objective is at its minimum."""
_FAST = 0.05
"""Gain of a step, relative to the one before, up to which an old Hessian is used again."""
_LEAST_FREE_OF_JOINT = 1e-3
"""Least value of 1 - W_i h_i in a joint loss, where it is approximate."""


def contrasts(loss: Loss, k: int) -> FloatArray:
    """Return the directions of k outputs that the loss determines, as orthonormal columns."""
    return _contrasts(k) if loss.shift_invariant else np.eye(k)


def _contrasts(k: int) -> FloatArray:
    """Return the Helmert matrix of shape (k, k - 1): orthonormal columns of sum zero.

    >>> np.round(_contrasts(3), 2)
    array([[ 0.71,  0.41],
           [-0.71,  0.41],
           [ 0.  , -0.82]])
    """
    return np.asarray(linalg.helmert(k).T)


def row_chunks(n_rows: int, n_columns: int) -> Iterator[slice]:
    """Yield slices of rows so that a chunk of so many columns stays small; checks the time."""
    chunk = max(_CHUNK // max(n_columns, 1), 1)
    for start in range(0, n_rows, chunk):
        check_time()
        yield slice(start, start + chunk)


class Curvature(NamedTuple):
    """The Hessian of the loss, and what a joint loss subtracts from it: its square, or None."""

    hessian: FloatArray
    coupling: FloatArray | None

    def restrict(self, columns: NDArray[np.intp], n_outputs: int) -> Self:
        """Return the same for some rows of theta, given by position, the last of them included."""
        width = len(self.hessian) // n_outputs
        index = (np.arange(n_outputs)[:, None] * width + columns).ravel()
        coupling = None if self.coupling is None else self.coupling[:, columns]
        return self._replace(hessian=self.hessian[np.ix_(index, index)], coupling=coupling)


@dataclass(frozen=True)
class RidgeObjective:
    """The objective in theta of shape (R + 1, outputs), whose last row holds the intercepts.

    In its Hessian theta is flattened one output after the other.
    """

    design: FloatArray
    y: FloatArray
    omega: FloatArray
    loss: Loss
    outputs: FloatArray

    def predict(self, theta: FloatArray) -> FloatArray:
        """Return f, shape (n, k)."""
        return np.asarray(self.linear(theta) @ self.outputs.T)

    def linear(self, theta: FloatArray) -> FloatArray:
        """Return x_i' theta for every row, shape (n, outputs)."""
        return np.asarray(self.design @ theta)

    def pull(self, vectors: FloatArray) -> FloatArray:
        """Return sum_i x_i vectors_i, shape (R + 1, outputs)."""
        return np.asarray(self.design.T @ vectors)

    def moments(self, weights: FloatArray) -> FloatArray:
        """Return sum_i weights_i x_i x_i', shape (R + 1, R + 1)."""
        if np.min(weights, initial=0.0) >= 0.0:  # one matrix with itself takes half the time
            half = np.sqrt(weights)[:, None] * self.design
            return gram_in_parts(half)
        return product_in_parts(self.design.T, weights[:, None] * self.design)

    def derivatives(self, f: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the first and second derivatives of each row's loss with respect to z."""
        second = self.outputs.T @ self.loss.hessian(self.y, f) @ self.outputs
        return self.slopes(f), second

    def slopes(self, f: FloatArray) -> FloatArray:
        """Return the first derivatives alone."""
        return np.asarray(self.loss.gradient(self.y, f) @ self.outputs)

    def minimise(
        self, penalty: FloatArray, theta: FloatArray, curvature: Curvature | None = None
    ) -> tuple[FloatArray, FloatArray, Curvature]:
        """Return the minimiser, the Cholesky factor of the Hessian there, and its part of the loss.

        ``curvature`` is that part near theta, where it is known, as from another penalty.
        """

        def stepped(theta: FloatArray, step: FloatArray, length: float) -> tuple[FloatArray, float]:
            after = theta - length * step
            losses = self.loss.value(self.y, self.predict(after))
            penalised = 0.5 * float(np.sum(penalty * after**2))
            return after, float(self.omega @ losses) + penalised

        _, before = stepped(theta, theta, 0.0)
        factor = None if curvature is None else self.factor(curvature, penalty)
        last = np.inf  # gain of the last step
        for _ in range(_NEWTON_STEPS):
            f = self.predict(theta)
            if factor is None:
                first, second = self.derivatives(f)
                curvature = self.curvature(second, f)
                factor = self.factor(curvature, penalty)
                fresh = True
            else:
                first, fresh = self.slopes(f), False
            slope = self.pull(self.omega[:, None] * first) + penalty * theta
            step = linalg.cho_solve((factor, True), slope.T.ravel(), check_finite=False)
            step = step.reshape(slope.T.shape).T
            descent = -float(np.sum(slope * step))
            found = backtrack(partial(stepped, theta, step), itemgetter(1), before, descent)
            if found is None:
                if fresh:
                    break
                factor = None
                continue
            (theta, after), _ = found
            gain, before = before - after, after
            small = gain <= _CONVERGED * max(before, 1e-300)
            if small and fresh:
                break
            if small or gain > _FAST * last:
                factor, last = None, np.inf
            else:
                last = gain
        if factor is None or curvature is None:
            f = self.predict(theta)
            curvature = self.curvature(self.derivatives(f)[1], f)
            factor = self.factor(curvature, penalty)
        return theta, factor, curvature

    def curvature(self, second: FloatArray, f: FloatArray) -> Curvature:
        """Return the Hessian of the loss, from the second derivatives of the rows."""
        width, outputs = self.design.shape[1], second.shape[1]
        blocks = np.empty((outputs, width, outputs, width))
        for a, b in itertools.combinations_with_replacement(range(outputs), 2):
            weights = self.omega * second[:, a, b]
            if a == b:
                weights = self.omega * (np.maximum(second[:, a, a], 0.0) + 1e-10)
            blocks[a, :, b] = blocks[b, :, a] = self.moments(weights)
        hessian = blocks.reshape(outputs * width, outputs * width)
        return Curvature(hessian, self.loss.coupling(self.y, f, self.design))

    def factor(self, curvature: Curvature, penalty: FloatArray) -> FloatArray:
        """Return the Cholesky factor of the Hessian of the objective."""
        hessian, coupling = curvature.hessian.copy(), curvature.coupling
        outputs = len(hessian) // len(penalty)
        diagonal = np.tile(penalty[:, 0], outputs) + 1e-14 * np.trace(hessian)
        hessian.flat[:: len(hessian) + 1] += diagonal
        if coupling is not None:
            # The Hessian of a joint loss is zero along the intercept, which the loss fixes.
            smaller = hessian - coupling.T @ coupling
            smaller[-1, -1] += np.trace(hessian)
            # Where rounding makes it indefinite, its upper bound takes its place.
            with suppress(linalg.LinAlgError):
                return np.asarray(linalg.cholesky(smaller, lower=True, check_finite=False))
        return np.asarray(
            linalg.cholesky(hessian, lower=True, overwrite_a=True, check_finite=False)
        )

    def left_out(self, theta: FloatArray, factor: FloatArray) -> FloatArray:
        """Return f_(i) of every row i, predicted after one Newton step without that row."""
        (n, width), outputs = self.design.shape, theta.shape[1]
        f = self.predict(theta)
        if self.loss.joint:
            return self._left_out_of_joint(f, factor)
        first, second = self.derivatives(f)
        if outputs == 1:
            sizes = np.empty(n)
            for rows in row_chunks(n, width):
                some = self.design[rows].T
                half = linalg.solve_triangular(factor, some, lower=True, check_finite=False)
                sizes[rows] = self.omega[rows] * np.sum(half**2, axis=0)
            free = np.maximum(1.0 - sizes * second[:, 0, 0], 1e-10)
            return np.asarray(f + (first[:, 0] * sizes / free)[:, None] @ self.outputs.T)
        inverse = linalg.lapack.dtrtri(factor, lower=1)[0]
        inverse = inverse.reshape(outputs, width, outputs, width)
        for rows in row_chunks(n, outputs * width):
            # With Q = S S', (I - Q W)^-1 Q = S (I - S' W S)^-1 S'. S is rotated so that the
            # matrix in the middle is diagonal.
            squares, root = np.linalg.eigh(self._own_inverse(inverse, rows))
            root *= np.sqrt(np.maximum(squares, 0.0))[:, None, :]
            leverages, turn = np.linalg.eigh(root.transpose(0, 2, 1) @ second[rows] @ root)
            root = root @ turn
            along = np.einsum("nab,na->nb", root, first[rows])
            along /= np.maximum(1.0 - leverages, 1e-10)
            f[rows] += np.einsum("nab,nb->na", root, along) @ self.outputs.T
        return f

    def _own_inverse(self, inverse: FloatArray, rows: slice) -> FloatArray:
        """Return Q_i of some rows, from the inverse of the Cholesky factor by outputs.

        The factor is triangular, and so is its inverse: block (a, b) is zero for b > a.
        """
        outputs = len(inverse)
        design = np.sqrt(self.omega[rows, None]) * self.design[rows]
        out = np.zeros((len(design), outputs, outputs))
        for a in range(outputs):
            halves = [design @ inverse[a, :, b].T for b in range(a + 1)]
            for b, c in itertools.combinations_with_replacement(range(a + 1), 2):
                out[:, b, c] += np.einsum("nr,nr->n", halves[b], halves[c])
        lower = np.tril_indices(outputs, -1)
        out[:, lower[0], lower[1]] = out[:, lower[1], lower[0]]
        return out

    def _left_out_of_joint(self, f: FloatArray, factor: FloatArray) -> FloatArray:
        """Return f_(i) of every row i of a joint loss."""

        def halves(x: FloatArray) -> FloatArray:
            solved = linalg.solve_triangular(factor, x.T, lower=True, check_finite=False)
            return np.asarray(np.sqrt(self.omega) * solved)

        pulls, around = self.loss.influence(self.y, f, self.design)
        leverages = self.loss.curvature(self.y, f)[:, 0] * np.sum(halves(around) ** 2, axis=0)
        moves = np.sum(halves(self.design) * halves(pulls), axis=0)
        moves /= np.maximum(1.0 - leverages, _LEAST_FREE_OF_JOINT)
        return np.asarray(f + moves[:, None])
