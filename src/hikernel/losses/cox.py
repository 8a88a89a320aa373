"""Cox's partial likelihood for censored times, a loss in which the rows interact.

Only the order of the times matters. The target is one number per row: the rank of its time among
the distinct times (1, 2, ...), with a minus sign if the time is censored.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from hikernel.engines.protocol import FloatArray
from hikernel.losses.loss import Loss

__all__ = ["Cox", "CoxOnRows"]

_SAFE = 1e-250
"""Least sum of exponentials that is used as it is; smaller ones are computed by logarithms."""

_LEAST_EXPONENT = -600.0
"""Least f, relative to the largest one, in sums for which logarithms would be too slow."""

_TINY = float(np.finfo(float).tiny)

_ROUNDING = 1e-11
"""Violation of a constraint of the dual that counts as rounding, relative to the weight of all
events."""


@dataclass(frozen=True)
class Cox(Loss):
    """Minus the logarithm of Cox's partial likelihood, with Breslow's rule for tied times.

    Rows have weights omega of sum one. Let t_1 < ... < t_K be the distinct times of events, d_k the
    weight of the events at t_k, and S_k = sum of omega_j exp(f_j) over the rows at risk at t_k:
    those with a time of at least t_k, censored or not. The mean loss is

        L(f) = sum over events i of omega_i (log(S_k(i) / d_k(i)) - f_i),

    where k(i) is the time of event i. The loss of an event is that of its row, and a censored row
    has none. The constants log d_k make zero the infimum, and a row of weight two the same as two
    rows: by Jensen's inequality, the events of t_k have together a loss of zero or more.

    Let H_j = sum of d_k / S_k over t_k up to the time of row j. The derivative is
    omega_j (exp(f_j) H_j - e_j) with e_j = 1 for events and 0 otherwise: minus the martingale
    residual. L does not change when a constant is added to f. The intercept makes the weighted mean
    of f zero.

    The conjugate of L at the vector omega * b is finite if c_j = b_j + e_j >= 0, and if
    E_k = -sum of omega_j b_j over the rows with a time before t_k is zero for the first t_k and not
    negative for the others, and zero over all rows. It is then

        sum_j omega_j c_j log c_j - sum_k [d_k log(1 + E_k/d_k) + E_k log(1 + d_k/E_k)].

    (log S_k is a maximum over distributions on the rows at risk. The conjugate is the least sum of
    their negative entropies among those whose weights d_k add up to omega * c. The best ones are
    q_k(j) = x_j / sum of x over the rows at risk, and the equations for x telescope in k.)

    Without rows of its own, as here, a loss takes all weights as equal. ``on_rows`` returns the
    loss with the weights and the risk sets of some rows, for all computations.
    """

    name: ClassVar[str] = "cox"
    joint: ClassVar[bool] = True

    def on_rows(self, y: FloatArray, weights: FloatArray) -> CoxOnRows:
        """Return the loss of these rows."""
        return CoxOnRows.of(y, weights)

    def value(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Return the loss of each row."""
        return _equal(y).value(y, f)

    def gradient(self, y: FloatArray, f: FloatArray, smoothing: float = 0.0) -> FloatArray:
        """Return exp(f) H - e, the derivative of the mean loss over the weight of the row."""
        return _equal(y).gradient(y, f)

    def curvature(self, y: FloatArray, f: FloatArray, smoothing: float = 0.0) -> FloatArray:
        """Return exp(f) H: with the weights on a diagonal, an upper bound on the Hessian."""
        return _equal(y).curvature(y, f)

    def conjugate(self, y: FloatArray, b: FloatArray) -> FloatArray:
        """Return the conjugate; the rows of events share the terms of their time."""
        return _equal(y).conjugate(y, b)

    def intercept(
        self,
        y: FloatArray,
        f: FloatArray,
        weights: FloatArray,
        smoothing: float = 0.0,
        start: FloatArray | float = 0.0,
    ) -> FloatArray:
        """Return minus the weighted mean of f."""
        return np.asarray(-(weights @ f))

    def check_target(self, y: FloatArray) -> None:
        """Raise if there is no event."""
        if not np.any(y > 0.0):
            raise ValueError(
                "There is no event among the rows, all times are censored, so that there is "
                "nothing to fit; check the column of events (1 or True means that it happened)."
            )

    def explained(self, error: float, null: float) -> float:
        """Return 1 - exp(2 (error - null)), the explained variation of O'Quigley, Xu, Stare."""
        return float(-np.expm1(2.0 * (error - null)))


