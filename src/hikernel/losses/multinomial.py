"""The multinomial log loss of k classes, one output each."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from typing import ClassVar

import numpy as np
from scipy.special import logsumexp, softmax, xlogy

from hikernel.engines.numerics import backtrack
from hikernel.engines.protocol import FloatArray
from hikernel.losses.loss import Loss

__all__ = ["Multinomial"]

_NEWTON_STEPS = 100
_ROUNDING = 1e-15
"""Relative increase of the loss that passes for rounding."""


@dataclass(frozen=True)
class Multinomial(Loss):
    """loss(y, f) = log sum_k exp(f_k) - <y, f>, y of shape (n, k) with one 1 per row.

    psi(b) = sum_k q_k log q_k for q = b + y on the simplex. The second derivative diag(p) - p p' is
    at most 2 diag(p (1 - p)): its rows have as much off the diagonal as on it.
    """

    name: ClassVar[str] = "log_loss"
    shift_invariant: ClassVar[bool] = True

    def value(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Return the loss of each row."""
        return np.asarray(logsumexp(f, axis=1) - np.sum(y * f, axis=1))

    def gradient(self, y: FloatArray, f: FloatArray, smoothing: float = 0.0) -> FloatArray:
        """Return p - y."""
        return np.asarray(softmax(f, axis=1) - y)

    def curvature(self, y: FloatArray, f: FloatArray, smoothing: float = 0.0) -> FloatArray:
        """Return 2 p (1 - p)."""
        p = softmax(f, axis=1)
        return np.asarray(2.0 * p * (1.0 - p))

    def hessian(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Return diag(p) - p p'."""
        p = softmax(f, axis=1)
        return np.asarray(p[:, :, None] * (np.eye(f.shape[1]) - p[:, None, :]))

    def conjugate(self, y: FloatArray, b: FloatArray) -> FloatArray:
        """Return the negative entropy of q."""
        q = b + y
        inside = np.all(q >= 0.0, axis=1) & (np.abs(np.sum(q, axis=1) - 1.0) <= 1e-9)
        q = np.where(inside[:, None], q, 1.0)
        return np.asarray(np.where(inside, np.sum(xlogy(q, q), axis=1), np.inf))

    def check_target(self, y: FloatArray) -> None:
        """Raise unless y marks one class per row, and every class has a row."""
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
        """Return the best b of sum zero, by Newton's method with step halving."""
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
            # Shifting all outputs alike changes nothing; the ones make the matrix invertible.
            matrix = np.diag(np.sum(weighted, axis=0)) - weighted.T @ p + 1.0 / k
            step = np.linalg.lstsq(matrix, slope, rcond=None)[0]
            step -= np.mean(step)
            found = backtrack(
                partial(stepped, b, step), itemgetter(1), before, 0.0, slack=_ROUNDING * abs(before)
            )
            if found is None:
                break
            (b, after), _ = found
            before = min(before, after)
            if float(np.max(np.abs(slope))) <= 1e-15 or float(np.max(np.abs(step))) <= 1e-14:
                break
        return np.asarray(b - np.mean(b))

    def residuals(
        self, y: FloatArray, f: FloatArray, weights: FloatArray, smoothing: float = 0.0
    ) -> FloatArray:
        """Return y - p, moved to weighted sum zero in every output; y - r stays on the simplex.

        p is mixed with the shares of the classes so that its mean is exactly theirs: p' = (1 - t) p
        + t q with the constant q >= 0 that makes the means agree, for the smallest t that allows.
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
