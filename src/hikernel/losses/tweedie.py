"""The Tweedie loss, for targets that are zero or positive, such as claims and rainfall.

With a = power - 1 and c = 2 - power, both between 0 and 1 and of sum one, the loss of a row is

    y exp(-a f) / a + exp(c f) / c - y^c / (a c) = y^c g(d),    d = f - log y,
    g(d) = (exp(-a d) - 1) / a + (exp(c d) - 1) / c,

and exp(c f) / c where y = 0. Hence psi(b) = b log y + y^c g*(b / y^c). The conjugate g*(t) has no
closed form. It is the maximum over d of t d - g(d), so that a d which is not quite the best gives
too small a value, and a certificate needs one that is too large. Where the second derivative of g
is at least m between d and the best one, as its slopes there differ by e = t - g'(d),

    g*(t) <= t d - g(d) + e^2 / (2 m).

g'' is at least (a / c)^(c - a) everywhere, and at least c (t - abs(e)) here for t > 0: it is more
than c exp(c d), which is more than the slope g'(d) > 0. For t < 0, a and c change places.
``conjugate`` returns this bound, with a term for rounding errors. Newton's method makes e tiny.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import ClassVar, Literal

import numpy as np
from scipy.special import xlogy

from hikernel.engines.protocol import FloatArray
from hikernel.losses.loss import LARGEST_EXPONENT, Loss, bounded_exp, row_sums

__all__ = ["Tweedie"]

_LARGEST_TARGET = 1e15
_LEAST_TARGET = 1e-100
"""Least positive y, far from where b / y^c overflows."""
_LEAST_POWER, _MOST_POWER = 1.01, 1.99
"""Nearer to the ends, 1 / a or 1 / c would cost too many digits."""
_NEWTON_STEPS = 60
_ROUNDING = 16.0 * float(np.finfo(float).eps)


@dataclass(frozen=True)
class Tweedie(Loss):
    """Half the deviance of targets with mean exp(f) and variance proportional to mean^power.

    loss(y, f) = y exp(-a f) / a + exp(c f) / c - y^c / (a c) with a = power - 1, c = 2 - power. At
    a power between 1 and 2, y is zero with positive probability and continuous above: a sum of a
    Poisson number of gamma variables. ``conjugate`` returns an upper bound that is tight to
    rounding.

    Parameters
    ----------
    power : float, default=1.5
        From 1.01 to 1.99. Power 1 is :class:`Poisson`, power 2 is :class:`Gamma`.
    """

    power: float = 1.5

    name: ClassVar[str] = "tweedie"
    link: ClassVar[Literal["identity", "log"]] = "log"
    free_dispersion: ClassVar[bool] = True

    def __post_init__(self) -> None:
        power = self.power
        if power in (1, 2):
            other = "Poisson()" if power == 1 else "Gamma()"
            raise ValueError(f"A Tweedie loss of power {power:g} is hikernel.losses.{other}.")
        if not _is_number(power) or not _LEAST_POWER <= power <= _MOST_POWER:
            raise ValueError(
                f"power of the Tweedie loss must be from {_LEAST_POWER} to {_MOST_POWER}, got "
                f"{power!r}; power 1 is hikernel.losses.Poisson(), power 2 is Gamma()."
            )

    @property
    def _exponents(self) -> tuple[float, float]:
        """The numbers a and c."""
        return float(self.power) - 1.0, 2.0 - float(self.power)

    def value(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Return the loss of each row: y^c g(f - log y), or exp(c f) / c for y = 0."""
        a, c = self._exponents
        some = np.where(y > 0.0, y, 1.0)
        d = f - np.log(some)
        # Both parts of g vanish at d = 0 and cancel there, by rounding to less than zero at worst.
        positive = np.maximum(some**c * (_expm1(-a * d) / a + _expm1(c * d) / c), 0.0)
        return row_sums(np.where(y > 0.0, positive, bounded_exp(c * f) / c))

    def gradient(self, y: FloatArray, f: FloatArray, smoothing: float = 0.0) -> FloatArray:
        """Return exp(c f) - y exp(-a f)."""
        a, c = self._exponents
        return np.asarray(_exp(c * f) - y * _exp(-a * f))

    def curvature(self, y: FloatArray, f: FloatArray, smoothing: float = 0.0) -> FloatArray:
        """Return c exp(c f) + a y exp(-a f)."""
        a, c = self._exponents
        return np.asarray(c * _exp(c * f) + a * y * _exp(-a * f))

    def conjugate(self, y: FloatArray, b: FloatArray) -> FloatArray:
        """Return an upper bound on psi(b), tight to rounding; for y = 0 it is (b log b - b) / c."""
        _, c = self._exponents
        some = np.where(y > 0.0, y, 1.0)
        unit, log = some**c, np.log(some)
        bound = self._unit_conjugate(np.where(y > 0.0, b, 0.0) / unit)
        counted = b * log + unit * bound + _ROUNDING * np.abs(b * log)
        up = np.where((y == 0.0) & (b > 0.0), b, 0.0)
        empty = (xlogy(up, up) - up + _ROUNDING * (np.abs(xlogy(up, up)) + up)) / c
        return row_sums(np.where(y > 0.0, counted, np.where(b >= 0.0, empty, np.inf)))

    def _unit_conjugate(self, t: FloatArray) -> FloatArray:
        """Return the bound on g*(t)."""
        a, c = self._exponents
        # g(d; a, c) = g(-d; c, a), so that t and d may be taken as positive.
        fall, rise = np.where(t >= 0.0, a, c), np.where(t >= 0.0, c, a)
        size = np.abs(t)
        d = _solve_slope(size, rise, fall)
        up, down = _expm1(rise * d), _expm1(-fall * d)
        parts = size * d, up / rise, down / fall
        slack = np.abs(size - (up - down)) + _ROUNDING * (2.0 + up)
        least = np.maximum((a / c) ** (c - a), rise * (size - slack))
        rounding = _ROUNDING * (parts[0] + parts[1] - parts[2])
        bound = parts[0] - parts[1] - parts[2] + slack**2 / (2.0 * least) + rounding
        return np.asarray(np.where(size > 0.0, bound, 0.0))

    def check_target(self, y: FloatArray) -> None:
        """Raise for a target below zero, above 1e15 or nearly zero, or if all are zero."""
        if np.any(y < 0.0):
            raise ValueError(
                'loss="tweedie" needs y that is zero or positive, but some values are negative; '
                'use loss="squared_error", or check the target.'
            )
        if np.any(y > _LARGEST_TARGET):
            raise ValueError(
                f'loss="tweedie" takes y up to {_LARGEST_TARGET:g}, but there are larger values; '
                "divide y by a constant."
            )
        if np.any((y > 0.0) & (y < _LEAST_TARGET)):
            raise ValueError(
                f'loss="tweedie" takes y that is zero or from {_LEAST_TARGET:g} on, but there are '
                "smaller positive values; set them to zero, or multiply y by a constant."
            )
        if not np.any(y > 0.0):
            raise ValueError('loss="tweedie" needs some y above zero, but all are zero.')


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _solve_slope(t: FloatArray, rise: FloatArray, fall: FloatArray) -> FloatArray:
    """Return d >= 0 with exp(rise d) - exp(-fall d) = t, to rounding, for t >= 0.

    With u = exp(rise d) the equation is u - u^(-q) = t, q = fall / rise. Its left side is
    increasing and concave, so that Newton's method from u = max(1, t), where it is at most t, rises
    to the solution and never passes it. A last step in d itself keeps the digits of a small d.
    """
    q = fall / rise
    u = np.maximum(1.0, t)
    for _ in range(_NEWTON_STEPS):
        power = u**-q
        step = (t - u + power) / (1.0 + q * power / u)
        u = np.maximum(u + step, 1.0)
        if np.all(np.abs(step) <= 1e-15 * u):
            break
    d = np.log(u) / rise
    up, down = np.expm1(rise * d), np.expm1(-fall * d)
    return np.maximum(d + (t - up + down) / (rise * (1.0 + up) + fall * (1.0 + down)), 0.0)


def _exp(x: FloatArray) -> FloatArray:
    return np.asarray(np.exp(np.minimum(x, LARGEST_EXPONENT)))


def _expm1(x: FloatArray) -> FloatArray:
    """Return exp(x) - 1, exact for small x, continued linearly where it would overflow."""
    near = np.minimum(x, LARGEST_EXPONENT)
    return np.asarray(np.where(x > near, bounded_exp(x) - 1.0, np.expm1(near)))
