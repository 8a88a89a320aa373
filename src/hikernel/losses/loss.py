"""The base class of losses, as functions of the target y and the prediction f, and the dual.

All arrays have shape (n,), or (n, k) for models with k outputs. With weights omega that sum to one,
the problem is min sum_i omega_i loss(y_i, f_i) + (lambda/2) Omega^2. For residuals r with weighted
sum zero and alpha_i = omega_i r_i / lambda, the dual objective is

    D(alpha) = -sum_i omega_i psi_i(-r_i) - (lambda/2) Omega*(alpha)^2,

where psi is the conjugate of the loss. -r is a (sub)gradient of the loss at a prediction f.

A loss with kinks is smoothed by ``smoothing`` > 0 for the solver. ``value`` and ``conjugate`` are
never smoothed, so duality gaps refer to the original problem. Every loss here has minimum zero, so
zero is a valid dual bound. The domain of -r is always convex and contains zero, so shrinking a
residual keeps it feasible.

For multiples s >= 0 of a dual point, D(s alpha) = C(s) - (s^2/2) penalty, where C is concave and
depends only on the loss, and penalty = lambda Omega*(alpha)^2. Every s gives a valid lower bound;
a ``DualCurve`` picks a good one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from hikernel.engines.protocol import FloatArray
from hikernel.losses.best_constant import best_constant
from hikernel.losses.dual_curve import DualCurve, SampledCurve

__all__ = [
    "LARGEST_EXPONENT",
    "Loss",
    "balanced",
    "bounded_exp",
    "make_loss",
    "row_sums",
]

LARGEST_EXPONENT = 500.0
"""Largest argument of exp in losses with a logarithmic link, far beyond any mean of data."""


class Loss(ABC):
    """A convex loss.

    Attributes
    ----------
    name : str
        Name for the parameter ``loss`` of the estimators.
    smooth : bool
        Whether the derivative is continuous. If not, ``smoothing`` must be positive.
    degree : int
        Degree of homogeneity: loss(c y, c f) = c^degree loss(y, f), where parameters in units of y
        scale with c too. 0 for losses whose y has no free scale (labels, counts).
        A loss of positive degree is one of residuals: loss(y + c, f + c) = loss(y, f).
    shift_invariant : bool
        Whether adding the same number to all outputs of a row leaves the loss unchanged.
    link : {"identity", "log"}
        Whether predictions of a regression model are f or exp(f).
    free_dispersion : bool
        For losses of degree 0: whether noise of the same mean may be small or large, as for the
        gamma loss. It decides how alpha="auto" estimates errors. For a negative log likelihood, as
        that of counts or labels, it is False.
    for_labels : bool
        Whether y holds labels, as -1 and 1 in every output, and the classifiers take the loss.
    is_likelihood : bool
        Whether the loss of a row is minus a (quasi-)log-likelihood, so that refits have error bars.
    joint : bool
        Whether rows interact, so that the mean loss is no mean of functions of one row. All methods
        then refer to the rows of ``on_rows``: ``value`` divides the loss among the rows in some
        way, and ``gradient`` is the derivative of the mean loss over the weight of the row.
    """

    name: ClassVar[str]
    smooth: ClassVar[bool] = True
    degree: ClassVar[int] = 0
    shift_invariant: ClassVar[bool] = False
    link: ClassVar[Literal["identity", "log"]] = "identity"
    free_dispersion: ClassVar[bool] = False
    for_labels: ClassVar[bool] = False
    is_likelihood: ClassVar[bool] = True
    joint: ClassVar[bool] = False

    @abstractmethod
    def value(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Return the loss of each row, shape (n,)."""

    @abstractmethod
    def gradient(self, y: FloatArray, f: FloatArray, smoothing: float = 0.0) -> FloatArray:
        """Return the derivative of the smoothed loss with respect to f, in the shape of f."""

    @abstractmethod
    def curvature(self, y: FloatArray, f: FloatArray, smoothing: float = 0.0) -> FloatArray:
        """Return the second derivative of the smoothed loss in each output, in the shape of f.

        If the outputs of a row interact, return instead the diagonal of a diagonal matrix that
        bounds the Hessian of the row from above; for a joint loss, that of the mean loss over the
        weights of the rows.
        """

    def hessian(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Return the Hessian of a smooth loss in the outputs of each row, shape (n, k, k)."""
        curvature = self.curvature(y, f)
        return curvature[:, :, None] * np.eye(f.shape[1])

    @abstractmethod
    def conjugate(self, y: FloatArray, b: FloatArray) -> FloatArray:
        """Return psi(b) = max over f of <b, f> - loss(y, f), shape (n,).

        It is infinite where b is outside the domain of psi.
        """

    def plus_parts(self, y: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return slope, c and d with loss = slope f + sum_j max(c_j f + d_j, 0) + constant.

        Only for losses with kinks. ``slope`` has the shape of y; ``c`` and ``d`` stack one array of
        that shape per part j.
        """
        raise NotImplementedError(f"{self.name} is smooth.")

    def check_target(self, y: FloatArray) -> None:
        """Raise a ValueError that says what is wrong if y is outside the loss's domain."""
        return

    def predict_mean(self, f: FloatArray) -> FloatArray:
        """Return the prediction of a regression model in units of y, given its output f.

        It is f, or exp(f) with a logarithmic link.

        Raises
        ------
        ValueError
            If exp(f) overflows: the row is far outside the training data.
        """
        if self.link == "identity":
            return f
        if np.any(f > LARGEST_EXPONENT):
            row = int(np.argmax(f > LARGEST_EXPONENT))
            raise ValueError(
                f"Row {row} of X lies so far outside the training data that its prediction "
                "overflows; check its units, or clip X to the range of the training data."
            )
        return np.asarray(np.exp(f))

    def subset(self, rows: NDArray[np.intp] | NDArray[np.bool_]) -> Loss:
        """Return the loss of some of the rows; only joint losses and offsets know rows."""
        return self

    def on_rows(self, y: FloatArray, weights: FloatArray) -> Loss:
        """Return the loss of these rows with these weights; only a joint loss knows its rows."""
        return self

    def for_any_rows(self) -> Loss:
        """Return the loss without the rows of ``on_rows``."""
        return self

    def coupling(self, y: FloatArray, f: FloatArray, design: FloatArray) -> FloatArray | None:
        """Return how rows interact in a model f = X theta, for X of shape (n, width).

        For a joint loss it is a matrix G with ``width`` columns: the Hessian of the mean loss in
        theta is sum_i omega_i W_i x_i x_i' - G'G, where W is the curvature. None for other losses.
        """
        return None

    def influence(
        self, y: FloatArray, f: FloatArray, design: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return what a row adds to gradient and Hessian of a joint loss in a model f = X theta.

        The first array, of the shape of X, has the derivative u_i of the gradient in theta with
        respect to omega_i. The second has vectors z_i, for which W_i z_i z_i' is about the same of
        the Hessian.
        """
        raise NotImplementedError(f"{self.name} is a mean over the rows.")

    def error(self, loss: float) -> float:
        """Return a mean loss on the scale on which errors are compared by their ratio."""
        return loss

    def held_out_error(self, f: FloatArray, rows: NDArray[np.intp]) -> float:
        """Return the error of some rows given the others, for f of all rows of a joint loss."""
        raise NotImplementedError(f"{self.name} is a mean over the rows.")

    def explained(self, error: float, null: float) -> float:
        """Return the share of the error of the best constant that a model explains."""
        return 1.0 - error / null

    def intercept(
        self,
        y: FloatArray,
        f: FloatArray,
        weights: FloatArray,
        smoothing: float = 0.0,
        start: FloatArray | float = 0.0,
    ) -> FloatArray:
        """Return b that minimises sum_i weights_i loss(y_i, f_i + b): 0-d, or of shape (k,).

        Each output is solved separately, by Newton's method safeguarded by bisection.
        """
        if f.ndim == 1:
            return np.asarray(best_constant(self, y, f, weights, smoothing, float(start)))
        first = np.broadcast_to(np.asarray(start, dtype=float), f.shape[1:])
        return np.array(
            [
                best_constant(self, y[:, k], f[:, k], weights, smoothing, float(first[k]))
                for k in range(f.shape[1])
            ]
        )

    def residuals(
        self, y: FloatArray, f: FloatArray, weights: FloatArray, smoothing: float = 0.0
    ) -> FloatArray:
        """Return r = -gradient, adjusted to weighted sum zero, with -r in the domain of psi.

        f must include the optimal intercept. The weighted sum of -gradient is then zero up to
        rounding or the tolerance of a solver; the rest is removed by ``balanced``.
        """
        return balanced(-self.gradient(y, f, smoothing), weights)

    def dual_curve(self, y: FloatArray, r: FloatArray, weights: FloatArray) -> DualCurve:
        """Return C(s) = -sum_i weights_i psi_i(-s r_i) as a curve in s."""
        return SampledCurve(lambda s: -float(weights @ self.conjugate(y, -s * r)))


def balanced(r: FloatArray, weights: FloatArray) -> FloatArray:
    """Return residuals with weighted sum zero in every output.

    In each output, the residuals of the sign with the larger weighted sum are shrunk.

    >>> balanced(np.array([1.0, 1.0, -1.0]), np.full(3, 1 / 3))
    array([ 0.5,  0.5, -1. ])
    """
    up = weights @ np.maximum(r, 0.0)
    down = weights @ np.maximum(-r, 0.0)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        shrink_up = np.where(up > down, down / up, 1.0)
        shrink_down = np.where(down > up, up / down, 1.0)
    return np.asarray(np.where(r > 0.0, shrink_up, shrink_down) * r)


def row_sums(x: FloatArray) -> FloatArray:
    """Return the sum over the outputs, shape (n,).

    >>> row_sums(np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([3., 7.])
    """
    return x if x.ndim == 1 else np.asarray(np.sum(x, axis=1))


def bounded_exp(x: FloatArray) -> FloatArray:
    """Return exp(x), continued linearly above 500 (to 1e90), so that it stays finite and convex.

    >>> bounded_exp(np.array([0.0, 500.0, 501.0])) / np.exp(500.0) > [0.0, 0.5, 1.5]
    array([ True,  True,  True])
    """
    near = np.minimum(x, LARGEST_EXPONENT)
    return np.asarray(np.exp(near) * (1.0 + np.clip(x - LARGEST_EXPONENT, 0.0, 1e90)))


def make_loss(spec: object, choices: dict[str, type[Loss]]) -> Loss:
    """Return the loss that ``spec`` names, or ``spec`` itself if it is a loss.

    Parameters
    ----------
    spec : str or Loss
        A key of ``choices``, an object of one of its classes, or one of a class of the user that
        is derived from :class:`Loss`.
    choices : dict
        ``REGRESSION`` or ``CLASSIFICATION``.

    Examples
    --------
    >>> from hikernel.losses import REGRESSION
    >>> make_loss("quantile", REGRESSION)
    Quantile(level=0.5)
    """
    if isinstance(spec, Loss) and type(spec) in choices.values():
        return spec
    if isinstance(spec, str) and spec in choices:
        return choices[spec]()
    tasks = {kind.for_labels for kind in choices.values()}
    if isinstance(spec, Loss) and not _is_ours(type(spec)) and spec.for_labels in tasks:
        return _own_loss(spec, choices)
    listed = ", ".join(repr(name) for name in choices)
    example = next(iter(choices.values())).__name__
    raise ValueError(
        f"loss must be one of {listed}, an object of their classes such as "
        f"hikernel.losses.{example}(), or one of your own class derived from "
        f"hikernel.losses.Loss (for_labels={max(tasks)}); got {spec!r}."
    )


def _is_ours(kind: type) -> bool:
    return kind.__module__.partition(".")[0] == __name__.partition(".")[0]


def _own_loss(loss: Loss, choices: dict[str, type[Loss]]) -> Loss:
    """Return a loss of the user; raise if it would be taken for another one."""
    kind = type(loss)
    parent = next((base for base in kind.__mro__ if _is_ours(base) and base is not Loss), None)
    if parent is not None:
        # Solvers have short cuts for some classes, which would pass over what a subclass changes.
        raise ValueError(
            f"{kind.__name__} is derived from {parent.__name__}; derive a loss of your own from "
            "hikernel.losses.Loss itself."
        )
    name = getattr(loss, "name", None)
    if not isinstance(name, str) or not name or name in choices:
        raise ValueError(
            f"{kind.__name__} needs a class attribute name, a text that is not the name of another "
            f"loss; got {name!r}."
        )
    return loss
