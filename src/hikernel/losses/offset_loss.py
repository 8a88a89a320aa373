"""A loss with an offset: f is what a model adds to a known number o of every row.

    loss_o(y, f) = loss(y, f + o),    psi_o(b) = psi(b) - <b, o>,

so that conjugates, gaps and certificates follow from those of the loss itself. A loss of residuals
needs no such decorator: loss(y, f + o) = loss(y - o, f).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hikernel.engines.protocol import FloatArray
from hikernel.losses.dual_curve import DualCurve, SampledCurve
from hikernel.losses.loss import Loss, row_sums

__all__ = ["OffsetLoss", "with_offset"]


@dataclass(frozen=True, eq=False)
class OffsetLoss(Loss):
    """loss(y, f + offset) as a loss of y and f, for given rows.

    Parameters
    ----------
    loss : Loss
        A loss of degree 0, for which y has no unit that f shares.
    offset : ndarray of shape (n,) or (n, k)
        One number per row and output, in the order of the rows of y and f.
    """

    loss: Loss
    offset: FloatArray

    def __post_init__(self) -> None:
        # What is an attribute of the class elsewhere is here that of the loss inside.
        of_class = ("name", "smooth", "shift_invariant", "link", "free_dispersion")
        for name in (*of_class, "for_labels", "is_likelihood"):
            object.__setattr__(self, name, getattr(self.loss, name))

    def subset(self, rows: NDArray[np.intp] | NDArray[np.bool_]) -> OffsetLoss:
        """Return the loss of some of the rows."""
        return OffsetLoss(self.loss.subset(rows), self.offset[rows])

    def value(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Return the loss of each row."""
        return self.loss.value(y, self._moved(f))

    def gradient(self, y: FloatArray, f: FloatArray, smoothing: float = 0.0) -> FloatArray:
        """Return the gradient at f + offset."""
        return self.loss.gradient(y, self._moved(f), smoothing)

    def curvature(self, y: FloatArray, f: FloatArray, smoothing: float = 0.0) -> FloatArray:
        """Return the curvature at f + offset."""
        return self.loss.curvature(y, self._moved(f), smoothing)

    def hessian(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Return the Hessians at f + offset."""
        return self.loss.hessian(y, self._moved(f))

    def conjugate(self, y: FloatArray, b: FloatArray) -> FloatArray:
        """Return psi(b) - <b, offset>."""
        return self.loss.conjugate(y, b) - row_sums(b * self.offset.reshape(b.shape))

    def plus_parts(self, y: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return slope, c and d + c offset."""
        slope, c, d = self.loss.plus_parts(y)
        return slope, c, d + c * self.offset.reshape(y.shape)

    def check_target(self, y: FloatArray) -> None:
        """Raise if y is outside the domain of the loss."""
        self.loss.check_target(y)

    def predict_mean(self, f: FloatArray) -> FloatArray:
        """Return the prediction of an output f that already has its offset."""
        return self.loss.predict_mean(f)

    def intercept(
        self,
        y: FloatArray,
        f: FloatArray,
        weights: FloatArray,
        smoothing: float = 0.0,
        start: FloatArray | float = 0.0,
    ) -> FloatArray:
        """Return the best b for f + offset."""
        return self.loss.intercept(y, self._moved(f), weights, smoothing, start)

    def residuals(
        self, y: FloatArray, f: FloatArray, weights: FloatArray, smoothing: float = 0.0
    ) -> FloatArray:
        """Return the residuals at f + offset."""
        return self.loss.residuals(y, self._moved(f), weights, smoothing)

    def dual_curve(self, y: FloatArray, r: FloatArray, weights: FloatArray) -> DualCurve:
        """Return C(s) of the loss minus s sum_i weights_i <r_i, offset_i>."""
        slope = float(weights @ row_sums(r * self.offset.reshape(r.shape)))
        return SampledCurve(lambda s: -float(weights @ self.loss.conjugate(y, -s * r)) - s * slope)

    def _moved(self, f: FloatArray) -> FloatArray:
        return f + self.offset.reshape(f.shape)


def with_offset(loss: Loss, y: FloatArray, offset: FloatArray) -> tuple[Loss, FloatArray]:
    """Return a loss and a target whose problem is that of loss(y, f + offset).

    Losses of residuals (of positive degree) keep their class, and y - offset is the target.

    Examples
    --------
    >>> from hikernel.losses import SquaredError
    >>> with_offset(SquaredError(), np.array([3.0, 4.0]), np.array([1.0, 1.0]))
    (SquaredError(), array([2., 3.]))
    """
    if loss.degree > 0:
        return loss, y - offset
    return OffsetLoss(loss, offset), y
