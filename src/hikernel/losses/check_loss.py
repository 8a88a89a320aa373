"""A numerical examination of a loss that somebody else wrote.

Certificates rest on what a loss says of itself. If its conjugate is too small, a proof is none; if
its derivatives are wrong, solvers stop early. ``check_loss`` compares all parts of a loss at many
predictions and says in a sentence what does not agree.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hikernel.engines.protocol import FloatArray
from hikernel.losses.loss import Loss

__all__ = ["check_loss"]

_STEP = 1e-5
"""Distance of the predictions of a numerical derivative, relative to the range of predictions."""
_CLOSE = 1e-4
"""Error of a numerical derivative, relative to the largest derivative nearby."""
_EXACT = 1e-9
"""Error of a value that is computed and not approximated, relative to the values it is made of."""
_SMOOTHING = 1e-3
"""How much a loss with kinks is smoothed here, relative to the range of predictions."""


def check_loss(loss: Loss, y: Any, *, low: float = -5.0, high: float = 5.0) -> None:
    """Raise a ValueError that says what is wrong with a loss, if something is.

    All of its methods are evaluated for every y at 41 predictions f, evenly spaced from ``low`` to
    ``high``, and compared: shapes, rows that do not depend on each other, the derivatives against
    numerical ones, convexity, the conjugate against Fenchel's inequality psi(b) + loss >= b f, with
    equality where b is the derivative, a minimum of zero, a domain of psi with zero inside.

    Parameters
    ----------
    loss : Loss
        A loss of one output: an object of a class derived from :class:`Loss`.
    y : array-like of shape (n,)
        Targets of all kinds that the loss accepts: small, large, zero if it may be.
    low, high : float, default=-5.0, 5.0
        The predictions to look at, which should lie around the best ones.

    Raises
    ------
    ValueError
        If the loss contradicts itself. That a loss passes is no proof, but mistakes are rare that
        show at none of these points.

    Examples
    --------
    >>> from hikernel.losses import Huber, check_loss
    >>> check_loss(Huber(0.5), [-1.0, 0.0, 2.0])
    """
    if not isinstance(loss, Loss):
        raise ValueError(f"A loss is an object of a class derived from Loss, got {loss!r}.")
    if not isinstance(getattr(loss, "name", None), str):
        raise ValueError(f"{type(loss).__name__} needs a class attribute name, a text.")
    target = np.atleast_1d(np.asarray(y, dtype=float))
    loss.check_target(target)
    grid = np.linspace(low, high, 41)
    # All pairs of a target and a prediction are rows of one call.
    examined = _Examined(loss, np.repeat(target, len(grid)), np.tile(grid, len(target)))
    examined.shapes()
    examined.outputs()
    examined.rows()
    examined.convexity(len(grid))
    examined.derivatives()
    examined.conjugate(len(grid))
    if loss.degree > 0:
        examined.units()
    if not loss.smooth:
        examined.kinks(len(grid))


@dataclasses.dataclass(frozen=True)
class _Examined:
    """A loss, and the targets and predictions at which it is looked at."""

    loss: Loss
    y: FloatArray
    f: FloatArray

    @property
    def _range(self) -> float:
        return float(np.ptp(self.f))

    @property
    def _smoothing(self) -> float:
        return 0.0 if self.loss.smooth else _SMOOTHING * self._range

    def _gradient(self, f: FloatArray) -> FloatArray:
        return self.loss.gradient(self.y, f, self._smoothing)

    def _fail(self, what: str, wrong: NDArray[np.bool_], words: str = "") -> None:
        """Raise, naming the first row at which ``wrong`` holds."""
        if np.any(wrong):
            i = int(np.argmax(wrong))
            where = f"at y = {self.y[i]:.6g} and f = {self.f[i]:.6g}"
            raise ValueError(f"{type(self.loss).__name__}: {what} {where}. {words}".strip())

    def shapes(self) -> None:
        """Raise unless all methods return one finite number per row."""
        smoothing = self._smoothing
        found = {
            "value": self.loss.value(self.y, self.f),
            "gradient": self.loss.gradient(self.y, self.f, smoothing),
            "curvature": self.loss.curvature(self.y, self.f, smoothing),
            "conjugate": self.loss.conjugate(self.y, np.zeros_like(self.f)),
        }
        for name, values in found.items():
            if np.shape(values) != self.f.shape:
                raise ValueError(
                    f"{type(self.loss).__name__}: {name} has shape {np.shape(values)} for "
                    f"{len(self.f)} rows; it must return one number per row."
                )
            self._fail(f"{name} is not finite", ~np.isfinite(values))

    def outputs(self) -> None:
        """Raise unless two outputs have the sum of their losses, and the slopes of each."""
        y, f = (np.column_stack([x, x]) for x in (self.y, self.f))
        smoothing, zero = self._smoothing, np.zeros_like(self.f)
        alone = {
            "value": (self.loss.value(y, f), 2.0 * self.loss.value(self.y, self.f)),
            "gradient": (self.loss.gradient(y, f, smoothing), np.repeat(zero[:, None], 2, axis=1)),
            "conjugate": (self.loss.conjugate(y, 0.0 * f), zero),
        }
        for name, (found, expected) in alone.items():
            if np.shape(found) != expected.shape:
                raise ValueError(
                    f"{type(self.loss).__name__}: {name} has shape {np.shape(found)} where y and f "
                    f"have shape {f.shape}; it must have shape {expected.shape}. Refits and models "
                    "of several classes have a column per output: sum value and conjugate over "
                    "them with hikernel.losses.row_sums."
                )
        wrong = ~np.isclose(*alone["value"], rtol=_EXACT, atol=1e-12)
        self._fail("the value of two outputs is not the sum over both", wrong)

    def rows(self) -> None:
        """Raise if the loss of a row depends on other rows."""
        back = self.loss.value(self.y[::-1].copy(), self.f[::-1].copy())[::-1]
        half = self.loss.value(self.y[::2].copy(), self.f[::2].copy())
        values = self.loss.value(self.y, self.f)
        wrong = ~np.isclose(back, values, rtol=_EXACT, atol=1e-12)
        wrong[::2] |= ~np.isclose(half, values[::2], rtol=_EXACT, atol=1e-12)
        self._fail("the loss of a row depends on other rows", wrong)

    def derivatives(self) -> None:
        """Raise unless gradient and curvature are the derivatives of value and gradient."""
        step = _STEP * self._range
        up, down = self._gradient(self.f + step), self._gradient(self.f - step)
        near = np.maximum(np.abs(up), np.abs(down))
        if self.loss.smooth:
            numeric = self.loss.value(self.y, self.f + step)
            numeric = (numeric - self.loss.value(self.y, self.f - step)) / (2.0 * step)
            # The derivative at f lies between those at both ends, whatever the curvature.
            least, most = np.minimum(up, down), np.maximum(up, down)
            slack = _CLOSE * (1.0 + near)
            self._fail(
                "gradient is not the derivative of value",
                (numeric < least - slack) | (numeric > most + slack),
            )
            self._fail(
                "gradient is not the derivative of value",
                (self._gradient(self.f) < least - slack) | (self._gradient(self.f) > most + slack),
            )
        ends = [
            self.loss.curvature(self.y, self.f + shift, self._smoothing)
            for shift in (-step, 0.0, step)
        ]
        self._fail("curvature is negative, but the loss must be convex", np.min(ends, axis=0) < 0.0)
        slope = (up - down) / (2.0 * step)
        slack = _CLOSE * (1.0 + np.max(ends, axis=0))
        self._fail(
            "curvature is not the derivative of gradient",
            (slope < np.min(ends, axis=0) - slack) | (slope > np.max(ends, axis=0) + slack),
        )

    def convexity(self, n_points: int) -> None:
        """Raise if the gradient falls, or the loss lies above its chord."""
        values = self.loss.value(self.y, self.f).reshape(-1, n_points)
        middle = values[:, 1:-1] - 0.5 * (values[:, :-2] + values[:, 2:])
        wrong = np.zeros(values.shape, dtype=bool)
        wrong[:, 1:-1] = middle > _EXACT * (1.0 + np.abs(values[:, 2:]) + np.abs(values[:, :-2]))
        self._fail("value lies above its chord, but the loss must be convex", wrong.ravel())
        self._fail("value is negative, but its minimum must be zero", values.ravel() < -1e-12)

    def conjugate(self, n_points: int) -> None:
        """Raise if psi breaks Fenchel's inequality, is not tight, or has a domain without zero."""
        loss, y, f = self.loss, self.y, self.f
        at_zero = loss.conjugate(y, np.zeros_like(f))
        self._fail(
            "conjugate(y, 0) is not zero: it is minus the least loss, which must be zero",
            np.abs(at_zero) > 1e-8,
            "Add a constant of y to the loss.",
        )
        b = self._gradient(f)
        psi = loss.conjugate(y, b)
        value = loss.value(y, f)
        scale = 1.0 + np.abs(b * f) + np.abs(value)
        self._fail("conjugate is infinite at a derivative of the loss", ~np.isfinite(psi))
        cost = self._cost()
        self._fail(
            "conjugate is too large: psi(b) + loss must be b f where b is the derivative",
            psi + value - b * f > 1e-7 * scale + cost,
        )
        for shift in range(n_points):  # b of one prediction beside another prediction of the same y
            other = np.roll(f.reshape(-1, n_points), shift, axis=1).ravel()
            beside = loss.value(y, other)
            self._fail(
                "conjugate is too small: psi(b) + loss must be at least b f",
                psi + beside - b * other < -_EXACT * (scale + np.abs(beside) + np.abs(b * other)),
                "A certificate would be wrong.",
            )
        for share in (0.75, 0.5, 0.25):
            self._fail(
                "conjugate is infinite between zero and a derivative of the loss",
                ~np.isfinite(loss.conjugate(y, share * b)),
                "Its domain must be convex with zero inside.",
            )

    def _cost(self) -> float:
        """Return by how much smoothing may miss the equality of Fenchel and Young."""
        if self.loss.smooth:
            return 0.0
        return len(self.loss.plus_parts(self.y)[1]) * self._smoothing

    def units(self) -> None:
        """Raise if a loss of positive degree is not one of residuals, or not of that degree."""
        values = self.loss.value(self.y, self.f)
        shifted = self.loss.value(self.y + 1.0, self.f + 1.0)
        self._fail(
            f"degree is {self.loss.degree}, but value changes when y and f grow by the same number",
            ~np.isclose(shifted, values, rtol=1e-7, atol=1e-9),
            "Only losses of y - f have a positive degree; use degree = 0.",
        )
        if vars(self.loss):
            return  # a parameter may have a unit, too
        twice = self.loss.value(2.0 * self.y, 2.0 * self.f)
        self._fail(
            f"degree is {self.loss.degree}, but value(2 y, 2 f) is not 2^degree value(y, f)",
            ~np.isclose(twice, 2.0**self.loss.degree * values, rtol=1e-7, atol=1e-9),
        )

    def kinks(self, n_points: int) -> None:
        """Raise unless the parts of a loss with kinks make up the loss, but for a constant of y."""
        slope, c, d = self.loss.plus_parts(self.y)
        made = slope * self.f + np.sum(np.maximum(c * self.f + d, 0.0), axis=0)
        rest = (made - self.loss.value(self.y, self.f)).reshape(-1, n_points)
        wrong = np.abs(rest - rest[:, :1]) > 1e-9 * (1.0 + np.abs(made.reshape(rest.shape)))
        self._fail("plus_parts do not make up the value", wrong.ravel())