@dataclass(frozen=True, eq=False, repr=False)
class CoxOnRows(Cox):
    """The loss of some rows, with their weights; y in the methods is the target of these rows.

    Attributes
    ----------
    y : ndarray of shape (n,)
        Ranks of the times, negative if censored.
    weights : ndarray of shape (n,)
        omega: positive, of sum one.
    order : ndarray of shape (n,)
        The rows by increasing time.
    first : ndarray of shape (K,)
        The rows at risk at t_k are those from position first[k] of ``order`` on.
    last : ndarray of shape (n,)
        The last t_k up to the time of each row; -1 if there is none.
    mass : ndarray of shape (K,)
        d.
    """

    y: FloatArray
    weights: FloatArray
    order: NDArray[np.intp]
    first: NDArray[np.intp]
    last: NDArray[np.intp]
    mass: FloatArray

    @classmethod
    def of(cls, y: FloatArray, weights: FloatArray) -> CoxOnRows:
        """Return the loss of rows with positive weights of any sum."""
        time, event = np.abs(y), y > 0.0
        order = np.argsort(time, kind="stable")
        times = np.unique(time[event])
        weights = weights / np.sum(weights)
        last = np.searchsorted(times, time, side="right") - 1
        return cls(
            y=y,
            weights=weights,
            order=order,
            first=np.searchsorted(time[order], times, side="left"),
            last=last,
            mass=np.bincount(last[event], weights[event], minlength=len(times)).astype(float),
        )

    @cached_property
    def event(self) -> NDArray[np.bool_]:
        """e, as booleans."""
        return np.asarray(self.y > 0.0)

    @cached_property
    def share(self) -> float:
        """The weight of all events."""
        return float(np.sum(self.mass))

    @cached_property
    def alone(self) -> NDArray[np.intp] | None:
        """The rows at risk at the last time of events, if all of them have their event then."""
        rows = self.order[self.first[-1] :] if len(self.first) else self.order[:0]
        same = len(rows) > 0 and bool(np.all(self.y[rows] == self.y[rows[0]]))
        return rows if same else None

    @cached_property
    def null(self) -> float:
        """The mean loss of a constant prediction."""
        return self.mean(np.zeros(len(self.y)))

    def for_any_rows(self) -> Cox:
        """Return the loss without rows."""
        return Cox()

    def on_rows(self, y: FloatArray, weights: FloatArray) -> CoxOnRows:
        """Return the loss of other rows."""
        return CoxOnRows.of(y, weights)

    def subset(self, rows: NDArray[np.intp] | NDArray[np.bool_]) -> CoxOnRows:
        """Return the loss of some of the rows."""
        return CoxOnRows.of(self.y[rows], self.weights[rows])

    def value(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Return log(S / d) - f for events, else zero; shape (n,)."""
        f = f.reshape(-1)
        out = np.zeros(len(f))
        level = self._log_risk(f) - np.log(self.mass)
        if self.alone is not None:
            # All at risk have their event: zero for equal f, where rounding would leave a rest.
            top = float(np.max(f[self.alone]))
            risk = self.weights[self.alone] * np.exp(f[self.alone] - top)
            level[-1] = top + np.log(np.sum(risk) / np.sum(self.weights[self.alone]))
        out[self.event] = level[self.last[self.event]] - f[self.event]
        return out

    def mean(self, f: FloatArray) -> float:
        """Return the mean loss L(f)."""
        return float(self.weights @ self.value(self.y, f))

    def gradient(self, y: FloatArray, f: FloatArray, smoothing: float = 0.0) -> FloatArray:
        """Return exp(f) H - e."""
        return np.asarray((self._expected(f.reshape(-1)) - self.event).reshape(f.shape))

    def curvature(self, y: FloatArray, f: FloatArray, smoothing: float = 0.0) -> FloatArray:
        """Return exp(f) H."""
        return self._expected(f.reshape(-1)).reshape(f.shape)

    def conjugate(self, y: FloatArray, b: FloatArray) -> FloatArray:
        """Return c log c, minus the term of the time of an event over the weight of its events."""
        shape = (len(b),)
        b = b.reshape(-1)
        c = b + self.event
        flow = -np.cumsum((self.weights * b)[self.order])
        slack = _ROUNDING * self.share
        # Weight that rows before each time leave over; nothing comes before the first row.
        left = np.append(0.0, flow)[self.first]
        if (
            np.any(c < 0.0)
            or np.any(left < -slack)
            or np.any(left[:1] > slack)
            or abs(flow[-1]) > slack
        ):
            return np.full(shape, np.inf)
        left = np.maximum(left, 0.0)
        ratio = left / self.mass
        entropy = np.log1p(ratio) + ratio * np.log1p(1.0 / np.maximum(ratio, _TINY))
        out = np.asarray(xlogy(c, c), dtype=np.float64)
        out[self.event] -= entropy[self.last[self.event]]
        return out

    def coupling(self, y: FloatArray, f: FloatArray, design: FloatArray) -> FloatArray:
        """Return the means of the columns over the rows at risk, times the square root of d."""
        return np.asarray(np.sqrt(self.mass)[:, None] * self._risk_means(_within_range(f), design))

    def influence(
        self, y: FloatArray, f: FloatArray, design: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return minus the score residuals, and rows minus their means over the rows at risk.

        With m_k the means at t_k, u_i = exp(f_i) sum of (x_i - m_k) d_k / S_k over the t_k up to
        the time of row i, minus x_i - m_k(i) for an event. z_i is x_i minus the mean of these m_k.
        """
        f = _within_range(f)
        means = self._risk_means(f, design)
        hazards = np.exp(np.log(self.mass) - self._log_risk(f))
        before = self.last + 1
        risk = np.exp(f)
        sums = np.vstack([np.zeros(design.shape[1]), np.cumsum(hazards[:, None] * means, axis=0)])
        around = sums[before] * risk[:, None]
        expected = np.append(0.0, np.cumsum(hazards))[before] * risk
        pulls = design * (expected - self.event)[:, None] - around
        pulls[self.event] += means[self.last[self.event]]
        centres = around / np.where(expected > 0.0, expected, 1.0)[:, None]
        return pulls, design - centres

    def error(self, loss: float) -> float:
        """Return 1 - gain, the gain of the partial log-likelihood over no model, per event."""
        return 1.0 + (loss - self.null) / self.share

    def held_out_error(self, f: FloatArray, rows: NDArray[np.intp]) -> float:
        """Return 1 - gain for some rows, given the others.

        It is the cross-validated partial likelihood of Verweij and van Houwelingen: the loss of all
        rows minus that of the others, with the prediction of a model that has not seen ``rows``.
        The gain is that over a constant prediction, for as many events as ``rows`` should have by
        their weight.
        """
        others = np.ones(len(f), dtype=bool)
        others[rows] = False
        part = float(np.sum(self.weights[rows]))
        gain = self.null - self.mean(f)
        if np.any(others):
            rest = self.subset(others)
            gain -= (1.0 - part) * (rest.null - rest.mean(f[others]))
        return 1.0 - gain / (part * self.share)

    def baseline(self, f: FloatArray) -> tuple[NDArray[np.intp], FloatArray]:
        """Return a row of each time of events, and the sums of d/S up to these times, for f."""
        _, rows = np.unique(self.last[self.event], return_index=True)
        with np.errstate(over="ignore"):
            return np.flatnonzero(self.event)[rows], np.exp(self._log_hazards(f))

    def _log_risk(self, f: FloatArray) -> FloatArray:
        """Return log S_k, shape (K,)."""
        if len(self.mass) == 0:
            return np.empty(0)
        logs = (f + np.log(self.weights))[self.order]
        return _running_log_sums(logs[::-1])[::-1][self.first]

    def _log_hazards(self, f: FloatArray) -> FloatArray:
        """Return the logarithms of the running sums of d_k / S_k, shape (K,)."""
        if len(self.mass) == 0:
            return np.empty(0)
        return _running_log_sums(np.log(self.mass) - self._log_risk(f))

    def _expected(self, f: FloatArray) -> FloatArray:
        """Return exp(f) H, the number of events that a row should have had."""
        out = np.zeros(len(f))
        seen = self.last >= 0
        out[seen] = np.exp(f[seen] + self._log_hazards(f)[self.last[seen]])
        return out

    def _risk_means(self, f: FloatArray, design: FloatArray) -> FloatArray:
        """Return the means of the columns over the rows at risk, weighted by omega exp(f)."""
        risk = (self.weights * np.exp(f))[self.order]
        sums = np.cumsum((risk[:, None] * design[self.order])[::-1], axis=0)[::-1][self.first]
        totals = np.cumsum(risk[::-1])[::-1][self.first]
        return np.asarray(sums / totals[:, None])


def _equal(y: FloatArray) -> CoxOnRows:
    """Return the loss of rows with equal weights."""
    y = y.reshape(-1)
    return CoxOnRows.of(y, np.ones(len(y)))


def _within_range(f: FloatArray) -> FloatArray:
    """Return f of shape (n,) with maximum zero; values so small that exp is zero are raised."""
    f = f.reshape(-1)
    return np.maximum(f - np.max(f), _LEAST_EXPONENT)


def _running_log_sums(x: FloatArray) -> FloatArray:
    """Return log(exp(x_1) + ... + exp(x_i)) for every i.

    >>> _running_log_sums(np.log([1.0, 2.0, 3.0])).round(6) == np.log([1.0, 3.0, 6.0]).round(6)
    array([ True,  True,  True])
    """
    top = float(np.max(x))
    sums = np.cumsum(np.exp(x - top))
    if sums[0] > _SAFE:
        return np.asarray(np.log(sums) + top)
    return np.asarray(np.logaddexp.accumulate(x))
