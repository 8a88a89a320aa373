"""The multinomial log loss of k classes, with one output per class."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from typing import ClassVar

import numpy as np
from scipy.special import softmax, xlogy

from hikernel.engines.numerics import backtrack
from hikernel.engines.protocol import FloatArray
from hikernel.losses.loss import Loss

__all__ = ["Multinomial"]

_NEWTON_STEPS = 100
_ROUNDING = 1e-15
"""Relative increase of the loss that is treated as rounding error."""


@dataclass(frozen=True)
class Multinomial(Loss):
    """loss(y, f) = log sum_k exp(f_k) - <y, f>, y of shape (n, k) with one 1 per row, else 0.

    psi(b) = sum_k q_k log q_k for q = b + y on the simplex. With p = softmax(f), the Hessian
    diag(p) - p p' is at most 2 diag(p (1 - p)): in each of its rows, the absolute off-diagonal
    entries sum to the diagonal entry.
    """

    name: ClassVar[str] = "log_loss"
    shift_invariant: ClassVar[bool] = True
    for_labels: ClassVar[bool] = True

    def value(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Return the loss of each row."""
        d = f - np.max(f, axis=1, keepdims=True)
        return np.asarray(np.log(np.sum(np.exp(d), axis=1)) - np.sum(y * d, axis=1))

    def gradient(self, y: FloatArray, f: FloatArray, smoothing: float = 0.0) -> FloatArray:
        """Return p - y, where p = softmax(f)."""
        return np.asarray(softmax(f, axis=1) - y)

    def curvature(self, y: FloatArray, f: FloatArray, smoothing: float = 0.0) -> FloatArray:
        """Return 2 p (1 - p), an upper bound on the Hessian."""
        p = softmax(f, axis=1)
        return np.asarray(2.0 * p * (1.0 - p))

    def hessian(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Return diag(p) - p p'."""
        p = softmax(f, axis=1)
        return np.asarray(p[:, :, None] * (np.eye(f.shape[1]) - p[:, None, :]))

    def conjugate(self, y: FloatArray, b: FloatArray) -> FloatArray:
        """Return sum_k q_k log q_k, the negative entropy of q = b + y."""
        q = b + y
        inside = np.all(q >= 0.0, axis=1) & (np.abs(np.sum(q, axis=1) - 1.0) <= 1e-9)
        q = np.where(inside[:, None], q, 1.0)
        return np.asarray(np.where(inside, np.sum(xlogy(q, q), axis=1), np.inf))

    def check_target(self, y: FloatArray) -> None:
        """Raise unless y marks one class per row and every class occurs."""
        if y.ndim != 2 or not np.all((y == 0.0) | (y == 1.0)) or np.any(np.sum(y, axis=1) != 1.0):
            raise ValueError("The multinomial loss needs one class per row.")
        if np.any(np.sum(y, axis=0) == 0.0):
            raise ValueError("Every class needs a row of positive weight.")

    def intercept(
        self,
        y: FloatArray,
        f: FloatArray,
        weights: FloatArray,
        smoothing: float = 0.0,
        start: FloatArray | float = 0.0,
    ) -> FloatArray:
        """Return the optimal b with sum zero, by Newton's method with step halving."""
        b = np.array(np.broadcast_to(np.asarray(start, dtype=float), f.shape[1:]))
        k = len(b)

        def stepped(b: FloatArray, step: FloatArray, length: float) -> tuple[FloatArray, float]:
            after = b - length * step
            return after, float(weights @ self.value(y, f + after))

        _, before = stepped(b, b, 0.0)
        for _ in range(_NEWTON_STEPS):
            p = softmax(f + b, axis=1)
            slope = weights @ (p - y)
            weighted = weights[:, None] * p
            # The loss does not change when all outputs shift alike, so the Hessian is singular in
            # that direction. Adding 1/k to every entry makes it invertible.
            matrix = np.diag(np.sum(weighted, axis=0)) - weighted.T @ p + 1.0 / k
            step = np.linalg.lstsq(matrix, slope, rcond=None)[0]
            step -= np.mean(step)
            slack = _ROUNDING * abs(before)
            # Where the decrease is below rounding, one full step is exact to rounding, too.
            last = float(slope @ step) <= slack
            trial = partial(stepped, b, step)
            found = backtrack(
                trial, itemgetter(1), before, 0.0, slack=1e3 * slack if last else slack
            )
            if found is None:
                break
            (b, after), _ = found
            before = min(before, after)
            if last:
                break
        return np.asarray(b - np.mean(b))

    def residuals(
        self, y: FloatArray, f: FloatArray, weights: FloatArray, smoothing: float = 0.0
    ) -> FloatArray:
        """Return r = y - p' with weighted sum zero in every output and p' on the simplex.

        p' = (1 - t) p + t q mixes p = softmax(f) with a vector q >= 0 that is the same for all
        rows. q makes the weighted mean of p' equal to the shares of the classes, and t is the
        smallest number for which such a q exists.
        """
        p = softmax(f, axis=1)
        wanted = weights @ y
        missing = wanted - weights @ p
        with np.errstate(divide="ignore"):
            share = float(np.max(-missing / wanted, initial=0.0))
        # (1 - t) mean(p) + t q = wanted with q = wanted + (1 - t) / t * missing >= 0.
        t = share / (1.0 + share)
        mixed = (1.0 - t) * p + (t * wanted + (1.0 - t) * missing)
        mixed = np.maximum(mixed, 0.0)
        return np.asarray(y - mixed / np.sum(mixed, axis=1, keepdims=True))
